"""Grouped products with row offsets on a host device: one NumPy product for each group.

Like the GPU's kernel, it reads the offsets when the stream reaches it, and clamps them.
"""

from gputensor.blas.host.gemm import plain_product

__all__ = ["offset_products"]


def offset_products(out, a, b, offsets):
    """Multiply rows ``offsets[g - 1]`` to ``offsets[g]`` of `a` by ``b[g]``; other rows become 0.

    Parameters
    ----------
    out, a, b, offsets : numpy.ndarray
        The shapes are (tokens, n), (tokens, k), (groups, k, n) and (groups,).
    """
    end = 0
    for matrix, offset in zip(b, offsets.tolist(), strict=True):
        start, end = end, min(max(offset, end), len(a))
        if end > start:
            plain_product(out[start:end], a[start:end], matrix)
    out[end:] = 0
