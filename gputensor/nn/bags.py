"""Embeddings of groups of rows, and bilinear layers, as in PyTorch."""

import math

from gputensor._arrays.dtypes import int64, isdtype
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import arange, expand_dims, full, reshape, take, zeros
from gputensor.tensor.numerics.group_reductions import index_reduce
from gputensor.tensor.products.einsum import einsum
from gputensor.tensor.sorting import searchsorted
from gputensor.tensor.writing import index_add

__all__ = ["bilinear", "embedding_bag"]

NAME = "embedding_bag"


def _bags(indices, offsets):
    """Return flat indices, the bag of each, and the number of bags."""
    if offsets is None:
        if indices.ndim != 2:
            got = Described(f"{indices.ndim} dimensions")
            raise argument_error(ValueError, f"{NAME}: indices", got, "2, or offsets beside 1")
        count, length = indices.shape
        bags = reshape(expand_dims(arange(count, device=indices.device), 1)
                       + zeros((1, length), int64, device=indices.device), (-1,))  # fmt: skip
        return reshape(indices, (-1,)), bags, count
    offsets = tensor_argument(offsets, NAME)
    if indices.ndim != 1 or offsets.ndim != 1:
        got = Described(f"{indices.ndim} and {offsets.ndim} dimensions")
        raise argument_error(ValueError, f"{NAME}: indices, offsets", got, "1 of each")
    places = arange(indices.size, device=indices.device)
    starts = astype(offsets, int64, copy=False)
    return indices, searchsorted(starts, places, "right") - 1, offsets.size


def embedding_bag(indices, table, offsets=None, *, mode="mean", per_sample_weights=None):
    """Return sums, means or maxima of rows of a table, for groups of row numbers.

    Parameters
    ----------
    indices : Tensor
        Row numbers: (bags, rows of each), or with `offsets` one after another.
    table : Tensor
        Shape (rows, size), of a floating-point dtype.
    offsets : Tensor, optional
        Where each bag begins; the first is 0. Empty bags give zeros.
    mode : {"sum", "mean", "max"}
    per_sample_weights : Tensor, optional
        A factor for each index; only for "sum".

    >>> import gputensor as gt
    >>> table = gt.asarray([[1.0], [2.0], [4.0]], device="host")
    >>> embedding_bag(gt.asarray([[0, 2], [1, 1]], device="host"), table).tolist()
    [[2.5], [2.0]]
    """
    indices, table = tensor_argument(indices, NAME), tensor_argument(table, NAME)
    if not isinstance(mode, str) or mode not in ("sum", "mean", "max"):
        raise argument_error(ValueError, f"{NAME}: mode", mode, "'sum', 'mean' or 'max'")
    if table.ndim != 2 or not isdtype(table.dtype, "real floating"):
        got = Described(f"{table.dtype.name} of shape {table.shape}")
        raise argument_error(ValueError, f"{NAME}: table", got, "floats of shape (rows, size)")
    flat, bags, count = _bags(indices, offsets)
    rows = take(table, flat, axis=0)
    if per_sample_weights is not None:
        weights = tensor_argument(per_sample_weights, NAME)
        if mode != "sum" or weights.shape != indices.shape:
            got = Described(f"mode {mode!r} and shape {weights.shape}")
            rule = f"'sum' and {indices.shape}, the shape of indices"
            raise argument_error(ValueError, f"{NAME}: per_sample_weights", got, rule)
        rows = rows * reshape(weights, (-1, 1))
    lengths = index_add(zeros(count, rows.dtype, device=rows.device), 0, bags,
                        zeros(flat.size, rows.dtype, device=rows.device) + 1)  # fmt: skip
    lengths = expand_dims(lengths, 1)
    shape = (count, table.shape[1])
    if mode == "max":
        least = full(shape, -math.inf, dtype=rows.dtype, device=rows.device)
        return fn.where(lengths > 0, index_reduce(least, 0, bags, rows, "amax"), 0)
    total = index_add(zeros(shape, rows.dtype, device=rows.device), 0, bags, rows)
    return total / fn.maximum(lengths, 1) if mode == "mean" else total


def bilinear(x1, x2, weight, bias=None):
    """Return ``sum of x1[i] * weight[o, i, j] * x2[j]`` for each output o, plus `bias`.

    Parameters
    ----------
    x1, x2 : Tensor
        Shapes (..., n) and (..., m).
    weight : Tensor
        Shape (outputs, n, m).
    bias : Tensor, optional
        Shape (outputs,).

    >>> import gputensor as gt
    >>> x = gt.ones((1, 2), device="host")
    >>> bilinear(x, x, gt.ones((3, 2, 2), device="host")).tolist()
    [[4.0, 4.0, 4.0]]
    """
    x1, x2 = tensor_argument(x1, "bilinear"), tensor_argument(x2, "bilinear")
    shape = tensor_argument(weight, "bilinear").shape
    if len(shape) != 3 or x1.shape[:-1] != x2.shape[:-1] or shape[1:] != (
        *x1.shape[-1:], *x2.shape[-1:],
    ):  # fmt: skip
        got = Described(f"{x1.shape}, {x2.shape} and {shape}")
        rule = "(..., n), (..., m) and (outputs, n, m)"
        raise argument_error(ValueError, "bilinear: shapes of x1, x2, weight", got, rule)
    made = einsum("...i,oij,...j->...o", x1, weight, x2)
    return made if bias is None else made + bias
