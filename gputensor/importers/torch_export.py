"""`from_exported`: a program of torch.export as a function of tensors.

PyTorch is not imported: an ExportedProgram is read through its attributes `graph.nodes`,
`graph_signature`, `state_dict`, `constants` and `range_constraints`. Each node calls the function
of its target in the folder aten.
"""

import inspect
import re
import sys
from typing import Any, NamedTuple

import numpy as np

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.aten import MAKERS, dtype_of, find
from gputensor.importers.public_functions import gt

__all__ = ["Exported", "from_exported"]

MOST_OF_A_DIM = 1024
MAX_DEPTH = 24
_OWN_INPUTS = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")
# Checks and annotations that do not affect values.
_SILENT = (
    "_assert_scalar", "_assert_tensor_metadata", "_assert_async", "sym_constrain_range",
    "sym_constrain_range_for_size", "_set_grad_enabled", "_enter_autocast", "_exit_autocast",
)  # fmt: skip
# The same tensor, unless a node writes to one of them.
_COPIES = ("clone", "lift_fresh_copy")
# Calls of a nested graph -> the position of the graph among the arguments.
_WRAPPERS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}
# Libraries with operators of their own.
_LIBRARIES = ("torchvision.", "transformers.")
_PLAIN_MODULES = ("_operator", "operator", "math", "builtins")


def from_exported(program, *, dims=None):
    """Return the model of a `torch.export.ExportedProgram`.

    Parameters
    ----------
    program : ExportedProgram
        The export of a module in evaluation mode, with its dynamic shapes.
    dims : dict, optional
        Maps the names of free extents to an int or a `Dim`. The default is the range of the export,
        up to 1024.

    Returns
    -------
    Exported
        It has `run`, `specs`, `weights` and `compile`, like a model of :func:`load_onnx`.

    Raises
    ------
    TypeError
        If `program` is not an ExportedProgram.
    ModelError
        If the program needs operators that the library lacks; the message names all.
    """
    for name in ("graph", "graph_signature", "state_dict"):
        if not hasattr(program, name):
            raise argument_error(TypeError, "program", program, "a torch.export.ExportedProgram")
    return Exported(program, dims or {})


class Step(NamedTuple):
    """A node: its function, and arguments that may contain references to other nodes."""

    name: str
    kind: str
    call: Any
    args: Any
    kwargs: Any


class Ref(NamedTuple):
    """The value of another node."""

    name: str


def _steps(graph, owner, lacks, depth=0):
    """Return the steps of a torch.fx graph; missing operators are added to `lacks`."""
    if depth > MAX_DEPTH:
        got = Described("nested graphs")
        raise argument_error(ModelError, "program", got, f"at most {MAX_DEPTH} levels")
    found, checks = [], _checks(graph)
    writes = any(_is_in_place(node) for node in graph.nodes)
    for node in graph.nodes:
        if node.name in checks:
            continue
        args, kwargs = _references(node.args), _references(node.kwargs)
        call = node.target
        if node.op == "call_function":
            name = _aten_name(node.target)
            if name == "as_strided":
                call = _strided(node)
            elif writes and name in _COPIES:
                call = _copied
            else:
                call = _callable(node, lacks)
        elif node.op == "get_attr":
            call = _attribute(owner, node.target)
            if hasattr(call, "graph"):
                call = _steps(call.graph, call, lacks, depth + 1)
        elif node.op not in ("placeholder", "output"):
            lacks.setdefault(node.op, []).append(node.name)
        found.append(Step(node.name, node.op, call, args, kwargs))
    return found


def _checks(graph):
    """Return the names of the nodes that only check, and of those that only checks or none read."""
    found = set()
    for node in reversed(list(graph.nodes)):
        if node.op != "call_function":
            continue
        name = _aten_name(node.target)
        readers = {one.name for one in node.users}
        is_dead = readers <= found and (readers or str(node.target).startswith("aten."))
        if name in _SILENT or (is_dead and not _writes(node, name)):
            found.add(node.name)
    return found


def _writes(node, name):
    return name.endswith("_") or str(node.target).endswith("out")


