"""Reductions agree with NumPy over any axes of any layout, on every device."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gputensor as gt
from gputensor._kernels.host.reduction import run
from tests.support.tensor_arrays import (
    BOOL,
    COMPLEX,
    DTYPES,
    EPSILON,
    FLOATS,
    INTEGERS,
    check_same,
    random_array,
    random_view,
)

QUICK = settings(max_examples=40, deadline=None)


@st.composite
def shape_and_axis(draw, min_side=1):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=min_side, max_side=6))
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(0, len(shape)))]
    axes = tuple(axis - len(shape) if draw(st.booleans()) else axis for axis in axes)
    return shape, draw(st.sampled_from([None, axes, axes[0] if axes else None]))


@QUICK
@given(
    case=shape_and_axis(),
    name=st.sampled_from(["sum", "prod", "max", "min", "any", "all"]),
    dtype=st.sampled_from([BOOL, *INTEGERS]),
    keepdims=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_reduction_of_integers_is_exact(place, case, name, dtype, keepdims, seed):
    rng = np.random.default_rng(seed)
    shape, axis = case
    a, x = random_view(rng, random_array(rng, shape, dtype), place)
    expected = getattr(np, name)(a, axis=axis, keepdims=keepdims)
    if name in ("sum", "prod"):
        wide = "uint64" if dtype.kind == "u" else "int64"
        expected = getattr(np, name)(a, axis=axis, keepdims=keepdims, dtype=wide)
    check_same(getattr(gt, name)(x, axis=axis, keepdims=keepdims), expected)


@QUICK
@given(
    case=shape_and_axis(),
    dtype=st.sampled_from([*FLOATS, *COMPLEX]),
    seed=st.integers(0, 2**32),
)
def test_sum_and_mean_of_floats_are_near_the_float64_value(place, case, dtype, seed):
    rng = np.random.default_rng(seed)
    shape, axis = case
    a, x = random_view(rng, random_array(rng, shape, dtype), place)
    wide = a.astype(np.complex128 if dtype in COMPLEX else np.float64)
    scale = max(1.0, float(np.abs(wide).sum()))
    tolerance = scale * EPSILON.get(dtype.name, 2**-21)
    check_same(gt.sum(x, axis=axis), np.asarray(wide.sum(axis=axis)).astype(dtype), tolerance)
    check_same(gt.mean(x, axis=axis), np.asarray(wide.mean(axis=axis)).astype(dtype), tolerance)


@QUICK
@given(
    case=shape_and_axis(),
    name=st.sampled_from(["argmax", "argmin", "max", "min"]),
    dtype=st.sampled_from([*INTEGERS, *FLOATS]),
    nan=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_extremes_find_the_first_and_nan_wins(place, case, name, dtype, nan, seed):
    rng = np.random.default_rng(seed)
    shape, axis = case
    axis = axis[0] if isinstance(axis, tuple) and axis else axis or None
    array = random_array(rng, shape, dtype, low=-3, high=3)
    if nan and dtype.kind in "fV":
        array[np.asarray(rng.integers(0, 4, shape) == 0)] = np.nan
    a, x = random_view(rng, array, place)
    wide = a.astype(np.float64)
    expected = np.asarray(getattr(np, name)(wide, axis=axis))
    check_same(
        getattr(gt, name)(x, axis=axis),
        expected.astype(np.int64 if name.startswith("arg") else dtype),
    )


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_variance_and_deviation_equal_numpy(place, rng, dtype, correction):
    a, x = random_view(rng, random_array(rng, (5, 6, 3), dtype), place)
    for axis in (None, 1, (0, 2)):
        wide = a.astype(np.float64)
        expected = np.asarray(wide.var(axis=axis, ddof=correction)).astype(dtype)
        tolerance = 8 * EPSILON[dtype.name]
        check_same(gt.var(x, axis=axis, correction=correction), expected, tolerance)
        check_same(
            gt.std(x, axis=axis, correction=correction, keepdims=True),
            np.asarray(wide.std(axis=axis, ddof=correction, keepdims=True)).astype(dtype),
            tolerance,
        )


@pytest.mark.parametrize("correction", [3, 4.5])
def test_variance_of_no_more_elements_than_the_correction_is_divided_by_zero(place, correction):
    for values, expected in (([1.0, 2.0, 4.0], np.inf), ([5.0] * 3, np.nan), ([], np.nan)):
        x = gt.asarray(np.asarray(values, np.float32), device=place)
        check_same(gt.var(x, correction=correction), np.float32(expected))
    with pytest.raises(TypeError, match="std: correction: got str; expected a number"):
        gt.std(x, correction="1")


def test_long_sums_of_half_precision_do_not_lose_small_terms(place):
    for dtype in ("float16", "bfloat16"):
        x = gt.full(60000, 1.0, dtype=dtype, device=place)
        assert gt.sum(x, dtype="float32").item() == 60000.0
        assert gt.mean(x).item() == 1.0


def test_reduction_of_no_elements_follows_the_definition(place):
    x = gt.zeros((3, 0), device=place)
    check_same(gt.sum(x, axis=1), np.zeros(3, np.float32))
    check_same(gt.prod(x, axis=1), np.ones(3, np.float32))
    check_same(gt.all(x), np.array(True))
    check_same(gt.any(x), np.array(False))
    check_same(gt.mean(x, axis=1), np.full(3, np.nan, np.float32))
    check_same(gt.sum(x, axis=0), np.zeros(0, np.float32))
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match=f"{name}: axis 1: got no elements"):
            getattr(gt, name)(x, axis=1)
        assert getattr(gt, name)(x, axis=0).shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_result_dtypes(place, dtype):
    x = gt.ones((2, 2), dtype=dtype, device=place)
    kind = {"b": "int64", "i": "int64", "u": "uint64"}.get(dtype.kind, dtype.name)
    assert gt.sum(x).dtype.name == kind
    assert gt.sum(x, dtype="float64" if dtype.kind != "c" else "complex128").item() == 4
    assert gt.any(x).dtype == bool
    if dtype.kind != "c":
        assert gt.max(x).dtype == dtype
        assert gt.argmax(x).dtype == gt.int64


def test_out_may_overlap_the_input(place, rng):
    a = random_array(rng, (4, 4), "float32")
    x = gt.asarray(a, device=place)
    out = gt.full(4, 9.0, device=place)
    assert gt.max(x, axis=1, out=out) is out
    check_same(out, a.max(1))
    gt.sum(x, axis=0, out=x[1])
    check_same(x[1], a.sum(0), 1e-5)
    with pytest.raises(ValueError, match=r"sum: out: got shape \(4,\); expected \(\), that of the"):
        gt.sum(x, out=out)
    with pytest.raises(TypeError, match="out: got dtype int32; expected one that can take a"):
        gt.sum(x, axis=0, out=gt.zeros(4, dtype="int32", device=place))


def test_methods_are_the_functions(place, rng):
    a = random_array(rng, (3, 4), "float64")
    x = gt.asarray(a, device=place)
    check_same(x.sum(axis=0), a.sum(0), 1e-14)
    check_same(x.argmax(axis=1), a.argmax(1))
    assert x.max().item() == a.max()
    check_same(x.mean(keepdims=True), a.mean(keepdims=True), 1e-14)
    check_same(gt.count_nonzero(x > 0), np.array(np.count_nonzero(a > 0)))


@QUICK
@given(
    case=shape_and_axis(min_side=0),
    name=st.sampled_from("sum prod max min amax amin any all mean var std".split()),
    dtype=st.sampled_from([np.dtype(one) for one in "bool float32 float64 int32 uint8".split()]),
    keepdims=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_reduction_of_selected_elements(place, case, name, dtype, keepdims, seed):
    rng = np.random.default_rng(seed)
    shape, axis = case
    # Products of powers of two are exact, and do not overflow before a zero, which would give NaN.
    most = 2 if name == "prod" else 8
    a, x = random_view(rng, rng.integers(0, most + 1, shape).astype(dtype), place)
    mask_shape = shape[rng.integers(0, len(shape) + 1) :]
    mask = rng.random(mask_shape) < 0.7
    options = {"where": mask} if rng.random() < 0.8 else {}
    is_sum = name in ("sum", "prod")
    if name[-3:] in ("max", "min") or is_sum and rng.random() < 0.3:
        options["initial"] = float(rng.integers(0, 9)) / 2
    if name in ("var", "std"):
        options["ddof"] = int(rng.integers(0, 2))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of no elements
        expected = np.asarray(getattr(np, name)(a, axis=axis, keepdims=keepdims, **options))
    if mask.size and "where" in options:
        options["where"] = gt.asarray(mask, device=x.device)
    elif "where" in options:
        options["where"] = gt.asarray(mask, "bool", device=x.device)
    out = None
    if seed % 2:
        out = gt.full(expected.shape, 77, "float64" if name not in ("any", "all") else "bool",
                      device=x.device)  # fmt: skip
    found = getattr(gt, name)(x, axis=axis, keepdims=keepdims, out=out, **options)
    assert out is None or found is out
    # Two sums of n terms of one sign, and of their squares, differ by (n + 4) roundings each.
    np.testing.assert_allclose(found.numpy(), expected, max(2e-6, (a.size + 4) * 2**-23))


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_wrong_axis_names_the_masked_reduction(name):
    x = gt.ones((2, 3), device="host")
    with pytest.raises(IndexError, match=f"^{name}: axis: got 5; expected"):
        getattr(gt, name)(x, axis=5, where=x > 0)


@pytest.mark.parametrize("name", "sum prod max min argmax argmin any all mean var".split())
def test_short_reductions_have_the_bits_of_long_ones(place, rng, name):
    if gt.Device(place).type != "host":
        pytest.skip("needs a host device: a GPU sums in another order")
    for _ in range(60):
        shape = tuple(rng.choice([2, 3, 7, 8, 9, 17, 40, 130], rng.integers(1, 3)).tolist())
        a = rng.normal(size=shape) * 10
        a = np.where(rng.random(shape) < 0.2, rng.choice([0.0, -0.0, np.inf, np.nan]), a)
        a = a.astype(rng.choice(["float32", "float64"]))
        axis = int(rng.integers(a.ndim))
        x = gt.asarray(a, device=place)
        if rng.random() < 0.4:
            a, x = a.T, x.T
        dtype = {"a": "int64" if name[:3] == "arg" else "bool"}.get(name[0], a.dtype.name)
        want = np.full(a.shape[:axis] + a.shape[axis + 1 :], 7, dtype)
        with np.errstate(all="ignore"):
            run(name, a.dtype.name, (axis,), want, a)
        got = getattr(gt, name)(x, axis, out=gt.full(want.shape, 9, dtype, device=place)).numpy()
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[got == 0], np.signbit(want)[want == 0])


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "amax", "amin", "nansum", "nanmax"])
def test_options_by_position_agree_with_numpy(where, rng, name):
    a = rng.uniform(0.5, 2, (3, 4))
    mask = rng.random((3, 4)) < 0.6
    x, chosen = gt.asarray(a, device=where), gt.asarray(mask, device=where)
    ours, theirs = getattr(gt, name), getattr(np, name)
    front = (None, None) if name in ("sum", "prod", "nansum") else (None,)
    for axis in (None, 0, (0, 1)):
        for keepdims in (False, True):
            for initial in (0.75, 9.0):
                want = theirs(a, axis, *front, keepdims, initial, mask)
                got = ours(x, axis, *front, keepdims, initial, chosen)
                np.testing.assert_allclose(got.numpy(), want, 1e-12)
                assert got.shape == np.shape(want)


def test_bool_after_the_axis_is_keepdim(where, rng):
    a = rng.standard_normal((3, 4))
    x = gt.asarray(a, device=where)
    for name in ("sum", "prod", "mean", "amax", "amin", "argmax", "argmin", "any", "all"):
        for keepdim in (False, True):
            want = getattr(np, name)(a, 1, keepdims=keepdim)
            for got in (getattr(x, name)(1, keepdim), getattr(gt, name)(x, 1, keepdim)):
                np.testing.assert_allclose(got.numpy(), want, 1e-12)
    for name in ("max", "min"):
        values, indices = getattr(x, name)(0, True)
        assert indices.shape == (1, 4)
        np.testing.assert_array_equal(values.numpy(), getattr(a, name)(0, keepdims=True))
        assert getattr(x, name)(0, False).indices.shape == (4,)
    for name, unbiased in (("var", True), ("std", True), ("std", False)):
        want = getattr(a, name)(1, ddof=int(unbiased), keepdims=True)
        np.testing.assert_allclose(getattr(x, name)(1, unbiased, True).numpy(), want, 1e-12)
    assert x.median(1, True).indices.shape == (3, 1)
    assert x.logsumexp(1, True).shape == (3, 1)
    with pytest.raises(TypeError, match="sum: out: got int; expected a Tensor"):
        x.sum(0, None, 3)
