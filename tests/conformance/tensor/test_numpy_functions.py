"""NumPy functions beyond the array standard give NumPy's results, on random vectors and grids.

A case is written once, over ``xp``, and runs with NumPy and with the library.
"""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same

# Of float vectors a, b and c, integers i from 0 to 4, a matrix m, repeating rows g, n with NaN.
CASES = {
    "interp": "xp.interp(a, xp.sort(b), c)",
    "interp outside": "xp.interp(a * 5, xp.sort(b), c, left=-7.0, right=7.0)",
    "interp one point": "xp.interp(a, b[:1], c[:1])",
    "convolve": "xp.convolve(a, b)",
    "convolve same": "xp.convolve(a, b[:4], 'same')",
    "convolve swapped": "xp.convolve(b[:3], a, 'same')",
    "convolve valid": "xp.convolve(a, b[:5], 'valid')",
    "convolve long": "xp.convolve(xp.tile(a, 9), xp.tile(b, 4))",
    "convolve integers": "xp.convolve(i, i[:2])",
    "correlate": "xp.correlate(a, b[:4])",
    "correlate full": "xp.correlate(a, b[:4], 'full')",
    "correlate same": "xp.correlate(a, b[:3], 'same')",
    "nancumsum": "xp.nancumsum(xp.where(a > 0, a, xp.nan))",
    "nancumprod": "xp.nancumprod(xp.where(m > 0, m, xp.nan), 1)",
    "polyval": "xp.polyval(a[:4], b)",
    "polyfit": "xp.polyfit(a, b, 2)",
    "union1d": "xp.union1d(i, i + 2)",
    "intersect1d": "xp.intersect1d(i, i + 2)",
    "setdiff1d": "xp.setdiff1d(i, i + 2)",
    "setxor1d": "xp.setxor1d(i, i + 2)",
    "lexsort": "xp.lexsort((a[:6], i))",
    "partition": "xp.partition(a, 3)[3]",
    "argpartition": "a[xp.argpartition(a, 3)][3]",
    "select": "xp.select([a > 1, a > 0], [a, b], -1.0)",
    "choose": "xp.choose(i % 2, (a[:6], b[:6]))",
    "block": "xp.block([[m, m], [m, m * 2]])",
    "block of rows": "xp.block([a, b])",
    "apply_along_axis": "xp.apply_along_axis(xp.sort, 0, m)",
    "apply_along_axis to numbers": "xp.apply_along_axis(xp.sum, 1, m)",
    "unravel_index": "xp.unravel_index(i, (2, 3))",
    "unravel_index of bytes": "xp.unravel_index(xp.asarray([200, 9], dtype='uint8'), (300, 2))",
    "ravel_multi_index of bytes": "xp.ravel_multi_index("
    "(xp.asarray([100, 2], dtype='int8'), xp.asarray([50, 3], dtype='int8')), (120, 120))",
    "ravel_multi_index": "xp.ravel_multi_index((i % 2, i % 3), (2, 3))",
    "ix_": "m[xp.ix_(i[:2] % 3, i[:3] % 3)]",
    "vander": "xp.vander(a, 3)",
    "vander increasing": "xp.vander(i, increasing=True)",
    "around": "xp.around(a, 2)",
    "logaddexp2": "xp.logaddexp2(a * 30, b[:, None] * 9)",
    "logaddexp2 of infinities": "xp.logaddexp2(xp.where(a > 0, xp.inf, -xp.inf), -xp.inf)",
    "logaddexp2 of float16": "xp.logaddexp2(a, (b * 8).astype('float16'))",
    "median of infinities": "xp.median(xp.where(a > 9, a, xp.inf)[:8])",
    "median beside infinities": "xp.median(xp.stack([a, xp.where(b > 0, xp.inf, -xp.inf)]), 0)",
    "nanmedian of infinities": "xp.nanmedian(xp.where(a > 9, xp.nan, -xp.inf)[:8])",
    "append a number": "xp.append(a, 5)",
    "append a float to integers": "xp.append(i, 1.5)",
    "append a list": "xp.append(m, [[1, 2, 3]], axis=0)",
    "gradient of second order": "xp.gradient(m, edge_order=2)",
    "gradient of second order at places": "xp.gradient(a, xp.sort(b), edge_order=2)",
    "gradient of bytes": "xp.gradient(xp.asarray(a * 90, dtype='int8').astype('uint8'))",
    "unique rows": "xp.unique(g, True, True, True, axis=0)",
    "unique columns": "xp.unique(g.T, axis=1)",
    "unique rows of none": "xp.unique(g[:0], axis=0)",
    "var of complex numbers": "xp.var(a + b * 1j, ddof=1)",
    "std of complex rows": "xp.std(m + m.T * 1j, axis=1, keepdims=True)",
    "sparse grid": "xp.meshgrid(a, b, sparse=True)",
    "least dimensions": "xp.array(a, ndmin=3)",
    "clip by older names": "xp.clip(a, a_min=-0.5, a_max=0.5)",
    "like with a shape": "xp.full_like(a, 2, shape=(2, 3))",
    "fft of n": "xp.fft.fft(a, 5)",
    "rfft of n along an axis": "xp.fft.rfft(m, 4, 0, 'ortho')",
    "fft2 of a shape": "xp.fft.fft2(m, (3, 3))",
    "singular values": "xp.linalg.svd(m, compute_uv=False)",
    "svd by position": "abs(xp.linalg.svd(m[:2], False)[2])",
    "R alone": "abs(xp.linalg.qr(m, 'r'))",
    "rank of a vector": "xp.linalg.matrix_rank(m[0])",
    "rank by tolerance": "xp.linalg.matrix_rank(m, 0.5)",
    "pinv by rcond": "xp.linalg.pinv(m, 1e-3)",
    "vander of bytes": "xp.vander(xp.asarray(i * 9, dtype='int8'), 4)",
    "setdiff1d keeps the dtype": "xp.setdiff1d(i, a)",
    "union1d of NaN": "xp.union1d(n, n)",
    "setxor1d of NaN": "xp.setxor1d(n, n[:3])",
    "setdiff1d of NaN": "xp.setdiff1d(n, n[:3])",
    "angle of zeros and infinities": "xp.angle(n * xp.asarray([-0.0, 0.0, 1.0, -xp.inf]))",
    "T of a vector": "a.T",
    "T of three axes": "xp.stack([m, m + 1]).T",
    "interp of angles": "xp.interp(a * 5, b * 4, c, period=-3.0)",
    "polyfit with weights": "xp.polyfit(a, xp.stack([b, c], 1), 2, w=c)",
    "maxima so far": "xp.maximum.accumulate(m, axis=1)",
    "outer difference": "xp.subtract.outer(a, b)",
    "sum of selected": "xp.add.reduce(m, axis=1, where=m > 0, initial=2.0)",
    "bits of all rows": "xp.bitwise_or.reduce(g * 4 + 1, axis=1, keepdims=True)",
    "parity so far": "xp.bitwise_xor.accumulate(i)",
    "bits of everything": "xp.bitwise_and.reduce(g + 2, axis=(0, 1))",
    "bits of nothing": "xp.bitwise_and.reduce(g[:0])",
    "greatest common divisor": "xp.gcd.reduce(i * 6, axis=None)",
    "parity of signs": "xp.logical_xor.reduce(m > 0, 0)",
    "whether any so far": "xp.logical_or.accumulate(m > 1, 1)",
    "mask of a function": "xp.add(a, b, where=a > 0, out=xp.full_like(a, -1.0))",
    "mask of a quotient": "xp.divide(1, m, where=m[0] > 0, out=xp.zeros_like(m))",
    "product of bool": "(m > 0) @ (m.T > 0.5)",
    "product of bool and floats": "[(m > 0) @ m, xp.vecdot(m, m > 0), xp.dot(a * 1j, a > 0)]",
    "sum of products of bool": "[xp.dot(a > 0, b > 0), xp.einsum('ij,kj->ik', m > 0, m > 1)]",
    "sequences in keys": "[m[(0, 2), (1, 0)], m[:, (1, 0)], a[range(1, 5, 2)], a[[0], ][()]]",
    "positions in a list": "xp.searchsorted([-0.5, 0.1, 0.5], xp.concatenate([a, a * 0 + 0.1]))",
    "positions of a list": "xp.searchsorted(a * 0 + 0.1, [0.1, 0.7], 'right')",
    "isin of a list": "xp.isin(a * 0 + 0.1, [0.1])",
    "digits in a list": "xp.digitize(a * 0 + 0.1, [0.1, 0.7])",
    "histogram of a list's bins": "xp.histogram(a * 0 + 0.1, [0, 0.1, 1])[0]",
    "polynomials of lists": "[(p - 0.1) * 1e9 for p in (xp.polyval([0.1], a), xp.polymul(m[0] * 0"
    " + 1, [0.1]), xp.r_[a * 0 + 0.1, 0.1])]",
    "constants of cases": "(xp.piecewise(a, [a > 0], [0.1, 0.1]) - 0.1) * 1e9",
    "slopes at places in a list": "xp.gradient(a[:4], [0.1, 0.2, 0.7, 1.3])",
    "differences with lists": "[xp.diff(a, prepend=[0.1]), xp.ediff1d(a, to_end=[0.1, 0.2])]",
    "slopes at places in integers": "xp.gradient(a[:3], xp.asarray([250, 3, 9], dtype='uint8'))",
    "mean of small integers": "xp.average(i.astype('int8') * 30, weights=i.astype('int8') * 9 + 1)",
    "points in lists": "xp.interp(a, [-1.0, 0.1, 1.0], [0.3, 0.1, 0.2])",
    "sets with lists": "[xp.setdiff1d(i, [1, 2]), xp.union1d(i, [9]), xp.intersect1d([1], i)]",
    "digits of descending bins": "xp.digitize(i, xp.asarray([4, 2, 2, 1]), right=True)",
    "compress as a method": "m.compress([True, False, True], 1) + g.compress(g.ravel() > 0).sum()",
    "take by a list": "m.take([[2, 0], [1, 1]], axis=1)",
    "take of all elements": "xp.take(g, xp.asarray([3, -1])) + g.take(0)",
    "reshape by columns": "m.T.reshape((9, 1), order='F') + g.reshape(-1, order='F')[:9]",
    "reshape of columns": "m.T.reshape(9, order='A')",
    "ravel by columns": "xp.ravel(g, 'F') + g.ravel(order='F') + g.flatten('F')",
    "residuals of a vector": "xp.linalg.lstsq(m[:, :2], a[:3], rcond=None)[1]",
    "residuals of none": "xp.linalg.lstsq(m, a[:3], rcond=None)[1]",
    "einsum of lists": "xp.einsum(m, [3, 7], m, [2, 7], [2, 3])",
    "einsum of lists without a result": "xp.einsum(m, [..., 30], m, [30, 0])",
    "joined in a row": "xp.r_[a, 1:4, 0, b[0]]",
    "joined as columns": "xp.c_[a, b, xp.stack([a, c], 1)]",
    "last in order": "m.T.flat[5:]",
    "percentile of an array": "xp.percentile(a, xp.asarray([5.0, 50.0]))",
}
# Without input arrays: the values are NumPy's, up to the default dtype.
MADE = {
    "logspace": "xp.logspace(0, 3, 7)",
    "derivative of a large integer": "xp.polyder(xp.asarray([2**31 - 1, 3, 4], dtype='int32'))",
    "logspace of base 2": "xp.logspace(0, 3, 4, endpoint=False, base=2.0)",
    "geomspace": "xp.geomspace(1, 1000, 4)",
    "indices": "xp.indices((2, 3))",
    "tril_indices": "xp.tril_indices(3, 1)",
    "triu_indices": "xp.triu_indices(3, 0, 4)",
    "diag_indices": "xp.diag_indices(3)",
    "linspace and its step": "xp.linspace(0, 1, 5, True, True)[0]",
    "mgrid": "xp.mgrid[2:5, 0:3:2]",
    "mgrid of one": "xp.mgrid[-1:1:5j]",
    "ogrid": "list(xp.ogrid[:3, 0:1:0.25])",
    "fftfreq": "xp.fft.fftfreq(9, 0.5)",
    "rfftfreq": "xp.fft.rfftfreq(9, 0.5)",
}


