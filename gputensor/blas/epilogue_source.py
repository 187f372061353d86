"""The CUDA program that finishes a product: what the library's epilogue does not do, in one launch.

    target = ((source * scale * scale2 + bias) -> activation) + residual) * result_scale

Each operand but source and target may be absent (address 0), and all are broadcast to the target's
shape by strides of 0. Which are there is asked at run time, the same for all threads, so that a few
kernels serve every combination. A thread takes `vector` neighbours along the innermost axis; the
arithmetic is float32 (float64 for a float64 result) and the result is rounded once. Scales are
float32 whatever the result is.
"""

from gputensor._kernels.cuda_source_math import MATH_SOURCE, expression
from gputensor._kernels.cuda_source_types import TYPES_SOURCE
from gputensor._kernels.dtypes import DTYPES

__all__ = ["ACTIVATIONS", "source"]

#: Indexed by the ACT_* numbers of product.pxd: names of elementwise operations.
ACTIVATIONS = ("positive", "relu", "gelu_tanh", "gelu", "silu")

_PROGRAM = r"""
// Mirrors EpilogueParameters of epilogue.pyx; a kernel of fewer axes reads a prefix.
struct Axis { uint64 size; int64 strides[7]; };
struct Parameters {
    const char* in[6];      // source, scale, scale2, bias, residual, result_scale
    char* out;
    uint64 units;
    Axis axes[RANK];        // innermost first
};
template <class T, int N> struct alignas(sizeof(T) * N) Vector { T item[N]; };

__device__ __forceinline__ C scale_at(const Parameters& p, int i, int64 at, int v) {
    if (!p.in[i]) return (C)1;
    return (C)reinterpret_cast<const float*>(p.in[i])[at + v * p.axes[0].strides[i]];
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    const uint64 step = (uint64)gridDim.x * 256;
    const C last = p.in[5] ? (C)*reinterpret_cast<const float*>(p.in[5]) : (C)1;
    for (uint64 unit = (uint64)blockIdx.x * 256 + threadIdx.x; unit < p.units; unit += step) {
        int64 at[7] = {0, 0, 0, 0, 0, 0, 0};
        uint64 rest = unit;
#pragma unroll
        for (int d = 0; d < RANK; ++d) {
            uint64 size = d ? p.axes[d].size : p.axes[d].size / VECTOR, next;
            if (d + 1 == RANK) next = 0;
            else if ((rest >> 32) == 0 && (size >> 32) == 0) next = (uint32)rest / (uint32)size;
            else next = rest / size;
            int64 index = (int64)(rest - next * size) * (d ? 1 : VECTOR);
            rest = next;
#pragma unroll
            for (int i = 0; i < 7; ++i) at[i] += index * p.axes[d].strides[i];
        }
        Vector<TX, VECTOR> x = *reinterpret_cast<const Vector<TX, VECTOR>*>(
            p.in[0] + at[0] * (int64)sizeof(TX));
        Vector<TR, VECTOR> more = {};
        if (p.in[4]) {
            if (VECTOR == 1 || p.axes[0].strides[4] == 1)
                more = *reinterpret_cast<const Vector<TR, VECTOR>*>(
                    p.in[4] + at[4] * (int64)sizeof(TR));
            else
#pragma unroll
                for (int v = 0; v < VECTOR; ++v)
                    more.item[v] = reinterpret_cast<const TR*>(
                        p.in[4])[at[4] + v * p.axes[0].strides[4]];
        }
        Vector<TO, VECTOR> result;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) {
            C a = wide(x.item[v]);
            a = a * scale_at(p, 1, at[1], v) * scale_at(p, 2, at[2], v);
            if (p.in[3])
                a = a + (C)wide(reinterpret_cast<const TB*>(
                    p.in[3])[at[3] + v * p.axes[0].strides[3]]);
            a = ACTIVATION;
            if (p.in[4]) a = a + (C)wide(more.item[v]);
            result.item[v] = narrow<TO>(a * last);
        }
        *reinterpret_cast<Vector<TO, VECTOR>*>(p.out + at[6] * (int64)sizeof(TO)) = result;
    }
}
"""


def source(types, activation, rank, vector):
    """Return the program for element types, activation, axes and vector width.

    Parameters
    ----------
    types : (int, int, int, int)
        Codes of the source, the bias, the residual and the target.
    activation : int
        An ``ACT_*`` number.
    rank, vector : int
        Axes, at least 1, and elements a thread takes at once.

    Examples
    --------
    >>> text = source((11, 11, 11, 10), 3, 2, 4)
    >>> "a = gelu(a);" in text, "typedef bfloat_t TO;" in text
    (True, True)
    """
    lines = [f"#define RANK {rank}", f"#define VECTOR {vector}", TYPES_SOURCE, MATH_SOURCE]
    for code, short in zip(types, ("TX", "TB", "TR", "TO"), strict=True):
        lines.append(f"typedef {DTYPES[code].cuda} {short};")
    lines.append(f"typedef {'double' if DTYPES[types[3]].name == 'float64' else 'float'} C;")
    lines.append(_PROGRAM.replace("ACTIVATION", expression(ACTIVATIONS[activation], "float")))
    return "\n".join(lines)
