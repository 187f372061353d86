"""How packed products leave the registers: rows of any alignment, addends, sums of divided tiles.

A warp holds 16 rows of a tile, four lanes to a row. It brings them through shared memory, eight
rows at a time, so that each store covers a line of 128 bytes whatever the row's address: a row that
begins s words into its line is read s words earlier, and what lies beyond its ends is not stored.
With 16-bit elements and a row that begins in the middle of a word, words are shifted into place and
the two halves at the ends are stored by themselves.

A tile whose K was divided is finished by whoever has its beginning: the others leave their sums in
global memory, a slot for each warp of the grid, and raise a flag; they are added in the order of K,
so results do not depend on timing.
"""

__all__ = ["RESULT"]

RESULT = r"""
#if OUT_NBYTES == 4
#define STAGED_PITCH 136    // words; 8 more than a multiple of 32, so that pairs meet no conflicts
#define SPAN 128            // columns staged at a time
#else
#define STAGED_PITCH 132    // 4 more
#define SPAN 256
#endif
#define STAGED_NBYTES (8 * 136 * 4)

DEVICE float load_element(u64 at) {
#if OUT_NBYTES == 4
    return *(const float*)at;
#else
    float x;
#if OUT_IS_HALF
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(*(const u16*)at));
#else
    x = __uint_as_float((u32)(*(const u16*)at) << 16);
#endif
    return x;
#endif
}
DEVICE u32 pair(float x, float y) {
    u32 both;
#if OUT_IS_HALF
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
#else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
#endif
    return both;
}
DEVICE void store_element(u64 at, float x) {
#if OUT_NBYTES == 4
    *(float*)at = x;
#else
    *(u16*)at = (u16)pair(x, x);
#endif
}

// `rows` (at most 8) staged rows of `columns` elements to rows that begin at any element.
template <int COLUMNS> DEVICE void write_rows(u64 at, i64 pitch, int rows, const u32* staged,
                                              int columns, int lane) {
    constexpr int STEPS = (COLUMNS * OUT_NBYTES + 127) / 128 + 1;
#pragma unroll
    for (int r = 0; r < 8; r += 2) {
        u32 value[2][STEPS];
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            const u64 row = at + (r + q) * pitch;
            const u32* from = staged + (r + q) * STAGED_PITCH + lane - ((int)(row >> 2) & 31);
#pragma unroll
            for (int i = 0; i < STEPS; ++i) value[q][i] = from[i * 32];
#if OUT_NBYTES == 2
            if (row & 2) {
#pragma unroll
                for (int i = 0; i < STEPS; ++i)
                    value[q][i] = __funnelshift_r(from[i * 32 - 1], value[q][i], 16);
            }
#endif
        }
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            const u64 row = at + (r + q) * pitch;
            const int first = lane - ((int)(row >> 2) & 31);
            const bool has_row = r + q < rows;
            u32* to = (u32*)(row & ~3ull) + first;
#if OUT_NBYTES == 4
            if (has_row && columns == COLUMNS) {
                if (first >= 0) to[0] = value[q][0];
#pragma unroll
                for (int i = 1; i < STEPS - 1; ++i) to[i * 32] = value[q][i];
                if (first < 0) to[(STEPS - 1) * 32] = value[q][STEPS - 1];
                continue;
            }
#pragma unroll
            for (int i = 0; i < STEPS; ++i)
                if (has_row && (u32)(first + i * 32) < (u32)columns) to[i * 32] = value[q][i];
#else
            const int odd = (int)(row >> 1) & 1;
            if (has_row && columns == COLUMNS && COLUMNS > 32) {
                if (first >= odd) to[0] = value[q][0];
#pragma unroll
                for (int i = 1; i < STEPS - 1; ++i) to[i * 32] = value[q][i];
                if (first < 0) to[(STEPS - 1) * 32] = value[q][STEPS - 1];
            } else {
#pragma unroll
                for (int i = 0; i < STEPS; ++i) {
                    const int element = 2 * (first + i * 32) - odd;
                    if (has_row && element >= 0 && element + 1 < columns) to[i * 32] = value[q][i];
                }
            }
            const u16* halves = (const u16*)(staged + (r + q) * STAGED_PITCH);
            const int end = lane == 0 ? 0 : columns - 1;
            const bool has_end = lane == 0 ? odd : (columns - odd) & 1;
            if (has_row && lane < 2 && has_end) *(u16*)(row + 2 * end) = halves[end];
#endif
        }
    }
}

// d = alpha d + beta C, at the places that the lane holds. Programs without C are programs of their
// own: its instructions, passed over, cost 4 % (H200).
template <int N> DEVICE void scale(const Parameters& p, float* d, i64 row0, i64 column0,
                                   i64 row_step, i64 column_step, i64 rows, i64 columns, int lane) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) d[i] *= p.alpha;
#if HAS_ADDEND
    row0 += lane >> 2;
    column0 += 2 * (lane & 3);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
        const i64 row = row0 + 8 * ((i >> 1) & 1), column = column0 + 8 * (i >> 2) + (i & 1);
        if (row < rows && column < columns)
            d[i] += p.beta * load_element(p.c + (row * row_step + column * column_step)
                                          * OUT_NBYTES);
    }
#endif
}

template <int N> DEVICE void write_tile(const Parameters& p, float* d, u32* staged, i64 row0,
                                        i64 column0, int lane) {
    const int g = lane >> 2, t = lane & 3;
    constexpr int WIDTH = N < SPAN ? N : SPAN;
    scale<N>(p, d, row0, column0, p.ldc, 1, p.m, p.n, lane);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int c = 0; c < N / WIDTH; ++c) {
            const i64 first = column0 + c * WIDTH;
            __syncwarp();
#pragma unroll
            for (int i = 0; i < WIDTH / 8; ++i) {
                const float x = d[(c * (WIDTH / 8) + i) * 4 + 2 * h];
                const float y = d[(c * (WIDTH / 8) + i) * 4 + 2 * h + 1];
#if OUT_NBYTES == 4
                *(float2*)(staged + g * STAGED_PITCH + i * 8 + 2 * t) = make_float2(x, y);
#else
                staged[g * STAGED_PITCH + i * 4 + t] = pair(x, y);
#endif
            }
            __syncwarp();
            write_rows<WIDTH>(p.d + ((row0 + 8 * h) * p.ldd + first) * OUT_NBYTES,
                              p.ldd * OUT_NBYTES, (int)min((i64)8, p.m - row0 - 8 * h), staged,
                              (int)min((i64)WIDTH, p.n - first), lane);
        }
    }
}
// The transpose of a strip: its rows are columns of D. Few elements, stored one by one.
template <int N> DEVICE void write_across(const Parameters& p, float* d, i64 column0, i64 columns,
                                          i64 row0, int lane) {
    scale<N>(p, d, column0, row0, 1, p.ldc, columns, p.m, lane);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
        const i64 column = column0 + (lane >> 2) + 8 * ((i >> 1) & 1);
        const i64 row = row0 + 8 * (i >> 2) + 2 * (lane & 3) + (i & 1);
        if (row < p.m && column < columns)
            store_element(p.d + (row * p.ldd + column) * OUT_NBYTES, d[i]);
    }
}

#define SLOT_NBYTES (16 * BN * 4)
template <int N> DEVICE void leave_sums(const Parameters& p, const float* d, int slot, int lane) {
    float4* to = (float4*)(p.sums + (u64)slot * SLOT_NBYTES) + lane;
#pragma unroll
    for (int i = 0; i < N / 8; ++i)
        to[i * 32] = make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
    __syncwarp();
    if (lane == 0) {
        __threadfence();
        asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(p.flags + 4ull * slot), "r"(1u)
                     : "memory");
    }
}
template <int N> DEVICE void add_sums(const Parameters& p, float* d, int slot, int lane) {
    u32 is_ready = 0;
    while (!is_ready)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(is_ready)
                     : "l"(p.flags + 4ull * slot) : "memory");
    __syncwarp();
    const float4* from = (const float4*)(p.sums + (u64)slot * SLOT_NBYTES) + lane;
#pragma unroll
    for (int i = 0; i < N / 8; ++i) {
        const float4 x = __ldcg(from + i * 32);
        d[4 * i] += x.x;
        d[4 * i + 1] += x.y;
        d[4 * i + 2] += x.z;
        d[4 * i + 3] += x.w;
    }
}
"""