def agree(actual, expected):
    if isinstance(expected, (tuple, list)):
        assert isinstance(actual, (tuple, list)) and len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            agree(one, other)
        return
    got, expected = actual.numpy(), np.asarray(expected)
    assert got.shape == expected.shape and got.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_function_gives_numpys_result(name, where, rng):
    given = {"a": rng.normal(size=9), "b": rng.normal(size=9), "c": rng.normal(size=9)}
    given |= {"i": rng.integers(0, 5, 6), "m": rng.normal(size=(3, 3))}
    given |= {"g": rng.integers(0, 2, (9, 3)), "n": np.array([-0.0, np.nan, np.nan, 4.0])}
    tensors = {key: gt.asarray(one, device=where) for key, one in given.items()}
    with gt.Device(where):
        agree(eval(CASES[name], tensors | {"xp": gt}), eval(CASES[name], given | {"xp": np}))


def test_division_rounds_as_in_pytorch(where, rng):
    x, y = rng.integers(-20, 20, 50), rng.choice([-3, -2, 2, 3], 50)
    for a, b in ((x, y), (x / 4, y)):
        given = [gt.asarray(one, device=where) for one in (a, b)]
        for mode, want in ((None, a / b), ("floor", np.floor(a / b)), ("trunc", np.trunc(a / b))):
            got = gt.div(*given, rounding_mode=mode)
            np.testing.assert_allclose(got.numpy(), want, 1e-6)
            assert mode is None or got.dtype == a.dtype
            assert gt.array_equal(given[0].div(given[1], rounding_mode=mode), got)
    with pytest.raises(ValueError, match="div: rounding_mode: got 'up'; expected None, 'floor' or"):
        gt.div(*given, rounding_mode="up")
    table = gt.asarray(x.reshape(5, 10), device=where)
    assert gt.array_equal(table.select(1, -1), table[:, -1])
    got = gt.cumulative_trapezoid(table, given[0][:10], dim=1).numpy()
    wide = np.diff(x[:10] / 4) * (table.numpy()[:, 1:] + table.numpy()[:, :-1]) / 2
    np.testing.assert_allclose(got, wide.cumsum(1), 1e-6, 1e-5)


