"""`gputensor run` and `inspect`: results, comparison, files, one-line errors and exit codes."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt
from gputensor.cli.main import main
from gputensor.cli.value_text import type_of
from gputensor.programs import file
from gputensor.programs import program as program_module
from gputensor.programs.dims import Dim
from tests.support.programs.builder import Builder, program_data
from tests.support.programs.models import counter, mlp
from tests.unit.cli.test_commands import gputensor


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with gt.Device("host"):
        yield tmp_path


@pytest.fixture
def programs(here, rng):
    """Write mlp.gtp, counter.gtp and two.gtp; return the reference of the first."""
    data, reference = mlp(rng)
    file.write(data, "mlp.gtp")
    file.write(counter(), "counter.gtp")
    file.write(program_data(arithmetic("double", 2.0), arithmetic("triple", 3.0)), "two.gtp")
    return reference


def arithmetic(name, factor, dtype="float32"):
    build = Builder(name, [Dim("n", 2, 8, 2)])
    x, y = (build.input(part, dtype, (("dim", "n"), 3)) for part in "xy")
    total = build.elementwise("add", x, y, dtype=dtype)
    build.output(build.elementwise("mul", total, factor, dtype=dtype))
    return build


@pytest.fixture
def run(capsys):
    """Run the command in this process: (exit code, output, errors)."""

    def call(*words):
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as exit_:
            code = exit_.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def numbers(text):
    """The elements of a printed result."""
    return np.array([float(word) for word in re.findall(r"[-+.\w]+", text.split("=", 1)[1])])


def test_results_are_printed_and_are_those_of_the_reference(programs, run, rng):
    x = rng.standard_normal((3, 12)).astype(np.float32)
    np.save("x.npy", x)
    code, output, errors = run("run", "--module=mlp.gtp", "--function=mlp", "--input=@x.npy")
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0] == "EXEC @mlp" and lines[1].startswith("result[0]: 3x8xf32=[")
    np.testing.assert_allclose(numbers(lines[1]), programs(x).reshape(-1), rtol=1e-4, atol=1e-5)


def test_program_runs_in_a_process_of_its_own(programs, here):
    words = ("run", f"--module={here}/counter.gtp", "--input=8xf32=1.5", "--device=host")
    code, output, errors = gputensor(*words)
    assert (code, errors) == (0, "")
    assert output == (
        "EXEC @step\n"
        "result[0]: 8xf32=1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5\n"
        "result[1]: 8xf32=3 3 3 3 3 3 3 3\n"
    )


def test_one_of_several_functions_is_chosen(programs, run):
    inputs = ("--input=2x3xf32=[1 2 3][4 5 6]", "--input=2x3xf32=1")
    code, output, _ = run("run", "--module=two.gtp", "--function=triple", *inputs)
    assert (code, output) == (0, "EXEC @triple\nresult[0]: 2x3xf32=[6 9 12][15 18 21]\n")
    for words in ((), ("--function=quadruple",)):
        code, _, errors = run("run", "--module=two.gtp", *words, *inputs)
        assert code == 2 and errors.startswith("gputensor: --function: got ")
        assert errors.endswith("; expected one of double, triple\n")


def test_outputs_are_written_to_the_given_places(programs, run):
    words = ("run", "--module=counter.gtp", "--input=8xf32=1")
    assert run(*words, "--output=@a.npy", "--output=")[:2] == (0, "EXEC @step\n")
    assert run(*words, "--output=+a.npy", "--output=@b.bin")[0] == 0
    with open("a.npy", "rb") as written:
        for _ in range(2):
            np.testing.assert_array_equal(np.load(written), np.ones(8, np.float32))
    np.testing.assert_array_equal(np.fromfile("b.bin", np.float32), np.full(8, 2, np.float32))
    code, output, _ = run(*words, "--output=-", "--output=", "--output_max_element_count=2")
    assert (code, output) == (0, "EXEC @step\nresult[0]: 8xf32=1 1 ...\n")


def test_expected_outputs_are_compared(programs, run):
    words = ("run", "--module=counter.gtp", "--input=8xf32=1", "--expected_output=(ignored)")
    code, output, _ = run(*words, "--expected_output=8xf32=2.0001")
    assert (code, output) == (0, "EXEC @step\n[SUCCESS] all results are as expected\n")
    wrong = "--expected_output=8xf32=2 2 2 2.5 2 2 nan 2"
    code, output, errors = run(*words, wrong)
    assert (code, errors) == (1, "")
    assert output.splitlines()[1:] == [
        "[FAILED] result[1]: element 3 is 2; expected 2.5 (2 of 8 elements differ)"
    ]
    assert run(*words, wrong, "--expected_f32_threshold=1")[0] == 1  # NaN is not 2
    assert run(*words, "--expected_output=8xf32=2.5", "--expected_f32_threshold=0.6")[0] == 0
    assert run(*words, "--expected_output=8xf32=2.5", "--expected_rtol=0.3")[0] == 0
    exact = (*words, "--equality_mode=exact")
    assert run(*exact, "--expected_output=8xf32=2.0001")[0] == 1
    assert run(*exact, "--expected_output=8xf32=2")[0] == 0


def test_json_is_one_object(programs, run):
    words = ("run", "--module=counter.gtp", "--input=8xf32=1", "--json", "--output=@a.npy")
    code, output, _ = run(*words, "--output=-", "--expected-output=8xf32=2", "--expected-output=2")
    assert (code, output) == (2, "")
    code, output, _ = run(*words, "--output=-", *["--expected-output=8xf32=2"] * 2)
    found = json.loads(output)
    assert code == 1 and found["function"] == "step" and not found["is_as_expected"]
    assert found["results"][1] == "8xf32=2 2 2 2 2 2 2 2"
    assert len(found["differences"]) == 1
    np.testing.assert_array_equal(np.load("a.npy"), np.ones(8))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8", "float64"])
def test_every_dtype_goes_in_and_out(run, dtype):
    file.write(program_data(arithmetic("f", 2, dtype)), "p.gtp")
    kind = type_of(dtype, (2, 3))
    code, output, errors = run(
        "run", "--module=p.gtp", f"--input={kind}=1 2 3 4 5 6", f"--input={kind}=1"
    )
    assert (code, errors) == (0, "")
    assert output == f"EXEC @f\nresult[0]: {kind}=[4 6 8][10 12 14]\n"


def test_values_come_from_a_list_and_options_from_a_file(programs, run, here):
    (here / "values.txt").write_text("2x3xf32=1\n# the other one\n2x3xf32=2\n")
    (here / "flags").write_text("--module=two.gtp\n--function=double\n--input=@values.txt\n")
    assert run("run", "--flagfile=flags")[:2] == (
        0,
        "EXEC @double\nresult[0]: 2x3xf32=[6 6 6][6 6 6]\n",
    )


def test_separate_weights_may_be_in_another_folder(run, here, rng):
    data, _ = mlp(rng)
    file.write(data, "p.gtp", weights="w.safetensors")
    (here / "far").mkdir()
    os.rename("w.safetensors", "far/w.safetensors")
    words = ("run", "--module=p.gtp", "--input=1x12xf32=1")
    code, output, errors = run(*words)
    assert (code, output) == (2, "") and "w.safetensors: cannot be opened" in errors
    assert run(*words, "--weights=far/w.safetensors")[0] == 0
    assert run("inspect", "p.gtp")[0] == 0


def test_a_checked_run_stops_at_the_first_nan(programs, run):
    words = ("run", "--module=counter.gtp", "--check")
    checked = run(*words, "--input=8xf32=1")
    assert checked == run("run", "--module=counter.gtp", "--input=8xf32=1") and checked[0] == 0
    assert run(*words, "--input=8xf32=1 2 3 nan 5 6 7 8") == (
        1, "", "gputensor: model.py:1: add: got NaN in 1 of 8 elements, the first at [3], read "
        "from x; expected numbers\n",
    )  # fmt: skip


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_file_is_rebuilt_on_request(programs, run, is_asked, monkeypatch):
    """A program without launches has nothing to rebuild: the test checks the passed option."""
    found, load = [], program_module.load_program

    def seen(*args, **kwargs):
        found.append(kwargs["rebuild"])
        return load(*args, **kwargs)

    monkeypatch.setattr(program_module, "load_program", seen)
    words = ("run", "--module=counter.gtp", "--input=8xf32=1")
    assert run(*words, *["--rebuild"] * is_asked)[0] == 0 and found == [is_asked]


def test_statistics_go_to_standard_error(programs, run):
    code, output, errors = run(
        "run", "--module=counter.gtp", "--input=8xf32=1", "--output=", "--output=",
        "--print-statistics",
    )  # fmt: skip
    assert (code, output) == (0, "EXEC @step\n")
    assert re.search(r"^host: peak of \d+ bytes allocated, \d+ reserved$", errors, re.M)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), "--module: got None; expected a .gtp file"),
        (("--module=none.gtp",), "none.gtp: cannot be opened: No such file"),
        ((f"--module={__file__}",), "the file has another format, or its end is missing"),
        (("--module=two.gtp", "--function=double"), "got 0 values; expected 2 (x: ?x3xf32, y: "),
        (
            ("--module=mlp.gtp", "--input=2x11xf32=0"),
            "--input: got '2x11xf32=0': 2x11xf32; expected",
        ),
        (("--module=mlp.gtp", "--input=65x12xf32=0"), "expected ?x12xf32, where ? is 1 to 64"),
        (("--module=mlp.gtp", "--input=1x12xf16=0"), "1x12xf16; expected ?x12xf32"),
        (("--module=mlp.gtp", "--input=1x12xf32=x"), "elements of f32, which 'x' is not"),
        (("--module=mlp.gtp", "--input=1x12xf32=0", "--output=x"), "--output: got 'x'; expected"),
        (
            ("--module=mlp.gtp", "--input=1x12xf32=0", "--output=-", "--output=-"),
            "--output: got 2 outputs; expected 1",
        ),
        (
            ("--module=mlp.gtp", "--input=1x12xf32=0", "--expected_output=2x8xf32=0"),
            "--expected_output: got '2x8xf32=0': 2x8xf32; expected 1x8xf32",
        ),
        (
            ("--module=two.gtp", "--function=double", "--input=2x3xf32=0", "--input=4x3xf32=0"),
            "y.shape[0]: got 4; expected n",
        ),
        (("--module=mlp.gtp", "--device=tpu"), "--device: got 'tpu'; expected cuda, cuda://"),
        (("--module=mlp.gtp", "--device=host://1"), "--device: got 'host://1'"),
        (("--list_devices=tpu",), "--list_devices: got 'tpu'; expected one of cuda, host"),
        (("--module=two.gtp", "--weights=w"), "weights: got 'w'; expected None"),
        (("--flagfile=none",), "--flagfile: got 'none'; expected a file of options"),
    ],
)
def test_fault_is_one_line_and_exit_code_2(programs, run, words, wanted):
    code, output, errors = run("run", *words)
    assert (code, output) == (2, "")
    assert errors.startswith("gputensor: ") and errors.count("\n") == 1 and wanted in errors


def test_device_that_is_missing_is_one_line_and_exit_code_1(programs, run):
    for uri in ("cuda://99", "cuda://GPU-12ab"):
        code, output, errors = run("run", "--module=mlp.gtp", f"--device={uri}")
        assert (code, output, errors.count("\n")) == (1, "", 1)
        assert f"there is no CUDA device {uri[7:]}: " in errors


def test_bad_options_exit_with_code_2(run):
    for words in (("--equality_mode=nearly",), ("--outpu=-",), ("--expected_rtol=x",), ("file",)):
        code, _, errors = run("run", "--module=x", *words)
        assert code == 2 and errors.startswith("gputensor: ") and errors.count("\n") == 1


def test_devices_are_listed_as_device_takes_them(run):
    code, output, _ = run("run", "--list-devices")
    uris = [line.split()[0] for line in output.splitlines()]
    assert code == 0 and uris[-1] == "host"
    assert run("run", "--list_devices=host")[1].startswith("host ")
    drivers = run("run", "--list_drivers")[1].splitlines()
    assert [line.split(":")[0] for line in drivers] == ["cuda", "host"]
    dumped = run("run", "--dump_devices")[1]
    assert all(uri in dumped for uri in uris) and "  total_bytes: " in dumped
    as_json = json.loads(run("run", "--list_devices", "--json")[1])
    assert [device["uri"] for device in as_json] == uris


# ---- inspect


def test_file_is_shown_in_sections(programs, run):
    code, output, errors = run("inspect", "mlp.gtp")
    assert (code, errors) == (0, "")
    for part in ("format: gtp", "version: 1.0", "func @mlp(x: f32[n,12])", "product %x %0.w",
                 "@mlp(n=64): arena ", "kernels: none", "0.w: 12x16xf32  "):  # fmt: skip
        assert part in output
    for section, part in (("calls", "func @mlp"), ("weights", "0.w:"), ("plan", "arena ")):
        code, one, _ = run("inspect", "mlp.gtp", f"--output={section}")
        assert code == 0 and part in one and one.strip() in output
    found = json.loads(run("inspect", "mlp.gtp", "--json")[1])
    assert list(found) == ["metadata", "calls", "plan", "kernels", "weights"]
    assert found["weights"]["0.w"]["shape"] == [12, 16]
    assert found["plan"]["mlp"][1]["arena"] >= found["plan"]["mlp"][1]["lower_bound"]


def test_one_function_is_shown_with_the_weights_that_it_reads(run, rng):
    first, second = (mlp(rng)[0] for _ in range(2))
    function = second.functions.pop("mlp")
    function.name = "other"
    for value in function.values:
        value.name = f"o.{value.name}" if value.kind == "weight" else value.name
    first.functions["other"] = function
    for name, weight in second.weights.items():
        weight.name = f"o.{name}"
        first.weights[weight.name] = weight
    file.write(first, "p.gtp")
    output = run("inspect", "p.gtp", "--function=other")[1]
    assert "@mlp" not in output and "o.0.w: " in output and " 0.w: " not in output
    code, _, errors = run("inspect", "p.gtp", "--function=none")
    assert (code, errors) == (2, "gputensor: --function: got 'none'; expected one of mlp, other\n")


def test_difference_of_two_files_is_shown(programs, run):
    assert run("inspect", "mlp.gtp", "--diff=mlp.gtp") == (0, "", "")
    code, output, _ = run("inspect", "mlp.gtp", "--diff=counter.gtp", "--output=calls")
    assert code == 1
    lines = output.splitlines()
    assert lines[:2] == ["--- mlp.gtp", "+++ counter.gtp"]
    assert any(line.startswith("-func @mlp") for line in lines)
    assert any(line.startswith("+func @step") for line in lines)
    found = json.loads(run("inspect", "mlp.gtp", "--diff=counter.gtp", "--json")[1])
    assert found["diff"][0] == "--- mlp.gtp"


def test_file_without_a_program_is_one_line(run, here):
    (here / "x.gtp").write_bytes(b"x" * 100)
    for words in (("inspect", "x.gtp"), ("run", "--module=x.gtp"), ("inspect", "none.gtp")):
        code, output, errors = run(*words)
        assert (code, output, errors.count("\n")) == (2, "", 1)
        assert errors.startswith(f"gputensor: {words[1].removeprefix('--module=')}: ")


def test_weights_are_compared_with_their_hashes_on_request(programs, run):
    raw = bytearray(Path("mlp.gtp").read_bytes())
    raw[-1] ^= 1
    Path("changed.gtp").write_bytes(raw)
    words = ("run", "--module=changed.gtp", "--input=1x12xf32=0")
    assert run(*words)[0] == 0
    code, _, errors = run(*words, "--verify")
    assert code != 0 and "SHA-256" in errors and errors.count("\n") == 1
    assert run("run", "--module=mlp.gtp", "--input=1x12xf32=0", "--verify")[0] == 0
