"""Operations that the host device computes in loops of its own, at the ends of their domains."""

import numpy as np
import pytest

import gputensor as gt


def floats(rng, size=5000):
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 88.7, -88.7, 104, -104, 1e30, -1e30, 1e-40]
    values = np.concatenate([rng.standard_normal(size) * 30, 10 ** rng.uniform(-30, 0, 99), ends])
    return values.astype(np.float32)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu"])
@pytest.mark.parametrize("size", [1, 7, 64, 5000])
def test_activations_of_float32_keep_their_digits(where, rng, name, size):
    x = rng.permutation(floats(rng))[-size:]
    wide = x.astype(float)
    with np.errstate(all="ignore"):
        if name == "gelu":
            u = np.sqrt(8 / np.pi) * (wide + 0.044715 * wide**3)
            got = gt.gelu(gt.asarray(x, device=where), approximate="tanh").numpy()
            want, bound = wide / (1 + np.exp(-u)), 4e-6 * np.abs(wide) + 1e-37
            bound = np.where(np.abs(wide) > 1e12, np.inf, bound)  # the cube overflows
        else:
            got = getattr(gt, name)(gt.asarray(x, device=where)).numpy()
            want = (1 if name == "sigmoid" else wide) / (1 + np.exp(-wide))
            bound = 4e-7 * np.abs(want) + 3e-38
        error = np.abs(got - want)
    either = (error <= bound) | (got == want) | (np.isnan(got) & np.isnan(want))
    assert either[np.isfinite(wide)].all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_clip_with_numbers_and_tensors_as_limits(where, rng, dtype):
    x = floats(rng) if dtype != "int32" else rng.integers(-50, 50, 5000)
    x = np.array(x, dtype)
    low, high = (np.sort(rng.standard_normal((2, x.size)) * 20, 0)).astype(dtype)
    if dtype != "int32":
        low[::7], high[::11] = np.nan, np.nan
    y = gt.asarray(x, device=where)
    for a, b in ((-3, 5), (low, high), (low, 60), (-60, high)):
        limits = [one if np.ndim(one) == 0 else gt.asarray(one, device=where) for one in (a, b)]
        np.testing.assert_array_equal(gt.clip(y, *limits).numpy(), np.clip(x, a, b))
    gt.clip(y, -3, 5, out=y)
    np.testing.assert_array_equal(y.numpy(), np.clip(x, -3, 5))


@pytest.mark.parametrize("is_largest", [True, False])
@pytest.mark.parametrize("kind", ["few values", "distinct", "some nan", "many nan", "int64"])
def test_topk_takes_the_first_of_equal_elements(where, rng, is_largest, kind):
    x = rng.standard_normal((17, 300)).astype(np.float32)
    if kind == "few values":
        x = np.round(x)
    if "nan" in kind:
        x[:, rng.choice(300, 3 if kind == "some nan" else 200, replace=False)] = np.nan
    if kind == "int64":
        x = rng.integers(-(1 << 62), 1 << 62, x.shape)
    for k in (1, 5, 40, 75, 76, 300):
        got, places = gt.topk(gt.asarray(x, device=where), k, largest=is_largest)
        key = x[:, ::-1] if is_largest else x
        want = np.argsort(key, axis=-1, kind="stable")
        want = (299 - want[:, ::-1])[:, :k] if is_largest else want[:, :k]
        np.testing.assert_array_equal(places.numpy(), want)
        np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, want, -1))


def test_counts_of_truth_values(where, rng):
    flags = rng.random((6, 7, 8)) < 0.3
    x = gt.asarray(flags, device=where)
    for axis in (None, 0, -1, (0, 2), (0, 1, 2)):
        np.testing.assert_array_equal(
            gt.count_nonzero(x, axis=axis).numpy(), np.count_nonzero(flags, axis=axis)
        )
        np.testing.assert_array_equal(gt.sum(x[::2], axis=axis).numpy(), flags[::2].sum(axis))
    assert gt.count_nonzero(x[:0]).item() == 0
    assert gt.sum(x, dtype="float32").dtype == gt.float32


@pytest.mark.parametrize("count", [4, 5000])
def test_every_byte_of_a_bool_but_0_is_true(count):
    data = np.tile(np.array([0, 2, 1, 255], "uint8"), count // 4)
    x = gt.asarray(data, device="host").view("bool")
    flags, rows = data != 0, x.reshape(-1, 4)
    assert x.sum().item() == gt.count_nonzero(x).item() == flags.sum()
    assert gt.mean(x).item() == flags.mean() and gt.argmax(x).item() == 1
    for axis in (0, 1):
        np.testing.assert_array_equal(rows.sum(axis).numpy(), flags.reshape(-1, 4).sum(axis))
        np.testing.assert_array_equal(
            gt.argmax(rows, axis).numpy(), flags.reshape(-1, 4).argmax(axis)
        )


def test_roots_by_a_power(where):
    x = np.array([4.0, 0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], np.float32)
    got = (gt.asarray(x, device=where) ** 0.5).numpy()
    np.testing.assert_array_equal(got, [2, 0, 0, np.inf, np.inf, np.nan, np.nan])
    assert not np.signbit(got[1:3]).any()
