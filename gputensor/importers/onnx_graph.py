"""Graphs: nodes are checked and resolved once, then interpreted over values.

`Builder` turns the messages of a file into a `Graph` of `Step`s and lists missing operators;
`run_graph` runs it. A value is dropped after the last step that reads it.
"""

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gputensor.errors import Described, GpuTensorError, ModelError, TraceError, argument_error
from gputensor.importers.onnx_file import array_of, onnx
from gputensor.importers.onnx_registry import EXPANDED, find
from gputensor.importers.onnx_types import check_form, type_of
from gputensor.importers.onnx_values import has_code, known, tensor
from gputensor.programs.trace_device import active

__all__ = ["Builder", "Context", "Graph", "Step", "mark_sized", "run_graph"]

MAX_DEPTH = 24
MOST_NODES = 1 << 20  # with functions expanded
_PLAIN = {"": "", "ai.onnx": ""}


@dataclass
class Step:
    """A node: its operator, the names that it reads and writes, and those whose last use it is."""

    label: str
    key: tuple  # (domain, operator)
    inputs: list
    outputs: list
    row: Any = None  # the Operator; None for a graph
    attributes: dict = field(default_factory=dict)
    graph: Any = None  # of a function of the model
    proto: Any = None
    builder: Any = None
    ends: tuple = ()
    sized: Any = None  # the inputs whose values result from extents; see mark_sized
    expansions: dict = field(default_factory=dict)


@dataclass
class Graph:
    """Steps in order, with the names of the inputs and of captured outer values."""

    name: str
    inputs: list
    outputs: list
    constants: dict
    steps: list
    captures: list


