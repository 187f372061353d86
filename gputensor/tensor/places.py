"""Elements selected by a mask or another rule, found on the device; the host reads one count."""

import numpy as np

from gputensor._arrays.dtypes import float32, int64, is_float8, uint32
from gputensor._kernels.order_rules import MARK_TILE, MARK_WORD
from gputensor.tensor import functions as fn
from gputensor.tensor.engine import queue_call, refuse_in_trace
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import empty, full, reshape

__all__ = ["chosen", "firsts", "integers", "picked", "places"]

# `integers` counts on a GPU from so many elements on. Of wide types a sample says whether the
# integers are near each other, which costs 20 us; sorting takes 250 us there.
LEAST_NARROW, LEAST_WIDE = 1 << 13, 1 << 23
SAMPLE = 4096
PROBLEM = "a selection whose size depends on values", "select with where(), which keeps the shape"


def _marked(x, rule):
    """Return bits and tile offsets of the elements that a rule selects, and their count. Waits."""
    refuse_in_trace(x, *PROBLEM)
    bits, starts = _marks(x.size, x.device)
    if x.size == 0:
        return bits, starts, 0
    queue_call("mark", (rule,), (bits, starts), (x,))
    return bits, starts, starts[-1:].item()


def _marks(count, device):
    """Make the bits and the tile offsets of elements."""
    bits = empty(-(-count // MARK_WORD), uint32, device=device)
    return bits, empty(-(-count // MARK_TILE) + 1, int64, device=device)


def _vector(x):
    return reshape(x.contiguous(), -1)


def places(x):
    """Return one int64 tensor for each axis: where `x` is not zero, in row-major order. Waits.

    >>> import gputensor as gt
    >>> [one.tolist() for one in places(gt.asarray([[True, False], [True, True]], device="host"))]
    [[0, 1, 1], [0, 0, 1]]
    """
    if is_float8(x.dtype):
        x = astype(x, float32)
    bits, starts, total = _marked(_vector(x), "true")
    return _places(x.shape, bits, starts, total)


def _places(shape, bits, starts, total):
    out = empty((len(shape), total), int64, device=bits.device)
    if total:
        queue_call("places", (tuple(shape),), (out,), (bits, starts))
    return [out[axis] for axis in range(len(shape))]


def picked(x, mask):
    """Return the elements of `x` where a mask of its shape is true, as a vector. Waits.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1, 2], [3, 4]], device="host")
    >>> picked(x, x > 2).tolist()
    [3, 4]
    """
    bits, starts, total = _marked(_vector(mask), "true")
    return _picked(_vector(x), bits, starts, total)


def _picked(x, bits, starts, total):
    out = empty(total, x.dtype, device=x.device)
    if total:
        queue_call("pick", (), (out,), (x, bits, starts))
    return out


def chosen(x, equal_nan):
    """Return the elements of a vector that differ from the one before them. Waits.

    >>> import gputensor as gt
    >>> chosen(gt.asarray([1, 1, 2], device="host"), True).tolist()
    [1, 2]
    """
    return _picked(x, *_marked(x, "first_nan" if equal_nan else "first"))


def _ends(x):
    """Return the least element of a vector as a vector, and the first and last integer. Waits."""
    if x.dtype.itemsize <= 2:
        first, last = (0, 1) if x.dtype == bool else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        return full(1, first, dtype=x.dtype, device=x.device), first, last
    ends = empty(2, x.dtype, device=x.device)
    fn.min(x, axis=0, keepdims=True, out=ends[:1])
    fn.max(x, axis=0, keepdims=True, out=ends[1:])
    return (ends[:1], *ends.tolist())


def integers(x):
    """Return the different integers of a tensor in ascending order, found without sorting. Waits.

    None for other dtypes, few elements, and a host device, and where the integers are so far apart
    that a bit for each one between them would take longer than sorting.

    >>> import gputensor as gt
    >>> integers(gt.asarray([7, 5, 7], device="host")) is None
    True
    """
    is_narrow = x.dtype.itemsize <= 2
    if x.dtype.kind not in "biu" or x.device.type == "host":
        return None
    if x.size < (LEAST_NARROW if is_narrow else LEAST_WIDE):
        return None
    refuse_in_trace(x, *PROBLEM)
    x = _vector(x)
    most = x.size if is_narrow else x.size // 2
    for part in (x,) if is_narrow else (x[:: x.size // SAMPLE], x):
        least, first, last = _ends(part)
        if last - first >= max(most, 256):
            return None
    bits, starts = _marks(MARK_WORD * (-(-(last - first + 1) // MARK_WORD)), x.device)
    queue_call("seen", (), (bits, starts), (x, least))
    (found,) = _places((MARK_WORD * bits.size,), bits, starts, starts[-1:].item())
    return fn.add(astype(found, x.dtype), least)


def firsts(x, equal_nan):
    """Return the places in a vector of elements that differ from the one before them. Waits.

    >>> import gputensor as gt
    >>> firsts(gt.asarray([1, 1, 2], device="host"), True).tolist()
    [0, 2]
    """
    return _places(x.shape, *_marked(x, "first_nan" if equal_nan else "first"))[0]
