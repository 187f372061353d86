"""The pass that makes the channels of 16-bit images adjacent: from Function to Function.

On tensor cores a convolution reads and writes eight channels of a pixel at once, and copies an
image with another layout. All calls accept operands of any strides, so an image may have any layout
if every call uses it as an image.
"""

from __future__ import annotations

from dataclasses import replace

from gputensor.programs import dims as forms
from gputensor.programs.attention.views import is_whole
from gputensor.programs.function import Operand, Value, with_regions

__all__ = ["channels_last"]

_HALVES = ("float16", "bfloat16")
_WITH_IMAGES = ("convolution", "window", "elementwise", "formula", "reduce")


def channels_last(function, prepared):
    """Return a function whose convolutions read and write images with adjacent channels.

    Parameters
    ----------
    function : Function
        Not modified.
    prepared : PreparedWeights
        The weights of the program; weights with adjacent channels are added.
    """
    function = with_regions(function, lambda one: channels_last(one, prepared))
    images = _images(function)
    if not images:
        return function
    calls, values = list(function.calls), list(function.values)

    def placed(operand):
        if isinstance(operand, Operand) and operand.value in images:
            return operand._replace(strides=_strides(operand.shape))
        return operand

    for index, call in enumerate(calls):
        reads = tuple(map(placed, call.reads))
        if call.name == "convolution":
            reads = (reads[0], _weight(reads[1], values, prepared), *reads[2:])
        calls[index] = replace(call, writes=tuple(map(placed, call.writes)), reads=reads)
    return replace(function, values=values, calls=calls)


def _strides(shape):
    """Return row-major strides for channels, axis 1, as the last axis."""
    steps = forms.row_major((shape[0], *shape[2:], shape[1]))
    return (steps[0], steps[-1], *steps[1:-1])


def _images(function):
    """Return the values that can have this layout and are connected to a convolution."""
    uses, joined = {}, {}
    for call in function.calls:
        for operand in (*call.writes, *call.reads):
            if isinstance(operand, Operand):
                uses.setdefault(operand.value, []).append((call, operand))
    kept = {one.operand.value for one in function.outputs}
    kept.update(value.base for value in function.values)
    found = {
        number
        for number, value in enumerate(function.values)
        if value.kind == "temporary" and value.base is None and number not in kept
        and number in uses and _is_image(uses[number])
    }  # fmt: skip

    def group(number):
        while joined.setdefault(number, number) != number:
            number = joined[number]
        return number

    convolved = set()
    for call in function.calls:
        both = [one.value for one in (*call.writes, *call.reads[:1]) if isinstance(one, Operand)]
        here = sorted({one.value for one in _operands(call)} & found)
        if call.name != "convolution":
            for number in here[1:]:
                joined[group(number)] = group(here[0])
        else:
            convolved.update(found.intersection(both))
    wanted = {group(number) for number in convolved}
    return {number for number in found if group(number) in wanted}


def _operands(call):
    return [one for one in (*call.writes, *call.reads) if isinstance(one, Operand)]


def _is_image(uses):
    """Whether all calls use a value as one image, and accept any layout."""
    first = uses[0][1]
    return (
        len(first.shape) in (4, 5)
        and first.dtype in _HALVES
        and all(
            call.name in _WITH_IMAGES
            and operand.shape == first.shape
            and operand.dtype == first.dtype
            and is_whole(operand)
            for call, operand in uses
        )
    )


def _weight(operand, values, prepared):
    """Return the operand of a weight (outputs, channels, kernel) with adjacent channels."""
    value = values[operand.value]
    stored = prepared.weights.get(value.name) if value.kind == "weight" else None
    is_deep = operand.shape[1] != 1 and operand.dtype in _HALVES
    if stored is None or not is_deep or not is_whole(operand):
        return operand
    if tuple(stored.shape) != operand.shape or set(operand.shape[2:]) == {1}:
        return operand
    rank = len(operand.shape)
    order = (0, *range(2, rank), 1)
    weight = prepared.made(value.name, "channels_last", "", lambda array: array.transpose(order))
    values.append(Value("weight", weight.source.nbytes, weight.name))
    return operand._replace(value=len(values) - 1, strides=_strides(operand.shape))
