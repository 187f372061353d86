"""Functions and programs as plain JSON, and the strict reader for untrusted JSON.

The JSON has one key for each field, except fields with their default. The reader ignores unknown
keys, which later minor versions may add. Every other fault raises one `ProgramFileError` that names
the place: ``functions.decode.calls[3].reads[0].shape``. The reader's time and memory are
proportional to the text. It checks types and limits; verify.py checks the rest.
"""

from __future__ import annotations

import math

from gputensor._arrays.element_types import DTYPES
from gputensor.errors import Described, ProgramFileError, argument_error
from gputensor.programs import dims as forms
from gputensor.programs import tree
from gputensor.programs.function import (
    KINDS,
    Argument,
    Call,
    Function,
    Number,
    Operand,
    ProgramData,
    Value,
    Weight,
)

__all__ = ["from_json", "function_from_json", "function_to_json", "to_json"]

MAX_DEPTH = 128  # a formula of 64 steps in a region nests deeper than 64
MAX_REGIONS = 16
MAX_CALLS = 10**6
MAX_RANK = 16
MAX_PARTS = 128  # dims, ints and operations of one integer of the form
MAX_NAME = 1024
MAX_TEXT = 1 << 16  # of an attribute
_DTYPES = frozenset(row.name for row in DTYPES)


def _refuse(path, got, rule):
    raise argument_error(ProgramFileError, path, got, rule)


# Writing.
def to_json(program):
    """Return a ProgramData as plain JSON, without the elements of weights."""
    return {
        "functions": {name: function_to_json(f) for name, f in program.functions.items()},
        "weights": {
            name: {"dtype": w.dtype, "shape": list(w.shape), "sha256": w.sha256}
            for name, w in program.weights.items()
        },
        "states": {
            name: {"dtype": dtype, "shape": list(shape)}
            for name, (dtype, shape) in program.states.items()
        },
        "state_tree": None if program.state_tree is None else tree.to_json(program.state_tree),
        "metadata": {key: _attribute_json(value) for key, value in program.metadata.items()},
    }


def function_to_json(function):
    """Return a Function as plain JSON."""
    data = {
        "name": function.name,
        "dims": {
            dim.name: {"least": dim.least, "most": dim.most, "multiple": dim.multiple}
            for dim in function.dims.values()
        },
        "at": function.at,
        "values": [_value_json(value) for value in function.values],
        "inputs": [_argument_json(item) for item in function.inputs],
        "outputs": [_argument_json(item) for item in function.outputs],
        "states": {name: list(versions) for name, versions in function.states.items()},
        "calls": [_call_json(call) for call in function.calls],
        "facts": {key: _attribute_json(value) for key, value in function.facts.items()},
        "tree": None if function.tree is None else tree.to_json(function.tree),
        "result": None if function.result is None else tree.to_json(function.result),
    }
    return {key: part for key, part in data.items() if part or key in ("name", "values")}


def _value_json(value):
    data = {"kind": value.kind, "nbytes": _integer_json(value.nbytes)}
    if value.name:
        data["name"] = value.name
    if value.base is not None:
        data["base"] = value.base
    return data


def _argument_json(item):
    return {"path": item.path, "operand": _operand_json(item.operand)}


def _operand_json(operand):
    if operand is None:
        return None
    if isinstance(operand, Number):
        return {"number": _attribute_json(operand.value), "dtype": operand.dtype}
    data = {
        "value": operand.value,
        "dtype": operand.dtype,
        "shape": [_integer_json(extent) for extent in operand.shape],
        "strides": [_integer_json(stride) for stride in operand.strides],
    }
    if operand.offset != 0:
        data["offset"] = _integer_json(operand.offset)
    return data


def _call_json(call):
    data = {
        "name": call.name,
        "attributes": {key: _attribute_json(part) for key, part in call.attributes.items()},
        "writes": [_operand_json(operand) for operand in call.writes],
        "reads": [_operand_json(operand) for operand in call.reads],
        "into": list(call.into) if any(part is not None for part in call.into) else [],
        "stream": call.stream,
        "line": call.line,
        "regions": [function_to_json(region) for region in call.regions],
    }
    return {key: part for key, part in data.items() if part or key == "name"}


