"""Element-wise kernels from expressions, with CuPy's arguments: `ElementwiseKernel`."""

import math
import operator

from gputensor._arrays.dtypes import dtype_code
from gputensor._kernels.program import Program
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor
from gputensor.tensor.engine import queue_kernel
from gputensor.tensor.manipulation import empty
from gputensor.tensor.manipulation.axes import broadcast_shapes
from gputensor.tensor.user_kernels.parameters import (
    RAW_TEXT,
    Axes,
    declared,
    padded,
    paired,
    read_operand,
    struct_of,
    texts_of,
    typedefs,
    written_operand,
)
from gputensor.tensor.user_kernels.texts import (
    MOST_THREADS,
    UserProgram,
    named,
    option_list,
    settings,
)

__all__ = ["MATH", "ElementwiseKernel", "with_math"]

THREADS = 256
ELEMENTWISE_SETTINGS = {
    "preamble": "",
    "no_return": False,
    "return_tuple": False,
    "loop_prep": "",
    "after_loop": "",
    "options": (),
}
MOST_BLOCKS = 1 << 20
MATH = "gputensor/_kernels/cuda/math.cuh"
_TEXT = """{preamble}
struct Parameters {{
    long long count, ndim;
    long long shape[16];
{fields}
}};
{types}
extern "C" __attribute__((global)) void kernel(const Parameters p) {{
    const GputensorIndex _ind = {{p.count}};
{raws}
    {prepare};
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < p.count;
         i += gridDim.x * (long long)blockDim.x) {{
{offsets}
{loads}
        {operation};
{stores}
    }}
    {after};
}}
"""


def with_math(name, text, options):
    """Return the program of a text, preceded by the library's math functions."""
    whole = f'{Program(MATH).text()}\n{RAW_TEXT}#line 1 "{name}.cu"\n{text}'
    return UserProgram(f"{name}.cu", whole, options)


class ElementwiseKernel:
    """A kernel that computes outputs element by element, from expressions of CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        Declarations such as ``"float32 x, T y, raw float64 table"``. A one-letter type is that of
        its tensors, which must agree; other types convert their arguments. `raw` parameters are not
        broadcast; the operation indexes them itself.
    operation : str
        Statements for one element. `i` is its number, ``_ind.size()`` the number of elements.
    name : str
        The kernel's name in messages.
    preamble : str
        Source text before the kernel: functions and constants.
    loop_prep, after_loop : str
        Statements before and after each thread's loop.
    reduce_dims, no_return, return_tuple, options
        As in CuPy. `reduce_dims` has no effect.

    Notes
    -----
    Call it as ``kernel(*inputs, *outputs, size=None)``. Inputs and outputs broadcast to one shape;
    outputs that are not given are made. `size` is the number of elements if every parameter is
    `raw`.
    float16 and bfloat16 are computed as float; complex numbers have `re` and `im`.

    Examples
    --------
    >>> import gputensor as gt
    >>> distance = gt.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "distance")
    >>> if gt.is_available():
    ...     print(distance(gt.ones(3, device="cuda"), 3.0).tolist())
    """

    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True, **others):
        found = settings(ELEMENTWISE_SETTINGS, others, "ElementwiseKernel")
        self.name = named(name, "ElementwiseKernel")
        self._inputs = declared(in_params, "ElementwiseKernel: in_params")
        self._outputs = declared(out_params, "ElementwiseKernel: out_params")
        self.nin, self.nout = len(self._inputs), len(self._outputs)
        names = [one.name for one in (*self._inputs, *self._outputs)]
        if not self._outputs and not found["no_return"] or len(set(names)) < len(names):
            raise argument_error(ValueError, "ElementwiseKernel: out_params", out_params,
                                 "at least one parameter, and each name once")  # fmt: skip
        self.operation, self.preamble = operation, found["preamble"]
        self.loop_prep, self.after_loop = found["loop_prep"], found["after_loop"]
        self.options = option_list(found["options"], "ElementwiseKernel")
        self.no_return, self.return_tuple = found["no_return"], found["return_tuple"]
        self._programs = {}

    def __repr__(self):
        return f"ElementwiseKernel({self.name!r})"

    def __call__(self, *args, size=None, block_size=THREADS):
        """Compute the outputs; see the class."""
        title = f"ElementwiseKernel {self.name}"
        parameters = [*self._inputs, *self._outputs]
        given, dtypes = paired(parameters, self.nin, args, title)
        tensors = [one for one in given if isinstance(one, Tensor)]
        if not tensors:
            got = Described("numbers only")
            raise argument_error(TypeError, f"{title}: arguments", got, "at least one Tensor")
        shape = self._shape(parameters, given, size, title)
        device = tensors[0].device
        operands = []
        for place, (parameter, one) in enumerate(zip(parameters, given, strict=True)):
            dtype = dtypes[place]
            if place < self.nin:
                one = read_operand(parameter, one, dtype, shape, device)
            elif one is not None:
                one = written_operand(parameter, one, dtype, shape, title)
            elif parameter.is_raw:
                got = Described("no tensor")
                rule = "a tensor, because a raw output has its own shape"
                raise argument_error(TypeError, f"{title}: {parameter.name}", got, rule)
            else:
                one = empty(shape, dtype, device=device)
            operands.append(one)
        self._launch(parameters, operands, shape, min(int(block_size), MOST_THREADS), title)
        results = tuple(operands[self.nin :])
        if self.no_return:
            return None
        return results if self.return_tuple or len(results) != 1 else results[0]

    def _shape(self, parameters, given, size, title):
        shapes = [one.shape for parameter, one in zip(parameters, given, strict=True)
                  if isinstance(one, Tensor) and not parameter.is_raw]  # fmt: skip
        if size is not None:
            if shapes:
                got = Described("a size together with tensors that are not raw")
                raise argument_error(ValueError, f"{title}: size", got, "only one of them")
            return (operator.index(size),)
        if not shapes:
            got = Described("raw tensors only")
            raise argument_error(ValueError, f"{title}: size", got, "the number of elements")
        return broadcast_shapes(*shapes)

    def _launch(self, parameters, operands, shape, threads, title):
        count = math.prod(shape)
        if count == 0:
            return
        codes = tuple(dtype_code(one.dtype) for one in operands)
        is_flat = all(one.is_contiguous for one in operands)
        key = codes, is_flat
        if key not in self._programs:
            self._programs[key] = self._program(parameters, codes, is_flat)
        head = {"count": count, "ndim": len(shape), "shape": padded(shape)}
        blocks = min(-(-count // threads), MOST_BLOCKS)
        queue_kernel(
            self._programs[key], (blocks, 1, 1, threads, 1, 1, 0, 0),
            struct_of(head, parameters, operands),
            tuple(operands[self.nin :]), tuple(operands[: self.nin]), title,
        )  # fmt: skip

    def _program(self, parameters, codes, is_flat):
        texts = texts_of(range(len(parameters)), parameters, codes, self.nin, is_flat,
                         Axes("i", "shape", "ndim"))  # fmt: skip
        text = _TEXT.format(
            preamble=self.preamble,
            types=typedefs(parameters, codes),
            prepare=self.loop_prep,
            operation=self.operation,
            after=self.after_loop,
            **texts._asdict(),
        )
        return with_math(self.name, text, self.options)
