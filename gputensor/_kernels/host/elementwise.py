"""Element-wise operations on the host device: NumPy functions on views of its memory.

A host device's stream executes `run`. It casts the inputs to the compute dtype, computes 16-bit
floats in float32, and writes the result once. A result is computed in other memory before it is
written, so an output may also be an input.
"""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.loops import HostLoop, converted
from gputensor._kernels.operations import ELEMENTWISE

__all__ = ["WIDE", "cast", "host_function", "rounded", "run"]


def cast(array, dtype):
    """Return `array` as NumPy dtype `dtype` by C's rules; a complex number becomes its real part.

    >>> import numpy as np
    >>> cast(np.array([1.9, -1.9]), np.dtype("int32"))
    array([ 1, -1], dtype=int32)
    """
    if array.dtype == dtype:
        return array
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    if dtype.kind == "b":
        return array != 0
    if dtype.kind == "c" and array.dtype.kind == "V":
        array = array.astype(np.float32)
    return converted(array, dtype)


def _integer_power(base, exponent):
    if base.dtype.kind != "i":
        return np.power(base, exponent)
    result = np.power(base, np.maximum(exponent, 0))
    # A negative exponent gives 1 / base**n, truncated: NumPy raises, but a kernel cannot.
    sign = np.where(exponent & 1, base, 1)
    inverse = np.where((base == 1) | (base == -1), sign, 0)
    return np.where(exponent < 0, inverse, result).astype(base.dtype)


def power(base, exponent):
    if exponent.size == 1 and base.dtype.kind in "iuf" and exponent.reshape(()) == 2:
        return np.square(base)
    if base.dtype.kind in "iu":
        return _integer_power(base, exponent)
    if exponent.size == 1 and exponent.reshape(()) == 0.5 and base.dtype.kind == "f":
        result = np.asarray(np.sqrt(base))
        if not base.min(initial=0) > -np.inf:
            result[base == -np.inf] = np.inf
        return np.add(result, 0, out=result)
    result = np.power(base, exponent)
    if base.dtype.kind != "f" or not (halves := np.asarray(exponent == 0.5)).any():
        return result
    # NumPy takes a square root for a single 0.5: another sign of -0, NaN for -infinity.
    roots = np.where(base == -np.inf, np.inf, result + 0)
    return roots if np.all(halves) else np.where(halves, roots, result)


def sign(x):
    if x.dtype.kind != "c":
        return np.sign(x)
    # x / |x|, which np.sign computes since NumPy 2. An infinite part counts as 1 and a finite part
    # beside it as 0; two infinities have no direction. Halving keeps |x| from overflow.
    real, imag = x.real, x.imag
    is_infinite = np.isinf(x)
    real, imag = (
        np.where(is_infinite, np.copysign(np.isinf(part), part), part) for part in (real, imag)
    )
    scale = np.where(np.maximum(np.abs(real), np.abs(imag)) > 1, 0.5, 1).astype(real.dtype)
    real, imag = real * scale, imag * scale
    size = np.hypot(real, imag)
    result = np.zeros_like(x)
    np.divide(real, size, out=result.real, where=size != 0)
    np.divide(imag, size, out=result.imag, where=size != 0)
    result[np.isnan(x) | (np.isinf(x.real) & np.isinf(x.imag))] = complex(np.nan, np.nan)
    return result


# Loops of floats that calls use directly where they can. Zeros have the signs that they have there:
# NumPy's maximum and minimum take either zero of two.
_CLIP, _RELU = HostLoop("clip"), HostLoop("relu")


def clip(x, low, high):
    if x.dtype.kind == "f":
        return _CLIP(x, low, high)
    return np.minimum(np.maximum(x, low), high)


def rsqrt(x):
    return 1 / np.sqrt(x)


def identity(x):
    return x


def relu(x):
    return _RELU(x) if x.dtype.kind == "f" else np.maximum(x, x.dtype.type(0))


def expm1(x):
    if x.dtype.kind != "c":
        return np.expm1(x)
    # NumPy's expm1 lacks C's special cases and has no finite part beside an infinite one.
    whole = np.array(np.exp(x))
    half = np.sin(x.imag / 2)
    near = np.expm1(x.real) * np.cos(x.imag) - 2 * half * half
    is_far = ~np.isfinite(x) | np.isinf(whole.real)
    whole.real = np.where(is_far, whole.real - 1, near)
    return whole


