"""ONNX operators that select elements by position, write to positions, or find positions."""

import math
from itertools import pairwise

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import Missing, is_known, namespace, number, tensor
from gputensor.importers.public_functions import gt

__all__ = ["best_boxes"]


def _on(x, indices):
    """Return both as tensors on one device; negative indices are kept."""
    device = x.device if not is_known(x) else getattr(indices, "device", None)
    return tensor(x, device), tensor(indices, device)


@operator("Gather", folds=True)
def gather(x, indices, *, axis):
    if namespace(x, indices) is np:
        return np.asarray(np.take(x, indices, axis))
    if is_known(indices) and indices.size == 1 and not is_known(x):
        key = [slice(None)] * x.ndim
        place = number(indices)
        key[axis] = place if indices.ndim == 0 else slice(place, place + 1 or None)
        found = x[tuple(key)]
        if indices.ndim < 2:
            return found
    x, indices = _on(x, indices)
    return gt.take(x, _wrapped(indices, x.shape[axis]), axis)


def _wrapped(indices, extent):
    """Return the indices with negative ones counted from the end."""
    return gt.where(gt.less(indices, 0), indices + extent, indices)


@operator("GatherElements")
def gather_elements(x, indices, *, axis):
    return gt.gather(x, axis % x.ndim, _wrapped(indices, x.shape[axis]))


@operator("GatherND")
def gather_nd(x, indices, *, batch_dims=0):
    return x[_places(x, indices, batch_dims)]


def _places(x, indices, batch_dims=0):
    """Return the index tensors, one for each axis, for rows of positions."""
    count = indices.shape[-1]
    key = []
    for i in range(batch_dims):
        places = np.arange(x.shape[i]).reshape(
            [-1 if j == i else 1 for j in range(indices.ndim - 1)]
        )
        key.append(gt.asarray(places, device=x.device))
    for i in range(count):
        key.append(_wrapped(indices[..., i], x.shape[batch_dims + i]))
    return tuple(key)


_COMBINED = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("Scatter ScatterElements")
def scatter_elements(x, indices, updates, *, axis, reduction="none"):
    axis, indices = axis % x.ndim, _wrapped(indices, x.shape[axis])
    if reduction == "none":
        return gt.scatter(x, axis, indices, updates)
    return gt.scatter_reduce(x, axis, indices, updates, _COMBINED[reduction])


@operator("ScatterND")
def scatter_nd(x, indices, updates, *, reduction="none"):
    key = _places(x, indices)
    if reduction != "none":
        return _combined(x, key, indices.shape[:-1], updates, reduction)
    result = gt.copy(x)
    result[key] = updates
    return result


def _combined(x, key, shape, updates, reduction):
    """Combine updates, whose positions may repeat, into the rows of x that `key` selects."""
    count, rest = len(key), x.shape[len(key) :]
    flat = 0
    for extent, one in zip(x.shape, key, strict=False):
        flat = flat * extent + one
    rows = gt.reshape(x, (math.prod(x.shape[:count]), math.prod(rest)))
    updates = gt.reshape(updates, (math.prod(shape), math.prod(rest)))
    flat = gt.broadcast_to(gt.reshape(flat, (-1, 1)), updates.shape)
    return gt.reshape(gt.scatter_reduce(rows, 0, flat, updates, _COMBINED[reduction]), x.shape)


