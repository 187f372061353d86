"""Random calls of NumPy's functions: shapes, dtypes, strides and options against NumPy's results.

Shapes have up to three axes, of extents from 0; some tensors are transposed or flipped views.
"""

import warnings

import numpy as np
import pytest

import gputensor as gt

INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "uint32"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = ["bool", *INTEGERS, "float16", *FLOATS]
NUMBERS = REAL[1:]
ALL = [*REAL, *COMPLEX]
EXTENTS = (0, 1, 2, 3, 5)


class Draw:
    """Makes random arguments; each array is a pair of a NumPy array and a tensor."""

    def __init__(self, rng, where):
        self.rng, self.where = rng, where

    def one_of(self, *values):
        return values[int(self.rng.integers(len(values)))]

    def flag(self):
        return bool(self.rng.integers(2))

    def shape(self, ndim=None):
        ndim = int(self.rng.integers(0, 4)) if ndim is None else ndim
        return tuple(
            int(n) for n in self.rng.choice(EXTENTS, ndim, p=(0.07, 0.23, 0.25, 0.25, 0.2))
        )

    def pair(self, dtypes=ALL, shape=None, ndim=None, low=-4, has_nan=False):
        shape = self.shape(ndim) if shape is None else shape
        dtype = np.dtype(self.one_of(*dtypes))
        low = max(low, 0) if dtype.kind in "ub" else low
        a = self.rng.integers(low, 2 if dtype.kind == "b" else 5, shape)
        if dtype.kind in "fc":
            a = a + self.rng.integers(0, 4, shape) / 4
        if dtype.kind == "c":
            a = a + 1j * self.rng.integers(-9, 9, shape) / 4
        a = np.asarray(a).astype(dtype)
        if has_nan and dtype.kind == "f" and self.flag():
            a = np.where(self.rng.random(shape) < 0.2, np.nan, a).astype(dtype)
        if a.ndim > 1 and self.flag():
            a = np.asfortranarray(a)
            x = gt.asarray(a.T, device=self.where).T
        else:
            x = gt.asarray(a, device=self.where)
        if a.ndim and self.flag():
            axis = int(self.rng.integers(a.ndim))
            a, x = np.flip(a, axis), gt.flip(x, axis=axis)
        return a, x

    def beside(self, pair, dtypes=ALL):
        """A second array that broadcasts with the first."""
        shape = [1 if self.rng.random() < 0.3 else n for n in pair[0].shape]
        return self.pair(dtypes, tuple(shape[int(self.rng.integers(len(shape) + 1)) :]))

    def axis(self, pair, has_several=True):
        ndim = pair[0].ndim
        if ndim == 0 or self.rng.random() < 0.25:
            return None
        if ndim > 1 and has_several and self.flag():
            return tuple(int(i) for i in self.rng.choice(ndim, 2, replace=False))
        return int(self.rng.integers(-ndim, ndim))

    def some(self, **options):
        """Each option with a probability of a half."""
        return {name: value for name, value in options.items() if self.flag()}


def reduction(dtypes=ALL, has_several=True, **options):
    def made(d):
        x = d.pair(dtypes, has_nan=True)
        more = {name: make(d, x) for name, make in options.items()}
        axis = d.axis(x, has_several)
        return [x], d.some(axis=axis, keepdims=d.flag(), **more)

    return made


def of_two(dtypes=ALL):
    def made(d):
        x = d.pair(dtypes)
        y = d.one_of(2, -1, 0.5, True) if d.rng.random() < 0.2 else d.beside(x, dtypes)
        if not isinstance(y, tuple) and x[0].dtype.kind in "bu":
            y = 1
        return ([x, y] if d.flag() else [y, x]), {}

    return made


def of_one(dtypes=ALL, **options):
    return lambda d: (
        [d.pair(dtypes, has_nan=True)],
        d.some(**{k: f(d) for k, f in options.items()}),
    )


def along(dtypes=ALL, ndim=None, **options):
    """One array, and one axis."""

    def made(d):
        x = d.pair(dtypes, ndim=ndim)
        axis = d.axis(x, False)
        return [x], {"axis": axis, **d.some(**{name: f(d) for name, f in options.items()})}

    return made


def with_same(dtypes=ALL, ndim=None):
    """Two arrays of one shape and dtype."""

    def made(d):
        x = d.pair(dtypes, ndim=ndim)
        return [x, d.pair([x[0].dtype], x[0].shape)], {}

    return made


