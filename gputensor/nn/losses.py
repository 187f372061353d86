"""Losses of classification: cross entropy and negative log-likelihood."""

from gputensor._arrays.dtypes import isdtype
from gputensor.errors import argument_error, float_argument
from gputensor.nn import log_softmax
from gputensor.tensor import functions
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import expand_dims, reshape, take
from gputensor.tensor.manipulation.picking import take_along_axis

__all__ = ["cross_entropy", "nll_loss"]

REDUCTIONS = ("mean", "sum", "none")


def check_reduction(name, reduction, allowed=REDUCTIONS):
    """Refuse a reduction that a loss does not have."""
    if not isinstance(reduction, str) or reduction not in allowed:
        rule = f"one of {', '.join(allowed)}"
        raise argument_error(ValueError, f"{name}: reduction", reduction, rule)


def _checked(name, x, target, weight, reduction):
    x, target = tensor_argument(x, name), tensor_argument(target, name)
    check_reduction(name, reduction)
    if not isdtype(x.dtype, "real floating") or x.ndim == 0:
        raise argument_error(TypeError, f"{name}: dtype of x", x.dtype, "a floating-point dtype")
    axis = 0 if x.ndim == 1 else 1
    if weight is not None and tensor_argument(weight, name).shape != x.shape[axis : axis + 1]:
        rule = f"({x.shape[axis]},), one for each class"
        raise argument_error(ValueError, f"{name}: shape of weight", weight.shape, rule)
    return x, target, axis


def _by_class(name, powers, target, weight, ignore_index):
    """Return the losses for class numbers, the weight of each, and which of them count."""
    axis = 0 if powers.ndim == 1 else 1
    wanted = powers.shape[:axis] + powers.shape[axis + 1 :]
    if not isdtype(target.dtype, "integral") or target.shape != wanted:
        rule = f"integers of shape {wanted}"
        raise argument_error(ValueError, f"{name}: target", (target.dtype, target.shape), rule)
    counts = target != ignore_index
    target = functions.where(counts, target, 0)
    losses = -take_along_axis(powers, expand_dims(target, axis=axis), axis)
    losses = reshape(losses, wanted)
    share = astype(counts, powers.dtype)
    if weight is not None:
        share = share * reshape(take(weight, reshape(target, (-1,)), axis=0), wanted)
    return functions.where(counts, losses * share, 0), share, counts


def _reduced(losses, share, reduction):
    if reduction == "none":
        return losses
    total = functions.sum(losses)
    return total if reduction == "sum" else total / functions.sum(share)


def nll_loss(x, target, weight=None, *, ignore_index=-100, reduction="mean"):
    """Return the negative log-likelihood of the classes in `target`.

    Parameters are those of :func:`cross_entropy`, but x holds logarithms of probabilities and
    `target` must hold class numbers.

    >>> x = gt.asarray([[-1.0, -2.0]], device="host")
    >>> nll_loss(x, gt.asarray([1], device="host")).item()
    2.0
    """
    x, target, _axis = _checked("nll_loss", x, target, weight, reduction)
    losses, share, _counts = _by_class("nll_loss", x, target, weight, ignore_index)
    return _reduced(losses, share, reduction)


def cross_entropy(
    x, target, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """Return the cross entropy of softmax(x) and a target.

    Parameters
    ----------
    x : Tensor
        Scores of a floating-point dtype. Classes are axis 1, or axis 0 of a tensor with one axis.
    target : Tensor
        Class numbers in the shape of x without the class axis, or probabilities in the shape of x.
    weight : Tensor, optional
        One factor for each class.
    ignore_index : int
        Elements with this class number do not count.
    reduction : {"mean", "sum", "none"}
        For class numbers, "mean" divides by the sum of their weights; for probabilities, by the
        number of losses.
    label_smoothing : float
        The share of the target that is spread evenly over the classes, 0 to 1.

    Raises
    ------
    TypeError
        If x does not have a floating-point dtype, or has no axes.
    ValueError
        For other arguments that do not fit.

    >>> x = gt.asarray([[0.0, 0.0]], device="host")
    >>> cross_entropy(x, gt.asarray([1], device="host")).item()
    0.6931471824645996
    """
    name = "cross_entropy"
    x, target, axis = _checked(name, x, target, weight, reduction)
    label_smoothing = float_argument(f"{name}: label_smoothing", label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise argument_error(ValueError, f"{name}: label_smoothing", label_smoothing, "0 to 1")
    powers, classes = log_softmax(x, axis), x.shape[axis]
    factors = None
    if weight is not None:
        factors = reshape(weight, (-1, *(1,) * (x.ndim - 1 - axis)))
    if isdtype(target.dtype, "real floating"):
        if target.shape != x.shape:
            raise argument_error(ValueError, f"{name}: shape of target", target.shape, x.shape)
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / classes
        parts = powers * target if factors is None else powers * target * factors
        losses = -functions.sum(parts, axis=axis)
        if reduction == "none":
            return losses
        total = functions.sum(losses)
        return total if reduction == "sum" else functions.divide(total, losses.size)
    losses, share, counts = _by_class(name, powers, target, weight, ignore_index)
    if label_smoothing:
        every = powers if factors is None else powers * factors
        spread = functions.where(counts, -functions.sum(every, axis=axis), 0)
        losses = losses * (1 - label_smoothing) + spread * (label_smoothing / classes)
    return _reduced(losses, share, reduction)
