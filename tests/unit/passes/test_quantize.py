"""Products with quantized weights in programs: values, which matrices, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor.blas.host.group_scales import CLIPPING, SIGNED_CLIPPING, in_groups
from gputensor.cli.main import main
from gputensor.programs.compile import compile as compiled

SCHEMES = (
    "int8",
    "int8:128",
    "int4:32",
    "int4:64",
    "int4:128",
    "int4:32:offset",
    "int4:128:offset",
)
DTYPES = ("float16", "bfloat16", "float32")
ACTIVATIONS = (None, "relu", "gelu", "gelu_tanh", "silu")


@pytest.fixture(autouse=True)
def host():
    with gt.device("host"):
        yield


def matrix(rng, *shape, dtype="float32"):
    return rng.standard_normal(shape, np.float32).astype(getattr(ml_dtypes, dtype, dtype))


def activated(x, name):
    if name == "relu":
        return np.maximum(x, 0)
    if name == "silu":
        return x / (1 + np.exp(-x))
    if name == "gelu_tanh":
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    if name == "gelu":
        from scipy.special import erf

        return x / 2 * (1 + erf(x / np.sqrt(2)))
    return x


def quantized_values(weight, scheme):
    """A weight (n, k) as a scheme stores it, found by an independent search.

    With 16 integers, a scale and its negative often lose the same, and rounding of the sums decides
    between them. Of groups whose losses are equal but for rounding, this returns the stored one.
    """
    bits, size = (int(part) for part in (f"{scheme}:0".replace("int", "").split(":")[:2]))
    has_offsets = scheme.endswith("offset")
    n, k = weight.shape
    size, largest, dtype = size or k, 2 ** (bits - 1) - 1, weight.dtype
    is_signed = bits == 4 and not has_offsets
    how = {"dtype": dtype, "clipping": SIGNED_CLIPPING if is_signed else CLIPPING}
    wide_weight = np.ascontiguousarray(weight.astype(np.float32))
    stored = in_groups(wide_weight, size, largest, has_offsets=has_offsets, **how).values()
    found = np.empty((n, k))
    for row in range(n):
        for start in range(0, k, size):
            part = slice(start, start + size)
            choices = group_choices(wide_weight[row, part], dtype, largest, has_offsets, is_signed)
            least = min(error for error, _values in choices)
            equal = [values for error, values in choices if error <= least * (1 + 1e-5)]
            found[row, part] = min(equal, key=lambda one: np.square(one - stored[row, part]).sum())
    return found


def group_choices(group, dtype, largest, has_offsets, is_signed):
    """The squared error and the values of a group for each share of its range."""
    signs = (1, -1) if is_signed else (1,)
    shares = [sign * share for share in np.linspace(1, 0.7, 13) for sign in signs]
    found = []
    for share in np.float32(shares):
        if has_offsets:
            low, high = group.min(), group.max()
            scale = ((high - low) / (2 * largest + 1) * share).astype(dtype)
            middle = (low + high) / 2 + np.float32(scale) / 2
            offset = np.float32(middle.astype(dtype))
        else:
            scale, offset = (np.abs(group).max() / largest * share).astype(dtype), 0
        wide = np.float32(scale) or np.float32(1)
        integers = np.clip(np.rint((group - offset) / wide), -largest - 1, largest)
        values = integers.astype(np.float64) * wide + offset
        found.append((np.square(values - group).sum(), values))
    return found


def test_the_stored_one_of_two_scales_that_lose_the_same_is_expected(rng):
    """One integer has no opposite: with 8 and -8 in a group, a scale and its negative lose 1."""
    w = rng.integers(-7, 8, (3, 64)).astype(np.float32)
    w[:, :2] = 8, -8
    for sign in (1, -1):
        shares = [sign * share for share in SIGNED_CLIPPING]
        found = in_groups(w, 64, 7, dtype=w.dtype, clipping=shares).values()
        assert np.abs(found - w).sum(1) == pytest.approx(1)
    found = in_groups(w, 64, 7, dtype=w.dtype, clipping=SIGNED_CLIPPING).values()
    np.testing.assert_allclose(quantized_values(w, "int4:64"), found, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_products_have_the_values_of_quantized_weights(rng, scheme, dtype):
    n, k = int(rng.integers(1, 50)), 128 * int(rng.integers(1, 3))
    w, x = matrix(rng, n, k, dtype=dtype), matrix(rng, 5, k, dtype=dtype)

    def rows(x, *, weights):
        return gt.linear(x, weights["w"])

    spec = gt.spec((gt.Dim("rows", 1, 64), k), dtype)
    program = gt.compile(rows, spec, weights={"w": w}, quantize={"w": scheme})
    found = program(gt.asarray(x)).numpy().astype(np.float64)
    want = x.astype(np.float64) @ quantized_values(w, scheme).T
    bound = {"float16": 3e-3, "bfloat16": 2e-2, "float32": 2e-5}[dtype]
    # Offsets are added to a rounded result.
    np.testing.assert_allclose(found, want, rtol=bound, atol=bound * np.sqrt(k) * 2)
    facts = program.report()["rows"]["matrices"]["w"]
    assert facts["plain_bytes"] == w.nbytes and facts["bytes"] == sum(
        weight.size * weight.itemsize for weight in program.weights.values()
    )


@pytest.mark.parametrize("scheme", ["int8", "int4:32:offset"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_options_of_a_product_are_kept(rng, activation, scheme):
    """Every option of linear and of matmul, weights on either side, three axes, slices."""
    k, n = 64, 24
    w, v, bias = matrix(rng, n, k), matrix(rng, k, n), matrix(rng, n)
    x, added = matrix(rng, 2, 3, k), matrix(rng, 2, 3, n)
    factor = matrix(rng, n)

    def many(x, added, *, weights):
        a = gt.linear(x, weights["w"], weights["bias"], activation=activation, residual=added)
        b = gt.linear(x, weights["w"], scale=0.5, activation=activation)
        c = gt.linear(x, weights["w"], weights["bias"], scale=weights["factor"])
        d = gt.matmul(x, weights["v"], activation=activation)
        e = gt.linear(x, weights["w"], residual=added)
        f = gt.linear(x[:, 1:], weights["w"], activation=activation)
        g = gt.linear(gt.swapaxes(x, 0, 1), weights["w"])
        return a, b, c, d, e, f, g, gt.matmul(x[0, 0], weights["v"])

    specs = (
        gt.spec((gt.Dim("a", 1, 9), gt.Dim("b", 2, 9), k)),
        gt.spec((gt.Dim("a", 1, 9), gt.Dim("b", 2, 9), n)),
    )
    weights = {"w": w, "v": v, "bias": bias, "factor": factor}
    program = gt.compile(many, *specs, weights=weights, quantize={"w": scheme, "v": scheme})
    # Sums of the same groups are computed once.
    assert str(program).count("= product") == (0 if scheme == "int8" else 5)
    found = [one.numpy().astype(np.float64) for one in program(gt.asarray(x), gt.asarray(added))]
    w, v = quantized_values(w, scheme), quantized_values(v.T, scheme).T
    y = x.astype(np.float64) @ w.T
    want = [
        activated(y + bias, activation) + added,
        activated(y * 0.5, activation),
        y * factor + bias,
        activated(x.astype(np.float64) @ v, activation),
        y + added,
        activated(y, activation)[:, 1:],
        np.swapaxes(y, 0, 1),
        x[0, 0].astype(np.float64) @ v,
    ]
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def network(x, *, weights):
    x = gt.take(weights["embed"], x, axis=0)
    for layer in weights["layers"]:
        x = gt.linear(gt.rms_norm(x, layer["norm"]), layer["up"])
        x = gt.linear(x, layer["down"])
    return gt.linear(x, weights["head"])


def network_weights(rng):
    layers = [
        {"norm": matrix(rng, 32), "up": matrix(rng, 64, 32), "down": matrix(rng, 32, 64)}
        for _layer in range(3)
    ]
    return {"embed": matrix(rng, 9, 32), "layers": layers, "head": matrix(rng, 9, 32)}


def taken(rng, **quantize):
    program = gt.compile(
        network, gt.spec((4,), gt.int64), weights=network_weights(rng), quantize=quantize
    )
    matrices = program.report()["network"]["matrices"]
    return {name: facts["scheme"] for name, facts in matrices.items()}


def test_the_first_pattern_that_matches_holds(rng):
    found = taken(rng, **{"layers.1.up": "int8", "layers.2.*": "none", "*": "int4:32"})
    assert found == {
        "layers.0.up": "int4:32",
        "layers.0.down": "int4:32",
        "layers.1.up": "int8",
        "layers.1.down": "int4:32",
    }


def test_the_last_product_needs_its_full_name(rng):
    assert "head" not in taken(rng, **{"*": "int8"})
    assert taken(rng, **{"head": "int8:128"[:4]}) == {"head": "int8"}
    with pytest.raises(ValueError, match=r"'h\*'; head is read by the last product"):
        taken(rng, **{"h*": "int8"})


@pytest.mark.parametrize(
    "quantize, text",
    [
        ({"embed": "int8"}, "'embed'; embed is read by gather at"),
        ({"layers.*.norm": "int8"}, "'layers.*.norm'; layers.0.norm is read by formula at"),
        ({"q": "int8"}, "'q', which matches no matrix that a product reads"),
        ({"*": "int8", "layers.0.up": "int4:32"}, "whose matrices an earlier pattern matches"),
        ({"layers.*": "int4:16"}, "quantize: got 'int4:16'; expected int8, int8:128"),
        ({"layers.*": "int8:128"}, "layers.0.up of 32 terms; expected a multiple of 128"),
    ],
)
def test_bad_options_are_refused(rng, quantize, text):
    with pytest.raises(ValueError) as caught:
        taken(rng, **quantize)
    assert text in str(caught.value)


def test_a_matrix_that_something_else_reads_stays(rng):
    def both(x, *, weights):
        return gt.linear(x, weights["w"]) + gt.sum(weights["w"])

    with pytest.raises(ValueError, match="w is read by reduce"):
        gt.compile(
            both, gt.spec((1, 32)), weights={"w": matrix(rng, 8, 32)}, quantize={"w": "int8"}
        )


def test_loops_and_several_functions_share_quantized_weights(rng, tmp_path):
    w = matrix(rng, 32, 32)
    w /= np.linalg.norm(w, 2)

    def turned(x, *, weights):
        return gt.fori_loop(0, 3, lambda i, x: gt.linear(x, weights["w"]), x)

    def once(x, *, weights):
        return gt.linear(x, weights["w"])

    spec = gt.spec((2, 32))
    program = gt.compile(
        {"turned": (turned, spec), "once": (once, spec)}, weights={"w": w}, quantize={"w": "int8"}
    )
    x, kept = matrix(rng, 2, 32), quantized_values(w, "int8").T
    program.save(tmp_path / "p.gtp")
    for one in (program, gt.load_program(tmp_path / "p.gtp")):
        np.testing.assert_allclose(
            one.turned(gt.asarray(x)).numpy(), x @ kept @ kept @ kept, atol=1e-5
        )
        np.testing.assert_allclose(one.once(gt.asarray(x)).numpy(), x @ kept, atol=1e-5)
        assert one.report()["once"]["matrices"]["w"]["scheme"] == "int8"


def test_the_report_has_the_errors(rng):
    w, x = matrix(rng, 40, 128), matrix(rng, 3, 128)
    w[7] *= rng.standard_exponential(128).astype(np.float32) ** 3  # few large elements

    def rows(x, *, weights):
        return {"y": gt.linear(x, weights["w"])}

    spec, how = (
        gt.spec((gt.Dim("n", 1, 8), 128)),
        {"weights": {"w": w}, "quantize": {"w": "int4:64"}},
    )
    reported = gt.compile(rows, spec, **how).report()["rows"]
    kept, facts = quantized_values(w, "int4:64"), reported["matrices"]["w"]
    lost = np.linalg.norm(kept - w) / np.linalg.norm(w)
    by_row = np.linalg.norm(kept - w, axis=1) / np.linalg.norm(w, axis=1)
    assert facts["relative_error"] == pytest.approx(lost, rel=1e-3)
    assert facts["worst_row"] == by_row.argmax()
    assert facts["worst_row_error"] == pytest.approx(by_row.max(), rel=1e-3)
    assert facts["snr_db"] == pytest.approx(-20 * np.log10(lost), abs=0.01)
    program = gt.compile(rows, spec, calibrate={"rows": {"x": x}}, **how)
    (result,) = program.report()["rows"]["results"]
    error = program(gt.asarray(x))["y"].numpy() - x.astype(np.float64) @ w.T
    assert result["largest_error"] == pytest.approx(np.abs(error).max(), rel=1e-3)
    assert result["relative_error"] == pytest.approx(
        np.linalg.norm(error) / np.linalg.norm(x @ w.T.astype(np.float64)), rel=1e-3
    )


def test_clipping_and_offsets_reduce_the_error(rng):
    values = rng.standard_normal((64, 256), np.float32) + rng.standard_normal((64, 1), np.float32)

    def error(**how):
        found = in_groups(values, 64, 7, dtype=np.float32, **how).values()
        return np.square(found - values).sum()

    plain = error()
    assert error(clipping=CLIPPING) < 0.97 * plain
    assert error(clipping=SIGNED_CLIPPING) < 0.96 * error(clipping=CLIPPING)
    assert error(clipping=CLIPPING, has_offsets=True) < 0.75 * plain


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_elements_of_a_group_with_an_offset_stay(rng, dtype):
    weight = matrix(rng, 8, 128, dtype=dtype)
    weight[2], weight[3, 32:64], weight[5, 96:] = 0, 3.75, -1e-3
    stored = in_groups(
        weight.astype(np.float32), 32, 7, dtype=weight.dtype, clipping=CLIPPING, has_offsets=True
    ).values()
    for place in (2, (3, slice(32, 64)), (5, slice(96, None))):
        np.testing.assert_array_equal(stored[place], weight[place].astype(np.float32))
    x = matrix(rng, 4, 128, dtype=dtype)
    weights = {"w": np.zeros_like(weight), "v": np.ones((2, 8), weight.dtype)}
    program = gt.compile(
        lambda x, *, weights: gt.linear(gt.linear(x, weights["w"]), weights["v"]),
        gt.spec((4, 128), dtype),
        weights=weights,
        quantize={"w": "int4:32:offset"},
    )
    np.testing.assert_array_equal(program(gt.asarray(x)).numpy().astype(np.float32), 0)


def test_calibrate_is_checked(rng):
    how = {"weights": {"w": matrix(rng, 8, 32)}, "quantize": {"w": "int8"}}

    def rows(x, *, weights):
        return gt.linear(x, weights["w"])

    nan = np.full((1, 32), np.nan, np.float32)
    with pytest.raises(
        ValueError, match=r"calibrate\['rows'\]: got calls whose inputs of w are no"
    ):
        compiled(rows, gt.spec((1, 32)), calibrate={"rows": (nan,)}, **how)
    with pytest.raises(ValueError, match="calibrate: got 'other'; expected rows"):
        compiled(rows, gt.spec((1, 32)), calibrate={"other": ()}, **how)
    with pytest.raises(ValueError, match="calibrate: got arguments; expected None"):
        compiled(rows, gt.spec((1, 32)), weights=how["weights"], calibrate={"rows": ()})


@pytest.mark.parametrize("junk", [3, "all", [], {"w": 5, "other": {}}, {"rows": 7}, None])
def test_an_untrusted_report_is_shown_as_it_is(rng, tmp_path, capsys, junk):
    """The metadata of a file may say anything."""

    def rows(x, *, weights):
        return gt.linear(x, weights["w"])

    program = gt.compile(rows, gt.spec((1, 32)), weights={"w": matrix(rng, 8, 32)})
    program.data.metadata.update(quantization=junk, quantized_results=junk)
    program.save(tmp_path / "p.gtp")
    with gt.load_program(tmp_path / "p.gtp") as loaded:
        reported = loaded.report()["rows"]
    assert reported["matrices"] == ({"w": 5} if isinstance(junk, dict) and "w" in junk else {})
    assert reported["results"] == []
    assert main(["inspect", str(tmp_path / "p.gtp")]) == 0
    assert "quantization:" in capsys.readouterr().out


@pytest.mark.parametrize("scheme", ["int8", "int4:32", "int4:64:offset"])
def test_rounding_goes_by_the_inputs_of_calls(rng, scheme):
    """With correlated inputs, results on similar inputs lose less than with rounding to nearest."""
    n, k = 24, 128
    mixed = rng.standard_normal((12, k), np.float32)

    def inputs(count):
        return (rng.standard_normal((count, 12)) @ mixed).astype(np.float32)

    def rows(x, *, weights):
        return gt.linear(gt.linear(x, weights["w"]), weights["last"])

    weights = {"w": matrix(rng, n, k), "last": np.eye(n, dtype=np.float32)}
    spec, x = gt.spec((gt.Dim("m", 1, 400), k)), inputs(400)
    how = {"weights": weights, "quantize": {"w": scheme}}
    calls = {"rows": [(inputs(200),), {"x": inputs(300)}]}
    want = x.astype(np.float64) @ weights["w"].T
    lost = []
    for given in ({}, {"calibrate": calls}):
        with compiled(rows, spec, **how, **given) as program:
            found = program(gt.asarray(x)).numpy()
            facts = program.report()["rows"]
        lost.append(np.sqrt(np.square(found - want).sum() / np.square(want).sum()))
    assert lost[1] < 0.7 * lost[0]
    reported = facts["matrices"]["w"]
    assert reported["error_on_inputs"] == pytest.approx(lost[1], rel=0.4)
    assert reported["error_on_inputs_before"] == pytest.approx(lost[0], rel=0.4)
    assert facts["results"][0]["relative_error"] == pytest.approx(lost[1], rel=0.4)


def test_products_in_loops_are_rounded_to_nearest(rng):
    weights = {"w": matrix(rng, 32, 32), "v": matrix(rng, 32, 32), "last": matrix(rng, 4, 32)}

    def rows(x, *, weights):
        y = gt.fori_loop(0, 2, lambda i, y: gt.tanh(gt.linear(y, weights["w"])), x)
        return gt.linear(gt.linear(y, weights["v"]), weights["last"])

    x = matrix(rng, 64, 32)
    how = {"weights": weights, "quantize": {"[wv]": "int4:32"}, "calibrate": {"rows": (x,)}}
    with compiled(rows, gt.spec(x.shape), **how) as program:
        reported = program.report()["rows"]["matrices"]
    assert "error_on_inputs" in reported["v"] and "error_on_inputs" not in reported["w"]
