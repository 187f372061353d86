"""Random orders and choices of numbers, of elements along an axis, and of categories."""

import math
import operator

import numpy as np

from gputensor._arrays.dtypes import float32, float64, int64
from gputensor.errors import (
    Described,
    argument_error,
    has_elements,
    int_argument,
    list_argument,
    plain_int,
)
from gputensor.random.distributions import Target, draw, gumbel, integers, uniform
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, tensor_argument, written_argument
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import arange, expand_dims, moveaxis, reshape, take
from gputensor.tensor.manipulation.axes import broadcast_shapes
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.scans import cumsum
from gputensor.tensor.sorting import argsort, searchsorted, topk

__all__ = ["categorical", "choice", "multinomial", "permutation", "permuted", "randperm", "shuffle"]


def _order(count, name, device, generator):
    try:
        count = operator.index(count)
    except TypeError:
        got = Described(type(count).__name__)
        raise argument_error(TypeError, f"{name}: n", got, "an int, a Tensor or a list") from None
    if count < 0:
        raise argument_error(ValueError, f"{name}: n", count, "0 or more")
    return draw(name, "permutation", (0, 0), Target((count,), int64, device, generator))


def permutation(x, axis=0, *, device=None, generator=None):
    """Return 0 to x - 1 in a random order, or a copy of a tensor with an axis in a random order.

    Up to 1,024 elements are ranked by random keys of 64 bits, so every order is as likely. The
    orders of more come from a network of 16 rounds with random keys.

    >>> sorted(permutation(5, device="host").tolist())
    [0, 1, 2, 3, 4]
    """
    if isinstance(x, (list, tuple)):
        x = asarray(x, device=_place(device, generator))
    if type(x) is not Tensor or x.ndim == 0:
        device = x.device if type(x) is Tensor and device is None else device
        return _order(x, "permutation", device, generator)
    axis = axis_argument(axis, x.ndim, "permutation")
    return take(x, _order(x.shape[axis], "permutation", x.device, generator), axis=axis)


def randperm(n, *, device=None, generator=None):
    """Return 0 to n - 1 in a random order, as int64; PyTorch's name.

    >>> sorted(randperm(3, device="host").tolist())
    [0, 1, 2]
    """
    return _order(n, "randperm", device, generator)


def shuffle(x, axis=0, *, generator=None):
    """Shuffle a tensor along an axis, in place.

    >>> import gputensor as gt
    >>> x = gt.arange(4, device="host")
    >>> shuffle(x)
    >>> sorted(x.tolist())
    [0, 1, 2, 3]
    """
    axis = axis_argument(axis, written_argument(x, "shuffle", "x").ndim, "shuffle")
    x[...] = take(x, _order(x.shape[axis], "shuffle", x.device, generator), axis=axis)


