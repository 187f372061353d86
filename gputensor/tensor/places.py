"""Where a mask is true, found on its device: the host reads one count."""

from gputensor._arrays.dtypes import int32, int64
from gputensor.tensor import functions as fn
from gputensor.tensor.engine import queue_call
from gputensor.tensor.manipulation import arange, empty, reshape

__all__ = ["places"]


def places(mask):
    """Return one int64 tensor for each axis of a mask: where it is true, in row-major order. Waits.

    The k-th true element is the first up to which k are true: the running count is searched for
    1, 2, and so on.

    >>> import gputensor as gt
    >>> [one.tolist() for one in places(gt.asarray([[True, False], [True, True]], device="host"))]
    [[0, 1, 1], [0, 0, 1]]
    """
    size, device = mask.size, mask.device
    dtype = int32 if size < 2**31 else int64
    counts = empty((1, size, 1), dtype, device=device)
    queue_call("cumulate", ("sum",), (counts,), (reshape(mask.contiguous(), (1, size, 1)),))
    counts = reshape(counts, -1)
    total = counts[-1:].item()
    rest = empty(total, int64, device=device)
    if total:
        numbers = arange(1, total + 1, dtype=dtype, device=device)
        queue_call("search", (False,), (rest,), (counts, numbers))
    found = []
    for extent in reversed(mask.shape[1:]):
        found.append(fn.remainder(rest, extent))
        rest = fn.floor_divide(rest, extent)
    return [rest, *reversed(found)]
