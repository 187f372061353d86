"""Layers with random numbers: dropout, random slopes, and samples of categories."""

from numbers import Real

from gputensor._arrays.dtypes import float32, isdtype
from gputensor.errors import argument_error, float_argument
from gputensor.random.distributions import bernoulli, gumbel, uniform
from gputensor.tensor import functions
from gputensor.tensor.core import axis_argument, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import moveaxis, zeros_like
from gputensor.tensor.manipulation.picking import one_hot

__all__ = ["dropout", "dropout1d", "dropout2d", "dropout3d", "gumbel_softmax", "rrelu"]


def dropout(x, p=0.5, training=True, *, generator=None):
    """Return x with each element set to 0 with probability `p`, and the others divided by 1 - p.

    Parameters
    ----------
    x : Tensor
        Of a floating-point dtype.
    p : float
        0 to 1.
    training : bool
        Without it, x itself is returned.
    generator : Generator, optional
        As in :func:`gputensor.random.uniform`.

    >>> x = gt.ones(2, device="host")
    >>> dropout(x, 1.0).tolist(), dropout(x, 0.5, training=False).tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    return _dropped("dropout", x, p, training, generator)


def _dropped(name, x, p, training, generator, mask_shape=None):
    x = tensor_argument(x, name)
    if isinstance(p, bool) or not isinstance(p, Real) or not 0 <= p <= 1:
        raise argument_error(ValueError, f"{name}: p", p, "0 to 1")
    if not isdtype(x.dtype, "real floating"):
        raise argument_error(TypeError, f"{name}: dtype of x", x.dtype, "a floating-point dtype")
    if not training or p == 0:
        return x
    if p == 1:
        return zeros_like(x)
    shape = x.shape if mask_shape is None else mask_shape
    kept = bernoulli(1 - p, shape, device=x.device, generator=generator)
    return functions.where(kept, x * (1 / (1 - p)), 0)


def _channels_dropped(name, spatial, x, p, training, generator):
    if tensor_argument(x, name).ndim not in (spatial + 1, spatial + 2):
        rule = f"{spatial + 2} axes, or {spatial + 1} without a batch"
        raise argument_error(ValueError, f"{name}: shape of x", x.shape, rule)
    mask_shape = x.shape[: x.ndim - spatial] + (1,) * spatial
    return _dropped(name, x, p, training, generator, mask_shape)


def dropout1d(x, p=0.5, training=True, *, generator=None):
    """Return x with whole channels set to 0; x is (batch, channels, length), or without the batch.

    >>> dropout1d(gt.ones((1, 2, 3), device="host"), 1.0).sum().item()
    0.0
    """
    return _channels_dropped("dropout1d", 1, x, p, training, generator)


def dropout2d(x, p=0.5, training=True, *, generator=None):
    """Return x with whole channels set to 0 with probability `p`, and others divided by 1 - p.

    x is (batch, channels, height, width), or without the batch; otherwise as :func:`dropout`.

    >>> dropout2d(gt.ones((1, 2, 3, 3), device="host"), 1.0).sum().item()
    0.0
    """
    return _channels_dropped("dropout2d", 2, x, p, training, generator)


def dropout3d(x, p=0.5, training=True, *, generator=None):
    """Return x with whole channels set to 0; as :func:`dropout2d`, with a depth before the height.

    >>> dropout3d(gt.ones((1, 2, 3, 3, 3), device="host"), 1.0).sum().item()
    0.0
    """
    return _channels_dropped("dropout3d", 3, x, p, training, generator)


def rrelu(x, lower=1 / 8, upper=1 / 3, training=False, *, generator=None):
    """Return x where it is positive, and x times a slope from `lower` to `upper` elsewhere.

    In training each element has a random slope; otherwise all have the mean of the limits.

    >>> rrelu(gt.asarray([-2.0, 9.0], device="host"), 0.25, 0.75).tolist()
    [-1.0, 9.0]
    """
    x = tensor_argument(x, "rrelu")
    lower, upper = float_argument("rrelu: lower", lower), float_argument("rrelu: upper", upper)
    if not training:
        return functions.where(x > 0, x, x * ((lower + upper) / 2))
    if not isdtype(x.dtype, "real floating"):
        raise argument_error(TypeError, "rrelu: dtype of x", x.dtype, "a floating-point dtype")
    slopes = uniform(lower, upper, x.shape, dtype=x.dtype, device=x.device, generator=generator)
    return functions.where(x > 0, x, x * slopes)


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1, *, generator=None):
    """Return samples of categories, relaxed to probabilities: softmax((logits + gumbel) / tau).

    Parameters
    ----------
    logits : Tensor
        Of a floating-point dtype.
    tau : float
        The temperature, above 0.
    hard : bool
        Return the samples themselves, as 0 and 1.
    dim : int
        The axis of the categories.
    generator : Generator, optional
        As in :func:`gputensor.random.uniform`.

    >>> gumbel_softmax(gt.asarray([0.0, 1e4], device="host"), hard=True).tolist()
    [0.0, 1.0]
    """
    name = "gumbel_softmax"
    logits = tensor_argument(logits, name)
    if not isdtype(logits.dtype, "real floating"):
        rule = "a floating-point dtype"
        raise argument_error(TypeError, f"{name}: dtype of logits", logits.dtype, rule)
    if isinstance(tau, bool) or not isinstance(tau, Real) or not tau > 0:
        raise argument_error(ValueError, f"{name}: tau", tau, "a number above 0")
    dim = axis_argument(dim, logits.ndim, name)
    noise = gumbel(0.0, 1.0, logits.shape, dtype=logits.dtype, device=logits.device,
                   generator=generator)  # fmt: skip
    noisy = (logits + noise) / tau
    if not hard:
        wide = astype(noisy, float32, copy=False) if noisy.dtype.itemsize < 4 else noisy
        powers = functions.exp(wide - functions.max(wide, axis=dim, keepdims=True))
        shares = powers / functions.sum(powers, axis=dim, keepdims=True)
        return astype(shares, logits.dtype, copy=False)
    chosen = one_hot(functions.argmax(noisy, axis=dim), logits.shape[dim])
    return astype(moveaxis(chosen, -1, dim), logits.dtype)
