// Products of up to three terms, whose time goes into writing the result.
//
// Each thread has 16 bytes of a result without gaps, whatever the lengths of its rows, so a few of
// them may belong to the next column of D. Terms are added in their order. Elements of the operands
// are read one by one, so any strides and alignment are allowed, or 16 bytes of A at once where
// its rows are neighbours and all columns of A and D begin at multiples of 16 bytes (`across`).
// Where those of D do, a thread of a large product has 16 bytes of COLUMNS columns: with one, blocks
// of threads end before memory is busy.
//
// Defined before this text: INPUT and OUTPUT, element types; TERMS; COLUMNS.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/blas/kernels/shared/activation.cuh"

typedef INPUT input_t;
typedef OUTPUT output_t;

#include "gputensor/blas/kernels/tiny/result.cuh"

const int EACH = 16 / sizeof(output_t);

template <typename T> struct alignas(sizeof(T) * EACH) Several { T item[EACH]; };

__device__ __forceinline__ void column_of(float* b, const Parameters& p, int64 item, int j) {
#pragma unroll
    for (int term = 0; term < TERMS; ++term)
        b[term] = wide(p.b[item * p.stride_b + (int64)j * p.line_b + (int64)term * p.term_b]);
}

// Reads a term of EACH rows of A from one on.
__device__ __forceinline__ Several<input_t> several_of(const Parameters& p, const input_t* row,
                                                       int term) {
    const input_t* const from = row + (int64)term * p.term_a;
    if (p.across) return *reinterpret_cast<const Several<input_t>*>(from);
    Several<input_t> left;
#pragma unroll
    for (int v = 0; v < EACH; ++v) left.item[v] = from[(int64)v * p.line_a];
    return left;
}

#if COLUMNS > 1
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    const uint32 lines = (uint32)p.m / EACH, unit = blockIdx.x * 256 + threadIdx.x;
    const int64 item = blockIdx.y;
    const int group = unit / lines, i = (unit - group * lines) * EACH;
    if (group * (int64)COLUMNS >= p.n) return;
    const int first = group * COLUMNS;
    const bool is_plain = p.alpha == 1.0f && p.beta == 0.0f && !p.bias && p.activation == 0;
    const input_t* const a = p.a + item * p.stride_a + (int64)i * p.line_a;
    output_t* const d = p.d + item * p.stride_d + i;
    Several<input_t> left[TERMS];
    float b[COLUMNS][TERMS];
#pragma unroll
    for (int term = 0; term < TERMS; ++term) left[term] = several_of(p, a, term);
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c)
        column_of(b[c], p, item, first + c < p.n ? first + c : first);
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        if (first + c >= p.n) break;
        Several<output_t> made;
#pragma unroll
        for (int v = 0; v < EACH; ++v) {
            float sum = 0.0f;
#pragma unroll
            for (int term = 0; term < TERMS; ++term)
                sum = fmaf(wide(left[term].item[v]), b[c][term], sum);
            made.item[v] = is_plain ? narrow<output_t>(sum)
                                    : result_of(p, item, i + v, first + c, sum);
        }
        *reinterpret_cast<Several<output_t>*>(d + (int64)(first + c) * p.m) = made;
    }
}
#else
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    const uint32 first = (blockIdx.x * 256 + threadIdx.x) * EACH, count = (uint32)p.m * p.n;
    const int64 item = blockIdx.y;
    if (first >= count) return;
    int j = first / (uint32)p.m, i = first - j * p.m;
    const bool is_plain = p.alpha == 1.0f && p.beta == 0.0f && !p.bias && p.activation == 0;
    const input_t* const a = p.a + item * p.stride_a;
    float b[TERMS], sums[EACH];
    Several<output_t> made;
    column_of(b, p, item, j);
    if (i + EACH <= p.m) {
#pragma unroll
        for (int term = 0; term < TERMS; ++term) {
            const Several<input_t> left = several_of(p, a + (int64)i * p.line_a, term);
#pragma unroll
            for (int v = 0; v < EACH; ++v)
                sums[v] = fmaf(wide(left.item[v]), b[term], term ? sums[v] : 0.0f);
        }
        if (is_plain) {
#pragma unroll
            for (int v = 0; v < EACH; ++v) made.item[v] = narrow<output_t>(sums[v]);
        } else {
#pragma unroll
            for (int v = 0; v < EACH; ++v) made.item[v] = result_of(p, item, i + v, j, sums[v]);
        }
    } else if (p.m >= EACH) {
        // Two columns: the loads of both are under way together.
        const int last = first + EACH <= count ? EACH : count - first;
        float next[TERMS];
        column_of(next, p, item, j + 1 < p.n ? j + 1 : j);
#pragma unroll
        for (int term = 0; term < TERMS; ++term)
#pragma unroll
            for (int v = 0; v < EACH; ++v) {
                const bool is_next = i + v >= p.m;
                const int row = is_next ? i + v - p.m : i + v;
                const float x = wide(a[(int64)row * p.line_a + (int64)term * p.term_a]);
                sums[v] = fmaf(x, is_next ? next[term] : b[term], term ? sums[v] : 0.0f);
            }
        if (is_plain) {
#pragma unroll
            for (int v = 0; v < EACH; ++v) made.item[v] = narrow<output_t>(sums[v]);
        } else {
#pragma unroll
            for (int v = 0; v < EACH; ++v) {
                const bool is_next = i + v >= p.m;
                if (v < last)
                    made.item[v] = result_of(p, item, is_next ? i + v - p.m : i + v, j + is_next,
                                             sums[v]);
            }
        }
    } else {
#pragma unroll
        for (int v = 0; v < EACH; ++v) {
            float sum = 0.0f;
#pragma unroll
            for (int term = 0; term < TERMS; ++term)
                sum = fmaf(wide(a[(int64)i * p.line_a + (int64)term * p.term_a]), b[term], sum);
            made.item[v] = is_plain ? narrow<output_t>(sum) : result_of(p, item, i, j, sum);
            if (++i == p.m) {
                i = 0;
                if (++j == p.n) break;
                column_of(b, p, item, j);
            }
        }
    }
    output_t* const to = p.d + item * p.stride_d + first;
    if (count - first >= EACH) {
        *reinterpret_cast<Several<output_t>*>(to) = made;
    } else {
#pragma unroll
        for (int v = 0; v < EACH; ++v)
            if (first + v < count) to[v] = made.item[v];
    }
}
#endif
