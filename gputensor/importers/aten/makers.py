"""ATen operators that make new tensors."""

import numpy as np

from gputensor.importers.aten.table import aten, dtype_of
from gputensor.importers.public_functions import gt

__all__ = []


def _made(function, shape, dtype, device):
    return function(tuple(shape), dtype=dtype_of(dtype or "float32"), device=device)


@aten("arange", makes=True)
def arange(*numbers, dtype=None, device=None, **_rest):
    kind = "float32" if any(isinstance(one, float) for one in numbers) else "int64"
    return gt.arange(*numbers, dtype=kind if dtype is None else dtype_of(dtype), device=device)


@aten("linspace", makes=True)
def linspace(start, end, steps, *, dtype=None, device=None, **_rest):
    return gt.linspace(start, end, steps, dtype=dtype_of(dtype or "float32"), device=device)


@aten("logspace", makes=True)
def logspace(start, end, steps, base=10.0, *, dtype=None, device=None, **_rest):
    kind = dtype_of(dtype or "float32")
    return gt.logspace(start, end, steps, base=base, dtype=kind, device=device)


@aten("eye", makes=True)
def eye(rows, columns=None, *, dtype=None, device=None, **_rest):
    return gt.eye(rows, columns, dtype=dtype_of(dtype or "float32"), device=device)


@aten("tril_indices", makes=True)
def tril_indices(rows, columns, offset=0, *, dtype=None, device=None, **_rest):
    found = np.stack(np.tril_indices(rows, offset, columns))
    return gt.asarray(found.astype(dtype_of(dtype or "int64")), device=device)


@aten("triu_indices", makes=True)
def triu_indices(rows, columns, offset=0, *, dtype=None, device=None, **_rest):
    found = np.stack(np.triu_indices(rows, offset, columns))
    return gt.asarray(found.astype(dtype_of(dtype or "int64")), device=device)


def _window(name):
    def make(length, periodic=True, *, dtype=None, device=None, **_rest):
        kind = dtype_of(dtype or "float32")
        return getattr(gt, name)(length, periodic, dtype=kind, device=device)

    return make


for _name in ("bartlett_window", "blackman_window", "hamming_window", "hann_window"):
    aten(_name, makes=True)(_window(_name))


@aten("full", makes=True)
def full(shape, value, *, dtype=None, device=None, **_rest):
    default = {bool: "bool", int: "int64"}.get(type(value), "float32")
    return gt.full(tuple(shape), value, dtype_of(dtype or default), device=device)


@aten("scalar_tensor", makes=True)
def scalar_tensor(value, *, dtype=None, device=None, **_rest):
    return gt.full((), value, dtype_of(dtype or "float32"), device=device)


@aten("zeros empty empty_permuted empty_strided", makes=True)
def zeros(shape, *_layout, dtype=None, device=None, **_rest):
    return _made(gt.zeros, shape, dtype, device)


@aten("ones", makes=True)
def ones(shape, *, dtype=None, device=None, **_rest):
    return _made(gt.ones, shape, dtype, device)


def _like(x, value, shape, dtype):
    kind = x.dtype if dtype is None else dtype_of(dtype)
    return gt.full(tuple(shape), value, kind, device=x.device)


@aten("full_like")
def full_like(x, value, *, dtype=None, **_rest):
    return _like(x, value, x.shape, dtype)


@aten("zeros_like empty_like")
def zeros_like(x, *, dtype=None, **_rest):
    return _like(x, 0, x.shape, dtype)


@aten("ones_like")
def ones_like(x, *, dtype=None, **_rest):
    return _like(x, 1, x.shape, dtype)


@aten("new_full")
def new_full(x, shape, value, *, dtype=None, **_rest):
    return _like(x, value, shape, dtype)


@aten("new_zeros new_empty new_empty_strided")
def new_zeros(x, shape, *_layout, dtype=None, **_rest):
    return _like(x, 0, shape, dtype)


@aten("new_ones")
def new_ones(x, shape, *, dtype=None, **_rest):
    return _like(x, 1, shape, dtype)


# ---- random numbers


def _drawn(function, shape, dtype, device):
    return function(size=tuple(shape), dtype=dtype_of(dtype or "float32"), device=device)


@aten("rand", makes=True)
def rand(shape, *, dtype=None, device=None, **_rest):
    return _drawn(gt.random.uniform, shape, dtype, device)


@aten("randn", makes=True)
def randn(shape, *, dtype=None, device=None, **_rest):
    return _drawn(gt.random.normal, shape, dtype, device)


@aten("rand_like")
def rand_like(x, *, dtype=None, **_rest):
    return _drawn(gt.random.uniform, x.shape, dtype or x.dtype, x.device)


@aten("randn_like")
def randn_like(x, *, dtype=None, **_rest):
    return _drawn(gt.random.normal, x.shape, dtype or x.dtype, x.device)


@aten("randint", makes=True)
def randint(*ends, dtype=None, device=None, **_rest):
    """The ends are (high, shape) or (low, high, shape)."""
    *ends, shape = ends
    found = gt.random.integers(*ends, size=tuple(shape), device=device)
    return found.astype(dtype_of(dtype or "int64"), copy=False)
