"""Quantized programs, recognized attention, and the models of the examples, on a GPU."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from tests.support.programs.ahead_models import WITHOUT_COMPILER

ROOT = Path(__file__).resolve().parents[2]
BOUNDS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4}
SCHEMES = ("int8", "int8:128", "int4:32", "int4:128", "int4:64:offset")


def example(name):
    """Import a program of examples/ as a module."""
    sys.path[:0] = [str(ROOT / "examples")]
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "examples"))


def random(rng, dtype, *shape):
    return rng.standard_normal(shape, np.float32).astype(getattr(ml_dtypes, dtype, dtype))


def on(device, function, *arrays):
    """The results of a program on a device, in float64."""
    found = function(*(gt.asarray(one, device=device) for one in arrays))
    found = found if isinstance(found, tuple) else (found,)
    return [one.numpy().astype(np.float64) for one in found]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_quantized_programs_equal_those_of_the_host(cuda, rng, scheme, dtype):
    """Few rows use kernels that expand weights in registers; many rows use expanded weights."""
    n, k = 8 * int(rng.integers(3, 60)), 128 * int(rng.integers(1, 6))
    weights = {"w": random(rng, dtype, n, k), "b": random(rng, dtype, n)}

    def layer(x, added, *, weights):
        w, b = weights["w"], weights["b"]
        plain, wide = gt.linear(x, w), gt.linear(x, w, b, activation="gelu")
        return plain, wide, gt.linear(x, w, residual=added)

    specs = [gt.spec((gt.Dim("rows", 1, 128), extent), dtype) for extent in (k, n)]
    how = {"weights": weights, "quantize": {"w": scheme}}
    host, here = (gt.compile(layer, *specs, target=one, **how) for one in ("host", "cuda"))
    for rows in (1, 7, 16, 17, 100):
        given = random(rng, dtype, rows, k), random(rng, dtype, rows, n)
        for want, found in zip(on("host", host, *given), on("cuda", here, *given), strict=True):
            np.testing.assert_allclose(found, want, atol=BOUNDS[dtype] * np.abs(want).max())


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("form", ["plain", "mask", "choice", "causal", "grouped"])
def test_recognized_attention_is_right(cuda, rng, form, dtype):
    heads, n, size = 6, int(rng.integers(20, 90)), 64
    kept = 2 if form == "grouped" else heads
    seen = rng.random((2, 1, 1, n)) < 0.7
    seen[..., 0] = True
    tri = np.tri(n, dtype=bool)

    def attend(q, k, v, seen):
        if form == "grouped":
            shape = (2, kept, heads // kept, n, size)
            k, v = (gt.reshape(gt.broadcast_to(x[:, :, None], shape), q.shape) for x in (k, v))
        scores = q @ gt.swapaxes(k, -1, -2) * size**-0.5
        if form == "mask":
            scores = scores + gt.astype(gt.where(seen, 0.0, -1e4), q.dtype)
        if form == "choice":
            scores = gt.where(seen, scores, -gt.inf)
        if form == "causal":
            scores = gt.where(gt.asarray(tri), scores, -gt.inf)
        return gt.softmax(scores, axis=-1) @ v

    arrays = [random(rng, dtype, 2, h, n, size) for h in (heads, kept, kept)]
    specs = [gt.spec(one.shape, dtype) for one in arrays]
    program = gt.compile(attend, *specs, gt.spec(seen.shape, "bool"), target="cuda")
    assert str(program).count("= attention") == 1 and "product" not in str(program)
    q, k, v = (one.astype(np.float64) for one in arrays)
    k, v = (np.repeat(one, heads // kept, 1) for one in (k, v))
    scores = q @ k.swapaxes(-1, -2) * size**-0.5
    if form in ("mask", "choice", "causal"):
        scores = np.where(tri if form == "causal" else seen, scores, -1e300)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    want = shares / shares.sum(-1, keepdims=True) @ v
    (found,) = on("cuda", program, *arrays, seen)
    np.testing.assert_allclose(found, want, atol=BOUNDS[dtype] * np.abs(want).max())


@pytest.mark.parametrize("scheme", [None, "int8", "int4:128", "int4:32:offset"])
def test_the_language_model_has_the_same_loss_as_on_the_host(cuda, rng, scheme):
    model = example("language_model")
    text = "The with statement is used to wrap the execution of a block with methods defined. "
    numbers = model.Tokens().numbers(text * 8)[: 2 * model.LENGTH]
    losses = []
    for device in ("host", "cuda"):
        with gt.device(device), model.compiled(scheme, target=device) as program:
            losses.append(model.loss_of(program, numbers))
    assert losses[1] == pytest.approx(losses[0], rel=2e-3)


def test_greedy_tokens_are_those_of_the_host(cuda):
    """Rounding to bfloat16 may swap two nearly equal tokens, so only the first are compared."""
    model, found = example("language_model"), []
    prompt = model.Tokens().numbers("The with statement")
    for device in ("host", "cuda"):
        with gt.device(device), model.compiled("int4:128", target=device) as program:
            with program.session() as session:
                found.append(list(model.stream(session, prompt, 40, (0, 40, 0.9))))
    assert found[0][:12] == found[1][:12]


TOKENS = (
    WITHOUT_COMPILER
    + """
device, path, prompt = sys.argv[1], sys.argv[2], [int(one) for one in sys.argv[3:]]
with gt.device(device), gt.load_program(path) as program, program.session() as session:
    choice = gt.asarray([0, 40, 0.9], dtype=gt.float32)
    token = session.prefill(gt.asarray(prompt), choice)
    print([token.item()] + [(token := session.decode(token, choice)).item() for _ in range(9)])
"""
)


def tokens_of_file(path, device, prompt):
    """Return tokens made in a process without a kernel compiler, other compilers, and torch."""
    command = [sys.executable, "-c", TOKENS, device, str(path), *map(str, prompt)]
    environment = {**os.environ, "GPUTENSOR_KERNEL_CACHE": "0", "PATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout)


def test_int4_tokens_need_no_compiler_and_no_framework(cuda, tmp_path):
    model, path = example("language_model"), tmp_path / "language.gtp"
    prompt = model.Tokens().numbers("The with statement")
    with gt.device("cuda"), model.compiled("int4:128", target=["sm_80", "native"]) as program:
        program.save(path)
        with program.session() as session:
            wanted = list(model.stream(session, prompt, 10, (0, 40, 0.9)))
    assert tokens_of_file(path, "cuda", prompt) == wanted


def test_speech_and_caption_models_are_right(cuda, rng):
    speech, captions = example("speech"), example("captions")
    keys = [speech.tones.number(rng) for _i in range(6)]
    mels = [speech.tones.log_mel(speech.tones.sound(one, rng)) for one in keys]
    texts = [captions.shapes.caption(rng) for _i in range(6)]
    images = [captions.shapes.drawn(one, rng) for one in texts]
    with speech.compiled(target="cuda") as program, program.session() as session:
        heard = [speech.written(session, gt.asarray(one, dtype=gt.bfloat16)) for one in mels]
    with captions.compiled(target="cuda") as program, program.session() as session:
        said = [captions.caption(session, gt.asarray(one, dtype=gt.bfloat16)) for one in images]
    assert sum(a == b for a, b in zip(heard + said, keys + texts, strict=True)) >= 11
