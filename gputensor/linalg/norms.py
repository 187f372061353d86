"""Norms of vectors and of matrices, and condition numbers."""

import math
from numbers import Real

from gputensor._arrays.dtypes import float32
from gputensor.errors import argument_error
from gputensor.linalg.decompositions import svdvals
from gputensor.linalg.infos import inv_ex
from gputensor.linalg.matrices import matrices
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, spellings, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import expand_dims, moveaxis, reshape

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


def _floating(x, name):
    is_whole = tensor_argument(x, name).dtype.kind in "iub"
    return astype(x, float32) if is_whole else x


def _squares(x):
    if x.dtype.kind == "c":
        return fn.add(fn.square(fn.real(x)), fn.square(fn.imag(x)))
    return fn.square(x)


def _greatest(x):
    """Return the reduction of magnitudes to the greatest; without elements that is 0."""
    return fn.max if x.size else fn.sum


@spellings(dim="axis", keepdim="keepdims")
def vector_norm(x, /, ord=2, axis=None, keepdims=False):
    """Return the norm of vectors along `axis`; of all elements if it is None.

    Parameters
    ----------
    ord : int or float
        ``inf`` and ``-inf`` give the greatest and the least magnitude, 0 the number of nonzero
        elements, and others ``sum(abs(x) ** ord) ** (1 / ord)``.

    >>> import gputensor as gt
    >>> vector_norm(gt.asarray([3.0, 4.0], device="host")).item()
    5.0
    """
    x = _floating(x, "vector_norm")
    if not isinstance(ord, (Real, Tensor)):
        raise argument_error(TypeError, "vector_norm: ord", ord, "a number")
    # Squares of 16-bit floats can overflow their dtype.
    wide = astype(x, float32) if x.dtype.itemsize == 2 else x
    if ord == math.inf:
        result = _greatest(wide)(fn.abs(wide), axis, keepdims=keepdims)
    elif ord == -math.inf:
        result = fn.min(fn.abs(wide), axis, keepdims=keepdims)
    elif ord == 0:
        result = fn.sum(fn.not_equal(wide, 0), axis, fn.abs(wide).dtype, keepdims=keepdims)
    elif ord == 1:
        result = fn.sum(fn.abs(wide), axis, keepdims=keepdims)
    elif ord == 2:
        result = fn.sqrt(fn.sum(_squares(wide), axis, keepdims=keepdims))
    else:
        total = fn.sum(fn.pow(fn.abs(wide), ord), axis, keepdims=keepdims)
        result = fn.pow(total, 1.0 / ord)
    return astype(result, x.dtype, copy=False) if x.dtype.itemsize == 2 else result


@spellings(keepdim="keepdims")
def matrix_norm(x, /, ord="fro", *, keepdims=False):
    """Return the norm of the matrices in the last two axes.

    Parameters
    ----------
    ord : {"fro", "nuc", inf, -inf, 1, -1, 2, -2}
        "fro" is the root of the sum of squares, "nuc" the sum of the singular values, inf and -inf
        the greatest and least sum of magnitudes of a row, 1 and -1 those of a column, and 2 and -2
        the greatest and least singular value.

    >>> import gputensor as gt
    >>> matrix_norm(gt.ones((2, 2), device="host")).item()
    2.0
    """
    a = matrices(x, "matrix_norm")
    if ord is not None and not isinstance(ord, (Real, str)):
        raise argument_error(TypeError, "matrix_norm: ord", ord, "a number, a str or None")
    if ord == "fro" or ord is None:
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        choose = {2: _greatest(a), -2: fn.min, "nuc": fn.sum}[ord]
        result = choose(svdvals(a), -1)
        result = expand_dims(result, (-2, -1)) if keepdims else result
    elif ord in (1, -1, math.inf, -math.inf):
        sums = fn.sum(fn.abs(a), -2 if abs(ord) == 1 else -1, keepdims=True)
        result = (_greatest(a) if ord > 0 else fn.min)(sums, (-2, -1), keepdims=keepdims)
    else:
        rule = "'fro', 'nuc', inf, -inf, 1, -1, 2 or -2"
        raise argument_error(ValueError, "matrix_norm: ord", ord, rule)
    return (
        astype(result, x.dtype, copy=False)
        if x.dtype.itemsize == 2 and x.dtype.kind in "fV"
        else result
    )


@spellings(dim="axis", keepdim="keepdims")
def norm(x, /, ord=None, axis=None, keepdims=False, *, p=None):
    """Return a norm, as NumPy does: of vectors for one `axis`, of matrices for two.

    Without `axis` and `ord` it is the 2-norm of all elements. See :func:`vector_norm` and
    :func:`matrix_norm` for the values of `ord`. With `p`, a number, it is PyTorch's: the vector
    norm over all elements, or over those along the axes.

    >>> import gputensor as gt
    >>> norm(gt.asarray([3.0, 4.0], device="host")).item()
    5.0
    """
    tensor_argument(x, "norm")
    if p is not None:
        if ord is not None:
            raise argument_error(TypeError, "norm: p", p, "None beside ord")
        if not isinstance(p, str):
            return vector_norm(x, axis=axis, keepdims=keepdims, ord=p)
        ord = p
    if axis is None and ord is None:
        return vector_norm(x, keepdims=keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    axes = [
        axis_argument(one, x.ndim, "norm")
        for one in (axis if isinstance(axis, (tuple, list)) else (axis,))
    ]
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise argument_error(ValueError, "norm: axis", axis, "one axis or two")
    result = matrix_norm(moveaxis(x, axes, [-2, -1]), ord="fro" if ord is None else ord)
    if keepdims:
        return reshape(result, [1 if i in axes else n for i, n in enumerate(x.shape)])
    return result


def cond(x, /, p=None):
    """Return the condition numbers of matrices: the norm of `x` times the norm of its inverse.

    `p` is the `ord` of :func:`matrix_norm`; by default 2. Singular matrices have the number
    infinity.

    >>> import gputensor as gt
    >>> cond(gt.asarray([[2.0, 0.0], [0.0, 1.0]], device="host")).item()
    2.0
    """
    a = matrices(x, "cond")
    if p is not None and not isinstance(p, (Real, str)):
        raise argument_error(TypeError, "cond: p", p, "a number, a str or None")
    if p in (None, 2, -2):
        s = svdvals(a)
        ends = (s[..., 0], s[..., -1])
        found = fn.divide(*(ends if p != -2 else ends[::-1]))
    else:
        found = fn.multiply(matrix_norm(a, ord=p), matrix_norm(inv_ex(a).inverse, ord=p))
    has_nan = fn.any(fn.isnan(a), axis=(-2, -1))
    return fn.where(fn.logical_and(fn.isnan(found), fn.logical_not(has_nan)), math.inf, found)
