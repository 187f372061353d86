"""Programs of several fields as users of NumPy and CuPy port them, each a function over ``xp``.

``c`` makes an array of the library from one of NumPy.
"""

import numpy as np
import pytest

import gputensor as gt

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@pytest.fixture
def data(rng):
    return {
        "a": rng.normal(size=(6, 8)), "v": rng.normal(size=64), "k": rng.integers(0, 10, 40),
        "image": rng.random((16, 20)),
    }  # fmt: skip


@program
def envelope_of_a_signal(xp, c, d):
    x = c(d["v"])
    share = xp.zeros(64)
    share[0], share[1:32], share[32] = 1, 2, 1
    smooth = xp.convolve(x, xp.asarray(xp.hamming(9), dtype=x.dtype), "same")[::-1][::2]
    crossings = xp.where(xp.diff(xp.signbit(x)))[0]
    return xp.abs(xp.fft.ifft(xp.fft.fft(x) * share)), smooth, crossings


@program
def edges_of_an_image(xp, c, d):
    p = xp.pad(c(d["image"]), 1, mode="reflect")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    windows = xp.lib.stride_tricks.sliding_window_view(p, (3, 3))
    return xp.hypot(gx, gy), xp.rad2deg(xp.arctan2(gy, gx)), xp.median(windows, axis=(-2, -1))


@program
def equalized_histogram(xp, c, d):
    image = (c(d["image"]) * 255).astype(xp.uint8)
    counts, _ = xp.histogram(image.flatten(), 256, [0, 256])
    total = counts.cumsum()
    table = (total - total.min()) * 255 // (total.max() - total.min())
    return table.astype("uint8")[image], counts


@program
def threshold_of_otsu(xp, c, d):
    counts, ends = xp.histogram(c(d["image"]), bins=32)
    middle = (ends[:-1] + ends[1:]) / 2
    below, above = xp.cumsum(counts), xp.cumsum(counts[::-1])[::-1]
    m1 = xp.cumsum(counts * middle) / below
    m2 = (xp.cumsum((counts * middle)[::-1]) / above[::-1])[::-1]
    return (middle[xp.argmax(below[:-1] * above[1:] * (m1[:-1] - m2[1:]) ** 2)],)


@program
def connected_areas(xp, c, d):
    mask = c(d["image"]) > 0.6
    label = xp.where(mask, xp.arange(mask.size).reshape(mask.shape) + 1, 0)
    while True:
        p = xp.pad(label, 1)
        new = xp.maximum.reduce(
            [p[1:-1, 1:-1], p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]
        )
        new = xp.where(mask, new, 0)
        if (new == label).all():
            return label, xp.unique(label)
        label = new


@program
def values_between_pixels(xp, c, d):
    image, v = c(d["image"]), xp.abs(c(d["v"]))
    y, x = xp.clip(v[:10] * 7, 0, 14), xp.clip(v[10:20] * 9, 0, 18)
    i, j = xp.floor(y).astype(int), xp.floor(x).astype(int)
    dy, dx = y - i, x - j
    upper = image[i, j] * (1 - dx) + image[i, j + 1] * dx
    return (upper * (1 - dy) + (image[i + 1, j] * (1 - dx) + image[i + 1, j + 1] * dx) * dy,)


@program
def ranks_and_resampling(xp, c, d):
    v, k = c(d["v"]), c(d["k"])
    ranks = v[:30].argsort().argsort(), v[30:60].argsort().argsort()
    means = v[k.reshape(4, 10)].mean(axis=1)
    t = (v[:30].mean() - v[30:].mean()) / xp.sqrt(v[:30].var(ddof=1) / 30 + v[30:].var(ddof=1) / 34)
    return xp.corrcoef(*ranks), xp.percentile(means, [2.5, 97.5]), t


@program
def density_of_a_sample(xp, c, d):
    x = c(d["v"])
    grid = xp.linspace(-3, 3, 20, dtype=x.dtype)[:, xp.newaxis]
    width = 1.06 * x.std() * len(x) ** (-1 / 5)
    sums = xp.exp(-0.5 * ((grid - x[None, :]) / width) ** 2).sum(axis=1)
    steps = xp.interp(grid[:, 0], xp.sort(x), xp.arange(1, len(x) + 1) / len(x))
    return sums / (len(x) * width * np.sqrt(2 * np.pi)), steps


@program
def expected_counts(xp, c, d):
    seen = xp.abs(c(d["a"][:3, :4])) * 10
    expected = xp.outer(seen.sum(1), seen.sum(0)) / seen.sum()
    table = xp.zeros((3, 3), dtype=int)
    truth, guess = c(d["k"][:20] % 3), c(d["k"][20:] % 3)
    xp.add.at(table, (truth, guess), 1)
    counts = xp.bincount(truth * 3 + guess, minlength=9).reshape(3, 3)
    return expected, ((seen - expected) ** 2 / expected).sum(), table, counts, table.sum(axis=1)


