"""Methods that take axes or counts of axes one by one, as PyTorch's do."""

from gputensor.errors import argument_error, has_elements
from gputensor.tensor.core import spellings
from gputensor.tensor.manipulation import flip as flipped
from gputensor.tensor.manipulation import permute_dims
from gputensor.tensor.manipulation.joining import tile as tiled

__all__ = ["flip", "permute", "tile", "transpose"]


def _order(axes):
    return tuple(axes[0]) if len(axes) == 1 and has_elements(axes[0]) else axes


@spellings(flipped, axis="axis", dims="axis")
def flip(x, /, *axes):
    """Return a view with the order reversed along axes, given as ints or one sequence.

    >>> import gputensor as gt
    >>> gt.asarray([[1, 2], [3, 4]], device="host").flip(0, 1).tolist()
    [[4, 3], [2, 1]]
    """
    return flipped(x, axes[0] if len(axes) == 1 else axes or None)


@spellings(tiled, repetitions="repetitions", reps="repetitions", dims="repetitions")
def tile(x, /, *counts):
    """Return `x` repeated along its axes, as :func:`tile` does; counts are ints or one sequence.

    >>> import gputensor as gt
    >>> gt.asarray([1, 2], device="host").tile(2, 2).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return tiled(x, _order(counts))


@spellings(permute_dims, dims="axes")
def permute(x, /, *axes):
    """Return a view with the axes in another order, given as ints or one sequence.

    >>> import gputensor as gt
    >>> gt.zeros((2, 3, 4), device="host").permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return permute_dims(x, _order(axes))


@spellings("gputensor.tensor.manipulation.axes.swapaxes", dim0="axis1", dim1="axis2")
def transpose(x, /, *axes):
    """Return a view with the axes in the given order, by default reversed, as in NumPy.

    PyTorch's ``x.transpose(0, 1)`` is ``x.swapaxes(0, 1)``.

    >>> import gputensor as gt
    >>> gt.zeros((2, 3, 4), device="host").transpose().shape
    (4, 3, 2)
    """
    order = _order(axes)
    if not axes or len(axes) == 1 and axes[0] is None:
        order = range(x.ndim - 1, -1, -1)
    elif len(order) == 2 and x.ndim != 2:
        rule = f"{x.ndim} axes; swapaxes exchanges two, as PyTorch's transpose does"
        raise argument_error(ValueError, "transpose: axes", tuple(order), rule)
    return permute_dims(x, order)