class Builder:
    """Builds the graphs of one file; `lacks` collects operators that the library lacks."""

    def __init__(self, opsets, functions=None, folder=None):
        self.opsets = opsets
        self.functions = functions or {}
        self.folder = folder
        self.lacks = []
        self.depth = 0
        self.numbers = itertools.count(1)  # of nodes

    def deeper(self, opsets=None):
        """Return a builder for the graph or function inside a node."""
        if self.depth == MAX_DEPTH:
            got = Described("nested graphs or functions")
            raise argument_error(ModelError, "nodes", got, f"at most {MAX_DEPTH} levels")
        builder = copy.copy(self)
        builder.opsets, builder.depth = opsets or self.opsets, self.depth + 1
        return builder

    def graph(self, proto, outside=(), bound=None):
        """Build a GraphProto; `outside` contains the names that it may capture.

        `bound` maps attributes of the function around it to their messages.
        """
        constants = {one.name: array_of(one, self.folder) for one in proto.initializer}
        for one in proto.sparse_initializer:
            constants[one.values.name] = dense(one, self.folder)
        inputs = [one.name for one in proto.input]
        if self.depth == 0:
            inputs = [name for name in inputs if name not in constants]
        return self._body(
            proto, inputs, [one.name for one in proto.output], constants, outside, bound
        )

    def function(self, proto, attributes):
        """Build a FunctionProto for a call with the given attribute messages."""
        bound = {one.name: one for one in proto.attribute_proto}
        bound.update(attributes)
        opsets = {**self.opsets, **opsets_of(proto.opset_import)}
        builder = self.deeper(opsets)
        return builder._body(proto, list(proto.input), list(proto.output), {}, (), bound)

    def _body(self, proto, inputs, outputs, constants, outside, bound):
        _check_names(proto, inputs, outputs, constants)
        defined = {*inputs, *constants}
        later = {name for node in proto.node for name in node.output if name}
        steps, captures = [], {}
        for number, node in enumerate(proto.node):
            label = node.name or f"{number}"
            step = self.step(node, label, {*defined, *outside}, bound or {})
            for name in reads(step):
                if not name or name in defined:
                    continue
                if name in outside and name not in later:
                    captures[name] = None
                    continue
                problem = (
                    "made by a later node (a cycle, or nodes out of order)"
                    if name in later
                    else "made by no node"
                )
                got = Described(f"the input {name!r}, {problem}")
                raise argument_error(ModelError, shown(step), got, "inputs made by earlier nodes")
            for name in step.outputs:
                if name and name in defined:
                    got = Described(f"the output {name!r} a second time")
                    raise argument_error(ModelError, shown(step), got, "one writer of each value")
                defined.add(name)
            steps.append(step)
        for name in outputs:
            if name not in defined:
                if name not in outside:
                    if bound is not None and not hasattr(proto, "initializer"):
                        constants[name] = None  # an output that this form of a function omits
                        continue
                    got = Described(f"the output {name!r}, made by no node")
                    raise argument_error(ModelError, proto.name, got, "outputs made by nodes")
                captures[name] = None
        _mark_ends(steps, outputs)
        return Graph(proto.name, inputs, outputs, constants, steps, list(captures))

    def step(self, node, label, visible, bound):
        """Resolve one node."""
        if next(self.numbers) > MOST_NODES:
            got = Described(f"more than {MOST_NODES} nodes, with functions expanded")
            raise argument_error(ModelError, "nodes", got, f"at most {MOST_NODES}")
        domain = _PLAIN.get(node.domain, node.domain)
        key = domain, node.op_type
        step = Step(label, key, list(node.input), list(node.output))
        protos = {}
        for one in node.attribute:
            if one.ref_attr_name:
                if one.ref_attr_name in bound:
                    protos[one.name] = bound[one.ref_attr_name]
            else:
                protos[one.name] = one
        overload = getattr(node, "overload", "")
        own = self.functions.get((domain, node.op_type, overload))
        if own is not None:
            step.graph = self.function(own, protos)
            return step
        version = self.opsets.get(domain)
        step.row = find(domain, node.op_type, version or 1)
        if version is None or (step.row is None and key not in EXPANDED):
            self.lacks.append((domain, node.op_type, version, label))
            return step
        schema = schema_of(domain, node.op_type, version)
        values = {name: self.attribute(one, visible, bound) for name, one in protos.items()}
        check_form(shown(step), step.inputs, schema, protos)
        step.attributes = _with_defaults(step.row, schema, values)
        step.proto, step.builder = node, (self, version, protos)
        return step

    def attribute(self, proto, visible, bound):
        """Return an AttributeProto as a Python value."""
        kind = onnx.AttributeProto.AttributeType.Name(proto.type)
        if kind == "GRAPH":
            return self.deeper().graph(proto.g, visible, bound)
        if kind == "TENSOR":
            return array_of(proto.t, self.folder)
        if kind == "SPARSE_TENSOR":
            return dense(proto.sparse_tensor, self.folder)
        if kind == "TYPE_PROTO":
            return proto.tp
        if kind not in ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS"):
            rule = "numbers, strings, a tensor or a graph"
            raise argument_error(ModelError, f"attribute {proto.name!r}", Described(kind), rule)
        return _text(onnx.helper.get_attribute_value(proto))


def _check_names(proto, *names):
    """Raise ModelError for a name that is not UTF-8, which protobuf returns as bytes."""
    of_nodes = ((n.name, n.op_type, n.domain, *n.input, *n.output) for n in proto.node)
    for name in itertools.chain((proto.name,), *names, *of_nodes):
        if not isinstance(name, str):
            got = Described(f"the name {name[:40]!r}")
            raise argument_error(ModelError, "model", got, "names in UTF-8")


