"""``out``, ``where`` and ``dtype`` of every element-wise function that is a ufunc of NumPy."""

import warnings

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same

#: `isnat` is for dates; the others are products of matrices, or return floats for integers.
ABSENT = {"isnat", "matmul", "matvec", "vecdot", "vecmat", "reciprocal"}
NAMES = sorted(
    name for name in dir(np) if isinstance(getattr(np, name), np.ufunc) and name not in ABSENT
)
#: Dtypes of the arguments of functions whose arguments differ.
DTYPES = {"ldexp": ("float64", "int64")}

#: Functions whose dtypes are fixed by their arguments.
FIXED = ("float_power", "frexp", "ldexp")


def arguments(rng, ufunc, name):
    """Arrays of a dtype that the function takes."""
    for kind in ("float64", "int64"):
        given = [
            np.asarray(rng.integers(1, 5, (2, 3))).astype(one)
            for one in DTYPES.get(name, (kind,) * ufunc.nin)
        ]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return given, ufunc(*given)
        except TypeError:
            continue
    raise AssertionError(f"no dtype of {name}")


def several(value):
    return value if isinstance(value, tuple) else (value,)


def check_options(rng, where, name):
    ufunc, function = getattr(np, name), getattr(gt, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, plain = arguments(rng, ufunc, name)
        mask = rng.random((2, 3)) < 0.5
        tensors = [gt.asarray(one, device=where) for one in given]
        covered = gt.asarray(mask, device=where)
        for options in ({}, {"where": True}):
            for by_position in (False, True):
                want = [np.full((2, 3), 7).astype(one.dtype) for one in several(plain)]
                got = [gt.asarray(one, device=where) for one in want]
                if options:
                    ufunc(*given, out=tuple(want), where=mask)
                    out = got[0] if len(got) == 1 else tuple(got)
                    result = function(*tensors, out=out, where=covered)
                elif by_position:
                    ufunc(*given, *want)
                    result = function(*tensors, *got)
                else:
                    ufunc(*given, out=tuple(want))
                    result = function(*tensors, out=got[0] if len(got) == 1 else tuple(got))
                for one, mine, theirs in zip(several(result), got, want, strict=True):
                    assert one is mine
                    np.testing.assert_allclose(mine.numpy(), theirs, 1e-6)
        for one, whole in zip(several(function(*tensors, where=covered)), several(plain),
                              strict=True):  # fmt: skip
            np.testing.assert_allclose(one.numpy(), np.where(mask, whole, 0), 1e-6)
        if several(plain)[0].dtype.kind == "f" and name not in FIXED:
            narrow = several(function(*tensors, dtype="float32"))[0]
            check_same(narrow, several(ufunc(*given, dtype="float32"))[0], 1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_function_takes_the_options_of_its_ufunc(where, rng, name):
    check_options(rng, where, name)


def test_wrong_options_are_named_and_nothing_is_written(where):
    x, y = gt.ones(3, device=where), gt.full(3, 2.0, device=where)
    out = gt.zeros(2, device=where)
    for call, text in (
        (lambda: gt.hypot(x, y, out=out), r"hypot: out: got shape \(2,\); expected \(3,\)"),
        (lambda: gt.hypot(x, y, [0.0] * 3), "hypot: out: got list; expected a Tensor"),
        (lambda: gt.modf(x, out=out), "modf: out: got Tensor; expected a tuple of 2 tensors"),
        (lambda: gt.copysign(x, y, what=1), "unexpected keyword argument 'what'"),
        (lambda: gt.copysign(x, y, dtype="int8"), "copysign: dtype"),
        (lambda: gt.logaddexp(x, y, where="a"), "where: argument 1: got str; expected a Tensor"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            call()
    assert out.tolist() == [0, 0]
    assert gt.hypot(x, y, where=[True, False, False])[1].item() == 0
