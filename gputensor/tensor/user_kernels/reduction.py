"""Reductions from CUDA C++ expressions, with CuPy's arguments: `ReductionKernel`."""

import math

from gputensor._arrays.dtypes import dtype_code, uint8
from gputensor._arrays.element_types import DTYPES
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, axis_argument
from gputensor.tensor.engine import queue_kernel
from gputensor.tensor.manipulation import empty, permute_dims
from gputensor.tensor.manipulation.axes import broadcast_shapes
from gputensor.tensor.user_kernels.elementwise import with_math
from gputensor.tensor.user_kernels.parameters import (
    Axes,
    c_type,
    declared,
    padded,
    paired,
    read_operand,
    struct_of,
    texts_of,
    typedefs,
    written_operand,
)
from gputensor.tensor.user_kernels.texts import C_TYPES, named, option_list, settings

__all__ = ["ReductionKernel"]

THREADS = 256
#: The number of blocks that fill a device, and the least elements per thread in a partial launch.
FULL, LEAST = 1024, 16
OTHERS = {"reduce_type": None, "reduce_dims": True, "preamble": "", "options": ()}
_TEXT = """{preamble}
struct Parameters {{
    long long outputs, reduced, chunk, parts, partial, ndim, out_ndim;
    long long shape[16], out_shape[16];
{fields}
}};
{types}
typedef {reduce_type} type_reduce;
static __device__ type_reduce gputensor_joined(type_reduce a, type_reduce b) {{
    return static_cast<type_reduce>({reduce_expr});
}}
extern "C" __attribute__((global)) void kernel(const Parameters p) {{
    alignas(16) __shared__ char memory_[256 * sizeof(type_reduce)];
    type_reduce* parts_ = reinterpret_cast<type_reduce*>(memory_) + threadIdx.y * blockDim.x;
    const int x_ = threadIdx.x, width_ = blockDim.x;
    const long long o_ = blockIdx.x * (long long)blockDim.y + threadIdx.y;
    const long long begin_ = blockIdx.y * p.chunk;
    const long long end_ = begin_ + p.chunk < p.reduced ? begin_ + p.chunk : p.reduced;
{raws}
    if (o_ < p.outputs) {{
        for (long long r_ = begin_ + x_; r_ < end_; r_ += width_) {{
#if FROM_PARTS
            const type_reduce here_ = ((const type_reduce*)p.partial)[o_ * p.reduced + r_];
#else
            const long long i = o_ * p.reduced + r_;
{offsets}
{loads}
            const type_reduce here_ = static_cast<type_reduce>({map_expr});
#endif
            parts_[x_] = r_ == begin_ + x_ ? here_ : gputensor_joined(parts_[x_], here_);
        }}
    }}
    for (int half_ = width_ / 2; half_ > 0; half_ /= 2) {{
        __syncthreads();
        if (o_ < p.outputs && x_ < half_ && begin_ + x_ + half_ < end_)
            parts_[x_] = gputensor_joined(parts_[x_], parts_[x_ + half_]);
    }}
    if (x_ > 0 || o_ >= p.outputs) return;
#if IS_PART
    ((type_reduce*)p.partial)[o_ * p.parts + blockIdx.y] = parts_[0];
#else
#if HAS_IDENTITY
    const type_reduce nothing_ = static_cast<type_reduce>({identity});
    const type_reduce a = begin_ < end_ ? gputensor_joined(nothing_, parts_[0]) : nothing_;
#else
    const type_reduce a = parts_[0];
#endif
{out_offsets}
{out_loads}
        {post_map_expr};
{stores}
#endif
}}
"""


