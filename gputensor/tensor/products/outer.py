"""Outer, inner, Kronecker and cross products, and products of matrices and vectors."""

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, axis_argument, spellings, tensor_argument
from gputensor.tensor.functions import conj, multiply, subtract
from gputensor.tensor.manipulation import (
    broadcast_arrays,
    expand_dims,
    moveaxis,
    reshape,
)
from gputensor.tensor.manipulation.joining import stack
from gputensor.tensor.products import matmul, vecdot
from gputensor.tensor.products.einsum import tensordot

__all__ = ["cross", "dot", "inner", "kron", "matvec", "outer", "vdot", "vecmat"]

NUMBERS = (bool, int, float, complex, np.generic)


def outer(x1, x2, /, out=None):
    """Return the products of all pairs of elements of the two flattened tensors, as a matrix.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2], device="host")
    >>> outer(x, x).tolist()
    [[1, 2], [2, 4]]
    """
    column = reshape(tensor_argument(x1, "outer"), (-1, 1))
    return multiply(column, reshape(tensor_argument(x2, "outer"), (1, -1)), out=out)


def inner(x1, x2, /):
    """Return the sums of products over the last axis of both; for vectors their dot product.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 2.0], device="host")
    >>> inner(x, x).item()
    5.0
    """
    if isinstance(x1, NUMBERS) or isinstance(x2, NUMBERS):
        return multiply(x1, x2)
    if tensor_argument(x1, "inner").ndim == 0 or tensor_argument(x2, "inner").ndim == 0:
        return multiply(x1, x2)
    if x1.shape[-1] != x2.shape[-1]:
        got = Described(f"shapes {x1.shape} and {x2.shape}")
        raise argument_error(ValueError, "inner: x1, x2", got, "equal extents of the last axes")
    if x1.ndim == x2.ndim == 1:
        return matmul(x1, x2)
    return tensordot(x1, x2, ((-1,), (-1,)))


def dot(x1, x2, /, *, out=None, precision=None):
    """Return the products over the last axis of `x1` and the last but one of `x2`.

    Vectors give the sum of their products, without conjugation, and matrices their product. A
    number or a tensor without axes scales the other argument. `out` is for at most two axes of
    `x2`.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1.0, 2.0], [3.0, 4.0]], device="host")
    >>> dot(x, x[0]).tolist()
    [5.0, 11.0]
    """
    for x in (x1, x2):
        if isinstance(x, (list, tuple, range)):  # refused, so that dot is called with a tensor
            tensor_argument(x, "dot")
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.ndim and x2.ndim):
        return multiply(x1, x2, out=out)
    if x2.ndim <= 2:
        return matmul(x1, x2, out=out, precision=precision)
    if out is not None:
        raise argument_error(TypeError, "dot: out", out, "none where x2 has more than two axes")
    return tensordot(x1, x2, ((-1,), (-2,)), precision=precision)


def vdot(x1, x2, /):
    """Return the dot product of the flattened tensors; complex x1 is conjugated.

    >>> import gputensor as gt
    >>> x = gt.asarray([[1.0, 2.0]], device="host")
    >>> vdot(x, x).item()
    5.0
    """
    x1, x2 = (reshape(tensor_argument(x, "vdot"), -1) for x in (x1, x2))
    return vecdot(x1, x2)


def matvec(x1, x2, /):
    """Return the products of matrices and vectors, or of stacks of them.

    >>> import gputensor as gt
    >>> matvec(gt.ones((2, 3), device="host"), gt.ones(3, device="host")).tolist()
    [3.0, 3.0]
    """
    return matmul(x1, expand_dims(tensor_argument(x2, "matvec"), -1))[..., 0]


def vecmat(x1, x2, /):
    """Return the products of vectors (conjugated if complex) and matrices, or of stacks of them.

    >>> import gputensor as gt
    >>> vecmat(gt.ones(2, device="host"), gt.ones((2, 3), device="host")).tolist()
    [2.0, 2.0, 2.0]
    """
    row = conj(x1) if tensor_argument(x1, "vecmat").dtype.kind == "c" else x1
    return matmul(expand_dims(row, -2), x2)[..., 0, :]


def kron(x1, x2, /):
    """Return the Kronecker product: x2 times each element of x1, as blocks.

    >>> import gputensor as gt
    >>> kron(gt.asarray([1, 10], device="host"), gt.asarray([1, 2], device="host")).tolist()
    [1, 2, 10, 20]
    """
    ndim = max(tensor_argument(x1, "kron").ndim, tensor_argument(x2, "kron").ndim)
    first, second = ((1,) * (ndim - x.ndim) + x.shape for x in (x1, x2))
    if 2 * ndim > 16:
        raise argument_error(ValueError, "kron", Described(f"{ndim} dimensions"), "at most 8")
    spread = [n for extent in first for n in (extent, 1)]
    inside = [n for extent in second for n in (1, extent)]
    blocks = multiply(reshape(x1, spread), reshape(x2, inside))
    return reshape(blocks, [a * b for a, b in zip(first, second, strict=True)])


@spellings(dim="axis")
def cross(x1, x2, /, axis=-1):
    """Return the cross product of vectors of 3 elements along `axis`.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([1, 0, 0], device="host"), gt.asarray([0, 1, 0], device="host")
    >>> cross(x, y).tolist()
    [0, 0, 1]
    """
    for one, name in ((x1, "x1"), (x2, "x2")):
        tensor_argument(one, "cross")
        if one.shape[axis_argument(axis, one.ndim, "cross")] != 3:
            got = Described(f"shape {one.shape}")
            raise argument_error(ValueError, f"cross: {name}", got, f"extent 3 in axis {axis}")
    x1, x2 = broadcast_arrays(moveaxis(x1, axis, -1), moveaxis(x2, axis, -1))
    a, b = ([x[..., i] for i in range(3)] for x in (x1, x2))
    parts = [
        subtract(multiply(a[i], b[j]), multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return stack(parts, axis if axis >= 0 else axis % x1.ndim)
