"""Small programs in NumPy's idioms, each a function over ``xp``, give NumPy's values and shapes."""

import math

import numpy as np
import pytest

import gputensor as gt

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def data(*shape):
    return np.random.default_rng(5).standard_normal(shape)


@program
def clusters(xp):
    x = xp.asarray(data(30, 2))
    centres = x[:3].copy()
    for _ in range(5):
        label = ((x[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
        for k in range(3):
            if (label == k).any():
                centres[k] = x[label == k].mean(0)
    return centres, label


@program
def shortest_paths(xp):
    d = xp.asarray(np.where(data(6, 6) > 0, np.abs(data(6, 6)), np.inf)).copy()
    xp.fill_diagonal(d, 0)
    for k in range(6):
        d = xp.minimum(d, d[:, k, None] + d[None, k, :])
    return d, xp.isinf(d).any()


@program
def mandelbrot(xp):
    y, x = xp.ogrid[-1.4:1.4:8j, -2:0.8:9j]
    c = z = x + y * 1j
    steps = 20 + xp.zeros(z.shape, dtype=int)
    for i in range(20):
        z = z**2 + c
        is_out = z * xp.conj(z) > 4
        steps[is_out & (steps == 20)] = i
        z[is_out] = 2
    return (steps,)


@program
def sieve(xp):
    is_prime = xp.ones(50, dtype=bool)
    is_prime[:2] = False
    for i in range(2, 8):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    return xp.flatnonzero(is_prime), xp.nonzero(is_prime)[0].sum()


@program
def edit_distance(xp):
    one, other = [1, 2, 3, 4, 2], [2, 3, 3, 2]
    d = xp.zeros((6, 5), dtype=int)
    d[:, 0], d[0, :] = xp.arange(6), xp.arange(5)
    for i in range(1, 6):
        for j in range(1, 5):
            change = d[i - 1, j - 1] + (one[i - 1] != other[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, change)
    return (d,)


@program
def kalman_filter(xp):
    x, p = xp.zeros((2, 1), dtype="f8"), xp.eye(2, dtype="f8")
    f, h = xp.asarray([[1.0, 1], [0, 1]], dtype="f8"), xp.asarray([[1.0, 0]], dtype="f8")
    for z in [1.0, 2.1, 2.9, 4.2]:
        x, p = f @ x, f @ p @ f.T + 0.01 * xp.eye(2, dtype="f8")
        gain = p @ h.T @ xp.linalg.inv(h @ p @ h.T + 0.1)
        x, p = x + gain @ (z - h @ x), (xp.eye(2, dtype="f8") - gain @ h) @ p
    return x, p


@program
def nearest_neighbours(xp):
    x, y, label = xp.asarray(data(20, 3)), xp.asarray(data(5, 3) / 2), xp.arange(20) % 3
    distance = xp.sqrt(((y[:, None, :] - x) ** 2).sum(-1))
    near = xp.sort(xp.argsort(distance, axis=1)[:, :3], axis=1)
    votes = xp.apply_along_axis(lambda row: xp.bincount(row, minlength=3), 1, label[near])
    return near, votes.argmax(1)


@program
def run_lengths(xp):
    a = xp.asarray([1, 1, 2, 2, 2, 3, 1, 1])
    starts = xp.concatenate([xp.asarray([0]), xp.flatnonzero(xp.diff(a)) + 1])
    return a[starts], xp.diff(xp.append(starts, a.size)), xp.add.reduceat(a, starts)


@program
def convolution_by_windows(xp):
    x, w = xp.asarray(data(2, 3, 6, 6)), xp.asarray(data(4, 3, 3, 3))
    windows = xp.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return xp.einsum("nchwij,ocij->nohw", windows, w), windows.mean(axis=(-1, -2))


@program
def convolution_by_fft(xp):
    a, b = xp.asarray(data(17)), xp.asarray(data(5))
    return xp.fft.irfft(xp.fft.rfft(a, 21) * xp.fft.rfft(b, 21), 21), xp.convolve(a, b)


@program
def causal_attention(xp):
    q = xp.asarray(data(2, 4, 3))
    s = xp.einsum("bqd,bkd->bqk", q, q) / math.sqrt(3)
    s = xp.where(xp.tril(xp.ones((4, 4), dtype=bool)), s, -xp.inf)
    s = xp.exp(s - s.max(-1, keepdims=True))
    s /= s.sum(-1, keepdims=True)
    return s, xp.matmul(s, q).transpose(1, 0, 2).reshape(4, -1)


@program
def groups(xp):
    keys, values = xp.asarray([3, 1, 2, 1]), xp.asarray([10.0, 20, 30, 40], dtype="f8")
    found, inverse, counts = xp.unique(keys, return_inverse=True, return_counts=True)
    sums = xp.zeros(len(found), dtype="f8")
    xp.add.at(sums, inverse, values)
    order = xp.lexsort((values, keys))
    return found, counts, sums / counts, xp.bincount(keys, weights=values), values[order]


@program
def functions_of_elements(xp):
    step = xp.vectorize(lambda a, b: a if a > b else -b)
    x = xp.asarray([[1, 5, 2], [7, 0, 3]])
    places = [(i, j, int(one)) for (i, j), one in xp.ndenumerate(x) if one > 2]
    shape = xp.broadcast(x, xp.asarray([[1], [2]])).shape
    return step(x, 3), xp.asarray(places), xp.asarray(shape)


@program
def roots_of_unity(xp):
    z = xp.exp(2j * xp.pi * xp.arange(7) / 7 + 0.1j)
    order = xp.argsort(z)
    return z[order], z.max(), z.argmin(), xp.clip(z, -0.5, 0.5 + 1j), (z > 0).sum()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_gives_numpys_values_and_shapes(where, name):
    with gt.Device(where):
        ours = PROGRAMS[name](gt)
    theirs = PROGRAMS[name](np)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one, gt.Tensor) and one.shape == np.shape(other)
        assert one.dtype.kind == np.asarray(other).dtype.kind
        np.testing.assert_allclose(one.numpy(), other, rtol=2e-5, atol=2e-5)
