"""CUDA C++ text of gather, scatter and arange.

Gather and scatter share one index space, that of the side that is indexed element by element (the
`small` side: gather's output, scatter's values). `whole` has stride 0 along the index axes; the
index, times `axis_stride`, takes their place. Several index arrays are first folded into one array
of element offsets (`fold`), which then is the index with an axis stride of 1.

A CUDA kernel cannot raise: gather clamps an index into its axis, scatter skips it. `NOWHERE` marks
a skipped element in a folded array. The parameter struct mirrors `IndexParameters` of
``cuda_index.pyx``.
"""

from gputensor._kernels.cuda_source_types import TYPES_SOURCE
from gputensor._kernels.dtypes import DTYPES

__all__ = [
    "FOLD",
    "FOLDED_GATHER",
    "FOLDED_SCATTER",
    "GATHER",
    "SCATTER",
    "arange_source",
    "index_source",
]

GATHER, SCATTER, FOLD, FOLDED_GATHER, FOLDED_SCATTER = range(5)

_PARAMETERS = r"""
struct Axis { uint32 size, magic, shift; int32 strides[4]; };
struct Parameters {
    char* small;
    char* whole;                        // unused by fold, whose offsets are the small side
    const char* index;
    uint32 count, is_first, is_strict;  // fold: the first array; mark an index out of range
    uint32 padding;
    long long axis_size, axis_stride;
    Axis axes[16];
};
#define NOWHERE (-0x7fffffffffffffffll - 1)
__device__ __forceinline__ uint32 divide(uint32 x, const Axis& axis) {
    return (__umulhi(x, axis.magic) + x) >> axis.shift;
}
// The element offset of an index along its axis.
__device__ __forceinline__ long long place(long long i, long long size, long long stride,
                                           bool is_strict) {
    if (i < 0) i += size;
    if (i < 0 || i >= size) {
        if (is_strict) return NOWHERE;
        i = i < 0 ? 0 : size - 1;
    }
    return i * stride;
}
"""

_KERNEL = r"""
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    const uint32 position = blockIdx.x * 256 + threadIdx.x;
    if (position >= p.count) return;
    uint32 rest = position;
    int32 small_offset = 0, whole_offset = 0, index_offset = 0;
#pragma unroll
    for (int d = 0; d < RANK; ++d) {
        const uint32 next = d + 1 < RANK ? divide(rest, p.axes[d]) : 0;
        const int32 here = d + 1 < RANK ? (int32)(rest - next * p.axes[d].size) : (int32)rest;
        rest = next;
        small_offset += here * p.axes[d].strides[3];
        whole_offset += here * p.axes[d].strides[0];
        index_offset += here * p.axes[d].strides[1];
    }
    const long long index = (long long)reinterpret_cast<const TI*>(p.index)[index_offset];
    %s
}
"""

_BODIES = {
    GATHER: r"""reinterpret_cast<T*>(p.small)[small_offset] = reinterpret_cast<const T*>(p.whole)[
        whole_offset + place(index, p.axis_size, p.axis_stride, false)];""",
    SCATTER: r"""const long long offset = place(index, p.axis_size, p.axis_stride, true);
    if (offset != NOWHERE)
        reinterpret_cast<T*>(p.whole)[whole_offset + offset] =
            reinterpret_cast<const T*>(p.small)[small_offset];""",
    FOLD: r"""long long* folded = reinterpret_cast<long long*>(p.small) + small_offset;
    const long long offset = place(index, p.axis_size, p.axis_stride, p.is_strict);
    const long long before = p.is_first ? 0 : *folded;
    *folded = offset == NOWHERE || before == NOWHERE ? NOWHERE : before + offset;""",
    FOLDED_GATHER: r"""reinterpret_cast<T*>(p.small)[small_offset] =
        reinterpret_cast<const T*>(p.whole)[whole_offset + index];""",
    FOLDED_SCATTER: r"""if (index != NOWHERE)
        reinterpret_cast<T*>(p.whole)[whole_offset + index] =
            reinterpret_cast<const T*>(p.small)[small_offset];""",
}

_ARANGE = r"""
struct Parameters {
    char* out;
    long long size, stride;
    double start, step;
    long long integer_start, integer_step;
};
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    const long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < p.size) reinterpret_cast<TO*>(p.out)[i * p.stride] = narrow<TO>(%s);
}
"""


def index_source(form, itemsize, index, rank):
    """Return the CUDA C++ text of one gather, scatter or fold kernel, named ``kernel``.

    Parameters
    ----------
    form : int
        ``GATHER``, ``SCATTER``, ``FOLD``, ``FOLDED_GATHER`` or ``FOLDED_SCATTER``.
    itemsize : int
        Bytes of an element; elements are moved as bits.
    index : int
        Code of the dtype of the index array.
    rank : int
        Axes after merging.

    Examples
    --------
    >>> "NOWHERE" in index_source(SCATTER, 4, 4, 1)
    True
    """
    unsigned = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex_t<double>"}
    lines = [f"#define RANK {rank}", TYPES_SOURCE, _PARAMETERS]
    lines.append(f"typedef {unsigned[itemsize]} T;\ntypedef {DTYPES[index].cuda} TI;")
    return "\n".join([*lines, _KERNEL % _BODIES[form]])


def arange_source(out):
    """Return the CUDA C++ text of a progression of dtype `out`, named ``kernel``.

    Integers wrap, so they are computed as uint64; floats as double and rounded once.

    >>> "integer_step" in arange_source(3)
    True
    """
    value = "(double)i * p.step + p.start"
    if DTYPES[out].kind in ("bool", "int", "uint"):
        value = "(int64)((uint64)p.integer_start + (uint64)i * (uint64)p.integer_step)"
    return "\n".join([TYPES_SOURCE, f"typedef {DTYPES[out].cuda} TO;", _ARANGE % value])
