// Writes the results of packed products: rows of any alignment, addends, sums of divided tiles.
//
// A warp holds 16 rows of a tile, four lanes to a row. It writes them to shared memory, eight
// rows at a time. float32 is then stored in whole lines of 128 bytes whatever the row's
// address: a row that begins s words into its line is read s words earlier, and words beyond
// its ends are not stored. 16-bit elements keep the place within 16 bytes that they have in D. The
// bulk copy engine stores whole pieces of 16 bytes while the warp goes on; lanes store the few
// elements before and after them. (Measured on an H200, each way is 3 % quicker for its type.)
//
// A tile whose K was divided is finished by the block that has its beginning. The others leave
// their sums in global memory, in a slot for each warp of the grid, and set a flag; sums are added
// in the order of K, so results do not depend on timing.
#pragma once

#if OUT_NBYTES == 4
#define STAGED_PITCH 544    // bytes; 32 more than a multiple of 128: no conflicts of pairs
#define SPAN 128            // columns staged at a time
#else
#define STAGED_PITCH 528    // 16 more
#define SPAN 256
#endif
#define STAGED_NBYTES (8 * 544)

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

// d = alpha d + beta C, for the elements of the lane. There are separate programs without C,
// because skipping its instructions costs 4 % (H200).
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

#if OUT_NBYTES == 4
// Writes 8 rows, of which `rows` exist, from shared memory to D. `staged` is the lane's word of the
// first.
template <int COLUMNS> DEVICE void write_rows(u64 at, i64 pitch, int rows, const u32* staged,
                                              int columns, int lane) {
    constexpr int STEPS = COLUMNS / 32 + 1;
#pragma unroll
    for (int r = 0; r < 8; r += 2) {
        u32 value[2][STEPS];
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            const u64 row = at + (r + q) * pitch;
            const u32* from = staged + (r + q) * (STAGED_PITCH / 4) - ((int)(row >> 2) & 31);
#pragma unroll
            for (int i = 0; i < STEPS; ++i) value[q][i] = from[i * 32];
        }
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            const u64 row = at + (r + q) * pitch;
            const int first = lane - ((int)(row >> 2) & 31);
            const bool has_row = r + q < rows;
            u32* to = (u32*)row + first;
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
        }
    }
}
template <int WIDTH> DEVICE void write_part(const Parameters& p, const float* d, char* staged,
                                            i64 row0, i64 column0, int lane) {
    float2* line = (float2*)(staged + (lane >> 2) * STAGED_PITCH) + (lane & 3);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < WIDTH / 8; ++i) line[i * 4] = make_float2(d[4 * i], d[4 * i + 1]);
    __syncwarp();
    write_rows<WIDTH>(p.d + (row0 * p.ldd + column0) * 4, p.ldd * 4,
                      (int)min((i64)8, p.m - row0), (const u32*)staged + lane,
                      (int)min((i64)WIDTH, p.n - column0), lane);
}
#else
// Copies a staged row to `at` with the four lanes of the row; `t` is the number of this lane.
DEVICE void write_row(u64 at, const u16* staged, int columns, int t) {
    const int before = min((int)((0 - at & 15) / 2), columns);
    const int whole = (columns - before) & ~7;
    u16* to = (u16*)at;
    if (t == 0 && whole > 0)
        bulk_store(at + before * 2, shared_address(staged + before), whole * 2);
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        const int head = i + t, tail = before + whole + i + t;
        if (head < before) to[head] = staged[head];
        if (tail < columns) to[tail] = staged[tail];
    }
}
template <int WIDTH> DEVICE void write_part(const Parameters& p, const float* d, char* staged,
                                            i64 row0, i64 column0, int lane) {
    const int g = lane >> 2, t = lane & 3;
    const int columns = (int)min((i64)WIDTH, p.n - column0);
    const u64 at = p.d + ((row0 + g) * p.ldd + column0) * 2;
    u16* line = (u16*)(staged + g * STAGED_PITCH + (at & 15));
    bulk_wait_read();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < WIDTH / 8; ++i) {
        const u32 both = pair(d[4 * i], d[4 * i + 1]);
        line[i * 8 + 2 * t] = (u16)both;
        line[i * 8 + 2 * t + 1] = (u16)(both >> 16);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (row0 + g < p.m && columns > 0) write_row(at, line, columns, t);
    bulk_commit();
}
#endif
template <int N> DEVICE void write_tile(const Parameters& p, float* d, char* staged, i64 row0,
                                        i64 column0, int lane) {
    constexpr int WIDTH = N < SPAN ? N : SPAN;
    scale<N>(p, d, row0, column0, p.ldc, 1, p.m, p.n, lane);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int c = 0; c < N / WIDTH; ++c)
            write_part<WIDTH>(p, d + c * (WIDTH / 2) + 2 * h, staged, row0 + 8 * h,
                              column0 + c * WIDTH, lane);
    }
}
// Writes the transpose of a strip, whose rows are columns of D: few elements, stored one by one.
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