class ReductionKernel:
    """A kernel that reduces axes, from CUDA C++ expressions.

    Parameters
    ----------
    in_params, out_params : str
        Declarations such as ``"T x, T y"``, as in :class:`ElementwiseKernel`.
    map_expr : str
        The mapped value of an element of the inputs. `i` is its number, with reduced axes last.
    reduce_expr : str
        The combination of two mapped values, `a` and `b`, in any order.
    post_map_expr : str
        Statements that compute the outputs from the reduced value `a`.
    identity : str or None
        The value for no elements. With None, a reduction of no elements raises.
    name : str
        The kernel's name in messages.
    reduce_type : str, optional
        The type of mapped values: a dtype, a letter, or a type of the preamble; default: that of
        the first output.
    preamble : str
        Source text before the kernel: functions, types and constants.
    reduce_dims, options
        As in CuPy. `reduce_dims` has no effect.

    Notes
    -----
    Call it as ``kernel(*inputs, out=None, axis=None, keepdims=False)``. Inputs broadcast to one
    shape. `axis` lists the reduced axes: an int, a tuple, or None for all. float16 and bfloat16 are
    computed as float. The order in which elements are combined depends only on the shape.

    Examples
    --------
    >>> import gputensor as gt
    >>> norm = gt.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> if gt.is_available():
    ...     print(norm(gt.ones((2, 4), device="cuda"), axis=1).tolist())
    """

    def __init__(
        self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, *name, **others
    ):
        if len(name) > 1 or (name and "name" in others):
            raise argument_error(TypeError, "ReductionKernel: name", name, "one name")
        title = name[0] if name else others.pop("name", "reduce_kernel")
        found = settings(OTHERS, others, "ReductionKernel")
        self.name = named(title, "ReductionKernel")
        self._inputs = declared(in_params, "ReductionKernel: in_params")
        self._outputs = declared(out_params, "ReductionKernel: out_params")
        self.nin, self.nout = len(self._inputs), len(self._outputs)
        names = [one.name for one in (*self._inputs, *self._outputs)]
        if (
            not self._outputs
            or any(one.is_raw for one in self._outputs)
            or (len(set(names)) < len(names))
        ):
            rule = "at least one parameter, none of them raw, and each name once"
            raise argument_error(ValueError, "ReductionKernel: out_params", out_params, rule)
        self.identity = None if identity is None else str(identity)
        self._expressions = {
            "map_expr": map_expr, "reduce_expr": reduce_expr, "post_map_expr": post_map_expr,
            "identity": self.identity, "preamble": found["preamble"],
        }  # fmt: skip
        self.reduce_type = found["reduce_type"]
        self.options = option_list(found["options"], "ReductionKernel")
        self._programs = {}

    def __repr__(self):
        return f"ReductionKernel({self.name!r})"

    def __call__(self, *args, out=None, axis=None, keepdims=False):
        """Compute the outputs; see the class."""
        title = f"ReductionKernel {self.name}"
        given = args if out is None else (*args, *(out if isinstance(out, tuple) else (out,)))
        parameters = [*self._inputs, *self._outputs]
        given, dtypes = paired(parameters, self.nin, given, title)
        shapes = [one.shape for parameter, one in zip(self._inputs, given, strict=False)
                  if isinstance(one, Tensor) and not parameter.is_raw]  # fmt: skip
        if not shapes:
            got = Described("no tensor that is not raw")
            raise argument_error(TypeError, f"{title}: arguments", got, "at least one Tensor")
        device = next(one.device for one in given if isinstance(one, Tensor))
        shape = broadcast_shapes(*shapes)
        reduced, order = _axes(axis, len(shape), title)
        kept = order[: len(order) - len(reduced)]
        if self.identity is None and math.prod(shape[one] for one in reduced) == 0:
            got = Described("no elements to reduce, and no identity")
            raise argument_error(ValueError, title, got, "elements or an identity")
        full = (
            tuple(1 if one in reduced else n for one, n in enumerate(shape))
            if keepdims
            else (tuple(shape[one] for one in kept))
        )
        operands = []
        for place, (parameter, one, dtype) in enumerate(
            zip(parameters, given, dtypes, strict=True)
        ):
            if place >= self.nin:
                operands.append(empty(full, dtype, device=device) if one is None else
                                written_operand(parameter, one, dtype, full, title))  # fmt: skip
                continue
            one = read_operand(parameter, one, dtype, shape, device)
            operands.append(one if parameter.is_raw else permute_dims(one, order))
        self._reduce(parameters, operands, [shape[one] for one in order], len(kept), title)
        results = tuple(operands[self.nin :])
        return results if len(results) > 1 else results[0]

    def _reduce(self, parameters, operands, extents, kept, title):
        """Queue one launch, or two if few outputs have many elements."""
        outputs, reduced = math.prod(extents[:kept]), math.prod(extents[kept:])
        if outputs == 0:
            return
        codes = tuple(dtype_code(one.dtype) for one in operands)
        is_flat = all(one.is_contiguous for one in operands)
        kind = self._reduce_kind(parameters, codes)
        out = operands[-1]
        head = {"outputs": outputs, "reduced": reduced, "chunk": max(1, reduced), "parts": 1,
                "partial": 0, "ndim": len(extents), "out_ndim": out.ndim,
                "shape": padded(extents), "out_shape": padded(out.shape)}  # fmt: skip
        width, rows = _block(reduced)
        blocks = -(-outputs // rows)
        reads, writes = tuple(operands[: self.nin]), tuple(operands[self.nin :])
        parts = min(FULL // blocks, reduced // (LEAST * THREADS)) if blocks < FULL // 2 else 1
        if parts > 1 and kind[1]:
            head["chunk"] = -(-reduced // parts)
            head["parts"] = parts = -(-reduced // head["chunk"])
            space = empty(outputs * parts * kind[1], uint8, device=out.device)
            head["partial"] = space.data_ptr()
            program = self._program(parameters, codes, is_flat, kind[0], "part")
            queue_kernel(program, (blocks, parts, 1, width, rows, 1, 0, 0),
                         struct_of(head, parameters, operands), (space,), reads, title)  # fmt: skip
            head.update(reduced=parts, chunk=parts, parts=1)
            width, rows = _block(parts)
            blocks, reads = -(-outputs // rows), (*reads, space)
        step = "parts" if head["partial"] else "whole"
        program = self._program(parameters, codes, is_flat, kind[0], step)
        queue_kernel(program, (blocks, 1, 1, width, rows, 1, 0, 0),
                     struct_of(head, parameters, operands), writes, reads, title)  # fmt: skip

    def _reduce_kind(self, parameters, codes):
        """Return the C++ type of mapped values and its size; 0 if only the compiler knows it."""
        kind = self.reduce_type
        if kind is None:
            code = codes[self.nin]
        elif len(kind) == 1:
            found = [code for one, code in zip(parameters, codes, strict=True) if one.type == kind]
            if not found:
                raise argument_error(ValueError, "ReductionKernel: reduce_type", kind,
                                     "a letter of the parameters")  # fmt: skip
            code = found[0]
        elif kind in C_TYPES or kind in _DTYPE_NAMES:
            code = dtype_code(kind)
        else:
            return kind, 0
        row = DTYPES[code]
        is_narrow = row.kind != "complex" and row.name not in C_TYPES
        return c_type(code), 4 if is_narrow else row.itemsize

    def _program(self, parameters, codes, is_flat, kind, step):
        key = codes, is_flat, step
        if key in self._programs:
            return self._programs[key]
        read = texts_of(range(self.nin), parameters, codes, self.nin, is_flat,
                        Axes("i", "shape", "ndim"))  # fmt: skip
        written = texts_of(range(self.nin, len(parameters)), parameters, codes, self.nin, is_flat,
                           Axes("o_", "out_shape", "out_ndim"))  # fmt: skip
        text = "".join(
            f"#define {name} {int(value)}\n"
            for name, value in (("IS_PART", step == "part"), ("FROM_PARTS", step == "parts"),
                                ("HAS_IDENTITY", self.identity is not None))
        )  # fmt: skip
        text += _TEXT.format(
            fields=f"{read.fields}\n{written.fields}", types=typedefs(parameters, codes),
            raws=read.raws, offsets=read.offsets, loads=read.loads, stores=written.stores,
            out_offsets=written.offsets, out_loads=written.loads, reduce_type=kind,
            **self._expressions,
        )  # fmt: skip
        self._programs[key] = with_math(self.name, text, self.options)
        return self._programs[key]


_DTYPE_NAMES = {row.name for row in DTYPES}


def _axes(axis, ndim, title):
    """Return the reduced axes, and all axes with these last."""
    given = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    reduced = [axis_argument(one, ndim, title) for one in given]
    if len(set(reduced)) < len(reduced):
        raise argument_error(ValueError, f"{title}: axis", axis, "different axes")
    reduced.sort()
    return reduced, [one for one in range(ndim) if one not in reduced] + reduced


def _block(reduced):
    """Return the number of threads for one output, and of outputs for a block."""
    width = 1
    while width < THREADS and 4 * width < reduced:
        width *= 2
    return width, THREADS // width
