"""The examples of docs/tracing.md run, in a process of their own on the host device."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_examples_of_the_document_hold():
    done = subprocess.run(
        [sys.executable, "-m", "doctest", str(ROOT / "docs" / "tracing.md")],
        capture_output=True,
        text=True,
        env={**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
