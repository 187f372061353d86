// What the kernels of depthwise convolution share: a thread's part of x, and its sums.
//
// A thread has VECTOR neighbouring channels of PIXELS x ROWS results. It walks down the lines of x
// and reads each once: a line is added to all rows of results whose windows contain it, so an
// element is converted once.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/_kernels/cuda/window.h"

typedef ELEMENT E;
typedef ARITHMETIC C;
typedef Vector<E, VECTOR> Elements;
const int TAPS = HEIGHT * WIDTH;
const int COLUMNS = (PIXELS - 1) * STRIDE_X + (WIDTH - 1) * DILATION_X + 1;
const int LINES = (ROWS - 1) * STRIDE_Y + (HEIGHT - 1) * DILATION_Y + 1;
const int WORDS = sizeof(Elements) / 4;

// Elements as words: zeros written element by element would take a register for each element.
struct alignas(sizeof(Elements)) Piece { uint32 word[WORDS]; };

// Adds one column of a line of x, `values`, to all results whose windows contain it.
__device__ __forceinline__ void add_column(C (&sums)[ROWS][PIXELS][VECTOR], const C* values,
                                           const C (&factors)[TAPS][VECTOR], int line, int column) {
#pragma unroll
    for (int k1 = 0; k1 < HEIGHT; ++k1)
#pragma unroll
        for (int k2 = 0; k2 < WIDTH; ++k2) {
            const int y = line - k1 * DILATION_Y, x = column - k2 * DILATION_X;
            if (y < 0 || y % STRIDE_Y || y / STRIDE_Y >= ROWS) continue;
            if (x < 0 || x % STRIDE_X || x / STRIDE_X >= PIXELS) continue;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                sums[y / STRIDE_Y][x / STRIDE_X][v] += values[v] * factors[k1 * WIDTH + k2][v];
        }
}

// Adds a whole line, which is line number `line` of those that the thread's windows contain; the
// first line of a row of results begins its sums with the bias.
__device__ __forceinline__ void add_line(C (&sums)[ROWS][PIXELS][VECTOR], const Piece* columns,
                                         const C (&factors)[TAPS][VECTOR], const C* bias,
                                         int line) {
    if (line % STRIDE_Y == 0 && line / STRIDE_Y < ROWS) {
#pragma unroll
        for (int j = 0; j < PIXELS; ++j)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sums[line / STRIDE_Y][j][v] = bias[v];
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        C values[VECTOR];
        widen_all(values, reinterpret_cast<const Elements&>(columns[c]));
        add_column(sums, values, factors, line, c);
    }
}
