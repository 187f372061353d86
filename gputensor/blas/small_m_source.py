"""The CUDA program of skinny products: y[m, n] = sum over k of x[m, k] * w[n, k], with m <= 16.

The weights are read once, so the kernel is a queue for memory: every thread keeps STAGES - 1 groups
of 16-byte asynchronous copies in flight, into slots of shared memory that its warp reads back; no
barrier of the block stands between two steps. The activations lie in shared memory, shared by all
warps, each of which owns WARP_ROWS outputs ("features"). K is cut among the SPLITS blocks of a
cluster, whose sums meet through distributed shared memory in a fixed order: no atomics, equal bits
from run to run.

16-bit activations go through mma.m16n8k16 with the weights as its left operand (16 features) and
the activations as its right one (8 tokens). The order of k inside an instruction is free as long as
both operands agree, so a lane's 16 bytes are its fragments as they are, without shuffles: lane
(g, t), g = lane / 4 and t = lane % 4, holds feature g (and g + 8) at the k that follow 8 * t.
float32 is multiplied by FFMA in the same arrangement.

Forms of the weights (FORM): ROWS, w is [n, k]; COLUMNS, w is [k, n]; INT8, [n, k] with a scale for
each feature and group of k; INT4, tiles of 16 features x 64 k in 512 bytes (int4_layout.py).
"""

from gputensor.blas.small_m_primitives import PRIMITIVES

__all__ = ["COLUMNS", "INT4", "INT8", "ROWS", "small_m_source"]

ROWS, COLUMNS, INT8, INT4 = range(4)
KINDS = {"float16": 0, "bfloat16": 1, "float32": 2}

