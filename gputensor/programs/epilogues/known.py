"""Vectors that depend only on weights, computed by NumPy, and weights that are made from them."""

from __future__ import annotations

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.programs.function import Operand, Weight
from gputensor.programs.weights import host_bytes

__all__ = ["Known", "PreparedWeights"]

MOST_NBYTES = 1 << 18  # of a vector
_NUMPY = {row.name: row.numpy for row in DTYPES}
_STEPS = {
    "copy": lambda x: x, "neg": np.negative, "negative": np.negative, "square": np.square,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": np.reciprocal,
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
}  # fmt: skip


class Known:
    """Values of a function that depend only on weights, in float32; None for all others.

    `values` are those of the graph, followed by those that a pass has added since.
    """

    def __init__(self, graph, values):
        self.graph, self.values, self.found = graph, values, {}

    def vector(self, operand, axis):
        """Return the elements of an operand along an axis, or None if they are not known."""
        size = _NUMPY[operand.dtype].itemsize
        extent, step = operand.shape[axis], operand.strides[axis]
        elements = self.elements(operand.value)
        whole = (extent, step, operand.offset)
        if elements is None or any(type(one) is not int for one in whole) or step < 1:
            return None
        if self.dtype_of(operand.value) != operand.dtype:
            return None
        first = operand.offset // size
        found = elements[first : first + extent * step : step]
        return found if len(found) == extent else None

    def dtype_of(self, number):
        value = self.values[number]
        if value.kind in ("weight", "constant"):
            return self.graph.weights[value.name].dtype
        return self.graph.calls[self.graph.writer[number]].writes[0].dtype

    def elements(self, number):
        """Return all elements of a value as a flat array, or None."""
        if number not in self.found:
            self.found[number] = None
            self.found[number] = self.computed(number)
        return self.found[number]

    def computed(self, number):
        value = self.values[number]
        if type(value.nbytes) is not int or value.nbytes > MOST_NBYTES:
            return None
        if value.kind in ("weight", "constant"):
            return array_of(self.graph.weights[value.name]).astype(np.float32).reshape(-1)
        if value.kind != "temporary" or number not in self.graph.writer:
            return None
        call = self.graph.calls[self.graph.writer[number]]
        written = call.writes[0]
        if call.name != "elementwise" or self.graph.maker(written) is not call:
            return None
        step = _STEPS.get(call.attributes["op"])
        reads = [self.read(one) for one in call.reads]
        if step is None or written.dtype not in _NUMPY or any(one is None for one in reads):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(step(*reads), np.float32).reshape(-1)

    def read(self, operand):
        """Return the array or number that a call reads, or None."""
        if not isinstance(operand, Operand):
            return np.float32(operand.value) if type(operand.value) in (int, float) else None
        elements = self.elements(operand.value)
        integers = (*operand.shape, *operand.strides, operand.offset)
        if elements is None or any(type(one) is not int for one in integers):
            return None
        if self.dtype_of(operand.value) != operand.dtype:
            return None
        first = operand.offset // _NUMPY[operand.dtype].itemsize
        strides = [4 * step for step in operand.strides]
        return np.ndarray(operand.shape, np.float32, elements, 4 * first, strides)


class PreparedWeights:
    """Weights that replace other weights of a program, one for each content.

    Parameters
    ----------
    weights : dict
        The weights of the program by name; new ones are added.
    """

    def __init__(self, weights):
        self.weights, self.names = weights, {}

    def made(self, name, suffix, key, make):
        """Return the Weight `NAME.SUFFIX`, `make` of the array of `name`; one for each key."""
        key = (name, suffix, key)
        if key not in self.names:
            array = np.ascontiguousarray(make(array_of(self.weights[name])))
            count, new = 0, f"{name}.{suffix}"
            while new in self.weights:
                count += 1
                new = f"{name}.{suffix}{count}"
            dtype = self.weights[name].dtype
            self.weights[new] = Weight(new, dtype, array.shape, array)
            self.names[key] = new
        return self.weights[self.names[key]]


def array_of(weight):
    return host_bytes(weight).view(_NUMPY[weight.dtype]).reshape(weight.shape)
