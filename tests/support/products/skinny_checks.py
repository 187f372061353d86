"""Skinny products against float64 on one device, by addresses; shared by CPU and GPU tests."""

import math

import ml_dtypes
import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import CODE_OF
from gputensor._kernels.calls import make
from gputensor._kernels.launch import CallOperand
from gputensor.blas.host import int4_layout
from gputensor.blas.kernels.programs import INT4, INT8, PLAIN
from gputensor.blas.product import plan_tiles
from tests.support import internals

DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
FORMS = (PLAIN, INT8, INT4)
UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def on_device(array):
    return gt.asarray(array, device="cuda")


def wide(array):
    return array.astype(np.float64)


def operand_of(tensor):
    strides = tuple(step // tensor.itemsize for step in tensor.strides)
    return CallOperand(tensor.data_ptr(), tensor.dtype.name, tensor.shape, strides)


def random_weights(rng, form, n, k, name, group):
    """Return tensors of weights and scales, the weights in float64, and their pitch."""
    if form == PLAIN:
        w = rng.standard_normal((n, k + 16)).astype(DTYPES[name])
        return on_device(w), None, wide(w[:, :k]), k + 16
    low = -8 if form == INT4 else -128
    values = rng.integers(low, -low, (n, k)).astype(np.int8)
    scales = rng.uniform(0.5, 2.0, (k // group if group else 1, n)).astype(DTYPES[name])
    exact = values * np.repeat(wide(scales), group or k, axis=0).T
    if form == INT8:
        return on_device(values), on_device(scales), exact, k
    packed = int4_layout.pack(values)
    return on_device(packed), on_device(scales), exact, packed.shape[1]


def check(rng, form, name, m, n, k, *, group=0, out=None, alpha=1.0, beta=0.0, has_bias=False):
    """Compute one product into poisoned memory and check it within the rounding of its sums."""
    out = out or name
    w, scales, exact_w, pitch = random_weights(rng, form, n, k, name, group)
    x = rng.standard_normal((m, k + 32)).astype(DTYPES[name])
    bias = rng.standard_normal(n).astype(DTYPES[out])
    addend = rng.standard_normal((m, n + 3)).astype(DTYPES[out])
    poison = np.full((m, n + 5), np.nan, DTYPES[out])
    given = [on_device(array) for array in (x, bias, addend, poison)]
    x_on, bias_on, addend_on, y_on = given
    used = [x_on, w, y_on, scales, bias_on if has_bias else None, addend_on]
    addresses = tuple(0 if tensor is None else tensor.data_ptr() for tensor in used)
    pitches = (k + 32, pitch, n + 5, n + 3)
    codes = CODE_OF[DTYPES[name]], CODE_OF[DTYPES[out]]
    stream = gt.current_stream("cuda").cuda_stream
    sizes = (m, n, k)
    assert internals.skinny_run(0, stream, form, codes, sizes, addresses, pitches, group=group,
                       alpha=alpha, beta=beta)  # fmt: skip
    gt.synchronize()
    got = y_on.numpy()
    x = wide(x[:, :k])
    exact = alpha * (x @ exact_w.T) + beta * wide(addend[:, :n]) + (wide(bias) if has_bias else 0)
    terms = abs(alpha) * (np.abs(x) @ np.abs(exact_w).T) + abs(beta) * np.abs(wide(addend[:, :n]))
    limit = (k**0.5 + 8) * 2.0**-23 * (terms + 3) + 1.01 * UNIT[out] * np.abs(exact)
    error = np.abs(wide(got[:, :n]) - exact)
    assert np.all(error <= limit), (sizes, form, name, float(np.nanmax(error / limit)))
    assert np.all(np.isnan(wide(got[:, n:])))


def plain(rng):
    """Check every type, odd numbers of features, tails of k, several blocks and spans."""
    for name in ("bfloat16", "float16", "float32"):
        for m in rng.permutation(np.arange(1, 17))[:4]:
            n, k = int(rng.integers(1, 300)), 8 * int(rng.integers(1, 90))
            check(rng, PLAIN, name, int(m), n, k)
    check(rng, PLAIN, "bfloat16", 5, 129, 520, out="float32", alpha=0.5, beta=2.0, has_bias=True)
    check(rng, PLAIN, "float16", 3, 40, 4096, alpha=-2.0, has_bias=True)


def shapes(rng):
    """Check that blocks of every shape give the same product."""
    for tiles, warps, stages, splits in [(1, 1, 2, 1), (2, 4, 3, 2), (4, 2, 5, 4), (1, 8, 2, 8)]:
        internals.skinny_configure(tiles=tiles, warps=warps, stages=stages, splits=splits)
        check(rng, PLAIN, "float32", 7, 150, 1300)
    internals.skinny_configure()
    for tiles, row_warps, k_warps, stages, splits in [
        (1, 1, 1, 2, 1),
        (2, 3, 5, 3, 2),
        (4, 1, 3, 2, 2),
        (1, 7, 2, 5, 1),
    ]:
        internals.skinny_mma_configure(
            tiles=tiles, row_warps=row_warps, k_warps=k_warps, stages=stages, splits=splits
        )
        check(rng, PLAIN, "bfloat16", 3, 150, 1304)
        check(rng, INT4, "float16", 9, 152, 1280, group=128)
        check(rng, INT8, "bfloat16", 2, 77, 1296)
    internals.skinny_mma_configure()


def quantized(rng):
    """Check int8 and int4 with every group size and both activation types."""
    for form in (INT8, INT4):
        for group in (32, 64, 128, 0):
            for name in ("bfloat16", "float16"):
                m, n = int(rng.integers(1, 17)), 8 * int(rng.integers(1, 40))
                k = (group or 16) * int(rng.integers(1, 12))
                check(rng, form, name, m, n, k, group=group)
    check(rng, INT4, "float16", 2, 77, 200, has_bias=True)


def assert_near(got, exact, terms, name):
    """Check a result within the rounding of its sums and its own."""
    limit = 2.0**-17 * terms + 1.01 * UNIT[name] * np.abs(exact)
    error = np.abs(wide(got) - exact)
    assert np.all(error <= limit), float(np.nanmax(error / limit))


def products(rng):
    """Check products that gt.matmul and related functions send to the kernel, some into views."""
    for name in ("bfloat16", "float32"):
        m, n, k = int(rng.integers(1, 17)), 1040, 1032
        x, w, c, bias = (
            rng.standard_normal(shape).astype(DTYPES[name])
            for shape in ((m, k), (n, k), (m, n), (n,))
        )
        exact = wide(x) @ wide(w).T
        terms = np.abs(wide(x)) @ np.abs(wide(w)).T + 3
        on = [on_device(array) for array in (x, w, c, bias)]
        assert_near(gt.matmul(on[0], on[1].T).numpy(), exact, terms, name)
        assert_near(gt.linear(on[0], on[1], on[3]).numpy(), exact + wide(bias), terms, name)
        columns = on_device(np.ascontiguousarray(w.T))
        got = gt.addmm(on[2], on[0], columns, beta=-0.5, alpha=2.0).numpy()
        assert_near(got, 2 * exact - 0.5 * wide(c), 2 * terms + np.abs(wide(c)), name)
        out = gt.full((m, n + 8), np.nan, dtype=DTYPES[name], device="cuda")
        gt.matmul(on[0], columns, out=out[:, 3 : n + 3])
        assert_near(out.numpy()[:, 3 : n + 3], exact, terms, name)
        assert np.isnan(wide(out.numpy()[:, :3])).all()
        got = gt.linear(on[0], on[1], activation="relu").numpy()
        assert_near(got, np.maximum(exact, 0), terms, name)
    # One row and few features: 16-bit floats too.
    for name in ("bfloat16", "float16"):
        x, w = (
            rng.standard_normal(shape).astype(DTYPES[name]) for shape in ((1, 4096), (528, 4096))
        )
        got = gt.matmul(on_device(x), on_device(w).T).numpy()
        assert_near(got, wide(x) @ wide(w).T, np.abs(wide(x)) @ np.abs(wide(w)).T + 3, name)


def turned(rng, least_rows=5500, terms=(52, 80)):
    """Check products of many rows by few columns, whose terms are neighbours on both sides."""
    m, n, k = (
        int(rng.integers(least_rows, least_rows + 500)),
        int(rng.integers(2, 9)),
        int(rng.integers(*terms)) // 4 * 4,
    )
    x, w, c, bias = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (n, k), (m, n), (n,))
    )
    exact, terms = wide(x) @ wide(w).T, np.abs(wide(x)) @ np.abs(wide(w)).T + 3
    on = [on_device(array) for array in (x, w, c, bias)]
    assert_near(gt.matmul(on[0], on[1].T).numpy(), exact, terms, "float32")
    assert_near(gt.linear(on[0], on[1], on[3]).numpy(), exact + wide(bias), terms, "float32")
    got = gt.addmm(on[2], on[0], on[1].T, beta=-0.5, alpha=2.0).numpy()
    assert_near(got, 2 * exact - 0.5 * wide(c), 2 * terms + np.abs(wide(c)), "float32")
    out = gt.full((m, n + 7), np.nan, dtype="float32", device="cuda")
    gt.matmul(on[0], on[1].T, out=out[:, 2 : n + 2])
    assert_near(out.numpy()[:, 2 : n + 2], exact, terms, "float32")
    assert np.isnan(out.numpy()[:, :2]).all() and np.isnan(out.numpy()[:, n + 2 :]).all()


def turned_with_many_terms(rng):
    """Check the same with weights of 20 MB and more."""
    turned(rng, 5500, (920, 1200))


def layers(rng):
    """Check quantized_linear with few rows, many rows, unaligned rows and leading dimensions."""
    for quantize in (gt.quantize_int8, gt.quantize_int4):
        for name in ("bfloat16", "float16", "float32"):
            for shape, k, group in [
                ((3, 2), 256, 64), ((29,), 128, 32), ((65,), 128, 64), ((2,), 100, None)
            ]:  # fmt: skip
                n = 8 * int(rng.integers(2, 20)) + (4 if group is None else 0)
                w, x = (
                    on_device(rng.standard_normal(size).astype(DTYPES[name]))
                    for size in ((n, k), (*shape, k))
                )
                bias = on_device(rng.standard_normal(n).astype(DTYPES[name]))
                q, scales = quantize(w, group)
                got = gt.quantized_linear(x, q, scales, bias)
                assert got.shape == (*shape, n)
                values = q if q.dtype == np.int8 else gt.unpack_int4(q, (n, k))
                factors = np.repeat(wide(scales.numpy()), group or k, axis=0).T
                plain = wide(values.numpy()) * factors
                exact = wide(x.numpy()) @ plain.T + wide(bias.numpy())
                terms = np.abs(wide(x.numpy())) @ np.abs(plain).T + 3
                # Weights that are dequantized first are rounded once more.
                rounding = 1.01 * UNIT[name] * terms
                error = np.abs(wide(got.numpy()) - exact)
                assert np.all(error <= rounding + 2.0**-17 * terms + UNIT[name] * np.abs(exact))


def refusals(rng):
    """Check that a refused shared memory size leaves no module, and the next call loads another."""
    from tests.support import refused_calls

    def product():
        check(np.random.default_rng(7), PLAIN, "float32", 7, 150, 1300)

    seen = refused_calls.sweep(product)
    assert {"module_load", "module_function", "function_allow_shared"} <= seen, seen


def tiles(rng, kinds=((False, INT4), (False, INT8), (True, INT4), (True, INT8))):
    """Check tiles of more rows: random blocks, groups and types, tails of rows, features and terms.

    A kind is whether the block has wgmma, and the form of the weights.
    """
    for has_wgmma, form in kinds:
        name = str(rng.choice(["bfloat16", "float16"]))
        group = int(rng.choice([0, 32, 64, 128]))
        k = (group or 16) * int(rng.integers(1, 1100 // (group or 16)))
        m, n = int(rng.integers(17, 150)), 8 * int(rng.integers(1, 60))
        if not group:
            n -= int(rng.integers(0, 8))
        rows, splits = int(rng.choice([128, 256])), int(rng.integers(1, 3)) if k > 768 else 0
        tokens = int(rng.choice([128, 256])) if has_wgmma and rows == 128 and m > 64 else 0
        parts = random_parts(rng, has_wgmma and tokens < 256, k, splits)
        internals.quantized_tile_configure(
            has_wgmma=has_wgmma, rows=rows, tokens=tokens, splits=splits, parts=parts, most_rows=150
        )  # fmt: skip
        x = rng.standard_normal((m, k + 8)).astype(DTYPES[name])
        bias = rng.standard_normal(n).astype(DTYPES[name])
        w, scales, exact_w, _ = random_weights(rng, form, n, k, name, group)
        poison = gt.full((m, n), np.nan, dtype=DTYPES[name], device="cuda")
        x_on, bias_on = on_device(x)[:, :k], on_device(bias)
        del poison  # the result takes its memory
        got = wide(gt.quantized_linear(x_on, w, scales, bias_on).numpy())
        internals.quantized_tile_configure()
        x = wide(x[:, :k])
        exact = x @ exact_w.T + wide(bias)
        terms = np.abs(x) @ np.abs(exact_w).T + 3
        # Where K has groups, weights with their scales are rounded once more.
        limit = (2.0**-17 + (1.01 * UNIT[name] if group else 0)) * terms
        limit += 1.01 * UNIT[name] * np.abs(exact)
        error = np.abs(got - exact)
        used = (has_wgmma, form, name, group, (m, n, k), rows, tokens, splits, parts)
        assert np.all(error <= limit), (used, float(np.nanmax(error / limit)))


def random_parts(rng, may_part, k, splits):
    """The blocks of a cluster among which K is cut: as few as it has terms for, or a choice."""
    most = k // 64 // (2 * max(splits, 1))
    return int(rng.choice([one for one in (1, 2, 4) if one == 1 or one <= most])) if may_part else 0


def endings(rng, kinds=tuple((wgmma, form) for wgmma in (False, True) for form in FORMS)):
    """Check tiles that compute a formula of their sums: pairs of columns, and other operands.

    A kind is whether the block has wgmma, and the form of the weights.
    """
    for has_wgmma, form in kinds:
        name, ending = str(rng.choice(["bfloat16", "float16"])), int(rng.integers(3))
        out_name = str(rng.choice([name, "float32"]))
        group = int(rng.choice([0, 32, 64, 128])) if form != PLAIN else 0
        k = (group or 16) * int(rng.integers(1, 700 // (group or 16)))
        m, columns = int(rng.integers(17, 100)), 16 * int(rng.integers(1, 20))
        splits = int(rng.integers(1, 3)) if k > 512 else 0
        n = columns if ending else 2 * columns
        w, scales, exact_w, pitch = random_weights(rng, form, n, k, name, group)
        if form == PLAIN:
            w = gt.asarray(w[:, :k].numpy(), device="cuda")
        shapes = ((m, k), name), (n, name), (columns, "float32"), ((m, columns), name)
        x, bias, first, second = (
            rng.standard_normal(shape).astype(DTYPES[dtype]) for shape, dtype in shapes
        )
        x *= x.dtype.type({PLAIN: 1, INT4: 1 / 16, INT8: 1 / 256}[form])  # products below 200
        product = wide(x) @ exact_w.T + wide(bias)
        error = (2.0**-17 + (1.01 * UNIT[name] if group else 0)) * (
            np.abs(wide(x)) @ np.abs(exact_w).T + 3
        )
        x0, x1, x2 = ("load", 0), ("load", 1), ("load", 2)
        if ending == 0:  # a gate; the slope of silu is below 1.1
            tree, others = ("mul", ("silu", x0), x1), []
            gate, value = np.split(product, 2, axis=1)
            change, other = np.split(error, 2, axis=1)
            silu = gate * (1 + np.tanh(gate / 2)) / 2
            exact = silu * value
            limit = 1.1 * change * (np.abs(value) + other) + np.abs(silu) * other
        elif ending == 1:  # a factor of columns, and a residual; the slope of gelu is below 1.13
            tree, others = ("add", ("gelu", ("mul", x0, x1)), x2), [first, second]
            scaled = product * wide(first)
            exact = scaled * (1 + np.vectorize(math.erf)(scaled / 2**0.5)) / 2 + wide(second)
            limit = 1.13 * np.abs(wide(first)) * error
            limit += 2.0**-20 * (np.abs(scaled) + np.abs(wide(second)))
        else:  # a number for each row
            tree = ("maximum", ("sub", x0, x1), ("number", -0.5))
            others = [np.ascontiguousarray(second[:, :1])]
            exact = np.maximum(product - wide(others[0]), -0.5)
            limit = error + 2.0**-22 * (np.abs(product) + np.abs(wide(others[0])))
        number = float(rng.standard_normal())  # a kernel of its own for each call
        limit = limit + 2.0**-20 * (np.abs(exact) + abs(number))
        tree, exact = ("add", tree, ("number", number)), exact + number
        limit = limit + 2.0**-20 * np.abs(exact) + 1.01 * UNIT[out_name] * np.abs(exact) + 2.0**-24
        held = [on_device(array) for array in (x, bias, *others)]
        out = on_device(np.full((m, columns), np.nan, DTYPES[out_name]))
        x_on, bias_on, *others_on = [operand_of(tensor) for tensor in held]
        others_on = [
            CallOperand(
                one.address, one.dtype, (m, columns),
                (0, 1) if len(one.shape) == 1 else (one.strides[0], int(one.shape[1] > 1)),
            )
            for one in others_on
        ]  # fmt: skip
        weights = [None if one is None else operand_of(one) for one in (w, scales)]
        arguments = [operand_of(out), x_on, *weights, bias_on, *others_on]
        arguments += [None] * (3 - len(others_on))
        parts = random_parts(rng, has_wgmma, k, splits)
        internals.quantized_tile_configure(
            has_wgmma=has_wgmma, splits=splits, parts=parts, most_rows=100
        )
        plan_tiles(0, True)
        try:
            stream = gt.current_stream("cuda").cuda_stream
            make("formula_product", 0, stream, ((tree,), ending == 0, 0, *arguments))
            gt.synchronize()
        finally:
            plan_tiles(0, False)
            internals.quantized_tile_configure()
        used = (has_wgmma, form, name, out_name, group, (m, n, k), ending, splits, parts)
        difference = np.abs(wide(out.numpy()) - exact)
        assert np.all(difference <= limit), (used, float(np.nanmax(difference / limit)))
