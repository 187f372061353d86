"""Places of temporaries in one arena, such that values that are alive together do not overlap.

A value is alive from the call that writes its first version to the last call that accesses any
version; all versions have the same place. Two values may share memory if every call that accesses
one precedes the call that writes the other: by the order of calls within a stream, and by data
dependencies between streams. Outputs are not in the arena: the caller provides their memory, and a
call of control flow that of its regions' outputs. The arenas of its regions, and its own scratch,
are parts of the enclosing arena for the duration of the call.

pack.py packs the arena, plan_check.py checks every plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gputensor.errors import ProgramError, argument_error
from gputensor.programs.dims import LIMIT, evaluate
from gputensor.programs.function import Operand
from gputensor.programs.passes.pack import packed

__all__ = ["ALIGNMENT", "Plan", "plan"]

ALIGNMENT = 256


@dataclass
class Plan:
    """The places of a function's temporaries at given sizes.

    Attributes
    ----------
    nbytes : int
        The size of the arena.
    offsets : dict
        First version of each temporary that is not an output -> its offset in the arena.
    results : tuple
        The first versions of the outputs, in memory of the caller.
    regions : dict
        Index of a call -> (offset, Plan) for each of its regions. Regions of one call begin at the
        same offset, because they never run at the same time.
    scratch : dict
        Index of a loop -> offsets of a second copy of each carried value, in order, then of the
        flag of `while_loop` or the index of `fori_loop`.
    lower_bound : int
        The most bytes that are alive during one call, with each value rounded up to 256 bytes.
    total : int
        The sum over all temporaries, the size of an arena without sharing.
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
    total = sum(nbytes for nbytes in lives.nbytes if nbytes > 0)
    if total > LIMIT:
        raise argument_error(ProgramError, f"plan of {function.name}", total, "at most 2**62 bytes")
    places = packed(lives)
    found.nbytes = places.top
    found.lower_bound, found.total = places.lower_bound, total
    for name, offset in zip(places.names, places.offsets, strict=True):
        if type(name) is int:
            found.offsets[name] = offset
        elif name[1] == "regions":
            found.regions[name[0]] = tuple((offset, part) for part in found.regions[name[0]])
        else:
            found.scratch[name[0]] = (*found.scratch.get(name[0], ()), offset)
    return found


def _scratch(function, call, sizes):
    """Return the sizes of the scratch of a loop."""
    if call.name == "cond":
        return []
    carried = call.attributes["carry"] if call.name == "scan" else len(call.writes)
    found = [
        evaluate(function.values[operand.value].nbytes, sizes) for operand in call.writes[:carried]
    ]
    return found + {"while_loop": [1], "fori_loop": [8]}.get(call.name, [])


class Lifetimes:
    """The size, first call, and last call on each stream, for each value."""

    def __init__(self, function):
        self.names, self.nbytes, self.births, self.last = [], [], [], []
        self.place = {}
        self.root = []
        for number, value in enumerate(function.values):
            self.root.append(number if value.base is None else self.root[value.base])
        numbers = sorted({call.stream for call in function.calls} | {0})
        self.streams = {number: index for index, number in enumerate(numbers)}
        self.clocks = []  # for each call: the last preceding call of each stream
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
    lives = Lifetimes(function)
    width = len(lives.streams)
    written, touched = {}, {}  # root -> clock after its last write; after its last calls
    newest = [[-1] * width for _stream in range(width)]  # for each stream: the clock after it
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
