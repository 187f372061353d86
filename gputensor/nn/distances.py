"""Losses that compare elements, the similarity of vectors, and their norms, as in PyTorch."""

import math

from gputensor._arrays.dtypes import float32
from gputensor.errors import argument_error, float_argument, plain_int
from gputensor.nn.losses import REDUCTIONS, check_reduction
from gputensor.nn.pooling import avg_pool2d
from gputensor.tensor import functions as fn
from gputensor.tensor.blends import xlogy
from gputensor.tensor.core import spellings, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import tensors
from gputensor.tensor.manipulation import broadcast_arrays, reshape
from gputensor.tensor.manipulation.composed import logaddexp, rounded_once
from gputensor.tensor.numerics.distances import powered
from gputensor.tensor.numerics.padding import pad

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_similarity", "huber_loss",
    "kl_div", "l1_loss", "local_response_norm", "mse_loss", "normalize", "reduced",
    "smooth_l1_loss",
]  # fmt: skip


def reduced(losses, reduction, name, allowed=REDUCTIONS):
    """Return the losses of function `name`, their sum or mean; ValueError for another reduction.

    >>> import gputensor as gt
    >>> reduced(gt.asarray([1.0, 4.0], device="host"), "sum", "mse_loss").item()
    5.0
    """
    check_reduction(name, reduction, allowed)
    if reduction == "none":
        return losses
    if reduction == "batchmean":
        return fn.divide(fn.sum(losses), max(losses.shape[0] if losses.ndim else 1, 1))
    return fn.sum(losses) if reduction == "sum" else fn.mean(losses)


@rounded_once
def mse_loss(x, target, reduction="mean"):
    """Return the squares of the differences: their mean, their sum, or each.

    Parameters
    ----------
    x, target : Tensor
        Their shapes broadcast.
    reduction : {"mean", "sum", "none"}

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 4.0], device="host")
    >>> mse_loss(x, gt.zeros_like(x)).item()
    8.5
    """
    return reduced(fn.square(fn.subtract(x, target)), reduction, "mse_loss")


@rounded_once
def l1_loss(x, target, reduction="mean"):
    """Return the absolute differences; arguments as in :func:`mse_loss`.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, -4.0], device="host")
    >>> l1_loss(x, gt.zeros_like(x), "sum").item()
    5.0
    """
    return reduced(fn.abs(fn.subtract(x, target)), reduction, "l1_loss")


@rounded_once
def huber_loss(x, target, reduction="mean", delta=1.0):
    """Return half the squares of differences up to `delta`, beyond it their straight continuation.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, -4.0], device="host")
    >>> huber_loss(x, gt.zeros_like(x), "none").tolist()
    [0.5, 3.5]
    """
    if not float_argument("huber_loss: delta", delta) > 0:
        raise argument_error(ValueError, "huber_loss: delta", delta, "a positive number")
    size = fn.abs(fn.subtract(x, target))
    near, far = fn.square(size) * 0.5, (size - 0.5 * delta) * delta
    return reduced(fn.where(size < delta, near, far), reduction, "huber_loss")


@rounded_once
def smooth_l1_loss(x, target, reduction="mean", beta=1.0):
    """Return :func:`huber_loss` divided by its `delta`, here `beta`; for 0, the differences.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, -4.0], device="host")
    >>> smooth_l1_loss(x, gt.zeros_like(x), "none", beta=2.0).tolist()
    [0.25, 3.0]
    """
    if not float_argument("smooth_l1_loss: beta", beta) >= 0:
        raise argument_error(ValueError, "smooth_l1_loss: beta", beta, "0 or more")
    if beta == 0:
        return reduced(fn.abs(fn.subtract(x, target)), reduction, "smooth_l1_loss")
    losses = fn.divide(huber_loss(x, target, "none", beta), beta)
    return reduced(losses, reduction, "smooth_l1_loss")


@rounded_once
def binary_cross_entropy(x, target, weight=None, *, reduction="mean"):
    """Return the cross entropy of probabilities x and a target from 0 to 1, at most 100 each.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.5, 1.0], device="host")
    >>> round(binary_cross_entropy(x, gt.ones_like(x)).item(), 4)
    0.3466
    """
    name = "binary_cross_entropy"
    x, target = tensors((tensor_argument(x, name), target))
    yes, no = (fn.maximum(fn.log(one), -100) for one in (x, 1 - x))
    losses = -fn.add(fn.multiply(target, yes), fn.multiply(fn.subtract(1, target), no))
    return reduced(losses if weight is None else losses * weight, reduction, name)


