"""Tensors with a border, as by NumPy's ``pad``."""

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.tensor import functions
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import asarray, astype, copy
from gputensor.tensor.interop.arrays import host_array
from gputensor.tensor.manipulation import broadcast_to, empty, joining, moveaxis
from gputensor.tensor.quantiles import median

__all__ = ["pad"]

# Modes in which each element of the border is an element of the tensor.
GATHERED = ("edge", "reflect", "symmetric", "wrap")
# Modes whose border is computed from the elements along the axis.
COMPUTED = ("linear_ramp", "maximum", "mean", "median", "minimum")
MODES = ("constant", "empty", *GATHERED, *COMPUTED)


def _pairs(value, ndim, name):
    """Return (before, after) for each axis, from a value, a pair, or a pair for each axis."""
    if isinstance(value, dict):
        wrong = [axis for axis in value if axis not in range(-ndim, ndim)]
        if wrong:
            raise argument_error(ValueError, f"{name}: axis", wrong[0], f"one of {ndim} axes")
        found = [value.get(i, value.get(i - ndim, (0, 0))) for i in range(ndim)]
        value = [one if np.ndim(one) else (one, one) for one in found]
    try:
        pairs = np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()
    except ValueError:
        rule = f"a value, a pair, or a pair for each of {ndim} axes"
        if np.ndim(value) == 1:
            rule += ", as [(0, 0), (1, 2)] for PyTorch's (1, 2)"
        raise argument_error(ValueError, name, value, rule) from None
    return pairs


def _widths(pad_width, ndim):
    given = [*pad_width.values()] if isinstance(pad_width, dict) else [pad_width]
    if any(host_array("pad: pad_width", one).dtype.kind not in "iu" for one in given):
        raise argument_error(TypeError, "pad: pad_width", pad_width, "ints")
    pairs = _pairs(pad_width, ndim, "pad: pad_width")
    if any(width < 0 for pair in pairs for width in pair):
        raise argument_error(ValueError, "pad: pad_width", pad_width, "0 or more")
    return pairs


def pad(
    x, /, pad_width, mode="constant", *, constant_values=0, end_values=0, stat_length=None,
    reflect_type="even", **options,
):  # fmt: skip
    """Return `x` with a border.

    Parameters
    ----------
    pad_width : int, pair of int, sequence of pairs or dict from axis to pair
        The widths before and after along each axis, as in NumPy. (PyTorch's flat list has the last
        axis first.)
    mode : str or function
        The values of the border: "constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp",
        "maximum", "mean", "median" or "minimum"; "empty" leaves them undefined. A function is
        called for each vector along each axis of the tensor with a border of zeros, and writes the
        border: ``function(vector, (before, after), axis, options)``.
    constant_values, end_values : number, pair or sequence of pairs
        The values of mode "constant", and those at which a "linear_ramp" ends, in the order of
        `pad_width`.
    stat_length : int, pair, sequence of pairs or None
        How many elements from each end the modes "maximum", "mean", "median" and "minimum" use;
        all of them if None. Means and medians of integers are rounded.
    reflect_type : str
        "even", or "odd": the modes "reflect" and "symmetric" also subtract from twice the edge.
    **options
        What a function as `mode` gets as its last argument, a dict.

    >>> import gputensor as gt
    >>> pad(gt.asarray([1, 2], device="host"), (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    >>> pad(gt.asarray([1, 2, 3], device="host"), 2, "reflect").tolist()
    [3, 2, 1, 2, 3, 2, 1]
    >>> def sevens(vector, widths, axis, options):
    ...     vector[: widths[0]] = 7
    >>> pad(gt.asarray([1, 2], device="host"), (1, 1), sevens).tolist()
    [7, 1, 2, 0]
    """
    ndim = tensor_argument(x, "pad").ndim
    widths = _widths(pad_width, ndim)
    if callable(mode):
        options |= {} if reflect_type == "even" else {"reflect_type": reflect_type}
        return _by_function(x, widths, mode, options)
    if not isinstance(reflect_type, str) or reflect_type not in ("even", "odd"):
        raise argument_error(ValueError, "pad: reflect_type", reflect_type, "'even' or 'odd'")
    if options:
        got = Described(f"{next(iter(options))}=")
        rule = "constant_values=, or a function as mode"
        raise argument_error(TypeError, "pad: keyword", got, rule)
    if not isinstance(mode, str) or mode not in MODES:
        raise argument_error(ValueError, "pad: mode", mode, f"one of {', '.join(MODES)}")
    if mode in ("reflect", "symmetric") and reflect_type == "odd":
        return _odd(x, widths, mode)
    if mode in GATHERED:
        return _gathered(x, widths, mode)
    if mode == "linear_ramp":
        return _computed(x, widths, mode, _pairs(end_values, ndim, "pad: end_values"))
    if mode in COMPUTED:
        return _computed(x, widths, mode, _lengths(stat_length, x.shape))
    values = _pairs(constant_values, ndim, "pad: constant_values")
    shape = [before + n + after for n, (before, after) in zip(x.shape, widths, strict=True)]
    result = empty(shape, dtype=x.dtype, device=x.device)
    inside = [slice(w[0], w[0] + n) for n, w in zip(x.shape, widths, strict=True)]
    result[tuple(inside)] = x
    if mode == "constant":
        # The border of an axis includes the corners with earlier axes, not those with later ones.
        for axis in range(ndim):
            for edge, value in enumerate(values[axis]):
                if widths[axis][edge]:
                    start = 0 if edge == 0 else widths[axis][0] + x.shape[axis]
                    cut = slice(start, start + widths[axis][edge])
                    result[((slice(None),) * axis) + (cut, *inside[axis + 1 :])] = value
    return result