def log1p(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    # NumPy's log1p takes the logarithm of the rounded sum.
    real, imag = x.real, x.imag
    result = np.array(x)
    result.real += 1  # x + 1 would lose the sign of an imaginary zero
    result = np.asarray(np.log(result))
    is_near = (np.abs(real) < 0.5) & (np.abs(imag) < 0.5)
    near = np.log1p(real * (2 + real) + imag * imag, where=is_near, out=np.zeros_like(real)) / 2
    result.real = np.where(is_near, near, result.real)
    return result


def _rounding(function):
    return lambda x: x if x.dtype.kind in "biu" else function(x)


floor, ceil, trunc, rint = map(_rounding, (np.floor, np.ceil, np.trunc, np.rint))


def _shift(function, left):
    def shifted(x, count):
        # NumPy's result for a count outside the width, computed here since it is undefined in C.
        width = x.dtype.itemsize * 8
        if count.size == 1 and 0 <= count.reshape(()) < width:
            return function(x, count.astype(x.dtype))
        inside = (count >= 0) & (count < width)
        result = function(x, np.where(inside, count, 0).astype(x.dtype))
        outside = np.zeros_like(x) if left else np.where(x < 0, -1, 0).astype(x.dtype)
        return np.where(inside, result, outside)

    return shifted


shift_left = _shift(np.left_shift, left=True)
shift_right = _shift(np.right_shift, left=False)


def host_function(row):
    """Return the host function of a row; raise ImportError if it does not exist."""
    if row.host == "loop":
        return HostLoop(row.name)
    found = getattr(np, row.host[3:], None) if row.host[:3] == "np." else globals().get(row.host)
    if not callable(found):
        raise ImportError(f"operation {row.name}: got host {row.host!r}; expected a function of "
                          "NumPy or of host/elementwise.py, or 'loop'")  # fmt: skip
    return found


_TABLE = {row.name: host_function(row) for row in ELEMENTWISE}
#: Rules of operations whose results are bool.
_TESTS = ("compare", "classify", "logical")
#: Ufuncs whose results are of the compute dtype (None) or bool, for every kind of the operation.
_UFUNCS = {
    row.name: (_TABLE[row.name], np.dtype(bool) if row.rule in _TESTS else None)
    for row in ELEMENTWISE
    if isinstance(_TABLE[row.name], np.ufunc)
    and row.rule in ("same", "float", "bits", "magnitude", *_TESTS)
}
#: For each dtype: its NumPy dtype, and the dtype in which NumPy computes.
WIDE = {
    row.name: (row.numpy, np.dtype(np.float32) if row.compute == "float" else row.numpy)
    for row in DTYPES
}

#: (operation, compute dtype) -> a ufunc that needs no casts, dtypes of its inputs and its output.
_DIRECT = {
    (name, compute): (ufunc, dtype, result or dtype)
    for name, (ufunc, result) in _UFUNCS.items()
    for compute, (dtype, wide) in WIDE.items()
    if dtype is wide and (dtype.kind != "b" or name.startswith("logical_"))
}


def run(op, compute, out, *inputs):
    """Compute one operation into the array `out`.

    Parameters
    ----------
    op, compute : str
        Names of the operation and of the compute dtype.
    out : numpy.ndarray
        The view that is written.
    *inputs : numpy.ndarray
        Views of the shape of `out`, or 0-d arrays.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(3, np.float32)
    >>> run("add", "float32", out, np.array([1, 2, 3], np.int32), np.array(0.5))
    >>> out
    array([1.5, 2.5, 3.5], dtype=float32)
    """
    if op == "copy":
        out[...] = cast(inputs[0], out.dtype)
        return
    # Without casts a ufunc writes into the output directly; ufuncs handle an output that is an
    # input. Views have the same dtype objects as the table, so dtypes are compared by identity.
    if direct := _DIRECT.get((op, compute)):
        ufunc, dtype, result = direct
        if out.dtype is result:
            for array in inputs:
                if array.dtype is not dtype:
                    break
            else:
                if len(inputs) == 1 and not out.flags.forc:
                    # NumPy's loops of one operand miss elements of a result with gaps.
                    out[...] = ufunc(*inputs)
                else:
                    ufunc(*inputs, out=out)
                return
    loop, (dtype, wide) = _TABLE[op], WIDE[compute]
    if type(loop) is HostLoop and out.dtype is dtype is wide and loop.into(out, inputs):
        return
    if op == "where":
        # Chosen elements keep their bits, so 16-bit floats are not computed in float32.
        values = [cast(array, dtype) for array in inputs[1:]]
        out[...] = cast(np.where(cast(inputs[0], np.dtype(bool)), *values), out.dtype)
        return
    values = [cast(cast(array, dtype), wide) for array in inputs]
    out[...] = cast(rounded(_TABLE[op](*values), dtype), out.dtype)


def rounded(result, dtype):
    """Round a float32 result of a 16-bit computation to its dtype before it is cast further."""
    if result.dtype == np.float32 and dtype.itemsize == 2:
        return converted(result, dtype)
    return result