@pytest.mark.parametrize("name", MADE)
def test_made_positions_are_numpys(name, where):
    with gt.Device(where):
        agree(eval(MADE[name], {"xp": gt}), eval(MADE[name], {"xp": np}))


def test_writing_functions_change_their_argument_as_in_numpy(where, rng):
    array = rng.normal(size=(3, 4))
    mask, values = array > 0, rng.normal(size=5)
    for text in (
        "xp.copyto(x, v[0])",
        "xp.copyto(x, x * 2, where=mask)",
        "xp.putmask(x, mask, x * 3)",
        "xp.putmask(x, mask, v)",
        "xp.putmask(x, mask, v[2])",
        "xp.putmask(x.T, mask.T, v[:1])",
        "xp.place(x, mask, v)",
        "xp.place(x, mask, v[:1])",
        "xp.place(x.T, mask.T, [2.0, 3.0])",
        "xp.put(x, i, v)",
        "xp.put(x.T, i, v)",
        "xp.put(x, i, v[:2])",
        "xp.put(x, i[:2], v)",
        "xp.put(x, i, v[:0])",
        "xp.put(x, i[:4], [[1.0, 2.0], [3.0, 4.0]])",
        "xp.put(x, [], v)",
        "xp.add.at(x, i % 3, v[0])",
        "xp.subtract.at(x.T, (i % 4, i % 2), v)",
        "xp.add.at(x, (slice(1, None), i % 4), 1)",
        "x.T.flat.__setitem__(slice(1, 6), v)",
    ):
        ours = gt.asarray(array, device=where)
        theirs = array.copy()
        moved = {"mask": gt.asarray(mask, device=where), "v": gt.asarray(values, device=where)}
        index = np.array([0, 3, 11, 5, 7])
        eval(text, moved | {"x": ours, "xp": gt, "i": gt.asarray(index, device=where)})
        eval(text, {"x": theirs, "xp": np, "mask": mask, "v": values, "i": index})
        np.testing.assert_allclose(ours.numpy(), theirs, err_msg=text)


