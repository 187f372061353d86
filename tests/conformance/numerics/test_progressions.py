"""Geometric progressions of real and complex numbers, `nextafter` of integers, memory orders."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same


def check_geometric(rng, where):
    for _ in range(20):
        first, last = rng.uniform(0.1, 9, (2, 3)) * np.exp(1j * rng.uniform(-1.5, 1.5, (2, 3)))
        if rng.integers(2):
            first, last = abs(first) * -1, abs(last) * -1
        num, endpoint = int(rng.integers(0, 7)), bool(rng.integers(2))
        for start, stop in ((first, last), (first[0], last[0]), (first, last[0])):
            given = [
                gt.asarray(one, device=where) if np.ndim(one) else one.item()
                for one in (start, stop)
            ]
            want = np.geomspace(start, stop, num, endpoint)
            got = gt.geomspace(*given, num, endpoint, dtype=want.dtype, device=where)
            check_same(got, want, 1e-11)
    for start, stop in ((1j, 1000j), (-1 + 0j, 1 + 0j), (1 + 1j, -1 - 1j), (-1, -256), (3, -3j)):
        want = np.geomspace(start, stop, 5)
        got = gt.geomspace(start, stop, 5, device=where)
        check_same(got, want.astype("complex64" if want.dtype.kind == "c" else "float32"), 1e-5)


def check_logarithmic(rng, where):
    start, stop = rng.uniform(-2, 2, (2, 3))
    base = rng.uniform(0.5, 9, (2, 1))
    for given, axis in (
        ((start, stop, base), 0), ((start, stop, base), -1), ((start[0], stop[0], base), 1),
        ((start[0], 2.0, base[:, 0]), 0), ((start, 2.0, 3.0), 1), ((0.5, 1 + 2j, base), 0),
    ):  # fmt: skip
        start_, stop_, base_ = given
        want = np.logspace(start_, stop_, 6, base=base_, axis=axis)
        tensors = [gt.asarray(one, device=where) if np.ndim(one) else one for one in given]
        got = gt.logspace(*tensors[:2], 6, base=tensors[2], axis=axis, device=where)
        assert got.dtype == want.dtype
        check_same(got, want, 1e-11)
    want = np.logspace(0, 3, 4, base=[2, 10])
    check_same(gt.logspace(0, 3, 4, base=[2, 10], device=where), want.astype("float32"), 1e-6)


def check_next(rng, where):
    for name in "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split():
        a, b = rng.integers(0, 2, (2, 9)).astype(name)
        x, y = gt.asarray(a, device=where), gt.asarray(b, device=where)
        check_same(gt.nextafter(x, y), np.nextafter(a, b))
        check_same(gt.nextafter(x, 1 + a[0].item()), np.nextafter(a, 1 + a[0].item()))
    check_same(gt.nextafter(x, 0.5), np.nextafter(a, 0.5))


def random_layout(rng, where):
    """An array and a tensor with equal strides: permuted, flipped, stepped, broadcast."""
    shape = [int(n) for n in rng.integers(1, 4, rng.integers(1, 5))]
    a = rng.integers(0, 100, shape).astype(rng.choice(["float32", "int64", "uint8"]))
    x = gt.asarray(a, device=where)
    key = tuple(slice(None, None, int(rng.choice([-1, 1, 2]))) for _ in shape)
    a, x = a[key], x[key]
    if rng.integers(2):
        wide = (int(rng.integers(2, 4)), *a.shape)
        a, x = np.broadcast_to(a, wide), gt.broadcast_to(x, wide)
    axes = [int(i) for i in rng.permutation(a.ndim)]
    return a.transpose(axes), x.transpose(axes)


def strides_of(x):
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n != 1] if x.size else []


def check_orders(rng, where):
    for _ in range(25):
        a, x = random_layout(rng, where)
        for order in "CFAK":
            check_same(x.ravel(order), a.ravel(order))
            check_same(gt.ravel(x, order=order.lower()), a.ravel(order))
            check_same(x.flatten(order), a.flatten(order))
            if order != "K":
                check_same(x.reshape((1, -1), order=order), a.reshape((1, -1), order=order))
            for got, want in (
                (x.copy(order), a.copy(order)),
                (gt.copy(x, order=order), np.copy(a, order=order)),
                (x.astype("float64", order=order), a.astype("float64", order=order)),
                (gt.ones_like(x, order=order), np.ones_like(a, order=order)),
                (gt.array(x, order=order), np.array(a, order=order)),
            ):
                check_same(got, want)
                assert strides_of(got) == strides_of(want)


def check_medians_of_borders(rng, where):
    for name in "bool uint8 int8 int64 float16 float32 float64".split():
        a = rng.integers(0, 40, (4, 5)).astype(name)
        for lengths in (None, 2, ((1, 2), (3, 1))):
            want = np.pad(a, ((2, 1), (0, 3)), "median", stat_length=lengths)
            x = gt.asarray(a, device=where)
            check_same(gt.pad(x, ((2, 1), (0, 3)), "median", stat_length=lengths), want)


CHECKS = {
    check.__name__: check
    for check in (
        check_geometric,
        check_logarithmic,
        check_next,
        check_orders,
        check_medians_of_borders,
    )
}


@pytest.mark.parametrize("name", CHECKS)
def test_function_gives_numpys_values(where, rng, name):
    CHECKS[name](rng, where)


def test_tensors_keep_the_order_of_their_memory_under_numpys_names(where):
    x = gt.ones((2, 3), device=where).T
    assert np.copy(x, order="K").strides == np.zeros_like(x, order="K").strides == (4, 12)
    assert np.ravel(x, order="K").shape == (6,)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: gt.geomspace(0, 1), r"geomspace: start, stop: got \(0, 1\); expected ends"),
        (lambda x: gt.geomspace(-1, 1), r"geomspace: start, stop: got \(-1, 1\); expected ends"),
        (lambda x: gt.geomspace(x, -x), "geomspace: start, stop: got .* the same sign"),
        (lambda x: gt.geomspace(x, 0), "geomspace: start, stop: got .* not 0"),
        (lambda x: gt.logspace(0, 1, base="e"), "logspace: base: got str; expected a number or a"),
        (lambda x: gt.ravel(x, order="X"), "ravel: order: got 'X'; expected 'C', 'F', 'A' or 'K'"),
        (lambda x: gt.reshape(x, 2, order="K"), "reshape: order: got 'K'; expected 'C', 'F'"),
        (lambda x: x.copy(order="X"), "copy: order: got 'X'; expected C, F, A or K"),
    ],
)
def test_wrong_arguments_are_named(where, call, text):
    x = gt.ones(2, device=where)
    with gt.Device(where), pytest.raises((TypeError, ValueError), match=text):
        call(x)


def test_ends_and_counts_have_numpys_and_torchs_names(where):
    with gt.Device(where):
        check_same(gt.arange(start=1, stop=6, step=2), np.arange(1, 6, 2))
        check_same(gt.arange(start=1, end=4, dtype="int8"), np.arange(1, 4, dtype="int8"))
        check_same(gt.logspace(start=0, end=2, steps=3), np.float32([1, 10, 100]))
        check_same(gt.geomspace(start=1, stop=4, num=3), np.float32([1, 2, 4]))
