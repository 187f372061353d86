"""Skinny products by our own kernel on a real GPU: every layout, type and block."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from gputensor.blas.kernels import brief_programs
from gputensor.blas.kernels.programs import INT4, INT8, PLAIN
from tests.support import fused_checks, internals
from tests.support.products import few_rows_checks
from tests.support.products import skinny_checks as cases
from tests.support.programs.decode_models import UNIT, DecodeModel

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")

CASES = [cases.shapes, cases.quantized, cases.plain, cases.products, cases.layers, cases.tiles]
CASES += [cases.endings, cases.turned, cases.turned_with_many_terms]


@pytest.fixture(autouse=True)
def on_cuda():
    with gt.Device("cuda:0"):
        yield
    internals.skinny_configure()
    internals.skinny_mma_configure()
    internals.quantized_tile_configure()


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("m", range(1, 17))
def test_every_number_of_rows_is_exact_within_rounding(name, m, rng):
    n = 8 * int(rng.integers(1, 700))
    cases.check(rng, PLAIN, name, m, n, 8 * int(rng.integers(1, 900)))
    cases.check(rng, PLAIN, name, m, 2048, 4096)


def test_odd_numbers_of_features_and_mixed_results(rng):
    for n in (1, 3, 31, 257, 4099):
        cases.check(rng, PLAIN, "bfloat16", 5, n, 1000, out="float32", alpha=0.5, has_bias=True)
        cases.check(rng, PLAIN, "float32", 16, n, 1004, beta=-2.0)


def test_long_k_goes_through_shared_memory_in_spans(rng):
    cases.check(rng, PLAIN, "bfloat16", 16, 300, 40000)
    cases.check(rng, PLAIN, "float32", 16, 300, 40000)
    cases.check(rng, INT4, "float16", 16, 304, 38400, group=32)


@pytest.mark.parametrize("case", CASES)
def test_cases_that_the_cpu_runs_too(case, rng):
    case(rng)


@pytest.mark.parametrize("form", [INT8, INT4], ids=["int8", "int4"])
@pytest.mark.parametrize("group", [32, 64, 128, 0])
@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 16])
def test_quantized_weights_of_a_layer(form, group, m, rng):
    for name in ("bfloat16", "float16"):
        cases.check(rng, form, name, m, 4096, 4096, group=group)


def test_equal_bits_from_run_to_run(rng):
    x, w = (
        gt.asarray(rng.standard_normal(shape).astype(np.float32), device="cuda").astype(gt.bfloat16)
        for shape in ((16, 8192), (8192, 8192))
    )
    results = []
    for _ in range(20):
        y = gt.full((16, 8192), np.nan, dtype=gt.bfloat16, device="cuda")
        addresses = (x.data_ptr(), w.data_ptr(), y.data_ptr(), 0, 0, 0)
        stream = gt.current_stream("cuda").cuda_stream
        pitches = (8192, 8192, 8192, 0)
        sizes = (16, 8192, 8192)
        assert internals.skinny_run(0, stream, PLAIN, (10, 10), sizes, addresses, pitches)
        results.append(y.numpy().view(np.uint16))
    assert all(np.array_equal(result, results[0]) for result in results)


@pytest.mark.parametrize("what", ["sum", "gate", "heads"])
@pytest.mark.parametrize("form", range(len(fused_checks.FORMS)))
@pytest.mark.parametrize("case", range(8))
def test_fused_product(rng, form, what, case):
    fused_checks.check_form(rng, *fused_checks.FORMS[form], what)


@pytest.mark.parametrize("norm", [None, "rms", "layer"])
@pytest.mark.parametrize("case", range(40))
def test_panels(rng, norm, case):
    """Any shape of block, layout, norm and end; sizes of several waves of blocks too."""
    rows, columns = fused_checks.PANEL_TILES[case % 4]
    if case < 30:
        internals.panel_configure(rows=rows, columns=columns)
    try:
        fused_checks.check_panel(
            rng, fused_checks.panel_sizes(rng, 8), norm, rng.choice(["silu", "relu", "gelu", None]),
            writes_rows=norm is not None and bool(rng.integers(2)),
            is_along_terms=bool(rng.integers(2)),
        )  # fmt: skip
    finally:
        internals.panel_configure()


@pytest.mark.parametrize("columns", [*fused_checks.HELD_COLUMNS, 0])
@pytest.mark.parametrize("case", range(8))
def test_held_weights(rng, columns, case):
    """Any shape of block, layout and end; sizes of several tiles of each block too."""
    is_along_terms = columns not in fused_checks.HELD_TURNED or bool(rng.integers(2))
    internals.panel_configure(held=columns)
    sizes = fused_checks.held_sizes(rng, columns or 192, 1 if case < 4 else 6)
    if case == 7:
        sizes = (int(rng.integers(8000, 30000)), *sizes[1:])
    try:
        fused_checks.check_panel(
            rng, sizes, None, rng.choice(["silu", "relu", "gelu", None]), writes_rows=False,
            is_along_terms=is_along_terms,
        )  # fmt: skip
    finally:
        internals.panel_configure()


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8, 19])
@pytest.mark.parametrize("case", range(6))
def test_brief_products(rng, monkeypatch, rows, case):
    monkeypatch.setattr(brief_programs, "brief_wins", lambda m, n, k, dtype: True)
    n, k = int(rng.integers(1, 900)), 8 * int(rng.integers(1, 300))
    activation = rng.choice(["silu", "relu", "gelu", None])
    fused_checks.check_brief(rng, (rows, n, k), activation)


@pytest.mark.parametrize("columns", [(1, 17), (17, 65), (65, 257)])
@pytest.mark.parametrize("case", range(8))
def test_rows_of_brief_products(rng, columns, case):
    n, rows = int(rng.integers(*columns)), int(rng.integers(1, 17))
    fused_checks.check_row(rng, (rows, n, 8 * int(rng.integers(1, (1 << 11) // n + 1))))


@pytest.mark.parametrize("case", range(6))
def test_classifiers(rng, case):
    """A perceptron and a softmax; the second call reads its weights before the first has ended."""
    k, hidden, n = 16 * int(rng.integers(32, 60)), 16 * int(rng.integers(32, 60)), 10
    x = rng.standard_normal((1, k)).astype(np.float32)
    weights = {
        "up": rng.standard_normal((hidden, k)) * k**-0.5, "first": rng.standard_normal(hidden),
        "down": rng.standard_normal((n, hidden)) * hidden**-0.5, "second": rng.standard_normal(n),
    }  # fmt: skip

    def function(x, *, weights):
        x = gt.linear(x, weights["up"], weights["first"], activation="relu")
        return gt.softmax(gt.linear(x, weights["down"], weights["second"]))

    dtype = (gt.float16, gt.bfloat16)[case % 2]
    held = {name: gt.asarray(one, device="cuda", dtype=dtype) for name, one in weights.items()}
    program = gt.compile(function, gt.spec((1, k), dtype), weights=held)
    (made,) = program.data.functions.values()
    assert [call.name for call in made.calls] == ["fused_product", "row_product"]
    unit = UNIT[str(dtype)]
    wide = {name: one.astype(gt.float64) for name, one in held.items()}
    for factor in (1, 2, 3):
        given = gt.asarray(x * factor, device="cuda", dtype=dtype)
        want = function(given.astype(gt.float64), weights=wide).numpy()
        found = [program(given) for _ in range(50)]
        # A classifier's logits are below 16, with errors of some units of hidden numbers below 8.
        for got in found:
            assert np.abs(got.numpy().astype(np.float64) - want).max() <= 32 * unit
            np.testing.assert_array_equal(got.numpy(), found[0].numpy())


@pytest.mark.parametrize("form", ["plain", "int8", "int4:32", "int4:128"])
@pytest.mark.parametrize("case", range(4))
def test_tokens_of_a_model(rng, form, case):
    rows, width = (1, 2048) if form == "plain" else (int(rng.integers(1, 17)), None)
    model = DecodeModel(rng, form, str(rng.choice(["float16", "bfloat16"])), rows, width)
    inputs, found = [model.inputs() for _ in range(6)], {}
    for rounding in ("each", "once"):
        with model.program("cuda", rounding=rounding).session() as session:
            found[rounding] = [session(gt.asarray(x, device="cuda")).numpy() for x in inputs]
    for once, each in zip(found["once"], found["each"], strict=True):
        scale = np.abs(each.astype(np.float64)).max()
        np.testing.assert_allclose(
            once.astype(np.float64), each.astype(np.float64), rtol=0,
            atol=16 * UNIT[model.dtype] * scale,
        )  # fmt: skip
    if form == "plain":
        for each, eager in zip(found["each"], model.eager("cuda", inputs), strict=True):
            np.testing.assert_array_equal(each, eager)


def test_few_rows_of_any_layout_and_alignment(rng):
    few_rows_checks.many(rng, 60)
    few_rows_checks.check(rng, "float32", 7, 12104, 9024)
    few_rows_checks.check(rng, "float32", 12104, 3, 9024, layout="TT")
    few_rows_checks.check(rng, "bfloat16", 4, 5000, 7001, layout="TT", gaps=(1, 0))
