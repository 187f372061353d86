"""Polynomials as vectors of coefficients, the lowest power first: ``numpy.polynomial.polynomial``.

The functions of the package itself, such as `gputensor.polyval`, begin with the highest power.
Zeros at the end of a result stay, since to remove them would wait for the device; `polytrim`
does that.
"""

import sys

import numpy as np

from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, float_argument, int_argument
from gputensor.linalg import fits
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument
from gputensor.tensor.grids import vander
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import beside
from gputensor.tensor.manipulation import arange, eye, flip, moveaxis, ones, reshape, zeros
from gputensor.tensor.manipulation.joining import concat, stack
from gputensor.tensor.numerics import polynomials
from gputensor.tensor.parameter_names import SERIES, given_names
from gputensor.tensor.sorting import sort

__all__ = [
    "polyadd", "polycompanion", "polyder", "polydiv", "polyfit", "polyfromroots", "polyint",
    "polyline", "polymul", "polymulx", "polypow", "polyroots", "polysub", "polytrim", "polyval",
    "polyvalfromroots", "polyvander",
]  # fmt: skip

MOST_POWERS = 1000


def _vector(c, name, like=None):
    """Return coefficients as a vector of at least one element, on the device of a tensor."""
    c = beside(c, like) if isinstance(like, Tensor) else asarray(c)
    if c.ndim > 1 or c.size == 0:
        got = Described(f"shape {c.shape}")
        raise argument_error(ValueError, f"{name}: c", got, "1 dimension, at least 1 element")
    return reshape(c, -1)


def _pair(c1, c2, name):
    first = _vector(c1, name, c2)
    return first, _vector(c2, name, first)


def _reversed(function, c1, c2):
    return flip(function(*(flip(one) for one in _pair(c1, c2, function.__name__))))


def polyadd(c1, c2, /):
    """Return the coefficients of the sum of two polynomials.

    >>> polyadd([1, 2], [1, 0, 5]).tolist()
    [2, 2, 5]
    """
    return _reversed(polynomials.polyadd, c1, c2)


def polysub(c1, c2, /):
    """Return the coefficients of the difference of two polynomials.

    >>> polysub([1, 2], [1, 0, 5]).tolist()
    [0, 2, -5]
    """
    return _reversed(polynomials.polysub, c1, c2)


def polymul(c1, c2, /):
    """Return the coefficients of the product of two polynomials.

    >>> polymul([1, 2], [1, -2]).tolist()
    [1, 0, -4]
    """
    return _reversed(polynomials.polymul, c1, c2)


def polymulx(c, /):
    """Return the coefficients of the polynomial times x.

    >>> polymulx([1, 2]).tolist()
    [0, 1, 2]
    """
    c = _vector(c, "polymulx")
    return concat([zeros(1, c.dtype, device=c.device), c])


def polydiv(c1, c2, /):
    """Return the coefficients of quotient and remainder of two polynomials.

    >>> quotient, rest = polydiv([-3.0, 0.0, 1.0], [-2.0, 1.0])
    >>> quotient.tolist(), rest.tolist()
    ([2.0, 1.0], [1.0])
    """
    c1, c2 = _pair(c1, c2, "polydiv")
    return tuple(flip(one) for one in polynomials.polydiv(flip(c1), flip(c2)))


def polypow(c, pow, /, maxpower=None):
    """Return the coefficients of the polynomial to the power `pow`, 0 or more.

    >>> polypow([1, 1], 3).tolist()
    [1, 3, 3, 1]
    """
    c, count = _vector(c, "polypow"), int_argument("polypow: pow", pow)
    most = MOST_POWERS if maxpower is None else int_argument("polypow: maxpower", maxpower)
    if not 0 <= count <= most:
        raise argument_error(ValueError, "polypow: pow", count, f"0 to {most}")
    result = ones(1, c.dtype, device=c.device)
    for _ in range(count):
        result = polynomials.polymul(result, c)
    return result