def _text(value):
    """Return an attribute's value with strings in place of bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (str, int, float)):
        return value
    return [_text(one) for one in value]


def opsets_of(protos):
    return {_PLAIN.get(one.domain, one.domain): one.version for one in protos}


def schema_of(domain, name, version):
    try:
        return onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        return None


def dense(proto, folder):
    """Return a SparseTensorProto as a NumPy array."""
    values, places = array_of(proto.values, folder), array_of(proto.indices, folder)
    shape = tuple(proto.dims)
    if any(extent < 0 for extent in shape) or np.prod(shape, dtype=float) > 1 << 28:
        rule = "extents of at least 0, and at most 2**28 elements"
        raise argument_error(ModelError, "sparse tensor", shape, rule)
    result = np.zeros(shape, values.dtype)
    if places.ndim == 1:
        places = np.stack(np.unravel_index(places, shape), -1)
    result[tuple(places.T)] = values
    return result


def _with_defaults(row, schema, values):
    if row is None:
        return values
    found = {}
    for name, default in row.parameters.items():
        if name in values:
            found[name] = values[name]
            continue
        declared = schema.attributes.get(name) if schema is not None else None
        if declared is not None and declared.default_value.type:
            default = onnx.helper.get_attribute_value(declared.default_value)
            default = _text(default)
        found[name] = default
    return found


def reads(step):
    """Return the names that a step reads, including those that its graphs capture."""
    found = list(step.inputs)
    for value in step.attributes.values():
        if isinstance(value, Graph):
            found += value.captures
    return found


def _mark_ends(steps, outputs):
    kept = set(outputs)
    for step in reversed(steps):
        used = {*reads(step), *step.outputs} - {""}
        step.ends = tuple(used - kept)
        kept |= used


def mark_sized(graph, needed):
    """Mark the steps whose results have extents that result from those of inputs.

    In a trace with free extents they make tensors: a constant has one size. `needed` names the
    values that operators read at import, which stay arrays.
    """
    sized, needed = set(), set(needed)
    for step in reversed(graph.steps):
        if step.key[1] in ("If", "Loop"):
            needed.update(step.inputs[:2])
        if not needed.isdisjoint(step.outputs) and step.key[1] not in ("Shape", "Size"):
            needed.update(step.inputs)
    for step in graph.steps:
        if step.key in (("", "Shape"), ("", "Size")):
            sized.update(step.outputs)
        elif not sized.isdisjoint(reads(step)):
            if needed.isdisjoint(step.outputs):
                step.sized = {i for i, name in enumerate(step.inputs) if name in sized}
            sized.update(step.outputs)


def shown(step):
    kind = step.key[1]
    return f"{kind if kind.isprintable() else repr(kind)} {step.label!r}"


# ---- running


@dataclass
class Context:
    """Facts about a node for the function of its operator.

    Attributes
    ----------
    device : int
        The device of the run.
    version : int
        The version of the operator set.
    n_outputs : int
        The number of outputs that the node names.
    values : dict
        The current values, which graphs inside the node may capture.
    makes_tensors : bool
        Whether known inputs have a tensor as result, because its extents may be free.
    """

    device: Any
    version: int = 0
    n_outputs: int = 1
    values: Any = None
    makes_tensors: bool = False

    def run(self, graph, inputs):
        """Run a graph inside the node; return the values of its outputs."""
        return run_graph(graph, inputs, self.device, self.values)


def run_graph(graph, inputs, device, outside=None):
    """Return the values of a graph's outputs."""
    values = {name: outside[name] for name in graph.captures}
    values.update(graph.constants)
    values.update(zip(graph.inputs, inputs, strict=False))
    for step in graph.steps:
        given = [values[name] if name else None for name in step.inputs]
        found = run_step(step, given, device, values)
        for name, value in zip(step.outputs, found, strict=False):
            if name:
                values[name] = value
        for name in step.ends:
            values.pop(name, None)
    return [values[name] for name in graph.outputs]


_OF_OPERATORS = (
    TypeError, ValueError, LookupError, ArithmeticError, MemoryError, RuntimeError,
)  # fmt: skip


def run_step(step, given, device, values):
    """Return the outputs of a node."""
    if step.graph is not None:
        given += [None] * (len(step.graph.inputs) - len(given))
        return run_graph(step.graph, given, device)
    try:
        found = NotImplemented
        if step.row is not None:
            found = _call(step, given, device, values)
        if found is NotImplemented:
            found = run_graph(expansion(step, given), given, device)
    except ModelError as error:
        if not getattr(error, "has_node", False):
            raise _named(step, error) from None
        raise
    except TraceError as error:
        raise _traced(step, error) from None
    except GpuTensorError:
        raise
    except _OF_OPERATORS as error:
        raise _named(step, error) from error
    found = found if isinstance(found, (tuple, _Results)) else (found,)
    if len(found) < len(step.outputs) and any(step.outputs[len(found) :]):
        got = Described(f"the output {step.outputs[-1]!r}")
        rule = f"outputs that are computed, the first {len(found)}"
        raise argument_error(ModelError, shown(step), got, rule)
    return found


