// Panel products of many rows on the tensor cores of Hopper (sm_90a): y[m, n] = activation(sum over
// k of x[m, k] * w[n, k] + bias + addend), in 16-bit floats.
//
// A block holds its panel of w, all terms of COLUMNS columns, in shared memory. 64 rows of x after
// the other pass through a ring, 64 terms (a chunk) at a time. A warpgroup copies; two multiply, one
// the even tiles of the block, the other the odd ones, so that one multiplies while the other
// activates and writes. Each has a ring of its own: with one for both, a warpgroup that is ahead
// would wait for a phase that its barrier has not begun, and not notice.
//
// Rows in shared memory have 128 bytes in the order of wgmma's swizzle. Where w is along n, a chunk
// has 64 terms by 64 columns one after the other, and wgmma reads it transposed.
//
// Defined before this text: X_KIND, 0 for float16, 1 for bfloat16; PACK, the types of a pair of
// elements; COLUMNS; STAGES of a ring; ALONG_TERMS, whether rows of w are along k (else along n);
// GATE, the activation; STEADY, whether w may be read before earlier work has ended; MULTIPLY, the
// instruction that multiplies 16 terms from the descriptors a and b and adds them to the sums d, or
// overwrites d if `adds` is 0.
#pragma once

#define Y_KIND X_KIND
#define SPLITS 1

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/held/held.h"
#include "gputensor/blas/kernels/shared/mma.cuh"
#include "gputensor/blas/kernels/shared/ring.cuh"
#include "gputensor/blas/kernels/skinny/result.cuh"

typedef HeldParameters Parameters;

#define DEVICE __device__ __forceinline__

const int COPYING = 128, THREADS = COPYING + 256;
const int LINES = COPYING / 8;              // rows copied at once
const int ROWS = 64;
const int STAGE = ROWS * 128;               // bytes of rows of x
const int CHUNK = COLUMNS * 128;            // bytes of weights
const int STAGED = 16 * 128;                // results of a warp: 16 rows of 64 columns
const int SPANS = (COLUMNS + 63) / 64;

DEVICE void multiply(float* d, uint64 a, uint64 b, uint32 adds) { MULTIPLY; }
DEVICE uint32 pack(float low, float high) {
    uint32 y;
    asm("cvt.rn." PACK ".f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
DEVICE void matrices(uint32* x, uint32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
DEVICE void store_matrices(uint32 at, const uint32* x) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(at), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}
DEVICE uint64 descriptor(uint32 at, uint32 leading) {
    return (uint64)(at >> 4) | (uint64)(leading >> 4) << 16 | 0x4000004000000000ull;
}

struct Barriers { uint64 full[2][STAGES], empty[2][STAGES]; };
struct Shared {
    uint32 w, rings, staged;
    float* bias;
    Barriers* barriers;
};

// Where 16 bytes of a row of 128 are.
DEVICE uint32 place_of(int row, int piece) { return row * 128 + ((piece ^ row & 7) << 4); }

// Copies 16 bytes, or writes zeros if not valid; in that case the address is not read.
DEVICE void copy_or_clear(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 16 : 0) : "memory");
}

// Copies a chunk of the weights; what is outside of them is zeros.
DEVICE void copy_weights(const Parameters& p, uint32 to, int chunk, int column) {
    const int line = threadIdx.x / 8, piece = threadIdx.x % 8, term = chunk * 64;
    to += chunk * CHUNK + place_of(line, piece);
#if ALONG_TERMS
    const int rows = p.n - column - line;       // from this thread's first one on
    const bool is_inside = term + piece * 8 < p.k;
    const char* from = p.w + ((column + line) * p.w_pitch + term + piece * 8) * 2;
    const int64 step = p.w_pitch * (LINES * 2);
#pragma unroll
    for (int i = 0; i < COLUMNS / LINES; ++i, from += step)
        copy_or_clear(to + i * LINES * 128, from, is_inside && i * LINES < rows);
#else
    const int rows = p.k - term - line, columns = p.n - column - piece * 8;
    const char* const from = p.w + ((term + line) * p.w_pitch + column + piece * 8) * 2;
    const int64 step = p.w_pitch * (LINES * 2);
#pragma unroll
    for (int i = 0; i < COLUMNS / LINES; ++i)
        copy_or_clear(to + i * LINES * 128, from + i % 4 * step + i / 4 * 128,
                      i % 4 * LINES < rows && i / 4 * 64 < columns);
#endif
}

