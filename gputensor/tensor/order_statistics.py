"""Further names of NumPy and PyTorch based on sorting and counting."""

from gputensor.errors import Described, argument_error, int_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.histograms import histogram
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import reshape
from gputensor.tensor.sorting import TopK, searchsorted, sort, topk

__all__ = ["bucketize", "histc", "kthvalue", "msort", "top_k"]


@spellings(dim="axis", keepdim="keepdims")
def kthvalue(x, /, k, axis=-1, keepdims=False):
    """Return the `k`-th least element along `axis`, counted from 1, and its position.

    >>> import gputensor as gt
    >>> [one.item() for one in kthvalue(gt.asarray([5, 1, 3], device="host"), 2)]
    [3, 2]
    """
    axis = axis_argument(axis, tensor_argument(x, "kthvalue").ndim, "kthvalue")
    k = int_argument("kthvalue: k", k)
    if not 1 <= k <= x.shape[axis]:
        raise argument_error(ValueError, "kthvalue: k", k, f"1 to {x.shape[axis]}, the extent")
    key = (slice(None),) * axis + (slice(k - 1, k) if keepdims else k - 1,)
    return TopK(*(fn.positive(one[key]) for one in topk(x, k, axis, largest=False)))


def top_k(x, k, /, *, axis=-1, mode="largest", largest=None, sorted=True):
    """Return the `k` greatest or least elements along `axis`, sorted, and their positions.

    Parameters
    ----------
    axis : int, optional
        None searches the flattened tensor.
    mode : {"largest", "smallest"}
    largest : bool, optional
        NumPy's flag in place of `mode`.
    sorted : bool
        No effect: the elements are always sorted.

    >>> import gputensor as gt
    >>> values, indices = top_k(gt.asarray([3, 1, 2], device="host"), 2, mode="smallest")
    >>> values.tolist(), indices.tolist()
    ([1, 2], [1, 2])
    """
    if mode not in ("largest", "smallest"):
        raise argument_error(ValueError, "top_k: mode", mode, "'largest' or 'smallest'")
    x = tensor_argument(x, "top_k")
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis = axis_argument(axis, x.ndim, "top_k")
    k = int_argument("top_k: k", k)
    if not 1 <= k <= x.shape[axis]:
        raise argument_error(ValueError, "top_k: k", k, f"1 to {x.shape[axis]}, the extent")
    return topk(x, k, axis, largest=mode == "largest" if largest is None else largest)


def msort(x, /):
    """Return a copy sorted along the first axis.

    >>> import gputensor as gt
    >>> msort(gt.asarray([[3, 1], [2, 5]], device="host")).tolist()
    [[2, 1], [3, 5]]
    """
    return sort(x, 0)


def bucketize(x, boundaries, /, *, right=False):
    """Return the number of the range between ascending boundaries that contains each element.

    A boundary belongs to the range below it, or with `right` to the range above it. This is
    PyTorch's meaning, the opposite of :func:`digitize`.

    >>> import gputensor as gt
    >>> x, edges = gt.asarray([1, 2], device="host"), gt.asarray([1, 2], device="host")
    >>> bucketize(x, edges).tolist(), bucketize(x, edges, right=True).tolist()
    ([0, 1], [1, 2])
    """
    return searchsorted(boundaries, x, "right" if right else "left")


def histc(x, /, bins=100, min=0, max=0):
    """Return the numbers of elements in each of `bins` equal ranges, as floats of x's dtype.

    The ranges extend from `min` to `max`. If both are 0, they cover all elements, which waits for
    the device.

    >>> import gputensor as gt
    >>> histc(gt.asarray([1.0, 2.0, 1.0], device="host"), 4, 0, 3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    if tensor_argument(x, "histc").dtype.kind not in "fV":
        got = Described(x.dtype.name)
        raise argument_error(TypeError, "histc: x", got, "a floating-point dtype")
    counts, _edges = histogram(x, bins, None if min == max == 0 else (min, max))
    return astype(counts, x.dtype)
