"""ONNX operators that draw random numbers, from `gt.random`.

A node with a seed draws the same numbers in each run; one without continues the device's generator.
"""

import math

import numpy as np

from gputensor.importers.onnx_registry import EXPANDED, operator
from gputensor.importers.onnx_values import number, numpy_dtype
from gputensor.importers.public_functions import gt

__all__ = ["generator_of"]

EXPANDED.add(("", "Bernoulli"))


@operator("Dropout", 12, known=(1, 2))
def dropout(x, ratio=None, training=None, *, seed, context):
    share = 0.5 if ratio is None else number(ratio)
    if training is None or not number(training) or share == 0:
        return (x, gt.ones(x.shape, dtype="bool", device=x.device))[: context.n_outputs]
    where = generator_of(seed, x.device), x.device
    kept = _drawn(gt.random.uniform, (0, 1), x.shape, np.dtype("float32"), where) >= share
    y = gt.where(kept, x * (1 / (1 - share)), 0).astype(x.dtype, copy=False)
    return (y, kept)[: context.n_outputs]


def generator_of(seed, device):
    """Return the generator of a node, or None for the device's own."""
    if seed is None:
        return None
    # The standard's seed is a float; both its integral part and its fraction are used.
    fraction, whole = math.modf(abs(float(seed)))
    return gt.random.generator(int(whole) * 2**24 + int(fraction * 2**24), device)


def _floats(dtype):
    return gt.isdtype(dtype, "real floating") and dtype.itemsize >= 2


def _drawn(function, pair, shape, dtype, where):
    """Return random numbers; dtypes that cannot be drawn directly are converted to."""
    generator, device = where
    named = {"device": device} if generator is None else {"generator": generator}
    found = function(*pair, shape, dtype=dtype if _floats(dtype) else None, **named)
    return found.astype(dtype, copy=False)


@operator("RandomUniform")
def random_uniform(*, dtype, high, low, seed, shape, context):
    where = generator_of(seed, context.device), context.device
    return _drawn(gt.random.uniform, (low, high), tuple(shape), numpy_dtype(dtype), where)


@operator("RandomNormal")
def random_normal(*, dtype, mean, scale, seed, shape, context):
    where = generator_of(seed, context.device), context.device
    return _drawn(gt.random.normal, (mean, scale), tuple(shape), numpy_dtype(dtype), where)


@operator("RandomUniformLike")
def random_uniform_like(x, *, dtype, high, low, seed):
    kind = x.dtype if dtype is None else numpy_dtype(dtype)
    where = generator_of(seed, x.device), x.device
    return _drawn(gt.random.uniform, (low, high), x.shape, kind, where)


@operator("RandomNormalLike")
def random_normal_like(x, *, dtype, mean, scale, seed):
    kind = x.dtype if dtype is None else numpy_dtype(dtype)
    where = generator_of(seed, x.device), x.device
    return _drawn(gt.random.normal, (mean, scale), x.shape, kind, where)


@operator("Multinomial")
def multinomial(x, *, dtype, sample_size, seed):
    logits = gt.broadcast_to(gt.expand_dims(x, 1), (x.shape[0], sample_size, x.shape[1]))
    found = gt.random.categorical(generator_of(seed, x.device), logits)
    return found.astype(numpy_dtype(dtype))
