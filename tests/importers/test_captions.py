"""The vision-language example: its model against NumPy in float64, and its captions."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf

import gputensor as gt

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def captions():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        with gt.device("host"):
            yield importlib.import_module("captions")
    finally:
        sys.path.remove(str(ROOT / "examples"))
        sys.modules.pop("captions")


def norm(x, weight):
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5) * weight


def gelu(x):
    return x / 2 * (1 + erf(x / np.sqrt(2)))


def turned(x):
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[-2])[:, None] * 10000.0 ** (-np.arange(half) / half)
    low, high = x[..., :half], x[..., half:]
    sin, cos = np.sin(angles), np.cos(angles)
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)


def layer(x, w, heads, is_text):
    rows = (norm(x, w["norm1"]) @ w["qkv"].T).reshape(len(x), 3, heads, -1)
    q, k, v = rows.transpose(1, 2, 0, 3)
    if is_text:
        q, k = turned(q), turned(k)
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    if is_text:
        scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    a = shares / shares.sum(-1, keepdims=True) @ v
    x = x + a.swapaxes(0, 1).reshape(len(x), -1) @ w["out"].T
    return x + gelu(norm(x, w["norm2"]) @ w["up"].T) @ w["down"].T


def logits_of(captions, image, words):
    """Logits of the model in float64, without a cache: after the image, and after each word."""
    w = captions.as_dtype(gt.map_safetensors(captions.WEIGHTS), np.float64)
    side = image.shape[1] // captions.PATCH
    patches = image.reshape(3, side, captions.PATCH, side, captions.PATCH).transpose(1, 3, 0, 2, 4)
    x = patches.reshape(side * side, -1) @ w["patch"].reshape(len(w["patch"]), -1).T + w["places"]
    for part in w["encoder"]:
        x = layer(x, part, captions.HEADS, False)
    x = gelu(x @ w["projector"][0].T) @ w["projector"][1].T
    x = np.concatenate([x, w["embed"][words]])
    for part in w["decoder"]:
        x = layer(x, part, captions.HEADS, True)
    return (norm(x, w["norm"]) @ w["head"].T)[side * side - 1 :]


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-4), ("bfloat16", 0.05)])
def test_values_are_those_of_the_definition(captions, rng, dtype, bound):
    dtype = getattr(gt, dtype)
    words = rng.integers(0, 20, 9)
    with captions.compiled(dtype) as program, program.session() as session:
        for _again in range(2):  # a second image resets the state
            image = rng.uniform(0, 1, (3, 32, 32))
            found = [session.look(gt.asarray(image, dtype=dtype))]
            found += [session.tell(gt.asarray(words[i : i + 1])) for i in range(len(words))]
            found = np.stack([logits.numpy().astype(np.float64) for _word, logits in found])
            want = logits_of(captions, image, words)
            np.testing.assert_allclose(found, want, atol=bound * np.abs(want).max())


def test_captions_name_what_is_drawn(captions):
    rng, right = np.random.default_rng(), 0
    with captions.compiled() as program, program.session() as session:
        for _image in range(40):
            text = captions.shapes.caption(rng)
            image = gt.asarray(captions.shapes.drawn(text, rng), dtype=gt.bfloat16)
            right += captions.caption(session, image) == text
    assert right >= 31  # 6 of 976 were wrong; with 1 in 50, more than 9 of 40 are in 1e-8 of runs


def test_example_runs_by_one_command(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "captions.py")], cwd=tmp_path,
        env={**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"drawn: (a .*)\nsaid:  a .*\n", done.stdout)) == 4
