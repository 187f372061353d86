"""`jit`: compiles a function at its first call with each signature."""

from __future__ import annotations

import functools
import inspect
import types
import warnings

from gputensor.blas.plan import precision_flags
from gputensor.errors import Described, argument_error
from gputensor.programs import tree
from gputensor.programs.compile import data_of
from gputensor.programs.program import Program
from gputensor.programs.trace_device import active
from gputensor.programs.tracing import Source, Spec, leaves_of
from gputensor.streams.queue import device_number
from gputensor.tensor.core import Tensor, device_number_of

__all__ = ["Jit", "jit"]

MANY_SHAPES = 9


def jit(fn):
    """Return `fn` compiled: traced at the first call with each signature, then run as a program.

    A signature is the structure of the arguments, the dtypes and shapes of their tensors, all
    Python values, the device, and the precision of products. Tensors that `fn` captures are kept as
    references, so later writes to them are visible. If `fn` is called while another function is
    traced, it becomes part of that trace. Results are equal to those of eager execution bit for
    bit, on inputs that are contiguous; others are copied first.

    A decorated method gets `self` as its first argument, so that must be a dataclass or another
    tree; for any other object, compile the bound method: ``self.step = gt.jit(self.step)``.

    Parameters
    ----------
    fn : callable
        A function of trees of tensors on one device, and Python values.

    Raises
    ------
    TraceError
        At the first call, if a line of `fn` cannot be part of a program.
    TypeError
        If `fn` is not callable.

    Examples
    --------
    >>> import gputensor as gt
    >>> double = gt.jit(lambda x: x + x)
    >>> double(gt.ones(2, device="host")).numpy()
    array([2., 2.], dtype=float32)
    """
    if not callable(fn):
        raise argument_error(TypeError, "fn", fn, "a function")
    return Jit(fn)


def _is_tensor(part):
    return type(part) is Tensor


class Jit:
    """The callable that :func:`jit` returns."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.signature = inspect.signature(fn)
        self.programs = {}  # signature -> Program
        self.shapes = {}  # signature without shapes -> the number of its shapes

    def __call__(self, *arguments, **named):
        if active() is not None:
            return self.fn(*arguments, **named)
        bound = self.signature.bind(*arguments, **named)
        leaves, structure = tree.flatten(bound.arguments, _is_tensor)
        devices = {device_number_of(leaf) for _path, leaf in leaves}
        if len(devices) > 1:
            got = Described("tensors on several devices")
            raise argument_error(ValueError, self.fn.__name__, got, "tensors on one device")
        device = devices.pop() if devices else device_number(None)
        kinds = (
            structure,
            device,
            precision_flags(),
            tuple([leaf.dtype.num for _path, leaf in leaves]),
        )
        key = kinds, tuple([leaf.shape for _path, leaf in leaves])
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = self._compiled(bound, device)
            self._count(kinds)
        return program(*bound.arguments.values())

    def __get__(self, instance, owner=None):
        """Return the callable as a method: `self` is its first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def _compiled(self, bound, device):
        leaves, structure = tree.flatten(bound.arguments, _is_tensor)
        specs = [Spec(leaf.shape, leaf.dtype) for _path, leaf in leaves]
        name = getattr(self.fn, "__name__", "main")
        source = Source(
            name if name.isidentifier() else "main",
            self.fn,
            tree.unflatten(structure, specs),
            *leaves_of("weights", {}),
            *leaves_of("state", {}),
        )
        return Program(data_of([source], device, is_reference=True), device)

    def _count(self, kinds):
        count = self.shapes[kinds] = self.shapes.get(kinds, 0) + 1
        if count == MANY_SHAPES:
            warnings.warn(
                f"{self.fn.__name__} is compiled for its {count}th shape; gt.compile with a gt.Dim "
                "makes one program for a range of sizes",
                RuntimeWarning,
                stacklevel=3,
            )
