"""Rotary position embeddings, and embeddings by index."""

import math

from gputensor._arrays.dtypes import float32, float64
from gputensor.errors import argument_error, float_argument
from gputensor.nn import activated
from gputensor.tensor import functions
from gputensor.tensor.core import Tensor, refusal
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import arange, expand_dims, reshape, take

__all__ = ["embedding", "rotary"]

_PAIR, _OTHER, _COSINE, _SINE, _SIGN = (("load", i) for i in range(5))
_TURNED = ("add", ("mul", _PAIR, _COSINE), ("mul", _OTHER, ("mul", _SINE, _SIGN)))


def _tensor(value, name):
    if not isinstance(value, Tensor):
        raise refusal(f"{name}: got {type(value).__name__}; expected a Tensor", value)
    return value


def rotary(x, positions, *, base=10000.0, interleaved=False):
    """Return x with each pair of elements of the last axis rotated by its position's angle.

    Pair j of position t is rotated by t * base**(-2 j / size) radians (Su and others, RoFormer,
    2021, equation 34). The pairs are (j, j + size / 2) as in Llama's published weights, or
    (2 j, 2 j + 1) if `interleaved`.

    Parameters
    ----------
    x : Tensor
        Shape (..., positions, size), with an even size.
    positions : Tensor
        Integers: one for each element of the axis before the last, or one for all. More axes, as in
        (batch, 1, positions), broadcast to the axes of x before the last.
    base : float
    interleaved : bool

    Raises
    ------
    TypeError
        If x or positions is not a Tensor.
    ValueError
        For shapes that do not fit.

    >>> x = gt.ones((1, 2), device="host")
    >>> rotary(x, gt.zeros(1, dtype=gt.int64, device="host")).numpy()
    array([[1., 1.]], dtype=float32)
    """
    _tensor(x, "rotary: x")
    _tensor(positions, "rotary: positions")
    if x.ndim < 2 or x.shape[-1] % 2:
        raise argument_error(ValueError, "rotary: shape of x", x.shape, "an even last extent")
    lead, half = x.shape[:-1], x.shape[-1] // 2
    if len(positions.shape) > len(lead) or any(
        n not in (1, m) for n, m in zip(positions.shape[::-1], lead[::-1], strict=False)
    ):
        rule = f"one that broadcasts to {lead}, the axes of x before the last"
        raise argument_error(ValueError, "rotary: shape of positions", positions.shape, rule)
    base = float_argument("rotary: base", base)
    if not base > 0:
        raise argument_error(ValueError, "rotary: base", base, "a number above 0")
    wide = float64 if x.dtype == float64 else float32
    powers = arange(half, dtype=wide, device=x.device) * (-math.log(base) / half if half else 0)
    angles = reshape(astype(positions, wide), (*positions.shape, 1)) * functions.exp(powers)
    sign = arange(-1, 2, 2, dtype=wide, device=x.device)
    if interleaved:
        pairs, angles = reshape(x, (*lead, half, 2)), expand_dims(angles, -1)
        turned = pairs[..., ::-1]
    else:
        pairs, angles = reshape(x, (*lead, 2, half)), expand_dims(angles, -2)
        turned, sign = pairs[..., ::-1, :], reshape(sign, (2, 1))
    loads = (pairs, turned, functions.cos(angles), functions.sin(angles), sign)
    return reshape(activated("rotary", (_TURNED,), loads), x.shape)


def embedding(indices, table):
    """Return rows of a table: ``table[indices]``, of shape (*indices.shape, size).

    Parameters
    ----------
    indices : Tensor
        Row numbers, of an integer dtype.
    table : Tensor
        Shape (rows, size), of any dtype.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.
    ValueError
        If the table does not have two axes.

    >>> embedding(gt.asarray([1], device="host"), gt.asarray([[1.0], [2.0]], device="host")).numpy()
    array([[2.]], dtype=float32)
    """
    _tensor(table, "embedding: table")
    if table.ndim != 2:
        raise argument_error(ValueError, "embedding: shape of table", table.shape, "(rows, size)")
    flat = take(table, reshape(_tensor(indices, "embedding: indices"), (-1,)), axis=0)
    return reshape(flat, (*indices.shape, table.shape[1]))
