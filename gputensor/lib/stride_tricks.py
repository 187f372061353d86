"""NumPy's ``lib.stride_tricks``."""

from gputensor.tensor.numerics import windows

__all__ = ["sliding_window_view"]


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
