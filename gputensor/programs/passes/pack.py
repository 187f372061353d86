"""Offsets for memory with lifetimes: greedy packing in several orders; the smallest arena wins.

Two pieces may share bytes if the last calls of one, on every stream, are known to precede the first
call of the other. plan.py computes the lifetimes.
"""

from __future__ import annotations

import bisect
import heapq
import itertools

import numpy as np

__all__ = ["packed"]

_MAX_STREAMS = 32  # with more streams, no memory is shared
_MAX_SEARCHED = 4096  # more temporaries are packed once; with several streams, they do not share
_ROUNDS, _MAX_IDLE = 24, 5  # of a search from one order; successive rounds without a gain


class Places:
    """The result of packing."""

    def __init__(self, lives):
        kept = [i for i, nbytes in enumerate(lives.nbytes) if nbytes >= 0]
        self.names = [lives.names[i] for i in kept]
        self.nbytes = [lives.nbytes[i] for i in kept]
        self.births = np.array([lives.births[i] for i in kept], np.int64)
        self.last = np.array([lives.last[i] for i in kept], np.int64).reshape(
            len(kept), len(lives.streams)
        )
        self.deaths = self.last.max(axis=1, initial=-1)
        self.clocks = np.full((len(kept), len(lives.streams)), -1, np.int64)
        for row, i in enumerate(kept):
            self.clocks[row] = lives.clocks[lives.births[i]]
        change = np.zeros(len(lives.calls) + 3, np.int64)
        np.add.at(change, self.births, self.nbytes)
        np.add.at(change, self.deaths + 1, [-nbytes for nbytes in self.nbytes])
        self.alive = np.cumsum(change).tolist()  # bytes during each call
        self.lower_bound = max(self.alive)
        self.offsets, self.top = None, 0

    def conflicts(self, one):
        """Return a mask of the values that may be alive at the same time as `one`."""
        before = (self.last <= self.clocks[one]).all(axis=1)
        after = (self.last[one] <= self.clocks).all(axis=1)
        return ~(before | after)


def packed(lives):
    """Return the Places of `lives` (see plan.Lifetimes): names, offsets, top and lower_bound."""
    places = Places(lives)
    streams, count = len(lives.streams), len(places.names)
    if streams > 1 and (streams > _MAX_STREAMS or count > _MAX_SEARCHED):
        ends = list(itertools.accumulate(places.nbytes, initial=0))
        places.offsets, places.top = ends[:-1], ends[-1]
        return places
    if count > _MAX_SEARCHED:
        _pack_in_order(places)
        return places
    packing, orders = _Packing(places), _orders(places)
    for order in orders:
        packing.try_order(order)
    for order in orders:
        packing.search(order, min(_ROUNDS, 25_000 // max(len(order), 1)))
    return places


def _pack_in_order(places):
    """Pack values of one stream in order of birth; few of them are alive at any time."""
    births, deaths = places.births.tolist(), places.deaths.tolist()
    places.offsets, ends, taken = [0] * len(births), [], []
    for one in sorted(range(len(births)), key=births.__getitem__):
        while ends and ends[0][0] < births[one]:
            taken.remove(heapq.heappop(ends)[1])
        start = _gap(taken, places.nbytes[one])
        block = (start, start + places.nbytes[one])
        bisect.insort(taken, block)
        heapq.heappush(ends, (deaths[one], block))
        places.offsets[one], places.top = start, max(places.top, block[1])


def _orders(places):
    """Return orders: by birth; by size; by size times lifetime; by the most bytes alive with it."""
    count, nbytes = len(places.names), places.nbytes
    births, deaths = places.births.tolist(), places.deaths.tolist()
    areas = [n * (d - b + 1) for n, b, d in zip(nbytes, births, deaths, strict=True)]
    beside = [max(places.alive[b : d + 1]) for b, d in zip(births, deaths, strict=True)]
    keys = (
        lambda i: (births[i], -nbytes[i]),
        lambda i: (-nbytes[i], births[i]),
        lambda i: (-areas[i], births[i]),
        lambda i: (-beside[i], -nbytes[i], births[i]),
    )
    return [sorted(range(count), key=key) for key in keys]


class _Packing:
    """Tries orders; the places keep the smallest arena."""

    def __init__(self, places):
        self.places = places
        self.known = {}

    def try_order(self, order):
        """Keep the result of this order if its arena is smaller."""
        places = self.places
        if places.offsets is None or places.top != places.lower_bound:
            offsets, top = self.placed(order)
            if places.offsets is None or top < places.top:
                places.offsets, places.top = offsets, top

    def placed(self, order):
        """Return (offsets, top) of values placed in this order, each in the smallest gap."""
        offsets, done = [-1] * len(order), np.zeros(len(order), bool)
        nbytes, top = self.places.nbytes, 0
        for one in order:
            others = np.flatnonzero(self.conflicts(one) & done).tolist()
            taken = sorted((offsets[i], offsets[i] + nbytes[i]) for i in others)
            offsets[one] = _gap(taken, nbytes[one])
            top = max(top, offsets[one] + nbytes[one])
            done[one] = True
        return offsets, top

    def conflicts(self, one):
        found = self.known.get(one)
        if found is None:
            found = self.known[one] = self.places.conflicts(one)
        return found

    def search(self, order, rounds):
        """Repeatedly move the values at the top of the arena to the front of the order."""
        places = self.places
        seen, best, idle = set(), None, 0
        for _round in range(rounds):
            if places.top == places.lower_bound or idle == _MAX_IDLE:
                return
            offsets, top = self.placed(order)
            if top < places.top:
                places.offsets, places.top = offsets, top
            idle = idle + 1 if best is not None and top >= best else 0
            best = top if best is None else min(best, top)
            ends = [offset + n for offset, n in zip(offsets, places.nbytes, strict=True)]
            count = sum(end == top for end in ends) + len(seen) % 3
            high = sorted(order, key=lambda i: -ends[i])[:count]
            order = [*high, *(i for i in order if i not in high)]
            seen.add(tuple(order))


def _gap(taken, size):
    """Return the offset of the smallest gap of at least `size` bytes, or the end of the ranges."""
    best, where, top = None, None, 0
    for start, end in taken:
        room = start - top
        if room >= size and (best is None or room < best):
            best, where = room, top
        top = max(top, end)
    return top if where is None else where
