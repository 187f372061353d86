// Products of unaligned matrices without copies: operands of any alignment into the tensor cores.
//
// The bulk copy engine cannot copy matrices whose rows do not start at multiples of 16 bytes, and
// wgmma reads shared memory in one aligned order. mma takes registers instead, so each thread can
// add its row's offset to the address that it reads (ring.cuh). No matrix is copied before the
// product or after it.
//
// Four warps copy, several steps of 128 bytes along k ahead; four multiply, each a quarter of a
// tile of 128 rows. Barriers in shared memory tell full stages from free ones. K is cut among the
// SPLIT blocks of a cluster. Their sums are added through distributed shared memory in the order of
// the blocks, without atomics or a second pass, so the bits are equal from run to run. Matrices are
// column-major, as in blas/plan.
//
// Defined before this text: INPUT and OUTPUT, element types; BN, columns of the tile; SPLIT;
// STAGES; A_ALONG_K and B_ALONG_K, whether k is an operand's contiguous dimension; A_UNIT and
// B_UNIT, as in ring.cuh; INSTRUCTION, the name of the mma.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/shared/activation.cuh"

typedef INPUT input_t;
typedef OUTPUT output_t;

#include "gputensor/blas/kernels/unaligned/unaligned.h"

typedef UnalignedParameters Parameters;

const int E = sizeof(input_t);
const int DEPTH = 128 / E;                      // k of a step
const int PARTS = 4;                            // of a step, for one mma each
const int BM = 128, WARPS_M = 2, WARPS_N = 2, WARPS = WARPS_M * WARPS_N;
const int WORKERS = 32 * WARPS, LOADERS = 128, THREADS = WORKERS + LOADERS;
const int TILES_M = BM / 16 / WARPS_M, TILES_N = BN / 8 / WARPS_N;      // of mma, of a warp
const int PITCH = BM + 4;                       // floats from column to column of the sums

#include "gputensor/blas/kernels/unaligned/ring.cuh"

__device__ __forceinline__ void wait(uint32 barrier, uint32 parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
                 " @!p bra again; }" :: "r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void multiply(float* s, const uint32* a, const uint32* b) {
    asm volatile("mma.sync.aligned." INSTRUCTION " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
                 " {%0, %1, %2, %3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[0]), "r"(a[2]), "r"(a[1]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void meet() {
#if SPLIT > 1
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// Loads four sums of the block `rank` of the cluster. No write happens there between the two
// barriers, so there is no clobber, which lets several loads be in flight at once.
__device__ __forceinline__ void load_sums(float* x, uint32 from, int rank) {
#if SPLIT > 1
    uint32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(from), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(there));
#else
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(from));
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
kernel(const __grid_constant__ Parameters p) {
    start_early();
    extern __shared__ char memory[];
    uint32 shared;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
        : "=r"(shared) : "l"(memory));
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    const int rank = SPLIT > 1 ? blockIdx.x % SPLIT : 0;
    const int row = blockIdx.x / SPLIT * BM, column = blockIdx.y * BN;
    const int64 item = blockIdx.z;
    const char* from_a = p.a + item * p.stride_a * E;
    const char* from_b = p.b + item * p.stride_b * E;

    // The block's share of k, in whole parts, and its steps.
    const int all = (p.k + DEPTH / PARTS - 1) / (DEPTH / PARTS);
    const int begin = (int)((int64)all * rank / SPLIT) * (DEPTH / PARTS);
    const int end = min((int)((int64)all * (rank + 1) / SPLIT) * (DEPTH / PARTS), p.k);
    const int steps = end > begin ? (end - begin + DEPTH - 1) / DEPTH : 0;

    typedef Reader<A_ALONG_K, BM, A_UNIT, WARPS_M> ReaderA;
    typedef Reader<B_ALONG_K, BN, B_UNIT, WARPS_N> ReaderB;
    typedef typename ReaderA::Shape RingA;
    typedef typename ReaderB::Shape RingB;
    const uint32 memory_b = shared + RingA::NBYTES, full = memory_b + RingB::NBYTES;
    const uint32 empty = full + 8 * STAGES;
    if (threadIdx.x == 0)
#pragma unroll
        for (int i = 0; i < STAGES; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                         :: "r"(full + 8 * i), "n"(LOADERS) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                         :: "r"(empty + 8 * i), "n"(WARPS) : "memory");
        }
    __syncthreads();

    if (warp >= WARPS) {
        Loader<A_ALONG_K, BM, A_UNIT> a;
        Loader<B_ALONG_K, BN, B_UNIT> b;
        a.open(from_a, p.lda, row, p.m, begin, end, shared);
        b.open(from_b, p.ldb, column, p.n, begin, end, memory_b);
        int stage = 0, parity = 1;
        // One more than the number of steps, since rows along k end a line later.
#pragma unroll 1
        for (int step = 0; step <= steps && steps; ++step) {
            if (step >= STAGES) wait(empty + 8 * stage, parity);
            if (step > 0 && (step + 1) * DEPTH <= end - begin) {
                a.template load<false>(step, stage);
                b.template load<false>(step, stage);
            } else {
                if (A_ALONG_K || step < steps) a.template load<true>(step, stage);
                if (B_ALONG_K || step < steps) b.template load<true>(step, stage);
            }
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                         :: "r"(full + 8 * stage) : "memory");
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
    } else {
        const int warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
        ReaderA a;
        ReaderB b;
        a.open(from_a, p.lda, row, begin, warp_m, shared);
        b.open(from_b, p.ldb, column, begin, warp_n, memory_b);
        float sums[TILES_M][TILES_N][4];
#pragma unroll
        for (int i = 0; i < TILES_M; ++i)
#pragma unroll
            for (int j = 0; j < TILES_N; ++j)
#pragma unroll
                for (int q = 0; q < 4; ++q) sums[i][j][q] = 0.0f;

        // Words that were read wait in `coming` for one tile: A's next tile, B's next part.
        const int PAIRS = (TILES_N + 1) / 2;
        uint32 coming_a[2][8] = {}, coming_b[PAIRS][8] = {}, ready_a[4], ready_b[PAIRS][4];
        int stage = 0, after = 1;       // of this step, and of the one that the next also needs
        uint32 parity = 0;
        if (steps) {
            wait(full, 0);
            wait(full + 8, 0);
        }
        a.fetch(coming_a[0], 0, 0, 0);
#pragma unroll
        for (int j = 0; j < PAIRS; ++j) b.fetch(coming_b[j], 2 * j, 0, 0);
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            const int next = stage + 1 == STAGES ? 0 : stage + 1;
            if (++after == STAGES) {
                after = 0;
                parity ^= 1;
            }
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                const bool is_last = part == PARTS - 1;
                if (is_last && step + 1 < steps) wait(full + 8 * after, parity);
                const int then = is_last ? next : stage, following = (part + 1) % PARTS;
#pragma unroll
                for (int j = 0; j < PAIRS; ++j) b.finish(ready_b[j], coming_b[j], 2 * j);
#pragma unroll
                for (int i = 0; i < TILES_M; ++i) {
                    if (i + 1 < TILES_M)
                        a.fetch(coming_a[(i + 1) % 2], 2 * i + 2, part, stage * RingA::STEP);
                    else a.fetch(coming_a[0], 0, following, then * RingA::STEP);
#pragma unroll
                    for (int j = 0; j < PAIRS; ++j)
                        if (j * TILES_M / PAIRS == i)
                            b.fetch(coming_b[j], 2 * j, following, then * RingB::STEP);
                    a.finish(ready_a, coming_a[i % 2], 2 * i);
#pragma unroll
                    for (int j = 0; j < TILES_N; ++j)
                        multiply(sums[i][j], ready_a, ready_b[j / 2] + j % 2 * 2);
                }
            }
            __syncwarp();
            if (lane == 0)
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                             :: "r"(empty + 8 * stage) : "memory");
            stage = next;
        }
        // All four warps have read all copied data: the sums overwrite it, column by column in the
        // order of the slots.
        asm volatile("bar.sync 1, %0;" :: "n"(WORKERS) : "memory");
        const uint32 to = shared + 4 * (warp_m * TILES_M * 16 + lane / 4
                                        + (warp_n * TILES_N * 8 + lane % 4 * 2) * PITCH);
