"""Losses that compare elements, and the similarity of vectors, as in PyTorch."""

from gputensor.errors import argument_error
from gputensor.nn.losses import REDUCTIONS, check_reduction
from gputensor.tensor import functions as fn
from gputensor.tensor.blends import xlogy
from gputensor.tensor.core import spellings, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation.composed import logaddexp
from gputensor.tensor.numerics.distances import powered

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_similarity", "huber_loss",
    "kl_div", "l1_loss", "mse_loss", "normalize", "smooth_l1_loss",
]  # fmt: skip


def _reduced(losses, reduction, name, allowed=REDUCTIONS):
    check_reduction(name, reduction, allowed)
    if reduction == "none":
        return losses
    if reduction == "batchmean":
        return fn.divide(fn.sum(losses), max(losses.shape[0] if losses.ndim else 1, 1))
    return fn.sum(losses) if reduction == "sum" else fn.mean(losses)


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
    return _reduced(fn.square(fn.subtract(x, target)), reduction, "mse_loss")


def l1_loss(x, target, reduction="mean"):
    """Return the absolute differences; arguments as in :func:`mse_loss`.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, -4.0], device="host")
    >>> l1_loss(x, gt.zeros_like(x), "sum").item()
    5.0
    """
    return _reduced(fn.abs(fn.subtract(x, target)), reduction, "l1_loss")


def huber_loss(x, target, reduction="mean", delta=1.0):
    """Return half the squares of differences up to `delta`, beyond it their straight continuation.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, -4.0], device="host")
    >>> huber_loss(x, gt.zeros_like(x), "none").tolist()
    [0.5, 3.5]
    """
    if not delta > 0:
        raise argument_error(ValueError, "huber_loss: delta", delta, "a positive number")
    size = fn.abs(fn.subtract(x, target))
    near, far = fn.square(size) * 0.5, (size - 0.5 * delta) * delta
    return _reduced(fn.where(size < delta, near, far), reduction, "huber_loss")


def smooth_l1_loss(x, target, reduction="mean", beta=1.0):
    """Return :func:`huber_loss` divided by its `delta`, here `beta`; for 0, the differences.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, -4.0], device="host")
    >>> smooth_l1_loss(x, gt.zeros_like(x), "none", beta=2.0).tolist()
    [0.25, 3.0]
    """
    if not beta >= 0:
        raise argument_error(ValueError, "smooth_l1_loss: beta", beta, "0 or more")
    if beta == 0:
        return _reduced(fn.abs(fn.subtract(x, target)), reduction, "smooth_l1_loss")
    losses = fn.divide(huber_loss(x, target, "none", beta), beta)
    return _reduced(losses, reduction, "smooth_l1_loss")


def binary_cross_entropy(x, target, weight=None, *, reduction="mean"):
    """Return the cross entropy of probabilities x and a target from 0 to 1, at most 100 each.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.5, 1.0], device="host")
    >>> round(binary_cross_entropy(x, gt.ones_like(x)).item(), 4)
    0.3466
    """
    name = "binary_cross_entropy"
    x = tensor_argument(x, name)
    yes, no = (fn.maximum(fn.log(one), -100) for one in (x, 1 - x))
    losses = -fn.add(fn.multiply(target, yes), fn.multiply(fn.subtract(1, target), no))
    return _reduced(losses if weight is None else losses * weight, reduction, name)


def binary_cross_entropy_with_logits(x, target, weight=None, *, reduction="mean", pos_weight=None):
    """Return the cross entropy of sigmoid(x) and a target from 0 to 1, without overflow.

    `pos_weight` multiplies the part of the target that is 1.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 1000.0], device="host")
    >>> round(binary_cross_entropy_with_logits(x, gt.ones_like(x)).item(), 4)
    0.3466
    """
    name = "binary_cross_entropy_with_logits"
    x = tensor_argument(x, name)
    share = 1 if pos_weight is None else fn.multiply(target, fn.subtract(pos_weight, 1)) + 1
    losses = fn.subtract(1, target) * x + logaddexp(-x, 0) * share
    return _reduced(losses if weight is None else losses * weight, reduction, name)


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
    if log_target:
        parts = fn.multiply(fn.exp(target), fn.subtract(target, x))
    else:
        parts = fn.subtract(xlogy(target, target), fn.multiply(target, x))
    return _reduced(parts, reduction, "kl_div", (*REDUCTIONS, "batchmean"))


@spellings(dim="axis")
def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    """Return the cosine of the angle between vectors along `axis`; norms are at least `eps`.

    >>> import gputensor as gt
    >>> x = gt.asarray([[3.0, 4.0]], device="host")
    >>> cosine_similarity(x, -2 * x).tolist()
    [-1.0]
    """
    x1, x2 = (normalize(tensor_argument(x, "cosine_similarity"), 2, axis, eps) for x in (x1, x2))
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
