"""Parts of numbers: bits of bytes, fractions and exponents, distances to the next number."""

import math

import numpy as np

from gputensor._arrays.dtypes import finfo, float32, int32, uint8, uint64
from gputensor.errors import Described, argument_error, float_argument, int_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, tensor_argument
from gputensor.tensor.interop import astype, reinterpreted
from gputensor.tensor.manipulation import arange, moveaxis, reshape, zeros
from gputensor.tensor.manipulation.arithmetic import nextafter
from gputensor.tensor.numerics.padding import pad

__all__ = ["frexp", "packbits", "real_if_close", "spacing", "unpackbits"]

# Factors that move bit 8 k of a word to bit 63 - k ("big") or 56 + k.
_GATHERING = {"big": 0x8040201008040201, "little": 0x0102040810204080}


def _check_order(bitorder, name):
    if bitorder not in _GATHERING:
        raise argument_error(ValueError, f"{name}: bitorder", bitorder, "'big' or 'little'")


def _weights(bitorder, device, name):
    _check_order(bitorder, name)
    places = arange(8, dtype=uint8, device=device)
    return fn.subtract(7, places) if bitorder == "big" else places


def _lines(x, axis, name):
    """Return x with `axis` moved to the end, or flattened for None, and the axis number."""
    if axis is None:
        return reshape(x, -1), 0
    axis = axis_argument(axis, x.ndim, name)
    return moveaxis(x, axis, -1), axis


def packbits(x, /, axis=None, bitorder="big"):
    """Return bytes of eight bools each along `axis` (default: flattened), padded with zero bits.

    >>> import gputensor as gt
    >>> packbits(gt.asarray([1, 0, 1], dtype="uint8", device="host")).tolist()
    [160]
    """
    if tensor_argument(x, "packbits").dtype.kind not in "biu":
        got = Described(x.dtype.name)
        raise argument_error(TypeError, "packbits: x", got, "bool or an integer dtype")
    _check_order(bitorder, "packbits")
    lines, axis = _lines(x, axis, "packbits")
    bits = lines if lines.dtype.kind == "b" else fn.not_equal(lines, 0)
    missing = -bits.shape[-1] % 8
    if missing:
        bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    if not bits.size:
        shape = (*bits.shape[:-1], bits.shape[-1] // 8)
        return moveaxis(zeros(shape, uint8, device=x.device), -1, axis)
    # Eight bytes of 0 or 1 are one word; the product gathers them in its highest byte.
    words = reinterpreted(bits.contiguous(), uint64)
    packed = fn.bitwise_right_shift(fn.multiply(words, _GATHERING[bitorder]), 56)
    return moveaxis(astype(packed, uint8), -1, axis)


def unpackbits(x, /, axis=None, count=None, bitorder="big"):
    """Return the bits of bytes along `axis` (default: flattened) as zeros and ones.

    Parameters
    ----------
    x : Tensor
        Of dtype uint8.
    axis : int, optional
    count : int, optional
        How many bits to keep; a negative number omits that many at the end.
    bitorder : {"big", "little"}

    >>> import gputensor as gt
    >>> unpackbits(gt.asarray([160], dtype="uint8", device="host"), count=3).tolist()
    [1, 0, 1]
    """
    if tensor_argument(x, "unpackbits").dtype != uint8:
        raise argument_error(TypeError, "unpackbits: x", Described(x.dtype.name), "uint8")
    weights = _weights(bitorder, x.device, "unpackbits")
    lines, axis = _lines(x, axis, "unpackbits")
    bits = fn.bitwise_and(fn.bitwise_right_shift(reshape(lines, (*lines.shape, 1)), weights), 1)
    bits = reshape(bits, (*lines.shape[:-1], lines.shape[-1] * 8))
    if count is not None:
        count = int_argument("unpackbits: count", count)
        kept = count if count >= 0 else bits.shape[-1] + count
        if kept < 0:
            rule = f"{-bits.shape[-1]} or more"
            raise argument_error(ValueError, "unpackbits: count", count, rule)
        bits = bits[..., :kept]
        if kept > bits.shape[-1]:
            bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, kept - bits.shape[-1])])
    return moveaxis(bits, -1, axis)


@fn.numbers_too
def frexp(x, /):
    """Return fractions of magnitude 0.5 to 1 and int32 exponents: x is fraction * 2**exponent.

    For 0, infinities and NaN the fraction is x itself and the exponent 0.

    >>> import gputensor as gt
    >>> [one.tolist() for one in frexp(gt.asarray([6.0, -0.5], device="host"))]
    [[0.75, -0.5], [3, 0]]
    """
    dtype = tensor_argument(x, "frexp").dtype
    if dtype.kind in "biu":
        x, dtype = astype(x, float32), float32
    if dtype.kind == "c":
        raise argument_error(TypeError, "frexp: x", Described(dtype.name), "a real dtype")
    exponent = astype(fn.binary_exponent(x), int32)
    return fn.binary_fraction(x), exponent


@fn.numbers_too
def spacing(x, /):
    """Return the distance to the next number away from 0, with the sign of x.

    Integers become float16, float32 or float64, by their width.

    >>> import gputensor as gt
    >>> spacing(gt.asarray([1.0, -1.0], dtype="float64", device="host")).tolist()
    [2.220446049250313e-16, -2.220446049250313e-16]
    """
    dtype = tensor_argument(x, "spacing").dtype
    if dtype.kind == "c":
        raise argument_error(TypeError, "spacing: x", Described(dtype.name), "a real dtype")
    x = astype(x, np.result_type(dtype, "float16")) if dtype.kind in "biu" else x
    size = fn.abs(x)
    width = fn.subtract(nextafter(size, math.inf), size)
    return fn.where(fn.less(x, 0), fn.negative(width), width)


def real_if_close(x, /, tol=100):
    """Return the real part if every imaginary part is nearly 0, otherwise x; waits for the device.

    If `tol` is above 1 it is multiplied by the dtype's eps; otherwise it is the limit itself.

    >>> import gputensor as gt
    >>> real_if_close(gt.asarray([1 + 0j], device="host")).dtype
    dtype('float32')
    """
    if tensor_argument(x, "real_if_close").dtype.kind != "c":
        return x
    tol = float_argument("real_if_close: tol", tol)
    limit = tol * finfo(x.dtype).eps if tol > 1 else tol
    is_real = bool(fn.all(fn.less(fn.abs(fn.imag(x)), limit)))
    return fn.real(x) if is_real else x
