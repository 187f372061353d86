// Sums of a warp in plain float32, for narrow.cuh: 8 lanes share the features, 4 the rows.
#pragma once

const int OWN_FEATURES = FEATURES / 8, OWN_ROWS = ROWS / 4;     // of a lane
const int QUAD = 4;                                             // terms, or lines, of 16 bytes

// The line of a lane's element `i`, if `count` lanes share the lines and the lane is number `own`.
template <class Lines> __device__ __forceinline__ int line_of(int i, int own, int count) {
    return Lines::ALONG ? own + count * i : i / QUAD * QUAD * count + own * QUAD + i % QUAD;
}

// Reads four lines of a lane, from its `first` on, by four terms.
template <class Lines>
__device__ __forceinline__ void read(float (&x)[QUAD][QUAD], uint32 at, int quad, int first,
                                     int own, int count) {
#pragma unroll
    for (int i = 0; i < QUAD; ++i) {
        const Words words = shared_16(
            Lines::ALONG ? at + line_of<Lines>(first + i, own, count) * Lines::PITCH + quad * 16
                         : at + (quad * QUAD + i) * Lines::PITCH
                               + line_of<Lines>(first, own, count) * 4);
#pragma unroll
        for (int e = 0; e < QUAD; ++e)
            x[Lines::ALONG ? i : e][Lines::ALONG ? e : i] = __uint_as_float(words.item[e]);
    }
}

struct Sums {
    float item[OWN_FEATURES][OWN_ROWS] = {};

    // Adds the first `count` terms of a step.
    template <class Weights, class Left>
    __device__ __forceinline__ void add(uint32 w_at, uint32 x_at, int count) {
        const int lane = threadIdx.x % 32;
#pragma unroll 1
        for (int quad = 0; quad * QUAD < count; ++quad) {
            float w[OWN_FEATURES / QUAD][QUAD][QUAD];
#pragma unroll
            for (int i = 0; i < OWN_FEATURES / QUAD; ++i)
                read<Weights>(w[i], w_at, quad, i * QUAD, lane % 8, 8);
#pragma unroll
            for (int j = 0; j < OWN_ROWS; j += QUAD) {
                float x[QUAD][QUAD];
                read<Left>(x, x_at, quad, j, lane / 8, 4);
#pragma unroll
                for (int k = 0; k < QUAD; ++k)
#pragma unroll
                    for (int f = 0; f < OWN_FEATURES; ++f)
#pragma unroll
                        for (int r = 0; r < QUAD; ++r)
                            item[f][j + r] = fmaf(w[f / QUAD][f % QUAD][k], x[r][k],
                                                  item[f][j + r]);
            }
        }
    }

    template <class Weights, class Left> __device__ __forceinline__ void store(uint32 to) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int f = 0; f < OWN_FEATURES; ++f)
#pragma unroll
            for (int r = 0; r < OWN_ROWS; ++r)
                store_4(to + (line_of<Left>(r, lane / 8, 4) * TOTALS_PITCH
                              + line_of<Weights>(f, lane % 8, 8)) * 4, item[f][r]);
    }
};
