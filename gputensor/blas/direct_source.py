"""The CUDA program of odd products: operands of any alignment straight into the tensor cores.

Matrices whose rows do not start at multiples of 16 bytes are closed to the bulk copy engine and to
16-byte copies. Here 4-byte asynchronous copies, a row of 128 bytes to a warp, bring them into
shared memory in the swizzled order that wgmma reads, several steps ahead and without registers; so
no matrix is copied before the product and none after it.

A row of 16-bit elements may start in the middle of a word. Its warp then copies the aligned words
around it, 33 of them, and shifts the row in place by one element before the step is multiplied.
float32 contiguous along m or n is transposed by the copy itself, a word at a time, since wgmma
takes TF32 contiguous along k alone.

K is cut among the SPLIT blocks of a cluster. Their sums meet through distributed shared memory in
the order of the blocks: no atomics, no second pass, equal bits from run to run. Matrices are
column-major, as in product.pxd.
"""

from gputensor._kernels.cuda_source_types import TYPES_SOURCE

__all__ = ["direct_source"]

_PROGRAM = r"""
typedef INPUT input_t;
typedef OUTPUT output_t;

const int E = sizeof(input_t);
const int DEPTH = 128 / E;                      // k of a step
const int GROUPS_M = BM / 64, GROUPS = GROUPS_M * (BN / WN);    // of four warps
const int WARPS = 4 * GROUPS, THREADS = 32 * WARPS;
const int UNROLL = HELD == 3 ? 6 : 4;           // even, for the stages take turns
const int STAGE = (BM + BN) * 128;              // rows of 128 bytes
const int PITCH = BM + 4;                       // floats from column to column of the sums
const bool A_IS_K = A_ALONG_K || E == 4;        // in shared memory
const bool B_IS_K = B_ALONG_K || E == 4;

struct Parameters {
    const char* a;
    const char* b;
    const output_t* c;
    output_t* d;
    const output_t* bias;                       // one for each row of D, or null
    int64 stride_a, stride_b, stride_c, stride_d;
    int64 lda, ldb, ldc, ldd;
    int m, n, k;
    int activation;                             // 1: relu, 2: gelu in the tanh form
    float alpha, beta;
};

// Loads of what nothing writes meanwhile; `x` stays as it is where `exists` is false.
__device__ __forceinline__ void fetch_word(uint32& x, const char* from, bool exists) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.nc.u32 %0, [%1]; }"
                 : "+r"(x) : "l"(from), "r"((int)exists));
}
__device__ __forceinline__ void fetch_word(uint32& x, const char* from) {
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(x) : "l"(from));
}
__device__ __forceinline__ void fetch_half(uint16& x, const char* from, bool exists) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.global.nc.u16 %0, [%1]; }"
                 : "+h"(x) : "l"(from), "r"((int)exists));
}
__device__ __forceinline__ void store_word(uint32 to, uint32 x) {
    asm volatile("st.shared.u32 [%0], %1;" :: "r"(to), "r"(x) : "memory");
}
__device__ __forceinline__ void store_half(uint32 to, uint16 x) {
    asm volatile("st.shared.u16 [%0], %1;" :: "r"(to), "h"(x) : "memory");
}
// A float whose upper bits, which are all that wgmma reads, are x rounded to TF32, half away from
// zero. Infinities and NaNs stay.
__device__ __forceinline__ uint32 tf32_of(uint32 x) {
    asm("{ .reg .pred p; .reg .f32 size; mov.b32 size, %0; abs.f32 size, size;"
        " setp.lt.f32 p, size, 0f7F800000; @p add.u32 %0, %0, 4096; }" : "+r"(x));
    return x;
}

// Where a row's word lies: the chunks of 16 bytes are permuted by the row.
__device__ __forceinline__ uint32 place_of(int row, int word) {
    return row * 128 + (((word >> 2) ^ (row & 7)) << 4) + ((word & 3) << 2);
}

// One operand as a thread brings it from global to shared memory. ALONG_K: its unit stride is k's.
// A step has ROWS lines (of m or n), which are ROWS rows of 128 bytes; a warp loads COUNT of them.
template <bool ALONG_K, int ROWS, int TURN> struct Side {
    static const int COUNT = ROWS / WARPS;
    static const bool TRANSPOSES = E == 4 && !ALONG_K;
    static const int EACH = DEPTH / WARPS;      // k rows of 64 lines that a warp loads
    static const int POINTERS = ALONG_K ? COUNT : TRANSPOSES ? (WARPS < 8 ? 8 : 4) : EACH;

    const char* rows[POINTERS]; // the thread's words in the steps to come
    const char* tail;           // and its last element of a row that starts mid-word
    int64 advance;              // bytes from step to step
    int left;                   // lines from the warp's first (ALONG_K) or the thread's on
    int shift;                  // bytes of a row's first word that belong to what lies before
    uint32 kept[HELD][COUNT];   // words on their way
    uint16 tails[HELD];

    // Odd rows take longer to store; with A's TURN 0 and B's 1 no warp has those of both.
    static __device__ __forceinline__ int own_warp() { return threadIdx.x / 32 ^ TURN; }
    // Which 16 bytes of k (a chunk) of which 32 lines (a block, from the warp's first on) a thread
    // transposes.
    static __device__ __forceinline__ int chunk_of(int i) {
        return WARPS == 4 ? own_warp() + i % 2 * 4 : own_warp() % 8;
    }
    static constexpr __device__ __forceinline__ int block_of(int i) {
        return WARPS == 4 ? i / 2 : WARPS / 8 * i;
    }
    static __device__ __forceinline__ int first_block() { return own_warp() / 8; }

    // The row of a step that a warp's word `i` belongs to.
    static __device__ __forceinline__ int row_of(int i) {
        const int warp = own_warp();
        return ALONG_K ? warp + WARPS * i : i / EACH * DEPTH + warp + WARPS * (i % EACH);
    }

    __device__ __forceinline__ void open(const char* base, int64 ld, int first, int lines,
                                         int64 k) {
        const int warp = own_warp(), lane = threadIdx.x % 32;
        shift = 0;
        tail = nullptr;
        if (TRANSPOSES) {
            left = lines - first - lane - first_block() * 32;
            advance = DEPTH * ld * E;
            base += (k * ld + first + lane) * E + first_block() * 128;
#pragma unroll
            for (int i = 0; i < POINTERS; ++i)
                rows[i] = base + (chunk_of(i / 4) * 4 + i % 4) * ld * E;
        } else if (ALONG_K) {
            left = lines - first - warp;
            advance = 128;
            base += k * E;
            // Rows that do not exist repeat one that does; nothing of them is stored.
            const int own = first + warp < lines ? first + warp : lines - 1;
            if (E == 2) shift = (int)((uint64)(base + own * ld * E) & 2);
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const int row = first + warp + WARPS * i;
                rows[i] = base + (row < lines ? row : own) * ld * E - shift + 4 * lane;
            }
            if (shift) {
                const int row = first + warp + WARPS * lane;
                tail = base + (row < lines ? row : own) * ld * E + 126;
            }
        } else {
            left = lines - first;
            advance = DEPTH * ld * E;
            base += ((k + warp) * ld + first) * E;
            if (E == 2) shift = (int)((uint64)base & 2);
#pragma unroll
            for (int i = 0; i < EACH; ++i)
                rows[i] = base + i * WARPS * ld * E - shift + 4 * lane;
            if (shift) tail = base + lane % EACH * WARPS * ld * E + lane / EACH * 128 + 126;
        }
    }

    // Whether a lane's word of a block of lines, or the last of the block, exists.
    __device__ __forceinline__ bool is_line(int block) const {
        const int lane = threadIdx.x % 32;
        if (TRANSPOSES) return block * 32 < left;
        return 2 * (left - block * 64) + shift - 4 * lane > 0;
    }
    __device__ __forceinline__ bool has_tail() const {
        const int lane = threadIdx.x % 32;
        return lane < COUNT && (ALONG_K || left - lane / EACH * 64 >= 64);
    }

    // Starts loading a whole step, `ahead` steps from where the pointers stand.
    __device__ __forceinline__ void fetch(int held, int ahead) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            uint32& x = kept[held][i];
            if (ALONG_K) fetch_word(x, rows[i] + ahead * 128);
            else if (TRANSPOSES)
                fetch_word(x, rows[i % POINTERS] + block_of(i / 4) * 128,
                           is_line(block_of(i / 4)));
            else fetch_word(x, rows[i % EACH] + i / EACH * 128, is_line(i / EACH));
        }
        if (E == 2 && shift)
            fetch_half(tails[held], tail + (ALONG_K ? ahead * 128 : 0), has_tail());
        if (!ALONG_K) move(1);
    }

    // Loads a step of which the first `terms` exist along k; the rest is zero.
    __device__ __forceinline__ void fetch_part(int held, int ahead, int terms) {
        const int warp = own_warp(), lane = threadIdx.x % 32;
        const int nbytes = terms * E + shift - 4 * lane;
        tails[held] = 0;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            uint32& x = kept[held][i];
            x = 0;
            if (ALONG_K) {
                fetch_word(x, rows[i] + ahead * 128, nbytes > 0);
                if (E == 2 && nbytes == 2) x &= 0xffff;
            } else if (TRANSPOSES) {
                fetch_word(x, rows[i % POINTERS] + block_of(i / 4) * 128,
                           is_line(block_of(i / 4)) && chunk_of(i / 4) * 4 + i % 4 < terms);
            } else {
                fetch_word(x, rows[i % EACH] + i / EACH * 128,
                           is_line(i / EACH) && warp + WARPS * (i % EACH) < terms);
            }
        }
        if (E == 2 && !ALONG_K && shift)
            fetch_half(tails[held], tail, has_tail() && warp + WARPS * (lane % EACH) < terms);
    }

    __device__ __forceinline__ void move(int steps) {
#pragma unroll
        for (int i = 0; i < POINTERS; ++i) rows[i] += steps * advance;
        if (E == 2) tail += steps * advance;
    }

    // Puts a loaded step where wgmma reads it.
    __device__ __forceinline__ void store(int held, uint32 to) {
        const int lane = threadIdx.x % 32;
        if (TRANSPOSES) {
#pragma unroll
            for (int i = 0; i < COUNT / 4; ++i) {
                const uint32* x = kept[held] + 4 * i;
                asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                             :: "r"(to + place_of((first_block() + block_of(i)) * 32 + lane,
                                                 chunk_of(i) * 4)),
                                "r"(tf32_of(x[0])), "r"(tf32_of(x[1])), "r"(tf32_of(x[2])),
                                "r"(tf32_of(x[3])) : "memory");
            }
        } else if (E == 4) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                store_word(to + place_of(row_of(i), lane), tf32_of(kept[held][i]));
        } else if (shift == 0) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                store_word(to + place_of(row_of(i), lane), kept[held][i]);
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                const uint32 x = kept[held][i];
                if (lane) store_half(to + place_of(row_of(i), lane - 1) + 2, (uint16)x);
                store_half(to + place_of(row_of(i), lane), (uint16)(x >> 16));
            }
            if (lane < COUNT) store_half(to + place_of(row_of(lane), 31) + 2, tails[held]);
        }
    }
};

// What wgmma is told of an operand: rows in groups of 8 (1024 bytes), and for one contiguous along
// m or n, 64 lines to a block.
template <bool IS_K> __device__ __forceinline__ uint64 describe(uint32 at) {
    const uint64 block = IS_K ? 1 : DEPTH * 128 >> 4;
    return (uint64)((at & 0x3ffff) >> 4) | block << 16 | (uint64)(1024 >> 4) << 32
           | (uint64)1 << 62;
}

WGMMA

__device__ __forceinline__ float activate(float x, int activation) {
    if (activation == 1) return x < 0.0f ? 0.0f : x;
    if (activation == 2)
        return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    return x;
}

__device__ __forceinline__ float load_sum(uint32 from, int rank) {
    float x;
#if SPLIT > 1
    uint32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(from), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(there) : "memory");
#else
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
#endif
    return x;
}

__device__ __forceinline__ void meet() {
#if SPLIT > 1
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
kernel(const __grid_constant__ Parameters p) {
    extern __shared__ char memory[];
    uint32 shared;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
        : "=r"(shared) : "l"(memory));
    shared = (shared + 1023) & ~1023u;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int rank = SPLIT > 1 ? blockIdx.x % SPLIT : 0;
    const int row = blockIdx.x / SPLIT * BM, column = blockIdx.y * BN;
    const int64 item = blockIdx.z;

    const int all = (p.k + DEPTH - 1) / DEPTH;
    const int first = (int)((int64)all * rank / SPLIT);
    const int steps = (int)((int64)all * (rank + 1) / SPLIT) - first;
    // Steps of which all of k exists; at most one more follows, with `rest` of k.
    const int whole = steps && first + steps == all && p.k % DEPTH ? steps - 1 : steps;
    const int rest = p.k % DEPTH;

    Side<A_ALONG_K, BM, 0> a;
    Side<B_ALONG_K, BN, 1> b;
    a.open(p.a + item * p.stride_a * E, p.lda, row, p.m, (int64)first * DEPTH);
    b.open(p.b + item * p.stride_b * E, p.ldb, column, p.n, (int64)first * DEPTH);

    const int group_m = warp / 4 % GROUPS_M, group_n = warp / 4 / GROUPS_M;
    uint64 left = describe<A_IS_K>(shared + group_m * 8192);
    uint64 right = describe<B_IS_K>(shared + BM * 128 + group_n * WN * 128);
    asm volatile("" : "+l"(left), "+l"(right));     // to be kept, not computed in every step
    float sums[WN / 2];
#pragma unroll
    for (int i = 0; i < WN / 2; ++i) sums[i] = 0.0f;

    // Loads step `step`, `ahead` of the pointers.
    auto fetch = [&](int step, int held, int ahead) {
        if (step < whole) {
            a.fetch(held, ahead);
            b.fetch(held, ahead);
        } else if (step < steps) {
            a.fetch_part(held, ahead, rest);
            b.fetch_part(held, ahead, rest);
        }
    };
#pragma unroll
    for (int held = 0; held < HELD; ++held) fetch(held, held, held);
    a.store(0, shared);
    b.store(0, shared + BM * 128);
    fetch(HELD, 0, HELD);
    if (A_ALONG_K) a.move(HELD + 1);
    if (B_ALONG_K) b.move(HELD + 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();

#pragma unroll 1
    for (int step = 0; step < steps; step += UNROLL) {
#pragma unroll
        for (int more = 0; more < UNROLL; ++more) {
            if (step + more < steps) {
                const int next = (more + 1) % HELD;
                const uint64 here = more % 2 * STAGE / 16;
                const uint32 other = shared + (more + 1) % 2 * STAGE;
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (int part = 0; part < 4; ++part)
                    multiply(sums, left + here + part * (A_IS_K ? 2 : 128),
                             right + here + part * (B_IS_K ? 2 : 128));
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                // Meanwhile the next step comes into the other stage, and one further is fetched.
                if (step + more + 1 < steps) {
                    a.store(next, other);
                    b.store(next, other + BM * 128);
                    fetch(step + more + 1 + HELD, next, more);
                }
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncthreads();
            }
        }
        if (A_ALONG_K) a.move(UNROLL);
        if (B_ALONG_K) b.move(UNROLL);
    }
#pragma unroll
    for (int i = 0; i < WN / 2; ++i) asm volatile("" : "+f"(sums[i]) :: "memory");

    // The sums, column by column, where the stages were.
    {
        const uint32 to = shared + 4 * (group_m * 64 + warp % 4 * 16 + lane / 4
                                        + (group_n * WN + lane % 4 * 2) * PITCH);
#pragma unroll
        for (int i = 0; i < WN / 2; ++i)
            store_word(to + 4 * ((i / 4 * 8 + i % 2) * PITCH + i % 4 / 2 * 8),
                       __float_as_uint(sums[i]));
    }
    meet();
    const int columns = p.n - column;
    const bool is_plain = p.beta == 0.0f && !p.bias && !p.activation;
#pragma unroll 2
    for (int j = warp * SPLIT + rank; j < BN; j += WARPS * SPLIT) {
        if (j >= columns) break;
        const output_t* c = p.c + item * p.stride_c + (column + j) * p.ldc + row + lane;
        output_t* d = p.d + item * p.stride_d + (column + j) * p.ldd + row + lane;
        float x[BM / 32];
#pragma unroll
        for (int block = 0; block < BM / 32; ++block) {
            const uint32 from = shared + 4 * (j * PITCH + block * 32 + lane);
            x[block] = load_sum(from, 0);
#pragma unroll
            for (int other = 1; other < SPLIT; ++other) x[block] += load_sum(from, other);
            x[block] *= p.alpha;
        }
        if (!is_plain)
#pragma unroll
            for (int block = 0; block < BM / 32; ++block) {
                if (row + block * 32 + lane >= p.m) continue;
                if (p.beta != 0.0f) x[block] = fmaf(p.beta, wide(c[block * 32]), x[block]);
                if (p.bias) x[block] += wide(p.bias[row + block * 32 + lane]);
                x[block] = activate(x[block], p.activation);
            }
#pragma unroll
        for (int block = 0; block < BM / 32; ++block)
            if (row + block * 32 + lane < p.m) d[block * 32] = narrow<output_t>(x[block]);
    }
#if SPLIT > 1
    meet();     // no block of the cluster leaves while another still reads its sums
#endif
}
"""

