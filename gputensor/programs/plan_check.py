"""Checks a plan: no two values that may live at once overlap, and each lies in its arena.

Shares no code with plan.py: it sweeps over addresses, not over time, and asks of each pair that
overlaps whether every call that touches the one comes before the call that makes the other. What
comes before is kept as one set of calls (the bits of an int) for each call.
"""

from __future__ import annotations

from gputensor.errors import Described, ProgramError, argument_error
from gputensor.programs.dims import evaluate
from gputensor.programs.function import Operand

__all__ = ["check_plan"]


def check_plan(function, sizes, plan):
    """Raise `ProgramError` unless a plan is right for a function at these sizes.

    Parameters
    ----------
    function : Function
    sizes : dict
    plan : Plan
    """
    path = f"plan of {function.name}"
    outputs = {_first(function, item.operand.value) for item in function.outputs}
    blocks = []  # (offset, end, what, its calls)
    for number, calls in _users(function).items():
        if function.values[number].kind != "temporary":
            continue
        offset = plan.offsets.get(number)
        if number in outputs:
            if offset is not None or number not in plan.results:
                _refuse(path, f"output {number} in the arena", "memory of the caller")
            continue
        if offset is None:
            _refuse(path, f"no place for value {number}", "one for each temporary")
        nbytes = evaluate(function.values[number].nbytes, sizes)
        blocks.append(_block(plan, path, f"value {number}", (offset, nbytes), calls))
    if len(plan.offsets) != len(blocks):
        _refuse(path, f"{len(plan.offsets)} places", f"{len(blocks)}, one for each temporary")
    for index, call in enumerate(function.calls):
        inner = plan.regions.get(index, ())
        if len(inner) != len(call.regions):
            _refuse(path, f"{len(inner)} regions of call {index}", f"{len(call.regions)}")
        for region, (offset, part) in zip(call.regions, inner, strict=True):
            check_plan(region, sizes, part)
            what = f"the region {region.name} of call {index}"
            blocks.append(_block(plan, path, what, (offset, part.nbytes), [index]))
        needed = _loop_memory(function, call, sizes) if call.regions else []
        given = plan.scratch.get(index, ())
        if len(given) != len(needed):
            _refuse(path, f"{len(given)} places of scratch of call {index}", str(len(needed)))
        for place in zip(given, needed, strict=True):
            blocks.append(_block(plan, path, f"scratch of call {index}", place, [index]))
    _sweep(path, function, blocks)


def _loop_memory(function, call, sizes):
    """Bytes of the second copies of what a loop carries, and of its flag or index."""
    values = [evaluate(function.values[o.value].nbytes, sizes) for o in call.writes]
    if call.name == "scan":
        return values[: call.attributes["carry"]]
    return {"cond": [], "while_loop": [*values, 1], "fori_loop": [*values, 8]}[call.name]


def _refuse(path, got, rule):
    raise argument_error(ProgramError, path, Described(got), rule)


def _first(function, number):
    while function.values[number].base is not None:
        number = function.values[number].base
    return number


def _users(function):
    """From the first version of each value to the calls that touch one of its versions."""
    users = {}
    for index, call in enumerate(function.calls):
        for operand in (*call.writes, *call.reads):
            if isinstance(operand, Operand):
                calls = users.setdefault(_first(function, operand.value), [])
                if calls[-1:] != [index]:
                    calls.append(index)
    return users


def _block(plan, path, what, place, calls):
    offset, nbytes = place
    if type(offset) is not int or offset % 256 or not 0 <= offset <= plan.nbytes - nbytes:
        rule = f"a multiple of 256 inside of {plan.nbytes} bytes"
        _refuse(path, f"{what}, {nbytes} bytes at {offset}", rule)
    return offset, offset + nbytes, what, calls


def _sweep(path, function, blocks):
    """From low to high addresses; `active` are the blocks that the current one may overlap."""
    earlier = None
    active = []
    for block in sorted(blocks, key=lambda block: block[:2]):
        start, end, what, calls = block
        active = [other for other in active if other[1] > start]
        for _start, other_end, other, others in active:
            are_regions = what.startswith("the region") and other.startswith("the region")
            if start == end or (are_regions and calls == others):
                continue
            if earlier is None:
                earlier = _calls_before(function)
            first, second = sorted((calls, others))
            if first[0] == second[0] or not _all_before(first, earlier[second[0]]):
                got = f"{what} and {other} at bytes {start} to {min(end, other_end)}"
                _refuse(path, got, "different places for values that live at once")
        active.append(block)


def _all_before(calls, before):
    return all(before >> call & 1 for call in calls)


def _calls_before(function):
    """For each call the set of calls that are certainly done before it begins."""
    before, on_stream, writers, readers = [], {}, {}, {}
    for index, call in enumerate(function.calls):
        direct = set()
        if call.stream in on_stream:
            direct.add(on_stream[call.stream])
        on_stream[call.stream] = index
        for operand in call.reads:
            if isinstance(operand, Operand):
                first = _first(function, operand.value)
                direct |= writers.get(first, set())
        for operand in call.writes:
            first = _first(function, operand.value)
            direct |= writers.get(first, set()) | readers.get(first, set())
        found = 0
        for other in direct:
            found |= before[other] | 1 << other
        before.append(found)
        for operand in call.reads:
            if isinstance(operand, Operand):
                readers.setdefault(_first(function, operand.value), set()).add(index)
        for operand in call.writes:
            writers[_first(function, operand.value)] = {index}
            readers.pop(_first(function, operand.value), None)
    return before
