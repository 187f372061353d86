"""CUDA C++ text of the element-wise kernels.

One kernel is one choice of operation, dtypes, vector width and layout; `elementwise_source` writes
it. A thread computes `unroll` units; a unit is `vector` neighbouring elements along the innermost
axis. Each operand is read in one of three modes:

    UNIT     neighbouring elements are neighbours in memory: one load of vector * itemsize bytes
    STRIDED  one element a unit (vector is 1, or the innermost stride is 0: the element is shared)
    SCALAR   the value travels in the parameters, already of the arithmetic type

`rank` 0 means that every operand is UNIT or SCALAR over the whole index space, so that no index
arithmetic remains, and the last elements that fill no vector go to single threads. Otherwise `rank`
is the number of axes left after merging; axes come innermost first, and all offsets fit 32 bits
(the launcher cuts larger arrays). The parameter struct mirrors `ElementwiseParameters` of
``launch_layout.h``.
"""

from gputensor._kernels.cuda_source_math import MATH_SOURCE, expression
from gputensor._kernels.cuda_source_types import TYPES_SOURCE
from gputensor._kernels.dtypes import DTYPES
from gputensor._kernels.operations import ELEMENTWISE

__all__ = ["BLOCK", "SCALAR", "STRIDED", "UNIT", "elementwise_source"]

UNIT, STRIDED, SCALAR = range(3)
BLOCK = 256
_BOOLEAN = {"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"}
_PARTS = {"abs", "real", "imag"}

_PARAMETERS = r"""
struct Axis { uint32 size, magic, shift; int32 strides[4]; };
struct Parameters {
    char* out;
    const char* in[3];
    uint32 units, tail;
    double2 scalars[3];
    Axis axes[RANK ? RANK : 1];
};
// The quotient by a size that the host prepared: magic = floor(2^32 (2^shift - size) / size) + 1.
__device__ __forceinline__ uint32 divide(uint32 x, const Axis& axis) {
    return (__umulhi(x, axis.magic) + x) >> axis.shift;
}
template <class T, int N> struct alignas(sizeof(T) * N) Vector { T item[N]; };
"""

_KERNEL = r"""
extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const Parameters p) {
    const uint32 first = blockIdx.x * (BLOCK * UNROLL) + threadIdx.x;
%(declare)s
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const uint32 unit = first + u * BLOCK;
        if (unit < p.units) {
%(locate)s
%(load)s
        }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const uint32 unit = first + u * BLOCK;
        if (unit < p.units) {
            Vector<TO, VECTOR> result;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) result.item[v] = compute(%(items)s);
            *reinterpret_cast<Vector<TO, VECTOR>*>(p.out + %(out_offset)s) = result;
        }%(tail)s
    }
}
"""

_TAIL = r"""
        else if (unit - p.units < p.tail) {
            const long long element = (long long)p.units * VECTOR + (unit - p.units);
            reinterpret_cast<TO*>(p.out)[element] = compute(%(tail_items)s);
        }"""


def _locate(inputs, rank):
    """Text that turns `unit` into an element offset for `out` (number 3) and each strided input."""
    names = [f"offset{i}" for i in inputs] + ["out_offset[u]"]
    numbers = [*inputs, 3]
    lines = ["uint32 rest = unit;"]
    lines += [f"int32 {name} = 0;" for name in names[:-1]]
    lines += ["out_offset[u] = 0;", "#pragma unroll", "for (int d = 0; d < RANK; ++d) {"]
    if rank > 1:
        lines.append("    uint32 next = d + 1 < RANK ? divide(rest, p.axes[d]) : 0;")
        lines.append("    int32 index = (int32)(rest - next * p.axes[d].size);")
        lines.append("    rest = next;")
    else:
        lines.append("    int32 index = (int32)rest;")
    for name, number in zip(names, numbers, strict=True):
        lines.append(f"    {name} += index * p.axes[d].strides[{number}];")
    return [*lines, "}"]


def _load(i, mode, rank):
    if mode == SCALAR:
        return []
    if mode == UNIT:
        offset = f"(long long)unit * (VECTOR * sizeof(T{i}))"
        if rank:
            offset = f"(long long)offset{i} * (long long)sizeof(T{i})"
        return [f"x{i}[u] = *reinterpret_cast<const Vector<T{i}, VECTOR>*>(p.in[{i}] + {offset});"]
    return [
        f"x{i}[u].item[0] = reinterpret_cast<const T{i}*>(p.in[{i}])[(long long)offset{i}];",
    ]