def _is_in_place(node):
    name = _aten_name(node.target) if node.op == "call_function" else ""
    return name.endswith("_") and not name.endswith("__") and name != "detach_"


def _written(graph):
    """Return the names of the values that an in-place operator receives directly."""
    found = (node.args[0] for node in graph.nodes if _is_in_place(node) and node.args)
    return {getattr(value, "name", None) for value in found}


def _copied(x, *_args, **_kwargs):
    return gt.copy(x)


def _strided(node):
    """Return the function of `as_strided`, which counts in the memory that PyTorch's tensor has."""
    value = node.args[0].meta.get("val")
    strides = [str(one) for one in value.stride()] if hasattr(value, "stride") else None

    def run(x, sizes, steps, offset=None):
        wanted = [str(one) for one in _dense_strides(x.shape, range(x.ndim))]
        order = list(range(x.ndim))
        if strides is not None and strides != wanted:
            order.sort(key=lambda axis: -int(strides[axis]))
            dense = _dense_strides(x.shape, order)
            if [str(one) for one in dense] != strides:
                got = Described("a part of a larger tensor")
                raise argument_error(ModelError, "as_strided", got, "a whole one")
        flat = gt.reshape(gt.permute_dims(x, tuple(order)), (-1,))
        return gt.as_strided(flat, tuple(sizes), tuple(steps), offset or 0)

    return run


def _dense_strides(shape, order):
    """Return the strides of a tensor without gaps whose axes lie in memory in this order."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(list(order)):
        strides[axis] = step
        step *= shape[axis]
    return strides


def _aten_name(target):
    """Return the name of a target without its overload: `add` of `aten.add.Tensor`."""
    words = str(target).split(".")
    is_aten = words[0] == "aten" and len(words) > 1
    return words[1] if is_aten else getattr(target, "__name__", str(target))


def _references(value):
    """Return arguments with a Ref in place of each node."""
    if isinstance(value, (list, tuple)):
        return [_references(one) for one in value]
    if isinstance(value, dict):
        return {name: _references(one) for name, one in value.items()}
    if isinstance(value, slice):
        return slice(*(_references(one) for one in (value.start, value.stop, value.step)))
    is_node = hasattr(value, "op") and hasattr(value, "target") and hasattr(value, "name")
    return Ref(value.name) if is_node else value


def _callable(node, lacks):
    """Return the function for a node's target."""
    target, module = node.target, getattr(node.target, "__module__", "")
    if callable(target) and module in _PLAIN_MODULES:
        return target
    text = str(target)
    name = _aten_name(target)
    if getattr(target, "__name__", text) in (*_WRAPPERS, *_CONTROL):
        return target.__name__
    if name in _SIZES:
        return _SIZES[name]
    if text.startswith(_LIBRARIES):
        name = ".".join(text.split(".")[:2])
    function = find(name) if text.startswith(("aten.", *_LIBRARIES)) else None
    if function is None:
        lacks.setdefault(text, []).append(node.name)
    return function


_SIZES = {
    "sym_size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "sym_numel": lambda x: x.size,
    "numel": lambda x: x.size,
    "dim": lambda x: x.ndim,
    "item": lambda x: x.item(),
    "_local_scalar_dense": lambda x: x.item(),
    "sym_float": float,
    "sym_int": int,
    "sym_sum": sum,
    "sym_max": max,
    "sym_min": min,
    "sym_not": lambda x: not x,
    "sym_ite": lambda test, a, b: a if test else b,
}


def _attribute(owner, path):
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


def _array(tensor):
    """Return a torch tensor as a NumPy array; a NumPy array is returned unchanged."""
    if isinstance(tensor, np.ndarray):
        return tensor
    tensor = tensor.detach().cpu().contiguous()
    name = dtype_of(tensor.dtype)
    if name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        whole = "int16" if name == "bfloat16" else "uint8"
        torch = sys.modules[type(tensor).__module__.partition(".")[0]]
        array = tensor.view(getattr(torch, whole)).numpy()
        return array.view(gt.empty(0, dtype=name, device="host").dtype)
    return tensor.numpy()


