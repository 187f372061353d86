"""CUDA C++ text of the reductions.

One kernel is one choice of operation, dtypes, layout and vector width. Two layouts exist:

    row      the reduced axes hold the input's unit stride: threads along x share one output, and a
             block has blockDim.y outputs
    column   the kept axes hold it: threads along x have neighbouring outputs, threads along y share
             each of them

A thread accumulates a strided share in `VECTOR` accumulators, four loads in flight; shares meet in
a fixed tree of shuffles and shared memory, so a result never depends on timing. When outputs are
few, blockIdx.y cuts the reduced range and each part writes its accumulator to a workspace
(`PARTIAL`); a second row kernel (`FROM_PARTIAL`) reduces the parts. The parameter struct mirrors
`ReductionParameters` of ``cuda_reduction.pyx``.
"""

from gputensor._kernels.cuda_source_accumulator import accumulator_source
from gputensor._kernels.cuda_source_math import MATH_SOURCE
from gputensor._kernels.cuda_source_types import TYPES_SOURCE
from gputensor._kernels.dtypes import DTYPES
from gputensor._kernels.operations import REDUCTIONS

__all__ = ["reduction_source"]

_COMMON = r"""
struct Kept { long long size, in_stride, out_stride; };
struct Reduced { long long size, stride; };
struct Parameters {
    char* out;
    const char* in;
    char* partial;
    long long kept;         // outputs, or vectors of them in the column layout
    long long units;        // reduced positions, or vectors of them in the row layout
    long long reduced;      // reduced elements
    long long chunk;        // units of one part
    long long parts;
    Kept kept_axes[16];
    Reduced reduced_axes[16];
};
template <class T, int N> struct alignas(sizeof(T) * N) Vector { T item[N]; };

__device__ __forceinline__ void locate_kept(const Parameters& p, INDEX index,
                                            long long& in, long long& out) {
    in = out = 0;
#pragma unroll
    for (int d = 0; d < KEPT; ++d) {
        const INDEX next = d + 1 < KEPT ? index / (INDEX)p.kept_axes[d].size : 0;
        const long long here = d + 1 < KEPT ? index - next * (INDEX)p.kept_axes[d].size : index;
        in += here * p.kept_axes[d].in_stride;
        out += here * p.kept_axes[d].out_stride;
        index = next;
    }
}
__device__ __forceinline__ long long locate_reduced(const Parameters& p, INDEX index) {
    long long offset = 0;
#pragma unroll
    for (int d = 0; d < REDUCED; ++d) {
        const INDEX next = d + 1 < REDUCED ? index / (INDEX)p.reduced_axes[d].size : 0;
        const long long here =
            d + 1 < REDUCED ? index - next * (INDEX)p.reduced_axes[d].size : index;
        offset += here * p.reduced_axes[d].stride;
        index = next;
    }
    return offset;
}
// Accumulators are whole 32-bit words.
__device__ __forceinline__ A from_lane_below(A x, int distance, int width) {
    union { A value; uint32 words[sizeof(A) / 4]; } u = {x};
#pragma unroll
    for (int i = 0; i < sizeof(A) / 4; ++i)
        u.words[i] = __shfl_down_sync(0xffffffffu, u.words[i], distance, width);
    return u.value;
}
__device__ __forceinline__ void write(const Parameters& p, long long kept, long long offset, A x) {
#if PARTIAL
    reinterpret_cast<A*>(p.partial)[kept * p.parts + blockIdx.y] = x;
#else
    reinterpret_cast<TO*>(p.out)[offset] = finish(x, (double)p.reduced);
#endif
}
"""

_ROW = r"""
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    __shared__ A shared[256 / 32];
    const INDEX row = (INDEX)blockIdx.x * blockDim.y + threadIdx.y;
    const INDEX step = blockDim.x;
    long long in_offset = 0, out_offset = 0;
    A acc[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) acc[v] = identity();
    if (row < (INDEX)p.kept) {
        locate_kept(p, row, in_offset, out_offset);
        const T* in = reinterpret_cast<const T*>(p.in) + in_offset;
        const INDEX begin = (INDEX)blockIdx.y * (INDEX)p.chunk;
        const INDEX limit = begin + (INDEX)p.chunk;
        const INDEX end = limit < (INDEX)p.units ? limit : (INDEX)p.units;
        INDEX unit = begin + threadIdx.x;
        for (; unit < end && end - unit > 3 * step; unit += 4 * step) {
            Vector<T, VECTOR> x[4];
#pragma unroll
            for (int u = 0; u < 4; ++u)
                x[u] = *reinterpret_cast<const Vector<T, VECTOR>*>(
                    in + locate_reduced(p, (unit + u * step) * VECTOR));
#pragma unroll
            for (int u = 0; u < 4; ++u)
#pragma unroll
                for (int v = 0; v < VECTOR; ++v)
                    acc[v] = combine(acc[v], lift(x[u].item[v], (unit + u * step) * VECTOR + v));
        }
        for (; unit < end; unit += step) {
            const Vector<T, VECTOR> x = *reinterpret_cast<const Vector<T, VECTOR>*>(
                in + locate_reduced(p, unit * VECTOR));
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                acc[v] = combine(acc[v], lift(x.item[v], unit * VECTOR + v));
        }
        if (VECTOR > 1 && blockIdx.y == gridDim.y - 1)
            for (INDEX e = (INDEX)p.units * VECTOR + threadIdx.x; e < (INDEX)p.reduced; e += step)
                acc[0] = combine(acc[0], lift(in[locate_reduced(p, e)], e));
    }
#pragma unroll
    for (int v = 1; v < VECTOR; ++v) acc[0] = combine(acc[0], acc[v]);
    A total = acc[0];
    const int width = blockDim.x < 32 ? blockDim.x : 32;
    for (int distance = width / 2; distance > 0; distance /= 2)
        total = combine(total, from_lane_below(total, distance, width));
    if (blockDim.x > 32) {
        // Lane 0 of every warp holds the warp's share; the first thread of a row adds them up.
        const int warp = (threadIdx.y * blockDim.x + threadIdx.x) / 32;
        if (threadIdx.x % 32 == 0) shared[warp] = total;
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 1; w < blockDim.x / 32; ++w) total = combine(total, shared[warp + w]);
    }
    if (threadIdx.x == 0 && row < (INDEX)p.kept) write(p, row, out_offset, total);
}
"""