def _item(i, mode):
    if mode == SCALAR:
        return f"s{i}"
    return f"x{i}[u].item[v]" if mode == UNIT else f"x{i}[u].item[0]"


def _declare(modes, rank):
    lines = []
    for i, mode in enumerate(modes):
        if mode == SCALAR:
            lines.append(f"    const C{i} s{i} = *reinterpret_cast<const C{i}*>(&p.scalars[{i}]);")
        else:
            width = "VECTOR" if mode == UNIT else "1"
            lines.append(f"    Vector<T{i}, {width}> x{i}[UNROLL];")
    if rank:
        lines.append("    int32 out_offset[UNROLL];")
    return lines


def _compute(operation, compute, out, inputs, modes):
    """Text of `compute`: stored elements (or scalars) in, one stored element out."""
    element = DTYPES[compute]
    kind = element.kind
    parameters, values = [], []
    for i, (dtype, mode) in enumerate(zip(inputs, modes, strict=True)):
        name = "abc"[i]
        is_condition = operation.name == "where" and i == 0
        stored = "bool" if is_condition else element.cuda
        if mode == SCALAR:
            parameters.append(f"C{i} {name}")
            continue
        parameters.append(f"{DTYPES[dtype].cuda} stored_{name}")
        values.append(f"    const C{i} {name} = wide(convert<{stored}>(stored_{name}));")
    result = element.cuda
    if kind == "complex" and operation.name in _PARTS:
        result = "float" if element.itemsize == 8 else "double"
    text = expression(operation.name, kind)
    finish = f"convert<TO>(narrow<{result}>({text}))"
    if operation.name in _BOOLEAN:
        finish = f"narrow<TO>({text})"
    signature = f"__device__ __forceinline__ TO compute({', '.join(parameters)}) {{"
    return "\n".join([signature, *values, f"    return {finish};", "}"])


def elementwise_source(op, compute, out, inputs, modes, vector, rank, unroll):
    """Return the CUDA C++ text of one element-wise kernel, named ``kernel``.

    Parameters
    ----------
    op, compute, out : int
        Codes of the operation, of the compute dtype and of the output's dtype.
    inputs, modes : sequence of int
        Code of the dtype and reading mode of each input.
    vector : int
        Elements a unit. Only 1 when an operand's innermost stride is neither 0 nor 1.
    rank, unroll : int
        Axes (0: contiguous), units a thread.

    Examples
    --------
    >>> text = elementwise_source(4, 11, 11, (11, 11), (0, 2), 4, 0, 1)
    >>> "a + b" in text
    True
    """
    operation = ELEMENTWISE[op]
    element = DTYPES[compute]
    defines = {"VECTOR": vector, "RANK": rank, "UNROLL": unroll, "BLOCK": BLOCK}
    lines = [f"#define {name} {value}" for name, value in defines.items()]
    lines += [TYPES_SOURCE, MATH_SOURCE, _PARAMETERS]
    lines += [f"typedef {DTYPES[out].cuda} TO;", f"typedef {element.compute} C;"]
    for i, dtype in enumerate(inputs):
        is_condition = operation.name == "where" and i == 0
        lines.append(f"typedef {DTYPES[dtype].cuda} T{i};")
        lines.append(f"typedef {'bool' if is_condition else element.compute} C{i};")
    lines.append(_compute(operation, compute, out, inputs, modes))
    located = [i for i, mode in enumerate(modes) if mode != SCALAR] if rank else []
    body = {
        "declare": "\n".join(_declare(modes, rank)),
        "locate": "\n".join("            " + line for line in _locate(located, rank))
        if rank
        else "",
        "load": "\n".join(
            "            " + line for i, mode in enumerate(modes) for line in _load(i, mode, rank)
        ),
        "items": ", ".join(_item(i, mode) for i, mode in enumerate(modes)),
        "out_offset": "(long long)out_offset[u] * (long long)sizeof(TO)"
        if rank
        else "(long long)unit * (VECTOR * sizeof(TO))",
        "tail": "",
    }
    if rank == 0:
        items = [
            f"s{i}" if mode == SCALAR else f"reinterpret_cast<const T{i}*>(p.in[{i}])[element]"
            for i, mode in enumerate(modes)
        ]
        body["tail"] = _TAIL % {"tail_items": ", ".join(items)}
    lines.append(_KERNEL % body)
    return "\n".join(lines)
