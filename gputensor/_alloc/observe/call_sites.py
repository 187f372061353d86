"""Finds the lines of the program that hold most memory, from the stacks of blocks in the history.

Blocks are grouped by their interned stack first, so that a million of them cost one pass over an
array; only stacks are formatted. The library's own frames are skipped: a place is the line at which
the program called the library.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gputensor._alloc.history import StackFormatter
from gputensor._alloc.observe import collect_segments

__all__ = ["CallSite", "rank_call_sites", "top_call_sites"]

INACTIVE = 0
OWN_FOLDER = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep


class CallSite(NamedTuple):
    """A line of the program, and what it holds: bytes, blocks, ``file:line in function``."""

    nbytes: int
    n_blocks: int
    place: str


def top_call_sites(device, count=5):
    """Return the :class:`CallSite` that hold most memory of a device, largest first.

    Only memory that was allocated while the history captured stacks is known. A freed block that
    waits for a stream counts; a block in a view counts once, like any other.
    """
    _, blocks = collect_segments(device)
    return rank_call_sites(blocks, count)


def rank_call_sites(blocks, count):
    """Return the `count` largest :class:`CallSite` of an array of ``BLOCK_DTYPE``."""
    held = blocks[(blocks["state"] != INACTIVE) & (blocks["stack"] != 0)]
    ids, groups = np.unique(held["stack"], return_inverse=True)
    sums = np.bincount(groups, weights=held["nbytes"], minlength=len(ids))
    counts = np.bincount(groups, minlength=len(ids))
    stacks = StackFormatter()
    by_place = {}
    for stack, nbytes, held in zip(ids.tolist(), sums.tolist(), counts.tolist(), strict=True):
        place = place_of(stacks.frames(stack))
        before = by_place.get(place, (0, 0))
        by_place[place] = before[0] + int(nbytes), before[1] + held
    ranked = sorted(by_place.items(), key=lambda item: (-item[1][0], item[0]))
    return [CallSite(nbytes, held, place) for place, (nbytes, held) in ranked[:count]]


def place_of(frames):
    """Return ``file:line in function`` of the innermost frame outside of this library.

    >>> place_of([{"filename": "train.py", "line": 7, "name": "step"}])
    'train.py:7 in step'
    >>> place_of([])
    'unknown'
    """
    for frame in frames:
        if not os.path.abspath(frame["filename"]).startswith(OWN_FOLDER):
            break
    else:
        if not frames:
            return "unknown"
        frame = frames[0]
    return f"{frame['filename']}:{frame['line']} in {frame['name']}"
