// The end of a product: the steps that the library's epilogue does not do, in one launch.
//
//     target = (activation(source * scale * scale2 + bias) + residual) * result_scale
//
// Each operand but source and target may be absent (address 0), and all are broadcast to the
// target's shape by strides of 0. Their presence is checked at run time, with the same outcome in
// all threads, so that a few kernels serve every combination; only scales, which are rare, and an
// activation without a bias and a residual (PLAIN) have separate kernels. A thread takes UNROLL times VECTOR neighbours along the innermost axis and
// loads all of them before it computes. The arithmetic is float32 (float64 for a float64 result)
// and the result is rounded once. Scales are float32 for every type of result.
//
// SiLU and the tanh form of GELU are written with one exp and one division. For 16-bit and 8-bit
// results (QUICK) all activations are those of quick.cuh.
//
// Defined before this text: RANK, at least 1; VECTOR; UNROLL; SCALED; PLAIN; QUICK; INDEX and UNSIGNED,
// types of an index; SOURCE, BIAS, RESIDUAL and TARGET, element types; ARITHMETIC; ACTIVATION of a
// value a.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/vector.cuh"
#include "gputensor/blas/kernels/epilogue/epilogue.h"
#include "gputensor/blas/kernels/shared/quick.cuh"

typedef EpilogueParameters Parameters;
typedef SOURCE TX;
typedef BIAS TB;
typedef RESIDUAL TR;
typedef TARGET TO;
typedef ARITHMETIC C;

__device__ __forceinline__ double logistic(double a, double u) { return a / (1 + exp(-u)); }
__device__ __forceinline__ float logistic(float a, float u) {
    return QUICK ? quick_logistic(a, u) : a / (1 + expf(-u));
}

__device__ __forceinline__ double exact_gelu(double a) { return gelu<double>(a); }
__device__ __forceinline__ float exact_gelu(float a) {
    return QUICK ? quick_gelu(a) : gelu<float>(a);
}

template <class T>
__device__ __forceinline__ Vector<T, VECTOR> load(const Parameters& p, int i, INDEX at) {
    Vector<T, VECTOR> value = {};
    if (!p.inputs[i]) return value;
    const T* base = reinterpret_cast<const T*>(p.inputs[i]) + at;
    const INDEX stride = (INDEX)p.axes[0].strides[i];
    if (stride == 1) return *reinterpret_cast<const Vector<T, VECTOR>*>(base);
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) value.item[v] = base[v * stride];
    return value;
}

extern "C" __global__ void __launch_bounds__(256, PLAIN ? 4 : 1) kernel(const Parameters p) {
    start_early();
    const C last = p.inputs[5] ? (C)*reinterpret_cast<const float*>(p.inputs[5]) : (C)1;
    const uint64 step = (uint64)gridDim.x * (256 * UNROLL);
    for (uint64 first = (uint64)blockIdx.x * (256 * UNROLL) + threadIdx.x; first < p.units;
         first += step) {
        Vector<TX, VECTOR> x[UNROLL];
        Vector<TB, VECTOR> bias[UNROLL];
        Vector<TR, VECTOR> residual[UNROLL];
        Vector<float, VECTOR> scale[UNROLL], scale2[UNROLL];
        INDEX target[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const uint64 unit = first + u * 256;
            if (unit >= p.units) break;
            INDEX at[7] = {0, 0, 0, 0, 0, 0, 0};
            UNSIGNED rest = (UNSIGNED)unit;
#pragma unroll
            for (int d = 0; d < RANK; ++d) {
                const UNSIGNED size = (UNSIGNED)p.axes[d].size / (d ? 1 : VECTOR);
                const UNSIGNED next = d + 1 < RANK ? rest / size : 0;
                const INDEX index = (INDEX)(rest - next * size) * (d ? 1 : VECTOR);
                rest = next;
#pragma unroll
                for (int i = 0; i < 7; ++i) at[i] += index * (INDEX)p.axes[d].strides[i];
            }
            target[u] = at[6];
            x[u] = load<TX>(p, 0, at[0]);
            if (!PLAIN) {
                bias[u] = load<TB>(p, 3, at[3]);
                residual[u] = load<TR>(p, 4, at[4]);
            }
            if (SCALED) {
                scale[u] = load<float>(p, 1, at[1]);
                scale2[u] = load<float>(p, 2, at[2]);
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            if (first + u * 256 >= p.units) break;
            Vector<TO, VECTOR> result;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                C a = wide(x[u].item[v]);
                if (SCALED) {
                    if (p.inputs[1]) a = a * (C)scale[u].item[v];
                    if (p.inputs[2]) a = a * (C)scale2[u].item[v];
                }
                if (!PLAIN && p.inputs[3]) a = a + (C)wide(bias[u].item[v]);
                a = ACTIVATION;
                if (!PLAIN && p.inputs[4]) a = a + (C)wide(residual[u].item[v]);
                result.item[v] = narrow<TO>(a * last);
            }
            *reinterpret_cast<Vector<TO, VECTOR>*>(
                reinterpret_cast<TO*>(p.out) + target[u]) = result;
        }
    }
}
