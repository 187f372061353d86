"""``reduce``, ``accumulate`` and ``reduceat`` of functions of two tensors.

A fold of an associative function takes a number of calls that grows with the logarithm of the
length: each call joins two halves, or each element with the one 1, 2, 4, ... places before it.
A difference is a sum of the first element and the others with the opposite sign. Other functions,
such as a power, take one call for each element along the axis.
"""

import math

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.tensor import functions
from gputensor.tensor.core import Tensor, axis_argument, out_argument
from gputensor.tensor.functions import where
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop import copy as copy_of
from gputensor.tensor.manipulation import broadcast_to, moveaxis, reshape, zeros_like
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.scans import cumsum

__all__ = ["FOLDED", "accumulated", "folded", "in_turn", "reduced_at"]

#: The ufuncs that fold here; NumPy knows the value of an empty one.
FOLDED = frozenset(
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor gcd lcm fmax fmin "
    "hypot logaddexp logaddexp2".split()
)


def folded(name, join, x, axis=0, dtype=None, out=None, **options):
    """Return the elements along the axes joined by a function of two tensors.

    `options` may hold NumPy's ``keepdims``, ``initial`` and ``where``.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1, 2], [4, 4]], device="host")
    >>> folded("bitwise_or", gt.bitwise_or, x).tolist()
    [5, 6]
    """
    x = x if dtype is None else astype(x, dtype, copy=False)
    axes = _axes(axis, x.ndim)
    axes = sorted({axis_argument(one, x.ndim, name) for one in axes})
    keepdims = options.pop("keepdims", False)
    x, initial = _selected(name, x, axes, **options)
    kept = [extent for i, extent in enumerate(x.shape) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    rest = reshape(moveaxis(x, tuple(axes), tuple(range(len(axes)))), (count, *kept))
    if initial is not None:
        first = asarray(initial, _joined_dtype(join, rest), device=rest.device)
        rest = concat([rest, broadcast_to(first, (1, *kept))])
    rest = _truth(name, rest)
    rest = abs(rest) if name in ("hypot", "gcd") else rest  # joined with 0
    while rest.shape[0] > 1:
        half = rest.shape[0] // 2
        rest, last = join(rest[:half], rest[half : 2 * half]), rest[2 * half :]
        rest = concat([rest, last]) if last.shape[0] else rest
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdims else kept
    return _into(out, _joined(join, reshape(rest[0], tuple(shape))), name)


def _axes(axis, ndim):
    """Return the axes that are reduced; the one element of a tensor without axes has none."""
    if axis is None:
        return tuple(range(ndim))
    return () if ndim == 0 and axis in (0, -1) else axis if isinstance(axis, tuple) else (axis,)


def _joined_dtype(join, x):
    """Return the dtype that two elements of `x` would be joined in."""
    none = reshape(x, -1)[:0]
    return join(none, none).dtype


def _joined(join, x):
    return astype(x, _joined_dtype(join, x), copy=False)


def _selected(name, x, axes, initial=None, where=None):
    """Return `x` with the identity where the mask is false, and the value to begin with, if any."""
    if where is not None:
        x = _kept(x, where, _identity(name, x.dtype, Described("where"), initial))
    elif initial is None and not all(x.shape[i] for i in axes):
        initial = _identity(name, x.dtype, Described("an axis without elements"))
    return x, initial


def _kept(x, mask, other):
    return where(mask, x, asarray(other, x.dtype, device=x.device))


def _identity(name, dtype, got, initial=None):
    """Return a value that changes no result; `initial` is one where the function has none."""
    identity = getattr(np, name).identity
    if identity is not None:
        return np.asarray(identity).astype(dtype)
    if initial is None:
        raise argument_error(ValueError, f"{name}.reduce: x", got, "one element or more")
    return initial  # all functions without an identity join a value with itself to that value


def _truth(name, x):
    return x != 0 if name.startswith("logical") else x


def _into(out, result, name):
    """Return a result, written to `out` where that is given; it shares no memory with `x`."""
    if out is None:
        return copy_of(result)
    out_argument(out, result, result.shape, result.dtype, name)[...] = result
    return out


def accumulated(name, join, x, axis=0, dtype=None, out=None):
    """Return, for each element along an axis, it and all before it joined by a function.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 4], device="host")
    >>> accumulated("bitwise_or", gt.bitwise_or, x).tolist()
    [1, 3, 7]
    """
    x = x if dtype is None else astype(x, dtype, copy=False)
    axis = axis_argument(axis, x.ndim, name)
    rest = _truth(name, moveaxis(x, axis, 0))
    step = 1
    while step < rest.shape[0]:
        rest = concat([rest[:step], join(rest[:-step], rest[step:])])
        step *= 2
    return _into(out, moveaxis(_joined(join, rest), 0, axis), name)


def in_turn(name, method, join, x, axis=0, dtype=None, **options):
    """Return ``reduce`` or ``accumulate`` of a function that is not associative: from the left.

    >>> import gputensor as gt
    >>> x = gt.asarray([7.0, 2.0, 1.0], device="host")
    >>> in_turn("subtract", "accumulate", gt.subtract, x).tolist()
    [7.0, 5.0, 4.0]
    >>> in_turn("divide", "reduce", gt.divide, x).item()
    3.5
    """
    x = x if dtype is None else astype(x, dtype, copy=False)
    axes = _axes(axis, x.ndim)
    if len(axes) > 1:
        rule = f"one axis: the order of several matters to {name}"
        raise argument_error(ValueError, f"{name}.{method}: axis", axis, rule)
    axis = axis_argument(axes[0], x.ndim, name) if axes else None
    out, initial = options.pop("out", None), options.pop("initial", None)
    keepdims = options.pop("keepdims", False)
    if options.pop("where", None) is not None:
        got = Described("where=")
        raise argument_error(ValueError, f"{name}.{method}: where", got, "none for this function")
    lines = reshape(x, (1, *x.shape)) if axis is None else moveaxis(x, axis, 0)
    if initial is not None:
        first = asarray(initial, _joined_dtype(join, x), device=x.device)
        lines = concat([broadcast_to(first, (1, *lines.shape[1:])), lines])
    if lines.shape[0] == 0 and method == "reduce":
        got = Described("no elements")
        raise argument_error(ValueError, f"{name}.reduce: x", got, "one element or more")
    found = _joined(join, _steps(name, join, lines, method == "accumulate"))
    if method == "accumulate" or keepdims and axis is not None:
        return _into(out, found if axis is None else moveaxis(found, 0, axis), name)
    return _into(out, found[0], name)


def _steps(name, join, lines, has_all):
    """Return the last result along the first axis, which is kept, or all of them."""
    count = lines.shape[0]
    if count < 2:
        return lines
    if name == "subtract":
        terms = concat([lines[:1], join(zeros_like(lines[1:]), lines[1:])])
        fold = cumsum if has_all else functions.sum
        return fold(terms, 0, lines.dtype, **({} if has_all else {"keepdims": True}))
    made, parts = lines[:1], [lines[:1]]
    for i in range(1, count):
        made = join(made, lines[i : i + 1])
        parts.append(made)
    parts[0] = astype(parts[0], made.dtype, copy=False)
    return concat(parts) if has_all else made


# Folds of whole lines into one, without another dtype, and up to how many are computed one by one.
_FOLDS = {
    "add": lambda lines: functions.sum(lines, 0, lines.dtype, keepdims=True),
    "multiply": lambda lines: functions.prod(lines, 0, lines.dtype, keepdims=True),
    "maximum": lambda lines: functions.max(lines, 0, keepdims=True),
    "minimum": lambda lines: functions.min(lines, 0, keepdims=True),
}
FEW_STARTS = 16


def reduced_at(name, join, x, indices, axis=0, dtype=None, out=None):
    """Return the elements from each index up to the next joined, as NumPy's ``reduceat`` does.

    If the next index is not larger, the element at the index stands alone. The indices are read
    on the host, so a tensor of them is waited for.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 4, 8], device="host")
    >>> reduced_at("add", gt.add, x, [0, 1, 3]).tolist()
    [1, 6, 8]
    """
    if name in ("add", "multiply") and dtype is None and x.dtype.kind in "biu":
        dtype = np.dtype("uint64" if x.dtype.kind == "u" else "int64")
    x = x if dtype is None else astype(x, dtype, copy=False)
    axis = axis_argument(axis, x.ndim, name)
    rest = _truth(name, moveaxis(x, axis, 0))
    starts = _starts(name, indices, rest.shape[0])
    ends = np.append(starts[1:], rest.shape[0])
    lengths = np.maximum(ends - starts, 1)
    if name in _FOLDS and 0 < starts.size <= FEW_STARTS and rest.dtype.kind in "iuf":
        fold = _FOLDS[name]
        parts = [
            rest[first : first + count] if count == 1 else fold(rest[first : first + count])
            for first, count in zip(starts.tolist(), lengths.tolist(), strict=True)
        ]
        return _into(out, moveaxis(concat(parts), 0, axis), name)
    groups = np.repeat(np.arange(starts.size), lengths)
    within = np.arange(groups.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rest = rest[asarray(starts[groups] + within, device=x.device)]
    step = 1
    while step < lengths.max(initial=0):
        is_joined = asarray(within[step:] >= step, device=x.device)
        is_joined = reshape(is_joined, (-1, *[1] * (rest.ndim - 1)))
        both = join(rest[:-step], rest[step:])
        rest = concat([rest[:step], where(is_joined, both, rest[step:])])
        step *= 2
    last = asarray(np.cumsum(lengths) - 1, device=x.device)
    return _into(out, moveaxis(_joined(join, rest[last]), 0, axis), name)


def _starts(name, indices, extent):
    starts = np.asarray(indices.numpy() if isinstance(indices, Tensor) else indices)
    if starts.ndim != 1 or starts.dtype.kind not in "iu" and starts.size:
        got = Described(f"{starts.dtype} of {starts.ndim} dimensions")
        raise argument_error(TypeError, f"{name}.reduceat: indices", got, "a vector of ints")
    wrong = starts[(starts < 0) | (starts >= extent)]
    if wrong.size:
        rule = f"0 to {extent - 1}"
        raise argument_error(IndexError, f"{name}.reduceat: indices", int(wrong[0]), rule)
    return starts.astype(np.int64)
