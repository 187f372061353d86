"""``gputensor bench`` on a GPU: graphs, launches, and the calls in graphs of their own."""

import json

import pytest

from gputensor.cli.main import main
from tests.support.programs.bench_model import two_functions

pytestmark = pytest.mark.orders("at-once")


@pytest.mark.parametrize("mode", ["graph", "stream"])
def test_runs_and_calls_are_timed(mode, tmp_path, capsys):
    two_functions("cuda").save(tmp_path / "two.gtp")
    words = ["bench", f"--module={tmp_path / 'two.gtp'}", "--device=cuda", "--min_time=1ms"]
    assert main([*words, "--function=count", f"--mode={mode}", "--per_call", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["graph"].startswith("none: call by call" if mode == "stream" else "2 nodes")
    assert all(call["time"] > 0 and call["line"] for call in found["calls"])