#pragma unroll
        for (int i = 0; i < TILES_M; ++i)
#pragma unroll
            for (int j = 0; j < TILES_N; ++j)
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    asm volatile("st.shared.f32 [%0], %1;"
                                 :: "r"(to + 4 * ((j * 8 + q % 2) * PITCH + i * 16 + q / 2 * 8)),
                                    "f"(sums[i][j][q]) : "memory");
    }
    meet();

    // Each block adds up and writes its share of the columns, a thread four slots at a time.
    typedef typename ReaderA::Map MapA;
    const int QUADS = BM / 4, ALL = (BN + SPLIT - 1) / SPLIT * QUADS, AT_ONCE = 3;
    const bool is_plain = p.beta == 0.0f && !p.bias && !p.activation;
#pragma unroll 1
    for (int base = threadIdx.x; base < ALL; base += THREADS * AT_ONCE) {
        float x[AT_ONCE][SPLIT][4];
        int lines[AT_ONCE], starts[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int index = base + i * THREADS, slot = index / QUADS * SPLIT + rank;
            const int quad = index % QUADS;
            lines[i] = slot < BN ? column + ReaderB::Map::line_of(slot) : p.n;
            starts[i] = row + MapA::line_of(quad * 4);
            // Every load is used, so no thread leaves before its loads arrive.
            if (lines[i] < p.n && starts[i] < p.m)
#pragma unroll
                for (int other = 0; other < SPLIT; ++other)
                    load_sums(x[i][other], shared + 4 * (slot * PITCH + quad * 4), other);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int quad = (base + i * THREADS) % QUADS, line = lines[i], start = starts[i];
            const int unit = quad * 4 < MapA::WHOLE ? A_UNIT : MapA::LAST;
            if (line >= p.n || start >= p.m) continue;
            const output_t* c = p.c + item * p.stride_c + line * p.ldc;
            output_t* d = p.d + item * p.stride_d + line * p.ldd;
            float y[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                y[q] = x[i][0][q];
#pragma unroll
                for (int other = 1; other < SPLIT; ++other) y[q] += x[i][other][q];
                y[q] *= p.alpha;
            }
            if (!is_plain)
#pragma unroll
                for (int q = 0; q < 4; ++q) {
                    const int at = start + q * unit;
                    if (at >= p.m) continue;
                    if (p.beta != 0.0f) y[q] = fmaf(p.beta, wide(c[at]), y[q]);
                    if (p.bias) y[q] += wide(p.bias[at]);
                    y[q] = activate(y[q], p.activation);
                }
#pragma unroll
            for (int q = 0; q < 4; ++q)
                if (start + q * unit < p.m) d[start + q * unit] = narrow<output_t>(y[q]);
        }
    }
#if SPLIT > 1
    // No block of the cluster ends while another still reads its sums. The loaded sums are in
    // registers by now; a release would also wait until D is written.
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
