"""The case of a failed request as a trace: what was live, what happened since, and the request.

The history ring holds the newest events. What was live before the oldest of them is found from both
ends: a free whose allocation is not in the ring, and a live block whose allocation is not. These
*seeds* are allocated first, by rising address, so that the trace starts with the memory that the
program held then; how it had come to lie there is lost. A free counts when it is completed: a block
that waits for a stream is not free, and one that still waits is live at the end.

Private pools are left out, with the memory that they hold: their blocks serve nobody else.
"""

from dataclasses import dataclass

import numpy as np

from gputensor._alloc.history import history_settings, raw_records
from gputensor._alloc.report import collect_segments

__all__ = ["Case", "build_case", "case_of"]

RECORD_DTYPE = np.dtype(
    [
        ("unused", "u8"),
        ("ptr", "u8"),
        ("nbytes", "u8"),
        ("stream", "u8"),
        ("pool_id", "u8"),
        ("time_ns", "u8"),
        ("stack", "u4"),
        ("action", "u4"),
        ("unused_too", "u8"),
    ]
)
ALLOC, FREE_COMPLETED = 0, 2
# The newest events suffice, since the blocks that are older are seeds; more would take too long.
MOST_EVENTS = 100_000
MOST_STREAMS = 1_000
INACTIVE = 0


@dataclass(frozen=True)
class Case:
    """The arrays of a trace that ends with the failed request.

    Attributes
    ----------
    op, id, size, stream : ndarray of int8, int32, int64, int16
        As :func:`gputensor._alloc.replay.replay_trace` takes them.
    recorded : int
        How many events of the history are in it.
    """

    op: np.ndarray
    id: np.ndarray
    size: np.ndarray
    stream: np.ndarray
    recorded: int

    @property
    def arrays(self):
        """The four arrays."""
        return self.op, self.id, self.size, self.stream


def case_of(device, nbytes, stream):
    """Return the :class:`Case` of a request that failed, or None when the history cannot tell."""
    in_force = history_settings()
    if in_force["enabled"] != "all" or {"alloc", "free_completed"} & set(in_force["skip_actions"]):
        return None
    records = np.frombuffer(raw_records(device, MOST_EVENTS), RECORD_DTYPE)
    records = records[
        (records["pool_id"] == 0)
        & ((records["action"] == ALLOC) | (records["action"] == FREE_COMPLETED))
    ]
    if not len(records):
        return None
    segments, blocks = collect_segments(device)
    counts = segments["n_blocks"]
    live = (blocks["state"] != INACTIVE) & (np.repeat(segments["pool_id"], counts) == 0)
    columns = blocks["address"], blocks["nbytes"], blocks["requested"]
    held = zip(
        *(column[live].tolist() for column in columns),
        np.repeat(segments["stream"], counts)[live].tolist(),
        strict=True,
    )
    names = ("action", "ptr", "nbytes", "stream")
    events = zip(*(records[name].tolist() for name in names), strict=True)
    return build_case(events, held, nbytes, stream)


def build_case(events, held, nbytes, stream):
    """Return the :class:`Case` of events, of what is held after them, and of a request.

    Parameters
    ----------
    events : iterable of (action, ptr, nbytes, stream)
        Allocations (0) and completed frees (2), oldest first.
    held : iterable of (ptr, nbytes, requested, stream)
        The blocks that are not free now.
    nbytes, stream : int
        The request.

    >>> case = build_case([(2, 512, 1024, 0), (0, 8192, 512, 0)], [(8192, 512, 500, 0)], 4096, 0)
    >>> case.op.tolist(), case.id.tolist(), case.size.tolist()
    ([1, -1, 1, 1], [0, 0, 1, 2], [1024, 1024, 500, 4096])
    """
    held = {ptr: (size, requested, of) for ptr, size, requested, of in held}
    live = {}  # ptr -> id
    seeds = []  # (ptr, id, size, stream)
    steps = []  # (op, id, size, stream)
    sizes = []
    recorded = 0
    for action, ptr, size, of in events:
        recorded += 1
        known = live.pop(ptr, None)
        if known is not None:
            # For an allocation at the address: its free was not recorded.
            steps.append((-1, known, sizes[known], of))
        elif action != ALLOC:
            seeds.append((ptr, len(sizes), size, of))
            steps.append((-1, len(sizes), size, of))
            sizes.append(size)
        if action == ALLOC:
            live[ptr] = len(sizes)
            steps.append((1, len(sizes), size, of))
            sizes.append(size)
    for ptr, known in live.items():
        if ptr not in held:
            steps.append((-1, known, sizes[known], 0))
        else:
            sizes[known] = held[ptr][1] or held[ptr][0]
    for ptr, (size, requested, of) in held.items():
        if ptr not in live:
            seeds.append((ptr, len(sizes), size, of))
            sizes.append(requested or size)
    seeds.sort()
    steps = [(1, known, size, of) for _, known, size, of in seeds] + steps
    steps.append((1, len(sizes), nbytes, stream))
    sizes.append(nbytes)
    numbers = {0: 0}
    for _, _, _, of in steps:
        if len(numbers) < MOST_STREAMS:
            numbers.setdefault(of, len(numbers))
    op, ids, _, streams = zip(*steps, strict=True)
    ids = np.array(ids, np.int32)
    return Case(
        np.array(op, np.int8),
        ids,
        np.array(sizes, np.int64)[ids],
        np.array([numbers.get(of, 0) for of in streams], np.int16),
        recorded,
    )
