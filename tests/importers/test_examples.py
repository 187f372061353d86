"""Examples with models: one runs by one command on the host device; model files have metadata."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
import safetensors

ROOT = Path(__file__).resolve().parents[2]

TRAINED = ("language", "speech", "captions")

pytestmark = pytest.mark.slow


def run(name, folder, **variables):
    """Run an example; return its output."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT), **variables},
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digits_are_read(tmp_path):
    before = time.monotonic()
    text = run("digits_onnx.py", tmp_path)
    assert time.monotonic() - before < 60
    assert float(re.search(r"([\d.]+)% of 898 digits are right", text)[1]) > 96.5
    assert (tmp_path / "out" / "digits.gtp").stat().st_size < 200_000


def facts_of(path):
    """The metadata of a model file."""
    if path.suffix == ".onnx":
        return {one.key: one.value for one in onnx.load(path).metadata_props}
    with safetensors.safe_open(path, "np") as file:
        return file.metadata()


@pytest.mark.parametrize("name", ["digits.onnx", *(f"{n}.safetensors" for n in TRAINED)])
def test_models_name_their_script_seed_and_score(name):
    path = ROOT / "examples" / "models" / name
    facts = facts_of(path)
    assert (path.parent / facts["script"]).exists()
    # The language model's score is a loss, the others' is a share of right results.
    assert float(facts["score"]) > 0.9 and int(facts["seed"]) >= 0


def test_models_are_small():
    paths = (ROOT / "examples" / "models").glob("*.*")
    models = [path for path in paths if path.suffix in (".onnx", ".safetensors")]
    assert len(models) == 1 + len(TRAINED)
    assert sum(path.stat().st_size for path in models) < 2_000_000