_Results = list


def _named(step, error):
    """Return an error as a ModelError that begins with the node that raised it."""
    kind = type(error) if isinstance(error, ModelError) else ModelError
    named = kind(f"{shown(step)}: {error}")
    named.has_node = True  # type: ignore[attr-defined]
    return named


def _traced(step, error):
    """Return a TraceError that names the node that raised it."""
    if getattr(error, "has_node", False):
        return error
    text = str(error).removeprefix(f"{error.line}: ")
    problem, _semicolon, way_out = text.rpartition("; ")
    named = TraceError(error.line, f"{shown(step)}: {problem}", way_out)
    named.has_node = True  # type: ignore[attr-defined]
    return named


def _call(step, given, device, values):
    row, makes_tensors = step.row, step.sized is not None and active() is not None
    if makes_tensors:
        kept = step.sized | row.known
        given = [
            tensor(value, device) if i not in kept and _is_array(value) else value
            for i, value in enumerate(given)
        ]
    if not row.folds:
        given = [
            known(value) if i in row.known or -1 in row.known else _tensor(value, device)
            for i, value in enumerate(given)
        ]
    elif row.known:
        given = [known(value) if i in row.known else value for i, value in enumerate(given)]
    named = step.attributes
    if row.has_context:
        version = step.builder[1]
        facts = Context(device, version, len(step.outputs), values, makes_tensors)
        named = {**named, "context": facts}
    found = row.function(*given, **named)
    return (found,) if isinstance(found, list) else found


def _is_array(value):
    return isinstance(value, np.ndarray) and value.size > 1 and has_code(value.dtype)


def _tensor(value, device):
    return value if isinstance(value, list) else tensor(value, device)


def expansion(step, given):
    """Return the graph of the standard's function for a node, for inputs of these types."""
    types = [type_of(value) for value in given]
    key = tuple(one.SerializeToString(deterministic=True) for one in types)
    if key not in step.expansions:
        builder, version, protos = step.builder
        node = onnx.NodeProto()
        node.CopyFrom(step.proto)
        del node.attribute[:]
        for name, proto in protos.items():
            one = node.attribute.add()
            one.CopyFrom(proto)
            one.name, one.ref_attr_name = name, ""
        function = standard_function(step, node, version, list(key))
        schema = schema_of(*step.key, version)
        declared = {
            name: one.default_value
            for name, one in schema.attributes.items()
            if one.default_value.type
        }
        step.expansions[key] = builder.function(function, {**declared, **protos})
        if builder.lacks:
            names = ", ".join(sorted({name for _domain, name, _version, _label in builder.lacks}))
            builder.lacks.clear()
            rule = "operators in docs/onnx.md"
            raise argument_error(ModelError, "operators", Described(names), rule)
    return step.expansions[key]


def standard_function(step, node, version, types):
    """Return the FunctionProto by which the standard defines an operator."""
    schema = schema_of(*step.key, version)
    made = onnx.FunctionProto()
    if schema is not None and schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        wanted = max(versions, default=schema.since_version)
        data = schema.get_context_dependent_function_with_opset_version(
            wanted, node.SerializeToString(), types
        )
        made.ParseFromString(data)
    elif schema is not None and schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= version]
        wanted = max(versions, default=schema.since_version)
        made.ParseFromString(schema.get_function_with_opset_version(wanted))
    else:
        got = Described("inputs or attributes of a form that the library lacks")
        raise argument_error(ModelError, "node", got, "a form in docs/onnx.md")
    if not made.opset_import:
        made.opset_import.add(domain="", version=version)
    return made
