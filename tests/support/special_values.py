"""Values at the ends of every dtype, and the comparison that treats each of them by its class.

Documented exceptions, where devices and NumPy itself differ by instruction set:

- products of complex numbers that overflow on the way (fused multiplication does not), and squares
  and powers with them; powers of complex numbers with infinities or NaN;
- the sign of NaN, which `signbit` and `copysign` read but arithmetic does not promise;
- an infinity, or a zero, whose sign C leaves open beside a NaN part.
"""

import ml_dtypes
import numpy as np

from tests.support.tensor_arrays import BFLOAT16, BOOL

# Complex operations whose values NumPy does not promise beyond this range of parts.
MODERATE = {"mul": 1e15, "multiply": 1e15, "square": 1e15, "div": 1e15, "divide": 1e15, "pow": 3}
MODERATE |= {"reciprocal": 1e15}


def part_dtype(dtype):
    """Return the real dtype of the parts of a complex dtype; other dtypes unchanged."""
    return np.empty(0, dtype).real.dtype if np.dtype(dtype).kind == "c" else np.dtype(dtype)


def special_reals(dtype):
    """Return zeros, infinities, NaN of both signs, denormals, and the ends of a floating dtype."""
    if dtype == BFLOAT16 or dtype.itemsize == 2:
        facts = np.array([65504 if dtype != BFLOAT16 else 3.3895e38, 2.0**-14, 2.0**-24])
    else:
        info = np.finfo(dtype)
        facts = np.array([info.max, info.tiny, info.smallest_subnormal])
    plain = [0.0, 1, 0.5, 2, 3, 21, 100, np.pi / 2, float(np.sqrt(facts[0])) * 2, np.inf, np.nan]
    values = np.array([*plain, *facts, float(np.log(facts[0])) + 0.4])
    with np.errstate(over="ignore"):
        return np.concatenate([values, np.copysign(values, -1.0)]).astype(dtype)


def special_values(dtype):
    """Return all special values of any dtype, one-dimensional."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        near = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, info.bits - 1]
        return np.array(near + ([-1, -2, -3] if info.min else []), dtype)
    if dtype.kind != "c":
        return special_reals(dtype)
    parts = special_reals(part_dtype(dtype))
    values = np.empty((parts.size, parts.size), dtype)
    values.real, values.imag = parts[:, None], parts
    return values.reshape(-1)


def sampled(rng, name, dtype, size):
    """Return special and small random values for which operation `name` promises results."""
    dtype = np.dtype(dtype)
    values = rng.choice(special_values(dtype), size)
    if dtype.kind in "fVc":
        ordinary = rng.standard_normal((2, size)) * 4
        mixed = ordinary[0] + 1j * ordinary[1] if dtype.kind == "c" else ordinary[0]
        values = np.where(rng.random(size) < 0.2, mixed.astype(dtype), values)
    if dtype.kind == "c" and name in MODERATE:
        parts = np.maximum(np.abs(values.real), np.abs(values.imag))
        with np.errstate(invalid="ignore"):
            is_moderate = parts <= MODERATE[name]
        if name != "pow":
            is_moderate |= ~np.isfinite(parts)
            is_moderate &= ~((parts < 1 / MODERATE[name]) & (parts > 0))
        values = np.where(is_moderate, values, dtype.type(0.5 - 0.75j))
        for part in (values.real, values.imag) if name != "pow" else ():
            part[np.isfinite(part) & (np.abs(part) > MODERATE[name])] = 1
    return values.astype(dtype)


def _parts(array):
    return (array.real, array.imag) if array.dtype.kind == "c" else (array,)


def differing(actual, expected, tolerance, signed_zeros=False):
    """Return where arrays differ: in class (NaN, infinity and its sign), or beyond `tolerance`.

    Parts of complex numbers are compared relative to the whole number; a NaN is equal to any NaN.
    """
    wrong = np.zeros(expected.shape, bool)
    with np.errstate(all="ignore"):
        if expected.dtype.kind in "fVc":
            wide = np.complex128 if expected.dtype.kind == "c" else np.float64
            tiny = 4 * float(special_tiny(expected.dtype))
            largest = special_largest(expected.dtype)
            actual, expected = actual.astype(wide), expected.astype(wide)
            whole = np.where(np.isfinite(expected), np.abs(expected), 0)
        for got, wanted in zip(_parts(actual), _parts(expected), strict=True):
            if wanted.dtype.kind != "f":
                wrong |= got != wanted
                continue
            same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
            bound = tolerance * np.maximum(whole, np.abs(wanted)) + tiny
            both = np.isfinite(got) & np.isfinite(wanted)
            # One rounding beyond the largest number of the dtype is infinite.
            passed = np.isinf(got) & (np.sign(got) == np.sign(wanted))
            passed &= np.abs(wanted) * (1 + tolerance) > largest
            wrong |= ~(same | passed | (both & (np.abs(got - wanted) <= bound)))
            if signed_zeros:
                signs_differ = np.signbit(got) != np.signbit(wanted)
                wrong |= ~np.isnan(expected) & (wanted == 0) & signs_differ
    return wrong


def special_tiny(dtype):
    """Return the least positive number of the parts of a floating-point dtype."""
    if dtype == BFLOAT16:
        return 2.0**-133
    return np.finfo(part_dtype(dtype)).smallest_subnormal


def special_largest(dtype):
    """Return the largest number of the parts of a floating-point dtype."""
    return float(ml_dtypes.finfo(dtype if dtype == BFLOAT16 else part_dtype(dtype)).max)


def check(name, inputs, actual, expected, tolerance, signed_zeros=False):
    """Fail with the first cases that differ."""
    wrong = np.flatnonzero(differing(actual, expected, tolerance, signed_zeros))
    cases = [
        (*(one[i] for one in inputs), "gives", actual[i], "not", expected[i]) for i in wrong[:5]
    ]
    assert not wrong.size, f"{name}: {wrong.size} of {expected.size}: {cases}"
