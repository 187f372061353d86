"""Counts of elements by value: of small integers, and by range."""

import builtins
import math
import operator
from itertools import pairwise

from gputensor._arrays.dtypes import float32, float64, iinfo, int64, is_float8, uint8
from gputensor._arrays.promotion import result_type
from gputensor.errors import (
    Described,
    argument_error,
    float_argument,
    has_elements,
    int_argument,
    list_argument,
)
from gputensor.streams.order import tracer
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.engine import queue_call
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import beside, tensors, values_argument
from gputensor.tensor.manipulation import flip, linspace, reshape, zeros
from gputensor.tensor.quantiles import quantile
from gputensor.tensor.sorting import searchsorted
from gputensor.tensor.statistics import ptp

__all__ = [
    "bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
]  # fmt: skip

#: NumPy's rules for the number of bins; "stone" is missing, which tries every number.
RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "sturges")


def bincount(x, /, weights=None, minlength=0):
    """Return how often 0, 1, ... occur in the vector `x`, or with `weights` the sums of those.

    The greatest element determines the length; the call waits for it.

    >>> import gputensor as gt
    >>> bincount(gt.asarray([1, 3, 1], device="host")).tolist()
    [0, 2, 0, 1]
    """
    if tensor_argument(x, "bincount").dtype.kind == "b":
        x = astype(x, uint8)
    if x.ndim != 1 or x.dtype.kind not in "iu":
        got = Described(f"{x.dtype.name} of {x.ndim} dimensions")
        raise argument_error(TypeError, "bincount: x", got, "an integer dtype and 1 dimension")
    length = int_argument("bincount: minlength", minlength)
    if length < 0:
        raise argument_error(ValueError, "bincount: minlength", length, "0 or more")
    weights = None if weights is None else values_argument(weights, "bincount", x)
    if weights is not None and weights.shape != x.shape:
        got = Described(f"shape {weights.shape}")
        raise argument_error(ValueError, "bincount: weights", got, f"{x.shape}, the shape of x")
    if x.size == 0:
        return zeros(length, int64 if weights is None else float64, device=x.device)
    # As unsigned numbers, negative ones are the greatest: one number is read instead of two.
    whole = x if x.dtype.kind == "u" else x.view(f"uint{8 * x.dtype.itemsize}")
    most = int(fn.max(whole))
    if most > iinfo(x.dtype).max:
        least = int(fn.min(x))
        raise argument_error(ValueError, "bincount: x", least, "0 or more in every element")
    return _counted(x, weights, max(length, most + 1))


def _counted(x, weights, length):
    if weights is None:
        counts = zeros(length, int64, device=x.device)
        if length:
            queue_call("count", (), (counts,), (x.contiguous(),))
        return counts
    sums = zeros((1, length, 1), float64, device=x.device)
    weights = astype(weights, float64, copy=False).contiguous()
    weights = reshape(weights, (1, weights.size, 1))
    queue_call("add_at", (), (sums,), (x.contiguous(), weights), "bincount")
    return reshape(sums, -1)


def digitize(x, bins, /, right=False):
    """Return the number of the range between `bins` that contains each element of `x`.

    The bins ascend or descend. The call reads them, which waits for a tensor on a GPU; in a
    compiled program they have to ascend.

    >>> import gputensor as gt
    >>> x, bins = gt.asarray([0.5, 2.5], device="host"), gt.asarray([1.0, 2.0], device="host")
    >>> digitize(x, bins).tolist()
    [0, 2]
    """
    side = "left" if right else "right"
    bins = beside(bins, tensor_argument(x, "digitize"))
    if tracer() is not None or bins.ndim != 1:
        return searchsorted(bins, x, side)
    edges = bins.numpy()
    if (edges[:-1] <= edges[1:]).all():
        return searchsorted(bins, x, side)
    if not (edges[:-1] >= edges[1:]).all():
        got = Described(f"{len(edges)} edges in no order")
        raise argument_error(ValueError, "digitize: bins", got, "ascending or descending edges")
    return len(edges) - searchsorted(flip(bins), x, side)


def _bin_width(rule, x, dtype):
    """Return a width of bins for the values by one of NumPy's rules; reads it from the device."""
    n, x = x.size, astype(x, dtype, copy=False)
    extent = float(ptp(x))
    if rule == "auto":
        widths = {one: _bin_width(one, x, dtype) for one in ("fd", "sqrt", "sturges")}
        return min(max(widths["fd"], widths["sqrt"] / 2), widths["sturges"])
    if rule == "fd":
        low, high = quantile(x, [0.25, 0.75]).tolist()
        return 2 * (high - low) / n ** (1 / 3)
    if rule == "scott":
        return (24 * math.sqrt(math.pi) / n) ** (1 / 3) * float(fn.std(x))
    if rule == "doane":
        spread = float(fn.std(x))
        if n < 3 or spread == 0:
            return 0.0
        skewness = float(fn.mean(((x - fn.mean(x)) / spread) ** 3))
        unit = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
        return extent / (1 + math.log2(n) + math.log2(1 + abs(skewness) / unit))
    counts = {"sqrt": math.sqrt(n), "sturges": math.log2(n) + 1, "rice": 2 * n ** (1 / 3)}
    return extent / counts[rule]


