"""The text of a function for `print`: one line for each call. It is not meant to be parsed.

A temporary is shown by its number; a weight, constant, input or state by its name. An operand shows
only differences from the operand that made its value: dtype, shape, strides that are not row-major,
and the offset in bytes. Attributes without effect (None, False, a factor of 1) are omitted.
"""

from __future__ import annotations

from gputensor.programs import dims as forms
from gputensor.programs.function import Function, Operand

__all__ = ["dtype_text", "function_text", "operand_text", "program_text"]

_SHORT = {
    "bool": "i1", "bfloat16": "bf16", "float8_e4m3": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "complex64": "cf64", "complex128": "cf128",
}  # fmt: skip
_OMITTED = {"alpha": ("1", "1.0"), "beta": ("0", "0.0"), "precision": ("0",)}  # without effect
_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}
_WIDE = 96  # results are aligned in one column unless a call is longer
_MAX_ITEMS = 6  # states and inputs that the first line shows from each end


def dtype_text(dtype):
    """Return the short name of a dtype.

    >>> dtype_text("float32"), dtype_text("uint8"), dtype_text("bool")
    ('f32', 'ui8', 'i1')
    """
    if dtype in _SHORT:
        return _SHORT[dtype]
    return dtype.replace("uint", "ui").replace("float", "f").replace("int", "i")


def _extents(integers):
    return "[" + ",".join(forms.text(part) for part in integers) + "]"


def operand_text(operand, dims=()):
    """Return the layout of an operand as text: ``f32[1,4096]``, ``f32[64,8]/[1,64]+256``.

    `dims` are the dims of its integers.
    """
    text = dtype_text(operand.dtype) + _extents(operand.shape)
    if not all(_is_row_major(operand, sizes) for sizes in forms.ends(dims)):
        text += "/" + _extents(operand.strides)
    if operand.offset != 0:
        text += f"+{_enclosed(operand.offset)}"
    return text


def _enclosed(integer):
    text = forms.text(integer)
    return f"({text})" if " " in text or text.startswith("-") else text


def _is_row_major(operand, sizes):
    """Whether an operand is row-major for these sizes; integers from a file are not expanded."""
    try:
        shape = [forms.evaluate(extent, sizes) for extent in operand.shape]
        strides = [forms.evaluate(stride, sizes) for stride in operand.strides]
    except (KeyError, ValueError):
        return False
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=False):
        if extent > 1 and stride != step:
            return 0 in shape
        step *= extent
    return True


def program_text(program):
    """Return the text of all functions of a ProgramData."""
    return "\n\n".join(function_text(f, program.states) for f in program.functions.values())


def function_text(function, states=None):
    """Return the text of a function.

    Parameters
    ----------
    function : Function
    states : dict, optional
        Maps the name of a state to (dtype, shape); without it only names are shown.
    """
    lines = [_head(function, states or {})]
    rows = _Rows(function, function.dims.values()).fill("  ")
    wide = min(max(len(left) for left, _right in rows), _WIDE)
    lines += [f"{left:<{wide}} : {right}" if right else left for left, right in rows]
    return "\n".join(lines)


def _head(function, states):
    dims = function.dims.values()
    inputs = [f"{item.path}: {operand_text(item.operand, dims)}" for item in function.inputs]
    held = []
    for name in function.states:
        dtype, shape = states.get(name, ("", ()))
        held.append(f"{name}: {dtype_text(dtype)}{_extents(shape)}" if dtype else name)
    results = [operand_text(item.operand, dims) for item in function.outputs]
    text = f"func @{function.name}({_some(inputs)})"
    if held:
        text += f"  state({_some(held)})"
    text += "  -> " + (results[0] if len(results) == 1 else f"({_some(results)})")
    if function.dims:
        ranges = []
        for dim in dims:
            by = f" by {dim.multiple}" if dim.multiple != 1 else ""
            ranges.append(f"{dim.name} {dim.least}..{dim.most}{by}")
        text += f"  dims({', '.join(ranges)})"
    if function.at:
        text += f"  at({', '.join(f'{dim} {size}' for dim, size in function.at.items())})"
    return text


def _some(items):
    if len(items) > 2 * _MAX_ITEMS:
        items = [*items[:_MAX_ITEMS], "…", *items[-_MAX_ITEMS:]]
    return ", ".join(items)


