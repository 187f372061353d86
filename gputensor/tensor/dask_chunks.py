"""Tensors as chunks of Dask arrays: the functions that Dask looks up by a chunk's type.

Everything else goes through ``__array_function__`` and ``__array_ufunc__``. ``import_hooks`` calls
`register` when a program has imported ``dask.array``.
"""

import importlib
import math

import numpy as np

from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import broadcast_to, empty, full, take
from gputensor.tensor.quantiles import percentile
from gputensor.tensor.transfer import numpy

__all__ = ["register"]


def number_of_elements(x, axis=None, keepdims=False, dtype=None, **_):
    """Return the number of elements in each sum over `axis`, in the shape of such sums.

    >>> import gputensor as gt
    >>> number_of_elements(gt.ones((2, 3), device="host"), axis=1).tolist()
    [3.0, 3.0]
    """
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [one % x.ndim for one in axes]
    count = math.prod(x.shape[i] for i in axes)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    one = full((), count, dtype or "float64", device=x.device)
    return broadcast_to(one, shape)


def number_of_numbers(x, **options):
    """Return the number of elements in each sum that are not NaN."""
    options.pop("dtype", None)
    return fn.sum(astype(fn.logical_not(fn.isnan(x)), "float64"), **options)


def quotient(a, b, out=None, dtype=None):
    """Return a / b; one of them may be counts that Dask keeps in arrays on the host."""
    place = next(one.device for one in (a, b) if isinstance(one, Tensor))
    a, b = (asarray(one, device=place) if isinstance(one, np.ndarray) else one for one in (a, b))
    result = fn.divide(a, b)
    return result if dtype is None else astype(result, dtype, copy=False)


def picked(x, indices, axis=None):
    """Return slices of `x` along `axis`; the indices may be an array on the host."""
    return take(x, asarray(indices, device=x.device), axis=axis)


def percentiles(x, q, method="linear"):
    """Return percentiles of a chunk, or None if it has no elements, and its number of elements.

    Dask merges those of all chunks.
    """
    if x.size == 0:
        return None, 0
    return percentile(x, q, method=method), x.size


def register_sizes(module):
    """Register the sizes of tensors: `module` is ``dask.sizeof``."""
    module.sizeof.register(Tensor, lambda x: int(x.nbytes))


def register(module):
    """Register tensors with Dask.

    Parameters
    ----------
    module : module
        ``dask.array.backends``.
    """
    module.numel_lookup.register(Tensor, number_of_elements)
    module.nannumel_lookup.register(Tensor, number_of_numbers)
    module.divide_lookup.register(Tensor, quotient)
    module.take_lookup.register(Tensor, picked)
    module.percentile_lookup.register(Tensor, percentiles)
    module.empty_lookup.register(Tensor, empty)
    module.to_numpy_dispatch.register(Tensor, lambda x, **_: numpy(x))
    register_sizes(importlib.import_module("dask.sizeof"))