class Exported:
    """A program of torch.export.

    Attributes
    ----------
    run : callable
        Takes the inputs in order or by name, and the keyword `weights`. It returns the results of
        the module: a tensor, or a list of several.
    specs : tuple of Spec
    weights : dict
        NumPy arrays by the names of the module's parameters and buffers.
    inputs : tuple of str
    """

    def __init__(self, program, dims):
        self._program, self._dims, lacks = program, dims, {}
        self._steps = _steps(program.graph, program.graph_module, lacks)
        if lacks:
            parts = [
                f"{name} (nodes {', '.join(map(repr, nodes[:4]))})"
                for name, nodes in sorted(lacks.items())
            ]
            got = Described("; ".join(parts))
            raise argument_error(ModelError, "program", got, "operators that the library has")
        self.weights, self._names, self._inputs, self._written = {}, {}, [], set()
        self._sort_inputs(program)
        self.inputs = tuple(re.sub(r"\W", "_", name) for name in self._inputs)
        self._outputs = self._user_outputs(program.graph_signature)
        self.name = "forward"
        self.run = self._run_function()
        self._check_dims()

    def _sort_inputs(self, program):
        """Divide the placeholders into weights and inputs."""
        constants = getattr(program, "constants", None) or {}
        written = _written(program.graph)
        for spec in program.graph_signature.input_specs:
            kind, name = _kind(spec), spec.arg.name
            if kind == "USER_INPUT":
                if any(step.name == name and step.kind == "placeholder" for step in self._steps):
                    self._inputs.append(name)
                continue
            if kind not in _OWN_INPUTS:
                raise argument_error(ModelError, name, Described(kind), "inputs and weights")
            held = program.state_dict if spec.target in program.state_dict else constants
            self._names[name] = spec.target
            if kind == "PARAMETER" and name in written:
                self._written.add(name)
            self.weights[spec.target] = _array(held[spec.target])

    def _user_outputs(self, signature):
        """Return the indices of the outputs; ModelError for a graph that writes to buffers."""
        kinds = [_kind(spec) for spec in signature.output_specs]
        found = [i for i, kind in enumerate(kinds) if kind == "USER_OUTPUT"]
        wrong = next((kind for kind in kinds if kind != "USER_OUTPUT"), None)
        if wrong is not None:
            rule = "a module in evaluation mode that does not write to its buffers"
            raise argument_error(ModelError, "program", Described(wrong), rule)
        return found

    def _check_dims(self):
        placed = {node.name: node.meta.get("val") for node in self._program.graph.nodes}
        shapes = [getattr(placed[name], "shape", ()) for name in self._inputs]
        names = {_symbol(extent) for shape in shapes for extent in shape} - {None}
        for name in self._dims:
            if name not in names:
                rule = f"one of {', '.join(sorted(names))}" if names else "no name: all are fixed"
                raise argument_error(ValueError, "dims", name, rule)

    def _run_function(self):
        def run(*inputs, **named):
            given = run.__signature__.bind(*inputs, **named).arguments
            return self._call(given)

        kind, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, kind) for name in self.inputs]
        parameters.append(inspect.Parameter("weights", only, default=None))
        run.__signature__ = inspect.Signature(parameters)
        run.__name__ = run.__qualname__ = self.name
        return run

    def _call(self, given):
        weights = given.get("weights") or self.weights
        tensors = [value for value in given.values() if isinstance(value, gt.Tensor)]
        device = tensors[0].device if tensors else gt.Device()
        values = {}
        for name, parameter in zip(self._inputs, self.inputs, strict=True):
            values[name] = given[parameter]
        for name, target in self._names.items():
            one = weights[target]
            values[name] = one if isinstance(one, gt.Tensor) else gt.asarray(one, device=device)
            if name in self._written:  # such as scaled in place: the result serves this run
                values[name] = gt.copy(values[name])
        found = _run(self._steps, values, device)
        found = [found[i] for i in self._outputs]
        return found[0] if len(found) == 1 else found

    @property
    def specs(self):
        """The specs of the inputs, in order."""
        nodes = {node.name: node for node in self._program.graph.nodes}
        return tuple(self._spec(name, nodes[name].meta["val"]) for name in self._inputs)

    def _spec(self, name, value):
        if not hasattr(value, "shape"):
            return value
        ranges = getattr(self._program, "range_constraints", None) or {}
        ranges = {str(symbol): one for symbol, one in ranges.items()}
        extents = []
        for extent in value.shape:
            dim = _symbol(extent)
            if dim is None:
                extents.append(int(str(extent)))
            elif dim not in self._dims:
                held = ranges.get(str(extent))
                low = _bound(getattr(held, "lower", None), 1)
                high = _bound(getattr(held, "upper", None), MOST_OF_A_DIM)
                extents.append(gt.Dim(dim, max(low, 1), min(max(high, low), MOST_OF_A_DIM)))
            else:
                extents.append(self._dims[dim])
        return gt.spec(tuple(extents), dtype_of(value.dtype))

    def compile(self, *, name=None, calibrate=None, **options):
        """Return the `Program` of the model: ``gt.compile`` with its specs and weights."""
        entry = (self.run, *self.specs)
        name = name or self.name
        if calibrate is not None:
            options["calibrate"] = {name: calibrate}
        return gt.compile({name: entry}, weights=self.weights, **options)


