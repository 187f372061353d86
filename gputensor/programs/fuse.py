"""`fuse`: runs a function's element-wise steps and reductions as one kernel.

The function is traced; its calls become the trees of one formula (`_kernels/formula.py`) over the
axes of its largest tensor. All reductions must be along the same axes, the columns of the formula.
An error names the line that does not fit into one kernel.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import types
from typing import NamedTuple

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.formula import (
    FOLDS,
    MAX_DEPTH,
    MAX_LOADS,
    MAX_RESULTS,
    MAX_WRITTEN,
    OPERATIONS,
    formula,
)
from gputensor.errors import Described, TraceError, argument_error
from gputensor.nn import queue_views
from gputensor.programs import tree
from gputensor.programs.dims import row_major
from gputensor.programs.function import Number
from gputensor.programs.passes.clean import clean
from gputensor.programs.trace_device import active
from gputensor.programs.tracing import Source, Spec, leaves_of, trace_function
from gputensor.streams.queue import device_number
from gputensor.tensor.core import Tensor, device_number_of
from gputensor.tensor.interop import asarray
from gputensor.tensor.manipulation import empty

__all__ = ["Fused", "fuse"]

_KINDS = {row.name: row.kind for row in DTYPES}


def _is_tensor(part):
    return type(part) is Tensor


def fuse(fn=None, *, kernel_name=None):
    """Return `fn` as one kernel: its element-wise steps, reductions and row functions.

    The kernel is made at the first call with each signature. Values between the steps are not
    rounded: they are float32, or float64 if a tensor is float64. Reductions are along the same axes
    of the largest shape; all other tensors broadcast to that shape. If `fn` is called while another
    function is traced, it becomes part of that trace.

    Parameters
    ----------
    fn : callable
        A function of trees of tensors on one device, and Python values.

    Returns
    -------
    callable
        Takes the arguments of `fn` and returns its result.

    Raises
    ------
    TraceError
        At the first call, if a line of `fn` cannot be part of one kernel.
    TypeError
        If `fn` is not callable.

    Examples
    --------
    >>> import gputensor as gt
    >>> @gt.fuse
    ... def centred(x):
    ...     return x - gt.mean(x, axis=-1, keepdims=True)
    >>> centred(gt.asarray([[1.0, 3.0]], device="host")).numpy()
    array([[-1.,  1.]], dtype=float32)
    """
    if kernel_name is not None and not isinstance(kernel_name, str):
        raise argument_error(TypeError, "fuse: kernel_name", kernel_name, "a str")
    if fn is None:
        return fuse
    if not callable(fn):
        raise argument_error(TypeError, "fn", fn, "a function")
    return Fused(fn)


class Load(NamedTuple):
    """An input or constant that the kernel reads, with strides along the formula's axes."""

    source: object  # the number of a leaf, or a tensor from outside
    strides: tuple
    offset: int


class Result(NamedTuple):
    shape: tuple  # of the tensor
    dtype: str
    view: tuple  # (shape, strides) along the formula's axes


class Kernel(NamedTuple):
    """The formula of one signature, with its loads and results."""

    trees: tuple
    row_ndim: int
    shape: tuple  # of the formula: rows, then columns
    loads: tuple
    results: tuple
    structure: object


