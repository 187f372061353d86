"""`load_onnx`: reads a file into a Model, whose `run` is an ordinary function of tensors."""

import inspect
import keyword
import re
from collections import namedtuple

import numpy as np

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers import (  # noqa: F401 - each fills its part of the table
    onnx_control,
    onnx_convolution,
    onnx_indexing,
    onnx_math,
    onnx_microsoft,
    onnx_neural,
    onnx_quantized,
    onnx_random,
    onnx_recurrent,
    onnx_reduction,
    onnx_resize,
    onnx_shape,
    onnx_signal,
)
from gputensor.importers.onnx_dtype import narrow
from gputensor.importers.onnx_few_bits import group_weights
from gputensor.importers.onnx_file import onnx, read_model
from gputensor.importers.onnx_graph import Builder, mark_sized, opsets_of, run_graph
from gputensor.importers.onnx_values import numpy_dtype, tensor
from gputensor.importers.public_functions import gt
from gputensor.programs.trace_device import active
from gputensor.strict_json import shown

__all__ = ["Model", "load_onnx", "model_of"]

OLDEST, NEWEST = 7, onnx.defs.onnx_opset_version()
MOST_OF_A_DIM = 1024
#: Bool and integer initializers of at most this many elements are constants, except masks of
#: several axes in a model with free extents, which are weights.
MOST_CONSTANT = 4096


def load_onnx(path, *, dims=None, input_shapes=None, dtype=None):
    """Read an ONNX file and return its :class:`Model`.

    Parameters
    ----------
    path : str or path-like
    dims : dict, optional
        Maps the names of the model's free extents to an int or a `Dim`. The default is a `Dim` from
        1 to 1024.
    input_shapes : dict, optional
        Maps the names of inputs to shapes that replace those in the file.
    dtype : dtype, optional
        A floating-point dtype that replaces float32 in inputs, weights and constants.

    Returns
    -------
    Model

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    ModelError
        If the file is damaged, or needs operators that the library lacks; the message names all.
    TypeError, ValueError
        For `dims`, `input_shapes` or a `dtype` that do not fit the model.

    Examples
    --------
    >>> import os, tempfile
    >>> import gputensor as gt
    >>> from onnx import helper
    >>> value = lambda name: helper.make_tensor_value_info(name, 1, ["n", 3])
    >>> nodes = [helper.make_node("Relu", ["x"], ["y"])]
    >>> graph = helper.make_graph(nodes, "clamp", [value("x")], [value("y")])
    >>> path = os.path.join(tempfile.mkdtemp(), "relu.onnx")
    >>> with open(path, "wb") as file:
    ...     _ = file.write(helper.make_model(graph).SerializeToString())
    >>> model = gt.load_onnx(path)
    >>> model.run(gt.asarray([[-1.0, 0.0, 2.0]], device="host")).tolist()
    [[0.0, 0.0, 2.0]]
    """
    proto, folder = read_model(path)
    return model_of(proto, folder, dims=dims, input_shapes=input_shapes, dtype=dtype)


def model_of(proto, folder=None, *, dims=None, input_shapes=None, dtype=None):
    """Return the Model of a ModelProto whose external data is in `folder`."""
    opsets = opsets_of(proto.opset_import)
    version = opsets.get("", NEWEST)
    if not OLDEST <= version <= NEWEST:
        rule = f"operator sets {OLDEST} to {NEWEST} (onnx.version_converter changes them)"
        raise argument_error(ModelError, "model", Described(f"operator set {version}"), rule)
    functions = {(one.domain, one.name, one.overload): one for one in proto.functions}
    builder = Builder(opsets, functions, folder)
    graph = builder.graph(proto.graph)
    if builder.lacks:
        raise argument_error(ModelError, "model", Described(_lacking(builder.lacks)), _KNOWN)
    return Model(proto.graph, graph, dims or {}, input_shapes or {}, _dtype(dtype))


def _dtype(dtype):
    """Return the dtype that replaces float32."""
    found = np.dtype(np.float32) if dtype is None else gt.empty(0, dtype=dtype, device="host").dtype
    if not gt.isdtype(found, "real floating") or found.itemsize < 2:
        raise argument_error(ValueError, "dtype", dtype, "float16, bfloat16, float32 or float64")
    return found


_KNOWN = "operators that the library has (docs/onnx.md)"


def _lacking(lacks):
    """Return the missing operators in one line, with the labels of their nodes."""
    found = {}
    for domain, name, version, label in lacks:
        prefix = f"{domain}." if domain else ""
        shown_version = f"-{version}" if version else " of no operator set that the file names"
        found.setdefault(f"{prefix}{name}{shown_version}", []).append(label)
    parts = []
    for name, labels in sorted(found.items()):
        rest = f" and {len(labels) - 4} more" if len(labels) > 4 else ""
        name = name if name.isprintable() and len(name) < 100 else shown(name)
        parts.append(f"{name} (nodes {', '.join(map(shown, labels[:4]))}{rest})")
    return "; ".join(parts)


