"""Kernels that programs bring along, with CuPy's arguments: `RawKernel` and `ElementwiseKernel`.

The text is CUDA C++. It is compiled by NVRTC at its first launch on a device, kept in the library's
cache on disk, and launched on the current stream, behind the earlier uses of its operands. The
library launches kernels with one struct of parameters, so a small kernel around the program's
function unpacks it: arguments are converted as C++ converts them in a call. Host devices cannot run
CUDA C++ and say so.
"""

import math
import operator
import re
from typing import NamedTuple

import numpy as np

from gputensor._arrays.dtypes import dtype_code
from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.promotion import result_type
from gputensor._kernels.program import Program
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor
from gputensor.tensor.engine import queue_kernel
from gputensor.tensor.interop import asarray, ascontiguous, astype
from gputensor.tensor.manipulation import broadcast_to, empty
from gputensor.tensor.manipulation.axes import broadcast_shapes

__all__ = ["ElementwiseKernel", "RawKernel"]

MOST_THREADS = 1024
THREADS = 256
CUPY_SETTINGS = ("translate_cucomplex", "enable_cooperative_groups", "jitify")
ELEMENTWISE_SETTINGS = {
    "preamble": "",
    "no_return": False,
    "return_tuple": False,
    "loop_prep": "",
    "after_loop": "",
    "options": (),
}
MOST_BLOCKS = 1 << 20
_NAME = re.compile(r"[A-Za-z_]\w*")
_C_TYPES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long long", "uint8": "unsigned char", "uint16": "unsigned short",
    "uint32": "unsigned int", "uint64": "unsigned long long", "float32": "float",
    "float64": "double",
}  # fmt: skip
# The pointers of a call convert to what the program's function declares.
_HEAD = """#pragma push_macro("__global__")
#undef __global__
#define __global__ __device__
#line 1 "{path}"
{code}
#pragma pop_macro("__global__")
"""
_TAIL = """
struct GputensorPointer {{
    unsigned long long address;
    template <class T> __device__ operator T*() const {{ return (T*)address; }}
}};
struct Parameters {{
{fields}
}};
extern "C" __attribute__((global)) void kernel(const Parameters p) {{
    {name}({values});
}}
"""


class UserProgram(NamedTuple):
    """A program of the user, in the place of a `Program`: text that is there already."""

    path: str
    source: str
    options: tuple
    minimum: int = 0
    architecture: str = ""
    entry: str = "kernel"

    def text(self):
        """Return the whole text."""
        return self.source


def _extents(value, name, most):
    """Three extents of a grid or a block."""
    given = value if isinstance(value, (tuple, list)) else (value,)
    try:
        found = tuple(operator.index(one) for one in given)
    except TypeError:
        raise argument_error(TypeError, f"RawKernel: {name}", value, "1 to 3 ints") from None
    if not 1 <= len(found) <= 3 or any(one < 1 for one in found) or math.prod(found) > most:
        rule = f"1 to 3 ints above 0, at most {most} together"
        raise argument_error(ValueError, f"RawKernel: {name}", value, rule)
    return found + (1,) * (3 - len(found))


def _options(options, name):
    if isinstance(options, str) or not all(isinstance(one, str) for one in options):
        raise argument_error(TypeError, f"{name}: options", options, "a sequence of str")
    return tuple(options)


def _settings(defaults, given, owner):
    """The defaults with what is given by keyword; TypeError for a keyword that is none."""
    unknown = given.keys() - defaults.keys()
    if unknown:
        got = Described(", ".join(sorted(unknown)))
        raise argument_error(TypeError, f"{owner}: keywords", got, ", ".join(defaults))
    return defaults | given


def _named(name, owner):
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise argument_error(ValueError, f"{owner}: name", name, "a name of C++")
    return name


def _number(value, owner):
    """The C type of a number, and the number in NumPy's type of that size."""
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64")):
        if isinstance(value, kind):
            return _C_TYPES[name], np.dtype(name).type(value)
    if isinstance(value, np.generic) and value.dtype.name in _C_TYPES:
        return _C_TYPES[value.dtype.name], value
    rule = "a Tensor, a bool, an int, a float or a scalar of NumPy"
    raise argument_error(TypeError, f"{owner}: argument", value, rule)


