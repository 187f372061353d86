"""Losses of several classes by margins or logistic terms, as in PyTorch."""

from gputensor._arrays.dtypes import int64, isdtype
from gputensor.errors import Described, argument_error, float_argument, function_argument
from gputensor.nn.activations import logsigmoid
from gputensor.nn.distances import reduced
from gputensor.nn.margins import pairwise_distance
from gputensor.tensor import functions as fn
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import arange, expand_dims
from gputensor.tensor.manipulation.composed import rounded_once
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.scans import cumsum

__all__ = [
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def _scores(x, target, name, shape):
    """Check scores of shape (samples, classes) or (classes,), and integers of `shape` of them."""
    x, target = tensor_argument(x, name), tensor_argument(target, name)
    if not isdtype(x.dtype, "real floating") or x.ndim not in (1, 2):
        got = Described(f"{x.dtype.name} with {x.ndim} dimensions")
        raise argument_error(ValueError, f"{name}: x", got, "1 or 2 of floats")
    wanted = shape(x)
    if not isdtype(target.dtype, "integral") or target.shape != wanted:
        rule = f"integers of shape {wanted}"
        raise argument_error(ValueError, f"{name}: target", (target.dtype, target.shape), rule)
    return x, target


@rounded_once
def multi_margin_loss(x, target, p=1, margin=1.0, weight=None, *, reduction="mean"):
    """Return how far the scores of other classes come within a margin of the target's, on average.

    Parameters
    ----------
    x : Tensor
        Scores: (samples, classes) or (classes,).
    target : Tensor
        The class of each sample.
    p : int
        1 or 2: the power of each distance.
    margin : float
    weight : Tensor, optional
        A factor for each class.
    reduction : {"mean", "sum", "none"}

    >>> import gputensor as gt
    >>> x = gt.asarray([[0.5, 0.0, -1.0]], device="host")
    >>> round(multi_margin_loss(x, gt.asarray([0], device="host")).item(), 4)
    0.1667
    """
    name = "multi_margin_loss"
    x, target = _scores(x, target, name, lambda scores: scores.shape[:-1])
    if p not in (1, 2):
        raise argument_error(ValueError, f"{name}: p", p, "1 or 2")
    margin = float_argument(f"{name}: margin", margin)
    place = expand_dims(target, -1)
    terms = fn.maximum(margin - take_along_axis(x, place, -1) + x, 0)
    terms = terms if p == 1 else fn.square(terms)
    if weight is not None:
        if tensor_argument(weight, name).shape != x.shape[-1:]:
            rule = f"{x.shape[-1:]}, one for each class"
            raise argument_error(ValueError, f"{name}: shape of weight", weight.shape, rule)
        terms = terms * expand_dims(weight[target], -1)
    terms = fn.where(arange(x.shape[-1], device=x.device) == place, 0, terms)
    return reduced(fn.sum(terms, -1) / x.shape[-1], reduction, name)


@rounded_once
def multilabel_margin_loss(x, target, *, reduction="mean"):
    """Return how far the scores of other classes come within 1 of the targets', on average.

    Parameters
    ----------
    x : Tensor
        Scores: (samples, classes) or (classes,).
    target : Tensor
        Classes in the shape of x; those from the first negative number on do not count.
    reduction : {"mean", "sum", "none"}

    >>> import gputensor as gt
    >>> x = gt.asarray([[0.1, 0.2, 0.4, 0.8]], device="host")
    >>> y = gt.asarray([[3, 0, -1, 1]], device="host")
    >>> round(multilabel_margin_loss(x, y).item(), 4)
    0.85
    """
    name = "multilabel_margin_loss"
    x, target = _scores(x, target, name, lambda scores: scores.shape)
    counts = fn.equal(cumsum(astype(target < 0, int64), -1), 0)
    target = fn.where(counts, target, 0)
    classes = arange(x.shape[-1], device=x.device)
    matches = fn.logical_and(expand_dims(target, -1) == classes, expand_dims(counts, -1))
    is_target = fn.any(matches, axis=-2)
    # (…, target, class): only pairs of a target and a class that is none count.
    terms = fn.maximum(1 - expand_dims(take_along_axis(x, target, -1), -1) + expand_dims(x, -2), 0)
    pairs = fn.logical_and(expand_dims(counts, -1), expand_dims(fn.logical_not(is_target), -2))
    losses = fn.sum(fn.where(pairs, terms, 0), (-2, -1)) / max(x.shape[-1], 1)
    return reduced(losses, reduction, name)


@rounded_once
def multilabel_soft_margin_loss(x, target, weight=None, *, reduction="mean"):
    """Return the mean over classes of the binary cross entropy of sigmoid(x) and `target`.

    >>> import gputensor as gt
    >>> x = gt.asarray([[0.0, 0.0]], device="host")
    >>> round(multilabel_soft_margin_loss(x, gt.asarray([[1.0, 0.0]], device="host")).item(), 4)
    0.6931
    """
    name = "multilabel_soft_margin_loss"
    x, target = tensor_argument(x, name), tensor_argument(target, name)
    if target.shape != x.shape or x.ndim == 0:
        raise argument_error(ValueError, f"{name}: shape of target", target.shape, x.shape)
    target = astype(target, x.dtype, copy=False)
    terms = -(target * logsigmoid(x) + (1 - target) * logsigmoid(-x))
    terms = terms if weight is None else terms * weight
    return reduced(fn.mean(terms, -1), reduction, name)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
    reduction="mean",
):  # fmt: skip
    """Return :func:`triplet_margin_loss` with any distance; default: the 2-norm.

    >>> import gputensor as gt
    >>> a, b = gt.zeros((1, 2), device="host"), gt.ones((1, 2), device="host")
    >>> far = lambda x, y: gt.sum(gt.abs(x - y), -1)
    >>> triplet_margin_with_distance_loss(a, a, b, distance_function=far, margin=5).item()
    3.0
    """
    name = "triplet_margin_with_distance_loss"
    far = pairwise_distance if distance_function is None else (
        function_argument(f"{name}: distance_function", distance_function)
    )  # fmt: skip
    near, away = far(anchor, positive), far(anchor, negative)
    away = fn.minimum(away, far(positive, negative)) if swap else away
    return reduced(fn.maximum(near - away + margin, 0), reduction, name)
