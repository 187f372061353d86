"""Checks a plan: values that may be alive together do not overlap, and each is in its arena.

Shares no code with plan.py: it sweeps over addresses, not over time, and checks for each pair that
overlaps that every call that accesses one precedes the call that makes the other. The calls that
precede a call are kept as a set (a range, or the bits of an int).
"""

from __future__ import annotations

import bisect
import heapq

from gputensor.errors import Described, ProgramError, argument_error
from gputensor.programs.dims import evaluate
from gputensor.programs.function import Operand

__all__ = ["check_plan"]


def check_plan(function, sizes, plan):
    """Raise `ProgramError` unless a plan is valid for a function at these sizes.

    Parameters
    ----------
    function : Function
    sizes : dict
    plan : Plan
    """
    path = f"plan of {function.name}"
    first = _first_versions(function)
    outputs = {first[item.operand.value] for item in function.outputs}
    blocks = []  # (offset, end, what, its calls)
    for number, calls in _users(function, first).items():
        if function.values[number].kind != "temporary":
            continue
        offset = plan.offsets.get(number)
        if number in outputs:
            if offset is not None or number not in plan.results:
                _refuse(path, f"output {number} in the arena", "memory of the caller")
            continue
        if offset is None:
            _refuse(path, f"no place for value {number}", "a place for each temporary")
        nbytes = evaluate(function.values[number].nbytes, sizes)
        blocks.append(_block(plan, path, f"value {number}", (offset, nbytes), calls))
    if len(plan.offsets) != len(blocks):
        _refuse(path, f"{len(plan.offsets)} places", f"{len(blocks)}, one for each temporary")
    for index, call in enumerate(function.calls):
        inner = plan.regions.get(index, ())
        if len(inner) != len(call.regions):
            _refuse(path, f"{len(inner)} regions of call {index}", f"{len(call.regions)}")
        for region, (_offset, part) in zip(call.regions, inner, strict=True):
            check_plan(region, sizes, part)
        if inner:  # regions never run at the same time, so they share a place
            nbytes = max(part.nbytes for _offset, part in inner)
            offsets = {offset for offset, _part in inner}
            if len(offsets) != 1:
                _refuse(path, f"regions of call {index} at {sorted(offsets)}", "one offset")
            what = f"the regions of call {index}"
            blocks.append(_block(plan, path, what, (*offsets, nbytes), [index]))
        needed = _loop_memory(function, call, sizes) if call.regions else []
        given = plan.scratch.get(index, ())
        if len(given) != len(needed):
            _refuse(path, f"{len(given)} places of scratch of call {index}", str(len(needed)))
        for place in zip(given, needed, strict=True):
            blocks.append(_block(plan, path, f"scratch of call {index}", place, [index]))
    _sweep(path, function, blocks)


def _loop_memory(function, call, sizes):
    """Return the bytes of second copies of carried values, and of the flag or index."""
    values = [evaluate(function.values[o.value].nbytes, sizes) for o in call.writes]
    if call.name == "scan":
        return values[: call.attributes["carry"]]
    return {"cond": [], "while_loop": [*values, 1], "fori_loop": [*values, 8]}[call.name]


def _refuse(path, got, rule):
    raise argument_error(ProgramError, path, Described(got), rule)


def _first_versions(function):
    """Return {value: first version of its memory}."""
    first = {}
    for number, value in enumerate(function.values):
        first[number] = number if value.base is None else first[value.base]
    return first


def _users(function, first):
    """Return {first version: calls that access any version}."""
    users = {}
    for index, call in enumerate(function.calls):
        for operand in (*call.writes, *call.reads):
            if isinstance(operand, Operand):
                calls = users.setdefault(first[operand.value], [])
                if calls[-1:] != [index]:
                    calls.append(index)
    return users


def _block(plan, path, what, place, calls):
    offset, nbytes = place
    if type(offset) is not int or offset % 256 or not 0 <= offset <= plan.nbytes - nbytes:
        rule = f"a multiple of 256 inside {plan.nbytes} bytes"
        _refuse(path, f"{what}, {nbytes} bytes at {offset}", rule)
    return offset, offset + nbytes, what, calls


def _sweep(path, function, blocks):
    """Sweep from low to high addresses; `active` has the current blocks by their first call.

    If each block is done before the next one begins, it is done before all later ones. So a new
    block is compared only with its neighbours.
    """
    earlier = None
    active, ends = [], []
    for block in sorted(blocks, key=lambda block: block[:2]):
        start, end, _what, calls = block
        if start == end:
            continue
        while ends and ends[0][0] <= start:
            active.remove(heapq.heappop(ends)[1])
        entry = (calls[0], len(ends), block)
        place = bisect.bisect(active, entry[:1])
        for _birth, _count, other in active[max(place - 1, 0) : place + 1]:
            if earlier is None:
                earlier = _calls_before(function)
            one, two = sorted((block, other), key=lambda part: part[3])
            if one[3][0] == two[3][0] or not _all_before(one[3], earlier[two[3][0]]):
                got = f"{block[2]} and {other[2]} at bytes {start} to {min(end, other[1])}"
                _refuse(path, got, "separate places for values that are alive together")
        active.insert(place, entry)
        heapq.heappush(ends, (end, entry))


def _all_before(calls, before):
    if type(before) is range:
        return calls[-1] in before
    return all(before >> call & 1 for call in calls)


def _calls_before(function):
    """Return for each call the set of calls that are certainly done before it begins."""
    if len({call.stream for call in function.calls}) == 1:
        return [range(index) for index in range(len(function.calls))]
    before, on_stream, writers, readers = [], {}, {}, {}
    first = _first_versions(function)
    for index, call in enumerate(function.calls):
        direct = set()
        if call.stream in on_stream:
            direct.add(on_stream[call.stream])
        on_stream[call.stream] = index
        for operand in call.reads:
            if isinstance(operand, Operand):
                direct |= writers.get(first[operand.value], set())
        for operand in call.writes:
            number = first[operand.value]
            direct |= writers.get(number, set()) | readers.get(number, set())
        found = 0
        for other in direct:
            found |= before[other] | 1 << other
        before.append(found)
        for operand in call.reads:
            if isinstance(operand, Operand):
                readers.setdefault(first[operand.value], set()).add(index)
        for operand in call.writes:
            writers[first[operand.value]] = {index}
            readers.pop(first[operand.value], None)
    return before
