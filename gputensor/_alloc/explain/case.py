"""The case of a failed request as a trace: live memory, later events, and the request.

The history ring holds the newest events. Memory live before the oldest of them is found from both
ends: a free whose allocation is not in the ring, and a live block whose allocation is not. These
*seeds* are allocated first, by rising address, so that the trace starts with the memory that the
program held then; its original placement is unknown. A free counts when it is completed: a block
that waits for a stream is not free, and one that still waits is live at the end.

Private pools are left out, with their memory: their blocks serve no other request.
"""

import numpy as np

from gputensor._alloc.history import history_settings, raw_records
from gputensor._alloc.observe import collect_segments
from gputensor._alloc.replay.trace_file import Trace

__all__ = ["build_case", "case_of"]

ALLOC, FREE_COMPLETED = 0, 2
# The newest events suffice, since the blocks that are older are seeds; more would take too long.
MOST_EVENTS = 100_000
MOST_STREAMS = 1_000
INACTIVE = 0


def case_of(device, nbytes, stream):
    """Return the :class:`Trace` that ends with a request that failed.

    None when the history does not suffice. Its ``recorded`` says how many ``events`` of the history
    are in it.
    """
    in_force = history_settings()
    if in_force["enabled"] != "all" or {"alloc", "free_completed"} & set(in_force["skip_actions"]):
        return None
    records = raw_records(device, MOST_EVENTS)
    records["action"] &= 255  # without the number of the event's text
    actions = records["action"]
    wanted = (records["pool_id"] == 0) & ((actions == ALLOC) | (actions == FREE_COMPLETED))
    records = records[wanted]
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
    columns = (records[name].tolist() for name in ("action", "ptr", "requested", "stream"))
    events = zip(*columns, strict=True)
    return build_case(events, held, nbytes, stream)


class Rebuild:
    """A trace under construction: the events in order, and the seeds that must come before them."""

    def __init__(self):
        self.live = {}  # address of a block -> id
        self.sizes = []  # id -> bytes
        self.seeds = []  # (address, id, stream)
        self.steps = []  # (op, id, stream)

    def name(self, nbytes):
        """Give a new block its id."""
        self.sizes.append(nbytes)
        return len(self.sizes) - 1

    def alloc(self, ptr, nbytes, stream):
        """Record an allocation."""
        known = self.live.get(ptr)
        if known is not None:  # its free was not recorded
            self.steps.append((-1, known, stream))
        self.live[ptr] = self.name(nbytes)
        self.steps.append((1, self.live[ptr], stream))

    def free(self, ptr, nbytes, stream):
        """Record a free."""
        known = self.live.pop(ptr, None)
        if known is None:
            known = self.name(nbytes)
            self.seeds.append((ptr, known, stream))
        self.steps.append((-1, known, stream))

    def settle(self, held):
        """Match the blocks held in the end, ``{ptr: (nbytes, requested, stream)}``."""
        left = dict(held)
        for ptr, known in self.live.items():
            if ptr in left:
                nbytes, requested, _ = left.pop(ptr)
                self.sizes[known] = requested or nbytes
            else:
                self.steps.append((-1, known, 0))
        for ptr, (nbytes, requested, stream) in left.items():
            self.seeds.append((ptr, self.name(requested or nbytes), stream))


def build_case(events, held, nbytes, stream):
    """Return the :class:`Trace` of events, of the blocks held after them, and of a request.

    Parameters
    ----------
    events : iterable of (action, ptr, nbytes, stream)
        Allocations (0) and completed frees (2), oldest first.
    held : iterable of (ptr, nbytes, requested, stream)
        The blocks that are not free now.
    nbytes, stream : int
        The request.

    >>> events = [(2, 512, 1024, 0), (0, 8192, 512, 0)]
    >>> case = build_case(events, [(8192, 512, 500, 0)], 4096, 0)
    >>> case.op.tolist(), case.id.tolist(), case.size.tolist()
    ([1, -1, 1, 1], [0, 0, 1, 2], [1024, 1024, 500, 4096])
    """
    rebuild = Rebuild()
    recorded = 0
    for action, ptr, size, of in events:
        recorded += 1
        (rebuild.alloc if action == ALLOC else rebuild.free)(ptr, size, of)
    rebuild.settle({ptr: (size, requested, of) for ptr, size, requested, of in held})
    steps = [(1, known, of) for _, known, of in sorted(rebuild.seeds)] + rebuild.steps
    steps.append((1, rebuild.name(nbytes), stream))
    numbers = {0: 0}
    for _, _, of in steps:
        if len(numbers) < MOST_STREAMS:
            numbers.setdefault(of, len(numbers))
    op, ids, streams = zip(*steps, strict=True)
    ids = np.array(ids, np.int32)
    return Trace(
        np.array(op, np.int8),
        ids,
        np.array(rebuild.sizes, np.int64)[ids],
        np.array([numbers.get(of, 0) for of in streams], np.int16),
        {"events": recorded},
    )
