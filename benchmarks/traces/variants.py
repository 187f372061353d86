"""Programs like the recorded ones: traces that were not used to choose settings.

Each recorded trace has five variants: all sizes smaller, all larger, another size for each size,
another size for each allocation, and only the last three quarters of the events. Pairs of traces
run side by side, on separate streams. The random numbers are seeded by the names, so figures can be
reproduced.
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
    """Return the trace with sizes times `factors`, in whole units."""
    size = np.maximum(UNIT, (trace.size * factors).astype(np.int64) // UNIT * UNIT)
    return trace.op, trace.id, size, trace.stream


def jittered(trace, rng):
    """Replace each size that occurs by another, up to a quarter smaller or larger."""
    sizes, which = np.unique(trace.size, return_inverse=True)
    return resized(trace, np.exp(rng.uniform(-1, 1, len(sizes)) * np.log(1.25))[which])


def noisy(trace, rng):
    """Change the size of each allocation by up to a tenth."""
    return resized(trace, rng.uniform(0.9, 1.1, int(trace.id.max()) + 1)[trace.id])


def late(trace):
    """Return the events after the first quarter, without frees of earlier allocations."""
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
    """Interleave two traces in runs of 20 to 200 events; each keeps its order and its streams."""
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
    """Return the columns in the types of a trace, with ids from 0 on."""
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
