"""Images sampled at places of a grid, on every device, against loops over elements in float64."""

import itertools

import numpy as np
import pytest

import gputensor as gt


def moved(at, extent, mode, align_corners):
    """A position moved into an axis, mirrored at one edge at a time."""
    low, high = (0, extent - 1) if align_corners else (-0.5, extent - 0.5)
    while mode == "reflection" and not low <= at <= high:
        at = low if low == high else 2 * low - at if at < low else 2 * high - at
    return min(max(at, 0), extent - 1)


def tap(distance, mode, a=-0.75):
    d = abs(distance)
    if mode == "bilinear":
        return max(0, 1 - d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0


def value(image, places, mode, padding, align_corners):
    """The channels of an image (channels, ...) at one place, in elements."""
    extents = image.shape[1:]

    def element(at):
        if padding == "zeros" and not all(0 <= i < n for i, n in zip(at, extents, strict=True)):
            return 0
        inside = [moved(i, n, padding, align_corners) for i, n in zip(at, extents, strict=True)]
        return image[(slice(None), *(round(i) for i in inside))]

    if mode != "bicubic" and padding != "zeros":
        places = [moved(i, n, padding, align_corners) for i, n in zip(places, extents, strict=True)]
    if mode == "nearest":
        return element([round(i) for i in places])
    reach = range(-1, 3)
    total = 0
    for steps in itertools.product(reach, repeat=len(places)):
        at = [int(np.floor(i)) + step for i, step in zip(places, steps, strict=True)]
        weight = np.prod([tap(i - j, mode) for i, j in zip(places, at, strict=True)])
        if weight:
            total = total + weight * element(at)
    return total


def sampled(x, grid, mode, padding, align_corners):
    out = np.zeros((*grid.shape[:-1], x.shape[1]))
    for place in np.ndindex(grid.shape[:-1]):
        at = (grid[place][::-1] + 1) / 2
        extents = np.array(x.shape[2:])
        at = at * (extents - 1) if align_corners else at * extents - 0.5
        out[place] = value(x[place[0]], list(at), mode, padding, align_corners)
    return np.moveaxis(out, -1, 1)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(where, mode, padding, align_corners, rng):
    for ndim in (2,) if mode == "bicubic" else (2, 3):
        x = rng.standard_normal((2, 3, *rng.integers(1, 6, ndim)))
        grid = rng.uniform(-2.5, 2.5, (2, *rng.integers(1, 4, ndim), ndim))
        want = sampled(x, grid, mode, padding, align_corners)
        t, places = gt.asarray(x, device=where), gt.asarray(grid, device=where)
        got = gt.grid_sample(t, places, mode, padding, align_corners)
        np.testing.assert_allclose(got.numpy(), want, 0, 1e-9)
    if mode == "bilinear":
        short = gt.grid_sample(t.astype("float16"), places, mode, padding, align_corners)
        # Two roundings by 2**-11, of elements below 6 and of their mean.
        np.testing.assert_allclose(short.numpy(), want, 0, 2**-6)
        assert short.dtype == np.float16


def resampled(line, m, mode, align_corners, antialias):
    n = len(line)
    out = np.zeros((m, *line.shape[1:]))
    for i in range(m):
        step = (n - 1) / max(m - 1, 1) if align_corners else n / m
        place = i * step if align_corners and not antialias else (i + 0.5) * step - 0.5
        stretch = min(1 / step, 1) if antialias and step else 1
        near = range(-20, n + 20) if not antialias else range(n)
        weights = [tap((place - j) * stretch, mode, -0.5 if antialias else -0.75) for j in near]
        rows = [line[min(max(j, 0), n - 1)] for j in near]
        total = sum(w * row for w, row in zip(weights, rows, strict=True))
        out[i] = total / sum(weights)
    return out


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolation_by_neighbours(where, mode, antialias, rng):
    for align_corners in (False, True):
        sizes = [int(n) for n in rng.integers(2, 12, 2)]
        x = rng.standard_normal((2, 3, *rng.integers(2, 9, 2)))
        want = np.moveaxis(x, (2, 3), (0, 1))
        want = resampled(want, sizes[0], mode, align_corners, antialias)
        want = resampled(want.swapaxes(0, 1), sizes[1], mode, align_corners, antialias)
        how = {"mode": mode, "align_corners": align_corners, "antialias": antialias}
        for dtype, bound in (("float64", 1e-9), ("float16", 2**-6)):
            t = gt.asarray(x, device=where).astype(dtype)
            got = gt.interpolate(t, tuple(sizes), **how)
            assert got.dtype == dtype
            # Cubic weights sum to less than 2 in size along each axis; the elements are below 6.
            np.testing.assert_allclose(got.numpy(), np.moveaxis(want, (1, 0), (2, 3)), 0, 4 * bound)
    area = gt.interpolate(t, tuple(sizes), mode="area")
    assert gt.array_equal(area, gt.adaptive_avg_pool2d(t, tuple(sizes)))


def test_places_that_are_not_numbers_are_safe(where):
    x = gt.ones((1, 1, 2, 2), device=where)
    grid = gt.asarray([[[[np.nan, 0.0], [np.inf, 0.0], [-1e30, 0.0]]]], device=where)
    for mode, padding in itertools.product(
        ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    ):
        assert gt.grid_sample(x, grid, mode, padding).numpy().shape == (1, 1, 1, 3)


@pytest.mark.parametrize("align_corners", [False, True])
def test_affine_grid(where, align_corners, rng):
    for ndim in (2, 3):
        theta, extents = rng.standard_normal((2, ndim, ndim + 1)), tuple(rng.integers(2, 6, ndim))
        size = (2, 1, *(int(n) for n in extents))
        got = gt.affine_grid(gt.asarray(theta, device=where), size, align_corners).numpy()
        for place in np.ndindex(2, *extents):
            at = np.array(place[1:])
            count = np.array(extents)
            line = at / (count - 1) if align_corners else (at + 0.5) / count
            want = theta[place[0]] @ [*(2 * line - 1)[::-1], 1]
            np.testing.assert_allclose(got[place], want, 0, 1e-12)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, g: gt.grid_sample(x, g, "cubic"), "grid_sample: mode: got 'cubic'"),
        (lambda x, g: gt.grid_sample(x, g, padding_mode="edge"), "grid_sample: padding_mode: got"),
        (lambda x, g: gt.grid_sample(x[0], g), r"grid_sample: shape of grid: got \(1, 4, 4, 2\)"),
        (lambda x, g: gt.grid_sample(x, g[..., :1]), "grid_sample: shape of grid: got"),
        (lambda x, g: gt.grid_sample(x[0, 0], g), r"grid_sample: shape of x: got \(3, 4\)"),
        (lambda x, g: gt.interpolate(x, 2, antialias=True), "interpolate: antialias: got True"),
        (lambda x, g: gt.affine_grid(x, (1, 1, 2, 2)), "affine_grid: shape of theta: got"),
    ],
)
def test_arguments_that_do_not_fit(call, text):
    x, grid = gt.ones((1, 2, 3, 4), device="host"), gt.zeros((1, 4, 4, 2), device="host")
    with pytest.raises(ValueError, match=text):
        call(x, grid)
    with pytest.raises(TypeError, match="grid_sample: x: got int64; expected a floating-point"):
        gt.grid_sample(x.astype("int64"), grid)