def _symbol(extent):
    """Return the name of a free extent, or None for a fixed one."""
    return None if str(extent).isdigit() else re.sub(r"\W", "_", str(extent))


def _kind(spec):
    kind = spec.kind
    return getattr(kind, "name", str(kind)).rpartition(".")[2]


def _bound(value, default):
    try:
        return int(value)
    except (AttributeError, TypeError, ValueError, OverflowError):  # infinity
        return default


def _run(steps, values, device):
    """Run the steps; return the outputs as a list."""
    for step in steps:
        if step.kind == "placeholder":
            continue
        args = _filled(step.args, values)
        if step.kind == "output":
            return args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
        if step.kind == "get_attr":
            is_graph = isinstance(step.call, list) and step.call and type(step.call[0]) is Step
            values[step.name] = (
                step.call if is_graph else gt.asarray(_array(step.call), device=device)
            )
            continue
        try:
            values[step.name] = _made(step, args, values, device)
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise ModelError(f"{step.name}: {error}") from error
    return []


def _called(steps, given, device):
    """Run a nested graph."""
    names = [one.name for one in steps if one.kind == "placeholder"]
    return _run(steps, dict(zip(names, given, strict=True)), device)


def _cond(device, test, yes, no, operands=()):
    if isinstance(test, gt.Tensor):
        test = gt.reshape(test, ())
    return gt.cond(
        test, lambda: _called(yes, operands, device), lambda: _called(no, operands, device)
    )


def _while_loop(device, test, body, carried, others=()):
    return gt.while_loop(
        lambda values: gt.reshape(_called(test, [*values, *others], device)[0], ()),
        lambda values: _called(body, [*values, *others], device),
        list(carried),
    )


def _scan(device, body, init, rows, others=()):
    count = len(init)

    def turn(carried, row):
        found = _called(body, [*carried, *row, *others], device)
        return found[:count], found[count:]

    carried, results = gt.scan(turn, list(init), list(rows))
    return [*carried, *results]


_CONTROL = {"cond": _cond, "while_loop": _while_loop, "scan": _scan}


def _made(step, args, values, device):
    if step.call in _WRAPPERS:
        count = _WRAPPERS[step.call]
        return _called(args[count], args[count + 1 :], device)
    if step.call in _CONTROL:
        return _CONTROL[step.call](device, *args)
    kwargs = _filled(step.kwargs, values)
    kwargs.pop("device", None)
    if step.call in MAKERS:
        kwargs["device"] = device
    for noise in ("layout", "pin_memory", "memory_format", "non_blocking"):
        kwargs.pop(noise, None)
    return step.call(*args, **kwargs)


def _filled(value, values):
    """Return arguments with the values of nodes in place of references."""
    if type(value) is Ref:
        return values[value.name]
    if isinstance(value, list):
        return [_filled(one, values) for one in value]
    if isinstance(value, dict):
        return {name: _filled(one, values) for name, one in value.items()}
    if isinstance(value, slice):
        return slice(*(_filled(one, values) for one in (value.start, value.stop, value.step)))
    return value
