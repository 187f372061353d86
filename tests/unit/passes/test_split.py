"""Calls that depend on weights alone run when a program is compiled."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import images

X = gt.spec((gt.Dim("n", 1, 9), 6), gt.float16)


@pytest.fixture(autouse=True)
def host():
    with gt.device("host"):
        yield


@pytest.fixture
def weights(rng):
    return {"w": rng.standard_normal((5, 6), np.float32), "b": rng.random(5, np.float32)}


def linear(x, *, weights):
    w = gt.astype(weights["w"].T, gt.float16) * 2
    return gt.matmul(x, w) + gt.astype(gt.exp(weights["b"]), gt.float16)


def names(program):
    return [call.name for function in program.functions.values() for call in function.calls]


def check(program, model, rng, weights, rtol=0.0):
    x = gt.asarray(rng.standard_normal((3, 6)).astype(np.float16))
    wanted = model(x, weights={name: gt.asarray(one) for name, one in weights.items()})
    found = program(x)
    np.testing.assert_allclose(found.numpy().astype(float), wanted.numpy(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("rounding", ["each", "once"])
def test_calls_of_weights_alone_run_once(rounding, rng, weights, tmp_path):
    program = gt.compile(linear, X, weights=weights, rounding=rounding)
    assert names(program)[0] == "product" and len(names(program)) <= 2
    assert all(".prepared" in name for name in program.data.weights)
    program.save(tmp_path / "p.gtp", weights="w.safetensors")
    with gt.load_program(tmp_path / "p.gtp") as opened:
        check(opened, linear, rng, weights, 0 if rounding == "each" else 5e-3)


def test_for_an_absent_gpu_only_exact_calls_run_early(rng, weights, monkeypatch, tmp_path):
    monkeypatch.setattr(images, "image_of", lambda program, target: b"\x7fELF")
    each = gt.compile(linear, X, weights=weights, rounding="each", target="h200")
    ops = [call.attributes.get("op") for call in each.functions["linear"].calls]
    assert sorted(map(str, ops)) == ["None", "add", "copy", "exp"]
    once = gt.compile(linear, X, weights=weights, target="h200")
    assert len(names(once)) <= 2
    for program, rtol in ((each, 0), (once, 5e-3)):
        program.save(tmp_path / "p.gtp")
        with gt.load_program(tmp_path / "p.gtp") as opened:
            check(opened, linear, rng, weights, rtol)


def test_functions_and_regions_share_prepared_weights(rng, weights):
    def looped(x, *, weights):
        def body(i, c):
            return c + linear(x, weights=weights).astype(gt.float32)

        return gt.fori_loop(0, 2, body, gt.zeros((3, 5)))

    def model(x, *, weights):
        return linear(x, weights=weights)

    fixed = gt.spec((3, 6), gt.float16)
    program = gt.compile({"one": (model, fixed), "two": (looped, fixed)}, weights=weights)
    stored = {name for name in program.data.weights if not name.startswith("constant.")}
    assert len(stored) == 2 and all(".prepared" in name for name in stored), stored
    x = gt.asarray(rng.standard_normal((3, 6)).astype(np.float16))
    given = {name: gt.asarray(one) for name, one in weights.items()}
    with program.session() as session:
        found = session.two(x).numpy()
    np.testing.assert_allclose(found, looped(x, weights=given).numpy(), rtol=1e-2, atol=1e-2)


def test_calls_that_grow_weights_and_calls_of_states_and_results_stay(rng):
    def model(x, *, weights, state):
        state["s"] += weights["v"]
        wide = weights["v"][:, None] * gt.ones(300)
        return x + gt.sum(wide), gt.sum(state["s"] * 2), weights["v"] * 2

    given = {"weights": {"v": rng.standard_normal(300, np.float32)}}
    given["state"] = {"s": gt.spec((300,), gt.float32)}
    program = gt.compile(model, gt.spec((3,), gt.float32), **given, rounding="each")
    assert not any(".prepared" in name for name in program.data.weights), program
    x, v = gt.ones(3), given["weights"]["v"].astype(float)
    with program.session() as session:
        total, state, twice = (one.numpy() for one in session(x))
    np.testing.assert_allclose(total, 1 + 300 * v.sum(), rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(state, 2 * v.sum(), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(twice, 2 * given["weights"]["v"])


@pytest.mark.parametrize("target", ["host", "h200"])
def test_products_of_weights_run_once(target, rng, monkeypatch, tmp_path):
    """Factors of a matrix, as those of a low-rank correction, become one matrix."""
    monkeypatch.setattr(images, "image_of", lambda program, target: b"\x7fELF")
    shapes = {"w": (6, 5), "down": (6, 2), "up": (2, 5)}
    weights = {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}

    def model(x, *, weights):
        return x @ (weights["w"] + 0.5 * gt.matmul(weights["down"], weights["up"]))

    spec = gt.spec((gt.Dim("n", 1, 9), 6))
    assert len(names(gt.compile(model, spec, weights=weights, rounding="each"))) > 1
    program = gt.compile(model, spec, weights=weights, target=target)
    assert names(program) == ["product"], str(program)
    program.save(tmp_path / "p.gtp")
    x = rng.standard_normal((3, 6)).astype(np.float32)
    wide = {name: one.astype(float) for name, one in weights.items()}
    wanted = x @ (wide["w"] + 0.5 * (wide["down"] @ wide["up"]))
    with gt.load_program(tmp_path / "p.gtp") as opened:
        np.testing.assert_allclose(opened(gt.asarray(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)
