// Brings x into the order in which wgmma.cuh multiplies it.
//
// For each column of 64 k, tokens follow each other in 128 bytes, as wgmma reads them: the 16-byte
// pieces of token i lie exchanged by i mod 8. Words of two k are ordered as the weights lie in the
// registers of a warp: piece c of a token has the words c of its 32 k (int8: of its 64 k), seen as
// four rows of words. Tokens and k beyond the matrix are zeros. A thread has a token's 64 k.
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
    const int64 index = (int64)blockIdx.x * THREADS + threadIdx.x;
    const int token = (int)(index / 32 % (p.ordered_rows / 8) * 8 + index % 8);
    const int64 column = index / 32 / (p.ordered_rows / 8) * 4 + index / 8 % 4;
    if (column * 64 >= p.k) return;
    uint32 words[32];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int64 k = column * 64 + i * 8;
        Piece piece = {};
        if (token < p.m && k < p.k)
            piece = *reinterpret_cast<const Piece*>(p.x + token * p.x_pitch + k * 2);
#pragma unroll
        for (int e = 0; e < 4; ++e) words[4 * i + e] = piece.word[e];
    }
    char* to = p.ordered + (column * p.ordered_rows + token) * 128;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        Piece piece;
#pragma unroll
        for (int t = 0; t < 4; ++t)
            piece.word[t] = words[FORM == 1 ? t * 8 + c : c / 4 * 16 + t * 4 + c % 4];
        *reinterpret_cast<Piece*>(to + (c ^ token % 8) * 16) = piece;
    }
}
