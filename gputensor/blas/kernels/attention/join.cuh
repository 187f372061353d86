// Joins, in their order, the parts of attention whose keys were cut among blocks.
//
// A block of HEAD / 2 threads has one row, and a thread has two neighbouring columns. Defined
// before this text: ELEMENT, PACK, HEAD and BM, as in attention.cuh.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"

typedef JoinParameters Parameters;

extern "C" __global__ void __launch_bounds__(HEAD / 2) kernel(const Parameters p) {
    start_together();
    const int tiles = p.rows / BM, all = p.queries * p.shared;
    const int64 unit = blockIdx.x / p.rows;             // batch and kept head
    const int row = blockIdx.x % p.rows, column = 2 * threadIdx.x;
    if (row >= all) return;
    const int64 place = unit * tiles + (tiles - 1 - row / BM);
    const float* first = p.partial + (place * p.splits * BM + row % BM) * (HEAD + 2);
    const int64 step = (int64)BM * (HEAD + 2);
    float largest = -__int_as_float(0x7f800000), total = 0, sums[2] = {0, 0};
#pragma unroll 8
    for (int i = 0; i < p.splits; ++i) largest = fmaxf(largest, first[i * step + HEAD]);
    const float shift = largest == -__int_as_float(0x7f800000) ? 0.0f : largest;
#pragma unroll 8
    for (int i = 0; i < p.splits; ++i) {
        const float factor = exp2f(first[i * step + HEAD] - shift);
        total += first[i * step + HEAD + 1] * factor;
        sums[0] += first[i * step + column] * factor;
        sums[1] += first[i * step + column + 1] * factor;
    }
    const float factor = total == 0 ? 0.0f : 1 / total;
    uint32 y;
    asm volatile("cvt.rn." PACK ".f32 %0, %1, %2;"
                 : "=r"(y) : "f"(sums[1] * factor), "f"(sums[0] * factor));
    const int64 batch = unit / p.kept, head = unit % p.kept * p.shared + row / p.queries;
    char* out = p.out.ptr + 2 * (batch * p.out.batch + head * p.out.head
                                 + row % p.queries * p.out.row);
    if (column < p.size) reinterpret_cast<uint32*>(out)[threadIdx.x] = y;
}