def _bin_count(rule, x, range):
    """Return the number of bins of equal width that one of NumPy's rules takes for the values."""
    if rule not in RULES:
        expected = f"1 or more, ascending edges or one of {', '.join(RULES)}"
        raise argument_error(ValueError, "histogram: bins", rule, expected)
    low, high = _ends(x, range)
    x = reshape(x, -1) if range is None else x[fn.logical_and(x >= low, x <= high)]
    if not x.size:
        return 1
    is_narrow = x.dtype.itemsize <= 2 and x.dtype.kind in "fV"
    width = _bin_width(rule, x, float32 if is_narrow else result_type(x.dtype, float64))
    if x.dtype.kind in "biu":
        width = max(width, 1.0) if width else width
    return math.ceil((high - low) / width) if width else 1


def _ends(x, range):
    """Return the first and the last edge as Python floats."""
    if range is None:
        low, high = (float(fn.min(x)), float(fn.max(x))) if x.size else (0.0, 1.0)
    else:
        ends = list_argument("histogram: range", range, "a pair of numbers")
        if len(ends) != 2:
            raise argument_error(ValueError, "histogram: range", range, "a pair of numbers")
        low, high = (float_argument("histogram: range", one) for one in ends)
    if not low <= high < float("inf") or low == -float("inf"):
        raise argument_error(ValueError, "histogram: range", (low, high), "finite, low <= high")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(x, bins, range):
    if isinstance(bins, Tensor) and bins.ndim:
        if bins.ndim != 1:
            got = Described(f"{bins.ndim} dimensions")
            raise argument_error(ValueError, "histogram: bins", got, "1 dimension")
        return bins
    if has_elements(bins) and not isinstance(bins, str):
        for one in bins:
            float_argument("histogram: bins", one)
        if any(not low <= high for low, high in pairwise(bins)):
            raise argument_error(ValueError, "histogram: bins", list(bins), "ascending edges")
        return beside(list(bins), x)
    bins = _bin_count(bins, x, range) if isinstance(bins, str) else bins
    if isinstance(bins, type) or not hasattr(bins, "__index__") or bins < 1:
        raise argument_error(ValueError, "histogram: bins", bins, "1 or more, or ascending edges")
    count = operator.index(bins)
    low, high = _ends(x, range)
    dtype = float64 if x.dtype.kind in "iub" else float32 if x.dtype.itemsize <= 2 else x.dtype
    return linspace(low, high, count + 1, dtype=dtype, device=x.device)


def _between(x, edges, is_even):
    """Return how many elements lie between the edges, compared in their common dtype."""
    counts = zeros(max(0, edges.shape[0] - 1), int64, device=x.device)
    if counts.size and x.size:
        dtype = result_type(x, edges)
        if dtype.itemsize <= 2 and dtype.kind in "fV":
            dtype = float32
        edges = astype(edges, dtype, copy=False).contiguous()
        is_even = is_even and dtype.kind == "f"
        queue_call("histogram", (is_even,), (counts,), (x.contiguous(), edges))
    return counts


def _weights(weights, x, name):
    """Return the weights as a vector, one for each element of the vector `x`."""
    weights = reshape(values_argument(weights, name, x), -1)
    if weights.shape != x.shape:
        got = Described(f"{weights.size} weights")
        raise argument_error(ValueError, f"{name}: weights", got, f"{x.size}, one for each element")
    return weights


def _weights_between(x, edges, weights):
    """Return the sums of the weights of the elements between the edges."""
    count = edges.shape[0] - 1
    place = searchsorted(edges, x, "right")
    # The last range includes its upper edge. Elements outside go to extra ranges at both ends.
    place = fn.where(fn.equal(x, edges[-1]), count, place)
    return _counted(place, weights, count + 2)[1:-1]


