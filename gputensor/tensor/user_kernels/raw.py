"""Complete CUDA C++ kernels, with CuPy's arguments: `RawKernel`, and `RawModule` for several."""

import math
import operator
import re
from os import PathLike
from pathlib import Path

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor
from gputensor.tensor.engine import queue_kernel
from gputensor.tensor.user_kernels.attributes import DECLARED, KernelAttributes
from gputensor.tensor.user_kernels.texts import (
    MOST_THREADS,
    UserProgram,
    named,
    number_of,
    option_list,
    packed,
    settings,
)

__all__ = ["RawKernel", "RawModule"]

CUPY_SETTINGS = ("translate_cucomplex", "enable_cooperative_groups", "jitify")
_EXPRESSION = re.compile(r"[A-Za-z_][\w:]*\s*(<.*>)?")
# The bounds of a kernel's launch, before its name.
_BOUNDS = (
    r"__launch_bounds__\s*\(((?:[^()]|\([^()]*\))*)\)\s*"
    r"(?:__global__\s+)?(?:void\s+)?{name}\s*\("
)
_NUMBERS = re.compile(r"[\d\s,()*/+-]+")
# The user's function is called by a kernel, which takes its bounds over. The pointers of a call
# convert to the types that the function declares.
_HEAD = """#undef __global__
#undef __launch_bounds__
#define __global__ __device__
#define __launch_bounds__(...)
#line 1 "{path}"
{code}
"""
_TAIL = """
struct GputensorPointer {{
    unsigned long long address;
    template <class T> __device__ operator T*() const {{ return (T*)address; }}
}};
struct Parameters {{
{fields}
}};
extern "C" __attribute__((global)){bounds} void kernel(const Parameters p) {{
    {name}({values});
}}
"""


def _bounds_of(code, name):
    """Return the attribute for the ``__launch_bounds__`` of a kernel, or no text.

    Those of a template count only where they are numbers, since others may name its parameters.
    """
    plain, is_template, _ = name.partition("<")
    found = re.search(_BOUNDS.format(name=re.escape(plain.strip())), code)
    if not found or (is_template and not _NUMBERS.fullmatch(found[1])):
        return ""
    return f" __attribute__((launch_bounds({found[1]})))"


def _extents(value, name, limits, most=None):
    """Return the three extents of a grid or a block, within CUDA's limits."""
    given = value if isinstance(value, (tuple, list)) else (value,)
    try:
        found = tuple(operator.index(one) for one in given)
    except TypeError:
        raise argument_error(TypeError, f"RawKernel: {name}", value, "1 to 3 ints") from None
    in_range = all(0 < one <= limit for one, limit in zip(found, limits, strict=False))
    if not 1 <= len(found) <= 3 or not in_range or (most and math.prod(found) > most):
        product = f", with a product of at most {most}" if most else ""
        rule = f"1 to 3 ints above 0 and at most {limits}{product}"
        raise argument_error(ValueError, f"RawKernel: {name}", value, rule)
    return found + (1,) * (3 - len(found))


