"""Branches: the calls of other streams that a call must wait for.

The order is the data dependency that the plan relies on (plan.py): a call follows the earlier calls
of its stream; of other streams, it follows the writers of the values that it reads, and the writers
and readers of values that it writes a version of.
"""

from __future__ import annotations

from gputensor.programs.function import Operand

__all__ = ["waits_of"]


def waits_of(function):
    """Return for each call the calls of other streams to wait for, without implied ones."""
    if len({call.stream for call in function.calls}) <= 1:
        return [()] * len(function.calls)
    roots, writer, readers = [], {}, {}
    for number, value in enumerate(function.values):
        roots.append(number if value.base is None else roots[value.base])
    after = []  # for each call: {stream: last call that is done when this call is done}
    newest = {}  # stream -> the same for its last call
    found = []
    for index, call in enumerate(function.calls):
        reads = {roots[one.value] for one in call.reads if isinstance(one, Operand)}
        writes = {roots[one.value] for one in call.writes}
        wanted = {writer[root] for root in reads | writes if root in writer}
        wanted = wanted.union(*(readers.get(root, ()) for root in writes))
        done = dict(newest.get(call.stream, {}))
        waits = []
        for other in sorted(wanted, reverse=True):
            stream = function.calls[other].stream
            if stream != call.stream and done.get(stream, -1) < other:
                waits.append(other)
                for one, last in after[other].items():
                    done[one] = max(done.get(one, -1), last)
        found.append(tuple(waits))
        done[call.stream] = index
        after.append(done)
        newest[call.stream] = done
        for root in reads:
            readers.setdefault(root, set()).add(index)
        for root in writes:
            writer[root] = index
            readers.pop(root, None)
    return found