class _Rows:
    """The lines of one function: (call, results and line) for each call, with indented regions."""

    def __init__(self, function, dims):
        self.function, self.dims, self.rows = function, dims, []
        self.made = {item.operand.value: item.operand for item in function.inputs}
        self.first = {}  # version -> first version
        for number, value in enumerate(function.values):
            self.first[number] = self.first.get(value.base, number)

    def fill(self, indent):
        for call in self.function.calls:
            into = call.into or (None,) * len(call.writes)
            writes = list(zip(call.writes, into, strict=False))
            for operand, version in writes:
                whole = operand if version is None else self.made.get(version)
                if whole is not None:
                    self.made.setdefault(operand.value, whole)
            names = ", ".join(self.name(operand.value) for operand in call.writes)
            parts = [f"{names} = {call.name}" if names else call.name]
            if "trees" in call.attributes:
                parts.append(f"{{ {', '.join(map(_step, call.attributes['trees']))} }}")
            reads = list(call.reads)
            while reads and reads[-1] is None:
                reads.pop()
            parts += [self.read(read) for read in reads]
            parts += [f"into {self.view(o, v)}" for o, v in writes if v is not None]
            parts += [
                f"{key}={_attribute(value)}"
                for key, value in call.attributes.items()
                if key != "trees" and repr(value) not in _OMITTED.get(key, ("None", "False"))
            ]
            if call.stream:
                parts.append(f"stream={call.stream}")
            results = ", ".join(
                operand_text(o, self.dims) if v is None else self.memory(v) for o, v in writes
            )
            right = " ".join(part for part in (results, call.line) if part)
            self.rows.append((indent + " ".join(parts), right))
            for region in call.regions:
                inner = _Rows(region, self.dims)
                inputs = (f"{a.path}: {operand_text(a.operand, self.dims)}" for a in region.inputs)
                self.rows.append((f"{indent}  region @{region.name}({', '.join(inputs)})", ""))
                self.rows += inner.fill(indent + "    ")
        outputs = ", ".join(self.view(o.operand) for o in self.function.outputs)
        self.rows.append((f"{indent}return {outputs}".rstrip(), ""))
        return self.rows

    def name(self, number):
        values = self.function.values
        if not 0 <= number < len(values):
            return f"%{number}?"
        named = values[number].base is None and values[number].name
        return f"%{values[number].name}" if named else f"%{number}"

    def memory(self, number):
        """Return the name of a value's memory, which is that of its first version."""
        name = self.name(self.first.get(number, number))
        return name if name[1:].isdigit() else name[1:]

    def view(self, operand, version=None):
        """Return an operand by name, with differences from the operand that made its value."""
        if version is not None:
            operand = operand._replace(value=version)
        name, whole = self.name(operand.value), self.made.get(operand.value)
        if whole is not None and operand[1:] == whole[1:]:
            return name
        text = operand_text(operand, self.dims)
        if whole is None or whole.dtype == operand.dtype:
            return name + text[len(dtype_text(operand.dtype)) :]
        return f"{name}:{text}"

    def read(self, read):
        if isinstance(read, Operand):
            return self.view(read)
        return "-" if read is None else repr(read.value)


def _step(tree, level=0):
    """Return a formula in Python's notation: ``exp(a - max(a))``. Operands are a, b, c."""
    if type(tree) is not tuple or not tree:
        return repr(tree)
    head, *parts = tree
    if head == "load" and len(parts) == 1 and type(parts[0]) is int and 0 <= parts[0] < 26:
        return chr(ord("a") + parts[0])
    if head == "number" and len(parts) == 1:
        return str(parts[0])
    if head in _INFIX and len(parts) == 2:
        sign, rank = _INFIX[head]
        inner = f"{_step(parts[0], rank)} {sign} {_step(parts[1], rank + 1)}"
        return f"({inner})" if rank < level else inner
    if head in ("fold", "round") and len(parts) == 2:
        return f"{parts[0]}({_step(parts[1])})"
    return f"{head}({', '.join(map(_step, parts))})" if parts else str(head)


def _attribute(value):
    if forms.is_expression(value):
        return _enclosed(value)
    if type(value) is tuple:
        return "(" + ",".join(_attribute(part) for part in value) + ")"
    if type(value) is str and value.isidentifier():
        return value
    return repr(value)[:200]


Function.__str__ = function_text  # type: ignore[method-assign]