def _by_function(x, widths, function, options):
    """Return the padded tensor; the function writes to the vectors, which are views."""
    result = pad(x, widths)
    for axis, pair in enumerate(widths):
        lines = moveaxis(result, axis, -1)
        for place in np.ndindex(*lines.shape[:-1]):
            function(lines[place], tuple(pair), axis, dict(options))
    return result


def _gathered(x, widths, mode):
    """Return the padded tensor by one gather over all axes that have a border."""
    key = [slice(None)] * x.ndim
    axes = [axis for axis, pair in enumerate(widths) if any(pair)]
    for place, axis in enumerate(axes):
        if x.shape[axis] == 0:
            got = Described(f"axis {axis} with extent 0")
            raise argument_error(ValueError, "pad: x", got, f"elements to fill mode {mode!r} from")
        index = _border_places(x.shape[axis], *widths[axis], mode)
        key[axis] = index.reshape([-1 if i == place else 1 for i in range(len(axes))])
    if not axes:
        return copy(x)
    if len(axes) == axes[-1] - axes[0] + 1:
        return x[tuple(key)]
    # Index arrays that are not adjacent would move their axes to the front.
    for axis in axes:
        x = x[(slice(None),) * axis + (key[axis].reshape(-1),)]
    return x


def _border_places(extent, before, after, mode):
    """Return the places of an axis that its elements with a border come from."""
    places = np.arange(-before, extent + after)
    if mode == "edge":
        return np.minimum(np.maximum(places, 0), extent - 1)
    if mode == "wrap":
        return places % extent
    # There and back; the ends are not repeated by "reflect".
    period = 2 * extent if mode == "symmetric" else max(2 * extent - 2, 1)
    places %= period
    return np.minimum(places, 2 * extent - 1 - places if mode == "symmetric" else period - places)


def _odd(x, widths, mode):
    """Return the padded tensor, axis by axis.

    A place of the border is an element with a sign plus multiples of both edges: each reflection
    subtracts from twice an edge. NumPy pads indicators of the edges and of all others to find them.
    """
    for axis, pair in enumerate(widths):
        n = x.shape[axis]
        if not any(pair):
            continue
        if n == 0:
            got = Described(f"axis {axis} with extent 0")
            raise argument_error(ValueError, "pad: x", got, f"elements to fill mode {mode!r} from")
        index = np.pad(np.arange(n), pair, mode)
        parts = np.zeros((3, n))
        parts[0, 0] = parts[1, n - 1] = parts[2, 1:-1] = 1
        parts = np.pad(parts, ((0, 0), pair), mode, reflect_type="odd")
        sign = np.where((index > 0) & (index < n - 1), parts[2], 1)
        factors = [sign, parts[0] - sign * (index == 0), parts[1] - sign * (index == n - 1)]
        factors[2] *= n > 1  # one element is both edges
        before = (slice(None),) * axis
        edges = [astype(x[before + (slice(i, i + 1 or None),)], _wide(x)) for i in (0, -1)]
        joined = [x]
        for end in (0, 1):
            cut = slice(0, pair[0]) if end == 0 else slice(pair[0] + n, None)
            scales = [_along_axis(one[cut], x, axis) for one in factors]
            border = astype(x[before + (index[cut],)], _wide(x)) * scales[0]
            border = border + edges[0] * scales[1] + edges[1] * scales[2]
            joined.insert(end * len(joined), astype(border, x.dtype, copy=False))
        x = joining.concat(joined, axis=axis)
    return copy(x) if not any(map(any, widths)) else x