def where_of(d, x):
    return d.beside(x, ["bool"])


def joined(d):
    x = d.pair(ndim=int(d.rng.integers(1, 4)))
    return [[x, d.pair(shape=x[0].shape)]], {"axis": d.axis(x, False)}


def quantile(d):
    x = d.pair(NUMBERS, tuple(int(n) for n in d.rng.integers(1, 5, 3)), has_nan=True)
    q = float(d.rng.random()) if d.flag() else [0.0, 0.3, 1.0]
    methods = "linear lower higher nearest midpoint hazen inverted_cdf closest_observation".split()
    return [x, q], {"method": d.one_of(*methods), **d.some(axis=d.axis(x), keepdims=d.flag())}


def pad(d):
    x = d.pair(REAL, ndim=int(d.rng.integers(1, 4)))
    modes = "constant edge reflect symmetric wrap linear_ramp maximum mean median minimum".split()
    return [x, d.rng.integers(0, 4, (x[0].ndim, 2)).tolist()], {"mode": d.one_of(*modes)}


def taken(d):
    x = d.pair()
    index = d.rng.integers(-2, 3, int(d.rng.integers(0, 4))).tolist()
    return [x, index], {"mode": d.one_of("wrap", "clip"), **d.some(axis=d.axis(x, False))}


def product(d):
    n = int(d.rng.integers(0, 4))
    start = int(d.rng.integers(3))
    return [d.pair(shape=(2, 3, n)[start:]), d.pair(shape=(n, 3))], {}


def variables(d):
    return [d.pair(FLOATS, ndim=int(d.rng.integers(1, 3)))], d.some(rowvar=d.flag())


def transform(d):
    x = d.pair([*FLOATS, *COMPLEX], ndim=int(d.rng.integers(1, 3)))
    return [x], {"n": int(d.rng.integers(1, 7)), **d.some(norm=d.one_of("ortho", "forward"))}


def ends(d):
    x = d.pair(["int64", *FLOATS])
    return [x], d.some(to_end=3, to_begin=[1, 2])


CASES = {
    **dict.fromkeys(("sum", "prod", "mean"), reduction(where=where_of)),
    **dict.fromkeys(("std", "var"), reduction(ddof=lambda d, x: int(d.rng.integers(2)))),
    **dict.fromkeys(("max", "min", "amax", "amin"), reduction()),
    **dict.fromkeys(("any", "all"), reduction(where=where_of)),
    **dict.fromkeys("nansum nanprod nanmean nanvar nanmax nanmin".split(), reduction()),
    "count_nonzero": reduction(),
    **dict.fromkeys(("argmax", "argmin"), reduction(has_several=False)),
    **dict.fromkeys(("cumsum", "cumprod", "nancumsum", "sort", "flip"), along()),
    "argsort": lambda d: ([x := d.pair()], {"axis": d.axis(x, False), "kind": "stable"}),
    "ptp": reduction(NUMBERS),
    "quantile": quantile,
    "pad": pad,
    "take": taken,
    "ediff1d": ends,
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "maximum", "fmin"), of_two()),
    **dict.fromkeys(("less", "greater_equal", "equal", "logical_or"), of_two()),
    **dict.fromkeys(("floor_divide", "remainder", "fmod"), of_two(NUMBERS)),
    **dict.fromkeys(("hypot", "arctan2", "copysign", "logaddexp", "nextafter"), of_two(FLOATS)),
    **dict.fromkeys(("bitwise_and", "left_shift", "gcd", "lcm"), of_two(INTEGERS[:5:2])),
    **dict.fromkeys("abs sign sqrt exp log1p sin tanh isnan real angle".split(), of_one()),
    "nan_to_num": of_one(),
    "round": of_one(NUMBERS, decimals=lambda d: int(d.rng.integers(-1, 3))),
    "unique": of_one(**dict.fromkeys(
        ("return_index", "return_inverse", "return_counts"), Draw.flag)),
    "ravel": of_one(order=lambda d: d.one_of(*"CFAK")),
    **dict.fromkeys(("nonzero", "argwhere", "flatnonzero"), of_one()),
    "concatenate": joined,
    **dict.fromkeys(("intersect1d", "union1d", "setdiff1d", "isin", "vdot", "append"), with_same()),
    **dict.fromkeys(("convolve", "correlate"), lambda d: (
        [d.pair(shape=(4,)), d.pair(shape=(3,))], {"mode": d.one_of("full", "same", "valid")})),
    **dict.fromkeys(("matmul", "dot"), product),
    **dict.fromkeys(("cov", "corrcoef"), variables),
    **dict.fromkeys(("fft.fft", "fft.ifft"), transform),
    "diff": lambda d: ([d.pair(ndim=2)], d.some(axis=d.one_of(0, -1), n=int(d.rng.integers(3)))),
    "kron": lambda d: ([d.pair(), d.pair()], {}),
    "polyval": lambda d: ([d.pair(NUMBERS, (3,)), d.pair()], {}),
    "interp": lambda d: ([d.pair(FLOATS), [-2.0, 0.0, 1.0], [3.0, 4.0, 0.0]], d.some(left=-1.0)),
    "apply_along_axis": lambda d: ([lambda v: v.sum(), d.one_of(0, -1), d.pair(ndim=2)], {}),
}  # fmt: skip


