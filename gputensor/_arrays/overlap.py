"""Whether two views share bytes, computed from addresses alone.

NumPy solves the bounded Diophantine problem exactly, with arrays over the same addresses, which it
never reads. If that takes too much work, the result is True.
"""

import numpy as np

__all__ = ["may_overlap"]


class _View:
    """An array interface over addresses that are never read."""

    def __init__(self, ptr, itemsize, shape, strides):
        self.__array_interface__ = {
            "version": 3,
            "data": (ptr, False),
            "typestr": f"|V{itemsize}",
            "shape": shape,
            "strides": strides,
        }


def may_overlap(one, other):
    """Return whether two views, each ``(address, itemsize, shape, byte strides)``, share a byte.

    >>> row = (1024, 4, (2, 3), (24, 4))
    >>> may_overlap(row, (1024 + 12, 4, (2, 3), (24, 4)))
    False
    >>> may_overlap(row, (1024 + 8, 4, (2, 3), (24, 4)))
    True
    """
    left, right = (np.asarray(_View(*view)) for view in (one, other))
    try:
        return np.shares_memory(left, right, max_work=100_000)
    except np.exceptions.TooHardError:
        return True
