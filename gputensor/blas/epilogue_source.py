"""The CUDA program that finishes a product: what the library's epilogue does not do, in one launch.

    target = ((source * scale * scale2 + bias) -> activation) + residual) * result_scale

Each operand but source and target may be absent (address 0), and all are broadcast to the target's
shape by strides of 0. Which are there is asked at run time, the same for all threads, so that a few
kernels serve every combination; only scales, which are rare, have kernels of their own. A thread
takes twice `vector` neighbours along the innermost axis and loads all of them before it computes.
The arithmetic is float32 (float64 for a float64 result) and the result is rounded once. Scales are
float32 whatever the result is.

SiLU and the tanh form of GELU are written with one exp and one division, x / (1 + exp(-u)), since
0.5 (1 + tanh(u / 2)) is 1 / (1 + exp(-u)). For 16-bit and 8-bit results both are the quick
instructions, whose errors are 2^-21 at most.
"""

from gputensor._kernels.cuda_source_math import MATH_SOURCE
from gputensor._kernels.cuda_source_types import TYPES_SOURCE
from gputensor._kernels.dtypes import DTYPES

__all__ = ["ACTIVATIONS", "source"]

#: C++ of the ACT_* numbers of product.pxd, of a value `a`.
ACTIVATIONS = (
    "a",
    "a < 0 ? (C)0 : a",
    "logistic(a, (C)1.5957691216057307118 * (a + (C)0.044715 * a * a * a))",
    "gelu<C>(a)",
    "logistic(a, a)",
)

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

__device__ __forceinline__ double logistic(double a, double u) { return a / (1 + exp(-u)); }
__device__ __forceinline__ float logistic(float a, float u) {
    return QUICK ? __fdividef(a, 1 + __expf(-u)) : a / (1 + expf(-u));
}

template <class T>
__device__ __forceinline__ Vector<T, VECTOR> load(const Parameters& p, int i, INDEX at) {
    Vector<T, VECTOR> value = {};
    if (!p.in[i]) return value;
    const T* base = reinterpret_cast<const T*>(p.in[i]) + at;
    const INDEX stride = (INDEX)p.axes[0].strides[i];
    if (stride == 1) return *reinterpret_cast<const Vector<T, VECTOR>*>(base);
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) value.item[v] = base[v * stride];
    return value;
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    const C last = p.in[5] ? (C)*reinterpret_cast<const float*>(p.in[5]) : (C)1;
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
            bias[u] = load<TB>(p, 3, at[3]);
            residual[u] = load<TR>(p, 4, at[4]);
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
                    if (p.in[1]) a = a * (C)scale[u].item[v];
                    if (p.in[2]) a = a * (C)scale2[u].item[v];
                }
                if (p.in[3]) a = a + (C)wide(bias[u].item[v]);
                a = ACTIVATION;
                if (p.in[4]) a = a + (C)wide(residual[u].item[v]);
                result.item[v] = narrow<TO>(a * last);
            }
            *reinterpret_cast<Vector<TO, VECTOR>*>(
                reinterpret_cast<TO*>(p.out) + target[u]) = result;
        }
    }
}
"""


def source(types, activation, rank, vector, is_scaled, is_wide):
    """Return the program for element types, activation, axes and vector width.

    Parameters
    ----------
    types : (int, int, int, int)
        Codes of the source, the bias, the residual and the target.
    activation : int
        An ``ACT_*`` number.
    rank, vector : int
        Axes, at least 1, and elements a thread takes at once.
    is_scaled, is_wide : bool
        Whether there may be scales; whether indices need 64 bits.

    Examples
    --------
    >>> text = source((11, 11, 11, 10), 3, 2, 4, False, False)
    >>> "a = gelu<C>(a);" in text, "typedef bfloat_t TO;" in text
    (True, True)
    """
    target = DTYPES[types[3]]
    words = {
        "RANK": rank,
        "VECTOR": vector,
        "UNROLL": 2,
        "SCALED": int(is_scaled),
        "QUICK": int(target.itemsize <= 2),
        "INDEX": "int64" if is_wide else "int32",
        "UNSIGNED": "uint64" if is_wide else "uint32",
    }
    lines = [f"#define {name} {value}" for name, value in words.items()]
    lines += [TYPES_SOURCE, MATH_SOURCE]
    for code, short in zip(types, ("TX", "TB", "TR", "TO"), strict=True):
        lines.append(f"typedef {DTYPES[code].cuda} {short};")
    lines.append(f"typedef {'double' if target.name == 'float64' else 'float'} C;")
    lines.append(_PROGRAM.replace("ACTIVATION", ACTIVATIONS[activation]))
    return "\n".join(lines)