@program
def conjugate_gradients(xp, c, d):
    m, b = c(d["a"] @ d["a"].T + 6 * np.eye(6)), c(d["v"][:6])
    x = xp.zeros_like(b)
    rest = b - m @ x
    way, size = rest.copy(), rest @ rest
    for _ in range(6):
        step = size / (way @ m @ way)
        x += step * way
        rest -= step * (m @ way)
        size, before = rest @ rest, size
        if xp.sqrt(size) < 1e-12:
            break
        way = rest + (size / before) * way
    return x, m @ x


@program
def projection_onto_a_simplex(xp, c, d):
    v = c(d["v"][:9])
    ordered = xp.sort(v)[::-1]
    total = xp.cumsum(ordered)
    last = xp.nonzero(ordered * xp.arange(1, len(ordered) + 1) > total - 1)[0][-1]
    return (xp.maximum(v - (total[last] - 1.0) / (last + 1.0), 0),)


@program
def steps_of_newton(xp, c, d):
    x = c(np.array([1.0, 1.5]))
    for _ in range(8):
        f = xp.array([x[0] ** 2 + x[1] ** 2 - 4, x[0] - x[1]])
        slope = xp.array([[2 * x[0], 2 * x[1]], [x[0] * 0 + 1, x[0] * 0 - 1]])
        x = x - xp.linalg.solve(slope, f)
    return (x,)


@program
def forces_between_bodies(xp, c, d):
    p = c(d["a"][:, :3])
    away = p[:, None] - p[None]
    inverse = ((away**2).sum(-1) + 0.01) ** -1.5
    xp.fill_diagonal(inverse, 0.0)
    return (-(away * inverse[..., None]).sum(1),)


@program
def orbit_of_lorenz(xp, c, d):
    state = c(np.array([1.0, 1.0, 1.0]))
    track = xp.empty((10, 3), dtype=state.dtype)
    for i in range(10):
        x, y, z = state
        state = state + 0.01 * xp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        track[i] = state
    return track, track[::-1][:, 0]


@program
def rotations_of_quaternions(xp, c, d):
    q = c(d["a"][:, :4].copy())
    q /= xp.linalg.norm(q, axis=-1, keepdims=True)
    w, x, y, z = xp.moveaxis(q, -1, 0)
    return (xp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], axis=-1),)


@program
def energy_of_spins(xp, c, d):
    spins = xp.where(c(d["image"]) > 0.5, 1, -1)
    around = sum(xp.roll(spins, step, axis) for step in (1, -1) for axis in (0, 1))
    return spins * around, (spins * around).sum()


@program
def distances_in_a_graph(xp, c, d):
    near = c(np.abs(d["a"][:6, :6]) > 1)
    seen = xp.zeros(6, dtype=bool)
    seen[0] = True
    front, level, step = seen.copy(), xp.full(6, -1), 0
    level[0] = 0
    while front.any():
        step += 1
        front = (near & front[:, None]).any(0) & ~seen
        seen |= front
        level[front] = step
    return level, seen


@program
def rows_of_a_sparse_matrix(xp, c, d):
    starts, columns = c(np.array([0, 2, 5, 5, 9])), c(d["k"][:9])
    products = c(d["v"][:9]) * c(d["v"][:10])[columns]
    row = xp.repeat(xp.arange(4), xp.diff(starts))
    out = xp.zeros(4)
    xp.add.at(out, row, products)
    return out, xp.bincount(row, weights=products, minlength=4)


@program
def spectrum_of_a_graph(xp, c, d):
    weights = c(np.abs(d["a"][:, :6]))
    weights = (weights + weights.T) / 2
    degree = weights.sum(1)
    scale = xp.diag(1 / xp.sqrt(degree))
    return xp.linalg.eigvalsh(scale @ (xp.diag(degree) - weights) @ scale), degree


@program
def weights_of_words(xp, c, d):
    words = c(d["k"].reshape(4, 10))
    counts = xp.stack([xp.bincount(row, minlength=10) for row in words])
    pairs = xp.zeros((10, 10), dtype=xp.int64)
    xp.add.at(pairs, (words.ravel()[:-1], words.ravel()[1:]), 1)
    letters, times = xp.unique(xp.frombuffer(b"the quick brown fox", dtype=xp.uint8),
                               return_counts=True)  # fmt: skip
    order = xp.argsort(-times, kind="stable")
    shares = pairs / pairs.sum(axis=1, keepdims=True).clip(1)
    return counts * xp.log(5 / (1 + (counts > 0).sum(0))), shares, letters[order], times[order]


