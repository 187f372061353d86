"""The speech example: its model against NumPy in float64, its spectrum, and its transcripts."""

import importlib
import os
import re
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf

import gputensor as gt

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def speech():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        with gt.device("host"):
            yield importlib.import_module("speech")
    finally:
        sys.path.remove(str(ROOT / "examples"))
        sys.modules.pop("speech")


class Reference:
    """The model in float64, without a cache."""

    def __init__(self, speech):
        self.speech = speech
        self.w = speech.as_dtype(gt.map_safetensors(speech.WEIGHTS), np.float64)

    @staticmethod
    def linear(x, w):
        return x @ w[0].T + w[1]

    @staticmethod
    def norm(x, w):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5) * w[0] + w[1]

    @staticmethod
    def gelu(x):
        return x / 2 * (1 + erf(x / np.sqrt(2)))

    def convolution(self, x, w, stride):
        wide = np.pad(x, ((0, 0), (1, 1)))
        frames = np.lib.stride_tricks.sliding_window_view(wide, 3, 1)[:, ::stride]
        return self.gelu(np.einsum("ctk,ock->ot", frames, w[0]) + w[1][:, None])

    def attend(self, x, w, y, is_causal=False):
        split = lambda rows: rows.reshape(len(rows), self.speech.HEADS, -1).swapaxes(0, 1)  # noqa: E731
        q = split(self.linear(self.norm(x, w["norm"]), w["q"]))
        k, v = (split(self.linear(y, w[name])) for name in "kv")
        scores = q @ k.swapaxes(1, 2) / np.sqrt(self.speech.SIZE)
        if is_causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        found = (shares / shares.sum(-1, keepdims=True)) @ v
        return x + self.linear(found.swapaxes(0, 1).reshape(len(x), -1), w["out"])

    def mlp(self, x, w):
        h = self.gelu(self.linear(self.norm(x, w["norm"]), w["up"]))
        return x + self.linear(h, w["down"])

    def logits(self, mel, tokens):
        w = self.w
        x = self.convolution(self.convolution(mel, w["conv1"], 1), w["conv2"], 2).T + w["places"]
        for part in w["encoder"]:
            x = self.attend(x, part["self"], self.norm(x, part["self"]["norm"]))
            x = self.mlp(x, part)
        heard = self.norm(x, w["norm"])
        x = w["embed"][tokens] + w["positions"][: len(tokens)]
        for part in w["decoder"]:
            x = self.attend(x, part["self"], self.norm(x, part["self"]["norm"]), is_causal=True)
            x = self.attend(x, part["cross"], heard)
            x = self.mlp(x, part)
        return self.norm(x, w["last"]) @ w["embed"].T


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-4), ("bfloat16", 0.1)])
def test_values_are_those_of_the_definition(speech, rng, dtype, bound):
    """Random sounds and random tokens for the decoder."""
    reference = Reference(speech)
    mel = rng.standard_normal((speech.tones.MELS, speech.tones.FRAMES), np.float32)
    dtype = getattr(gt, dtype)
    tokens = rng.integers(0, 16, speech.LENGTH)
    with speech.compiled(dtype) as program, program.session() as session:
        for _again in range(2):  # a second sound resets the state
            session.encode(gt.asarray(mel, dtype=dtype))
            found = [session.decode(gt.asarray(tokens[i : i + 1])) for i in range(len(tokens))]
            found = np.stack([logits.numpy().astype(np.float64) for _token, logits in found])
            want = reference.logits(mel.astype(np.float64), tokens)
            np.testing.assert_allclose(found, want, atol=bound * np.abs(want).max())
            mel = rng.standard_normal(mel.shape, np.float32)


def test_spectrum_equals_numpys(speech, rng):
    samples = speech.tones.sound("12*", rng)
    found = speech.log_mel(gt.asarray(samples)).numpy()
    np.testing.assert_allclose(found, speech.tones.log_mel(samples), atol=2e-3)


def test_new_numbers_are_recognized(speech):
    rng, right = np.random.default_rng(), 0
    with speech.compiled() as program, program.session() as session:
        for _sound in range(25):
            number = speech.tones.number(rng)
            mel = speech.log_mel(gt.asarray(speech.tones.sound(number, rng)))
            right += speech.written(session, gt.astype(mel, gt.bfloat16)) == number
    assert right >= 18  # 1 of 817 was wrong; with 1 in 50, more than 7 of 25 are in 3e-8 of runs


def test_example_runs_by_one_command(speech, tmp_path):
    samples = speech.tones.sound("0815", np.random.default_rng(3))
    with wave.open(str(tmp_path / "dial.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(speech.tones.RATE)
        file.writeframes((samples * 32000).clip(-32768, 32767).astype("<i2").tobytes())

    def run(*words):
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / "speech.py"), *words], cwd=tmp_path,
            env={**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    lines = run("--count=3").splitlines()
    assert all(re.fullmatch(r"dialled ([\d*#]+), heard \1", line) for line in lines), lines
    assert run("--wav=dial.wav") == "0815\n"
