"""Places of temporaries in one arena, so that what lives at once does not overlap.

A value lives from the call that writes its first version to the last call that touches any version;
all versions are in one place. Two values may share memory when every call that touches the one
comes before the call that writes the other: in the same stream by the order of calls, between
streams where data orders them. Outputs are not in the arena: the caller gives their memory, and a
call of control flow that of its regions' outputs. The arenas of its regions, and the scratch that
it needs itself, are parts of the arena around it, for the time of the call.

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
    """The sizes of what a loop needs beside its regions."""
    if call.name == "cond":
        return []
    carried = call.attributes["carry"] if call.name == "scan" else len(call.writes)
    found = [
        evaluate(function.values[operand.value].nbytes, sizes) for operand in call.writes[:carried]
    ]
    return found + {"while_loop": [1], "fori_loop": [8]}.get(call.name, [])


class Lifetimes:
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
    lives = Lifetimes(function)
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
