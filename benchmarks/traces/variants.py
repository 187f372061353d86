"""Programs like the recorded ones: traces that no setting was chosen by.

Each recorded trace gives five variants: all sizes smaller and larger, a size of its own for each
size and for each allocation, and only the last three quarters of the events. Pairs of traces run
side by side, on streams of their own. The draws are seeded by the names, so a figure can be had
again.
"""

import random
import zlib

import numpy as np

PAIRS = (
    ("bert_serve", "resnet_train"),
    ("multistream", "bert_serve"),
    ("gpt2_train", "bert_serve"),
    ("pair_threads", "multistream"),
)
UNIT = 512


def rows(trace):
    return [trace.op, trace.id, trace.size, trace.stream]


def resized(trace, factors):
    """The trace with sizes times `factors`, in whole units."""
    size = np.maximum(UNIT, (trace.size * factors).astype(np.int64) // UNIT * UNIT)
    return trace.op, trace.id, size, trace.stream


def jittered(trace, rng):
    """Each size that occurs becomes another one, up to a quarter smaller or larger."""
    sizes, which = np.unique(trace.size, return_inverse=True)
    return resized(trace, np.exp(rng.uniform(-1, 1, len(sizes)) * np.log(1.25))[which])


def noisy(trace, rng):
    """Each allocation has a size of its own, up to a tenth smaller or larger."""
    return resized(trace, rng.uniform(0.9, 1.1, int(trace.id.max()) + 1)[trace.id])


def late(trace):
    """The events after the first quarter, but for frees of what was allocated in it."""
    begin = len(trace.op) // 4
    known = np.zeros(int(trace.id.max()) + 1, bool)
    keep = np.zeros(len(trace.op), bool)
    for event in range(begin, len(trace.op)):
        name = trace.id[event]
        if trace.op[event] > 0:
            known[name] = True
        keep[event] = known[name]
    return tuple(column[keep] for column in rows(trace))


def side_by_side(first, second, rng):
    """Two traces in turns of 20 to 200 events; each keeps its order and its streams."""
    columns = [rows(first), rows(second)]
    columns[1][1] = columns[1][1] + (int(first.id.max()) + 1)
    columns[1][3] = columns[1][3] + (int(first.stream.max()) + 1)
    lengths = [len(first.op), len(second.op)]
    done, pieces = [0, 0], []
    while done != lengths:
        left = [lengths[side] - done[side] for side in (0, 1)]
        side = 0 if rng.random() < left[0] / sum(left) else 1
        begin, done[side] = done[side], min(lengths[side], done[side] + rng.randrange(20, 200))
        pieces.append([column[begin : done[side]] for column in columns[side]])
    return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))


def dense(columns):
    """The columns in the types of a trace, with ids from 0 on."""
    op, names, size, stream = columns
    names = np.unique(names, return_inverse=True)[1]
    return (
        op.astype(np.int8),
        names.astype(np.int32),
        size.astype(np.int64),
        stream.astype(np.int16),
    )


def variants(traces):
    """Yield ``(name, op, id, size, stream)`` for a dict of recorded traces."""
    for name, trace in traces.items():
        seeded = np.random.default_rng(zlib.crc32(name.encode()))
        changed = {
            "smaller": resized(trace, 0.37),
            "larger": resized(trace, 2.7),
            "other sizes": jittered(trace, seeded),
            "noise": noisy(trace, seeded),
            "late": late(trace),
        }
        for what, columns in changed.items():
            yield f"{name}, {what}", *dense(columns)
    for first, second in PAIRS:
        if first in traces and second in traces:
            seeded = random.Random(first + second)
            columns = side_by_side(traces[first], traces[second], seeded)
            yield f"{first} and {second}", *dense(columns)