def side(value, place):
    """The NumPy arrays (0) or the tensors (1) of arguments."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], gt.Tensor):
        return value[place]
    return [side(one, place) for one in value] if isinstance(value, list) else value


def outcome(library, name, arguments, options):
    for part in name.split("."):
        library = getattr(library, part)
    try:
        return library(*arguments, **options)
    except Exception as error:
        return error


def check_same_values(got, want, tolerance):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            check_same_values(one, other, tolerance)
        return
    got, want = got.numpy() if isinstance(got, gt.Tensor) else np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype.kind == want.dtype.kind
    assert got.dtype == want.dtype or want.dtype.kind not in "iu"
    if want.dtype.kind in "fc":
        got, want = got.astype(np.complex128), want.astype(np.complex128)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


def check_calls(rng, where, name, count):
    draw = Draw(rng, where)
    for _ in range(count):
        arguments, options = CASES[name](draw)
        given = [[side(one, i) for one in arguments] for i in (0, 1)]
        named = [{key: side(one, i) for key, one in options.items()} for i in (0, 1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = outcome(np, name, given[0], named[0])
        got = outcome(gt, name, given[1], named[1])
        text = f"{name} {given[0]} {named[0]}: {got!r}, not {want!r}"
        assert isinstance(got, Exception) == isinstance(want, Exception), text
        if isinstance(want, Exception):
            continue
        narrow = "float16" in {str(one.dtype) for one in given[0] if isinstance(one, np.ndarray)}
        try:
            check_same_values(got, want, 2e-2 if narrow or "8" in text else 2e-4)
        except AssertionError as error:
            raise AssertionError(text) from error


@pytest.mark.parametrize("name", CASES)
def test_random_calls_give_numpys_results(where, rng, name):
    check_calls(rng, where, name, 12)


REDUCTIONS = (
    "sum prod mean std var max min amax any all argmax argmin count_nonzero nansum nanmean ptp "
    "nanmax logsumexp cumsum argsort squeeze"
).split()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_number_has_the_axes_0_and_minus_1(where, name):
    x = gt.asarray(-2.5, device=where)
    function = getattr(gt, name)
    want = function(x.reshape(1), axis=0)
    for axis in (0, -1):
        assert function(x, axis=axis).tolist() == want.tolist()
    if name in ("max", "argmin"):
        assert function(x + 1j, axis=0).shape == ()
    with pytest.raises(IndexError, match="axis: got 1"):
        function(x, axis=1)


def test_quantiles_that_are_elements_keep_integers_exact(where):
    big = 2**62
    x = gt.asarray([big + 1, big + 3, big + 2], device=where)
    for method, want in (("lower", big + 1), ("higher", big + 2), ("nearest", big + 2)):
        assert gt.quantile(x, 0.4, method=method).tolist() == want
    assert gt.quantile(x, [0.0, 1.0], axis=0, method="lower").dtype == gt.int64


def test_ends_of_differences_have_the_dtype_of_the_tensor(where):
    x = gt.asarray([1, 4], dtype="int8", device=where)
    with pytest.raises(TypeError, match="ediff1d: to_end: got float32; expected values that fit"):
        gt.ediff1d(x, to_end=gt.ones(1, device=where))
