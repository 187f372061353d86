"""Attention, rotary positions, embeddings: products and row formulas put together.

Scores are one product, softmax with scale and mask one kernel, the weighted sum another product;
heads that share keys are stacked, so that grouped queries copy no keys.
"""

import math

from gputensor._arrays.dtypes import bfloat16 as bfloat16_
from gputensor._arrays.dtypes import float16, float32
from gputensor._arrays.element_types import CODE_OF, DTYPES
from gputensor.errors import argument_error
from gputensor.nn import attention_weights
from gputensor.tensor import functions
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import arange, empty, reshape, take
from gputensor.tensor.products import matmul

__all__ = ["embedding", "rotary", "scaled_dot_product_attention"]

_HALVES = (float16, bfloat16_)


def _tensor(value, name):
    if not isinstance(value, Tensor):
        raise argument_error(TypeError, name, value, "a Tensor")
    return value


def _kind(tensor):
    return DTYPES[CODE_OF[tensor.dtype]].kind


def _check_shapes(query, key, value):
    name = "scaled_dot_product_attention"
    for title, one in (("query", query), ("key", key), ("value", value)):
        _tensor(one, f"{name}: {title}")
        if one.ndim < 2:
            raise argument_error(
                ValueError, f"{name}: shape of {title}", one.shape, "two axes or more"
            )
        if _kind(one) != "float" or one.dtype != query.dtype:
            raise argument_error(
                ValueError, f"{name}: dtype of {title}", DTYPES[CODE_OF[one.dtype]].name,
                "one floating-point dtype for query, key and value",
            )  # fmt: skip
    if key.shape[-1] != query.shape[-1]:
        raise argument_error(
            ValueError, f"{name}: head size of key", key.shape[-1], query.shape[-1]
        )
    if value.shape[:-1] != key.shape[:-1]:
        raise argument_error(ValueError, f"{name}: shape of value", value.shape,
                             f"{key.shape[:-1]} and a head size")  # fmt: skip
    if query.ndim != key.ndim or query.shape[:-3] != key.shape[:-3]:
        raise argument_error(ValueError, f"{name}: shape of key", key.shape,
                             f"the batch axes of query, {query.shape[:-3]}")  # fmt: skip
    heads, kept = (one.shape[-3] if one.ndim > 2 else 1 for one in (query, key))
    if heads != kept and (kept == 0 or heads % kept):
        raise argument_error(ValueError, f"{name}: heads of key", kept, f"a divisor of {heads}")
    return heads // kept if kept else 1


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, window=None, soft_cap=None,
    kv_length=None,
):  # fmt: skip
    """Return softmax(scale * query @ key.T, masked) @ value.

    Parameters
    ----------
    query : Tensor
        Of shape (..., heads, queries, size).
    key, value : Tensor
        Of shape (..., kept heads, keys, size); kept heads divide the heads, and each serves as
        many of them that follow each other. The size of value may differ.
    attn_mask : Tensor, optional
        Broadcasts to (..., heads, queries, keys). Of bool: True takes part. Of floats: added to
        the scores. A query that sees no key gives 0.
    is_causal : bool
        A query sees the keys up to its own; the last query is at the last key.
    scale : float, optional
        1 / sqrt(size) when not given.
    window : int, optional
        A query sees this many keys, its own the last one; implies `is_causal`.
    soft_cap : float, optional
        Scores s become soft_cap * tanh(s / soft_cap) before the mask.
    kv_length : Tensor, optional
        How many keys there are, read on the device when the work runs; an integer, or one for each
        element of the batch axis. Keys beyond are not seen.

    >>> x = gt.ones((1, 2, 4), device="host")
    >>> scaled_dot_product_attention(x, x, x, is_causal=True).numpy()[0, 0]
    array([1., 1., 1., 1.], dtype=float32)
    """
    name = "scaled_dot_product_attention"
    shared = _check_shapes(query, key, value)
    keys, size = key.shape[-2], query.shape[-1]
    if window is not None and (not isinstance(window, int) or window < 1):
        raise argument_error(ValueError, f"{name}: window", window, "an integer above 0")
    if soft_cap is not None and not soft_cap > 0:
        raise argument_error(ValueError, f"{name}: soft_cap", soft_cap, "a number above 0")
    scale = 1 / math.sqrt(size) if scale is None else float(scale)
    if keys == 0 or size == 0:
        return empty((*query.shape[:-1], value.shape[-1]), dtype=query.dtype,
                     device=query.device) * 0  # fmt: skip
    # Scores of 16-bit floats are float32, which no product of theirs leaves.
    wide = float32 if query.dtype in _HALVES else None
    scores = _products(query, key.mT, shared, wide)
    weights = attention_weights(
        scores, attn_mask, kv_length, query.dtype,
        (scale, is_causal or window is not None, window, soft_cap),
    )  # fmt: skip
    return _products(weights, value, shared)


