"""Products on a host device: NumPy's BLAS, with the accumulation types of the GPU.

Every function takes NumPy views of device memory and runs when the stream reaches it. float16,
bfloat16 and the fp8 types are multiplied as float32 and rounded once at the end; int8 and int16 are
multiplied as float64, which is exact because no partial sum reaches 2**53, and wider integers with
NumPy's integer loops, which wrap as the GPU's do. The views may have any strides; NumPy copies
those that its BLAS does not take.
"""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.loops import HostLoop, converted

__all__ = ["ACTIVATIONS", "plain_product", "product", "scaled_product"]

# dtype -> the dtype in which it is multiplied. One that is not listed is multiplied as is.
_NARROW = {
    "float32": ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    "float64": ("int8", "uint8", "int16", "uint16"),
}
COMPUTE = {
    row.numpy: np.dtype(wide)
    for wide, names in _NARROW.items()
    for row in DTYPES
    if row.name in names
}

#: Elements along each axis that share a scale of a block.
SCALE_BLOCK = 128


def _compute_dtype(a, out):
    """Return the type to multiply in; integers use a float type only if its sums are exact."""
    dtype = COMPUTE.get(a.dtype, a.dtype)
    if a.dtype.kind in "iu" and dtype.kind == "f":
        bits = 8 * a.dtype.itemsize
        if a.shape[-1].bit_length() + 2 * bits > 52:
            return out.dtype
    return dtype


ACTIVATIONS = {None: None, "relu": HostLoop("relu")}
ACTIVATIONS |= {name: HostLoop(name) for name in ("gelu_tanh", "gelu", "silu")}


def _cast_into(out, value):
    """Write `value` into `out`; integers wrap and floats round to nearest even."""
    if out.dtype.kind in "iu" and value.dtype.kind == "f":
        value = value.astype(np.int64)
    out[...] = value if value.dtype == out.dtype else converted(value, out.dtype)


def _times(scale, value):
    """Scale without promoting; a scale of 1 returns the value itself."""
    if scale == 1:
        return value
    if value.dtype.kind in "iu":
        with np.errstate(over="ignore"):
            return value * np.int64(scale).astype(value.dtype)
    if value.dtype.kind != "c":
        scale = scale.real
    return value * value.dtype.type(scale)


def product(alpha, beta, activation, *rest):
    """Write ``activation(alpha * scale * (a @ b) + beta * addend + bias) + residual`` into `out`.

    Parameters
    ----------
    alpha, beta : complex or int
        Factors; for integer operands, 64-bit integers. With `beta` 0 the addend is not read. A sum
        without terms is not multiplied by `alpha` or `scale`.
    activation : str or None
    *rest
        As in the row of the call: two flags that conjugate `a` and `b`; the precision flags, all of
        which NumPy's sums satisfy; the arrays. An absent addend is `out` itself; scale and residual
        have the shape of `out`.
    """
    conj_a, conj_b, _precision, out, a, b, addend, bias, scale, residual = rest
    is_plain = alpha == 1 and beta == 0 and not (conj_a or conj_b)
    is_plain = is_plain and bias is None and activation is None and residual is None
    if is_plain and scale is None and a.dtype is b.dtype is out.dtype and a.dtype.char in "fdFD":
        # With another order of `out`, NumPy's sums may have other bits.
        if out.flags.c_contiguous:
            if a.shape[-1] == 1 and a.ndim > 1 and b.ndim > 1 and a.dtype.char in "fd":
                # A sum of one product: BLAS takes five times as long. It has no -0.
                np.add(np.multiply(a, b, out=out), 0, out=out)
            else:
                np.matmul(a, b, out=out)
            return
    compute = _compute_dtype(a, out)
    left, right = (x if x.dtype == compute else converted(x, compute) for x in (a, b))
    if conj_a:
        left = left.conj()
    if conj_b:
        right = right.conj()
    value = np.asarray(np.matmul(left, right))
    if out.dtype.kind in "iu":
        value = value.astype(np.int64 if value.dtype.kind == "f" else value.dtype, copy=False)
    if a.shape[-1] == 0:
        alpha, scale = 1, None
    value = np.asarray(_times(alpha, value))
    if scale is not None:
        value = value * scale.astype(value.dtype)
    if beta != 0:
        source = out if addend is None else addend
        value = value + _times(beta, source.astype(value.dtype))
    if bias is not None:
        value = value + bias.astype(value.dtype)
    if activation is not None:
        value = ACTIVATIONS[activation](value)
    if residual is not None:
        value = value + residual.astype(value.dtype)
    _cast_into(out, np.asarray(value))


def plain_product(out, a, b, bias=None, activation=None):
    """Write ``activation(a @ b + bias)`` into `out`."""
    product(1, 0, activation, False, False, 0, out, a, b, None, bias, None, None)


def scaled_product(activation, _is_fast, _precision, out, a, b, *rest):
    """Write ``activation((a * scale_a) @ (b * scale_b) + bias) * scale_result`` into `out`.

    Parameters
    ----------
    activation : str or None
    _is_fast : bool
        Whether partial sums may lose bits; here they never do.
    _precision : int
        As in `product`.
    out, a, b : numpy.ndarray
        Matrices; `a` and `b` of fp8 types.
    *rest : numpy.ndarray or None
        The scales of `a`, `b` and the result, and the bias. The first two are matrices with, along
        each axis, one number, one for each element, or one for each block of 128 elements; the
        scale of the result broadcasts to its shape.
    """
    scale_a, scale_b, scale_result, bias = rest
    value = np.empty(out.shape, np.float32)
    plain_product(value, _dequantized(a, scale_a), _dequantized(b, scale_b), bias, activation)
    if scale_result is not None:
        value *= scale_result
    _cast_into(out, value)


def _dequantized(matrix, scale):
    """Return the values of an fp8 matrix in float32, times its scales."""
    value = matrix.astype(np.float32)
    if scale is None:
        return value
    for axis, (have, want) in enumerate(zip(scale.shape, matrix.shape, strict=True)):
        if have not in (1, want):
            scale = np.repeat(scale, SCALE_BLOCK, axis=axis).take(range(want), axis=axis)
    return value * scale
