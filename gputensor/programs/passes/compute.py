"""Calls of constants and weights, computed while passes run."""

from __future__ import annotations

import functools

import numpy as np

from gputensor._arrays.element_types import dtype_name
from gputensor._kernels.calls import make
from gputensor._kernels.launch import CallOperand
from gputensor.programs.function import Number
from gputensor.streams.queue import stream_handle
from gputensor.tensor.interop import asarray
from gputensor.tensor.manipulation import empty

__all__ = ["compute", "compute_of", "compute_weights"]

#: Element-wise operations with the same bits on every device.
EXACT = ("copy", "add", "sub", "mul", "neg", "negative", "abs", "maximum", "minimum", "where")


def compute_of(target, is_ahead):
    """Return the function that computes calls of constants on a device, as `clean` needs it."""
    return compute_exactly if is_ahead else functools.partial(compute, target)


def compute(target, call, arrays, names=("arange", "elementwise", "gather")):
    """Compute a call of constants on the target; None if its bits could depend on strides."""
    if call.name not in names:
        return None
    tensors, operands = [], []
    for array in arrays:
        if array is None:
            operands.append(None)
            continue
        if isinstance(array, Number):
            operands.append(CallOperand.number(array.dtype, array.value))
            continue
        tensors.append(asarray(np.ascontiguousarray(array).reshape(array.shape), device=target))
        operands.append(operand_of(tensors[-1]))
    made = [empty(operand.shape, dtype=operand.dtype, device=target) for operand in call.writes]
    arguments = (*call.attributes.values(), *map(operand_of, made), *operands)
    make(call.name, target, stream_handle(target), arguments)
    return [tensor.numpy() for tensor in made]


def compute_exactly(call, arrays):
    """The same on the host device, for calls with the same bits on every device; else None."""
    return compute(-1, call, arrays) if call.name in ("arange", "gather") else None


def compute_weights(target, is_ahead, rounding, call, arrays):
    """Compute a call of weights on the target, or on the host device for GPUs not present.

    Returns None if the bits could differ from those of eager execution, and `rounding` is "each".
    """
    device = -1 if is_ahead else target
    if rounding == "once":
        return compute(
            device, call, arrays, ("elementwise", "gather", "reduce", "formula", "product")
        )
    if is_ahead and call.attributes.get("op", "copy") not in EXACT:
        return None
    return compute(device, call, arrays)


def operand_of(tensor):
    return CallOperand(tensor.data_ptr(), dtype_name(tensor.dtype), tensor.shape)