@rounded_once
def binary_cross_entropy_with_logits(x, target, weight=None, *, reduction="mean", pos_weight=None):
    """Return the cross entropy of sigmoid(x) and a target from 0 to 1, without overflow.

    `pos_weight` multiplies the part of the target that is 1.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 1000.0], device="host")
    >>> round(binary_cross_entropy_with_logits(x, gt.ones_like(x)).item(), 4)
    0.3466
    """
    name = "binary_cross_entropy_with_logits"
    x, target = tensors((tensor_argument(x, name), target))
    share = 1 if pos_weight is None else fn.multiply(target, fn.subtract(pos_weight, 1)) + 1
    losses = fn.subtract(1, target) * x + logaddexp(-x, 0) * share
    return reduced(losses if weight is None else losses * weight, reduction, name)


@rounded_once
def kl_div(x, target, reduction="mean", log_target=False):
    """Return the parts of the divergence of `target` from the distribution with logarithms x.

    Parameters
    ----------
    x : Tensor
        Logarithms of probabilities.
    target : Tensor
        Probabilities, or with `log_target` their logarithms.
    reduction : {"mean", "sum", "none", "batchmean"}
        "batchmean" divides the sum by the extent of the first axis.

    >>> import gputensor as gt
    >>> x = gt.log(gt.asarray([[0.5, 0.5]], device="host"))
    >>> kl_div(x, gt.asarray([[1.0, 0.0]], device="host"), "sum").item()
    0.6931471824645996
    """
    x, target = tensors((x, target))
    if log_target:
        parts = fn.multiply(fn.exp(target), fn.subtract(target, x))
    else:
        parts = fn.subtract(xlogy(target, target), fn.multiply(target, x))
    return reduced(parts, reduction, "kl_div", (*REDUCTIONS, "batchmean"))


@spellings(dim="axis")
@rounded_once
def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    """Return the cosine of the angle between vectors along `axis`; norms are at least `eps`.

    >>> import gputensor as gt
    >>> x = gt.asarray([[3.0, 4.0]], device="host")
    >>> cosine_similarity(x, -2 * x).tolist()
    [-1.0]
    """
    x1, x2 = (tensor_argument(x, "cosine_similarity") for x in (x1, x2))
    x1, x2 = (normalize(x, 2, axis, eps) for x in broadcast_arrays(x1, x2))
    return fn.sum(fn.multiply(x1, x2), axis)


@spellings(dim="axis")
def normalize(x, p=2.0, axis=1, eps=1e-12):
    """Return x with vectors along `axis` divided by their norms of order `p`, at least `eps`.

    >>> import gputensor as gt
    >>> normalize(gt.asarray([[3.0, 5.0]], device="host"), 1).tolist()
    [[0.375, 0.625]]
    """
    size = powered(tensor_argument(x, "normalize"), p, axis, True)
    result = fn.divide(x, fn.maximum(size, eps))
    return astype(result, x.dtype, copy=False) if x.dtype.kind in "fV" else result


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    """Return x divided by ``(k + alpha * mean)**beta``, with the mean of squares over channels.

    Parameters
    ----------
    x : Tensor
        Shape (batch, channels, ...), of a floating-point dtype.
    size : int
        The number of neighbouring channels in a mean; channels that are not there count as 0.
    alpha, beta, k : float

    Raises
    ------
    TypeError
        If x does not have a floating-point dtype.
    ValueError
        For other arguments that do not fit.

    >>> import gputensor as gt
    >>> local_response_norm(gt.ones((1, 2, 1), device="host"), 2, alpha=2.0, beta=1.0).tolist()
    [[[0.5], [0.3333333432674408]]]
    """
    name = "local_response_norm"
    if tensor_argument(x, name).ndim < 2:
        raise argument_error(ValueError, f"{name}: shape of x", x.shape, "(batch, channels, ...)")
    size = plain_int(size)
    if not isinstance(size, int) or size < 1:
        raise argument_error(ValueError, f"{name}: size", size, "a positive int")
    wide = astype(x, float32) if x.dtype.itemsize == 2 else x
    inner = math.prod(x.shape[2:])
    squares = reshape(fn.square(wide), (x.shape[0], 1, x.shape[1], inner))
    squares = pad(squares, [(0, 0), (0, 0), (size // 2, (size - 1) // 2), (0, 0)])
    means = reshape(avg_pool2d(squares, (size, 1), 1), x.shape)
    return astype(wide / fn.pow(means * alpha + k, beta), x.dtype, copy=False)
