"""Places of temporaries in one arena, so that what lives at once does not overlap.

A value lives from the call that writes its first version to the last call that touches any version;
all versions are in one place. Two values may share memory when every call that touches the one
comes before the call that writes the other: in the same stream by the order of calls, between
streams where data orders them. Outputs are not in the arena: the caller gives their memory, and a
call of control flow that of its regions' outputs. The arenas of its regions, and the scratch that
it needs itself, are parts of the arena around it, for the time of the call.

Greedy packing in several orders, the smallest arena kept. plan_check.py checks every plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gputensor.programs.dims import evaluate
from gputensor.programs.function import Operand

__all__ = ["ALIGNMENT", "Plan", "plan"]

ALIGNMENT = 256
_MAX_STREAMS = 32  # with more of them nothing is shared
_MAX_SEARCHED = 4096  # functions with more temporaries are packed once, in order of birth
_ROUNDS = 16


@dataclass
class Plan:
    """The places of a function's temporaries at given sizes.

    Attributes
    ----------
    nbytes : int
        The size of the arena.
    offsets : dict
        From the first version of each temporary that is no output to its offset in the arena.
    results : tuple
        The first versions of the outputs, in memory of the caller.
    regions : dict
        From the index of a call to an (offset, Plan) for each of its regions. Regions of one
        call begin at the same offset: they never run at once.
    scratch : dict
        From the index of a loop to offsets: of a second copy of each carried value, in order,
        then of the flag of `while_loop` or the index of `fori_loop`.
    lower_bound : int
        The most bytes that live during one call, each value rounded up to 256 bytes.
    total : int
        The sum over all temporaries, as it would be without sharing.
    """

    nbytes: int = 0
    offsets: dict = field(default_factory=dict)
    results: tuple = ()
    regions: dict = field(default_factory=dict)
    scratch: dict = field(default_factory=dict)
    lower_bound: int = 0
    total: int = 0


def plan(function, sizes):
    """Return the Plan of a function, or region, whose dims have these sizes."""
    found = Plan()
    lives = _lifetimes(function, sizes)
    found.results = tuple(lives.root[item.operand.value] for item in function.outputs)
    for root in found.results:
        lives.drop(root)
    for index, call in enumerate(function.calls):
        if call.regions:
            inner = [plan(region, sizes) for region in call.regions]
            lives.add((index, "regions"), index, max(part.nbytes for part in inner))
            found.regions[index] = inner
            for at, nbytes in enumerate(_scratch(function, call, sizes)):
                lives.add((index, at), index, nbytes)
    places = _pack(lives)
    found.nbytes = places.top
    found.lower_bound, found.total = places.lower_bound, sum(places.nbytes)
    for name, offset in zip(places.names, places.offsets, strict=True):
        if type(name) is int:
            found.offsets[name] = offset
        elif name[1] == "regions":
            found.regions[name[0]] = tuple((offset, part) for part in found.regions[name[0]])
        else:
            found.scratch[name[0]] = (*found.scratch.get(name[0], ()), offset)
    return found


def _scratch(function, call, sizes):
    """The sizes of what a loop needs beside its regions."""
    if call.name == "cond":
        return []
    carried = call.attributes["carry"] if call.name == "scan" else len(call.writes)
    found = [
        evaluate(function.values[operand.value].nbytes, sizes) for operand in call.writes[:carried]
    ]
    return found + {"while_loop": [1], "fori_loop": [8]}.get(call.name, [])


class _Lifetimes:
    """For each value its size, the call of its birth, and its last call on each stream."""

    def __init__(self, function):
        self.names, self.nbytes, self.births, self.last = [], [], [], []
        self.place = {}
        self.root = []
        for number, value in enumerate(function.values):
            self.root.append(number if value.base is None else self.root[value.base])
        numbers = sorted({call.stream for call in function.calls} | {0})
        self.streams = {number: index for index, number in enumerate(numbers)}
        self.clocks = []  # of each call: for each stream its last call that comes before
        self.calls = function.calls

    def add(self, name, birth, nbytes):
        self.place[name] = len(self.names)
        self.names.append(name)
        self.nbytes.append(-(-nbytes // ALIGNMENT) * ALIGNMENT)
        self.births.append(birth)
        last = [-1] * len(self.streams)
        last[self.streams[self.calls[birth].stream]] = birth
        self.last.append(last)

    def touch(self, name, index):
        place = self.place.get(name)
        if place is not None:
            self.last[place][self.streams[self.calls[index].stream]] = index

    def drop(self, name):
        self.nbytes[self.place[name]] = -1


def _lifetimes(function, sizes):
    lives = _Lifetimes(function)
    width = len(lives.streams)
    written, touched = {}, {}  # root -> clock after its last write; after its last calls
    newest = [[-1] * width for _stream in range(width)]  # of each stream: the clock of its end
    for index, call in enumerate(function.calls):
        stream = lives.streams[call.stream]
        clock = list(newest[stream])
        reads = [lives.root[read.value] for read in call.reads if isinstance(read, Operand)]
        writes = [lives.root[operand.value] for operand in call.writes]
        for root in reads:
            _join(clock, written.get(root))
        for root in writes:
            _join(clock, touched.get(root))
        lives.clocks.append(clock)
        after = list(clock)
        after[stream] = index
        newest[stream] = after
        for operand, root in zip(call.writes, writes, strict=True):
            if root not in lives.place and function.values[root].kind == "temporary":
                lives.add(root, index, evaluate(function.values[operand.value].nbytes, sizes))
            written[root] = after
        for root in (*reads, *writes):
            lives.touch(root, index)
            touched[root] = _join(list(touched.get(root, after)), after)
    return lives


def _join(clock, other):
    if other is not None:
        for stream, index in enumerate(other):
            if index > clock[stream]:
                clock[stream] = index
    return clock


class _Places:
    """The result of packing."""

    def __init__(self, lives):
        kept = [i for i, nbytes in enumerate(lives.nbytes) if nbytes >= 0]
        self.names = [lives.names[i] for i in kept]
        self.nbytes = [lives.nbytes[i] for i in kept]
        self.births = np.array([lives.births[i] for i in kept], np.int64)
        self.last = np.array([lives.last[i] for i in kept], np.int64).reshape(
            len(kept), len(lives.streams)
        )
        self.deaths = self.last.max(axis=1, initial=-1)
        self.clocks = np.full((len(kept), len(lives.streams)), -1, np.int64)
        for row, i in enumerate(kept):
            self.clocks[row] = lives.clocks[lives.births[i]]
        self.is_shared = len(lives.streams) <= _MAX_STREAMS
        change = np.zeros(len(lives.calls) + 3, np.int64)
        np.add.at(change, self.births, self.nbytes)
        np.add.at(change, self.deaths + 1, [-nbytes for nbytes in self.nbytes])
        self.alive = np.cumsum(change).tolist()  # bytes during each call
        self.lower_bound = max(self.alive)
        self.offsets, self.top = None, 0

    def conflicts(self, one):
        """Which values live at once with `one`, as far as the order of calls says."""
        if not self.is_shared:
            return np.ones(len(self.names), bool)
        before = (self.last <= self.clocks[one]).all(axis=1)
        after = (self.last[one] <= self.clocks).all(axis=1)
        return ~(before | after)


def _pack(lives):
    places = _Places(lives)
    packing, orders = _Packing(places), _orders(places)
    for order in orders:
        packing.try_order(order)
    for order in orders:
        packing.search(order, min(_ROUNDS, 25_000 // max(len(order), 1)))
    return places


def _orders(places):
    """By birth; by size; by size and time; by how much lives beside a value at most."""
    count, nbytes = len(places.names), places.nbytes
    births, deaths = places.births.tolist(), places.deaths.tolist()
    orders = [sorted(range(count), key=lambda i: (births[i], -nbytes[i]))]
    if count <= _MAX_SEARCHED:
        areas = [n * (d - b + 1) for n, b, d in zip(nbytes, births, deaths, strict=True)]
        beside = [max(places.alive[b : d + 1]) for b, d in zip(births, deaths, strict=True)]
        orders.append(sorted(range(count), key=lambda i: (-nbytes[i], births[i])))
        orders.append(sorted(range(count), key=lambda i: (-areas[i], births[i])))
        orders.append(sorted(range(count), key=lambda i: (-beside[i], -nbytes[i], births[i])))
    return orders


class _Packing:
    """Tries orders; the places keep the smallest arena."""

    def __init__(self, places):
        self.places = places
        self.known = {}

    def try_order(self, order):
        """Keep what this order gives if it is smaller."""
        places = self.places
        if places.offsets is None or places.top != places.lower_bound:
            offsets, top = self.placed(order)
            if places.offsets is None or top < places.top:
                places.offsets, places.top = offsets, top

    def placed(self, order):
        """(offsets, top) of values placed in this order, each at the smallest gap that it fits."""
        offsets, done = [-1] * len(order), np.zeros(len(order), bool)
        nbytes, top = self.places.nbytes, 0
        for one in order:
            others = np.flatnonzero(self.conflicts(one) & done).tolist()
            taken = sorted((offsets[i], offsets[i] + nbytes[i]) for i in others)
            offsets[one] = _gap(taken, nbytes[one])
            top = max(top, offsets[one] + nbytes[one])
            done[one] = True
        return offsets, top

    def conflicts(self, one):
        found = self.known.get(one)
        if found is None:
            found = self.places.conflicts(one)
            if len(found) <= _MAX_SEARCHED:
                self.known[one] = found
        return found

    def search(self, order, rounds):
        """Move what stands at the top of the arena to the front of an order, again and again."""
        places = self.places
        seen = set()
        for _round in range(rounds):
            if places.top == places.lower_bound:
                return
            offsets, top = self.placed(order)
            if top < places.top:
                places.offsets, places.top = offsets, top
            ends = [offset + n for offset, n in zip(offsets, places.nbytes, strict=True)]
            count = sum(end == top for end in ends) + len(seen) % 3
            high = sorted(order, key=lambda i: -ends[i])[:count]
            order = [*high, *(i for i in order if i not in high)]
            seen.add(tuple(order))


def _gap(taken, size):
    """The offset of the smallest gap between ranges that holds `size` bytes, else their end."""
    best, where, top = None, None, 0
    for start, end in taken:
        room = start - top
        if room >= size and (best is None or room < best):
            best, where = room, top
        top = max(top, end)
    return top if where is None else where