// Copies the rows of x of all tiles of the block, and the weights in front of their first chunks.
DEVICE void copy_all(const Parameters& p, const Shared& shared, int first, int column) {
    const int line = threadIdx.x / 8, piece = threadIdx.x % 8;
#if STEADY
    for (int chunk = 0; chunk < p.chunks; ++chunk) copy_weights(p, shared.w, chunk, column);
    start_early();
#endif
    const int64 step = p.x_pitch * (LINES * 2);
    const uint32 inside = shared.rings + place_of(line, piece);
    Ring ring = {0, 0}, other = {0, 0};     // of this tile's warpgroup, and of the other one
    int own = 0;
    bool is_first = true;
    for (int row = first; row < p.m; row += p.groups * ROWS) {
        const char* from = p.x + ((row + line) * p.x_pitch + piece * 8) * 2;
        const int rows = p.m - row - line;
        for (int chunk = 0; chunk < p.chunks; ++chunk, ring.next(), from += 128) {
            const bool is_inside = chunk * 64 + piece * 8 < p.k;
            const uint32 to = inside + (own * STAGES + ring.stage) * STAGE;
            barrier_wait(shared_address(&shared.barriers->empty[own][ring.stage]), ring.phase ^ 1);
            if (!STEADY && is_first) copy_weights(p, shared.w, chunk, column);
#pragma unroll
            for (int i = 0; i < ROWS / LINES; ++i)
                copy_or_clear(to + i * LINES * 128, from + i * step, is_inside && i * LINES < rows);
            arrive_with_copies(shared_address(&shared.barriers->full[own][ring.stage]));
        }
        const Ring after = ring;
        ring = other;
        other = after;
        own ^= 1;
        is_first = false;
    }
}

// The sums of 64 rows.
DEVICE void multiply_all(const Parameters& p, const Shared& shared, Ring& ring, int own, float* d) {
    const bool is_one = threadIdx.x % 32 == 0;
    uint32 last = 0;
    for (int chunk = 0; chunk < p.chunks; ++chunk, ring.next()) {
        barrier_wait(shared_address(&shared.barriers->full[own][ring.stage]), ring.phase);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        const uint64 a = descriptor(shared.rings + (own * STAGES + ring.stage) * STAGE, 16);
        const uint64 b = descriptor(shared.w + chunk * CHUNK, ALONG_TERMS ? 16 : 64 * 128);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; ++i) multiply(d, a + 2 * i, b + (ALONG_TERMS ? 2 : 128) * i, chunk | i);
        wgmma_commit();
        wgmma_wait<1>();
        if (is_one && chunk) arrive(last);
        last = shared_address(&shared.barriers->empty[own][ring.stage]);
    }
    wgmma_wait<0>();
    settle<COLUMNS / 2>(d);
    if (is_one) arrive(last);
}

// Loads a warp's 16 rows of 64 columns of the addend, in pieces of 16 bytes.
DEVICE void load_addend(const Parameters& p, int row, int column, int end, Words* held) {
    const int lane = threadIdx.x % 32, at = column + lane % 8 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        held[i] = Words();
        const int64 own = row + i * 4 + lane / 8;
        if (own < p.m && at < end)
            held[i] = *reinterpret_cast<const Words*>(p.addend + (own * p.addend_pitch + at) * 2);
    }
}

