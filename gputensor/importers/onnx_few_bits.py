"""Weights of 4 or 8 bits in ONNX files, brought into the form of `quantized_linear` at import."""

from collections import Counter

import numpy as np

from gputensor.blas.host import int4_layout
from gputensor.importers.onnx_graph import reads

__all__ = ["group_weights", "unpacked"]

_LARGEST_GROUP = 128


def group_weights(graph):
    """Rewrite the products MatMulNBits of a graph whose weights `quantized_linear` can hold.

    Weights, scales and zero points must be initializers that nothing else reads. Instead of zero
    points there are offsets: ``(code - zero) * scale`` is ``(code - centre) * scale + offset``.
    """
    readers = Counter(name for step in graph.steps for name in reads(step))
    readers.update(graph.outputs)
    for step in graph.steps:
        if step.key == ("com.microsoft", "MatMulNBits"):
            _grouped(step, graph.constants, readers)


def _grouped(step, constants, readers):
    _a, b, scales, points, order, bias = (*step.inputs, "", "", "")[:6]
    known = [name for name in (b, scales, points) if name]
    if order or any(name not in constants or readers[name] > 1 for name in known):
        return
    bits, k, n, block = (step.attributes[name] for name in ("bits", "K", "N", "block_size"))
    blocks = -(-k // block)
    fits = blocks == 1 or (k % block == 0 and (block in (32, 64) or block % _LARGEST_GROUP == 0))
    if bits not in (4, 8) or step.attributes["weight_prepacked"] or not fits:
        return
    scale = constants[scales].reshape(n, blocks)
    centre = 1 << (bits - 1)
    codes = unpacked(constants[b].reshape(n, -1), bits)[:, :k]
    codes = (codes.astype(np.int16) - centre).astype(np.int8)
    if points:
        zero = constants[points].reshape(n, -1)
        zero = unpacked(zero, bits)[:, :blocks] if zero.dtype == np.uint8 else zero
        offsets = (centre - zero.astype(np.float32)) * scale.astype(np.float32)
        constants[points] = np.ascontiguousarray(offsets.T.astype(scale.dtype))
        if not offsets.any():
            del constants[points]
            points = ""
    constants[b] = int4_layout.pack(codes) if bits == 4 else codes
    if blocks > 1 and block > _LARGEST_GROUP:
        scale = np.repeat(scale, block // _LARGEST_GROUP, 1)
    constants[scales] = np.ascontiguousarray(scale.T)
    step.inputs = [step.inputs[0], b, scales, points, "", bias]
    step.attributes = {**step.attributes, "is_grouped": True}


def unpacked(codes, bits):
    """Return the numbers of some bits in an array of bytes, the lowest first.

    >>> unpacked(np.array([[0x21, 0x43]], np.uint8), 4)
    array([[1, 2, 3, 4]], dtype=uint8)
    """
    if bits == 8:
        return codes
    parts = [codes >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*codes.shape[:-1], -1)
