"""Functions under NumPy's names give NumPy's results, for random shapes, layouts and dtypes.

A case is written once, over `xp`, and runs with NumPy and with the library.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gputensor as gt
from tests.support.tensor_arrays import DTYPES, random_array, random_view

SHAPES = st.lists(st.integers(0, 4), min_size=0, max_size=4).map(tuple)
REAL = [one for one in DTYPES if one.kind not in "cV"]
INEXACT = [np.dtype(name) for name in ("float32", "float64")]


def agree(actual, expected, tolerance=1e-6):
    """Shapes and values equal NumPy's; dtypes have the kind of NumPy's."""
    if isinstance(expected, (list, tuple)):
        assert type(actual) is type(expected) and len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            agree(one, other, tolerance)
        return
    if not isinstance(actual, gt.Tensor):
        assert actual == expected
        return
    expected = np.asarray(expected)
    got = actual.numpy()
    assert got.shape == expected.shape
    assert got.dtype.kind == expected.dtype.kind
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    eps = {2: 1e-2, 4: 1e-5}.get(got.dtype.itemsize, 1e-9) if got.dtype.kind in "fc" else 0
    eps = max(eps, tolerance) if got.dtype.kind in "fc" else 0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=eps, atol=eps)


def axis_of(x):
    return -1 if x.ndim % 2 else 0


def method(name, *args, **kwargs):
    return lambda xp, x: getattr(x, name)(*args, **kwargs)


# Functions of one array of any shape and dtype.
ANY = {
    "transpose": lambda xp, x: xp.transpose(x),
    "x.transpose": method("transpose"),
    "ravel": lambda xp, x: xp.ravel(x),
    "x.flatten": method("flatten"),
    "atleast_1d": lambda xp, x: xp.atleast_1d(x),
    "atleast_2d": lambda xp, x: xp.atleast_2d(x),
    "atleast_3d": lambda xp, x: xp.atleast_3d(x),
    "diagflat": lambda xp, x: xp.diagflat(x, 1),
    "pad": lambda xp, x: xp.pad(x, 1),
    "pad pairs": lambda xp, x: xp.pad(x, [(i, 2) for i in range(x.ndim)] or 0),
    "argwhere": lambda xp, x: xp.argwhere(x),
    "flatnonzero": lambda xp, x: xp.flatnonzero(x),
    "append": lambda xp, x: xp.append(x, x),
    # Divided, since terms that cancel leave their roundings: those of a sum grow like the terms.
    "x.sum": lambda xp, x: x.sum() / max(x.size, 1) if x.dtype.kind in "fc" else x.sum(),
    "x.any": method("any"),
    # Below 1 in size: a product of complex numbers that overflows depends on the order.
    "x.prod": lambda xp, x: (x / (abs(x) + 1) if x.dtype.kind in "fc" else x).prod(),
    "count_nonzero": lambda xp, x: xp.asarray(xp.count_nonzero(x)),
    "isclose": lambda xp, x: xp.isclose(x, x),
    "allclose": lambda xp, x: xp.allclose(x, x),
    "array_equal": lambda xp, x: xp.array_equal(x, x),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x),
    "kron": lambda xp, x: xp.kron(x[..., None], x[..., None]) if x.ndim < 3 else xp.ravel(x),
    "outer": lambda xp, x: xp.outer(x, x),
    "repeat": lambda xp, x: xp.repeat(x, 2),
    "roll": lambda xp, x: xp.roll(x, 2),
    "tile": lambda xp, x: xp.tile(x, 2),
    "x.round": lambda xp, x: x.round() if x.dtype.kind != "b" else xp.ravel(x),
    "isreal": lambda xp, x: xp.isreal(x),
    "iscomplex": lambda xp, x: xp.iscomplex(x),
    "concatenate": lambda xp, x: xp.concatenate([x[None], x[None]], 0),
    "stack": lambda xp, x: xp.stack([x, x], -1),
    "hstack": lambda xp, x: xp.hstack([x, x]),
    "vstack": lambda xp, x: xp.vstack([x, x]),
    "dstack": lambda xp, x: xp.dstack([x, x]),
    "column_stack": lambda xp, x: xp.column_stack([x, x]) if x.ndim else xp.ravel(x),
    "expand_dims": lambda xp, x: xp.expand_dims(x, 0),
    "x.real": lambda xp, x: x.real,
    "x.imag": lambda xp, x: x.imag,
    "nonzero": lambda xp, x: xp.nonzero(xp.atleast_1d(x)),
    "where": lambda xp, x: xp.where(xp.atleast_1d(x) != 0),
}
# Functions of one array with at least one axis.
AXES = {
    "x.sum axis": lambda xp, x: x.sum(axis_of(x)),
    "x.mean axis": lambda xp, x: x.mean(axis_of(x)) if x.shape[axis_of(x)] else xp.ravel(x),
    "swapaxes": lambda xp, x: xp.swapaxes(x, 0, -1),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "flip": lambda xp, x: xp.flip(x, axis_of(x)),
    "flipud": lambda xp, x: xp.flipud(x),
    "roll axis": lambda xp, x: xp.roll(x, 1, axis_of(x)),
    "repeat axis": lambda xp, x: xp.repeat(x, 3, axis_of(x)),
    "repeat each": lambda xp, x: xp.repeat(x, np.arange(x.shape[0]), 0),
    "array_split": lambda xp, x: list(xp.array_split(x, 3, axis_of(x))),
    "split": lambda xp, x: list(xp.split(x, [1, 3], axis_of(x))),
    "diff": lambda xp, x: xp.diff(x),
    "diff n": lambda xp, x: xp.diff(x, 2, axis_of(x)),
    "diff edges": lambda xp, x: xp.diff(x, axis=0, prepend=x[:1], append=x),
    "delete": lambda xp, x: xp.delete(x, slice(None, None, 2), axis_of(x)),
    "compress": lambda xp, x: xp.compress([True, False][: x.shape[0]], x, 0),
    "take": lambda xp, x: xp.take(x, xp.asarray([0, -1]), 0) if x.shape[0] else xp.ravel(x),
    "insert": lambda xp, x: xp.insert(x, [0, x.shape[0]], 1, 0),
    "insert one": lambda xp, x: xp.insert(x, 0, 1, -1),
}
MATRICES = {
    "diagonal": lambda xp, x: xp.diagonal(x, 1),
    "diagonal axes": lambda xp, x: xp.diagonal(x, -1, -1, 0),
    "trace": lambda xp, x: xp.trace(x),
    "diag": lambda xp, x: xp.diag(x[(0,) * (x.ndim - 2)] if min(x.shape) else x.reshape(-1), 1),
    "fliplr": lambda xp, x: xp.fliplr(x),
    "rot90": lambda xp, x: xp.rot90(x, 3, (0, -1)),
    "tril": lambda xp, x: xp.tril(x, -1),
    # Below 5 in size, where the bound is above the roundings of sums whose terms cancel.
    "inner": lambda xp, x: xp.inner(x, x) / 4096 if x.dtype.kind not in "biu" else xp.ravel(x),
}
REALS = {
    "ptp": lambda xp, x: xp.ptp(x, 0),
    "amax": lambda xp, x: xp.amax(x, 0),
    "amin keepdims": lambda xp, x: xp.amin(x, -1, None, True),
    "argmax": lambda xp, x: xp.argmax(x, 0),
    "clip": lambda xp, x: xp.clip(x, 1, 3),
    "clip low": lambda xp, x: x.clip(1),
    "fmax": lambda xp, x: xp.fmax(x, x[:1]),
    "fmin": lambda xp, x: xp.fmin(x, 1),
    "nanmax": lambda xp, x: xp.nanmax(x, 0),
    "nanargmin": lambda xp, x: xp.nanargmin(x, 0),
    "round hundreds": lambda xp, x: xp.round(x, -2),
    "average": lambda xp, x: xp.average(x, 0),
    "var": lambda xp, x: xp.var(x, 0, None, None, 1) if x.shape[0] > 1 else xp.ravel(x),
    "std": lambda xp, x: x.std(-1),
    "pad edge": lambda xp, x: xp.pad(x, 1, "edge"),
    "pad wrap": lambda xp, x: xp.pad(x, ((2, 3),) + ((0, 0),) * (x.ndim - 1), "wrap"),
    "pad reflect": lambda xp, x: xp.pad(x, 5, "reflect"),
    "pad symmetric": lambda xp, x: xp.pad(x, ((0, 0),) * (x.ndim - 1) + ((3, 1),), "symmetric"),
}
FLOATS = {
    "exp2": lambda xp, x: xp.exp2(x / 10),
    "fmod": lambda xp, x: xp.fmod(x, 7),
    "modf": lambda xp, x: xp.modf(x),
    "divmod": lambda xp, x: divmod(x, 7),
    "round": lambda xp, x: xp.round(x, 2),
    "round tens": lambda xp, x: xp.round(x, -1),
    "nansum": lambda xp, x: xp.nansum(xp.where(x > 0, x, np.nan), 0),
    "nanmean": lambda xp, x: xp.nanmean(xp.where(x > -49, x, np.nan)),
    "nanvar": lambda xp, x: xp.nanvar(x, -1),
    "nanstd": lambda xp, x: xp.nanstd(x, 0, None, None, 0, True),
    "gradient": lambda xp, x: xp.gradient(x) if min(x.shape) > 1 else xp.ravel(x),
    "trapezoid": lambda xp, x: xp.trapezoid(x, dx=0.5, axis=0),
    "heaviside": lambda xp, x: xp.heaviside(x, 0.5),
    "deg2rad": lambda xp, x: xp.deg2rad(x),
    "angle": lambda xp, x: xp.angle(x),
    "nextafter": lambda xp, x: xp.nextafter(x, xp.asarray(3, x.dtype)),
    "cov": lambda xp, x: (
        xp.cov(x.reshape(x.shape[0], -1)) / 4096 if x.size > x.shape[0] else xp.ravel(x)
    ),
    "float_power": lambda xp, x: xp.float_power(x, 2),
    "isposinf": lambda xp, x: xp.isposinf(x),
    "ldexp": lambda xp, x: xp.ldexp(x, 3),
    "copysign": lambda xp, x: xp.copysign(x, -x),
}


def run(cases, name, place, shape, dtype, seed):
    rng = np.random.default_rng(seed)
    a, x = random_view(rng, random_array(rng, shape, dtype), place)
    with np.errstate(all="ignore"), gt.Device(place):
        agree(cases[name](gt, x), cases[name](np, a))


def campaign(cases, dtypes, least):
    shapes = st.lists(st.integers(0 if least < 3 else 1, 4), min_size=min(least, 2), max_size=4)

    def decorate(test):
        test = given(
            shape=shapes.map(tuple), dtype=st.sampled_from(dtypes), seed=st.integers(0, 2**32)
        )(test)
        test = settings(max_examples=12, deadline=None)(test)
        return pytest.mark.parametrize("name", cases)(test)

    return decorate


NUMPYS = [one for one in DTYPES if one.kind != "V"]


@campaign(ANY, NUMPYS, 0)
def test_function_of_any_array(name, place, shape, dtype, seed):
    run(ANY, name, place, shape, dtype, seed)


@campaign(AXES, NUMPYS, 1)
def test_function_along_an_axis(name, place, shape, dtype, seed):
    run(AXES, name, place, shape, dtype, seed)


@campaign(MATRICES, NUMPYS, 2)
def test_function_of_matrices(name, place, shape, dtype, seed):
    run(MATRICES, name, place, shape, dtype, seed)


@campaign(REALS, [one for one in REAL if one.kind != "b"], 3)
def test_function_of_real_arrays_with_elements(name, place, shape, dtype, seed):
    run(REALS, name, place, shape, dtype, seed)


@campaign(FLOATS, INEXACT, 3)
def test_function_of_floats(name, place, shape, dtype, seed):
    run(FLOATS, name, place, shape, dtype, seed)