class Model:
    """An imported model.

    Attributes
    ----------
    run : callable
        Takes the inputs in order or by name, and the keyword `weights`, which replaces the model's
        own weights. It returns the output, or a named tuple of several.
    specs : tuple of Spec
        The specs of the inputs, for `gt.compile(model.run, *model.specs, weights=model.weights)`.
    weights : dict
        NumPy arrays by their names in the file.
    inputs, outputs : tuple of str
        Names of the parameters of `run`, and of the fields of its result.
    known_inputs : tuple of str
        The inputs whose values `run` reads on the host, such as shapes and axes. A program cannot
        have them as inputs: compile a function that calls `run` with arrays for them.
    """

    def __init__(self, proto, graph, dims, input_shapes, dtype):
        if dtype.itemsize <= 4:
            group_weights(graph)
        needed, self._dtype = _needed(graph), dtype
        if dtype != np.float32:
            narrow(graph, dtype, needed)
        self.name = _identifier(proto.name or "main", set())
        taken = {"weights", "state"}
        self._protos = [one for one in proto.input if one.name in set(graph.inputs)]
        self.inputs = tuple(_identifier(one.name, taken) for one in self._protos)
        taken = set()
        self.outputs = tuple(_identifier(name, taken) for name in graph.outputs)
        names = dict(zip((one.name for one in self._protos), self.inputs, strict=True))
        self.known_inputs = tuple(names[name] for name in graph.inputs if name in needed)
        self._shapes = _by_parameter("input_shapes", input_shapes, names)
        self._dims = dims
        is_free = self._is_free()
        if is_free:
            mark_sized(graph, needed)
            onnx_recurrent.mark_loops(graph, [*proto.input, *proto.value_info])
        self.weights = {
            name: array
            for name, array in graph.constants.items()
            if not _is_constant(name, array, needed, is_free)
        }
        for name in self.weights:
            del graph.constants[name]
        self.run = Run(self, graph)
        _check_dims(dims, self._protos)

    def __repr__(self):
        inputs = ", ".join(self.inputs)
        return f"Model({self.name}({inputs}) -> {', '.join(self.outputs)})"

    @property
    def specs(self):
        """The specs of the inputs, in order."""
        return tuple(
            self._spec(name, one) for name, one in zip(self.inputs, self._protos, strict=True)
        )

    def compile(self, *, name=None, calibrate=None, **options):
        """Return the `Program` of the model: ``gt.compile`` with its specs and weights.

        Parameters
        ----------
        name : str, optional
            Of the program's function; the name of the graph by default.
        calibrate : tuple or dict, optional
            Sample inputs of a quantized model, in order or by name, as for `gt.compile`.
        **options
            Further options of `gt.compile`, such as ``target``, ``at`` and ``quantize``.
        """
        entry = (self.run, *self.specs)
        name = name or self.name
        if calibrate is not None:
            options["calibrate"] = {name: calibrate}
        return gt.compile({name: entry}, weights=self.weights, **options)

    def _is_free(self):
        """Whether any extent of an input is free."""
        for name, proto in zip(self.inputs, self._protos, strict=True):
            shape = self._shapes.get(name)
            if shape is None:
                shape = [
                    self._dims.get(one.dim_param)
                    for one in proto.type.tensor_type.shape.dim
                    if not _is_fixed(one)
                ]
            if not all(type(extent) is int for extent in shape):
                return True
        return False

    def _spec(self, name, proto):
        if proto.type.WhichOneof("value") != "tensor_type":
            got = Described(f"a {proto.type.WhichOneof('value') or 'value'} without a tensor type")
            raise argument_error(ModelError, name, got, "tensors as inputs of a program")
        dtype = numpy_dtype(proto.type.tensor_type.elem_type)
        if dtype.kind == "O":
            raise argument_error(ModelError, name, Described("an input of strings"), "numbers")
        dtype = self._dtype if dtype == np.float32 else dtype
        if name in self._shapes:
            return gt.spec(tuple(self._shapes[name]), dtype)
        if not proto.type.tensor_type.HasField("shape"):
            got = Described("an input of any number of dimensions")
            raise argument_error(ModelError, name, got, "input_shapes with a shape for it")
        extents = []
        for axis, one in enumerate(proto.type.tensor_type.shape.dim):
            if _is_fixed(one):
                extents.append(one.dim_value)
                continue
            dim = _identifier(one.dim_param or f"{name}_{axis}", set())
            given = self._dims.get(one.dim_param, self._dims.get(dim))
            extents.append(gt.Dim(dim, 1, MOST_OF_A_DIM) if given is None else given)
        return gt.spec(tuple(extents), dtype)


def _is_fixed(extent):
    """Whether an extent of a file is a number; some exporters write -1 for a free extent."""
    return extent.WhichOneof("value") == "dim_value" and extent.dim_value >= 0