_PROGRAM = r"""
// Where in a warp's slots the chunk of lane (g, t) lies, so that neither the copies, whose lanes go
// by lines, nor the reads of a quarter of a warp meet in a bank.
__device__ __forceinline__ int slot_of(int g, int t, int substep) {
#if FORM == 1
    return 4 * g + (t ^ (g >> 1));
#else
    return (4 * g + t) ^ (4 * substep);
#endif
}

// What one thread knows of its place.
struct Place {
    int lane_g, lane_t;
    int64 row;              // first feature of the warp
    int64 k_end;            // of this split
    uint32 ring;            // shared address of the warp's slots
    const char* source;     // where the thread reads its first chunk of k = 0
};

__device__ __forceinline__ void load_weights(const Parameters& p, const Place& at, int64 k,
                                             int stage) {
    const uint32 to = at.ring + stage * STAGE_NBYTES;
#if SUBSTEPS == 2
    // Eight lanes copy the line of a row; the slots are those of the lanes that use it.
    const int lane = threadIdx.x % 32, own = FORM == 2 ? 16 : 16 / X_NBYTES;
    const int substep = lane % 8 / 4;
    const bool has_k = k + lane % 8 * own < at.k_end;
#pragma unroll
    for (int c = 0; c < 2 * CHUNKS; ++c) {
        const int row = 4 * c + lane / 8;
        const uint32 slot = to + (substep * CHUNKS + c / 2) * (THREADS * 16)
                          + slot_of(row % 8, lane % 4, substep) * 16;
        const bool is_valid = has_k && at.row + row < p.n;
        const char* from = at.source + 4 * c * p.w_pitch + k * (FORM == 2 ? 1 : X_NBYTES);
        copy_16(slot, is_valid ? from : p.w, is_valid);
    }
#else
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
#if FORM == 1
        const int own = 16 / X_NBYTES;      // k rows of a thread, and features of a chunk
        const int lane = threadIdx.x % 32, g = lane % 8, t = lane / 8;
        const uint32 slot = to + c * (THREADS * 16) + slot_of(g, t, 0) * 16;
        const int64 mine = k + t * own + c % own;
        const int64 column = at.row + (c / own) * (8 * own) + g * own;
        const bool is_valid = mine < at.k_end && column < p.n;
        const char* from = p.w + mine * p.w_pitch + column * X_NBYTES;
        copy_16(slot, is_valid ? from : p.w, is_valid);
#elif FORM == 2
        const uint32 slot = to + c * (THREADS * 16) + (4 * at.lane_g + at.lane_t) * 16;
        // A group is within one instruction only if the four lanes share its 32 k.
        const int64 mine = k + at.lane_t * 8;
        const bool has_row = at.row + 8 * c + at.lane_g < p.n;
        const char* from = at.source + 8 * c * p.w_pitch + k;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const bool is_valid = has_row && mine + 32 * h < at.k_end;
            copy_8(slot + 8 * h, is_valid ? from + 32 * h : p.w, is_valid);
        }
#else
        const uint32 slot = to + c * (THREADS * 16) + (4 * at.lane_g + at.lane_t) * 16;
        const bool is_valid = k < at.k_end && at.row + 16 * c < p.n;
        const char* from = at.source + (c * p.w_pitch + k / 64) * 512;
        copy_16(slot, is_valid ? from : p.w, is_valid);
#endif
    }
#endif
}

// The activations, and the scales, of `span` k from `k` on.
__device__ __forceinline__ void load_x(const Parameters& p, uint32 shared, int64 k, int64 k_end,
                                       int64 block_row) {
    const int own = 16 / X_NBYTES;
    const int in_row = p.span / own;
    const int count = p.m * in_row;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const int token = i / in_row, chunk = i - token * in_row;
        const bool is_valid = k + chunk * own < p.k;
        const char* from = p.x + token * p.x_pitch + (k + chunk * own) * X_NBYTES;
        const uint32 to = shared + p.x_offset + token * p.x_row + chunk * 16;
        copy_16(to, is_valid ? from : p.x, is_valid);
    }
#if IS_QUANTIZED && GROUP
    const int chunks = BLOCK_ROWS / 8 * (p.span / GROUP);
    for (int i = threadIdx.x; i < chunks; i += THREADS) {
        const int group = i / (BLOCK_ROWS / 8), chunk = i % (BLOCK_ROWS / 8);
        const int64 row = block_row + chunk * 8;
        const bool is_valid = row < p.n && k + group * GROUP < k_end && k + group * GROUP < p.k;
        const char* from = p.scales + ((k / GROUP + group) * p.n + row) * 2;
        copy_16(shared + p.scales_offset + i * 16, is_valid ? from : p.scales, is_valid);
    }
#endif
}

#if X_KIND == 2
#define SUMS (CHUNKS * TOKENS)
#else
#define SUMS (TILES * TOKEN_TILES * 4)
#endif

// One step of k: `ring` is the thread's slot of the stage, `x` the shared address of k in row 0.
__device__ __forceinline__ void consume(const Parameters& p, const Place& at, uint32 ring, uint32 x,
                                        uint32 scales, float* sums) {
#if X_KIND == 2
    const uint32 mine = x + at.lane_t * 16;
    Words w[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) w[c] = shared_16(ring + c * (THREADS * 16));
#pragma unroll
    for (int m = 0; m < TOKENS; ++m) {
        const Words v = shared_16(mine + (m < p.m ? m : p.m - 1) * p.x_row);
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
#if FORM == 0
                float& sum = sums[c * TOKENS + m];
                sum = fmaf(__uint_as_float(w[c].item[e]), __uint_as_float(v.item[e]), sum);
#else
                float& sum = sums[(c / 4 * 4 + e) * TOKENS + m];
                sum = fmaf(__uint_as_float(w[c].item[e]), __uint_as_float(v.item[c % 4]), sum);
#endif
            }
    }
#elif FORM < 2
    Words v[TOKEN_TILES], w[CHUNKS];
#pragma unroll
    for (int i = 0; i < TOKEN_TILES; ++i) {
        const int token = 8 * i + at.lane_g;
        v[i] = shared_16(x + (token < p.m ? token : p.m - 1) * p.x_row + at.lane_t * 16);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) w[c] = shared_16(ring + c * (THREADS * 16));
#if FORM == 0
#pragma unroll
    for (int h = 0; h < 4; h += 2)
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int i = 0; i < TOKEN_TILES; ++i)
                multiply(sums + (tile * TOKEN_TILES + i) * 4,
                         w[2 * tile].item[h], w[2 * tile + 1].item[h],
                         w[2 * tile].item[h + 1], w[2 * tile + 1].item[h + 1],
                         v[i].item[h], v[i].item[h + 1]);
#else
    // Two rows of k make the pairs of each feature; tile 4 * q + j has features 2 j and 2 j + 1 of
    // the eight of a chunk.
#pragma unroll
    for (int q = 0; q < TILES / 4; ++q)
#pragma unroll
        for (int h = 0; h < 8; h += 4)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const Words* r = w + 8 * q + h;
                const uint32 a0 = __byte_perm(r[0].item[j], r[1].item[j], 0x5410);
                const uint32 a1 = __byte_perm(r[0].item[j], r[1].item[j], 0x7632);
                const uint32 a2 = __byte_perm(r[2].item[j], r[3].item[j], 0x5410);
                const uint32 a3 = __byte_perm(r[2].item[j], r[3].item[j], 0x7632);
#pragma unroll
                for (int i = 0; i < TOKEN_TILES; ++i)
                    multiply(sums + ((4 * q + j) * TOKEN_TILES + i) * 4, a0, a1, a2, a3,
                             v[i].item[h / 2], v[i].item[h / 2 + 1]);
            }
#endif
#else
    Words v[2][TOKEN_TILES], w[CHUNKS];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i) {
            const int token = 8 * i + at.lane_g;
            const int k = FORM == 2 && GROUP != 32 ? 16 * at.lane_t + 8 * h
                                                   : 32 * h + 8 * at.lane_t;
            v[h][i] = shared_16(x + (token < p.m ? token : p.m - 1) * p.x_row + 2 * k);
        }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) w[c] = shared_16(ring + c * (THREADS * 16));
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
#if GROUP
        float part[TOKEN_TILES * 4];
#pragma unroll
        for (int i = 0; i < TOKEN_TILES * 4; ++i) part[i] = 0;
#else
        float* part = sums + tile * TOKEN_TILES * 4;
#endif
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            uint32 a[4], b[4];      // feature g, feature g + 8
#if FORM == 2
            expand_int8(w[2 * tile].item[2 * h], a);
            expand_int8(w[2 * tile].item[2 * h + 1], a + 2);
            expand_int8(w[2 * tile + 1].item[2 * h], b);
            expand_int8(w[2 * tile + 1].item[2 * h + 1], b + 2);
#else
            expand_int4(w[tile].item[2 * h], a);
            expand_int4(w[tile].item[2 * h + 1], b);
#endif
#pragma unroll
            for (int i = 0; i < TOKEN_TILES; ++i) {
                multiply(part + 4 * i, a[0], b[0], a[1], b[1], v[h][i].item[0], v[h][i].item[1]);
                multiply(part + 4 * i, a[2], b[2], a[3], b[3], v[h][i].item[2], v[h][i].item[3]);
            }
#if GROUP
            if (GROUP == 32 || h == 1) {
                uint16 bits[2];
#pragma unroll
                for (int r = 0; r < 2; ++r)
                    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits[r])
                        : "r"(scales + (GROUP == 32 ? h * BLOCK_ROWS * 2 : 0) + 32 * tile + 16 * r)
                        : "memory");
                const float low = wide(bits[0], X_KIND), high = wide(bits[1], X_KIND);
                float* sum = sums + tile * TOKEN_TILES * 4;
#pragma unroll
                for (int i = 0; i < TOKEN_TILES * 4; ++i) {
                    sum[i] = fmaf(i & 2 ? high : low, part[i], sum[i]);
                    part[i] = 0;
                }
            }
#endif
        }
    }
#endif
}

// The feature within the warp of a sum's place; r is 0 or 1.
__device__ __forceinline__ int feature_of(const Place& at, int tile, int r) {
#if FORM == 1
    return tile / 4 * 64 + 8 * at.lane_g + 2 * (tile % 4) + r;
#else
    return 16 * tile + 8 * r + at.lane_g;
#endif
}

__device__ __forceinline__ void store_sums(const Place& at, uint32 total, float* sums) {
#if X_KIND == 2
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
        for (int m = 0; m < TOKENS; ++m) {
            float sum = sums[c * TOKENS + m];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
#if FORM == 0
            const int feature = 8 * c + at.lane_g;
#else
            const int feature = c / 4 * 32 + 4 * at.lane_g + c % 4;
#endif
            if (at.lane_t == m % 4)
                asm volatile("st.shared.f32 [%0], %1;"
                             :: "r"(total + (m * BLOCK_ROWS + feature) * 4), "f"(sum) : "memory");
        }
#else
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int i = 0; i < TOKEN_TILES; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int token = 8 * i + 2 * at.lane_t + e % 2;
                const int feature = feature_of(at, tile, e / 2);
                asm volatile("st.shared.f32 [%0], %1;"
                             :: "r"(total + (token * BLOCK_ROWS + feature) * 4),
                                "f"(sums[(tile * TOKEN_TILES + i) * 4 + e]) : "memory");
            }
#endif
}

__device__ __forceinline__ float load_total(uint32 from, int split) {
    float x;
#if SPLITS > 1
    uint32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(from), "r"(split));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(there) : "memory");
#else
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
#endif
    return x;
}
__device__ __forceinline__ void meet() {
#if SPLITS > 1
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
#if SPLITS > 1
__cluster_dims__(SPLITS, 1, 1)
#endif
kernel(const Parameters p) {
    extern __shared__ __align__(128) char memory[];
    const uint32 shared = (uint32)__cvta_generic_to_shared(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int split = blockIdx.x % SPLITS;
    const int64 block_row = (int64)(blockIdx.x / SPLITS) * BLOCK_ROWS;
    const int64 k_begin = split * p.slice;
    Place at;
    at.lane_g = lane / 4;
    at.lane_t = lane % 4;
    at.row = block_row + warp * WARP_ROWS;
    at.k_end = k_begin + p.slice < p.k ? k_begin + p.slice : p.k;
    at.ring = shared + warp * 512;
#if FORM == 3
    at.source = p.w + at.row / 16 * p.w_pitch * 512 + lane * 16;
#elif SUBSTEPS == 2
    at.source = p.w + (at.row + lane / 8) * p.w_pitch + lane % 8 * 16;
#else
    at.source = p.w + (at.row + at.lane_g) * p.w_pitch + at.lane_t * 8;
#endif
    const int steps = at.k_end > k_begin ? (int)((at.k_end - k_begin + STEP - 1) / STEP) : 0;
    float sums[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sums[i] = 0;

    load_x(p, shared, k_begin, at.k_end, block_row);
    copies_commit();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) load_weights(p, at, k_begin + (int64)s * STEP, s);
        copies_commit();
    }
    copies_wait<STAGES - 1>();
    __syncthreads();

    const int span_steps = p.span / STEP;
    int stage = 0, in_span = 0;
    for (int step = 0; step < steps; ++step) {
        if (in_span == span_steps) {
            __syncthreads();
            load_x(p, shared, k_begin + (int64)step * STEP, at.k_end, block_row);
            copies_commit();
            copies_wait<0>();
            __syncthreads();
            in_span = 0;
        }
        // Every lane's copies are there, and no lane reads the stage before any more.
        copies_wait<STAGES - 2>();
        __syncwarp();
        const int ahead = step + STAGES - 1;
        const int free_stage = stage == 0 ? STAGES - 1 : stage - 1;
        if (ahead < steps) load_weights(p, at, k_begin + (int64)ahead * STEP, free_stage);
        copies_commit();
        // Unrolled, larger tiles spill.
#pragma unroll (TILES == 1 ? SUBSTEPS : 1)
        for (int substep = 0; substep < SUBSTEPS; ++substep) {
            const int k_here = in_span * STEP + substep * SUBSTEP;
            uint32 scales = 0;
#if IS_QUANTIZED && GROUP
            scales = shared + p.scales_offset
                   + (k_here / GROUP * BLOCK_ROWS + warp * WARP_ROWS + at.lane_g) * 2;
#endif
            const uint32 slots = at.ring + stage * STAGE_NBYTES + substep * (CHUNKS * THREADS * 16)
                               + slot_of(at.lane_g, at.lane_t, substep) * 16;
            consume(p, at, slots, shared + p.x_offset + k_here * X_NBYTES, scales, sums);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        ++in_span;
    }

    // The sums take the place of the slots.
    copies_wait<0>();
    __syncthreads();
    store_sums(at, shared + warp * WARP_ROWS * 4, sums);
    meet();
    for (int i = threadIdx.x + split * THREADS; i < p.m * BLOCK_ROWS; i += SPLITS * THREADS) {
        const int token = i / BLOCK_ROWS;
        const int64 row = block_row + i % BLOCK_ROWS;
        float part[SPLITS], sum = 0;
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) part[s] = load_total(shared + i * 4, s);
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) sum += part[s];
        if (row < p.n) {
#if IS_QUANTIZED && !GROUP
            sum *= wide(reinterpret_cast<const uint16*>(p.scales)[row], X_KIND);
#endif
            sum *= p.alpha;
            if (p.beta != 0)
                sum = fmaf(p.beta, load_y(p.addend, token * p.addend_pitch + row), sum);
            if (p.bias) sum += load_y(p.bias, row);
            store_y(p.y, token * p.y_pitch + row, sum);
        }
    }
#if SPLITS > 1
    meet();     // no block of the cluster leaves while another still reads its sums
#endif
}
"""


