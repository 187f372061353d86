"""Tensors with a border, as by NumPy's ``pad``."""

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import copy
from gputensor.tensor.manipulation import empty

__all__ = ["pad"]

# Modes in which each element of the border is an element of the tensor.
GATHERED = ("edge", "reflect", "symmetric", "wrap")
MODES = ("constant", "empty", *GATHERED)


def _pairs(value, ndim, name):
    """Return (before, after) for each axis, from a value, a pair, or a pair for each axis."""
    if isinstance(value, dict):
        value = [value.get(i, value.get(i - ndim, (0, 0))) for i in range(ndim)]
    try:
        pairs = np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()
    except ValueError:
        rule = f"a value, a pair, or a pair for each of {ndim} axes"
        raise argument_error(ValueError, name, value, rule) from None
    return pairs


def _widths(pad_width, ndim):
    widths = [*pad_width.values()] if isinstance(pad_width, dict) else pad_width
    if np.asarray(widths).dtype.kind not in "iu":
        raise argument_error(TypeError, "pad: pad_width", pad_width, "ints")
    pairs = _pairs(pad_width, ndim, "pad: pad_width")
    if any(width < 0 for pair in pairs for width in pair):
        raise argument_error(ValueError, "pad: pad_width", pad_width, "0 or more")
    return pairs


def pad(x, /, pad_width, mode="constant", *, constant_values=0):
    """Return `x` with a border.

    Parameters
    ----------
    pad_width : int, pair of int, sequence of pairs or dict from axis to pair
        The widths before and after along each axis, as in NumPy. (PyTorch's flat list has the last
        axis first.)
    mode : {"constant", "edge", "reflect", "symmetric", "wrap", "empty"}
        The values of the border; "empty" leaves them undefined.
    constant_values : number, pair or sequence of pairs
        The values of mode "constant", in the order of `pad_width`.

    >>> import gputensor as gt
    >>> pad(gt.asarray([1, 2], device="host"), (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    >>> pad(gt.asarray([1, 2, 3], device="host"), 2, "reflect").tolist()
    [3, 2, 1, 2, 3, 2, 1]
    """
    ndim = tensor_argument(x, "pad").ndim
    widths = _widths(pad_width, ndim)
    if mode not in MODES:
        raise argument_error(ValueError, "pad: mode", mode, f"one of {', '.join(MODES)}")
    if mode in GATHERED:
        return _gathered(x, widths, mode)
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


def _gathered(x, widths, mode):
    """Return the padded tensor by one gather over all axes that have a border."""
    key = [slice(None)] * x.ndim
    axes = [axis for axis, pair in enumerate(widths) if any(pair)]
    for place, axis in enumerate(axes):
        if x.shape[axis] == 0:
            got = Described(f"axis {axis} with extent 0")
            raise argument_error(ValueError, "pad: x", got, f"elements to fill mode {mode!r} from")
        index = np.pad(np.arange(x.shape[axis]), widths[axis], mode)
        key[axis] = index.reshape([-1 if i == place else 1 for i in range(len(axes))])
    if not axes:
        return copy(x)
    if len(axes) == axes[-1] - axes[0] + 1:
        return x[tuple(key)]
    # Index arrays that are not adjacent would move their axes to the front.
    for axis in axes:
        x = x[(slice(None),) * axis + (key[axis].reshape(-1),)]
    return x