def histogram(x, /, bins=10, range=None, density=False, weights=None):
    """Return how many elements lie between neighbouring edges, and the edges.

    Parameters
    ----------
    bins : int, sequence, Tensor or str
        The number of equally wide ranges, the ascending edges, or NumPy's rule for the number:
        "auto", "doane", "fd", "rice", "scott", "sqrt" or "sturges", which wait for the device.
    range : pair of float, optional
        The first and the last edge. Default: the least and the greatest element, which waits for
        the device.
    density : bool
        Return the share of each range divided by its width.
    weights : Tensor, optional
        The weight of each element.

    >>> import gputensor as gt
    >>> counts, edges = histogram(gt.asarray([1.0, 2.0, 2.5], device="host"), 2, (1, 3))
    >>> counts.tolist(), edges.tolist()
    ([1, 2], [1.0, 2.0, 3.0])
    """
    x = reshape(tensor_argument(x, "histogram"), -1)
    if x.dtype.kind == "c":
        raise argument_error(TypeError, "histogram: x", Described(x.dtype.name), "a real dtype")
    if is_float8(x.dtype):
        x = astype(x, float32)
    if isinstance(bins, str) and weights is not None:
        got = Described(f"bins={bins!r} and weights")
        raise argument_error(TypeError, "histogram: bins", got, "a number or edges with weights")
    is_even = isinstance(bins, str) or not has_elements(bins)
    edges = _edges(x, bins, range)
    if weights is None:
        counts = _between(x, edges, is_even)
    else:
        weights = _weights(weights, x, "histogram")
        counts = _weights_between(x, edges, weights)
        if weights.dtype.kind in "iuf" and not density:
            counts = astype(counts, weights.dtype, copy=False)
    if density:
        widths = fn.subtract(edges[1:], edges[:-1])
        counts = fn.divide(fn.divide(counts, widths), astype(fn.sum(counts), float64))
    return counts, edges


def histogram_bin_edges(x, /, bins=10, range=None, weights=None):
    """Return the edges of the ranges in which :func:`histogram` counts.

    >>> import gputensor as gt
    >>> histogram_bin_edges(gt.asarray([1.0, 3.0], device="host"), 2).tolist()
    [1.0, 2.0, 3.0]
    """
    return _edges(reshape(tensor_argument(x, "histogram_bin_edges"), -1), bins, range)


def histogramdd(sample, /, bins=10, range=None, density=False, weights=None):
    """Return how many points lie in each box of a grid, and the edges along each axis.

    Parameters
    ----------
    sample : Tensor or sequence of Tensor
        A matrix with a row for each point, or a vector for each coordinate.
    bins : int, or sequence of int, sequence or Tensor
        The number of ranges or the edges, for all axes or for each one.
    range : sequence of pairs of float, optional
        The first and last edge along each axis.
    density : bool
        Return the share of each box divided by its volume.
    weights : Tensor, optional
        The weight of each point.

    >>> import gputensor as gt
    >>> points = gt.asarray([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]], device="host")
    >>> histogramdd(points, 2)[0].tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    if isinstance(sample, Tensor):
        if sample.ndim != 2:
            got = Described(f"{sample.ndim} dimensions")
            rule = "2, points and coordinates"
            raise argument_error(ValueError, "histogramdd: sample", got, rule)
        columns = [sample[:, i] for i in builtins.range(sample.shape[1])]
    else:
        columns = [reshape(tensor_argument(one, "histogramdd"), -1)
                   for one in tensors(list_argument("histogramdd: sample", sample))]  # fmt: skip
    ndim = len(columns)
    if ndim == 0:
        raise argument_error(ValueError, "histogramdd: sample", sample, "at least one coordinate")
    if isinstance(bins, (Tensor, str)) or not has_elements(bins):
        bins = [bins] * ndim
    ranges = [None] * ndim if range is None else list_argument("histogramdd: range", range)
    if len(bins) != ndim or len(ranges) != ndim:
        got = Described(f"{len(bins)} of bins, {len(ranges)} of range")
        rule = f"{ndim}, one for each axis"
        raise argument_error(ValueError, "histogramdd: bins, range", got, rule)
    edges = [_edges(*three) for three in zip(columns, bins, ranges, strict=True)]
    counts = [one.shape[0] + 1 for one in edges]  # with an extra range at both ends
    place = 0
    for column, edge, count in zip(columns, edges, counts, strict=True):
        along = searchsorted(edge, column, "right")
        along = fn.where(fn.equal(column, edge[-1]), count - 2, along)
        place = fn.add(along, fn.multiply(place, count) if isinstance(place, Tensor) else 0)
    if weights is not None:
        weights = _weights(weights, columns[0], "histogramdd")
    found = astype(_counted(place, weights, math.prod(counts)), float64, copy=False)
    found = reshape(found, counts)[(slice(1, -1),) * ndim]
    if density:
        total = fn.sum(found)
        for axis, edge in enumerate(edges):
            width = reshape(fn.subtract(edge[1:], edge[:-1]), [-1] + [1] * (ndim - axis - 1))
            found = fn.divide(found, width)
        found = fn.divide(found, total)
    return found, edges


def histogram2d(x, y, /, bins=10, range=None, density=False, weights=None):
    """Return how many points ``(x, y)`` lie in each rectangle, and the edges along both axes.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 1.0, 1.0], device="host")
    >>> histogram2d(x, x[[0, 1, 0]], 2)[0].tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    if not isinstance(bins, (Tensor, str)) and hasattr(bins, "__iter__"):
        bins = list(bins)
    one_for_both = isinstance(bins, (Tensor, str)) or hasattr(bins, "__iter__") and len(bins) != 2
    bins = [bins, bins] if one_for_both else bins
    counts, (first, second) = histogramdd((x, y), bins, range, density, weights)
    return counts, first, second
