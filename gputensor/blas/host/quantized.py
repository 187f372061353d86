"""Products with quantized weights on a host device: the definition, in NumPy."""

import numpy as np

from gputensor.blas.host import int4_layout

__all__ = ["dequantized", "linear"]


def dequantized(weight, scales, k):
    """Return the weights ``[n, k]`` in float32.

    Parameters
    ----------
    weight : numpy.ndarray
        int8 ``[n, k]``, or packed int4 values as uint8.
    scales : numpy.ndarray
        ``[groups, n]``; each row applies to ``k / groups`` neighbouring k.
    k : int
        Number of terms of a product.
    """
    n = scales.shape[1]
    values = int4_layout.unpack(weight, n, k) if weight.dtype == np.uint8 else weight
    factors = np.repeat(scales.astype(np.float32), k // scales.shape[0], axis=0)
    return values.astype(np.float32) * factors.T


def linear(_precision, out, x, weight, scales, bias):
    """Write ``x @ dequantized(weight).T + bias`` into `out`; sums in float32, rounded once."""
    value = np.matmul(x.astype(np.float32), dequantized(weight, scales, x.shape[-1]).T)
    if bias is not None:
        value = value + bias.astype(np.float32)
    out[...] = value.astype(out.dtype)
