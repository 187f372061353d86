"""The sizes for which a function with dims is bound ahead.

Launches are stored for powers of two and both ends of each dim. Another size is bound at its first
call, with stored kernels: kernels take sizes as parameters, and their variants depend on the
magnitude of a size, in powers of two, and on its divisors. So kernels are also made for sizes below
each power of two that are divisible by 1, 2 and 4 only, unless the stored launches contain them.
"""

from __future__ import annotations

import itertools

__all__ = ["kernel_sizes", "launch_sizes"]

MOST = 64  # combinations of sizes


def launch_sizes(function):
    """Return the sizes of a function's dims whose launches are stored, as dicts.

    A function without dims has one empty dict.

    >>> from gputensor.programs.dims import Dim
    >>> from gputensor.programs.function import Function
    >>> [one["n"] for one in launch_sizes(Function("f", {"n": Dim("n", 1, 24)}))]
    [1, 2, 4, 8, 16, 24]
    """
    return _combined(function.dims, [_powers(dim) for dim in function.dims.values()])


def kernel_sizes(function):
    """Return further sizes whose kernels are stored.

    >>> from gputensor.programs.dims import Dim
    >>> from gputensor.programs.function import Function
    >>> [one["n"] for one in kernel_sizes(Function("f", {"n": Dim("n", 1, 24)}))]
    [3, 6, 7, 12, 14, 15, 17, 18, 20, 22, 23]
    """
    if not function.dims:
        return []
    return _combined(
        function.dims, [_between(dim) or _powers(dim) for dim in function.dims.values()]
    )


def _combined(dims, columns):
    count = 1
    for column in columns:
        count *= len(column)
    if count <= MOST:
        rows = itertools.product(*columns)
    else:
        # Each size of each dim, and combinations of the ends of all dims.
        longest = max(map(len, columns))
        rows = [[column[at % len(column)] for column in columns] for at in range(longest)]
        rows += itertools.islice(itertools.product(*[(c[0], c[-1]) for c in columns]), MOST)
    return [dict(zip(dims, row, strict=True)) for row in dict.fromkeys(map(tuple, rows))]


def _ends(dim):
    """Return the range of a dim in units of its multiple."""
    return -(-dim.least // dim.multiple), dim.most // dim.multiple


def _powers(dim):
    low, high = _ends(dim)
    found = {low, *(1 << n for n in range(64) if low <= 1 << n <= high), high}
    return [size * dim.multiple for size in sorted(found)]


def _between(dim):
    low, high = _ends(dim)
    known = {size // dim.multiple for size in _powers(dim)}
    found = set()
    for power in (*(1 << n for n in range(64) if 1 << n <= high), high):
        for rest in (1, 2, 4):
            size = power - rest if power & (power - 1) == 0 else power - power % (2 * rest) - rest
            if size > power // 2:
                found.add(size)
        if power >= 16 and power & (power - 1) == 0:
            # Models choose variants of kernels by how well a size fills the device.
            found.update([power + 1, *(power * eighths // 8 for eighths in range(9, 16))])
    found = {size for size in found - known if low <= size <= high}
    return [size * dim.multiple for size in sorted(found)]
