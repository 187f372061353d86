"""The parameters of a draw of random numbers besides the seed: lanes of a block, ends, ranges."""

import functools
from typing import NamedTuple

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.call_rules import DISTRIBUTIONS

__all__ = ["BLOCK_WORDS", "DrawFacts", "draw_facts"]

_DTYPES = {row.name: row for row in DTYPES}
# Bits of a uniform number: the bits that a dtype has between 0.5 and 1.
_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
BLOCK_WORDS = 4
RANKED, NETWORK_BLOCKS = 1024, 4  # as in draw.h


class DrawFacts(NamedTuple):
    """One distribution in one dtype; see DrawParameters in draw.h."""

    kind: int
    bits: int
    lanes: int
    first: float
    second: float
    most: float
    least: int
    range: int

    def blocks(self, count):
        """The number of blocks of 128 bits for `count` elements.

        >>> draw_facts("uniform", 0.0, 1.0, "float64").blocks(5)
        3
        """
        if DISTRIBUTIONS[self.kind] == "permutation" and count > RANKED:
            return NETWORK_BLOCKS
        return -(-count // self.lanes)


@functools.lru_cache(1024)
def draw_facts(distribution, a, b, dtype):
    """Return the facts of a draw; `a`, `b` and `dtype` are as in the call ``random``.

    >>> facts = draw_facts("integers", -3, 3, "int8")
    >>> facts.range, facts.least == 2**64 - 3
    (7, True)
    """
    kind = DISTRIBUTIONS.index(distribution)
    if distribution == "bernoulli":
        return DrawFacts(kind, 0, 4, 0, 0, 0, 0, round(a * 2**32))
    if distribution == "permutation":
        return DrawFacts(kind, 0, 2, 0, 0, 0, 0, 0)
    if distribution == "integers":
        range_ = b - a + 1
        lanes = 4 if range_ <= 1 << 32 else 2
        return DrawFacts(kind, 0, lanes, 0, 0, 0, a % (1 << 64), range_ % (1 << 64))
    wide = np.float64 if dtype == "float64" else np.float32
    first, second, most = wide(a), wide(b), 0.0
    if distribution == "uniform":
        second = wide(b - a)
        most = max(_last_below(b, _DTYPES[dtype].numpy), float(first))
    lanes = 2 if dtype == "float64" else 4
    return DrawFacts(kind, _BITS[dtype], lanes, float(first), float(second), most, 0, 0)


def _last_below(end, dtype):
    """The greatest number of a dtype below `end`."""
    last = dtype.type(end)
    if float(last) >= end:
        last = np.nextafter(last, dtype.type(-np.inf))
    return float(last)
