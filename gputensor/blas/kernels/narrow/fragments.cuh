// Sums of a warp on tensor cores, for narrow.cuh: the features are mma's rows.
#pragma once

const int TILES = FEATURES / 16, PAIRS = ROWS / 16;

// Four words of a lane: 16 lines of an operand by 32 bytes of terms. Words 1 and 2 of weights are
// those of lines 8 to 15 and of the later terms, words of rows the other way round.
template <class Lines, bool IS_WEIGHTS>
__device__ __forceinline__ void fragment(uint32* x, uint32 at, int part, int tile) {
    const int lane = threadIdx.x % 32, half = lane / 8 % 2, upper = lane / 16;
    const int line = (IS_WEIGHTS ? half : upper) * 8 + lane % 8;
    const int term = IS_WEIGHTS ? upper : half;
    if (Lines::ALONG) {
        matrices(x, at + (tile * 16 + line) * Lines::PITCH + part * 32 + term * 16);
    } else if (ITEM == 2) {
        matrices_turned(x, at + (part * 16 + term * 8 + lane % 8) * Lines::PITCH
                               + (tile * 16 + (IS_WEIGHTS ? half : upper) * 8) * 2);
    } else {
        const uint32 first = at + (part * 8 + lane % 4) * Lines::PITCH
                             + (tile * 16 + lane / 4) * 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int later = IS_WEIGHTS ? i / 2 : i % 2, eight = IS_WEIGHTS ? i % 2 : i / 2;
            x[i] = load_word(first + later * 4 * Lines::PITCH + eight * 32);
        }
    }
#if X_KIND == 2
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = tf32_of(x[i]);
#endif
}

struct Sums {
    float item[TILES][2 * PAIRS][4] = {};

    // Adds the first `count` terms of a step.
    template <class Weights, class Left>
    __device__ __forceinline__ void add(uint32 w_at, uint32 x_at, int count) {
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            if (part * PART_TERMS >= count) break;
            uint32 w[TILES][4], x[PAIRS][4];
#pragma unroll
            for (int i = 0; i < TILES; ++i) fragment<Weights, true>(w[i], w_at, part, i);
#pragma unroll
            for (int j = 0; j < PAIRS; ++j) fragment<Left, false>(x[j], x_at, part, j);
#pragma unroll
            for (int i = 0; i < TILES; ++i)
#pragma unroll
                for (int j = 0; j < 2 * PAIRS; ++j)
                    multiply(item[i][j], w[i], x[j / 2][j % 2 * 2], x[j / 2][j % 2 * 2 + 1]);
        }
    }

    template <class Weights, class Left> __device__ __forceinline__ void store(uint32 to) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < TILES; ++i)
#pragma unroll
            for (int j = 0; j < 2 * PAIRS; ++j)
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    store_4(to + ((j * 8 + lane % 4 * 2 + q % 2) * TOTALS_PITCH
                                  + i * 16 + lane / 4 + q / 2 * 8) * 4, item[i][j][q]);
    }
};