def _resident(form, x_name, tokens, warps):
    """Blocks of a multiprocessor that registers must allow; three where that spills nothing."""
    if warps > 8:
        return 1
    if x_name == "float32":
        return 3 if tokens <= 4 else 2
    return 3 if tokens == 8 or form == ROWS else 2


def small_m_source(form, x_name, y_name, tokens, *, tiles, warps, stages, splits, group=0):
    """Return the program for one shape of block, whose kernel is named ``kernel``.

    Parameters
    ----------
    form : int
        `ROWS`, `COLUMNS`, `INT8` or `INT4`.
    x_name, y_name : str
        Element types of activations and result: ``"float16"``, ``"bfloat16"``, ``"float32"``.
    tokens : int
        Rows of x at most: 8 or 16 for 16-bit activations; 1, 2, 4, 8 or 16 for float32.
    tiles, warps : int
        A warp has 16 * `tiles` outputs. COLUMNS needs a multiple of 4 tiles (2 in float32).
    stages : int
        Steps of k in the ring of copies, at least 2.
    splits : int
        Blocks of a cluster among which K is cut: 1, 2, 4 or 8. More than 1 needs sm_90.
    group : int
        k that share a scale: 32, 64 or 128; 0 for all of K.

    Examples
    --------
    >>> text = small_m_source(ROWS, "bfloat16", "float32", 8, tiles=2, warps=8, stages=4, splits=4)
    >>> "#define X_TYPE \\"bf16\\"" in text
    True
    """
    defines = {
        "FORM": form,
        "X_KIND": KINDS[x_name],
        "Y_KIND": KINDS[y_name],
        "TOKENS": tokens,
        "TILES": tiles,
        "WARPS": warps,
        "STAGES": stages,
        "SPLITS": splits,
        "GROUP": group,
        "MIN_BLOCKS": _resident(form, x_name, tokens, warps),
        "X_TYPE": '"bf16"' if x_name == "bfloat16" else '"f16"',
    }
    return (
        "".join(f"#define {key} {value}\n" for key, value in defines.items())
        + PRIMITIVES
        + _PROGRAM
    )
