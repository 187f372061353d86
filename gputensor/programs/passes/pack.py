"""Offsets for memory with lifetimes: greedy in several orders, the smallest arena kept.

Two pieces may share bytes when the last calls of the one, on every stream, are known to come
before the first call of the other. plan.py says what lives when.
"""

from __future__ import annotations

import bisect
import heapq
import itertools

import numpy as np

__all__ = ["packed"]

_MAX_STREAMS = 32  # with more of them nothing is shared
_MAX_SEARCHED = 4096  # more temporaries are packed once, or on several streams one behind the other
_ROUNDS, _MAX_IDLE = 24, 5  # of a search from one order; rounds in a row without a gain


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
        """Which values live at once with `one`, as far as the order of calls says."""
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
    """One stream, in order of birth: those that still live are few."""
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
    """By birth; by size; by size and time; by how much lives beside a value at most."""
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
        """Keep what this order gives if it is smaller."""
        places = self.places
        if places.offsets is None or places.top != places.lower_bound:
            offsets, top = self.placed(order)
            if places.offsets is None or top < places.top:
                places.offsets, places.top = offsets, top

    def placed(self, order):
        """(offsets, top) of values placed in this order, each at the smallest gap that it fits."""
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
        """Move what stands at the top of the arena to the front of an order, again and again."""
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
    """The offset of the smallest gap between ranges that holds `size` bytes, else their end."""
    best, where, top = None, None, 0
    for start, end in taken:
        room = start - top
        if room >= size and (best is None or room < best):
            best, where = room, top
        top = max(top, end)
    return top if where is None else where
