"""Random objects of other libraries, true and lying, against NumPy's view of the same memory.

A few thousand programs of each kind; foreign_fuzz.py runs campaigns of the same programs.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.interop import foreign_fuzz

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 3000


@pytest.mark.parametrize("subject", foreign_fuzz.SUBJECTS)
def test_foreign_objects_give_their_values_or_one_clear_error(subject):
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"{subject}: seed {seed}")
    seen = foreign_fuzz.run(subject, PROGRAMS, seed)
    assert len(seen) > 3 and min(seen.values()) > 5


def test_campaign_prints_its_counts():
    command = [sys.executable, "-m", "tests.interop.foreign_fuzz", "all", "--programs", "50"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(foreign_fuzz.SUBJECTS) + 1 and lines[-1] == "ok"
    assert all("50 programs" in line for line in lines[:-1])
