"""Splitting tensors along an axis; every part is a view.

``split`` works as in NumPy: an int is the number of parts, a sequence the positions to cut at. For
parts of a given size, as by PyTorch's ``split``, pass ``range(size, extent, size)``.
"""

import operator
from collections.abc import Callable
from typing import Any

from gputensor.errors import Described, argument_error, has_elements
from gputensor.tensor.core import axis_argument, spellings, tensor_argument

#: Further parts would all be empty views, more than memory holds.
MOST_PARTS = 1 << 24

__all__ = ["array_split", "chunk", "dsplit", "hsplit", "split", "vsplit"]


def _count(value, name):
    try:
        count = operator.index(value)
    except TypeError:
        raise argument_error(TypeError, name, value, "an int or a sequence of ints") from None
    if count < 1:
        raise argument_error(ValueError, name, count, "1 or more")
    return count


def _cuts(indices, extent, name):
    """Return where the parts begin and end, with the meaning of NumPy's slices."""
    edges = [0]
    try:
        edges += [operator.index(one) for one in indices]
    except TypeError:
        raise argument_error(TypeError, name, indices, "an int or a sequence of ints") from None
    return list(zip(edges, [*edges[1:], extent], strict=True))


def _parts(x, axis, edges):
    prefix = (slice(None),) * axis
    return [x[prefix + (slice(first, last),)] for first, last in edges]


def _even(extent, count):
    """Yield `count` parts; the first are longer by one if `extent` is not a multiple."""
    size, longer = divmod(extent, count)
    start = 0
    for i in range(count):
        stop = start + size + (i < longer)
        yield start, stop
        start = stop


@spellings(dim="axis")
def array_split(x, /, indices_or_sections, axis=0):
    """Return parts of `x` along `axis`, which may differ by one in length; see :func:`split`.

    >>> import gputensor as gt
    >>> [part.tolist() for part in array_split(gt.arange(5, device="host"), 2)]
    [[0, 1, 2], [3, 4]]
    """
    axis = axis_argument(axis, tensor_argument(x, "array_split").ndim, "array_split")
    if has_elements(indices_or_sections):
        name = "array_split: indices_or_sections"
        return _parts(x, axis, _cuts(indices_or_sections, x.shape[axis], name))
    count = _count(indices_or_sections, "array_split: indices_or_sections")
    if count > MOST_PARTS:
        rule = f"at most {MOST_PARTS} parts"
        raise argument_error(ValueError, "array_split: indices_or_sections", count, rule)
    return _parts(x, axis, _even(x.shape[axis], count))


@spellings("gputensor.tensor.numerics.torch_results.split_by_size", dim="axis",
           split_size_or_sections="sizes", split_size="sizes")  # fmt: skip
def split(x, indices_or_sections, /, axis=0):
    """Return the parts of `x` along `axis`, a list of views.

    Parameters
    ----------
    indices_or_sections : int or sequence of int
        The number of equal parts, or the positions at which to cut.
    axis : int

    >>> import gputensor as gt
    >>> [part.tolist() for part in split(gt.arange(6, device="host"), 3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> [part.tolist() for part in split(gt.arange(6, device="host"), [1, 4])]
    [[0], [1, 2, 3], [4, 5]]
    """
    axis = axis_argument(axis, tensor_argument(x, "split").ndim, "split")
    if has_elements(indices_or_sections):
        name = "split: indices_or_sections"
        return _parts(x, axis, _cuts(indices_or_sections, x.shape[axis], name))
    count = _count(indices_or_sections, "split: indices_or_sections")
    if x.shape[axis] % count:
        raise argument_error(
            ValueError,
            "split: indices_or_sections",
            count,
            f"a divisor of the extent {x.shape[axis]}; array_split makes unequal parts",
        )
    return _parts(x, axis, _even(x.shape[axis], count))


@spellings(dim="axis")
def chunk(x, /, chunks, axis=0):
    """Return at most `chunks` views of `x` along `axis`; all but the last have the same length.

    >>> import gputensor as gt
    >>> [part.tolist() for part in chunk(gt.arange(5, device="host"), 3)]
    [[0, 1], [2, 3], [4]]
    """
    axis = axis_argument(axis, tensor_argument(x, "chunk").ndim, "chunk")
    extent = x.shape[axis]
    size = -(-extent // _count(chunks, "chunk: chunks")) or 1
    starts = range(0, extent, size) or [0]
    return _parts(x, axis, [(start, start + size) for start in starts])


def _split_at(name, axis, least):
    def function(x, indices_or_sections, /):
        if tensor_argument(x, name).ndim < least:
            got = Described(f"{x.ndim} dimensions")
            raise argument_error(ValueError, f"{name}: x", got, f"{least} or more")
        return split(x, indices_or_sections, 0 if x.ndim == 1 else axis)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return the parts of `x` along axis {axis}; see :func:`split`.

    >>> import gputensor as gt
    >>> [part.shape for part in {name}(gt.zeros((2, 2, 2), device="host"), 2)]
    {[tuple(1 if i == axis else 2 for i in range(3))] * 2}
    """
    return function


vsplit: Callable[..., list[Any]] = _split_at("vsplit", 0, 2)
hsplit: Callable[..., list[Any]] = _split_at("hsplit", 1, 1)
dsplit: Callable[..., list[Any]] = _split_at("dsplit", 2, 3)
