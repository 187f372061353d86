"""The yardstick for driver time: 20 MiB pages that are never moved and never released.

A model of the design of PyTorch's expandable segments: for each (stream, pool) one address range
that grows at its end by whole pages (20 MiB, in the small pool 2 MiB), best fit among the free
blocks of the range, immediate merge. The driver's time depends only on the number of pages.
"""

import bisect

import numpy as np

MIB = 2**20
# Microseconds to create, map and give access to one page (the cost model of the driver table;
# measured on an H200).
PAGE_US = {2 * MIB: 14 + 1.5 + 30, 20 * MIB: 9 + 1.5 + 30}


class Range:
    """The address range of one (stream, pool): free blocks by size and by place."""

    def __init__(self, page):
        self.page, self.end, self.pages = page, 0, 0
        self.by_size, self.start, self.finish = [], {}, {}

    def insert(self, at, size):
        if at in self.finish:
            before = self.finish[at]
            self.remove(before, at - before)
            size += at - before
            at = before
        if at + size in self.start:
            after = self.start[at + size]
            self.remove(at + size, after)
            size += after
        bisect.insort(self.by_size, (size, at))
        self.start[at], self.finish[at + size] = size, at

    def remove(self, at, size):
        del self.by_size[bisect.bisect_left(self.by_size, (size, at))]
        del self.start[at], self.finish[at + size]

    def malloc(self, size):
        found = bisect.bisect_left(self.by_size, (size, -1))
        if found == len(self.by_size):
            tail = self.end - self.finish[self.end] if self.end in self.finish else 0
            count = -(-(size - tail) // self.page)
            self.pages += count
            at, self.end = self.end, self.end + count * self.page
            self.insert(at, count * self.page)
            found = bisect.bisect_left(self.by_size, (size, -1))
        whole, at = self.by_size[found]
        self.remove(at, whole)
        if whole > size:
            self.insert(at + size, whole - size)
        return at


def baseline(trace):
    """Return ``(utilization, driver seconds)`` of the yardstick on a trace."""
    ranges, held = {}, {}
    requested = peak = 0
    rows = (trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), trace.stream.tolist())
    for op, name, size, stream in zip(*rows, strict=True):
        if op > 0:
            rounded = max(-(-size // 512) * 512, 512)
            page = 2 * MIB if rounded <= MIB else 20 * MIB
            place = ranges.setdefault((stream, page), Range(page))
            held[name] = (place, place.malloc(rounded), rounded, size)
            requested += size
            peak = max(peak, requested)
        else:
            place, at, rounded, size = held.pop(name)
            place.insert(at, rounded)
            requested -= size
    reserved = sum(place.pages * place.page for place in ranges.values())
    seconds = sum(place.pages * PAGE_US[place.page] for place in ranges.values()) * 1e-6
    return peak / reserved if reserved else 1.0, seconds


def handles_for(trace, make_stream):
    """Return a stream handle for each stream number of a trace; 0 stays the default stream."""
    return [0] + [make_stream() for _ in range(int(np.max(trace.stream, initial=0)))]
