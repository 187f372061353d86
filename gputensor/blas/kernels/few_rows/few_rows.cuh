// What both kernels for products of few rows share: y[m, n] = sum over k of x[m, k] * w(k, n).
//
// m is at most 16, any strides lead from element to element of x, and the weights are read once, in
// pieces of PIECE_NBYTES that are neighbours in memory, straight to registers.
//
// Defined before this text: X_KIND and Y_KIND, 0 for float16, 1 for bfloat16, 2 for float32;
// PIECE_NBYTES, 2 to 16, which divides the addresses of all pieces; TOKENS, the most rows of x; SPLITS,
// blocks of a cluster that have a part of K each; AHEAD, whether a thread loads the next batch while
// it uses one. That saves time from some batches on, and its longer code costs 1.3 us (H200).
#pragma once

#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"
#include "gputensor/blas/kernels/few_rows/few_rows.h"

typedef FewRowsParameters Parameters;

#define THREADS 256
#define WARPS (THREADS / 32)
#define ITEM_NBYTES (X_KIND == 2 ? 4 : 2)
#define EACH (PIECE_NBYTES / ITEM_NBYTES)     // weights of a piece

// Lower items have the elements that come first.
struct Piece {
    uint32 item[(PIECE_NBYTES + 3) / 4];
};

__device__ __forceinline__ Piece piece_at(const char* from) {
    Piece x;
#if PIECE_NBYTES == 16
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.item[0]), "=r"(x.item[1]), "=r"(x.item[2]), "=r"(x.item[3])
                 : "l"(from));
#elif PIECE_NBYTES == 8
    const uint64 both = *reinterpret_cast<const uint64*>(from);
    x.item[0] = (uint32)both;
    x.item[1] = (uint32)(both >> 32);
#elif PIECE_NBYTES == 4
    x.item[0] = *reinterpret_cast<const uint32*>(from);
#else
    x.item[0] = *reinterpret_cast<const uint16*>(from);
#endif
    return x;
}

__device__ __forceinline__ float element(const Piece& w, int e) {
#if X_KIND == 2
    return __uint_as_float(w.item[e]);
#else
    return wide((uint16)(w.item[e / 2] >> 16 * (e % 2)), X_KIND);
#endif
}

// Writes results from the sums of the cluster's blocks, which lie at `totals`, token by token.
template <int COLUMNS>
__device__ __forceinline__ void write_results(const Parameters& p, uint32 totals, int split,
                                              int64 first) {
    meet();
    for (int i = threadIdx.x + split * THREADS; i < p.m * COLUMNS; i += SPLITS * THREADS) {
        const int64 token = i / COLUMNS, place = first + i % COLUMNS;
        float sum = 0;
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) sum += load_total(totals + i * 4, s);
        if (place < p.n) {
            sum = ended(p, sum, token * p.addend_row + place * p.addend_column,
                        token * p.bias_row + place * p.bias_column);
            store_y(p.y, token * p.y_row + place * p.y_column, sum);
        }
    }
#if SPLITS > 1
    meet();     // no block of the cluster leaves while another still reads its sums
#endif
}