def permuted(x, /, axis=None, *, generator=None):
    """Return a copy of a tensor in which every line along an axis has a random order of its own.

    By default all elements change places.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1, 2, 3], [4, 5, 6]], device="host")
    >>> gt.sort(permuted(x, axis=1), axis=1).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    if axis is None:
        shape = tensor_argument(x, "permuted").shape
        return reshape(permutation(reshape(x, -1), generator=generator), shape)
    axis = axis_argument(axis, tensor_argument(x, "permuted").ndim, "permuted")
    device = x.device if generator is None else None
    keys = uniform(size=x.shape, dtype=float64, device=device, generator=generator)
    return take_along_axis(x, argsort(keys, axis), axis)


def choice(a, size=None, replace=True, p=None, axis=0, *, device=None, generator=None):
    """Return random elements of 0 to a - 1, or of a tensor along an axis.

    Parameters
    ----------
    a : int, Tensor or list
    size : int or sequence of int, optional
        The shape of the choice; default: one element.
    replace : bool
        Whether an element may be chosen more than once.
    p : Tensor or list, optional
        The weight of each element, 0 or more; default: all the same. The weights need not sum to 1.
        Those of a list are checked.
    axis : int
    device, generator
        As in :func:`uniform`.

    >>> import gputensor as gt
    >>> sorted(choice(gt.asarray([5, 6, 7], device="host"), 3, replace=False).tolist())
    [5, 6, 7]
    """
    if isinstance(a, (list, tuple)):
        a = asarray(a, device=_place(device, generator))
    elif type(a) is Tensor and a.ndim == 0:
        a, device = int_argument("choice: a", a), a.device if device is None else device
    given = p if isinstance(p, (list, tuple)) else None
    if isinstance(p, (list, tuple)):
        _weights_checked(p, "choice: p")
        p = asarray(p, device=a.device if type(a) is Tensor else _place(device, generator))
    if type(a) is Tensor:
        axis = axis_argument(axis, a.ndim, "choice")
        count, device = a.shape[axis], a.device if device is None else device
    else:
        count = plain_int(a)
        if not isinstance(count, int):
            raise argument_error(TypeError, "choice: a", a, "an int, a Tensor or a list")
        device = p.device if device is None and type(p) is Tensor else device
    shape = () if size is None else tuple(size) if has_elements(size) else (size,)
    wanted = math.prod(int_argument("choice: size", extent) for extent in shape)
    if count < 1 and wanted:
        raise argument_error(ValueError, "choice: a", count, "at least one element")
    if not replace and wanted > count:
        raise argument_error(ValueError, "choice: size", wanted, f"at most {count}, all elements")
    where = {"device": device, "generator": generator}
    if given is not None and not replace and wanted > sum(one > 0 for one in given):
        rule = f"at most {sum(one > 0 for one in given)}, the elements of weights above 0"
        raise argument_error(ValueError, "choice: size", wanted, rule)
    if p is not None:
        places = _weighted(p, count, wanted, replace, where)
    elif replace:
        places = integers(count, size=wanted, **where)
    else:
        places = _order(count, "choice", device, generator)[:wanted]
    places = reshape(places, shape)
    return places if type(a) is not Tensor else take(a, places, axis=axis)


def _weights_checked(weights, title):
    """Check weights that are numbers on the host: those of a tensor would have to wait."""
    for one in weights:
        if not isinstance(one, (int, float, np.number)):
            raise argument_error(TypeError, title, one, "numbers")
        if not 0 <= one < math.inf:
            raise argument_error(ValueError, title, one, "finite weights, 0 or more")
    if not any(weights):
        raise argument_error(ValueError, title, weights, "a weight above 0")


def _place(device, generator):
    """Return the device of numbers of a generator, or the given one."""
    return device if generator is None else getattr(generator, "device", device)


def _weighted(p, count, wanted, replace, where):
    if tensor_argument(p, "choice").shape != (count,):
        raise argument_error(ValueError, "choice: p", Described(f"shape {p.shape}"), (count,))
    p = astype(p, float64, copy=False)
    if not replace:
        noise = gumbel(size=count, dtype=float64, **where)
        return topk(fn.add(fn.log(p), noise), wanted)[1]
    sums = cumsum(p)
    at = fn.multiply(uniform(size=wanted, dtype=float64, **where), sums[-1])
    return fn.minimum(searchsorted(sums, at, side="right"), count - 1)


def categorical(generator, logits, axis=-1, *, shape=None):
    """Return a random category for each row of logits: log-probabilities, up to a constant.

    Parameters
    ----------
    generator : Generator, state or None
        It comes first, as in JAX. It may also be the state of a generator in a program.
    logits : Tensor
    axis : int
        The axis of the categories.
    shape : sequence of int, optional
        The shape of the result, to which the other axes of logits broadcast; default: those axes.

    >>> import gputensor as gt
    >>> logits = gt.asarray([[0.0, -gt.inf], [-gt.inf, 0.0]], device="host")
    >>> categorical(gt.random.generator(seed=1, device="host"), logits).tolist()
    [0, 1]
    """
    axis = axis_argument(axis, tensor_argument(logits, "categorical").ndim, "categorical")
    if logits.dtype.kind not in "fV" or logits.shape[axis] == 0:
        got = Described(f"{logits.dtype.name} of shape {logits.shape}")
        rule = "a floating-point dtype and at least one category"
        raise argument_error(TypeError, "categorical: logits", got, rule)
    rows = moveaxis(logits, axis, -1)
    batch = rows.shape[:-1]
    shape = batch if shape is None else tuple(list_argument("categorical: shape", shape))
    if broadcast_shapes(shape, batch) != shape:
        got = Described(f"{shape}")
        rule = f"a shape to which {batch} broadcasts"
        raise argument_error(ValueError, "categorical: shape", got, rule)
    dtype = float64 if logits.dtype == float64 else float32
    device = logits.device if generator is None else None
    target = Target((*shape, rows.shape[-1]), dtype, device, generator)
    noise = draw("categorical", "gumbel", (0.0, 1.0), target)
    return fn.argmax(fn.add(noise, rows), axis=-1)


def _counts(n, shares, size, generator):
    """Return how often each category occurs in `n` trials."""
    if isinstance(shares, (list, tuple)):
        _weights_checked(shares, "multinomial: pvals")
    shares = asarray(shares, device=_place(None, generator))
    if shares.ndim != 1 or not shares.size or n < 0:
        got = Described(f"{n} trials of weights of shape {shares.shape}")
        raise argument_error(ValueError, "multinomial: n, pvals", got, "0 or more, of a vector")
    shape = () if size is None else tuple(size) if has_elements(size) else (size,)
    logits = fn.log(astype(shares, float64, copy=False))
    chosen = categorical(generator, logits, shape=(*shape, n))
    categories = arange(shares.size, device=chosen.device)
    return fn.sum(fn.equal(expand_dims(chosen, -1), categories), axis=-2)


def multinomial(p, num_samples, replacement=False, *, size=None, generator=None):
    """Return random categories for each row of weights: PyTorch's function.

    With an int first it is NumPy's: ``multinomial(n, weights, size)`` returns how often each
    category occurs in `n` trials.

    >>> import gputensor as gt
    >>> p = gt.asarray([0.0, 1.0, 3.0], device="host")
    >>> sorted(multinomial(p, 2).tolist())
    [1, 2]
    >>> multinomial(9, p / 4, (2, 5)).sum(-1).tolist()
    [[9, 9, 9, 9, 9], [9, 9, 9, 9, 9]]
    """
    if isinstance(p, (int, np.integer)):
        size = size if replacement is False else replacement
        return _counts(int(p), num_samples, size, generator)
    if size is not None:
        rule = "None, unless an int of trials comes first"
        raise argument_error(ValueError, "multinomial: size", size, rule)
    if not isinstance(replacement, (int, np.bool_)):
        raise argument_error(TypeError, "multinomial: replacement", replacement, "True or False")
    if tensor_argument(p, "multinomial").ndim not in (1, 2) or p.dtype.kind not in "fV":
        got = Described(f"{p.dtype.name} of {p.ndim} dimensions")
        rule = "a floating-point dtype and 1 or 2 dimensions"
        raise argument_error(TypeError, "multinomial: p", got, rule)
    count = int_argument("multinomial: num_samples", num_samples)
    most = count if replacement else p.shape[-1]
    if not 1 <= count <= most:
        rule = "1 or more" if replacement else f"1 to {most}"
        raise argument_error(ValueError, "multinomial: num_samples", count, rule)
    logits = fn.log(p)
    if replacement:
        chosen = categorical(generator, logits, shape=(count, *p.shape[:-1]))
        return moveaxis(chosen, 0, -1)
    dtype = float64 if p.dtype == float64 else float32
    noise = gumbel(size=p.shape, dtype=dtype, generator=generator,
                   device=p.device if generator is None else None)  # fmt: skip
    return topk(fn.add(noise, logits), count)[1]