def test_windows_are_views_of_the_tensor(where, rng):
    array = rng.normal(size=(4, 5))
    x = gt.asarray(array, device=where)
    view = np.lib.stride_tricks.sliding_window_view
    for window, axis in (((2, 3), None), (3, 1), ((2, 2), (0, 0))):
        agree(gt.sliding_window_view(x, window, axis), view(array, window, axis))
        agree(view(x, window, axis), view(array, window, axis))
    gt.sliding_window_view(x, 2, 0)[0, 0, 1] = 9
    assert x[1, 0].item() == 9


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "int16", "int64"])
def test_integers_round_to_any_power_of_ten(where, rng, dtype):
    limits = np.iinfo(dtype)
    values = [limits.min, limits.max, limits.max // 2 + 1, limits.max - 5, 0]
    values += rng.integers(limits.min, limits.max, 20, dtype).tolist()
    x = gt.asarray(np.array(values, dtype), device=where)
    for decimals in (0, -1, -2, -3, -5, -17, -18, -19, -20, -30):
        exact = [round(int(one), decimals) % 2**64 for one in values]
        expected = np.array(exact, "uint64").astype(dtype)  # wrapped, like all integers
        np.testing.assert_array_equal(gt.round(x, decimals).numpy(), expected)


def test_sums_at_places_count_each_repetition(where, rng):
    array, source = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    rows, grid = rng.integers(0, 4, 6), rng.integers(0, 4, (6, 3))
    x, moved = gt.asarray(array, device=where), gt.asarray(source, device=where)
    expected = array.copy()
    np.add.at(expected, rows, 2 * source)
    index = gt.asarray(rows, device=where)
    check_same(gt.index_add(x, 0, index, moved, alpha=2), expected, 1e-12)
    expected = array.copy()
    np.add.at(expected, (grid, np.arange(3)), source)
    check_same(x.scatter_add(0, gt.asarray(grid, device=where), moved), expected, 1e-12)
    whole = gt.asarray([[1, 2, 3]], device=where)
    assert gt.scatter_add(whole, 1, gt.asarray([[0, -1, 2]], device=where), whole).tolist() == [
        [2, 2, 8]
    ]
    with pytest.raises(ValueError, match="scatter_add: index, source: got .*; expected"):
        gt.scatter_add(x, 0, index, moved)


def test_impossible_arguments_are_named(where):
    x = gt.ones(3, device=where)
    for call, message in (
        (lambda: gt.interp(x, x, x, period=0), "interp: period: got 0"),
        (lambda: gt.polyfit(x, x, 1, w=x[:2]), "polyfit: w: got shape"),
        (lambda: gt.max(x, where=x > 0), "max: initial: got where without initial"),
        (lambda: gt.sum(x, where=x), "sum: where: got float32; expected a Tensor of bool"),
        (
            lambda: gt.sum(x, where=x[:2] > 0),
            r"sum: where: got shape \(2,\); expected a shape that",
        ),
        (lambda: gt.r_["0,2", x], "r_: key: got '0,2'; expected slices"),
        (lambda: gt.mgrid[3], "mgrid: key: got int; expected slices"),
        (lambda: np.power.at(x, 0, 2), "np.power.at: got a Tensor"),
        (lambda: gt.interp(x, x, x[:2]), "interp: fp: got"),
        (lambda: gt.convolve(x, x, "most"), "convolve: mode: got 'most'; expected"),
        (lambda: gt.convolve(x, x[:0]), "convolve: x: got"),
        (lambda: gt.select([], []), "select: conditions: got"),
        (lambda: gt.geomspace(0, 1), "geomspace: start, stop: got"),
        (lambda: gt.gradient(x, edge_order=3), "gradient: edge_order: got 3; expected 1 or 2"),
        (lambda: gt.percentile(x, -3), "percentile: q: got -3; expected 0 to 100"),
        (lambda: gt.linalg.matrix_rank(gt.diag(x), 1, rtol=1), "matrix_rank: tol: got both"),
        (lambda: gt.histogram(x, [3, 2, 1]), "histogram: bins: got .3, 2, 1.; expected ascending"),
        (lambda: gt.histogram(x, "a"), "histogram: bins: got 'a'; expected 1 or more"),
        (lambda: gt.fft.fft(x, -1), "fft: n: got -1; expected 1 or more"),
        (lambda: gt.place(x, x > 0, []), "place: values: got no elements; expected"),
        (lambda: gt.block([]), "block: arrays: got a list without elements; expected tensors in"),
        (lambda: gt.indices(3), "indices: dimensions: got int; expected a sequence of ints"),
        (lambda: x == [1, [2, 3]], "asarray: obj: got sequences of unequal lengths; expected"),
        (lambda: gt.allclose(x, {1}), "allclose: argument 2: got set; expected a Tensor"),
        (lambda: gt.ix_(gt.ones((2, 2), device=where)), "ix_: vectors: got"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    for call, message in (
        (
            lambda: gt.manual_seed("a"),
            "seed: got str; expected an int, ints, a SeedSequence or None",
        ),
        (lambda: gt.random.permutation("a", device=where), "permutation: n: got str; expected an"),
        (
            lambda: gt.linalg.matrix_power(gt.diag(x), 2.5),
            "matrix_power: n: got float; expected an",
        ),
    ):
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_statistics_of_16_bits_do_not_overflow(where, rng, dtype):
    """Their sums exceed float16's 65,504 while their results do not."""
    x = gt.asarray(rng.normal(100, 50, (3, 900)).astype("float32"), device=where).astype(dtype)
    a, tolerance = x.numpy().astype(float), 2**-9 if dtype == "float16" else 2**-6
    pairs = [
        (gt.nanmean(x, 1), a.mean(1)),
        (gt.nanvar(x, 1), a.var(1)),
        (gt.nanstd(x, 1, ddof=1), a.std(1, ddof=1)),
        (gt.average(x, 1, weights=x), np.average(a, 1, weights=a)),
        (gt.cov(x), np.cov(a)),
        (gt.corrcoef(x), np.corrcoef(a)),
        (gt.dist(x[0], x[1]), np.linalg.norm(a[0] - a[1])),
        (gt.cdist(x, x[1:]), np.linalg.norm(a[:, None] - a[None, 1:], axis=-1)),
        (gt.renorm(x, 2, 0, 9.0), a * (9 / np.linalg.norm(a, axis=1, keepdims=True))),
    ]
    for got, want in pairs:
        assert got.dtype == x.dtype
        scale = np.abs(want).max()
        np.testing.assert_allclose(got.numpy().astype(float), want, 0, tolerance * scale)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: gt.unravel_index(x + 6, (2, 3)), IndexError, "index"),
        (lambda x: gt.ravel_multi_index((x, x + 3), (2, 3)), IndexError, "index"),
        (lambda x: gt.choose(x + 1, (x, x)), IndexError, "index"),
        (lambda x: gt.one_hot(x + 1, 2), IndexError, "index"),
        (lambda x: gt.one_hot(x - 1, 2), IndexError, "index"),
        (lambda x: gt.one_hot(x * 0 - 1), IndexError, "one_hot: x: got -1; expected 0 or more in"),
        (lambda x: gt.digitize(x, [1, 3, 2]), ValueError, "digitize: bins: got 3 edges in no or"),
        (lambda x: gt.polyfit(x, x, -1), ValueError, "polyfit: deg: got -1; expected an int of 0"),
        (lambda x: gt.partition(x, 2), ValueError, "partition: kth: got 2; expected an int below"),
        (lambda x: gt.random.normal("b"), TypeError, "normal: loc: got str; expected a number"),
    ],
)
def test_values_out_of_range_are_refused(where, call, error, message):
    x = gt.asarray([0, 1], device=where)
    with pytest.raises(error, match=message), gt.checked_indices():
        call(x)
    assert gt.choose(x, (x + 5, x + 7)).tolist() == [5, 8]
    assert [one.tolist() for one in gt.unravel_index(x + 4, (2, 3))] == [[1, 1], [1, 2]]


