// Joins the parts of attention whose keys were cut among blocks, in a fixed order.
//
// A block has ROWS rows, of one head. PARTS groups of HEAD / 2 threads have every PARTS-th part of a
// row each, and a thread has two neighbouring columns; all loads come before the first use. Defined
// before this text: PACK and HEAD, as in attention.cuh; BM, the rows of a tile; PARTS; EACH, the
// most parts of a thread; ROWS and WIDTH, the threads of a row, in whole warps.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/attention/attention.h"
#include "gputensor/blas/kernels/attention/softmax.cuh"

typedef JoinParameters Parameters;

const int MOST = 64;                            // parts, as many as the host makes
const int PAIRS = HEAD / 2, THREADS = ROWS * WIDTH;
const int64 STEP = (int64)BM * (HEAD + 2);      // from one part of a row to the next
struct alignas(8) Pair { float x, y; };

DEVICE float of_warp(float x, bool is_sum) {
#pragma unroll
    for (int bits = 1; bits < 32; bits *= 2) {
        const float y = __shfl_xor_sync(0xffffffffu, x, bits);
        x = is_sum ? x + y : fmaxf(x, y);
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_together();
    __shared__ float factors_of[ROWS][MOST];
    __shared__ Pair sums_of[ROWS][PARTS][PAIRS];
    const float infinity = __int_as_float(0x7f800000);
    const int all = p.queries * p.shared, tiles = p.rows / BM, blocks = (all + ROWS - 1) / ROWS;
    const int64 unit = blockIdx.x / blocks;             // batch and kept head
    const int mine = threadIdx.x / WIDTH, thread = threadIdx.x % WIDTH;
    const int wanted = blockIdx.x % blocks * ROWS + mine, row = wanted < all ? wanted : all - 1;
    const int part = thread / PAIRS, pair = thread % PAIRS;
    float* factors = factors_of[mine];
    Pair (*sums)[PAIRS] = sums_of[mine];
    const int64 place = unit * tiles + (tiles - 1 - row / BM);
    const float* first = p.partial + (place * p.splits * BM + row % BM) * (HEAD + 2);
    Pair own[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        own[i].x = own[i].y = 0;
        if (part < PARTS && part + i * PARTS < p.splits)
            own[i] = reinterpret_cast<const Pair*>(first + (part + i * PARTS) * STEP)[pair];
    }
    // Every warp has the maxima and totals of all parts, two in a lane.
    const int lane = threadIdx.x % 32;
    Pair stats[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        stats[i].x = -infinity;
        stats[i].y = 0;
        if (lane + 32 * i < p.splits)
            stats[i] = *reinterpret_cast<const Pair*>(first + (lane + 32 * i) * STEP + HEAD);
    }
    const float largest = of_warp(fmaxf(stats[0].x, stats[1].x), false);
    const float shift = largest == -infinity ? 0.0f : largest;
    stats[0].x = power_of_two(stats[0].x - shift);
    stats[1].x = power_of_two(stats[1].x - shift);
    const float total = of_warp(stats[0].x * stats[0].y + stats[1].x * stats[1].y, true);
    if (thread < 32) {
        factors[lane] = stats[0].x;
        factors[lane + 32] = stats[1].x;
    }
    __syncthreads();
    Pair sum = {0, 0};
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (part + i * PARTS < p.splits) {
            sum.x += own[i].x * factors[part + i * PARTS];
            sum.y += own[i].y * factors[part + i * PARTS];
        }
    if (part < PARTS) sums[part][pair] = sum;
    __syncthreads();
    if (part > 0 || wanted >= all) return;
#pragma unroll
    for (int i = 1; i < PARTS; ++i) {
        sum.x += sums[i][pair].x;
        sum.y += sums[i][pair].y;
    }
    const float factor = total == 0 ? 0.0f : 1 / total;
    uint32 y;
    asm volatile("cvt.rn." PACK ".f32 %0, %1, %2;"
                 : "=r"(y) : "f"(sum.y * factor), "f"(sum.x * factor));
    const int64 batch = unit / p.kept, head = unit % p.kept * p.shared + row / p.queries;
    char* out = p.out.ptr + 2 * (batch * p.out.batch + head * p.out.head
                                 + row % p.queries * p.out.row);
    if (2 * pair < p.size) reinterpret_cast<uint32*>(out)[pair] = y;
}
