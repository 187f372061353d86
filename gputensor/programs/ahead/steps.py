"""Converts a binding to steps (launches/steps.h): a whole function, for callers without Python."""

from __future__ import annotations

from array import array

from gputensor.errors import Described, argument_error
from gputensor.programs.ahead.launches import StepLaunches
from gputensor.programs.bind import BoundControl

__all__ = ["fixed_of", "launches_of", "steps_of"]

LAUNCH = 0
KINDS = {"cond": 1, "while_loop": 2, "fori_loop": 3, "scan": 4}
_NUMBERS = {"fori_loop": ("lower", "upper"), "scan": ("length", "carry", "reverse")}


def fixed_of(binding):
    """Return the pieces after arena, inputs and outputs, as pairs of a kind and a name.

    These are the weights and states of the function, then the weights that regions read.
    """
    first = 1 + len(binding.inputs) + len(binding.outputs)
    found = [(piece.kind, piece.name) for piece in binding.pieces[first:]]
    return [*found, *(("weight", name) for name in binding.region_weights)]


def launches_of(binding):
    """Return the StepLaunches of a binding whose calls have launch lists, on a device."""
    if binding.has_waits:
        got = Described("a call that another library computes")
        raise argument_error(ValueError, "function", got, "calls with launches")
    rows, numbers, sizes = [], {}, {}

    def number(row):
        if id(row.launches) not in numbers:
            numbers[id(row.launches)] = len(rows)
            rows.append(row)
        return numbers[id(row.launches)]

    words = steps_of(binding, number)
    _region_weights(binding, sizes)
    nbytes = [*(p.nbytes for p in binding.pieces), *(sizes[n] for n in binding.region_weights)]
    return StepLaunches(words, nbytes, rows)


def _region_weights(binding, sizes):
    for call in binding.calls:
        for region in getattr(call, "regions", ()):
            sizes |= {piece.name: piece.nbytes for piece in region.pieces if piece.kind == "weight"}
            _region_weights(region, sizes)


def steps_of(binding, number):
    """Return the steps of a binding whose calls have launch lists, as bytes.

    Parameters
    ----------
    binding : Binding
    number : callable
        Takes the LaunchRow of a call, and returns the number of its list.
    """
    first = len(binding.pieces)
    fixed = {name: first + at for at, name in enumerate(binding.region_weights)}
    words = array("q")
    _write(words, binding, fixed, number)
    return words.tobytes()


def _write(words, binding, fixed, number):
    calls = [c for c in binding.calls if type(c) is BoundControl or not c.is_empty]
    words.append(len(calls))
    for call in calls:
        if type(call) is BoundControl:
            _write_control(words, call, fixed, number)
            continue
        places = {at: (piece, offset) for at, piece, offset in call.patches}
        words.extend((LAUNCH, number(call.row), len(call.arguments)))
        for at in range(len(call.arguments)):
            words.extend((*places.get(at, (-1, 0)), 0))


def _write_control(words, call, fixed, number):
    names = _NUMBERS.get(call.name, ())
    numbers = [int(call.attributes[name]) for name in names]
    words.extend((KINDS[call.name], *numbers, *[0] * (3 - len(numbers))))
    for places in (call.reads, call.writes):
        words.append(len(places))
        for place in places:
            words.extend(place)
    words.extend((len(call.scratch), *call.scratch, len(call.regions)))
    for region, arena in zip(call.regions, call.arenas, strict=True):
        inputs, outputs = region.inputs_nbytes, region.outputs_nbytes
        names = [piece.name for piece in region.pieces[1 + len(inputs) + len(outputs) :]]
        words.append(arena)
        for group in (inputs, outputs, [fixed[name] for name in names]):
            words.extend((len(group), *group))
        _write(words, region, fixed, number)
