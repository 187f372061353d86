// One draw of random numbers (draw.h): each thread turns whole blocks into four or two elements.
//
// All blocks of threads read the counter, and the last one to finish advances it, so a draw is one
// launch, and a graph draws other numbers at each replay.
//
// Defined before this text: KIND, one of the distributions; OUTPUT, the type of an element; BITS,
// the bits of a uniform number; ARITHMETIC, float or double, the type of a floating-point result;
// LANES, the elements of a block; WIDE_OUTPUT, whether an element has 8 bytes; IS_NUMBER, whether
// the result is a floating-point number.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/draw.h"

typedef DrawParameters Parameters;
typedef OUTPUT TO;

struct alignas(sizeof(TO) * LANES > 16 ? 16 : sizeof(TO) * LANES) Lanes { TO values[LANES]; };

__device__ __forceinline__ void draw(const RandomBlock& block, uint64 seed, const Parameters& p,
                                     Lanes& lanes) {
#if IS_NUMBER
    ARITHMETIC made[LANES];
    numbers<KIND, BITS>(block, p, made);
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
        lanes.values[k] = narrow<TO>(made[k]);
        // Rounding may reach the end of the range.
        if (KIND == UNIFORM && wide(lanes.values[k]) > (ARITHMETIC)p.most)
            lanes.values[k] = narrow<TO>((ARITHMETIC)p.most);
    }
#else
#pragma unroll
    for (int k = 0; k < LANES; ++k) {
        if (KIND == BERNOULLI) {
            lanes.values[k] = (TO)(block.words[k] < p.range);
        } else {
            const uint64 offset = LANES == 4 ? narrow_below(p.range, block, k, seed)
                                             : wide_below(p.range, block, k % 2, seed);
            lanes.values[k] = (TO)(p.least + offset);
        }
    }
#endif
}

// A block of 32 bytes takes two store instructions, and in each of them the threads' 16 bytes would
// lie 32 bytes apart. So two neighbouring threads exchange halves, and each instruction of the two
// writes one whole block.
#define BY_PAIRS (LANES == 4 && WIDE_OUTPUT)
#if BY_PAIRS
struct alignas(16) Half { uint32 words[4]; };
__device__ __forceinline__ void store_pair(Lanes* place, const Lanes& lanes, bool is_whole) {
    const Half* halves = reinterpret_cast<const Half*>(&lanes);
    const bool is_odd = threadIdx.x & 1;
    Half got;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        got.words[k] = __shfl_xor_sync(
            0xffffffffu, is_odd ? halves[0].words[k] : halves[1].words[k], 1);
    if (!is_whole) return;
    Half* to = reinterpret_cast<Half*>(place - is_odd) + is_odd;
    to[0] = is_odd ? got : halves[0];
    to[2] = is_odd ? halves[1] : got;
}
#endif

extern "C" __global__ void __launch_bounds__(KIND == PERMUTATION ? 1024 : 256)
kernel(const Parameters p) {
    start_early();
    const uint64 seed = p.state[0], low = p.state[1], high = p.state[2];
    TO* out = reinterpret_cast<TO*>(p.out);
    const int64 step = (int64)gridDim.x * blockDim.x;
    const int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x;
#if KIND == 6
    if (p.count <= RANKED) {
        __shared__ uint64 keys[RANKED];
        const int own = threadIdx.x;
        if (own < p.count) keys[own] = wide_word(random_block(seed, low, high, own / 2), own % 2);
        __syncthreads();
        int rank = 0;
        if (own < p.count) {
            for (int k = 0; k < p.count; ++k)
                rank += keys[k] < keys[own] || (keys[k] == keys[own] && k < own);
            out[own] = (TO)rank;
        }
    } else {
        uint32 keys[NETWORK_ROUNDS];
        network_keys(seed, low, high, keys);
        const int bits = bit_length(p.count - 1);
        for (int64 i = first; i < p.count; i += step) out[i] = (TO)network(i, p.count, bits, keys);
    }
#else
    const bool is_aligned = reinterpret_cast<uint64>(p.out) % alignof(Lanes) == 0;
    // All threads of a block make the same number of rounds, since neighbours exchange halves.
    for (int64 b = first; b - threadIdx.x < (int64)p.blocks; b += step) {
        const RandomBlock block = random_block(seed, low, high, b);
        Lanes lanes;
        draw(block, seed, p, lanes);
        const int64 end = (BY_PAIRS ? (b | 1) : b) + 1;
        const bool is_whole = is_aligned && end * LANES <= p.count;
#if BY_PAIRS
        store_pair(reinterpret_cast<Lanes*>(out) + b, lanes, is_whole);
        if (is_whole) continue;
#else
        if (is_whole) {
            reinterpret_cast<Lanes*>(out)[b] = lanes;
            continue;
        }
#endif
        for (int k = 0; k < LANES; ++k)
            if (b * LANES + k < p.count) out[b * LANES + k] = lanes.values[k];
    }
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        // Counts the blocks of threads; the last one resets the count to 0.
        if (atomicInc(reinterpret_cast<uint32*>(p.state + 3), gridDim.x - 1) == gridDim.x - 1) {
            p.state[1] = low + p.blocks;
            p.state[2] = high + (low + p.blocks < low);
        }
    }
}