def _wide(x):
    return "int64" if x.dtype.kind == "b" else x.dtype


def _along_axis(values, x, axis):
    """Return whole numbers along one axis, in the dtype of `x`; negative ones wrap if unsigned."""
    values = values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    values = asarray(values.astype(np.int64), device=x.device)
    return astype(values, _wide(x), copy=False)


def _lengths(stat_length, shape):
    """Return how many elements from each end of each axis a statistic uses."""
    if stat_length is None:
        return [(n, n) for n in shape]
    lengths = _pairs(stat_length, len(shape), "pad: stat_length")
    for pair in lengths:
        if any(type(one) is not int for one in pair):
            raise argument_error(TypeError, "pad: stat_length", stat_length, "ints or None")
        if min(pair) < 1:
            raise argument_error(ValueError, "pad: stat_length", stat_length, "1 or more")
    return [(min(n, one), min(n, other)) for n, (one, other) in zip(shape, lengths, strict=True)]


def _computed(x, widths, mode, given):
    """Return the padded tensor, axis by axis: later axes see the border of earlier ones."""
    for axis, pair in enumerate(widths):
        n = x.shape[axis]
        if n == 0 and any(pair):
            got = Described(f"axis {axis} with extent 0")
            raise argument_error(ValueError, "pad: x", got, f"elements to fill mode {mode!r} from")
        parts = [x]
        for end, width in enumerate(pair):
            if width == 0:
                continue
            if mode == "linear_ramp":
                border = _ramp(x, axis, end, width, given[axis][end])
            else:
                length = given[axis][end]
                near = slice(0, length) if end == 0 else slice(n - length, n)
                border = _statistic(x[(slice(None),) * axis + (near,)], mode, axis)
                shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
                border = broadcast_to(border, shape)
            parts.insert(end * len(parts), border)
        if len(parts) > 1:
            x = joining.concat(parts, axis=axis)
    return copy(x) if not any(map(any, widths)) else x


def _statistic(x, mode, axis):
    """Return a statistic along an axis, in the dtype of `x`."""
    if mode in ("maximum", "minimum"):
        function = functions.max if mode == "maximum" else functions.min
        return function(x, axis=axis, keepdims=True)
    if x.dtype.kind not in "iub":
        function = functions.mean if mode == "mean" else median
        return astype(function(x, axis=axis, keepdims=True), x.dtype, copy=False)
    if mode == "median":
        middle = median(astype(x, "float64"), axis=axis, keepdims=True)
    else:
        middle = functions.sum(astype(x, "float64"), axis=axis, keepdims=True) / x.shape[axis]
    return astype(middle if x.dtype.kind == "b" else functions.round(middle), x.dtype)


def _ramp(x, axis, end, width, value):
    """Return a border from `value`, its outermost element, towards the edge of `x`."""
    n = x.shape[axis]
    edge = x[(slice(None),) * axis + (slice(0, 1) if end == 0 else slice(n - 1, n),)]
    is_whole = x.dtype.kind in "iu"
    edge = astype(edge, "float64") if x.dtype.kind in "iub" else edge
    steps = np.arange(width) if end == 0 else np.arange(width)[::-1]
    steps = steps.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    steps = asarray(steps, dtype=edge.dtype, device=x.device)
    ramp = steps * ((edge - value) / width) + value
    return astype(functions.floor(ramp) if is_whole else ramp, x.dtype)