@operator("OneHot", known=(1,))
def one_hot(indices, depth, values, *, axis):
    count = int(number(depth))
    axis = axis if axis >= 0 else axis + indices.ndim + 1
    places = gt.arange(count, dtype="int64", device=indices.device)
    places = gt.reshape(places, [-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    places_of = gt.expand_dims(_wrapped(indices.astype("int64"), count), axis)
    return gt.where(gt.equal(places, places_of), values[1], values[0])


@operator("NonZero", folds=True)
def non_zero(x):
    if is_known(x):
        return np.stack(np.nonzero(x)).astype(np.int64)
    found = gt.nonzero(x)
    return gt.stack(found, 0)


@operator("Compress")
def compress(x, condition, *, axis):
    if axis is None:
        x, axis = gt.reshape(x, -1), 0
    key = [slice(None)] * x.ndim
    key[axis] = slice(condition.shape[0])
    return gt.compress(condition, x[tuple(key)], axis)


@operator("Unique", known=(0,))
def unique(x, *, axis, sorted):
    flat = x.reshape(-1) if axis is None else x
    values, first, inverse, counts = np.unique(
        flat, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first, kind="stable")
        places = np.argsort(order, kind="stable")
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], places[inverse]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(x, indices):
    found = gt.take(x, gt.reshape(indices, -1), -1)
    return gt.reshape(found, (1, -1)) if x.ndim == 1 else found


@operator("TensorScatter")
def tensor_scatter(past, update, places=None, *, axis=-2, mode="linear"):
    axis, result = axis % past.ndim, gt.copy(past)
    length = update.shape[axis]
    starts = gt.zeros((past.shape[0],), dtype="int64", device=past.device)
    starts = starts if places is None else places
    steps = gt.arange(length, dtype="int64", device=past.device)
    at = gt.reshape(starts, (-1, 1)) + steps
    if mode == "circular":
        at = gt.remainder(at, past.shape[axis])
    rows = gt.reshape(gt.arange(past.shape[0], device=past.device), (-1, 1))
    moved = gt.moveaxis(result, axis, 1)
    moved[rows, at] = gt.moveaxis(update, axis, 1)
    return result


@operator("NonMaxSuppression", known=(-1,))
def non_max_suppression(
    boxes, scores, most=None, most_overlap=None, least_score=None, *, center_point_box
):
    most = 0 if most is None else int(number(most))
    most_overlap = 0.0 if most_overlap is None else number(most_overlap)
    least = -np.inf if least_score is None else number(least_score)
    found = []
    for batch in range(scores.shape[0]):
        corners = _corners(boxes[batch], center_point_box)
        for kind in range(scores.shape[1]):
            chosen = best_boxes(corners, scores[batch, kind], most_overlap, least)[:most]
            found += [[batch, kind, i] for i in chosen]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes, is_centred):
    if is_centred:
        x, y, w, h = boxes.T
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], -1)


def best_boxes(corners, scores, most_overlap, least=-np.inf):
    """Return the indices of boxes, the best first, none of which overlaps a better one too much.

    `corners` are (low, low, high, high) for each box; the overlap is the common area by that of
    both.
    """
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > least]
    low, high = corners[:, :2].astype(np.float64), corners[:, 2:].astype(np.float64)
    areas, chosen = (high - low).prod(-1), []
    while order.size:
        best, order = int(order[0]), order[1:]
        chosen.append(best)
        sides = np.minimum(high[order], high[best]) - np.maximum(low[order], low[best])
        common = np.maximum(sides, 0).prod(-1)
        total = areas[order] + areas[best] - common
        order = order[common <= most_overlap * total]
    return chosen


@operator("TfIdfVectorizer", 9)
def tf_idf_vectorizer(
    x, *, max_gram_length, max_skip_count, min_gram_length, mode, ngram_counts, ngram_indexes,
    pool_int64s=(), pool_strings=(), weights=None,
):  # fmt: skip
    """Count n-grams of integers. An n-gram of a pool may leave out the same number of items between
    any two of its items, up to `max_skip_count`; single items are counted once.
    """
    if pool_strings:
        raise argument_error(Missing, "TfIdfVectorizer", Described("strings"), "pool_int64s")
    rows = gt.reshape(x, (-1, x.shape[-1]))
    found = []
    for size, (first, last) in enumerate(pairwise([*ngram_counts, len(pool_int64s)]), 1):
        pool = np.array(pool_int64s[first:last], np.int64).reshape(-1, size)
        total = gt.zeros((rows.shape[0], len(pool)), dtype="int64", device=x.device)
        if len(pool) and min_gram_length <= size <= max_gram_length:
            for step in range(1, 2 + (max_skip_count if size > 1 else 0)):
                total = total + _matches(rows, gt.asarray(pool, device=x.device), step)
        found.append(total.astype("float32"))
    grams = gt.concat(found, 1)
    factors = gt.asarray(np.float32(weights or np.ones(grams.shape[1])), device=x.device)
    if mode == "IDF":
        grams = gt.where(grams > 0, factors, 0)
    elif mode == "TFIDF":
        grams = grams * factors
    order = np.full(max(ngram_indexes) + 1, grams.shape[1])  # without an n-gram: the added 0
    order[ngram_indexes] = np.arange(grams.shape[1])
    y = gt.take(gt.pad(grams, ((0, 0), (0, 1))), gt.asarray(order, device=x.device), 1)
    return y if x.ndim == 2 else gt.reshape(y, (-1,))


def _matches(rows, pool, step):
    """Return how often each n-gram (n-grams, items) occurs with this distance of its items."""
    size = pool.shape[1]
    windows, found = rows.shape[1] - (size - 1) * step, None
    if windows <= 0:
        return 0
    for i in range(size):
        items = gt.expand_dims(rows[:, i * step : i * step + windows], 2)
        equal = items == pool[:, i]
        found = equal if found is None else gt.logical_and(found, equal)
    return gt.sum(found, axis=1, dtype="int64")