@pytest.mark.parametrize("is_included", [True, False])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin"])
def test_elements_of_one_place_are_reduced(where, rng, name, is_included):
    joins = {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply}
    join = joins.get(name, np.add)
    for dtype in ("float32", "int64"):
        x, source = (rng.integers(-9, 10, (4, size)).astype(dtype) for size in (5, 12))
        if dtype == "float32" and name in ("amax", "amin"):
            source[0, :3] = np.nan
        index = rng.integers(0, 4, 12)
        want, count = x.copy(), np.zeros(5, int) + is_included
        for place, column in zip(index, source.T, strict=True):
            is_first = not is_included and not count[place]
            want[:, place] = column if is_first else join(want[:, place], column)
            count[place] += 1
        if name == "mean":
            want = want / np.maximum(count, 1)
            want = want if dtype == "float32" else np.floor(want)
        given = [gt.asarray(one, device=where) for one in (x, index, source)]
        spread = gt.broadcast_to(given[1], source.shape)
        calls = ((gt.index_reduce, given[1]), (gt.scatter_reduce, spread))
        for function, places in calls:
            got = function(given[0], 1, places, given[2], name, include_self=is_included)
            assert got.dtype == x.dtype
            np.testing.assert_allclose(got.numpy(), want, 1e-6)
    if name in ("amax", "amin") and is_included:
        a, ufunc = given[0].numpy(), getattr(np, name.replace("a", "", 1) + "imum")
        ufunc.at(a, ([0, 0, -1], 1), [50, -50, 60])
        getattr(gt, ufunc.__name__).at(
            given[0], ([0, 0, -1], 1), gt.asarray([50, -50, 60], device=where)
        )
        assert given[0].tolist() == a.tolist()


def test_where_as_a_method_keeps_the_tensor(where):
    x = gt.asarray([1.0, 2.0, 3.0], device=where)
    assert x.where(x > 1, x * 10).tolist() == [10, 2, 3]
    with pytest.raises(TypeError, match="where: condition: got float32; expected bool"):
        (x > 1).where(x, x)


def test_reductions_of_places_name_wrong_arguments(where):
    x, index = gt.zeros(2, device=where), gt.asarray([0, 1], device=where)
    for call, message in (
        (lambda: gt.scatter_reduce(x, 0, index, x, "any"), "reduce: got 'any'; expected one of"),
        (lambda: gt.index_reduce(x, 0, index, gt.zeros(3, device=where), "sum"), "source: got sha"),
        (lambda: gt.scatter_reduce(x, 0, x, x, "sum"), "index: got float32 of 1 dimensions"),
        (lambda: x.index_reduce_(0, index, x > 0, "sum"), "dtype of source: got bool; expected"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    assert x.tolist() == [0.0, 0.0]
