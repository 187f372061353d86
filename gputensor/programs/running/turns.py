"""Control flow of a bound function, iteration by iteration, on any device.

An iteration (a turn) works on addresses: carried values alternate between the memory of the results
and a spare copy. If the number of turns is known, the last one writes the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["Turns"]


class Turns(ABC):
    """One call of control flow. Subclasses run regions and read words on a device.

    Parameters
    ----------
    call : BoundControl
    addresses : tuple of int
        The addresses of the pieces of the enclosing function.
    weights : dict
        Name of a weight -> address, for regions.
    """

    def __init__(self, call, addresses, weights):
        self.call = call
        self.attributes = call.attributes
        self.addresses = addresses
        self.weights = weights
        self.reads = self._at(call.reads)
        self.writes = self._at(call.writes)
        # A second copy of the carried values, followed by the flag or the index of a loop.
        self.spare = [addresses[0] + offset for offset in call.scratch]
        self.word = self.spare[-1] if self.spare else 0

    # ---- the operations of a device

    @abstractmethod
    def run_region(self, number, binding, addresses):
        """Run a region at the addresses of its pieces."""

    @abstractmethod
    def read_flag(self, address):
        """Return the bool at an address, after the work so far."""

    @abstractmethod
    def write_index(self, value):
        """Write the index of a turn."""

    @abstractmethod
    def copy_bytes(self, target, source, nbytes):
        """Copy bytes between addresses that do not overlap."""

    # ---- the calls

    def run(self):
        """Run the whole call."""
        getattr(self, f"_{self.call.name}")()

    def _at(self, places):
        return [self.addresses[place.piece] + place.offset for place in places]

    def _region(self, number, inputs, outputs):
        region = self.call.regions[number]
        arena = self.addresses[0] + self.call.arenas[number]
        names = [piece.name for piece in region.pieces[1 + len(inputs) + len(outputs) :]]
        weights = [self.weights[name] for name in names]
        self.run_region(number, region, (arena, *inputs, *outputs, *weights))

    def _copy(self, targets, sources):
        for target, source, place in zip(targets, sources, self.call.writes, strict=False):
            if target != source and place.nbytes:
                self.copy_bytes(target, source, place.nbytes)

    def _turns(self, count, carried):
        """Yield (turn, sources, targets) so that the last of `count` turns writes the results."""
        sources = self.reads[:carried]
        for turn in range(count):
            is_odd = (count - turn) % 2 == 1
            targets = self.writes[:carried] if is_odd else self.spare[:carried]
            yield turn, sources, targets
            sources = targets
        if count <= 0:
            self._copy(self.writes[:carried], sources)

    def _cond(self):
        number = 0 if self.read_flag(self.reads[0]) else 1
        self._region(number, self.reads[1:], self.writes)

    def _while_loop(self):
        carried = len(self.writes)
        sources, captures = self.reads[:carried], self.reads[carried:]
        targets, others = self.writes, self.spare[:carried]
        while True:
            self._region(0, [*sources, *captures], [self.word])
            if not self.read_flag(self.word):
                break
            self._region(1, [*sources, *captures], targets)
            sources, targets, others = targets, others, targets
        self._copy(self.writes, sources)

    def _fori_loop(self):
        carried = len(self.writes)
        lower, upper = self.attributes["lower"], self.attributes["upper"]
        captures = self.reads[carried:]
        for turn, sources, targets in self._turns(upper - lower, carried):
            self.write_index(lower + turn)
            self._region(0, [self.word, *sources, *captures], targets)

    def _scan(self):
        length, carried = self.attributes["length"], self.attributes["carry"]
        region = self.call.regions[0]
        # A turn reads one element of an array, but all of a capture.
        pairs = zip(self.call.reads, region.inputs_nbytes, strict=True)
        steps = [0 if place.nbytes == nbytes else nbytes for place, nbytes in pairs][carried:]
        stacked = region.outputs_nbytes[carried:]
        for turn, sources, targets in self._turns(length, carried):
            at = length - 1 - turn if self.attributes["reverse"] else turn
            arrays = [a + at * step for a, step in zip(self.reads[carried:], steps, strict=True)]
            results = [a + at * n for a, n in zip(self.writes[carried:], stacked, strict=True)]
            self._region(0, [*sources, *arrays], [*targets, *results])