def _products(a, b, shared, out_dtype=None):
    """a @ b, where `shared` heads of a that follow each other go with one of b."""
    if shared == 1:
        return matmul(a, b, out_dtype=out_dtype)
    stacked = reshape(a, (*a.shape[:-3], b.shape[-3], shared * a.shape[-2], a.shape[-1]))
    return reshape(matmul(stacked, b, out_dtype=out_dtype), (*a.shape[:-1], b.shape[-1]))


def rotary(x, positions, *, base=10000.0, interleaved=False):
    """Return x with each pair of elements of the last axis turned by its position's angle.

    Pair j of position t is turned by t * base**(-2 j / size). Sources: Su and others, RoFormer,
    2021, equation 34; the pairs are (j, j + size / 2) as in Llama's published weights, or
    (2 j, 2 j + 1) when `interleaved`.

    Parameters
    ----------
    x : Tensor
        Of shape (..., positions, size); size is even.
    positions : Tensor
        Integers; one for each element of the axis before the last.
    base : float
    interleaved : bool

    >>> x = gt.ones((1, 2), device="host")
    >>> rotary(x, gt.zeros(1, dtype=gt.int64, device="host")).numpy()
    array([[1., 1.]], dtype=float32)
    """
    _tensor(x, "rotary: x")
    _tensor(positions, "rotary: positions")
    if x.ndim < 2 or x.shape[-1] % 2:
        raise argument_error(ValueError, "rotary: shape of x", x.shape, "an even last extent")
    if positions.shape not in ((), (1,), x.shape[-2:-1]):
        raise argument_error(ValueError, "rotary: shape of positions", positions.shape,
                             f"{x.shape[-2:-1]}, one for each position of x")  # fmt: skip
    half = x.shape[-1] // 2
    powers = arange(half, dtype=float32, device=x.device) * (-math.log(base) / half)
    angles = reshape(astype(positions, float32), (-1, 1)) * functions.exp(powers)
    cosine, sine = functions.cos(angles), functions.sin(angles)
    even = (..., slice(None, None, 2)) if interleaved else (..., slice(None, half))
    odd = (..., slice(1, None, 2)) if interleaved else (..., slice(half, None))
    result = empty(x.shape, dtype=x.dtype, device=x.device)
    result[even] = astype(x[even] * cosine - x[odd] * sine, x.dtype)
    result[odd] = astype(x[odd] * cosine + x[even] * sine, x.dtype)
    return result


def embedding(indices, table):
    """Return the rows of a table: ``table[indices]``.

    Parameters
    ----------
    indices : Tensor
        Of an integer dtype.
    table : Tensor
        Of shape (rows, size).

    >>> embedding(gt.asarray([1], device="host"), gt.asarray([[1.0], [2.0]], device="host")).numpy()
    array([[2.]], dtype=float32)
    """
    _tensor(table, "embedding: table")
    if table.ndim != 2:
        raise argument_error(ValueError, "embedding: shape of table", table.shape, "(rows, size)")
    flat = take(table, reshape(_tensor(indices, "embedding: indices"), (-1,)), axis=0)
    return reshape(flat, (*indices.shape, table.shape[1]))
