"""Elements selected by a mask or another rule, found on the device; the host reads one count."""

from gputensor._arrays.dtypes import float32, int64, is_float8, uint32
from gputensor._kernels.order_rules import MARK_TILE, MARK_WORD
from gputensor.tensor.engine import queue_call, refuse_in_trace
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import empty, reshape

__all__ = ["chosen", "firsts", "picked", "places"]


def _marked(x, rule):
    """Return bits and tile offsets of the elements that a rule selects, and their count. Waits."""
    problem = "a selection whose size depends on values"
    refuse_in_trace(x, problem, "select with where(), which keeps the shape")
    bits = empty(-(-x.size // MARK_WORD), uint32, device=x.device)
    starts = empty(-(-x.size // MARK_TILE) + 1, int64, device=x.device)
    if x.size == 0:
        return bits, starts, 0
    queue_call("mark", (rule,), (bits, starts), (x,))
    return bits, starts, starts[-1:].item()


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


def firsts(x, equal_nan):
    """Return the places in a vector of elements that differ from the one before them. Waits.

    >>> import gputensor as gt
    >>> firsts(gt.asarray([1, 1, 2], device="host"), True).tolist()
    [0, 2]
    """
    return _places(x.shape, *_marked(x, "first_nan" if equal_nan else "first"))[0]