class RawKernel:
    """A kernel of CUDA C++ text, launched with a grid, a block and arguments.

    Parameters
    ----------
    code : str
        CUDA C++ text with the kernel: ``extern "C" __global__ void NAME(...)``.
    name : str
        The kernel's name.
    options : sequence of str
        Options of NVRTC, such as ``--use_fast_math``.
    backend, translate_cucomplex, enable_cooperative_groups, jitify
        CuPy's. Only their defaults are supported.

    Notes
    -----
    ``kernel(grid, block, arguments, shared_mem=0)`` queues a launch. `grid` and `block` are tuples
    of up to 3 ints. Arguments are tensors on one CUDA device, which arrive as pointers to their
    first element, and numbers. A number is converted to the type of its parameter; in CuPy it has
    to have that type's size. Every tensor that may be written counts as written, so the launch is
    ordered with all other uses of its memory on any stream. Strides are the kernel's business: it
    sees memory as it is.

    The function is called from a kernel of the library, so its parameters cannot be
    ``__grid_constant__``, and it cannot be launched from device code.

    Examples
    --------
    >>> import gputensor as gt
    >>> add = gt.RawKernel(r'''
    ... extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) out[i] = x[i] + y[i];
    ... }''', "add")
    >>> if gt.is_available():
    ...     x = gt.ones(1000, device="cuda")
    ...     out = gt.empty_like(x)
    ...     add((4,), (256,), (x, x, out, 1000))
    """

    def __init__(self, code, name, options=(), backend="nvrtc", **settings):
        if not isinstance(code, str):
            raise argument_error(TypeError, "RawKernel: code", code, "a str of CUDA C++")
        _settings({key: False for key in CUPY_SETTINGS}, settings, "RawKernel")
        if backend != "nvrtc" or any(settings.values()):
            got = Described("another compiler, or CuPy's additions to it")
            raise argument_error(ValueError, "RawKernel: backend", got, "'nvrtc' by itself")
        self.code, self.name = code, _named(name, "RawKernel")
        self.options = _options(options, "RawKernel")
        self._programs = {}

    def __repr__(self):
        return f"RawKernel({self.name!r})"

    def _program(self, types):
        """The program whose struct has parameters of these C types."""
        if types not in self._programs:
            fields = "\n".join(f"    {one} a{i};" for i, one in enumerate(types)) or "    int none;"
            values = ", ".join(f"p.a{i}" for i in range(len(types)))
            path = f"{self.name}.cu"
            text = _HEAD.format(path=path, code=self.code)
            text += _TAIL.format(fields=fields, name=self.name, values=values)
            self._programs[types] = UserProgram(path, text, self.options)
        return self._programs[types]

    def __call__(self, grid, block, args, *, shared_mem=0):
        """Queue a launch on the current stream; see the class."""
        title = f"RawKernel {self.name}"
        grid = _extents(grid, "grid", 2**31 - 1)
        block = _extents(block, "block", MOST_THREADS)
        types, values, tensors = [], [], []
        for one in args:
            if isinstance(one, Tensor):
                tensors.append(one)
                types.append("GputensorPointer")
                values.append(np.uint64(one.data_ptr()))
            else:
                kind, number = _number(one, title)
                types.append(kind)
                values.append(number)
        if not tensors:
            got = Described("no tensor")
            raise argument_error(ValueError, f"{title}: args", got, "one at least: its device runs")
        shared = operator.index(shared_mem)
        if not 0 <= shared < 1 << 20:
            raise argument_error(ValueError, f"{title}: shared_mem", shared_mem, "0 to 1 MiB")
        parameters = _packed(values)
        queue_kernel(self._program(tuple(types)), grid + block, shared, parameters,
                     tuple(tensors), (), title)  # fmt: skip


def _packed(values):
    """The bytes of a C struct of the values, in order."""
    fields = [(f"a{i}", one.dtype) for i, one in enumerate(values)] or [("none", np.int32)]
    struct = np.zeros((), np.dtype(fields, align=True))
    for i, one in enumerate(values):
        struct[f"a{i}"] = one
    return struct.tobytes()


# ---- element by element


class Parameter(NamedTuple):
    """One declared parameter: ``raw T x``."""

    type: str
    name: str
    is_raw: bool


def _declared(text, argument):
    found = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        words = part.split()
        is_raw = words[0] == "raw"
        words = words[is_raw:]
        if len(words) != 2 or not all(_NAME.fullmatch(one) for one in words):
            rule = "'TYPE NAME' or 'raw TYPE NAME', with commas between"
            raise argument_error(ValueError, f"ElementwiseKernel: {argument}", text, rule)
        found.append(Parameter(*words, is_raw))
    return found


