"""Bindings on a host device: the NumPy functions of their calls, one after the other.

A whole function is one piece of work of its stream, so that either all of it is queued or nothing.
What its calls read and write is fixed when it is queued: a deferred device may run it after the
session's next call was queued. Branches on several streams run in the order of the calls.

Control flow runs here, too: a region is prepared for the addresses that a turn works on.
"""

from __future__ import annotations

from gputensor._kernels.calls import CALLS
from gputensor._kernels.launch import CallOperand
from gputensor.programs.bind import BoundControl
from gputensor.programs.session import host_arguments, read_word, write_word

__all__ = ["prepare"]


def prepare(binding, addresses, weights, before=None):
    """Return the steps of a binding: one (function, arguments) for each call.

    Parameters
    ----------
    binding : Binding
    addresses : tuple of int
        Of its pieces.
    weights : dict
        From names of weights to addresses, for regions.
    before : (addresses, steps), optional
        Steps of the same binding that were prepared for other addresses.
    """
    steps = []
    moved = ()
    if before is not None:
        moved = {i for i, (a, b) in enumerate(zip(addresses, before[0], strict=True)) if a != b}
    for number, call in enumerate(binding.calls):
        if before is not None and type(call) is not BoundControl:
            if not any(piece in moved for _at, piece, _offset in call.patches):
                steps.append(before[1][number])
                continue
        if type(call) is BoundControl:
            steps.append((_CONTROL[call.name], (_Turns(call, addresses, weights),)))
        elif call.is_empty:
            steps.append((_nothing, ()))
        else:
            steps.append((call.row.run, host_arguments(call.arguments, call.patches, addresses)))
    return tuple(steps)


def _nothing():
    pass


class _Turns:
    """What control flow works on: addresses, and the steps of regions by what they work on."""

    def __init__(self, call, addresses, weights):
        self.call = call
        self.attributes = call.attributes
        self.addresses = addresses
        self.weights = weights
        self.reads = self.at(call.reads)
        self.writes = self.at(call.writes)
        self.spare = self.at(call.spare)
        self.flag, self.index = self.at((call.flag, call.index))
        self.known = {}

    def at(self, places):
        return [self.addresses[place.piece] + place.offset for place in places]

    def run(self, number, inputs, outputs):
        """Run a region on addresses of its inputs and outputs."""
        key = (number, *inputs, *outputs)
        steps = self.known.get(key)
        if steps is None:
            region = self.call.regions[number]
            arena = self.addresses[0] + self.call.arenas[number]
            names = [piece.name for piece in region.pieces[1 + len(inputs) + len(outputs) :]]
            weights = [self.weights[name] for name in names]
            addresses = (arena, *inputs, *outputs, *weights)
            steps = prepare(region, addresses, self.weights)
            if len(self.known) < 8:
                self.known[key] = steps
        for function, arguments in steps:
            function(*arguments)

    def copy(self, targets, sources, places):
        for target, source, place in zip(targets, sources, places, strict=True):
            if target != source and place.nbytes:
                copy_bytes(target, source, place.nbytes)

    def turns(self, count, carried):
        """Yield (turn, sources, targets) so that the last of `count` turns writes the results."""
        sources = self.reads[:carried]
        for turn in range(count):
            last = (count - turn) % 2 == 1
            targets = self.writes[:carried] if last else self.spare
            yield turn, sources, targets
            sources = targets
        if not count:
            self.copy(self.writes[:carried], sources, self.call.writes[:carried])


def copy_bytes(target, source, nbytes):
    """Copy between addresses of host memory."""
    out, given = (CallOperand(address, "uint8", (nbytes,)) for address in (target, source))
    CALLS["elementwise"].run("copy", "uint8", *host_arguments((out, given), (), ()))


def _cond(work):
    is_true = read_word(work.reads[0], 1)
    work.run(0 if is_true else 1, work.reads[1:], work.writes)


def _while_loop(work):
    carried = len(work.writes)
    sources, captures = work.reads[:carried], work.reads[carried:]
    targets, others = work.writes, work.spare
    while True:
        work.run(0, [*sources, *captures], [work.flag])
        if not read_word(work.flag, 1):
            break
        work.run(1, [*sources, *captures], targets)
        sources, targets, others = targets, others, targets
    work.copy(work.writes, sources, work.call.writes)


def _fori_loop(work):
    carried = len(work.writes)
    lower, upper = work.attributes["lower"], work.attributes["upper"]
    captures = work.reads[carried:]
    for turn, sources, targets in work.turns(max(upper - lower, 0), carried):
        write_word(work.index, lower + turn)
        work.run(0, [work.index, *sources, *captures], targets)


def _scan(work):
    length, carried = work.attributes["length"], work.attributes["carry"]
    region = work.call.regions[0]
    # An array is longer than the element that a turn reads; a capture is what the region reads.
    pairs = zip(work.call.reads, region.inputs_nbytes, strict=True)
    steps = [0 if place.nbytes == nbytes else nbytes for place, nbytes in pairs][carried:]
    stacked = region.outputs_nbytes[carried:]
    for turn, sources, targets in work.turns(length, carried):
        at = length - 1 - turn if work.attributes["reverse"] else turn
        others = [
            address + at * step for address, step in zip(work.reads[carried:], steps, strict=True)
        ]
        results = [
            address + at * nbytes
            for address, nbytes in zip(work.writes[carried:], stacked, strict=True)
        ]
        work.run(0, [*sources, *others], [*targets, *results])


_CONTROL = {"cond": _cond, "while_loop": _while_loop, "fori_loop": _fori_loop, "scan": _scan}
