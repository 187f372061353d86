"""Weights as small integers with a scale for each group, computed by NumPy once, on the host.

A group consists of neighbouring terms of one feature. Its elements are ``integer * scale``, or
``integer * scale + offset``. Scale and offset are rounded to the type in which they are stored
before the integers are computed from them.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

__all__ = ["CLIPPING", "SIGNED_CLIPPING", "Groups", "best_scales", "in_groups"]

#: Shares of a group's range that the search for the least squared error tries.
CLIPPING = tuple(np.linspace(1.0, 0.7, 13).tolist())
#: With few integers, the one without an opposite matters.
SIGNED_CLIPPING = tuple(share for one in CLIPPING for share in (one, -one))
_CHUNK = 1 << 17  # elements at a time, which stay in the processor's cache


class Groups(NamedTuple):
    """Integers (n, k) as int8; scales (groups, n); offsets of the same shape, or None."""

    integers: np.ndarray
    scales: np.ndarray
    offsets: np.ndarray | None

    def values(self):
        """Return the elements (n, k) in float32."""
        n, groups = len(self.integers), len(self.scales)
        found = self.integers.reshape(n, groups, -1) * self.scales.T[:, :, None].astype(np.float32)
        if self.offsets is not None:
            found += self.offsets.T[:, :, None].astype(np.float32)
        return found.reshape(n, -1)


def in_groups(values, size, largest, *, dtype, clipping=(1.0,), has_offsets=False):
    """Return the Groups of a matrix.

    Parameters
    ----------
    values : numpy.ndarray
        float32 (n, k), finite.
    size : int
        Terms in a group; a divisor of k.
    largest : int
        Integers are from ``-largest - 1`` to `largest`.
    dtype : numpy.dtype
        The type of scales and offsets.
    clipping : sequence of float
        Shares of each group's range; each group uses the one with the least squared error, the
        first of equal ones. A negative share gives a negative scale, so that the least integer,
        which has no opposite, represents the greatest elements.
    has_offsets : bool
        Whether a group has an offset, so that its range need not be symmetric.
    """
    n, k = values.shape
    integers = np.empty((n, k), np.int8)
    scales, offsets = (np.empty((k // size, n), dtype) for _ in range(2))
    rows = max(1, _CHUNK // k)

    def fill(start):
        part = values[start : start + rows]
        groups = part.reshape(len(part), -1, size)
        scale, offset = best_scales(groups, largest, dtype, clipping, has_offsets)
        found = _rounded(groups, scale, offset, largest, np.empty_like(groups))
        integers[start : start + rows] = found.reshape(part.shape)
        scales[:, start : start + rows] = scale.T
        offsets[:, start : start + rows] = offset.T

    # NumPy lets other threads run while it computes.
    with ThreadPoolExecutor(os.cpu_count() or 1, "gputensor-quantize") as pool:
        list(pool.map(fill, range(0, n, rows)))
    return Groups(integers, scales, offsets if has_offsets else None)


def best_scales(groups, largest, dtype, clipping, has_offsets):
    """Return the scales and offsets of (rows, groups, size), in the type that is stored."""
    if has_offsets:
        low, high = groups.min(2), groups.max(2)
        middle, width = (low + high) / 2, (high - low) / (2 * largest + 1)
    else:
        middle, width = 0, np.abs(groups).max(2) / largest
    best, least, space = None, None, np.empty_like(groups)
    for share in clipping:
        scale = (width * np.float32(share)).astype(dtype)
        is_flat = scale == 0
        scale[is_flat] = 1
        wide = scale.astype(np.float32)
        # The middle of the integers is -1/2. The integers of equal elements are 0.
        half = np.where(is_flat, np.float32(0), wide / 2)
        offset = (middle + half if has_offsets else np.zeros_like(wide)).astype(dtype)
        if len(clipping) == 1:
            return scale, offset
        lost = _rounded(groups, scale, offset, largest, space)
        lost *= wide[..., None]
        if has_offsets:
            lost += offset.astype(np.float32)[..., None]
        lost -= groups
        error = np.einsum("rgs,rgs->rg", lost, lost)
        if best is None:
            best, least = (scale, offset), error
            continue
        better = error < least
        least[better] = error[better]
        for kept, new in zip(best, (scale, offset), strict=True):
            kept[better] = new[better]
    return best


def _rounded(groups, scale, offset, largest, out):
    """Compute the integers of groups, as float32 in `out`."""
    np.subtract(groups, offset.astype(np.float32)[..., None], out=out)
    np.divide(out, scale.astype(np.float32)[..., None], out=out)
    np.rint(out, out=out)
    return np.clip(out, -largest - 1, largest, out=out)