class RawKernel(KernelAttributes):
    """A kernel in CUDA C++, launched with a grid, a block and arguments.

    Parameters
    ----------
    code : str
        CUDA C++ source with the kernel: ``extern "C" __global__ void NAME(...)``.
    name : str
        The kernel's name; for a template with its arguments: ``"scale<float>"``.
    options : sequence of str
        Options of NVRTC, such as ``--use_fast_math``.
    backend, translate_cucomplex, enable_cooperative_groups, jitify
        As in CuPy; only their defaults are supported.

    Notes
    -----
    ``kernel(grid, block, arguments, shared_mem=0)`` queues a launch. `grid` and `block` are tuples
    of up to 3 ints. Arguments are numbers, and tensors on one CUDA device, which are passed as
    pointers to their first element. A number is converted to the type of its parameter; in CuPy it
    must have that type's size. Every tensor counts as written, so the launch is ordered with all
    other uses of its memory on any stream. The kernel receives no strides: it sees memory as it is.

    The function is called from a kernel of the library, so its parameters cannot be
    ``__grid_constant__``, and it cannot be launched from device code. ``__launch_bounds__`` has no
    effect where it names the parameters of a template.

    `attributes`, `num_regs`, `local_size_bytes` and the other attributes of CuPy are those of the
    code on the current device: of the latest launch, or before any launch of the function with the
    types that it declares. `max_dynamic_shared_size_bytes` and `preferred_shared_memory_carveout`
    can be set. A launch with more `shared_mem` than before needs no setting.

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

    def __init__(self, code, name, options=(), backend="nvrtc", **others):
        if not isinstance(code, str):
            raise argument_error(TypeError, "RawKernel: code", code, "a str of CUDA C++")
        settings({key: False for key in CUPY_SETTINGS}, others, "RawKernel")
        if backend != "nvrtc" or any(others.values()):
            got = Described("another compiler, or CuPy's additions to it")
            raise argument_error(ValueError, "RawKernel: backend", got, "'nvrtc' alone")
        self.code, self.name = code, named(name, "RawKernel", _EXPRESSION)
        self.options = option_list(options, "RawKernel")
        self._programs = {}
        self._latest = None
        super().__init__()

    def __repr__(self):
        return f"RawKernel({self.name!r})"

    def compile(self, log_stream=None):
        """Do nothing; the kernel is compiled for its arguments' types at the first launch."""

    def _program(self, types):
        """Return the program whose struct has parameters of these C types."""
        if types not in self._programs:
            fields = "\n".join(f"    {one} a{i};" for i, one in enumerate(types)) or "    int none;"
            values = ", ".join(f"p.a{i}" for i in range(len(types)))
            self._programs[types] = self._written(_TAIL, fields=fields, values=values)
        return self._programs[types]

    def _written(self, tail, **parts):
        """Return the program of the user's text and a kernel that calls its function."""
        path = f"{self.name.partition('<')[0].strip()}.cu"
        bounds = _bounds_of(self.code, self.name)
        text = _HEAD.format(path=path, code=self.code)
        text += tail.format(name=self.name, bounds=bounds, **parts)
        return UserProgram(path, text, self.options)

    def _known_program(self):
        """Return the program of the latest launch, or one with the declared parameters."""
        if self._latest is None:
            self._latest = self._written(DECLARED)
        return self._latest

    def __call__(self, grid, block, args, *, shared_mem=0):
        """Queue a launch on the current stream; see the class."""
        title = f"RawKernel {self.name}"
        grid = _extents(grid, "grid", (2**31 - 1, 65535, 65535))
        block = _extents(block, "block", (1024, 1024, 64), MOST_THREADS)
        types, values, tensors = [], [], []
        for one in args:
            if isinstance(one, Tensor):
                tensors.append(one)
                types.append("GputensorPointer")
                values.append(np.uint64(one.data_ptr()))
            else:
                kind, number = number_of(one, title)
                types.append(kind)
                values.append(number)
        if not tensors:
            got = Described("no tensor")
            rule = "at least one, which determines the device"
            raise argument_error(ValueError, f"{title}: args", got, rule)
        shared = operator.index(shared_mem)
        if not 0 <= shared < 1 << 20:
            raise argument_error(ValueError, f"{title}: shared_mem", shared_mem, "0 to 1 MiB")
        program = self._program(tuple(types))
        device = tensors[0].device.number
        if device >= 0:
            self._settle(program, device)
        extents = (*grid, *block, shared, self._most_shared(shared))
        queue_kernel(program, extents, packed(values), tuple(tensors), (), title)
        self._latest = program


class RawModule:
    """CUDA C++ source with several kernels, which may be templates.

    Parameters
    ----------
    code : str
        CUDA C++ source.
    path : str or path
        A file with the source, instead of `code`.
    options : sequence of str
        Options of NVRTC.
    name_expressions : sequence of str, optional
        The template instances that will be used, such as ``"scale<float>"``; default: any.
    backend, translate_cucomplex, enable_cooperative_groups, jitify
        As in CuPy; only their defaults are supported.

    Notes
    -----
    Each kernel is compiled separately at its first launch, so kernels do not share ``__device__``
    variables of the source, and there is no `get_global`.

    Examples
    --------
    >>> import gputensor as gt
    >>> module = gt.RawModule(code=r'''
    ... template <class T> __global__ void scale(T* x, T factor, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) x[i] *= factor;
    ... }''', name_expressions=["scale<float>", "scale<double>"])
    >>> scale = module.get_function("scale<float>")
    >>> if gt.is_available():
    ...     x = gt.ones(1000, device="cuda")
    ...     scale((4,), (256,), (x, 2.0, 1000))
    """

    def __init__(self, *, code=None, path=None, options=(), name_expressions=None, **others):
        if (code is None) == (path is None):
            got = Described("both" if code is not None else "neither")
            raise argument_error(TypeError, "RawModule: code, path", got, "exactly one of them")
        if not isinstance(path, (str, PathLike, type(None))):
            raise argument_error(TypeError, "RawModule: path", path, "a path")
        self.code = Path(path).read_text() if code is None else code
        # Checks the arguments that a single kernel has too.
        RawKernel(self.code, "kernel", options, others.pop("backend", "nvrtc"), **others)
        self.options = option_list(options, "RawModule")
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)
        self._kernels = {}

    def __repr__(self):
        return f"RawModule({len(self.code)} characters)"

    def get_function(self, name):
        """Return the :class:`RawKernel` of a kernel's name or of a name expression."""
        listed = self.name_expressions
        is_plain = isinstance(name, str) and "<" not in name
        if listed is not None and not is_plain and name not in listed:
            rule = f"one of the name expressions: {', '.join(listed)}"
            raise argument_error(ValueError, "RawModule: name", name, rule)
        if name not in self._kernels:
            self._kernels[name] = RawKernel(self.code, name, self.options)
        return self._kernels[name]

    def compile(self, log_stream=None):
        """Do nothing; kernels are compiled for their arguments' types at the first launch."""
