"""The command line: what it prints, one-line errors, and the exit codes that scripts rely on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gputensor.cli.main import build_parser, main, plain_words

ROOT = Path(__file__).resolve().parents[3]
TRACES = sorted((ROOT / "benchmarks" / "traces").glob("*.npz"))


def gputensor(*arguments, **variables):
    """Run the command in a process of its own and return (exit code, output, errors)."""
    environment = {**os.environ, "GPUTENSOR_DEVICE": "host", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "gputensor.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def small_trace(tmp_path):
    """Three blocks of 1 to 3 MiB, at most two at a time; returns (path, peak)."""
    sizes = np.random.default_rng().integers((1 << 20) + 1, 3 << 20, 3)
    path = tmp_path / "small.npz"
    np.savez(
        path,
        op=np.int8([1, 1, -1, 1, -1, -1]),
        id=np.int32([0, 1, 0, 2, 1, 2]),
        size=np.int64([*sizes[:2], sizes[0], sizes[2], *sizes[1:]]),
        stream=np.zeros(6, np.int16),
    )
    peak = max(sizes[0] + sizes[1], sizes[1] + sizes[2])
    return path, int(peak)


def test_replay_prints_one_object_with_the_promised_keys(small_trace):
    path, peak = small_trace
    code, output, errors = gputensor("memory", "replay", path, "--json")
    assert (code, errors) == (0, "")
    result = json.loads(output)
    assert result["events"] == 6
    assert result["peak_requested_bytes"] == peak
    assert result["peak_reserved_bytes"] >= peak
    assert result["utilization"] == pytest.approx(peak / result["peak_reserved_bytes"])
    assert result["ns_per_event"] > 0
    assert result["modelled_driver_seconds"] > 0
    assert all(isinstance(count, int) for count in result["driver_calls"].values())
    assert sum(result["driver_calls"].values()) > 0


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_recorded_traces_replay_to_the_peak_that_was_recorded(path):
    code, output, _ = gputensor("memory", "replay", path, "--json")
    assert code == 0
    result = json.loads(output)
    with np.load(path) as recorded:
        assert result["peak_requested_bytes"] == int(recorded["peak_requested"])
        assert result["events"] == len(recorded["op"])


def test_replay_for_people_names_the_peaks_and_their_ratio(small_trace):
    code, output, errors = gputensor("memory", "replay", small_trace[0])
    assert (code, errors) == (0, "")
    for label in ("peak requested:", "peak reserved:", "ratio:", "driver calls:"):
        assert label in output


def test_conf_changes_the_replay(small_trace):
    reserved = []
    for conf in ("expandable_segments:True", "expandable_segments:False"):
        code, output, _ = gputensor("memory", "replay", small_trace[0], "--json", "--conf", conf)
        assert code == 0
        reserved.append(json.loads(output)["driver_calls"])
    assert reserved[0] != reserved[1]


def test_conf_is_put_on_top_of_the_environment(small_trace):
    arguments = ("memory", "replay", small_trace[0], "--json")
    both = gputensor(
        *arguments, "--conf", "large_segment_size_mb:40",
        GPUTENSOR_ALLOC_CONF="expandable_segments:False",
    )  # fmt: skip
    one = gputensor(*arguments, "--conf", "expandable_segments:False,large_segment_size_mb:40")
    results = [json.loads(output) for _, output, _ in (both, one)]
    assert results[0]["peak_reserved_bytes"] == results[1]["peak_reserved_bytes"]
    assert results[0]["driver_calls"] == results[1]["driver_calls"]


def test_trace_larger_than_the_device_is_one_line_and_exit_code_1(small_trace):
    code, output, errors = gputensor("memory", "replay", small_trace[0], "--capacity", 2 << 20)
    assert (code, output) == (1, "")
    assert errors.count("\n") == 1
    assert "memory" in errors


def assert_one_line_and_2(result, *words):
    code, output, errors = result
    assert (code, output) == (2, "")
    assert errors.startswith("gputensor: ")
    assert errors.count("\n") == 1
    for word in words:
        assert word in errors


def test_missing_trace_is_one_line_and_exit_code_2():
    assert_one_line_and_2(gputensor("memory", "replay", "no-such.npz"), "no-such.npz")


def test_malformed_trace_is_one_line_and_exit_code_2(tmp_path):
    path = tmp_path / "broken.npz"
    path.write_bytes(np.random.default_rng().bytes(1000))
    assert_one_line_and_2(gputensor("memory", "replay", path), "broken.npz")


@pytest.mark.parametrize("conf", ["no_such_option:1", "max_split_size_mb:x", "backend", "a:b:c"])
def test_bad_conf_is_one_line_and_exit_code_2(small_trace, conf):
    assert_one_line_and_2(gputensor("memory", "replay", small_trace[0], "--conf", conf), "--conf")


def test_bad_environment_is_one_line_and_exit_code_2(small_trace):
    result = gputensor("memory", "replay", small_trace[0], GPUTENSOR_ALLOC_CONF="nonsense:1")
    assert_one_line_and_2(result, "GPUTENSOR_ALLOC_CONF", "nonsense")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["memory"],
        ["memory", "replay"],
        ["no-such-command"],
        ["memory", "replay", "trace.npz", "--capacity", "-1"],
        ["memory", "replay", "trace.npz", "--capacity", "0"],
        ["memory", "replay", "trace.npz", "--capacity", "much"],
        ["memory", "replay", "trace.npz", "--capacity", "9" * 40],
        ["memory", "replay", "trace.npz", "--capacity", "9" * 5000],
        ["memory", "replay", "trace.npz", "--capacity", "17T"],
        ["memory", "replay", "trace.npz", "--device", "tpu"],
    ],
)
def test_bad_arguments_exit_with_2(arguments, capsys):
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("gputensor: ") and errors.count("\n") == 1
    assert errors.endswith(" --help\n")


@pytest.mark.parametrize(("text", "nbytes"), [("1", 1), ("2K", 2048), ("80GiB", 80 << 30)])
def test_capacity_takes_units(text, nbytes):
    options = build_parser().parse_args(["memory", "replay", "t.npz", "--capacity", text])
    assert options.capacity == nbytes


@pytest.mark.parametrize(
    "words", [("devices",), ("memory", "replay"), ("memory", "replay", "--json")]
)
def test_output_that_cannot_be_written_is_one_line_and_exit_code_1(small_trace, words):
    trace = small_trace[:1] if words[0] == "memory" else ()
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gputensor.cli.main", *words, *map(str, trace)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
            timeout=300,
        )
    assert done.returncode == 1
    assert done.stderr == "gputensor: [Errno 28] No space left on device\n"


def test_a_trace_may_have_any_name_that_a_file_can_have(small_trace):
    path = os.fsencode(small_trace[0].parent) + b"/tr\xffce.npz"
    os.rename(small_trace[0], path)
    code, output, errors = gputensor(
        "memory", "replay", os.fsdecode(path), PYTHONIOENCODING="utf-8:strict"
    )
    assert (code, errors) == (0, "")
    assert "ce.npz: 6 events" in output


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--shapes", "x" * 5000], "; expected an existing file"),
        (["--shapes", __file__, "--seconds", "nan"], "--seconds: got nan; expected"),
        (["--shapes", __file__, "--output", os.sep], "; expected a file in a writable folder"),
    ],
)
def test_bad_options_of_tune_are_one_line_and_exit_code_2(words, part, capsys):
    assert main(["blas", "tune", *words]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1 and part in errors


def test_capacity_has_no_meaning_on_a_gpu(small_trace):
    arguments = ("memory", "replay", small_trace[0], "--device", "cuda", "--capacity", "1G")
    assert_one_line_and_2(gputensor(*arguments), "--capacity")


def test_devices_lists_the_host_device_as_json():
    code, output, errors = gputensor("devices", "--json")
    assert (code, errors) == (0, "")
    found = json.loads(output)
    host = [device for device in found["devices"] if device["type"] == "host"]
    assert len(host) == 1
    assert host[0]["total_bytes"] > 0
    for device in found["devices"]:
        if device["type"] == "cuda":
            assert {"name", "capability", "total_bytes"} <= set(device)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_devices_refuses_a_bad_capacity_of_the_host_device_in_one_line(form):
    code, output, errors = gputensor("devices", *form, GPUTENSOR_HOST_MEMORY="abc")
    assert (code, output) == (2, "")
    assert errors == (
        "gputensor: GPUTENSOR_HOST_MEMORY: got 'abc'; expected bytes such as 4294967296 or 4G\n"
    )


def test_devices_for_people_has_a_line_for_each_device():
    _, as_json, _ = gputensor("devices", "--json")
    code, output, errors = gputensor("devices")
    assert (code, errors) == (0, "")
    for device in json.loads(as_json)["devices"]:
        assert device["device"] in output


def test_hyphens_and_underscores_are_alike_and_flag_files_are_read(tmp_path):
    (tmp_path / "inner").write_text("--capacity=2K\n")
    (tmp_path / "flags").write_text(f"# where\n--flagfile={tmp_path}/inner\n\n  --json  \n")
    words = ["memory", "replay", "t.npz", f"--flagfile={tmp_path}/flags"]
    options = build_parser().parse_args(plain_words(words))
    assert options.capacity == 2048 and options.json
    assert plain_words(["--a-b_c=d-e", "-x-y", "--"]) == ["--a_b_c=d-e", "-x-y", "--"]


def test_flag_file_that_is_missing_or_names_itself_is_one_line(tmp_path, capsys):
    (tmp_path / "flags").write_text(f"--flagfile={tmp_path}/flags\n" * 2)
    for path, part in (("none", "No such file"), ("flags", "at most 64 files"), ("", "directory")):
        assert main(["devices", f"--flagfile={tmp_path}/{path}"]) == 2
        errors = capsys.readouterr().err
        assert errors.startswith("gputensor: --flagfile: got ") and part in errors
        assert errors.count("\n") == 1


def test_version_is_the_packages(capsys):
    import gputensor as gt
    from gputensor.cli.main import main as command

    try:
        command(["--version"])
    except SystemExit as done:
        assert done.code == 0
    assert capsys.readouterr().out == f"gputensor {gt.__version__}\n"
    shown = subprocess.check_output([sys.executable, "-m", "gputensor", "--version"], text=True)
    assert shown == f"gputensor {gt.__version__}\n"