def polyval(x, c, /, tensor=True):
    """Return the polynomial evaluated at `x`.

    Parameters
    ----------
    x : Tensor or number
    c : Tensor or sequence
        Coefficients along the first axis; each column of the others is one polynomial.
    tensor : bool
        Evaluate each column at every element of x; otherwise the columns broadcast with x.

    >>> import gputensor as gt
    >>> polyval(gt.asarray([0.0, 2.0], device="host"), [1.0, 0.0, 3.0]).tolist()
    [1.0, 13.0]
    """
    c = beside(c, x) if isinstance(x, Tensor) else asarray(c)
    x = beside(x, c)
    if c.ndim == 0 or c.shape[0] == 0:
        got = Described(f"shape {c.shape}")
        raise argument_error(ValueError, "polyval: c", got, "at least one coefficient")
    if tensor is not True and tensor is not False:
        raise argument_error(TypeError, "polyval: tensor", tensor, "True or False")
    if tensor:
        c = reshape(c, c.shape + (1,) * x.ndim)
    result = fn.add(fn.multiply(x, 0), c[-1])
    for k in range(c.shape[0] - 2, -1, -1):
        result = fn.add(fn.multiply(result, x), c[k])
    return result


def polyvalfromroots(x, r, /):
    """Return the product of ``x - r[k]`` over the roots `r`, evaluated at each element of `x`.

    >>> import gputensor as gt
    >>> polyvalfromroots(gt.asarray([0.0, 3.0], device="host"), [1.0, 2.0]).tolist()
    [2.0, 2.0]
    """
    r = _vector(r, "polyvalfromroots", x)
    return fn.prod(fn.subtract(reshape(beside(x, r), (*beside(x, r).shape, 1)), r), axis=-1)


def polyvander(x, deg, /):
    """Return the powers of `x` from 0 to `deg`, along a new last axis.

    >>> import gputensor as gt
    >>> polyvander(gt.asarray([2, 3], device="host"), 2).tolist()
    [[1.0, 2.0, 4.0], [1.0, 3.0, 9.0]]
    """
    deg, x = int_argument("polyvander: deg", deg), asarray(x)
    if deg < 0:
        raise argument_error(ValueError, "polyvander: deg", deg, "0 or more")
    flat = reshape(astype(x, result_type(x, 1.0), copy=False), -1)
    return reshape(vander(flat, deg + 1, increasing=True), (*x.shape, deg + 1))


def _factor(scl, name):
    if not isinstance(scl, (int, float, complex, np.number)):
        raise argument_error(TypeError, f"{name}: scl", scl, "a number")
    return scl


def _lines(c, axis, name):
    """Return coefficients along the first axis, of at least one element each."""
    c = asarray(c)
    c = reshape(c, 1) if c.ndim == 0 else c
    c = moveaxis(c, axis_argument(axis, c.ndim, name), 0)
    if c.shape[0] == 0:
        got = Described(f"shape {c.shape}")
        raise argument_error(ValueError, f"{name}: c", got, "at least 1 coefficient")
    return c


def _powers(c, first):
    """Return the numbers from `first`, one for each coefficient, in the dtype of `c`."""
    powers = arange(first, first + c.shape[0], dtype=c.dtype, device=c.device)
    return reshape(powers, (-1, *(1,) * (c.ndim - 1)))


def _times(m, name):
    m = int_argument(f"{name}: m", m)
    if not 0 <= m <= MOST_POWERS:
        raise argument_error(ValueError, f"{name}: m", m, f"0 to {MOST_POWERS}")
    return m


def polyder(c, /, m=1, scl=1, axis=0):
    """Return the coefficients of the derivative of order `m`; each is multiplied by `scl`.

    The coefficients are along `axis`; the other axes hold further polynomials.

    >>> polyder([1.0, 2.0, 3.0]).tolist()
    [2.0, 6.0]
    """
    c, factor = _lines(c, axis, "polyder"), _factor(scl, "polyder")
    for _ in range(_times(m, "polyder")):
        rest = c[1:]
        if rest.shape[0] == 0:
            c = zeros((1, *c.shape[1:]), c.dtype, device=c.device)
            break
        c = fn.multiply(fn.multiply(rest, _powers(rest, 1)), factor)
    return moveaxis(fn.positive(c), 0, axis)