class Run:
    """The function `Model.run`, with a parameter for each input."""

    def __init__(self, model, graph):
        self.__name__ = self.__qualname__ = model.name
        kind, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter(name, kind) for name in model.inputs]
        parameters.append(inspect.Parameter("weights", only, default=None))
        self.__signature__ = inspect.Signature(parameters)
        self._model, self._graph, self._own = model, graph, model.weights
        self._result = namedtuple("Outputs", model.outputs) if len(model.outputs) != 1 else None
        self._placed = {}

    def __call__(self, /, *inputs, **named):  # an input may be named self
        bound = self.__signature__.bind(*inputs, **named).arguments
        weights = bound.pop("weights", None)
        values = list(bound.values())
        device = _device(values, weights)
        graph = self._graph
        given = weights or self._weights(device)
        missing = next((name for name in self._own if name not in given), None)
        if missing is not None:
            got = Described(f"no {missing!r}")
            raise argument_error(ValueError, "weights", got, "an array for each name of the model")
        held = type(graph)(
            graph.name, graph.inputs, graph.outputs, {**graph.constants, **given}, graph.steps, []
        )
        try:
            with gt.Device(device):
                results = [_result(value, device) for value in run_graph(held, values, device)]
        except ModelError as error:
            sizes = {} if active() is None else _sizes(self._model.specs, values)
            if not sizes:
                raise
            at = ", ".join(f"{name}={size}" for name, size in sizes.items())
            rule = "dims and input_shapes fix such extents, or give one name to equal ones"
            raise ModelError(f"{error} (at {at}; {rule})") from error
        return results[0] if self._result is None else self._result(*results)

    def _weights(self, device):
        """Return the model's own weights on a device; a trace makes constants of them."""
        if active() is not None:
            return self._own
        key = str(device)
        if key not in self._placed:
            self._placed[key] = {name: tensor(array, device) for name, array in self._own.items()}
        return self._placed[key]


def _device(values, weights):
    for value in [*values, *(weights or {}).values()]:
        if isinstance(value, gt.Tensor):
            return value.device
    return gt.Device()


def _sizes(specs, values):
    """Return the sizes of free extents for which a model is being traced."""
    return {
        extent.name: int(size)
        for spec, value in zip(specs, values, strict=False)
        for extent, size in zip(spec.shape, value.shape, strict=False)
        if isinstance(extent, gt.Dim)
    }


def _result(value, device):
    """Return an output as a tensor if tensors support its element type."""
    if isinstance(value, np.ndarray):
        try:
            return tensor(value, device)
        except ModelError:
            return value
    return [_result(one, device) for one in value] if isinstance(value, list) else value


def _needed(graph):
    """Return the names whose values operators read, and all names these are computed from."""
    needed = set()
    for step in reversed(graph.steps):
        known = step.row.known if step.row is not None else ()
        names = step.inputs if -1 in known else [
            name for i, name in enumerate(step.inputs) if i in known
        ]  # fmt: skip
        if needed & set(step.outputs) and step.key[1] not in ("Shape", "Size"):
            names = step.inputs
        needed.update(names)
        for value in step.attributes.values():
            if isinstance(value, type(graph)):
                needed |= _needed(value)
        if step.graph is not None:
            inside = _needed(step.graph)
            pairs = zip(step.graph.inputs, step.inputs, strict=False)
            needed.update(outer for inner, outer in pairs if inner in inside)
    return needed


def _is_constant(name, array, needed, is_free):
    if name in needed or array.size <= 1 or array.dtype.kind == "O":
        return True
    if array.dtype.kind == "b" and array.ndim > 1 and is_free:
        return False  # a mask that free extents slice
    return array.dtype.kind in "biu" and array.size <= MOST_CONSTANT


def _identifier(name, taken):
    """Return a name as a unique Python identifier."""
    name = name if isinstance(name, str) else "value"  # of a free extent, and not UTF-8
    found = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_") or "value"
    if found[0].isdigit() or keyword.iskeyword(found):
        found = f"x_{found}"
    plain, count = found, 1
    while found in taken:
        count += 1
        found = f"{plain}_{count}"
    taken.add(found)
    return found


def _by_parameter(option, given, names):
    """Return a dict keyed by names of the file or of parameters, keyed by parameters."""
    found = {}
    for name, value in given.items():
        parameter = names.get(name, name)
        if parameter not in names.values():
            rule = f"one of {', '.join(names)}"
            raise argument_error(ValueError, option, name, rule)
        found[parameter] = value
    return found


def _check_dims(dims, protos):
    known = set()
    for proto in protos:
        for axis, one in enumerate(proto.type.tensor_type.shape.dim):
            if not _is_fixed(one):
                name = one.dim_param or f"{_identifier(proto.name, set())}_{axis}"
                known |= {name, _identifier(name, set())}
    for name, value in dims.items():
        if name not in known:
            rule = f"one of {', '.join(sorted(known))}" if known else "no name: all are fixed"
            raise argument_error(ValueError, "dims", name, rule)
        if type(value) is not int and not isinstance(value, gt.Dim):
            raise argument_error(TypeError, f"dims[{name!r}]", value, "an int or a Dim")
