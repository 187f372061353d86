"""Products with a norm before and steps after them, called by address, compared with float64."""

import math

import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import dtype_name
from gputensor._kernels import calls
from gputensor._kernels.launch import CallOperand
from gputensor.blas.kernels.programs import INT4, INT8, PLAIN
from tests.support.products.skinny_checks import DTYPES, UNIT, on_device, random_weights, wide


def operand(tensor):
    if tensor is None or isinstance(tensor, CallOperand):
        return tensor
    return CallOperand(tensor.data_ptr(), dtype_name(tensor.dtype), tensor.shape)


class Case:
    """Random operands of one product, x [m, k] by weights [n, k], and the result in float64.

    `norm` is None, "rms" or "layer".
    """

    def __init__(self, rng, name, form, group, sizes, norm):
        m, n, k = self.sizes = sizes
        self.name, self.rng, self.is_steady = name, rng, bool(rng.integers(2))
        x = rng.standard_normal((m, k)).astype(DTYPES[name]) * DTYPES[name].type(4)
        has_bias, self.is_centered = bool(rng.integers(2)), norm == "layer"
        if self.is_centered:
            x += rng.uniform(-8, 8, (m, 1)).astype(DTYPES[name])
        if form == PLAIN:
            w = (rng.standard_normal((n, k)) / 32).astype(DTYPES[name])
            self.weight, self.scales, exact = on_device(w), None, wide(w)
        else:
            self.weight, self.scales, exact, _pitch = random_weights(rng, form, n, k, name, group)
            self.scales, exact = self.scales * 2.0**-10, exact * 2.0**-10
            if form == INT4:
                self.weight = gt.reshape(self.weight, (-(-n // 16), -(-k // 64), 512))
        self.epsilon = 1e-5
        gain = rng.uniform(0.5, 2, k).astype(DTYPES[name]) if norm else None
        shift = rng.standard_normal(k).astype(DTYPES[name]) if rng.integers(2) else None
        shift = shift if self.is_centered else None
        bias = rng.standard_normal(n).astype(DTYPES[name]) if has_bias else None
        terms = wide(x)
        # float32 has an error of 2**-24 of the largest x, and of the sums of k of them.
        away = 2.0**-18 * np.abs(terms).max(-1, keepdims=True) if norm else 0
        if norm:
            terms = terms - (terms.mean(-1, keepdims=True) if self.is_centered else 0)
            factor = wide(gain) / np.sqrt((terms**2).mean(-1, keepdims=True) + self.epsilon)
            terms, away = terms * factor, away * factor
        if shift is not None:
            terms = terms + wide(shift)
        self.exact = terms @ exact.T + (wide(bias) if has_bias else 0)
        # Each kernel rounds the normalized rows once.
        rounded = np.abs(terms) * (UNIT[name] * (norm is not None) + 2.0**-17) + away
        self.error = rounded @ np.abs(exact).T
        self.x, gain, shift, bias = (
            None if one is None else on_device(one) for one in (x, gain, shift, bias)
        )
        self.reads = [self.x, self.weight, self.scales, gain, shift, bias]

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


def activated(activation, x):
    """Return an activation of float64, whose slope is at most 1.2."""
    with np.errstate(over="ignore"):
        if activation == "silu":
            return x / (1 + np.exp(-x))
    if activation == "gelu":
        return x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2
    return np.maximum(x, 0) if activation == "relu" else x


def check_sum(rng, name, form, group, sizes, norm, activation):
    case = Case(rng, name, form, group, sizes, norm)
    m, n, _k = sizes
    has_addend = bool(rng.integers(2))
    addend = on_device(rng.standard_normal((m, n)).astype(DTYPES[name])) if has_addend else None
    out = case.poison((m, n))
    attributes = (case.epsilon, case.is_centered, activation, False, case.is_steady, 0)
    case.make("fused_product", attributes, out, *case.reads, addend)
    exact = case.exact + (wide(addend.numpy()) if has_addend else 0)
    # The kernel finishes the sum before it rounds; the single calls may round in between.
    limit = 1.2 * (case.error + UNIT[name] * (np.abs(case.exact) + np.abs(exact)))
    # activated(x) has terms of about |x| that cancel for negative x, in float32.
    case.assert_near(out, activated(activation, exact), limit + 2.0**-20 * np.abs(exact))


def check_gate(rng, name, form, group, sizes, norm, activation):
    case = Case(rng, name, form, group, sizes, norm)
    m, n, _k = sizes
    out = case.poison((m, n // 2))
    attributes = (case.epsilon, case.is_centered, activation, True, case.is_steady, 0)
    case.make("fused_product", attributes, out, *case.reads, None)
    gate, x = case.exact[:, : n // 2], case.exact[:, n // 2 :]
    error = case.error + 2 * UNIT[name] * np.abs(case.exact)
    error[:, : n // 2] += 2.0**-20 * np.abs(gate)
    limit = 1.2 * error[:, : n // 2] * np.abs(x) + np.abs(gate) * error[:, n // 2 :]
    limit += 1.2 * error[:, : n // 2] * error[:, n // 2 :]
    case.assert_near(out, activated(activation, gate) * x, limit)


def check_heads(rng, name, form, group, heads, norm, m, k):
    count, kept, size, length = heads
    n = (count + 2 * kept) * size
    case = Case(rng, name, form, group, (m, n, k), norm)
    angles = rng.uniform(-3, 3, (m, size // 2)).astype(np.float32)
    places = rng.permutation(length)[:m].astype(rng.choice([np.int32, np.int64]))
    out, keys, values = (
        case.poison(shape)
        for shape in ((count, m, size), (kept, length, size), (kept, length, size))
    )
    given = [on_device(one) for one in (np.cos(angles), np.sin(angles), places)]
    case.make(
        "rotary_product", (case.epsilon, case.is_steady, 0), out, keys, values,
        *case.reads[:4], case.reads[5], *given,
    )  # fmt: skip
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
    norm, m = rng.choice([None, "rms", "layer", "layer"]), int(rng.choice([1, 2, 3, 4, 7, 16]))
    n, k = 32 * int(rng.integers(1, 12)), 128 * int(rng.integers(1, 6))
    if form == PLAIN:  # a library would compute other sizes
        m, (n, k) = 1, [(544, 2048), (704, 784), (704, 768)][rng.integers(3)]
        k = 2048 if what == "heads" else k
    activation = rng.choice(["silu", "relu", "gelu", None])
    if what == "heads":
        heads = (12 if form == PLAIN else 6, 2, int(rng.choice([32, 64, 96])), 20)
        check_heads(rng, name, form, group, heads, norm and "rms", m, k)
    elif what == "gate":
        check_gate(rng, name, form, group, (m, n, k), norm, activation)
    else:
        check_sum(rng, name, form, group, (m, n, k), norm, activation)


PANEL_TILES = [(64, 64), (32, 64), (32, 32), (16, 32)]


#: Columns of blocks that hold their weights, and those that take weights along their columns.
HELD_COLUMNS, HELD_TURNED = (192, 128, 96, 64), (192, 128, 64)


def held_sizes(rng, columns, scale=1):
    """Sizes of a few tiles and panels of so many columns, which fit into shared memory."""
    m, n = int(rng.integers(2, 400 * scale)), 8 * int(rng.integers(1, 2 * scale * columns // 8 + 2))
    return m, n, 8 * int(rng.integers(1, 8 * min(8, 1280 // columns)))


def panel_sizes(rng, scale=1):
    """Sizes of a few tiles; the last ones are incomplete."""
    m, n = int(rng.integers(2, 70 * scale)), 8 * int(rng.integers(1, 16 * scale))
    return m, n, 8 * int(rng.integers(1, 100))


def check_panel(rng, sizes, norm, activation, *, writes_rows, is_along_terms):
    """Check a product of plain weights, and the normalized rows that it writes."""
    name = str(rng.choice(["float16", "bfloat16"]))
    case = Case(rng, name, PLAIN, 0, sizes, norm)
    m, n, k = sizes
    if not is_along_terms:
        turned = on_device(np.ascontiguousarray(case.weight.numpy().T))
        case.reads[1] = CallOperand(turned.data_ptr(), name, (n, k), (1, n))
    addend = None
    if rng.integers(2):
        addend = on_device(rng.standard_normal((m, n)).astype(DTYPES[name]))
    out, rows = case.poison((m, n)), case.poison((m, k))
    if writes_rows:
        x, weight, _scales, *vectors = case.reads
        attributes = (case.epsilon, case.is_centered, activation, case.is_steady, 0)
        case.make("normed_product", attributes, out, rows, x, weight, *vectors, addend)
        gain, shift = vectors[:2]
        normed = gt.layer_norm if case.is_centered else gt.rms_norm
        given = (gain, shift) if case.is_centered else (gain,)
        expected = normed(case.x, *given, eps=case.epsilon)
        # Sums of k terms in another order, and one rounding.
        away = np.abs(wide(rows.numpy()) - wide(expected.numpy()))
        limit = 4 * UNIT[name] * np.abs(wide(expected.numpy())) + 2.0**-12
        assert np.all(away <= limit), float(np.nanmax(away / limit))
    else:
        attributes = (case.epsilon, case.is_centered, activation, False, case.is_steady, 0)
        case.make("fused_product", attributes, out, *case.reads, addend)
    exact = case.exact + (wide(addend.numpy()) if addend is not None else 0)
    limit = 1.2 * (case.error + UNIT[name] * (np.abs(case.exact) + np.abs(exact)))
    case.assert_near(out, activated(activation, exact), limit + 2.0**-20 * np.abs(exact))


BRIEF = ["float16", "bfloat16", "float32"]


def check_brief(rng, sizes, activation):
    """Check a product of plain weights with an activation and, by chance, an addend and a bias."""
    name = str(rng.choice(BRIEF))
    check_sum(rng, name, PLAIN, 0, sizes, None, activation)


def row_trees(rng):
    """Return random trees of a row of products, and a function of float64 with its slopes.

    Each of the functions changes by less than 4 times the largest change of its elements, of which
    the largest is 8.
    """
    x = ("load", 0)
    power = ("exp", ("sub", x, ("fold", "max", x)))
    softmax = ("div", power, ("fold", "sum", power))

    def of_softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    logs = ("sub", ("sub", x, ("fold", "max", x)), ("log", ("fold", "sum", power)))
    clipped = ("minimum", x, ("number", 2.0))
    centered = ("sub", clipped, ("fold", "mean", ("relu", x)))
    known = [
        (softmax, of_softmax),
        (logs, lambda x: np.log(of_softmax(x))),
        (centered, lambda x: np.minimum(x, 2) - np.maximum(x, 0).mean(-1, keepdims=True)),
    ]
    tree, function = known[rng.integers(len(known))]
    return (tree,), function


def check_row(rng, sizes):
    """Check a product with a formula of its rows."""
    name = str(rng.choice(["float16", "bfloat16"]))
    out_name = name if rng.integers(2) else "float32"
    case = Case(rng, name, PLAIN, 0, sizes, None)
    m, n, _k = sizes
    trees, function = row_trees(rng)
    out = on_device(np.full((m, n), np.nan, DTYPES[out_name]))
    x, weight, _scales, _gain, _shift, bias = case.reads
    case.make("row_product", (trees, case.is_steady, 0), out, x, weight, bias)
    exact = function(case.exact)
    # The kernel does not round the product; the single calls do.
    error = case.error + 1.01 * UNIT[name] * np.abs(case.exact)
    limit = 4 * error.max(-1, keepdims=True) + 1.01 * UNIT[out_name] * np.abs(exact) + 2.0**-19
    away = np.abs(wide(out.numpy()) - exact)
    assert np.all(away <= limit), (sizes, name, float(np.nanmax(away / limit)))