def polyint(c, /, m=1, k=0, lbnd=0, scl=1, axis=0):
    """Return the coefficients of the integral of order `m`.

    Parameters
    ----------
    c : Tensor or sequence
    m : int
    k : number or sequence of numbers
        The value of each integral at `lbnd`; 0 for those that it lacks.
    lbnd : number
    scl : number
        A factor of each integral, before its constant is added.
    axis : int
        The axis of the coefficients; the other axes hold further polynomials.

    >>> polyint([1.0, 2.0], k=3).tolist()
    [3.0, 1.0, 1.0]
    """
    c, count = _lines(c, axis, "polyint"), _times(m, "polyint")
    c = astype(c, result_type(c, 1.0), copy=False)
    constants = list(k) if hasattr(k, "__iter__") else [k]
    if len(constants) > count > 0:
        got = Described(f"{len(constants)} constants")
        raise argument_error(ValueError, "polyint: k", got, f"at most {count}")
    for i in range(count):
        c = fn.divide(fn.multiply(c, _factor(scl, "polyint")), _powers(c, 1))
        c = concat([zeros((1, *c.shape[1:]), c.dtype, device=c.device), c])
        constant = constants[i] if i < len(constants) else 0
        c[0] = constant if lbnd == 0 else fn.subtract(constant, _value(c, lbnd))
    return moveaxis(fn.positive(c), 0, axis)


def _value(c, x):
    """Return the values of polynomials along the first axis at a number."""
    value = c[-1]
    for i in range(c.shape[0] - 2, -1, -1):
        value = fn.add(fn.multiply(value, x), c[i])
    return value


def polyfit(x, y, deg, /, rcond=None, full=False, w=None):
    """Return the coefficients of the least-squares polynomial of degree `deg` through points.

    Parameters are those of `gputensor.polyfit`. With `full` the result is a pair: the coefficients,
    and a list of the squared distances, rank, singular values and `rcond`.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 1.0, 2.0], device="host")
    >>> gt.round(polyfit(x, 2 * x + 1, 1), 3).tolist()
    [1.0, 2.0]
    """
    found = fits.polyfit(x, y, deg, rcond, full, w)
    if full:
        return flip(found[0], axis=0), list(found[1:])
    return flip(found, axis=0)


def polyfromroots(roots, /):
    """Return the coefficients of the polynomial with these roots, whose highest one is 1.

    >>> polyfromroots([1.0, 2.0]).tolist()
    [2.0, -3.0, 1.0]
    """
    return flip(fits.poly(_vector(roots, "polyfromroots")))


def polyroots(c, /):
    """Return the roots of a polynomial as sorted complex numbers; waits for the device.

    >>> [round(one.real, 3) for one in polyroots([2.0, -3.0, 1.0]).tolist()]
    [1.0, 2.0]
    """
    return sort(fits.roots(flip(_vector(c, "polyroots"))))


def polycompanion(c, /):
    """Return the companion matrix, whose eigenvalues are the roots.

    >>> polycompanion([2.0, -3.0, 1.0]).tolist()
    [[0.0, -2.0], [1.0, 3.0]]
    """
    c = _vector(c, "polycompanion")
    if c.size < 2:
        raise argument_error(ValueError, "polycompanion: c", Described("1 element"), "2 or more")
    last = fn.divide(c[:-1], c[-1])
    below = eye(c.size - 1, k=-1, dtype=last.dtype, device=last.device)
    below[:, -1] = fn.subtract(below[:, -1], last)
    return below


def polyline(off, scl, /):
    """Return the coefficients of ``off + scl * x``.

    >>> polyline(1, 2).tolist()
    [1, 2]
    """
    return stack([asarray(off), beside(scl, asarray(off))])


def polytrim(c, /, tol=0):
    """Return the coefficients without those at the end of magnitude `tol` or less; waits.

    >>> polytrim([1.0, 2.0, 0.0]).tolist()
    [1.0, 2.0]
    """
    c = _vector(c, "polytrim")
    tol = float_argument("polytrim: tol", tol)
    if not tol >= 0:
        raise argument_error(ValueError, "polytrim: tol", tol, "0 or more")
    kept = fn.greater(fn.abs(c), tol).nonzero()[0]
    if kept.size == 0:
        return fn.multiply(c[:1], 0)
    return fn.positive(c[: int(kept[-1]) + 1])


given_names(sys.modules[__name__], SERIES)


def __dir__():
    return sorted(__all__)
