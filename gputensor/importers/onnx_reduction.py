"""ONNX operators along axes: reductions, ArgMax, cumulative sums, TopK, matrix products."""

import math

import numpy as np

from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import ints, namespace, number, tensor
from gputensor.importers.public_functions import gt

__all__ = []


def _sum(x, axes, keepdims):
    return gt.sum(x, axis=axes, dtype=x.dtype, keepdims=keepdims)


def _extreme(name):
    def run(x, axes, keepdims):
        if x.size == 0:
            return _of_nothing(x, axes, keepdims, name)
        if x.dtype.kind == "b":
            return getattr(gt, name)(x.astype("uint8"), axis=axes, keepdims=keepdims).astype("bool")
        return getattr(gt, name)(x, axis=axes, keepdims=keepdims)

    return run


def _of_nothing(x, axes, keepdims, name):
    """Return the maxima or minima of no elements: the least or greatest value of the type."""
    axes = {axis % x.ndim for axis in (range(x.ndim) if axes is None else axes)}
    extents = [1 if i in axes else extent for i, extent in enumerate(x.shape)]
    if not keepdims:
        extents = [extent for i, extent in enumerate(x.shape) if i not in axes]
    if x.dtype.kind == "b":
        fill = name == "min"
    elif x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        fill = limits.min if name == "max" else limits.max
    else:
        fill = -math.inf if name == "max" else math.inf
    return gt.full(tuple(extents), fill, x.dtype, device=x.device)


def _log_sum_exp(x, axes, keepdims):
    if x.size == 0:
        return gt.log(_sum(x, axes, keepdims))
    return gt.logsumexp(x, axis=axes, keepdims=keepdims)


_REDUCTIONS = {
    "ReduceSum": _sum,
    "ReduceMean": lambda x, axes, keep: gt.mean(x, axis=axes, keepdims=keep),
    "ReduceMax": _extreme("max"),
    "ReduceMin": _extreme("min"),
    "ReduceProd": lambda x, axes, keep: gt.prod(x, axis=axes, dtype=x.dtype, keepdims=keep),
    "ReduceL1": lambda x, axes, keep: _sum(gt.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: gt.sqrt(_sum(gt.square(x), axes, keep)),
    "ReduceSumSquare": lambda x, axes, keep: _sum(gt.square(x), axes, keep),
    "ReduceLogSum": lambda x, axes, keep: gt.log(_sum(x, axes, keep)),
    "ReduceLogSumExp": _log_sum_exp,
}
# The same for known values, in shape arithmetic.
_KNOWN = {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min}
# The element-wise part of a reduction, which remains when no axis is reduced.
_ELEMENTS = {"ReduceL1": gt.abs, "ReduceL2": gt.abs, "ReduceSumSquare": gt.square,
             "ReduceLogSum": gt.log}  # fmt: skip


def _reduction(name, function):
    def by_attribute(x, *, axes, keepdims):
        return run(x, axes, keepdims)

    def by_input(x, axes=None, *, keepdims, noop_with_empty_axes):
        axes = None if axes is None else ints(axes)
        if not axes and noop_with_empty_axes:
            x = tensor(x)
            return _ELEMENTS[name](x) if name in _ELEMENTS else x
        return run(x, axes, keepdims)

    def run(x, axes, keepdims):
        axes = tuple(axes) if axes else None
        if namespace(x) is np and name in _KNOWN and x.size:
            return np.asarray(_KNOWN[name](x, axis=axes, keepdims=bool(keepdims))).astype(x.dtype)
        x = tensor(x)
        return function(x, axes, bool(keepdims)).astype(x.dtype, copy=False)

    operator(name, folds=True)(by_attribute)
    operator(name, 13 if name == "ReduceSum" else 18, folds=True, known=(1,))(by_input)


for _name, _function in _REDUCTIONS.items():
    _reduction(_name, _function)


def _position(name):
    def run(x, *, axis, keepdims, select_last_index=0):
        # The last of equal elements is the first one of the flipped axis.
        found = getattr(gt, name)(
            gt.flip(x, axis=axis) if select_last_index else x, axis=axis, keepdims=bool(keepdims)
        )
        return x.shape[axis] - 1 - found if select_last_index else found

    return run


operator("ArgMax")(_position("argmax"))
operator("ArgMin")(_position("argmin"))


def _running(x, axis, exclusive, reverse, first, function):
    """Return a cumulative sum or product; `exclusive` leaves out the element itself."""
    axis = axis % x.ndim
    x = gt.flip(x, axis=axis) if reverse else x
    found = function(x, axis=axis, dtype=x.dtype)
    if exclusive:
        key = [slice(None)] * x.ndim
        key[axis] = slice(0, -1)
        extents = list(x.shape)
        extents[axis] = 1
        before = gt.full(tuple(extents), first, x.dtype, device=x.device)
        found = gt.concat([before, found[tuple(key)]], axis=axis)
    return gt.flip(found, axis=axis) if reverse else found


@operator("CumSum", known=(1,))
def cum_sum(x, axis, *, exclusive, reverse):
    return _running(x, number(axis), exclusive, reverse, 0, gt.cumsum)


@operator("CumProd", known=(1,))
def cum_prod(x, axis, *, exclusive, reverse):
    return _running(x, number(axis), exclusive, reverse, 1, gt.cumprod)


@operator("TopK", known=(1,))
def top_k(x, k, *, axis, largest=1, sorted=1):
    values, indices = gt.topk(x, number(k), axis, largest=bool(largest))
    return values, indices.astype("int64", copy=False)


# ---- products


@operator("MatMul")
def mat_mul(x, y):
    return gt.matmul(x, y)


@operator("Gemm")
def gemm(a, b, c=None, *, alpha, beta, transA, transB):
    a = gt.matrix_transpose(a) if transA else a
    b = gt.matrix_transpose(b) if transB else b
    if c is not None and alpha == 1 and beta == 1 and a.dtype.kind != "i" and c.ndim == 1:
        return gt.matmul(a, b, bias=c) if c.shape[0] == b.shape[1] else gt.matmul(a, b) + c
    found = gt.matmul(a, b)
    found = found if alpha == 1 else (found * alpha).astype(a.dtype)
    if c is None or beta == 0:
        return found
    return found + (c if beta == 1 else (c * beta).astype(a.dtype))


@operator("Einsum")
def einsum(*values, equation):
    return gt.einsum(equation.replace(" ", ""), *values)


@operator("MatMulInteger")
def mat_mul_integer(a, b, a_zero=None, b_zero=None):
    return gt.matmul(centred(a, a_zero, 0), centred(b, b_zero, 1))


def centred(x, zero, axis):
    """Return integers minus their zero points, as int32, for each row (axis 0) or column (1)."""
    x = x.astype("int32")
    if zero is None:
        return x
    zero = zero.astype("int32")
    if zero.ndim == 1 and axis == 0 and zero.shape[0] > 1:
        zero = gt.reshape(zero, (-1, 1))
    return x - zero