@program
def likely_path(xp, c, d):
    moves, seen = xp.abs(c(d["a"][:4, :4])), xp.abs(c(d["a"][:4, 2:]))
    score, back = seen[:, 0], []
    for t in range(1, 6):
        sums = score[:, None] + moves
        back.append(sums.argmax(0))
        score = sums.max(0) + seen[:, t]
    path = [score.argmax()]
    for row in reversed(back):
        path.append(row[path[-1]])
    return xp.stack(path[::-1]), score


@program
def training_of_a_classifier(xp, c, d):
    x, y = c(d["a"]), c(d["k"][:6] % 3)
    w, b = c(d["a"].T[:, :3] * 0.1), xp.zeros((1, 3))
    for _ in range(5):
        score = x @ w + b
        p = xp.exp(score - score.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[range(6), y] -= 1
        w -= x.T @ p / 6
        b -= p.sum(axis=0, keepdims=True) / 6
    return w, b, xp.mean((x @ w + b).argmax(1) == y)


@program
def steps_of_adam(xp, c, d):
    x = c(d["v"][:5].copy())
    m, v = xp.zeros_like(x), xp.zeros_like(x)
    for t in range(1, 6):
        slope = 2 * x
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        x -= 0.1 * (m / (1 - 0.9**t)) / (xp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    size = xp.sqrt(sum((one**2).sum() for one in (x, m)))
    return x, xp.minimum(1.0, 1.0 / (size + 1e-6)) * x


@program
def orthogonal_columns(xp, c, d):
    q = c(d["a"].T.copy())
    for i in range(q.shape[1]):
        for j in range(i):
            q[:, i] -= (q[:, j] @ q[:, i]) * q[:, j]
        q[:, i] /= xp.linalg.norm(q[:, i])
    u, s, vt = xp.linalg.svd(c(d["a"]), full_matrices=False)
    return q, s, u @ xp.diag(s) @ vt, q.T @ q


@program
def steady_state(xp, c, d):
    p = xp.abs(c(d["a"][:4, :4]))
    p /= p.sum(axis=1, keepdims=True)
    values, vectors = xp.linalg.eig(p.T)
    best = xp.real(vectors[:, xp.argmax(xp.real(values))])
    return xp.linalg.matrix_power(p, 60)[0], best / best.sum()


@program
def writes_through_views(xp, c, d):
    x = c(d["a"].copy())
    x[1::2, ::-1] *= -1
    x.T[0] = 7
    x.ravel()[3] = 99
    x.reshape(-1)[::5] = 0
    x[-1, -2:] = [1, 2]
    x[x > 50] -= 50
    xp.negative(x, out=x)
    x[:, 1], x[:, 2] = x[:, 2].copy(), x[:, 1].copy()
    x[...] += xp.arange(8)
    x[[0, 1]] = x[[1, 0]]
    x[[0, 2], [1, 3]] += 10
    x[:, [0, 5]] *= 2
    twice = xp.zeros(5)
    twice[c(np.array([0, 0, 1]))] += 1
    xp.subtract.at(twice, c(np.array([0, 0, 1])), 2)
    xp.maximum.at(twice, [4], 7)
    return x, twice, x[xp.ix_([0, 2], [1, 3, 5])], x[xp.array([0, 1])[:, None], [2, 3]]


@program
def groups_of_equal_keys(xp, c, d):
    keys, v = c(d["k"] % 4), c(d["v"][:40])
    order = xp.argsort(keys, kind="stable")
    first = xp.flatnonzero(xp.concatenate([[True], xp.diff(keys[order]) != 0]))
    rows = c(d["k"].reshape(20, 2))
    return (
        xp.add.reduceat(v[order], first), xp.maximum.reduceat(v[order], first),
        xp.unique(rows, axis=0), rows[xp.lexsort((rows[:, 1], rows[:, 0]))],
        xp.eye(4)[keys], (keys[:, None] == xp.arange(4)).astype(float),
    )  # fmt: skip


@program
def bits_of_integers(xp, c, d):
    k = c(d["k"].astype("uint32"))
    return (
        k ^ (k >> 1), k & (k - 1), (k[:, None] >> xp.arange(4, dtype="uint32")) & 1,
        xp.packbits((k[:8] & 1).astype(bool)), xp.bitwise_or.accumulate(k[:5]),
        xp.bitwise_xor.reduce(k), k.astype("uint8")[:8].view(xp.uint16), ~k.astype("int8"),
        xp.gcd.reduce(k[k > 0]), xp.lcm.outer(k[:3] + 1, k[3:6] + 1), divmod(k, 4)[1],
    )  # fmt: skip


@program
def products_with_ellipses(xp, c, d):
    t = c(d["v"][:24].reshape(2, 3, 4))
    return (
        xp.einsum("...ij->...ji", t), xp.einsum("...j,...j", t, t), xp.einsum("aab->b", t[:, :2]),
        xp.einsum("a...c,c->a...", t, t[0, 0]), xp.einsum(t, [0, 1, 2], [2, 0]),
        xp.tensordot(t, t, ([0, 2], [0, 2])), xp.matmul(t, t.swapaxes(1, 2)), xp.vecdot(t, t),
        xp.multiply.outer(t[0, 0], t[1, 1]), xp.add.reduce(t, axis=(0, 2), keepdims=True),
    )  # fmt: skip


@program
def missing_values(xp, c, d):
    x = c(np.where(d["a"] > 1, np.nan, d["a"]))
    is_missing = xp.isnan(x)
    filled = xp.where(is_missing, xp.nanmean(x, axis=0), x)
    x[is_missing] = 0
    return x, is_missing.sum(axis=1), xp.nanstd(filled, axis=1, ddof=1), xp.nanmax(filled)


@program
def arrays_without_elements(xp, c, d):
    e = c(np.zeros((0, 3)))
    return (
        e.sum(), e.sum(0), xp.prod(e), e.T @ e, xp.concatenate([e, xp.ones((2, 3))]), e[[]],
        xp.sort(e, 0), xp.cumsum(e[:, 0]), xp.unique(e), e.any(), e.all(), xp.argsort(e, 0),
        xp.stack([e, e]), xp.nonzero(e > 0)[1], xp.einsum("ij,ik->jk", e, e), e.reshape(3, 0),
    )  # fmt: skip


@program
def flow_on_a_lattice(xp, c, d):
    cx, cy = [0, 1, 0, -1, 0, 1, -1, -1, 1], [0, 0, 1, 0, -1, 1, 1, -1, -1]
    weights = c(np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4))
    f = 1 + xp.stack([c(np.roll(d["image"], i)) for i in range(9)])
    for _ in range(3):
        for i in range(9):
            f[i] = xp.roll(f[i], (cx[i], cy[i]), axis=(0, 1))
        density = f.sum(0)
        ux = xp.tensordot(xp.asarray(cx), f, axes=(0, 0)) / density
        uy = sum(cy[i] * f[i] for i in range(9)) / density
        cu = xp.stack([cx[i] * ux + cy[i] * uy for i in range(9)])
        rest = 1 + 3 * cu + 4.5 * cu**2 - 1.5 * (ux**2 + uy**2)
        f += (weights[:, None, None] * density * rest - f) / 0.8
    return density, ux, uy


@program
def summary_of_lists(xp, c, d):
    scores = [float(one) for one in d["v"][:12]]
    return (
        xp.mean(scores), xp.std(scores, ddof=1), xp.max(scores), xp.percentile(scores, [5, 95]),
        xp.median(scores), xp.cumsum(scores), xp.argsort(scores), xp.diff(scores, 2),
        xp.histogram(scores, 4)[0], xp.unique([3, 1, 3]), xp.average(scores, weights=[1, 2] * 6),
        xp.outer([1, 2], [3, 4]), xp.dot(c(d["v"][:12]), scores), xp.linalg.norm([3.0, 4.0]),
        xp.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0]), xp.fft.fft([1.0, 0.0, 2.0]),
        xp.sum([c(d["a"][0]), c(d["a"][1])]), xp.meshgrid([1, 2], [3.0, 4.0])[1],
        xp.searchsorted([1, 3, 5], [2, 5], "right"), xp.isin([1, 2, 3], [2]),
    )  # fmt: skip


@program
def weighted_income(xp, c, d):
    x, w = c(d["a"]), c(np.abs(d["a"]).round(1) + 0.1)
    options = {"method": "inverted_cdf", "weights": w}
    order = x.ravel().argsort(0, "stable")
    share = xp.cumsum(w.ravel()[order]) / w.sum()
    return (
        xp.quantile(x, [0, 0.3, 0.5, 1], **options), xp.percentile(x, 25, axis=1, **options),
        xp.nanquantile(x, 0.7, axis=0, keepdims=True, **options), share,
        xp.quantile(x, 0.4, axis=1, method="inverted_cdf", weights=w[0]),
        xp.percentile(x, [10, 90], method="hazen", axis=0), xp.divide.accumulate(x, axis=1),
    )  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_of_a_field_gives_numpys_values(where, data, name):
    with gt.Device(where):
        ours = PROGRAMS[name](gt, gt.asarray, data)
    theirs = PROGRAMS[name](np, np.array, data)
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == np.shape(other)
        assert one.dtype.kind == np.asarray(other).dtype.kind
        np.testing.assert_allclose(one.numpy(), other, rtol=2e-5, atol=2e-5)