_TYPES = {"float16": "half_t", "bfloat16": "bfloat_t", "float32": "float"}
_INSTRUCTION = {
    "float16": ("k16", "f16.f16"),
    "bfloat16": ("k16", "bf16.bf16"),
    "float32": ("k8", "tf32.tf32"),
}


def _multiply(input_name, columns, a_along_k, b_along_k):
    """The device function that issues one wgmma of 64 rows and `columns` columns."""
    depth, types = _INSTRUCTION[input_name]
    count = columns // 2
    registers = ", ".join(f"%{i}" for i in range(count))
    flags = "1, 1, 1" if input_name == "float32" else f"1, 1, 1, {1 - a_along_k}, {1 - b_along_k}"
    outputs = ", ".join(f'"+f"(s[{i}])' for i in range(count))
    return (
        "__device__ __forceinline__ void multiply(float* s, uint64 a, uint64 b) {\n"
        f'    asm volatile("{{ .reg .pred one; setp.eq.u32 one, 0, 0; "\n'
        f'        "wgmma.mma_async.sync.aligned.m64n{columns}{depth}.f32.{types} "\n'
        f'        "{{{registers}}}, %{count}, %{count + 1}, one{flags[1:]}; }}"\n'
        f'        : {outputs} : "l"(a), "l"(b));\n'
        "}\n"
    )


