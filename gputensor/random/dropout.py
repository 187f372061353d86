"""Dropout: random elements are set to 0."""

from gputensor._arrays.dtypes import isdtype
from gputensor.errors import argument_error
from gputensor.random.distributions import bernoulli
from gputensor.tensor import functions
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.manipulation import zeros_like

__all__ = ["dropout"]


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
    x = tensor_argument(x, "dropout")
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise argument_error(ValueError, "dropout: p", p, "0 to 1")
    if not isdtype(x.dtype, "real floating"):
        raise argument_error(TypeError, "dropout: dtype of x", x.dtype, "a floating-point dtype")
    if not training or p == 0:
        return x
    if p == 1:
        return zeros_like(x)
    kept = bernoulli(1 - p, x.shape, device=x.device, generator=generator)
    return functions.where(kept, x * (1 / (1 - p)), 0)
