"""Arguments of special functions: tensors of float64 to compute with, and the result's dtype."""

import numpy as np

from gputensor._arrays.dtypes import float32, float64
from gputensor._arrays.promotion import result_type
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import full
from gputensor.tensor.numerics.gammas import computed

__all__ = ["NUMBERS", "both", "rounded", "several", "wide"]

NUMBERS = (int, float, np.generic)


def wide(x, name):
    """Return x in float64, and the dtype of the result."""
    x, dtype = computed(x, name)
    return astype(x, float64, copy=False), dtype


def both(x, y, name):
    """Return both in float64, and the dtype of the result: that of their sum."""
    if isinstance(x, NUMBERS) and isinstance(y, NUMBERS):
        tensor_argument(x, name)
    (x, first), (y, second) = (
        (float(one), one) if isinstance(one, NUMBERS) else wide(one, name) for one in (x, y)
    )
    dtype = result_type(first, second)
    return x, y, float32 if dtype.kind in "biu" else dtype


def several(name, *values):
    """Return the values as tensors of float64, and the dtype of the result: that of their sum."""
    device = next((one.device for one in values if isinstance(one, Tensor)), None)
    if device is None:
        tensor_argument(values[0], name)
    found, kinds = [], []
    for one in values:
        is_number = isinstance(one, NUMBERS)
        x, dtype = (
            (full((), float(one), float64, device=device), one) if is_number else (wide(one, name))
        )
        found.append(x)
        kinds.append(dtype)
    dtype = result_type(*kinds)
    return *found, float32 if dtype.kind in "biu" else dtype


def rounded(x, dtype):
    """Return a result in its dtype."""
    return astype(x, dtype, copy=False)
