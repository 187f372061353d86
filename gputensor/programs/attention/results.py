"""The pass that lets attention write its result in the order in which it is read.

A model joins the heads of a result again, by a copy that moves an axis. The rows of a result may be
at any distance, so attention writes into the result of that copy instead.
"""

from __future__ import annotations

from dataclasses import replace

from gputensor.programs.attention.views import Graph, is_new
from gputensor.programs.function import with_regions
from gputensor.programs.passes.clean import clean

__all__ = ["place_results"]

#: One kernel computes attention of these; others go through products, which want plain matrices.
_HALVES = ("float16", "bfloat16")
_MOST_WIDTH = 256


def place_results(function, weights):
    """Return a function without the copies that only move the axes of attention's results.

    Parameters
    ----------
    function : Function
        Not modified.
    weights : dict
        The weights of the program by name.
    """
    function = with_regions(function, lambda one: place_results(one, weights))
    calls, graph = list(function.calls), Graph(function, weights)
    kept = {one.operand.value for one in function.outputs}
    kept.update(value.base for value in function.values)
    for index, call in enumerate(function.calls):
        if call.name != "attention" or not is_new(call) or call.writes[0].value in kept:
            continue
        readers = graph.readers.get(call.writes[0].value, ())
        if len(readers) != 1:
            continue
        (place,) = readers
        copy = function.calls[place]
        is_copy = copy.name == "elementwise" and copy.attributes["op"] == "copy" and is_new(copy)
        written = _moved(call.writes[0], copy) if is_copy and copy.stream == call.stream else None
        if written is not None:
            calls[index], calls[place] = replace(calls[index], writes=(written,)), None
    if None not in calls:
        return function
    kept_calls = [call for call in calls if call is not None]
    return clean(replace(function, calls=kept_calls), weights)


def _moved(result, copy):
    """Return the operand by which attention writes the result of a copy, or None."""
    (read,), target = copy.reads, copy.writes[0]
    width = result.shape[-1]
    if result.dtype not in _HALVES or type(width) is not int or width % 8 or width > _MOST_WIDTH:
        return None
    if read.dtype != result.dtype or target.dtype != result.dtype or read.offset != 0:
        return None
    axes = {
        (extent, stride): step
        for extent, stride, step in zip(read.shape, read.strides, target.strides, strict=True)
        if extent != 1
    }
    strides = [
        stride if extent == 1 else axes.pop((extent, stride), None)
        for extent, stride in zip(result.shape, result.strides, strict=True)
    ]
    if axes or None in strides or strides[-1] != 1:
        return None
    return target._replace(shape=result.shape, strides=tuple(strides))