// Writes a warp's 16 rows from `row` on, 64 columns at a time, with an addend if ADDS; `held` has
// its first pieces. All results of 64 columns are computed before the first is stored, because a
// store keeps the compiler from mixing what is before it with what is behind.
template <bool ADDS>
DEVICE void write(const Parameters& p, const Shared& shared, const float* d, uint32 staged, int row,
                  int column, Words* held) {
    const int lane = threadIdx.x % 32, end = min(p.n, column + COLUMNS);
#pragma unroll
    for (int span = 0; span < SPANS; ++span) {
        const int first = column + span * 64;
        // Two matrices of 8 columns, each of the upper and the lower 8 rows.
        const int PAIRS = span + 1 < SPANS ? 4 : (COLUMNS - 1) % 64 / 16 + 1;
        uint32 words[4][4], at[4];
        float2 bias[8];
#pragma unroll
        for (int j = 0; j < 4; ++j) at[j] = staged + place_of(lane % 16, 2 * j + lane / 16);
#pragma unroll
        for (int j = 0; j < 2 * PAIRS; ++j)
            bias[j] = *reinterpret_cast<const float2*>(
                shared.bias + (span * 8 + j) * 8 + lane % 4 * 2);
        if (ADDS) {
            __syncwarp();               // all have read the results before
#pragma unroll
            for (int i = 0; i < 4; ++i)
                store_16(staged + place_of(i * 4 + lane / 8, lane % 8), held[i]);
            __syncwarp();
            if (span + 1 < SPANS) load_addend(p, row, first + 64, end, held);
#pragma unroll
            for (int j = 0; j < PAIRS; ++j) matrices(words[j], at[j]);
        }
#pragma unroll
        for (int j = 0; j < PAIRS; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* sums = d + 32 * span + 8 * j + i / 2 * 4 + i % 2 * 2;
                float low = sums[0] + bias[2 * j + i / 2].x, high = sums[1] + bias[2 * j + i / 2].y;
                if (ADDS) {
                    low += wide((uint16)words[j][i], X_KIND);
                    high += wide((uint16)(words[j][i] >> 16), X_KIND);
                }
                words[j][i] = pack(activated(low), activated(high));
            }
        if (!ADDS) __syncwarp();
#pragma unroll
        for (int j = 0; j < PAIRS; ++j) store_matrices(at[j], words[j]);
        __syncwarp();
        Words out[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            out[i] = shared_16(staged + place_of(i * 4 + lane / 8, lane % 8));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int64 own = row + i * 4 + lane / 8;
            const int to = first + lane % 8 * 8;
            if (own < p.m && to < end)
                *reinterpret_cast<Words*>(p.y + (own * p.y_pitch + to) * 2) = out[i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) kernel(const Parameters p) {
#if !STEADY
    start_early();
#endif
    extern __shared__ __align__(1024) char memory[];
    Shared shared;
    shared.w = shared_address(memory);
    shared.rings = shared.w + p.chunks * CHUNK;
    shared.staged = shared.rings + 2 * STAGES * STAGE;
    char* const behind = memory + p.chunks * CHUNK + 2 * STAGES * STAGE + 8 * STAGED;
    shared.bias = reinterpret_cast<float*>(behind);
    shared.barriers = reinterpret_cast<Barriers*>(behind + COLUMNS * 4);
    const int column = blockIdx.x % p.columns * COLUMNS;
    const int first = blockIdx.x / p.columns * ROWS;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * STAGES; ++i) {
            barrier_init(shared_address(&shared.barriers->full[0][i]), COPYING);
            barrier_init(shared_address(&shared.barriers->empty[0][i]), 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
        copy_all(p, shared, first, column);
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
#if STEADY
    start_early();
#endif
    const int own = group - 1, warp = threadIdx.x / 32 % 4;
    for (int i = threadIdx.x - COPYING; i < COLUMNS; i += 256)
        shared.bias[i] = p.bias && column + i < p.n
            ? wide(reinterpret_cast<const uint16*>(p.bias)[column + i], X_KIND) : 0;
    asm volatile("bar.sync 1, %0;" :: "n"(THREADS - COPYING) : "memory");
    const uint32 staged = shared.staged + (own * 4 + warp) * STAGED;
    Ring ring = {0, 0};
    for (int64 row = first + (int64)own * p.groups * ROWS; row < p.m; row += 2 * p.groups * ROWS) {
        Words held[4];
        float d[COLUMNS / 2];
        if (p.addend)
            load_addend(p, row + warp * 16, column, min(p.n, column + COLUMNS), held);
        multiply_all(p, shared, ring, own, d);
        if (p.addend) write<true>(p, shared, d, staged, row + warp * 16, column, held);
        else write<false>(p, shared, d, staged, row + warp * 16, column, held);
    }
}
