// The norm before a skinny product: x * rsqrt(mean(x * x) + epsilon) * gain + shift, in the type of
// x. If it is CENTERED, of x - mean(x) instead of x.
//
// Every block reads all rows of x, which are few, and sums their squares in a fixed order while its
// first weights are being copied. A row stays in registers between its two uses, NORM chunks of 8
// elements in each thread, while the next row is loaded.
#pragma once

struct Row { Words chunks[NORM]; };

__device__ __forceinline__ Row load_row(const Parameters& p, const char* from) {
    Row row;
#pragma unroll
    for (int j = 0; j < NORM; ++j) {
        const int64 chunk = threadIdx.x + j * THREADS;
        row.chunks[j] = {};
        if (chunk * 8 < p.k) row.chunks[j] = reinterpret_cast<const Words*>(from)[chunk];
    }
    return row;
}

// Returns the sum over all threads of the block to each thread. Consecutive calls need different
// places `at`.
__device__ __forceinline__ float of_block(uint32 at, float x) {
#pragma unroll
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    if (threadIdx.x % 32 == 0) store_4(at + threadIdx.x / 32 * 4, x);
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; ++i) sum += __uint_as_float(shared_4(at + 4 * i));
    return sum;
}

__device__ __forceinline__ float element(const Row& row, int chunk, int e) {
    return wide((uint16)(row.chunks[chunk].item[e / 2] >> e % 2 * 16), X_KIND);
}

// Writes the normalized rows of x where copy_x would write x; `row` is the first row. Zeros follow
// the last term.
__device__ __forceinline__ void normed_x(const Parameters& p, uint32 shared, int split, Row row,
                                         const Row& gain, const Row& shift) {
    const int steps = (int)((p.k + 64 * STEP - 1) / (64 * STEP));
    uint32 at = shared + p.norm_offset, other = at + THREADS / 32 * 4;
    for (int token = 0; token < p.m; ++token) {
        float mean = 0, squares = 0;
#if CENTERED
#pragma unroll
        for (int j = 0; j < NORM; ++j)
#pragma unroll
            for (int e = 0; e < 8; ++e) mean += element(row, j, e);
        mean = of_block(other, mean) / (float)p.k;
#endif
#pragma unroll
        for (int j = 0; j < NORM; ++j)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const float x = element(row, j, e) - mean;
                if (!CENTERED || (threadIdx.x + j * THREADS) * 8 < p.k)
                    squares = fmaf(x, x, squares);
            }
        Row next = row;
        if (token + 1 < p.m) next = load_row(p, p.x + (token + 1) * p.x_pitch);
        const float factor = rsqrtf(of_block(at, squares) / (float)p.k + p.epsilon);
#pragma unroll
        for (int j = 0; j < NORM; ++j) {
            const int chunk = threadIdx.x + j * THREADS, step = chunk / (8 * STEP);
            // The part of k that contains the step: the first that ends after it.
            const int part = step < steps ? ((step + 1) * PARTS - 1) / steps - split * K_WARPS : -1;
            if (part < 0 || part >= K_WARPS) continue;
            Words y;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                uint32 pair = 0;
#pragma unroll
                for (int e = 0; e < 32; e += 16) {
                    const float x = wide((uint16)(row.chunks[j].item[i] >> e), X_KIND) - mean;
                    const float g = wide((uint16)(gain.chunks[j].item[i] >> e), X_KIND);
                    const float s = wide((uint16)(shift.chunks[j].item[i] >> e), X_KIND);
                    pair |= (uint32)narrow(x * factor * g + s, X_KIND) << e;
                }
                y.item[i] = pair;
            }
            const int first = part_begin(p, split * K_WARPS + part) * 8;
            store_16(shared + x_place(p, part, token, chunk - first), y);
        }
        row = next;
#if !CENTERED       // else the row's first sum has separated the uses of a place
        const uint32 last = at;
        at = other, other = last;
#endif
    }
}