_ELEMENTWISE = """#include "gputensor/_kernels/cuda/math.cuh"
template <class T> struct GputensorRaw {{
    T* data; long long count;
    __device__ T& operator[](long long i) const {{ return data[i]; }}
    __device__ long long size() const {{ return count; }}
}};
struct GputensorIndex {{
    long long count;
    __device__ long long size() const {{ return count; }}
}};
{preamble}
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
_OFFSETS = """        long long rest = i;
        long long {starts};
        for (int d = (int)p.ndim - 1; d >= 0; --d) {{
            const long long here = rest % p.shape[d];
            rest /= p.shape[d];
            {steps}
        }}"""


class ElementwiseKernel:
    """A kernel that computes outputs element by element, from expressions of CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        Declarations such as ``"float32 x, T y, raw float64 table"``. A one-letter type takes that
        of its argument. `raw` parameters are not broadcast; the text indexes them itself.
    operation : str
        Statements for one element. `i` is its number, ``_ind.size()`` the number of elements.
    name : str
        For messages.
    preamble : str
        Text in front of the kernel: functions, constants.
    loop_prep, after_loop : str
        Statements before and behind each thread's loop.
    reduce_dims, no_return, return_tuple, options
        CuPy's. `reduce_dims` changes nothing.

    Notes
    -----
    ``kernel(*inputs, *outputs, size=None)``: inputs and outputs broadcast to one shape; outputs
    that are not given are made. `size` is the number of elements when every parameter is `raw`.
    float16 and bfloat16 are computed as float; complex numbers have `re` and `im`.

    Examples
    --------
    >>> import gputensor as gt
    >>> distance = gt.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "distance")
    >>> if gt.is_available():
    ...     print(distance(gt.ones(3, device="cuda"), 3.0).tolist())
    """

    def __init__(
        self, in_params, out_params, operation, name="kernel", reduce_dims=True, **settings
    ):
        found = _settings(ELEMENTWISE_SETTINGS, settings, "ElementwiseKernel")
        self.name = _named(name, "ElementwiseKernel")
        self._inputs = _declared(in_params, "in_params")
        self._outputs = _declared(out_params, "out_params")
        self.nin, self.nout = len(self._inputs), len(self._outputs)
        names = [one.name for one in (*self._inputs, *self._outputs)]
        if not self._outputs and not found["no_return"] or len(set(names)) < len(names):
            raise argument_error(ValueError, "ElementwiseKernel: out_params", out_params,
                                 "one parameter at least, and no name twice")  # fmt: skip
        self.operation, self.preamble = operation, found["preamble"]
        self.loop_prep, self.after_loop = found["loop_prep"], found["after_loop"]
        self.options = _options(found["options"], "ElementwiseKernel")
        self.no_return, self.return_tuple = found["no_return"], found["return_tuple"]
        self._programs = {}

    def __repr__(self):
        return f"ElementwiseKernel({self.name!r})"

    def __call__(self, *args, size=None, block_size=THREADS):
        """Compute the outputs; see the class."""
        title = f"ElementwiseKernel {self.name}"
        if len(args) not in (self.nin, self.nin + self.nout):
            got = Described(f"{len(args)} arguments")
            rule = f"{self.nin} inputs, or {self.nin + self.nout} with the outputs"
            raise argument_error(TypeError, title, got, rule)
        parameters = [*self._inputs, *self._outputs]
        given = [*args, *[None] * (len(parameters) - len(args))]
        dtypes = self._types(parameters, given, title)
        tensors = [one for one in given if isinstance(one, Tensor)]
        if not tensors:
            got = Described("numbers only")
            raise argument_error(TypeError, f"{title}: arguments", got, "one Tensor at least")
        shape = self._shape(parameters, given, size, title)
        device = tensors[0].device
        operands = []
        for place, (parameter, one) in enumerate(zip(parameters, given, strict=True)):
            dtype = dtypes[place]
            if one is None:
                if parameter.is_raw:
                    got = Described("no tensor")
                    raise argument_error(TypeError, f"{title}: {parameter.name}", got,
                                         "one: a raw output has a shape of its own")  # fmt: skip
                one = empty(shape, dtype, device=device)
            elif place < self.nin:
                one = one if isinstance(one, Tensor) else asarray(one, dtype, device=device)
                one = astype(one, dtype, copy=False)
                one = ascontiguous(one) if parameter.is_raw else broadcast_to(one, shape)
            elif (
                not isinstance(one, Tensor)
                or one.dtype != dtype
                or (not one.is_contiguous if parameter.is_raw else one.shape != shape)
            ):
                rule = f"a Tensor of {dtype} and shape {shape}"
                raise argument_error(TypeError, f"{title}: {parameter.name}", one, rule)
            operands.append(one)
        self._launch(parameters, operands, shape, min(int(block_size), MOST_THREADS), title)
        results = tuple(operands[self.nin :])
        if self.no_return:
            return None
        return results if self.return_tuple or len(results) != 1 else results[0]

    def _types(self, parameters, given, title):
        """The dtype of each parameter; a letter stands for that of the arguments."""
        letters = {}
        for parameter, one in zip(parameters, given, strict=True):
            if len(parameter.type) == 1 and one is not None:
                letters.setdefault(parameter.type, []).append(one)
        letters = {
            letter: next((one.dtype for one in ones if isinstance(one, Tensor)), None)
            or result_type(*ones)
            for letter, ones in letters.items()
        }
        dtypes = []
        for parameter in parameters:
            name = letters.get(parameter.type, parameter.type)
            if isinstance(name, str) and len(name) == 1:
                got = Described(f"no argument of type {name}")
                raise argument_error(
                    TypeError, f"{title}: {parameter.name}", got, "one, or a dtype"
                )
            dtypes.append(DTYPES[dtype_code(name)].numpy)
        return dtypes

    def _shape(self, parameters, given, size, title):
        shapes = [one.shape for parameter, one in zip(parameters, given, strict=True)
                  if isinstance(one, Tensor) and not parameter.is_raw]  # fmt: skip
        if size is not None:
            if shapes:
                got = Described("a size beside tensors that are not raw")
                raise argument_error(ValueError, f"{title}: size", got, "one or the other")
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
        fields = [("count", "i8"), ("ndim", "i8"), ("shape", "i8", 16)]
        values = [count, len(shape), [*shape, *[1] * (16 - len(shape))]]
        for i, (parameter, one) in enumerate(zip(parameters, operands, strict=True)):
            fields += [(f"p{i}", "u8"), (f"n{i}", "i8"), (f"s{i}", "i8", 16)]
            strides = [] if parameter.is_raw else [n // one.itemsize for n in one.strides]
            values += [one.data_ptr(), one.size, [*strides, *[0] * (16 - len(strides))]]
        struct = np.zeros((), np.dtype(fields, align=True))
        for (name, *_), value in zip(fields, values, strict=True):
            struct[name] = value
        blocks = min(-(-count // threads), MOST_BLOCKS)
        queue_kernel(
            self._programs[key], (blocks, 1, 1, threads, 1, 1), 0, struct.tobytes(),
            tuple(operands[self.nin :]), tuple(operands[: self.nin]), title,
        )  # fmt: skip

    def _program(self, parameters, codes, is_flat):
        fields, raws, loads, stores, types, starts, steps = [], [], [], [], {}, [], []
        for i, (parameter, code) in enumerate(zip(parameters, codes, strict=True)):
            row = DTYPES[code]
            kind = row.cuda if row.kind == "complex" else _C_TYPES.get(row.name, "float")
            name = parameter.name
            fields.append(f"    unsigned long long p{i}; long long n{i}; long long s{i}[16];")
            if len(parameter.type) == 1:
                types[parameter.type] = kind
            if parameter.is_raw:
                element = row.cuda if row.kind == "complex" or row.name in _C_TYPES else None
                if element is None:
                    rule = "32 bits or more for raw"
                    raise argument_error(TypeError, name, Described(row.name), rule)
                constant = "const " if i < self.nin else ""
                raws.append(f"    const GputensorRaw<{constant}{kind}> {name} = "
                            f"{{({constant}{kind}*)p.p{i}, p.n{i}}};")  # fmt: skip
                continue
            starts.append(f"o{i} = 0")
            steps.append(f"o{i} += here * p.s{i}[d];")
            place = f"(({row.cuda}*)p.p{i})[{'i' if is_flat else f'o{i}'}]"
            value = f"wide({place})" if kind == "float" else place
            if i < self.nin:
                loads.append(f"        const {kind} {name} = {value};")
            else:
                loads.append(f"        {kind} {name} = {value};")
                stores.append(f"        {place} = narrow<{row.cuda}>({name});")
        offsets = ""
        if not is_flat and starts:
            offsets = _OFFSETS.format(starts=", ".join(starts), steps=" ".join(steps))
        text = _ELEMENTWISE.format(
            preamble=self.preamble,
            fields="\n".join(fields),
            types="\n".join(f"typedef {kind} {letter};" for letter, kind in types.items()),
            raws="\n".join(raws),
            prepare=self.loop_prep,
            offsets=offsets,
            loads="\n".join(loads),
            operation=self.operation,
            stores="\n".join(stores),
            after=self.after_loop,
        )
        path = "gputensor/_kernels/cuda/math.cuh"
        head, body = text.split("\n", 1)
        whole = Program(path).text() + f'\n#line 1 "{self.name}.cu"\n' + body
        return UserProgram(f"{self.name}.cu", whole, self.options)
