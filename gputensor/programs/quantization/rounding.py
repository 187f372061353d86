"""Rounds weights to integers such that results for observed inputs lose little.

Source: Frantar and others, GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers, 2022. Terms are rounded one after another. The terms that are not rounded yet are
adjusted to compensate for the error of each rounding, as far as the inputs are correlated; the
amount follows from the inverse of the matrix of the inputs' products.
"""

import numpy as np

from gputensor.blas.host.group_scales import Groups, best_scales

__all__ = ["lost_on_inputs", "rounded_on_inputs"]

DAMPING = 0.01  # of the mean square, so that a few inputs do not dominate


def rounded_on_inputs(values, products, size, scheme):
    """Return the Groups of a matrix, rounded such that results for inputs lose little.

    Parameters
    ----------
    values : numpy.ndarray
        float32 (n, k), finite.
    products : numpy.ndarray
        float64 (k, k): the sum of ``x[:, None] * x`` over inputs.
    size : int
        The size of a group, a divisor of k.
    scheme : tuple
        The largest integer; the NumPy dtype of scales and offsets; the shares of each group's range
        to try; whether groups have offsets.
    """
    largest, dtype, clipping, has_offsets = scheme
    n, k = values.shape
    factor = _factor(products)
    left = values.astype(np.float32)
    integers = np.empty((n, k), np.int8)
    scales, offsets = (np.empty((k // size, n), dtype) for _ in range(2))
    for group in range(k // size):
        first, last = group * size, (group + 1) * size
        part = left[:, first:last]
        found = best_scales(part[:, None], largest, dtype, clipping, has_offsets)
        scale, offset = (one[:, 0] for one in found)
        scales[group], offsets[group] = scale, offset
        lost = np.empty_like(part)
        scale, offset = scale.astype(np.float32), offset.astype(np.float32)
        for term in range(size):
            at = first + term
            column = part[:, term]
            whole = np.clip(np.rint((column - offset) / scale), -largest - 1, largest)
            integers[:, at] = whole
            lost[:, term] = (column - (whole * scale + offset)) / factor[at, at]
            part[:, term + 1 :] -= np.outer(lost[:, term], factor[at, at + 1 : last])
        left[:, last:] -= lost @ factor[first:last, last:]
    return Groups(integers, scales, offsets if has_offsets else None)


def lost_on_inputs(plain, found, products):
    """Return the relative error of the results for the inputs of `products`."""
    lost, whole = found.astype(np.float64) - plain, plain.astype(np.float64)
    squares = [float(np.einsum("nk,nk->", one @ products, one)) for one in (lost, whole)]
    return float(np.sqrt(max(squares[0], 0) / squares[1])) if squares[1] > 0 else 0.0


def _factor(products):
    """Return the upper triangular F such that F.T @ F inverts the damped products, in float32."""
    squares = np.diag(products).copy()
    mean = squares.mean()
    damped = products + np.eye(len(products)) * (DAMPING * mean if mean > 0 else 1)
    return np.linalg.cholesky(np.linalg.inv(damped)).T.astype(np.float32)
