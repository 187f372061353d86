// Brings x into the order in which wgmma.cuh multiplies it.
//
// For each column of 64 k, tokens follow each other in 128 bytes, as wgmma reads them: the 16-byte
// pieces of token i lie exchanged by i mod 8. Words of two k are ordered as the weights lie in the
// registers of a warp: piece c of a token has the words c of its 32 k (int8: of its 64 k), seen as
// four rows of words. Tokens and k beyond the matrix are zeros. A thread has a piece.
//
// Defined before this text: FORM, 0 for plain weights, 1 for int8, 2 for int4.
#pragma once

#define SPLITS 1                // blocks of a cluster
#define THREADS 256

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/quantized/tile.h"

typedef QuantizedTileParameters Parameters;

struct alignas(16) Piece { uint32 word[4]; };

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_early();
    const int c = threadIdx.x % 8;
    const uint32 own = blockIdx.x * (THREADS / 8) + threadIdx.x / 8;
    const uint32 column = own / (uint32)p.ordered_rows;
    const int token = (int)(own - column * p.ordered_rows);
    if ((int64)column * 64 >= p.k) return;
    Piece piece;
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        const int word = FORM == 1 ? t * 8 + c : c / 4 * 16 + t * 4 + c % 4;
        const int64 k = (int64)column * 64 + word * 2;
        piece.word[t] = 0;
        if (token < p.m && k < p.k)
            piece.word[t] = *reinterpret_cast<const uint32*>(p.x + token * p.x_pitch + k * 2);
    }
    *reinterpret_cast<Piece*>(p.ordered + (int64)own * 128 + (c ^ token % 8) * 16) = piece;
}