class Fused:
    """The callable that :func:`fuse` returns."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn
        try:
            self.signature = inspect.signature(fn)
        except (TypeError, ValueError):
            rule = "a function with a signature"
            raise argument_error(TypeError, "fuse: fn", fn, rule) from None
        self.kernels = {}  # signature of the arguments -> Kernel

    def __call__(self, *arguments, **named):
        if active() is not None:
            return self.fn(*arguments, **named)
        bound = self.signature.bind(*arguments, **named)
        leaves, structure = tree.flatten(bound.arguments, _is_tensor)
        leaves = [leaf for _path, leaf in leaves]
        if not all(leaf.size for leaf in leaves):  # there is nothing to fuse
            return self.fn(*arguments, **named)
        devices = {device_number_of(leaf) for leaf in leaves}
        if len(devices) > 1:
            got = Described("tensors on several devices")
            raise argument_error(ValueError, self.fn.__name__, got, "tensors on one device")
        device = devices.pop() if devices else device_number(None)
        key = structure, device, tuple([(leaf.dtype.num, leaf.shape) for leaf in leaves])
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = self._made(structure, leaves, device)
        return self._run(kernel, leaves, device)

    def __get__(self, instance, owner=None):
        """Return the callable as a method: `self` is its first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def _made(self, structure, leaves, device):
        specs = [Spec(leaf.shape, leaf.dtype) for leaf in leaves]
        name = getattr(self.fn, "__name__", "main")
        name = name if name.isidentifier() else "main"
        none = (*leaves_of("weights", {}), *leaves_of("state", {}))
        source = Source(name, self.fn, tree.unflatten(structure, specs), *none)
        function, weights = trace_function(source, device)
        function = clean(function, weights)  # steps that no result needs may be of any kind
        return _Fusing(name, function, weights, _first_line(self.fn)).kernel()

    def _run(self, kernel, leaves, device):
        reads = []
        for load in kernel.loads:
            given = leaves[load.source] if isinstance(load.source, int) else load.source
            if not hasattr(given, "data_ptr"):
                given = asarray(given, device=device)
            view = (kernel.shape, load.strides, load.offset)
            reads.append((given.contiguous(), *view))
        made = [empty(one.shape, dtype=one.dtype, device=device) for one in kernel.results]
        if math.prod(kernel.shape):
            views = [(out, *one.view, 0) for out, one in zip(made, kernel.results, strict=True)]
            queue_views("formula", (kernel.trees, kernel.row_ndim), views, reads)
        return tree.unflatten(kernel.structure, made)