def direct_source(
    input_name, output_name, a_along_k, b_along_k, rows, columns, width, split, held, resident=1
):
    """Return the program, whose kernel is named ``kernel``; it needs sm_90a.

    Parameters
    ----------
    input_name, output_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result; float32 is multiplied as TF32.
    a_along_k, b_along_k : bool
        Whether k is the contiguous dimension of A and of B.
    rows, columns : int
        The tile of D that a cluster computes: 64, 128 or 256 rows and 64 or 128 columns.
    width : {64, 128}
        Columns of the tile that four warps compute, with 64 rows.
    split : int
        Blocks of a cluster, among which k is cut: 1 to 8.
    held : int
        Steps of 128 bytes along k that are on their way in registers.
    resident : int
        Blocks of a multiprocessor that registers are kept for.

    Examples
    --------
    >>> "#define SPLIT 4" in direct_source("float32", "float32", True, False, 128, 128, 64, 4, 2)
    True
    """
    names = {
        "INPUT": _TYPES[input_name],
        "OUTPUT": _TYPES[output_name],
        "BM": rows,
        "BN": columns,
        "WN": width,
        "SPLIT": split,
        "HELD": held,
        "RESIDENT": resident,
        "A_ALONG_K": int(a_along_k),
        "B_ALONG_K": int(b_along_k),
    }
    defines = "".join(f"#define {key} {value}\n" for key, value in names.items())
    multiply = _multiply(input_name, width, int(a_along_k), int(b_along_k))
    return defines + TYPES_SOURCE + _PROGRAM.replace("WGMMA\n", multiply, 1)
