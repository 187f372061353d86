// Integer products that no library has: 16 x 16 tiles in shared memory.
//
// Sums wrap in two's complement, like the element type of the result: they are computed in unsigned
// words at least as wide, and the low bits are kept. The matrices may have any strides.
//
// Defined before this text: INPUT and OUTPUT, element types; SUM, an unsigned type at least as
// wide.
#pragma once

typedef INPUT input_t;
typedef OUTPUT output_t;

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/integer/integer.h"

typedef IntegerParameters Parameters;
typedef SUM sum_t;

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    __shared__ sum_t left[16][17], right[16][17];
    int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    int64 down = (p.m + 15) / 16, tiles = down * ((p.n + 15) / 16);
    for (int64 tile = blockIdx.x; tile < tiles * p.batch; tile += gridDim.x) {
        int64 item = tile / tiles, place = tile - item * tiles;
        int64 row = place % down * 16 + x;
        int64 column = place / down * 16 + y;
        const input_t* a = p.a + item * p.stride_a;
        const input_t* b = p.b + item * p.stride_b;
        sum_t sum = 0;
        for (int64 first = 0; first < p.k; first += 16) {
            int64 inner = first + y;
            left[y][x] = row < p.m && inner < p.k
                ? (sum_t)a[row * p.row_a + inner * p.column_a] : (sum_t)0;
            inner = first + x;
            right[x][y] = column < p.n && inner < p.k
                ? (sum_t)b[inner * p.row_b + column * p.column_b] : (sum_t)0;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < 16; ++i) sum += left[i][x] * right[i][y];
            __syncthreads();
        }
        if (row < p.m && column < p.n) {
            sum *= (sum_t)p.alpha;
            if (p.beta)
                sum += (sum_t)p.beta * (sum_t)p.c[item * p.stride_c + column * p.ldc + row];
            p.d[item * p.stride_d + column * p.ldd + row] = (output_t)sum;
        }
    }
}
