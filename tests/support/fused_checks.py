"""Products with a norm before and steps after them, called by address, compared with float64."""

import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import dtype_name
from gputensor._kernels import calls
from gputensor._kernels.launch import CallOperand
from gputensor.blas.kernels.programs import INT4, INT8, PLAIN
from tests.support.skinny_checks import DTYPES, UNIT, on_device, random_weights, wide


def operand(tensor):
    if tensor is None:
        return None
    return CallOperand(tensor.data_ptr(), dtype_name(tensor.dtype), tensor.shape)


class Case:
    """Random operands of one product, x [m, k] by weights [n, k], and the result in float64."""

    def __init__(self, rng, name, form, group, sizes, has_gain, has_bias):
        m, n, k = self.sizes = sizes
        self.name, self.rng, self.is_steady = name, rng, bool(rng.integers(2))
        x = rng.standard_normal((m, k)).astype(DTYPES[name]) * DTYPES[name].type(4)
        if form == PLAIN:
            w = (rng.standard_normal((n, k)) / 32).astype(DTYPES[name])
            self.weight, self.scales, exact = on_device(w), None, wide(w)
        else:
            self.weight, self.scales, exact, _pitch = random_weights(rng, form, n, k, name, group)
            self.scales, exact = self.scales * 2.0**-10, exact * 2.0**-10
            if form == INT4:
                self.weight = gt.reshape(self.weight, (-(-n // 16), -(-k // 64), 512))
        self.epsilon = 1e-5
        gain = rng.uniform(0.5, 2, k).astype(DTYPES[name]) if has_gain else None
        bias = rng.standard_normal(n).astype(DTYPES[name]) if has_bias else None
        terms = wide(x)
        if has_gain:
            terms = terms / np.sqrt((terms**2).mean(-1, keepdims=True) + self.epsilon) * wide(gain)
        self.exact = terms @ exact.T + (wide(bias) if has_bias else 0)
        # Each kernel rounds the normalized rows once.
        self.error = (np.abs(terms) @ np.abs(exact).T) * (UNIT[name] * has_gain + 2.0**-17)
        self.x, self.gain, self.bias = (
            None if one is None else on_device(one) for one in (x, gain, bias)
        )
        self.reads = [self.x, self.weight, self.scales, self.gain, self.bias]

    def poison(self, shape):
        return on_device(np.full(shape, np.nan, DTYPES[self.name]))

    def make(self, row, attributes, *tensors):
        stream = gt.current_stream("cuda").cuda_stream
        calls.make(row, 0, stream, (*attributes, *map(operand, tensors)))
        gt.synchronize()

    def assert_near(self, got, exact, error):
        limit = error + 1.01 * UNIT[self.name] * np.abs(exact)
        away = np.abs(wide(got.numpy()) - exact)
        assert np.all(away <= limit), (self.sizes, self.name, float(np.nanmax(away / limit)))


def check_sum(rng, name, form, group, sizes, has_gain, has_addend):
    case = Case(rng, name, form, group, sizes, has_gain, bool(rng.integers(2)))
    m, n, _k = sizes
    addend = on_device(rng.standard_normal((m, n)).astype(DTYPES[name])) if has_addend else None
    out = case.poison((m, n))
    case.make(
        "fused_product", (case.epsilon, None, False, case.is_steady, 0), out, *case.reads, addend
    )
    exact = case.exact + (wide(addend.numpy()) if has_addend else 0)
    # The kernel adds before it rounds; the single calls may round in between.
    case.assert_near(out, exact, case.error + UNIT[name] * np.abs(case.exact))


def check_gate(rng, name, form, group, sizes, has_gain, activation):
    case = Case(rng, name, form, group, sizes, has_gain, bool(rng.integers(2)))
    m, n, _k = sizes
    out = case.poison((m, n // 2))
    case.make(
        "fused_product", (case.epsilon, activation, True, case.is_steady, 0), out, *case.reads, None
    )
    gate, x = case.exact[:, : n // 2], case.exact[:, n // 2 :]
    error = case.error + 2 * UNIT[name] * np.abs(case.exact)
    with np.errstate(over="ignore"):
        exact = {"silu": gate / (1 + np.exp(-gate)), "relu": np.maximum(gate, 0), None: gate}
    limit = 1.2 * error[:, : n // 2] * np.abs(x) + np.abs(gate) * error[:, n // 2 :]
    limit += 1.2 * error[:, : n // 2] * error[:, n // 2 :]
    case.assert_near(out, exact[activation] * x, limit)


def check_heads(rng, name, form, group, heads, has_gain, m, k):
    count, kept, size, length = heads
    n = (count + 2 * kept) * size
    case = Case(rng, name, form, group, (m, n, k), has_gain, bool(rng.integers(2)))
    angles = rng.uniform(-3, 3, (m, size // 2)).astype(np.float32)
    places = rng.permutation(length)[:m].astype(rng.choice([np.int32, np.int64]))
    out, keys, values = (
        case.poison(shape)
        for shape in ((count, m, size), (kept, length, size), (kept, length, size))
    )
    given = [on_device(one) for one in (np.cos(angles), np.sin(angles), places)]
    case.make(
        "rotary_product", (case.epsilon, case.is_steady, 0), out, keys, values, *case.reads, *given
    )
    exact, error = (
        np.moveaxis(one.reshape(m, count + 2 * kept, size), 1, 0)
        for one in (case.exact, case.error + UNIT[name] * np.abs(case.exact))
    )
    c, s = np.cos(wide(angles)), np.sin(wide(angles))
    rotated, half = exact.copy(), size // 2
    low, high = exact[: count + kept, :, :half], exact[: count + kept, :, half:]
    rotated[: count + kept, :, :half] = low * c - high * s
    rotated[: count + kept, :, half:] = high * c + low * s
    both = error[..., :half] + error[..., half:]
    limit = 1.5 * np.concatenate([both, both], -1) + 1e-5
    case.assert_near(out, rotated[:count], limit[:count])
    for state, first in ((keys, count), (values, count + kept)):
        case.assert_near(
            state[:, on_device(places.astype(np.int64))],
            rotated[first : first + kept],
            limit[first : first + kept],
        )
        rest = np.setdiff1d(np.arange(length), places)
        assert np.isnan(wide(state.numpy()[:, rest])).all()


FORMS = [(PLAIN, 0), (INT8, 0), (INT8, 64), (INT4, 128), (INT4, 32), (INT4, 0)]


def check_form(rng, form, group, what):
    """Check one product of random sizes with a sum, a gate or heads."""
    name = str(rng.choice(["float16", "bfloat16"]))
    has_gain, m = bool(rng.integers(4)), int(rng.choice([1, 2, 3, 4, 7, 16]))
    n, k = 32 * int(rng.integers(1, 12)), 128 * int(rng.integers(1, 6))
    if form == PLAIN:  # a library would compute other sizes
        m, n, k = 1, 544, 2048
    if what == "heads":
        heads = (12 if form == PLAIN else 6, 2, int(rng.choice([32, 64, 96])), 20)
        check_heads(rng, name, form, group, heads, has_gain, m, k)
    elif what == "gate":
        activation = rng.choice(["silu", "relu", None])
        check_gate(rng, name, form, group, (m, n, k), has_gain, activation)
    else:
        check_sum(rng, name, form, group, (m, n, k), has_gain, bool(rng.integers(2)))