def _first_line(fn):
    """Return "file:line" of a function's first line, or "" for another callable."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else ""


def _is_permuted(one):
    """Whether the axes of an operand are not in the order in which they lie in memory."""
    strides = [stride for extent, stride in zip(one.shape, one.strides, strict=True)
               if extent > 1 and stride]  # fmt: skip
    return strides != sorted(strides, reverse=True)


class _Fusing:
    """Converts the calls of a traced function to one formula."""

    def __init__(self, name, function, weights, first_line):
        self.name, self.function, self.weights = name, function, weights
        self.trees = {}  # number of a temporary -> its tree
        self.axes = {}  # number of a temporary -> the axis of the formula for each of its axes
        self.sizes = {}  # id of a tree that self.trees contains -> its depth and steps
        self.loads = []
        self.line = self.first_line = first_line
        shapes = [one.shape for call in function.calls for one in (*call.writes, *call.reads)
                  if one is not None and not isinstance(one, Number)]  # fmt: skip
        self.whole = max(shapes, key=lambda shape: (math.prod(shape), len(shape)), default=())
        self.columns = self._columns()
        rows = [axis for axis in range(len(self.whole)) if axis not in self.columns]
        self.order = (*rows, *self.columns)

    def _refuse(self, what, rule):
        raise TraceError(self.line, f"{self.name}: got {what}", f"one kernel takes {rule}")

    def _columns(self):
        """Return the axes of the reductions, or the last axis without reductions."""
        found = None
        for call in self.function.calls:
            self.line = call.line
            shape = call.reads[0].shape if call.name in ("reduce", "formula") else None
            if shape is None:
                continue
            is_row = call.attributes.get("row_ndim", len(shape)) < len(shape)
            if is_row and _is_permuted(call.reads[0]):
                self._refuse("softmax or a norm along an axis that is not the last in memory",
                             "these along the last axes")  # fmt: skip
            if shape != self.whole:
                self._refuse(f"a reduction of shape {shape}", f"reductions of shape {self.whole}")
            count = len(shape)
            given = call.attributes.get("axes")
            axes = tuple(range(count - call.attributes["row_ndim"], count) if given is None
                         else given)  # fmt: skip
            if found not in (None, axes):
                self._refuse(f"a reduction along axes {axes}", f"axes {found}, as before")
            found = axes
        last = len(self.whole) - 1
        return found if found is not None else (last,) if last >= 0 else ()

    def kernel(self):
        """Return the Kernel; raise TraceError for a call that does not fit."""
        for call in self.function.calls:
            self.line = call.line
            if any(one is not None for one in call.into):
                self._refuse("a write to a part of a tensor", "whole results")
            make = {"elementwise": self._elementwise, "reduce": self._reduce,
                    "formula": self._formula}.get(call.name)  # fmt: skip
            if make is None:
                self._refuse(f"the call {call.name}", "element-wise steps and reductions")
            make(call)
        self.line = self.first_line
        if not 1 <= len(self.function.outputs) <= MAX_RESULTS:
            count = len(self.function.outputs)
            self._refuse(f"{count} tensors as results", f"functions that return 1 to {MAX_RESULTS}")
        try:
            trees, results = zip(*map(self._result, self.function.outputs), strict=True)
            formula(trees)
        except ValueError as error:
            self._refuse(f"too many steps ({error})", "fewer")
        shape = tuple(self.whole[axis] for axis in self.order)
        return Kernel(trees, len(self.columns), shape, tuple(self.loads), results,
                      self.function.result)  # fmt: skip

    # ---- operands

    def _places(self, call, shape):
        """Return the axis of the formula for each axis of a call.

        It is that of the temporaries that the call reads, or counts from the right.
        """
        places = [None] * len(shape)
        for one in call.reads:
            if one is None or isinstance(one, Number) or one.value not in self.trees:
                continue
            for axis, place in self._walked(one):
                if places[axis] not in (None, place):
                    self._refuse("tensors with permuted axes", "axes in one order")
                places[axis] = place
        shift = len(self.whole) - len(shape)
        for axis, extent in enumerate(shape):
            if places[axis] is None and extent > 1:
                places[axis] = axis + shift
            if extent > 1 and (places[axis] < 0 or self.whole[places[axis]] != extent):
                self._refuse(f"the shape {shape}", f"shapes that broadcast to {self.whole}")
        known = [place for place in places if place is not None]
        if sorted(set(known)) != known:
            self._refuse("tensors with permuted axes", "axes in one order")
        return places

    def _walked(self, one):
        """Yield (axis of the view, axis of the formula) for the axes of a temporary's view."""
        axes, shape = self.axes[one.value]
        dense = {stride: axis for axis, (stride, extent) in
                 enumerate(zip(row_major(shape), shape, strict=True)) if extent > 1}  # fmt: skip
        if one.offset:
            self._refuse("a part of a tensor", "whole tensors")
        for axis, (extent, stride) in enumerate(zip(one.shape, one.strides, strict=True)):
            if extent > 1 and stride:
                if stride not in dense or shape[dense[stride]] != extent:
                    self._refuse("a view that moves elements", "broadcasting and axes of extent 1")
                yield axis, axes[dense[stride]]

    def _tree(self, one, places):
        """Return the tree of an operand that a call reads."""
        if isinstance(one, Number):
            value = one.value
            if isinstance(value, complex):
                self._refuse("a complex number", "real numbers")
            value = float(value) if not isinstance(value, bool) else int(value)
            return ("number", value if math.isfinite(value) else str(value))
        if one.value in self.trees:
            return self.trees[one.value]
        strides = [0] * len(self.whole)
        for axis, (extent, stride) in enumerate(zip(one.shape, one.strides, strict=True)):
            if extent > 1:
                strides[places[axis]] = stride
        if _KINDS[one.dtype] == "complex":
            self._refuse(f"the dtype {one.dtype}", "real dtypes")
        value = self.function.values[one.value]
        numbers = [i for i, given in enumerate(self.function.inputs)
                   if given.operand.value == one.value]  # fmt: skip
        if value.kind not in ("input", "weight", "constant"):
            self._refuse("a tensor that was never written", "results of steps")
        source = numbers[0] if numbers else self.weights[value.name].source
        load = Load(source, tuple(strides[axis] for axis in self.order), one.offset)
        for number, known in enumerate(self.loads):
            if known.source is load.source and known[1:] == load[1:]:
                return ("load", number)
        if len(self.loads) == MAX_LOADS:
            self._refuse("one more tensor", f"at most {MAX_LOADS} tensors")
        self.loads.append(load)
        return ("load", len(self.loads) - 1)

    # ---- calls

    def _keep(self, out, made, places):
        self.trees[out.value], self.axes[out.value] = made, (tuple(places), out.shape)
        depth, steps = self._size(made)
        if depth > MAX_DEPTH:
            self._refuse(f"{depth} steps, each of which needs the one before", f"{MAX_DEPTH}")
        if steps > MAX_WRITTEN:
            self._refuse(f"{steps} steps, with repetitions", f"{MAX_WRITTEN}")

    def _size(self, node):
        """Return the depth of a tree, and the number of its steps with repetitions."""
        found = self.sizes.get(id(node))
        if found is None:
            parts = [self._size(part) for part in node[1:] if isinstance(part, tuple)]
            depth = max((one[0] for one in parts), default=-1) + 1
            found = self.sizes[id(node)] = depth, 1 + sum(one[1] for one in parts)
        return found

    def _elementwise(self, call):
        op, compute = call.attributes["op"], call.attributes["compute"]
        (out,) = call.writes
        places = self._places(call, out.shape)
        parts = [self._tree(one, places) for one in call.reads]
        if op == "copy":
            return self._keep(out, self._cast(parts[0], call.reads[0].dtype, out.dtype), places)
        if _KINDS[compute] not in ("float", "bool") or op not in OPERATIONS:
            self._refuse(f"{op} of {compute}", "steps on floating-point numbers and bools")
        return self._keep(out, (op, *parts), places)

    def _cast(self, part, source, target):
        kinds = _KINDS[source], _KINDS[target]
        if target == "bool":
            return part if source == "bool" else ("ne", part, ("number", 0))
        if kinds[1] in ("float", "small"):
            is_narrower = np.dtype(_numpy(target)).itemsize < np.dtype(_numpy(source)).itemsize
            is_halved = kinds[0] != "float" and target not in ("float32", "float64")
            return ("round", target, part) if is_narrower or is_halved else part
        return self._refuse(f"a cast from {source} to {target}", "floating-point dtypes")

    def _reduce(self, call):
        op, compute = call.attributes["op"], call.attributes["compute"]
        (one,), (out,) = call.reads, call.writes
        if op not in (*FOLDS, "var") or _KINDS[compute] != "float":
            known = ", ".join((*FOLDS, "var"))
            self._refuse(f"{op} of {compute}", f"{known} of floating-point numbers")
        places = self._places(call, one.shape)
        kept = [place for place in range(len(self.whole)) if place not in self.columns]
        tree = self._tree(one, places)
        if op == "var":
            away = ("sub", tree, ("fold", "mean", tree))
            op, tree = "mean", ("mul", away, away)
        self._keep(out, ("fold", op, tree), kept)

    def _formula(self, call):
        places = self._places(call, call.reads[0].shape)
        parts = [self._tree(one, places) for one in call.reads]
        for given, out in zip(call.attributes["trees"], call.writes, strict=True):
            self._keep(out, _replaced(given, parts), range(len(self.whole)))

    def _result(self, output):
        """Return the tree of an output, and its Result: the layout along the formula's axes."""
        one = output.operand
        if one.value not in self.trees:
            self._refuse("an argument as the result", "results of steps")
        made, (axes, shape) = self.trees[one.value], self.axes[one.value]
        is_row = not formula((made,)).by_column[made] if _loads(made) else True
        size = math.prod(self.whole[axis] for axis in self.order[: -len(self.columns) or None])
        if math.prod(shape) != (size if is_row else math.prod(self.whole)):
            rule = f"results of shape {self.whole}, or of that without columns"
            self._refuse(f"a result of shape {shape}", rule)
        strides = dict.fromkeys(range(len(self.whole)), 0)
        for axis, (extent, stride) in enumerate(zip(shape, row_major(shape), strict=True)):
            if extent > 1:
                strides[axes[axis]] = stride
        view = [1 if is_row and axis in self.columns else self.whole[axis] for axis in self.order]
        view = (tuple(view), tuple(strides[axis] for axis in self.order))
        return made, Result(one.shape, one.dtype, view)


def _numpy(name):
    return next(row.numpy for row in DTYPES if row.name == name)


def _loads(node):
    """Whether a tree reads an operand."""
    return node[0] == "load" or any(_loads(part) for part in node[1:] if isinstance(part, tuple))


def _replaced(node, parts):
    """Return a formula's tree with the trees of its operands in place of loads."""
    if node[0] == "load":
        return parts[node[1]]
    return tuple(_replaced(one, parts) if isinstance(one, (tuple, list)) else one for one in node)
