"""Losses that compare distances and likelihoods, as in PyTorch: margins, pairs, distributions."""

import math
from numbers import Real

from gputensor.errors import argument_error, float_argument
from gputensor.nn.distances import cosine_similarity, reduced
from gputensor.tensor import functions as fn
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.manipulation import full_like
from gputensor.tensor.manipulation.composed import logaddexp, rounded_once
from gputensor.tensor.numerics.distances import powered

__all__ = [
    "cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "margin_ranking_loss",
    "pairwise_distance", "poisson_nll_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip


@rounded_once
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """Return the norms of order `p` of the differences, plus `eps`, along the last axis.

    >>> import gputensor as gt
    >>> x = gt.asarray([[3.0, 4.0]], device="host")
    >>> pairwise_distance(x, gt.zeros_like(x), eps=0).tolist()
    [5.0]
    """
    tensor_argument(x1, "pairwise_distance")
    return powered(fn.subtract(x1, x2) + eps, p, -1, keepdim)


@rounded_once
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, *, reduction="mean"
):  # fmt: skip
    """Return how far each anchor is closer to its positive than to its negative, short of `margin`.

    Parameters
    ----------
    anchor, positive, negative : Tensor
        Vectors along the last axis.
    margin : float
    p, eps : float
        Of :func:`pairwise_distance`.
    swap : bool
        If true, the negative counts as close to the positive if that is less.
    reduction : {"mean", "sum", "none"}

    >>> import gputensor as gt
    >>> near, far = (gt.asarray([[one]], device="host") for one in (0.0, 0.5))
    >>> round(triplet_margin_loss(near, near, far).item(), 4)
    0.5
    """
    own = pairwise_distance(anchor, positive, p, eps)
    other = pairwise_distance(anchor, negative, p, eps)
    if swap:
        other = fn.minimum(other, pairwise_distance(positive, negative, p, eps))
    return reduced(fn.maximum(own - other + margin, 0), reduction, "triplet_margin_loss")


@rounded_once
def margin_ranking_loss(x1, x2, target, margin=0.0, *, reduction="mean"):
    """Return how far x1 is above x2 (`target` 1) or below it (-1), short of `margin`.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 4.0], device="host")
    >>> margin_ranking_loss(x, gt.zeros_like(x), -gt.ones_like(x)).item()
    2.5
    """
    tensor_argument(x1, "margin_ranking_loss")
    losses = fn.maximum(margin - fn.multiply(target, fn.subtract(x1, x2)), 0)
    return reduced(losses, reduction, "margin_ranking_loss")


@rounded_once
def cosine_embedding_loss(x1, x2, target, margin=0.0, *, reduction="mean"):
    """Return 1 less the cosine of two vectors (`target` 1), or the cosine above `margin` (-1).

    >>> import gputensor as gt
    >>> x = gt.asarray([[3.0, 4.0]], device="host")
    >>> cosine_embedding_loss(x, x, gt.asarray([-1], device="host"), margin=0.5).item()
    0.5
    """
    cosine = cosine_similarity(x1, x2, axis=-1)
    losses = fn.where(fn.equal(target, 1), 1 - cosine, fn.maximum(cosine - margin, 0))
    return reduced(losses, reduction, "cosine_embedding_loss")


@rounded_once
def hinge_embedding_loss(x, target, margin=1.0, *, reduction="mean"):
    """Return the distances x (`target` 1), or by how much they are below `margin` (-1).

    >>> import gputensor as gt
    >>> x = gt.asarray([0.25, 0.25], device="host")
    >>> hinge_embedding_loss(x, gt.asarray([1, -1], device="host"), reduction="none").tolist()
    [0.25, 0.75]
    """
    tensor_argument(x, "hinge_embedding_loss")
    losses = fn.where(fn.equal(target, 1), x, fn.maximum(margin - x, 0))
    return reduced(losses, reduction, "hinge_embedding_loss")


@rounded_once
def soft_margin_loss(x, target, *, reduction="mean"):
    """Return ``log(1 + exp(-target * x))`` for targets of 1 and -1, without overflow.

    >>> import gputensor as gt
    >>> x = gt.asarray([1000.0, -1000.0], device="host")
    >>> soft_margin_loss(x, gt.ones_like(x), reduction="none").tolist()
    [0.0, 1000.0]
    """
    tensor_argument(x, "soft_margin_loss")
    return reduced(logaddexp(fn.negative(fn.multiply(target, x)), 0), reduction, "soft_margin_loss")


@rounded_once
def gaussian_nll_loss(x, target, var, full=False, eps=1e-6, *, reduction="mean"):
    """Return the negative log-likelihood of `target` for normal distributions of mean x.

    Parameters
    ----------
    x, target : Tensor
        Their shapes broadcast.
    var : Tensor or float
        The variances, at least `eps`. One axis less than x: the same along the last axis.
    full : bool
        Whether to add the constant ``log(2 * pi) / 2``.
    eps : float
    reduction : {"mean", "sum", "none"}

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 3.0], device="host")
    >>> gaussian_nll_loss(x, gt.zeros_like(x), 1.0).item()
    2.5
    """
    name = "gaussian_nll_loss"
    tensor_argument(x, name)
    if isinstance(var, Real):
        var = full_like(x, var)
    tensor_argument(var, f"{name}: var")
    if var.shape == x.shape[:-1] and var.shape != x.shape:
        var = var[..., None]
    if not float_argument("gaussian_nll_loss: eps", eps) > 0:
        raise argument_error(ValueError, f"{name}: eps", eps, "a positive number")
    var = fn.maximum(var, eps)
    losses = (fn.log(var) + fn.square(fn.subtract(x, target)) / var) * 0.5
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction, name)


@rounded_once
def poisson_nll_loss(x, target, log_input=True, full=False, eps=1e-8, *, reduction="mean"):
    """Return the negative log-likelihood of counts for Poisson distributions.

    Parameters
    ----------
    x : Tensor
        The logarithms of the rates, or with `log_input` false the rates themselves.
    target : Tensor
        The counts.
    log_input : bool
    full : bool
        Whether to add Stirling's formula for the logarithms of the counts' factorials, above 1.
    eps : float
        Added to rates whose logarithm is taken.
    reduction : {"mean", "sum", "none"}

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 0.0], device="host")
    >>> poisson_nll_loss(x, gt.asarray([3.0, 0.0], device="host")).item()
    1.0
    """
    x = tensor_argument(x, "poisson_nll_loss")
    if log_input:
        losses = fn.exp(x) - fn.multiply(target, x)
    else:
        losses = x - fn.multiply(target, fn.log(x + eps))
    if full:
        count = fn.maximum(target, 1)
        stirling = count * fn.log(count) - count + 0.5 * fn.log(2 * math.pi * count)
        losses = losses + fn.where(fn.greater(target, 1), stirling, 0)
    return reduced(losses, reduction, "poisson_nll_loss")