def _integer_json(integer):
    if type(integer) is int:
        return integer
    return [part if type(part) is str else _integer_json(part) for part in integer]


def _attribute_json(value):
    """Return an attribute: a tuple as a list, and types that JSON lacks as an object of one key."""
    if forms.is_expression(value):
        return {"integer": _integer_json(value)}
    if isinstance(value, (tuple, list)):
        return [_attribute_json(part) for part in value]
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}
    if type(value) is complex:
        return {"complex": [_attribute_json(value.real), _attribute_json(value.imag)]}
    if type(value) is dict:
        return {"dict": {key: _attribute_json(part) for key, part in value.items()}}
    if value is None or type(value) in (bool, int, float, str):
        return value
    rule = "None, a bool, number, str, integer of the form, or a tuple or dict of these"
    raise argument_error(TypeError, "attribute", value, rule)


# Reading.
def from_json(data):
    """Return the ProgramData of plain JSON, weights without their source."""
    return _Reader().program(data)


def function_from_json(data, path="function"):
    """Return the Function of plain JSON."""
    return _Reader().function(data, path, 0)


_NONE = object()


class _Reader:
    """Builds the form from untrusted JSON; counts the calls of all functions."""

    def __init__(self):
        self.calls = 0

    def program(self, data):
        _typed(data, dict, "program", "an object")
        found = ProgramData()
        for name, part in self.named(data, "functions", ""):
            found.functions[name] = self.function(part, f"functions.{name}", 0)
        for name, part in self.named(data, "weights", ""):
            path = f"weights.{name}"
            _typed(part, dict, path, "an object")
            sha256 = self.string(part, "sha256", path, "")
            dtype, shape = self.plain_array(part, path)
            found.weights[name] = Weight(name, dtype, shape, None, sha256)
        for name, part in self.named(data, "states", ""):
            found.states[name] = self.plain_array(part, f"states.{name}")
        found.state_tree = self.tree(data, "state_tree", "")
        for name, part in self.named(data, "metadata", ""):
            found.metadata[name] = self.attribute(part, f"metadata.{name}", 0)
        return found

    def function(self, data, path, depth):
        _typed(data, dict, path, "an object")
        if depth > MAX_REGIONS:
            _refuse(path, Described("more nested regions"), f"at most {MAX_REGIONS} levels")
        found = Function(self.string(data, "name", path))
        for name, part in self.named(data, "dims", path):
            found.dims[name] = self.dim(name, part, f"{path}.dims.{name}")
        for name, size in self.named(data, "at", path) if depth == 0 else ():
            found.at[name] = _int(size, f"{path}.at.{name}", 1, forms.LIMIT)
        found.values = [self.value(part, at) for part, at in self.items(data, "values", path)]
        found.inputs = [self.argument(part, at) for part, at in self.items(data, "inputs", path)]
        found.outputs = [self.argument(part, at) for part, at in self.items(data, "outputs", path)]
        for name, part in self.named(data, "states", path):
            at = f"{path}.states.{name}"
            if type(part) is not list or len(part) != 2:
                _refuse(at, _shown(part), "a list of two values")
            found.states[name] = tuple(_int(number, at, 0, MAX_CALLS * 64) for number in part)
        for part, at in self.items(data, "calls", path):
            found.calls.append(self.call(part, at, depth))
        for name, part in self.named(data, "facts", path):
            found.facts[name] = self.attribute(part, f"{path}.facts.{name}", 0)
        found.tree = self.tree(data, "tree", path)
        found.result = self.tree(data, "result", path)
        return found

    def dim(self, name, data, path):
        _typed(data, dict, path, "an object")
        parts = [data.get(key, 1) for key in ("least", "most", "multiple")]
        try:
            return forms.Dim(name, *parts)
        except (TypeError, ValueError) as error:
            raise ProgramFileError(f"{path}.{str(error)[:300]}") from None

    def value(self, data, path):
        _typed(data, dict, path, "an object")
        kind = data.get("kind")
        if type(kind) is not str or kind not in KINDS:
            _refuse(f"{path}.kind", _shown(kind), ", ".join(KINDS))
        nbytes = self.integer(data.get("nbytes"), f"{path}.nbytes")
        base = data.get("base")
        if base is not None:
            base = _int(base, f"{path}.base", 0, MAX_CALLS * 64)
        return Value(kind, nbytes, self.string(data, "name", path, ""), base)

    def argument(self, data, path):
        _typed(data, dict, path, "an object")
        operand = self.operand(data.get("operand"), f"{path}.operand")
        if not isinstance(operand, Operand):
            _refuse(f"{path}.operand", Described("null or a number"), "a view of a value")
        return Argument(self.string(data, "path", path, ""), operand)

    def call(self, data, path, depth):
        _typed(data, dict, path, "an object")
        self.calls += 1
        if self.calls > MAX_CALLS:
            _refuse(path, Described("more calls"), f"at most {MAX_CALLS}")
        attributes = {
            name: self.attribute(part, f"{path}.attributes.{name}", 0)
            for name, part in self.named(data, "attributes", path)
        }
        writes = tuple(self.operand(part, at) for part, at in self.items(data, "writes", path))
        for index, operand in enumerate(writes):
            if not isinstance(operand, Operand):
                at = f"{path}.writes[{index}]"
                _refuse(at, Described("null or a number"), "a view of a value")
        reads = tuple(self.operand(part, at) for part, at in self.items(data, "reads", path))
        into = tuple(
            None if part is None else _int(part, at, 0, MAX_CALLS * 64)
            for part, at in self.items(data, "into", path)
        )
        stream = _int(data.get("stream", 0), f"{path}.stream", 0, MAX_CALLS)
        regions = tuple(
            self.function(part, at, depth + 1) for part, at in self.items(data, "regions", path)
        )
        into = into or (None,) * len(writes)
        name, line = self.string(data, "name", path), self.string(data, "line", path, "")
        return Call(name, attributes, writes, reads, into, stream, line, regions)

    def operand(self, data, path):
        if data is None:
            return None
        _typed(data, dict, path, "an object or null")
        dtype = self.dtype(data, path)
        if "number" in data:
            value = self.attribute(data["number"], f"{path}.number", 0)
            if not (type(value) in (bool, int, float, complex) or forms.is_expression(value)):
                _refuse(f"{path}.number", _shown(value), "a bool, a number or an expression")
            return Number(value, dtype)
        value = _int(data.get("value"), f"{path}.value", 0, MAX_CALLS * 64)
        shape, strides = (self.integers(data, key, path) for key in ("shape", "strides"))
        if len(shape) != len(strides):
            got = Described(f"{len(strides)} strides")
            _refuse(f"{path}.strides", got, f"{len(shape)}, one for each extent")
        offset = self.integer(data.get("offset", 0), f"{path}.offset")
        return Operand(value, dtype, shape, strides, offset)

    def plain_array(self, data, path):
        _typed(data, dict, path, "an object")
        shape = self.integers(data, "shape", path)
        for extent in shape:
            if type(extent) is not int or extent < 0:
                _refuse(f"{path}.shape", _shown(extent), "ints of at least 0")
        return self.dtype(data, path), shape

    def dtype(self, data, path):
        dtype = data.get("dtype")
        if type(dtype) is not str or dtype not in _DTYPES:
            _refuse(f"{path}.dtype", _shown(dtype), "the name of a dtype")
        return dtype

    def integers(self, data, key, path):
        found = data.get(key)
        if type(found) is list and all(
            type(x) is int and -forms.LIMIT <= x <= forms.LIMIT for x in found
        ):
            found = tuple(found)
        else:
            found = tuple(self.integer(part, at) for part, at in self.items(data, key, path))
        if len(found) > MAX_RANK:
            _refuse(f"{path}.{key}", Described(f"{len(found)} ints"), f"at most {MAX_RANK}")
        return found

    def integer(self, data, path):
        if type(data) is int:
            return _int(data, path, -forms.LIMIT, forms.LIMIT)
        return self.expression(data, path, [MAX_PARTS], 0)

    def expression(self, data, path, left, depth):
        if type(data) is int:
            return _int(data, path, -forms.LIMIT, forms.LIMIT)
        left[0] -= 1
        if left[0] < 0 or depth > MAX_DEPTH:
            _refuse(path, Described("a too long expression"), f"at most {MAX_PARTS} parts")
        head = data[0] if type(data) is list and data and type(data[0]) is str else None
        if head == "dim" and len(data) == 2 and type(data[1]) is str:
            return "dim", data[1]
        if head not in ("add", "mul", "floordiv") or len(data) != 3:
            rule = 'an int, ["dim", NAME] or ["add" or "mul" or "floordiv", INTEGER, INTEGER]'
            _refuse(path, _shown(data), rule)
        first, second = (self.expression(part, path, left, depth + 1) for part in data[1:])
        if head == "floordiv" and (type(second) is not int or second < 1):
            _refuse(path, _shown(second), "a divisor that is a positive int")
        return head, first, second

    def attribute(self, data, path, depth):
        if data is None or type(data) in (bool, float):
            return data
        if type(data) is int:
            return _int(data, path, -(2**64), 2**64)
        if type(data) is str:
            if len(data) > MAX_TEXT or not data.replace("\n", "").isprintable():
                _refuse(path, _shown(data), f"at most {MAX_TEXT} printable characters")
            return data
        if depth > MAX_DEPTH:
            _refuse(path, Described("more nested levels"), f"at most {MAX_DEPTH} levels")
        if type(data) is list:
            return tuple(self.attribute(part, path, depth + 1) for part in data)
        if type(data) is not dict or len(data) != 1:
            _refuse(path, _shown(data), "null, a bool, number, string, list or object of one key")
        ((kind, held),) = data.items()
        if kind == "integer":
            return self.integer(held, path)
        if kind == "float" and type(held) is str and held in ("inf", "-inf", "nan"):
            return float(held)
        if kind == "complex" and type(held) is list and len(held) == 2:
            parts = [self.attribute(part, path, depth + 1) for part in held]
            if all(type(part) is float for part in parts):
                return complex(*parts)
        if kind == "dict" and type(held) is dict:
            return {key: self.attribute(part, path, depth + 1) for key, part in held.items()}
        _refuse(path, _shown(data), '"integer", "float", "complex" or "dict"')

    def tree(self, data, key, path):
        held = data.get(key)
        if held is None:
            return None
        try:
            return tree.from_json(held, f"{path}.{key}" if path else key)
        except ValueError as error:
            raise ProgramFileError(str(error)) from None

    def items(self, data, key, path):
        """Return [(item, its path)] for a list; an empty list if the key is missing."""
        held = _typed(data.get(key, []), list, f"{path}.{key}", "a list")
        return [(item, f"{path}.{key}[{index}]") for index, item in enumerate(held)]

    def named(self, data, key, path):
        """Return [(name, item)] for an object; an empty list if the key is missing."""
        path = f"{path}.{key}" if path else key
        held = _typed(data.get(key, {}), dict, path, "an object")
        for name in held:
            _name(name, path)
        return list(held.items())

    def string(self, data, key, path, default=_NONE):
        text = data.get(key, default)
        if text is _NONE or type(text) is not str:
            _refuse(f"{path}.{key}", Described(type(text).__name__), "a string")
        return _name(text, f"{path}.{key}")


def _name(text, path):
    if len(text) > MAX_NAME or not text.isprintable():
        _refuse(path, _shown(text), f"at most {MAX_NAME} printable characters")
    return text


def _typed(data, kind, path, rule):
    if type(data) is not kind:
        _refuse(path, _shown(data), rule)
    return data


def _int(data, path, least, most):
    if type(data) is not int or not least <= data <= most:
        _refuse(path, _shown(data), f"an int from {least} to {most}")
    return data


def _shown(data):
    """Return a value as short text of one line, for a message."""
    if type(data) in (dict, list, tuple):
        return Described(f"{'an object' if type(data) is dict else 'a list'} of {len(data)}")
    return Described(ascii(data)[:80])
