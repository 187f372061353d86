"""NumPy's ``lib.stride_tricks``."""

from gputensor.errors import argument_error
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.numerics import windows

__all__ = ["as_strided", "sliding_window_view"]


def as_strided(x, shape=None, strides=None, *, subok=False, writeable=True):
    """Return a view with any shape and strides within the memory of `x`.

    This is `gputensor.as_strided` with NumPy's signature.

    Parameters
    ----------
    shape : sequence of int, optional
    strides : sequence of int, optional
        In bytes, as ``x.strides``.
    subok, writeable : bool
        Without effect: tensors have no subclasses, and every view can be written to.

    >>> import gputensor as gt
    >>> x = gt.arange(4, dtype="int32", device="host")
    >>> as_strided(x, (3, 2), (4, 4)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    shape = tensor_argument(x, "as_strided").shape if shape is None else shape
    strides = x.strides if strides is None else strides
    if any(one % x.itemsize for one in strides):
        rule = f"multiples of {x.itemsize}, the bytes of an element"
        raise argument_error(ValueError, "as_strided: strides", tuple(strides), rule)
    return windows.as_strided(x, shape, [one // x.itemsize for one in strides])


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=True):
    """Return a view of all windows of an extent along each of some axes, as new last axes.

    This is `gputensor.sliding_window_view` with NumPy's signature.

    Parameters
    ----------
    window_shape : int or sequence of int
    axis : int or sequence of int, optional
        One for each extent of the windows; all axes when not given.
    subok, writeable : bool
        Without effect: tensors have no subclasses, and every view can be written to.

    >>> import gputensor as gt
    >>> sliding_window_view(gt.arange(4, device="host"), 3).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    return windows.sliding_window_view(x, window_shape, axis)


def __dir__():
    return sorted(__all__)
