"""``gputensor bench``: times of functions and calls, and errors of options."""

import json

import numpy as np
import pytest

import gputensor as gt
from gputensor.cli.bench import seconds_of
from gputensor.cli.main import main
from tests.support.programs.bench_model import two_functions


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "two.gtp"
    two_functions("host").save(path)
    return path


def printed(capsys, *words):
    assert main(["bench", "--device=host", "--min_time=1ms", *words]) == 0
    return capsys.readouterr().out


def test_times_are_of_runs_and_calls(file, capsys):
    words = f"--module={file}", "--function=norms", "--input=4x64xf32=1", "--json"
    found = json.loads(printed(capsys, *words, "--per-call", "--repetitions=3", "--warmup=0"))
    assert found["function"] == "norms" and found["device"] == "host" and found["threads"] == 1
    assert found["runs"] % 3 == 0 and found["least"] <= found["median"] <= found["most"]
    assert 0 < found["host"] and found["graph"].startswith("none: a host device")
    calls = {call["call"]: call for call in found["calls"]}
    assert calls["product"]["bytes"] == (2 * 4 * 64 + 64 * 64) * 4
    assert calls["product"]["line"].startswith("bench_model.py:")
    assert calls["while_loop"]["time"] is None
    for call in found["calls"]:
        if call["time"] is not None:
            share = call["bytes"] / call["time"] / found["copy_rate"]
            np.testing.assert_allclose(call["share_of_copy_rate"], share)


def test_inputs_are_zeros_where_none_are_given(file, capsys):
    text = printed(capsys, f"--module={file}", "--function=norms", "--concurrency=2")
    assert "@norms on host: " in text and "of 2 threads" in text
    text = printed(capsys, f"--module={file}", "--function=count", "--mode=stream", "--per_call")
    assert "of the copy rate  call" in text and "bench_model.py:" in text


def test_times_are_read_with_their_units():
    assert [seconds_of(text) for text in ("2s", "250ms", "0.5")] == [2, 0.25, 0.5]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--min_time=soon"], "--min_time: got 'soon'; expected at most 3600 seconds"),
        (["--repetitions=0"], "--repetitions: got '0'; expected an integer from 1"),
        (["--concurrency=1000"], "--concurrency: got '1000'; expected an integer from 1 to 256"),
        (["--function=no"], "--function: got 'no'; expected one of norms, count"),
        (["--function=norms", "--input=1"], "--input: "),
        (["--function=norms", "--input=1x64xf32=0", "--input=3"], "--input: got 2 values"),
    ],
)
def test_errors_are_one_line(file, capsys, words, text):
    assert main(["bench", f"--module={file}", "--device=host", *words]) == 2
    error = capsys.readouterr().err
    assert text in error and error.count("\n") == 1
    assert main(["bench"]) == 2
    assert "--module: got None" in capsys.readouterr().err
    assert gt.Device("host")