_COLUMN = r"""
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    __shared__ A shared[256 * VECTOR];
    const INDEX column = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX step = blockDim.y;
    const int slot = threadIdx.y * blockDim.x + threadIdx.x;
    long long in_offset = 0, out_offset = 0;
    A acc[VECTOR];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) acc[v] = identity();
    if (column < (INDEX)p.kept) {
        locate_kept(p, column * VECTOR, in_offset, out_offset);
        const T* in = reinterpret_cast<const T*>(p.in) + in_offset;
        const INDEX begin = (INDEX)blockIdx.y * (INDEX)p.chunk;
        const INDEX limit = begin + (INDEX)p.chunk;
        const INDEX end = limit < (INDEX)p.units ? limit : (INDEX)p.units;
        INDEX unit = begin + threadIdx.y;
        for (; unit < end && end - unit > 3 * step; unit += 4 * step) {
            Vector<T, VECTOR> x[4];
#pragma unroll
            for (int u = 0; u < 4; ++u)
                x[u] = *reinterpret_cast<const Vector<T, VECTOR>*>(
                    in + locate_reduced(p, unit + u * step));
#pragma unroll
            for (int u = 0; u < 4; ++u)
#pragma unroll
                for (int v = 0; v < VECTOR; ++v)
                    acc[v] = combine(acc[v], lift(x[u].item[v], unit + u * step));
        }
        for (; unit < end; unit += step) {
            const Vector<T, VECTOR> x = *reinterpret_cast<const Vector<T, VECTOR>*>(
                in + locate_reduced(p, unit));
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) acc[v] = combine(acc[v], lift(x.item[v], unit));
        }
    }
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) shared[v * 256 + slot] = acc[v];
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                shared[v * 256 + slot] =
                    combine(shared[v * 256 + slot], shared[v * 256 + slot + half * blockDim.x]);
    }
    if (threadIdx.y == 0 && column < (INDEX)p.kept)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            write(p, (long long)column * VECTOR + v, out_offset + v * p.kept_axes[0].out_stride,
                  shared[v * 256 + slot]);
}
"""


def reduction_source(
    op, dtype, compute, out, *, column, vector, kept, reduced, wide, partial, from_partial
):
    """Return the CUDA C++ text of one reduction kernel, named ``kernel``.

    Parameters
    ----------
    op, dtype, compute, out : int
        Codes of the operation and of the dtypes of input, computation and output.
    column : bool
        Column layout; else row.
    vector, kept, reduced : int
        Elements a load; numbers of kept and of reduced axes after merging.
    wide : bool
        64-bit indices.
    partial, from_partial : bool
        The kernel writes, or reads, accumulators.

    Examples
    --------
    >>> text = reduction_source(0, 11, 11, 11, column=False, vector=4, kept=1, reduced=1,
    ...                         wide=False, partial=False, from_partial=False)
    >>> "a + b" in text
    True
    """
    element = DTYPES[compute]
    defines = {
        "VECTOR": vector,
        "KEPT": kept,
        "REDUCED": reduced,
        "INDEX": "unsigned long long" if wide else "unsigned",
        "PARTIAL": int(partial),
    }
    lines = [f"#define {name} {value}" for name, value in defines.items()]
    lines += [TYPES_SOURCE, MATH_SOURCE]
    lines.append(f"typedef {DTYPES[out].cuda} TO;\ntypedef {element.compute} C;")
    lines.append(accumulator_source(REDUCTIONS[op].name, element))
    if from_partial:
        lines.append("typedef A T;")
        lines.append("__device__ __forceinline__ A lift(A x, long long) { return x; }")
    else:
        lines.append(f"typedef {DTYPES[dtype].cuda} T;")
        lines.append(
            "__device__ __forceinline__ A lift(T x, long long index)\n"
            f"{{ return accumulator(wide(convert<{element.cuda}>(x)), index); }}"
        )
    return "\n".join([*lines, _COMMON, _COLUMN if column else _ROW])
