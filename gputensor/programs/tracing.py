"""Traces a function at each sample of its dims, and merges the traces into one Function.

Parameters named `weights` and `state` receive those trees; all others receive tensors for their
specs. This module does not depend on devices or files; recorder.py records the calls, and
samples.py explains integers.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gputensor._arrays.dtypes import dtype_code
from gputensor._arrays.element_types import DTYPES, dtype_name
from gputensor._arrays.file_mapping import check_mapped
from gputensor.errors import Described, ProgramError, TraceError, argument_error
from gputensor.programs import dims as forms
from gputensor.programs import tree
from gputensor.programs.function import Argument, Call, Number, Operand, Value
from gputensor.programs.merging import merge
from gputensor.programs.recorder import Recorder
from gputensor.programs.sampling.agreement import WAY_OUT, check_at
from gputensor.programs.sampling.extents import Notes
from gputensor.programs.sampling.samples import confirming, samples
from gputensor.programs.sampling.ways import other_ways
from gputensor.programs.trace_device import Tracer
from gputensor.programs.verify_sizes import check_sizes
from gputensor.tensor.core import Tensor, storage_place

__all__ = [
    "Source",
    "Spec",
    "finish",
    "input_tensor",
    "is_spec",
    "operand_of",
    "spec",
    "trace_function",
]

_TREES = ("weights", "state")
_MOST_SAMPLES = 64


@dataclass(frozen=True)
class Spec:
    """The shape and dtype of an argument; extents may be `Dim`s."""

    shape: tuple
    dtype: Any

    def __repr__(self):
        return f"spec({self.shape}, {dtype_name(self.dtype)})"

    @property
    def form(self):
        """The shape as integers of the form."""
        return tuple(
            ("dim", extent.name) if isinstance(extent, forms.Dim) else extent
            for extent in self.shape
        )

    def dims(self):
        return [extent for extent in self.shape if isinstance(extent, forms.Dim)]


def is_spec(part):
    """Whether a part of the arguments is a spec."""
    return isinstance(part, Spec)


def spec(shape, dtype="float32"):
    """Return the Spec of an argument of a program: its shape and dtype.

    Parameters
    ----------
    shape : int or sequence of int and Dim
        At most 16 extents of 0 to 2**40.
    dtype : dtype

    Returns
    -------
    Spec

    Raises
    ------
    TypeError, ValueError
        For extents of another type or range.

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.spec((gt.Dim("batch", 1, 64), 784), gt.float16).shape[1]
    784
    """
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(shape) > 16:
        raise argument_error(ValueError, "shape", Described(f"{len(shape)} extents"), "at most 16")
    for extent in shape:
        if isinstance(extent, forms.Dim):
            continue
        if type(extent) is not int:
            raise argument_error(TypeError, "shape", extent, "ints and Dims")
        if not 0 <= extent <= 1 << 40:
            raise argument_error(ValueError, "shape", extent, "extents from 0 to 2**40")
    return Spec(shape, DTYPES[dtype_code(dtype)].numpy)


@dataclass
class Source:
    """A function to trace, with the trees of its arguments.

    `arguments` maps parameters to trees of specs and Python values; `weights` and `state` are lists
    of (name, dtype, shape, source), each with the structure of its tree.
    """

    name: str
    function: Any
    arguments: dict
    weights: list
    weights_tree: Any
    state: list
    state_tree: Any
    at: dict = field(default_factory=dict)  # sizes in place of dims of its specs

    def parameters(self):
        """The parameters of the function."""
        return inspect.signature(self.function).parameters


def arguments_of(name, function, specs, named):
    """Return the arguments of a function by parameter: `specs` in order, and `named`."""
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            got = Described(f"the parameter {parameter}")
            raise argument_error(TypeError, name, got, "parameters with names")
    plain = [p for p in parameters.values() if p.name not in _TREES]
    taken = [p for p in plain if p.kind != p.KEYWORD_ONLY]
    if len(specs) > len(taken):
        got = Described(f"{len(specs)} specs")
        raise argument_error(TypeError, name, got, f"at most {len(taken)}, one for each parameter")
    arguments = {p.name: given for p, given in zip(taken, specs, strict=False)}
    for key in named:
        if key not in [p.name for p in plain]:
            got = Described("an unknown option or argument")
            known = ", ".join(["weights", "state", "target", "at", *(p.name for p in plain)])
            raise argument_error(TypeError, key, got, f"one of {known}")
    arguments.update(named)
    arguments = {key: _specs_of(given, key) for key, given in arguments.items()}
    for parameter in plain:
        if parameter.default is parameter.empty and parameter.name not in arguments:
            got = Described("no spec")
            raise argument_error(TypeError, parameter.name, got, f"a spec, because {name} needs it")
    return {p.name: arguments[p.name] for p in plain if p.name in arguments}


def _specs_of(given, path):
    """Return a tree of arguments with the Spec of each tensor in its place."""
    leaves, structure = tree.flatten(given, lambda part: isinstance(part, (Spec, Tensor)), path)
    specs = [x if isinstance(x, Spec) else Spec(x.shape, x.dtype) for _path, x in leaves]
    return tree.unflatten(structure, specs)


#: Names that are those of constants, of first values of states, or of other entries of files.
_RESERVED = re.compile(r"(constant|state|pad)\..*|__metadata__", re.DOTALL)


def leaves_of(name, given):
    """Return ([(name, dtype, shape, source)], structure) of a tree of weights or states.

    A weight whose path is a reserved name is called ``weights.PATH``.
    """
    is_leaf = (Spec, Tensor, np.ndarray, np.generic)
    leaves, structure = tree.flatten(given, lambda part: isinstance(part, is_leaf), "")
    found = []
    for path, leaf in leaves:
        source = None if isinstance(leaf, Spec) else leaf
        if isinstance(leaf, Tensor) and not leaf.is_contiguous:
            source = leaf.contiguous()
        elif isinstance(leaf, (np.ndarray, np.generic)):
            source = leaf = _plain_array(path or name, np.asarray(leaf))
        shape = leaf.form if isinstance(leaf, Spec) else leaf.shape
        if any(type(extent) is tuple for extent in shape):
            raise argument_error(TypeError, path or name, Described("a Dim"), "ints in its shape")
        dtype = DTYPES[dtype_code(leaf.dtype)].name
        if name == "weights" and _RESERVED.fullmatch(path):
            path = f"weights.{path}"
            if any(path == other for other, _leaf in leaves):
                got = Described(f"two leaves {path!r}")
                raise argument_error(ValueError, name, got, "keys that give distinct names")
        found.append((path or name, dtype, tuple(shape), source))
    return found, structure


def _plain_array(name, array):
    """Return an array row-major, in the byte order of this machine, with bools of 0 and 1."""
    dtype = array.dtype.newbyteorder("=")
    try:
        dtype_code(dtype)
    except TypeError:
        got = Described(f"dtype {array.dtype}")
        raise argument_error(TypeError, name, got, "a dtype of the library") from None
    if dtype == np.bool_ or dtype != array.dtype or not array.flags.c_contiguous:
        check_mapped(array)  # it is read below
    made = np.ascontiguousarray(array, dtype).reshape(array.shape)
    if dtype == np.bool_ and made.view(np.uint8).max(initial=0) > 1:
        made = made.view(np.uint8) != 0
    return made


def trace_function(source, target):
    """Return the Function of a source for a device, and its weights by name.

    Raises `TraceError` for work that a program cannot represent.
    """
    inputs, structure = tree.flatten(source.arguments, is_spec)
    dims = {}
    for path, leaf in inputs:
        for dim in leaf.dims():
            if dims.setdefault(dim.name, dim) != dim:
                raise argument_error(ValueError, path, dim, f"{dims[dim.name]} as before")
    sizes, others = samples(dims.values()), []
    start = sizes[len(sizes) // 2]
    while True:
        runs = [_run(source, inputs, structure, one, target) for one in sizes]
        copy_outputs([run.function for run in runs])
        function, weights, explainer = merge([run[:2] for run in runs], sizes, dims)
        if not dims:
            break
        more = confirming(forms_of(function), dims.values(), sizes, start)
        if not more:
            others = other_ways([run.notes for run in runs], sizes, dims.values(), explainer)
            more = [one for one in others if _is_above(one, sizes[0])]
        if not more:
            break
        sizes += more
        if len(sizes) > _MOST_SAMPLES:
            last = next(reversed(runs[-1].notes.comparisons), None)
            line = last.line if last else ""
            problem = f"{source.name} takes another branch at each of {_MOST_SAMPLES} sizes"
            raise TraceError(line, problem, WAY_OUT)
    low = {dim.name: dim.low for dim in dims.values()}
    for one in others if low in (*sizes, *others) else (low, *others):
        check_at(function, _run(source, inputs, structure, one, target).function, one)
        try:
            check_sizes(function, one)
        except ProgramError as error:
            raise TraceError("", str(error), WAY_OUT) from None
    for argument, (_path, leaf) in zip(function.inputs, inputs, strict=True):
        operand = argument.operand
        strides = forms.row_major(leaf.form)
        argument.operand = operand._replace(shape=leaf.form, strides=strides)
    function.at = source.at
    return function, weights


def _is_above(sizes, least):
    """Whether no size is below the least size of the merged traces."""
    return all(size >= least[name] for name, size in sizes.items())


def forms_of(function):
    """Return the integers of a function that depend on dims."""
    found = set()

    def look(part):
        if type(part) in (int, str):
            return
        if forms.is_expression(part):
            found.add(part)
        elif isinstance(part, (tuple, list)):
            for one in part:
                look(one)
        elif isinstance(part, dict):
            look(list(part.values()))

    for value in function.values:
        look(value.nbytes)
    for call in function.calls:
        look([part for name, part in call.attributes.items() if name != "trees"])
        look([call.writes, call.reads])
        for region in call.regions:
            found |= forms_of(region)
    return found


def _run(source, inputs, structure, sizes, target):
    """Run the function at given sizes; return the function, weights and notes of the trace."""
    with Tracer(target, {}) as tracer:
        tracer.notes = Notes() if sizes else None
        recorder = Recorder.of(tracer, source.name)
        trace, function = recorder.trace, recorder.function
        leaves = []
        for path, leaf in inputs:
            shape = [sizes[e.name] if isinstance(e, forms.Dim) else e for e in leaf.shape]
            leaves.append(input_tensor(recorder, path, dtype_name(leaf.dtype), shape))
        arguments = tree.unflatten(structure, leaves)
        named = source.parameters()
        if "weights" in named:
            made = [trace.weight(*one) for one in source.weights]
            arguments["weights"] = tree.unflatten(source.weights_tree, made)
        else:
            for _name, _dtype, _shape, given in source.weights:
                if isinstance(given, Tensor):
                    trace.weight(_name, _dtype, _shape, given)
        states = _states(source, recorder, arguments if "state" in named else None)
        function.tree = structure
        result = _call(source.function, arguments)
        for name, place, _tensor in states:
            function.states[name] = (function.states[name], place.current)
        _check_states(source, states, arguments)
        finish(recorder, result)
        return _Run(function, trace.weights, tracer.notes)


class _Run(NamedTuple):
    function: Any
    weights: dict
    notes: Any


def _call(function, arguments):
    bound = inspect.BoundArguments(inspect.signature(function), arguments)
    return function(*bound.args, **bound.kwargs)


def input_tensor(recorder, path, dtype, shape):
    """Add an input to the function; return its tensor in the trace."""
    tensor, place = recorder.trace.new("input", path, dtype, shape)
    value = recorder.input(place)
    operand = Operand(value, dtype, tuple(shape), forms.row_major(shape))
    recorder.function.inputs.append(Argument(path, operand))
    return tensor


def _states(source, recorder, arguments):
    """Return [(name, place, tensor)] of the states; add their tree to the arguments."""
    found = []
    if arguments is None:
        return found
    for name, dtype, shape, _first in source.state:
        tensor, place = recorder.trace.new("state", name, dtype, shape)
        recorder.function.states[name] = recorder.input(place)
        found.append((name, place, tensor))
    tensors = [tensor for _name, _place, tensor in found]
    arguments["state"] = tree.unflatten(source.state_tree, tensors)
    return found


def _check_states(source, states, arguments):
    if "state" not in arguments:
        return
    after, _structure = tree.flatten(arguments["state"], lambda part: isinstance(part, Tensor))
    after = dict(after)
    for name, _place, tensor in states:
        if after.get(name if name in after else "") is not tensor:
            raise TraceError(
                "", f"{source.name}: the state {name!r} was replaced", "write to it: x[...] = value"
            )


def finish(recorder, result):
    """Make the tensors of a result outputs; `copy_outputs` makes them whole temporaries later."""
    function = recorder.function
    inside = recorder.trace.tracer.inside
    leaves, structure = tree.flatten(result, lambda part: isinstance(part, Tensor), "")
    function.result = structure
    taken = set()
    for path, leaf in leaves:
        operand = operand_of(recorder, inside(leaf))
        function.outputs.append(Argument(path, operand))
        recorder.function.is_own.append(_is_own(recorder, operand, taken))
        taken.add(_root(function.values, operand.value))


def copy_outputs(functions):
    """Copy outputs that are not distinct whole temporaries at all sizes."""
    rows = zip(*[function.is_own for function in functions], strict=False)
    for place, column in enumerate(rows):
        for function in () if all(column) else functions:
            argument = function.outputs[place]
            argument.operand = _copied(function, argument.operand)
    for calls in zip(*[function.calls for function in functions], strict=False):
        for regions in zip(*[call.regions for call in calls], strict=False):
            copy_outputs(regions)


def operand_of(recorder, tensor):
    """Return the operand of a call that reads a tensor of the trace."""
    itemsize, dtype = tensor.itemsize, dtype_name(tensor.dtype)
    strides = tuple(stride // itemsize for stride in tensor.strides)
    if not tensor.size:
        return recorder.nothing(dtype, tensor.shape, strides)
    start, _nbytes, offset = storage_place(tensor)
    place = recorder.trace.place(start)
    return Operand(recorder.current(place), dtype, tensor.shape, strides, offset)


def _root(values, number):
    while values[number].base is not None:
        number = values[number].base
    return number


def _is_own(recorder, operand, taken):
    values = recorder.values
    value = values[operand.value]
    nbytes = forms.mul(*operand.shape, np.dtype(DTYPES[dtype_code(operand.dtype)].numpy).itemsize)
    return (
        value.kind == "temporary"
        and operand.offset == 0
        and operand.strides == forms.row_major(operand.shape)
        and nbytes == value.nbytes
        and _root(values, operand.value) not in taken
    )


def _copied(function, operand):
    """Add a row-major copy of an operand to a new value; return the copy's operand."""
    source = Number(0, operand.dtype) if 0 in operand.shape else operand
    itemsize = DTYPES[dtype_code(operand.dtype)].itemsize
    number = len(function.values)
    function.values.append(Value("temporary", forms.mul(*operand.shape, itemsize)))
    strides = forms.row_major(operand.shape)
    target = Operand(number, operand.dtype, operand.shape, strides)
    attributes = {"op": "copy", "compute": operand.dtype}
    function.calls.append(Call("elementwise", attributes, (target,), (source,), (None,)))
    return target
