"""Attention on a host device, with the accumulation type of the GPU."""

import numpy as np

from gputensor._kernels.host.elementwise import cast

__all__ = ["run"]


def _unseen(shape, is_causal, window, length):
    """Return which keys a query does not see; the shape broadcasts to (batch, heads, ...)."""
    queries, keys = shape[-2:]
    columns = np.arange(keys)
    end = np.array(keys) if length is None else np.clip(length, 0, keys)[:, None, None, None]
    end = end.astype(np.int64)
    unseen = columns >= end
    ahead = columns - (np.arange(queries)[:, None] + end - queries)
    if is_causal:
        unseen = unseen | (ahead > 0)
    return unseen | (ahead <= -window) if window else unseen


def run(scale, is_causal, window, soft_cap, _precision, *operands):
    """Write ``softmax(scale * query @ key.T, masked) @ value``; see blas/attention.

    The operands are the result, query, key and value, then mask and length, either of them or None.

    >>> x, y = np.ones((1, 1, 2, 4), np.float32), np.empty((1, 1, 2, 4), np.float32)
    >>> run(0.5, True, 0, 0.0, 0, y, x, x, x, None, None)
    >>> float(y[0, 0, 0, 0])
    1.0
    """
    out, query, key, value, mask, length = operands
    wide = np.dtype(np.float64 if out.dtype == np.float64 else np.float32)
    shared = query.shape[1] // key.shape[1]
    query, key, value = (cast(one, wide) for one in (query, key, value))
    if shared > 1:
        key, value = (np.repeat(one, shared, axis=1) for one in (key, value))
    scores = query @ key.swapaxes(-1, -2)
    if soft_cap:
        scores = wide.type(soft_cap) * np.tanh(scores * wide.type(scale / soft_cap))
    else:
        scores = scores * wide.type(scale)
    if mask is not None:
        scores = (
            np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + cast(mask, wide)
        )
    scores = np.where(_unseen(scores.shape, is_causal, window, length), -np.inf, scores)
    largest = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(largest == -np.inf, 0, largest)).astype(wide)
    if length is not None:  # values past the end may be NaN, and 0 times NaN is NaN
        is_valid = np.arange(value.shape[2])[:, None] < length[:, None, None, None]
        value = np.where(is_valid, value, wide.type(0))
    total = powers.sum(axis=-1, keepdims=True)
    weights = powers / np.where(total == 0, wide.type(1), total)
    out[...] = cast(weights @ value, out.dtype)
