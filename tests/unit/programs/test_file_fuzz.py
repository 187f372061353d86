"""Mutated files are refused in one line or are valid; file_fuzz.py runs longer campaigns."""

import pytest

from tests.unit.programs import file_fuzz


def test_mutated_files_are_refused_or_valid(seed):
    seen = file_fuzz.run(200, seed)
    assert sum(seen[kind] for kind in seen if kind.endswith("refused")) > 100


@pytest.mark.slow
def test_more_mutated_files(seed):
    seen = file_fuzz.run(2_000, seed)
    assert sum(seen[kind] for kind in seen if kind.endswith(" run")) > 20


def test_failure_names_the_seed(monkeypatch, capsys):
    monkeypatch.setattr(file_fuzz.Arena, "run", lambda self, seed: seed < 100 or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        file_fuzz.run(5, 98)
    assert "seed 100" in capsys.readouterr().err
