"""``gputensor compile``: each kind of model, and errors of options, in one line."""

import importlib
import json
import logging
import re
import sys
import types
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import gputensor as gt
from gputensor._kernels.launch import images
from gputensor.cli.main import main
from gputensor.programs.phases import PHASES
from tests.importers.exported_programs import Builder, Symbol
from tests.support.nvrtc_library import needs_nvrtc

PYTHON = """
import gputensor as gt
import numpy as np

weights = {"w": np.float32([1, 2, 3])}


def scaled(rows, *, weights):
    return gt.sum(rows * weights["w"], axis=1)


def failing(x):
    return {}[7]


def unfit(x):
    return x @ gt.ones((4, 2))


class Model:
    def doubled(self, x):
        return 2 * x


doubled = Model().doubled
"""

LAYERS = """
weights = {"w": list(np.float16(np.arange(8192).reshape(2, 64, 64) % 7 - 3))}


def layers(x, *, weights):
    y = gt.maximum(gt.linear(x, weights["w"][1]), 0)
    return gt.exp(gt.tanh(gt.linear(y, weights["w"][0]) * 2) + 1)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """The working directory of the test, with a model and a module."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models_of_a_test.py").write_text(PYTHON)
    (tmp_path / "broken_of_a_test.py").write_text("import math\n1 / 0\n")
    value, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    w = rng.standard_normal((3, 2), np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
        [value("x", kind, ["n", 3])], [value("y", kind, ["n", 2])],
        [numpy_helper.from_array(w, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, "m.onnx")
    with gt.Device("host"):
        yield tmp_path
    sys.modules.pop("models_of_a_test", None)


def made(capsys, *words):
    code = main(["compile", *words])
    output = capsys.readouterr()
    assert (code, output.err) == (0, "")
    return output.out


def refused(capsys, *words):
    code = main(["compile", "-o", "no.gtp", *words])
    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert output.err.count("\n") == 1
    return output.err


def test_a_python_function(folder, capsys):
    words = ("models_of_a_test:scaled", "-o", "s.gtp", "--dim=n=2:8:2")
    text = made(capsys, *words, "--input_shape=rows=nx3xf32", "--function=total")
    assert "s.gtp: total(rows: nx3xf32) -> nxf32" in text
    with gt.load_program("s.gtp", device="host") as program:
        assert program.total(gt.ones((4, 3), device="host")).tolist() == [6, 6, 6, 6]


def test_a_method_and_names_with_an_x(folder, capsys):
    words = ("models_of_a_test:doubled", "-o", "d.gtp", "--dim=max=1:4", "--function=twice")
    text = made(capsys, *words, "--input_shape=x=2xmaxx3xi32")
    assert "d.gtp: twice(x: 2xmaxx3xi32) -> 2xmaxx3xi32" in text
    with gt.load_program("d.gtp", device="host") as program:
        x = gt.ones((2, 4, 3), dtype="int32", device="host")
        assert (program.twice(x) == 2).all()


def test_results_as_json(folder, capsys):
    found = json.loads(made(capsys, "m.onnx", "-o", "m.gtp", "--dim=n=2", "--json"))
    assert found["file"] == "m.gtp" and found["bytes"] == (folder / "m.gtp").stat().st_size
    ((name, function),) = found["functions"].items()
    lines = made(capsys, "m.onnx", "-o", "m.gtp", "--dim=n=2")
    shown = ", ".join(f"{path}: {text}" for path, text in function["inputs"].items())
    assert f"m.gtp: {name}({shown}) -> {', '.join(function['outputs'])}\n" in lines
    assert f"m.gtp: {found['weights']} weights, {found['bytes']} bytes\n" in lines


class Bar:
    """A stand-in for tqdm's bar."""

    made: list = []

    def __init__(self, **options):
        self.n, self.total, self.seen = 0, None, []
        Bar.made.append(self)

    def refresh(self):
        self.seen.append((self.n, self.total))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.is_closed = True


@pytest.mark.parametrize("words", [[], ["--quiet"]])
def test_a_terminal_shows_a_bar_of_the_kernels(folder, capsys, monkeypatch, words):
    module = types.ModuleType("tqdm")
    module.tqdm, module.__spec__ = Bar, types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "tqdm", module)
    monkeypatch.setattr(Bar, "made", [])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(images, "image_of", lambda program, target: b"\x7fELF")
    words = ["models_of_a_test:scaled", "-o", "s.gtp", "--input_shape=rows=4x3xf32", *words]
    made(capsys, *words, "--target=a100,h200")
    if "--quiet" in words:
        assert not Bar.made
        return
    (bar,) = Bar.made
    total = bar.total
    assert total >= 2 and bar.is_closed
    assert bar.seen == [(done, total) for done in range(1, total + 1)]


def test_a_model_with_dims_and_precision(folder, capsys):
    made(capsys, "m.onnx", "-o", "m.gtp", "--dim=n=2", "--precision=allow_tf32")
    made(capsys, "m.onnx", "-o", "plain.gtp", "--dim=n=2")
    x = gt.ones((2, 3), device="host")
    flags = []
    for name in ("m.gtp", "plain.gtp"):
        with gt.load_program(name, device="host") as program:
            assert program(x).shape == (2, 2)
            flags.append(program.functions["product"].calls[0].attributes)
    assert flags[0] != flags[1]


def test_listed_sizes(folder, capsys):
    text = made(capsys, "m.onnx", "-o", "m.gtp", "--dim=n=1:64", "--at=n=2,16")
    for n in (2, 16):
        assert f"m.gtp: product(x: {n}x3xf32) -> {n}x2xf32" in text
    assert main(["run", "--module=m.gtp", "--input=3x3xf32=1"]) == 2
    assert "expected ?x3xf32, where ? is 2 or 16" in capsys.readouterr().err
    with gt.load_program("m.gtp", device="host") as program:
        assert program(gt.ones((16, 3), device="host")).shape == (16, 2)
        with pytest.raises(ValueError, match="16"):
            program(gt.ones((3, 3), device="host"))


def test_quantized_weights_with_a_report(folder, capsys, rng):
    """The model has float16 inputs and is checked on inputs of another dtype."""
    value, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("MatMul", ["x", "a"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    nodes.append(helper.make_node("MatMul", ["z", "b"], ["w"]))
    arrays = [rng.standard_normal((64, 64), np.float32) for _ in "ab"]
    graph = helper.make_graph(
        nodes, "two", [value("x", kind, ["n", 64])], [value("w", kind, ["n", 64])],
        [numpy_helper.from_array(array, name) for array, name in zip(arrays, "ab", strict=True)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), "two.onnx")
    np.savez("samples.npz", x=rng.standard_normal((5, 64), np.float32))
    text = made(
        capsys, "two.onnx", "-o", "two.gtp", "--quantize=a=int4:32",
        "--quantize=b=int8", "--calibrate=samples.npz", "--report=report.json", "--dtype=f16",
    )  # fmt: skip
    assert "two.gtp: 2 quantized, 6528 bytes instead of 16384, relative error" in text
    assert "two: result[0]: relative error 0." in text
    reported = json.loads((folder / "report.json").read_text())["two"]
    assert {name: one["scheme"] for name, one in reported["matrices"].items()} == {
        "a": "int4:32",
        "b": "int8",
    }
    assert 0 < reported["results"][0]["relative_error"] < 0.2
    assert main(["inspect", "two.gtp", "--output=quantization"]) == 0
    lines = capsys.readouterr().out
    assert "@two: a: scheme int4:32, shape (64, 64)" in lines and "@two: result[0]: rel" in lines


def test_weights_are_written_to_the_given_file(folder, capsys):
    made(capsys, "m.onnx", "-o", "m.gtp", "--weights=apart")
    made(capsys, "m.onnx", "-o", "n.gtp", "--weights=others.safetensors")
    assert {path.name for path in folder.glob("*.safetensors")} == {
        "m.safetensors",
        "others.safetensors",
    }
    made(capsys, "m.gtp", "-o", "whole.gtp")
    (folder / "m.safetensors").unlink()
    with gt.load_program("whole.gtp", device="host") as program:
        program(gt.ones((5, 3), device="host"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["m.txt"], "MODEL: got 'm.txt'; expected FILE.onnx"),
        (["none.onnx"], "none.onnx: got No such file or directory; expected an ONNX file"),
        (["none.gtp"], "none.gtp"),
        (["no_module:f"], "expected a function of a module"),
        (["models_of_a_test:missing"], "expected a function of a module"),
        (["models_of_a_test:scaled"], "--input_shape: got no shape of rows; expected the shape of"),
        (["models_of_a_test:scaled", "--input_shape=x=3"], "got 'x'; expected one of rows"),
        (["models_of_a_test:weights"], "models_of_a_test:weights, which is dict; expected a"),
        (["broken_of_a_test:f"], "(broken_of_a_test.py:2: ZeroDivisionError: division by zero)"),
        (["models_of_a_test:failing", "--input_shape=x=3"], "models_of_a_test.py:13: KeyError: 7"),
        (["models_of_a_test:unfit", "--input_shape=x=3"], "models_of_a_test.py:17: operands: got"),
        (["models_of_a_test:scaled", "--function=1st"], "--function: got '1st'; expected an ident"),
        (["m.onnx", "--tune"], "--tune: got a host device; expected a GPU"),
        (["m.onnx", "-o", "."], "--output: got '.'; expected a file"),
        (["models_of_a_test:scaled", "--dtype=f16"], "--dtype: got an option that"),
        (["m.onnx", "--dim=n"], "--dim: got 'n'; expected NAME=VALUE"),
        (["m.onnx", "--dim=n=a"], "--dim: got 'n=a'; expected NAME=MIN:MAX"),
        (["m.onnx", "--dim=n=5:2"], "--dim: "),
        (["m.onnx", "--dim=k=1:2"], "dims: got 'k'; expected one of n"),
        (["m.onnx", "--at=n=1,b"], "--at: got 'n=1,b'; expected NAME=SIZE,SIZE"),
        (["m.gtp", "--at=n=1"], "--at: got an option that does not apply to m.gtp"),
        (["m.onnx", "--input_shape=x=1xqx3"], "--input_shape: got 'x=1xqx3'"),
        (["m.onnx", "--input_shape=x=2x3xf16"], "--input_shape: got a type for x"),
        (["m.onnx", "--input_shape=z=2x3"], "input_shapes: got 'z'; expected one of x"),
        (["m.onnx", "--precision=fast"], "--precision: got 'fast'; expected names from allow_tf32"),
        (["m.onnx", "--target=h2000"], "--target: got 'h2000'; expected h200"),
        (["m.onnx", "--quantize=w"], "--quantize: got 'w'; expected NAME=VALUE"),
        (["m.onnx", "--quantize=w=int5"], "quantize: got 'int5'; expected int8"),
        (["m.onnx", "--quantize=v=int8"], "quantize: got 'v', which matches no matrix"),
        (["m.onnx", "--report=r"], "--report: got an option of quantized programs"),
        (["m.onnx", "--quantize=w=int8", "--calibrate=m.onnx"], "--calibrate: "),
        (["m.gtp", "--quantize=w=int8"], "--quantize: got an option that does not apply to m.gtp"),
        (["m.onnx", "--dtype=f8"], "argument --dtype: invalid choice: 'f8'"),
        (["m.onnx", "--weights=../w.safetensors"], "--weights: got '../w.safetensors'; expected a"),
        (["m.onnx", "-o", "none/m.gtp"], "--output: got 'none/m.gtp'; expected a file in a folder"),
        (["m.onnx", "--tune=never"], "--tune: got 'never'; expected seconds, above 0"),
    ],
    ids=lambda part: " ".join(part)[:40] if isinstance(part, list) else "",
)
def test_errors_are_one_line(folder, capsys, words, text):
    assert text in refused(capsys, *words)
    assert not (folder / "no.gtp").exists()


def test_targets_are_listed(capsys):
    assert "sm_90: h200 h100" in made(capsys, "--list_targets")


@needs_nvrtc
def test_kernels_for_gpus_that_are_not_there(folder, capsys, monkeypatch):
    monkeypatch.setenv("GPUTENSOR_KERNEL_CACHE", "0")
    words = ("models_of_a_test:scaled", "-o", "s.gtp", "--input_shape=rows=4x3xf32")
    text = made(capsys, *words, "--target=A100,h200+ptx")
    assert "kernels for sm_80, sm_90+ptx" in text
    assert main(["inspect", "s.gtp", "--output=kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kernels:" and len(lines) > 3
    assert [line.split(":")[0].strip() for line in lines[1:3]] == ["sm_80", "sm_90+ptx"]
    for line in lines[3:]:
        forms = re.findall(r"((?:sm|compute)_\d+) [\d,]+ bytes", line)
        assert forms == ["sm_80", "sm_90", "compute_90"], line
    run = ["run", "--module=s.gtp", "--input=4x3xf32=1", "--rebuild", "--check"]
    assert main(run) == 0
    assert capsys.readouterr().out.endswith("result[0]: 4xf32=6 6 6 6\n")
    assert main(["compile", "s.gtp", "-o", "t.gtp", "--target=native", "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["targets"] == ["sm_80+ptx"]
    assert output.err == "native: there is no GPU here; compiling for sm_80+ptx\n"
    with gt.load_program("t.gtp", device="host") as program:
        kernels = program.data.ahead.kernels.all
        assert kernels and all(set(one.images) == {"sm_80", "compute_80"} for one in kernels)
        assert program.scaled(gt.ones((4, 3), device="host")).tolist() == [6, 6, 6, 6]


def test_a_file_of_torch_needs_torch(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "expected torch to be installed" in refused(capsys, "m.pt2")


def torch_that(load):
    """A stand-in for torch whose `export.load` is a function."""
    return SimpleNamespace(export=SimpleNamespace(load=load))


def test_a_file_of_torch_is_compiled_for_a_range_of_sizes(folder, capsys, monkeypatch):
    built, n = Builder(), Symbol("s0")
    x = built.input("x", (n, 3))
    program = built.output(built.call("aten.mul.Tensor", x, 2.0)).program
    monkeypatch.setitem(sys.modules, "torch", torch_that(lambda path: program))
    assert "forward(x: s0x3xf32)" in made(capsys, "m.pt2", "--dim=s0=2:8", "-o", "m.gtp")
    with gt.load_program("m.gtp", device="host") as made_program:
        assert made_program(gt.ones((8, 3), device="host")).tolist() == [[2.0] * 3] * 8
    assert "dims: got 's1'; expected one of s0" in refused(capsys, "m.pt2", "--dim=s1=4")


def test_why_torch_cannot_read_a_file_is_told_in_one_line(folder, capsys, monkeypatch):
    def load(path):
        logger = logging.getLogger("torch.export")
        try:
            raise RuntimeError(f"{reason}. And what else?\n  lines")
        except RuntimeError:
            logger.warning("Ran into an error", exc_info=True)
        raise RuntimeError("Please check the warnings above")

    monkeypatch.setitem(sys.modules, "torch", torch_that(load))
    reason = "not a ZIP archive"
    text = refused(capsys, "m.pt2")
    assert "m.pt2: got not a ZIP archive; expected a file of torch.export.save" in text
    assert "Ran into" not in text and not logging.getLogger("torch.export").handlers
    reason = "We failed to resolve torch.ops.mine.twice.default to an operator"
    assert "got mine.twice.default, an operator that torch does not know" in refused(
        capsys, "m.pt2"
    )
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace())
    reason = "We failed to resolve torch.ops.torchvision.nms.default to an operator"
    assert "expected torchvision, which defines it, to be installed" in refused(capsys, "m.pt2")


def test_phases_are_written_as_text(folder, capsys):
    words = ["m.onnx", "--dim=n=1:8", "--dump_phases_to=phases"]
    made(capsys, *words, "-o", "m.gtp")
    found = {path.name: path.read_text() for path in (folder / "phases").iterdir()}
    phases = [phase for phase in PHASES if phase not in ("quantized", "bound")]
    assert sorted(found) == [f"{PHASES.index(phase):02}-{phase}.txt" for phase in phases]
    assert all(found[name].startswith("func @") for name in sorted(found)[:-1])
    assert "(n=8): arena 0, lower bound 0" in found["09-planned.txt"]
    for name, phase in zip(sorted(found), phases, strict=True):
        reported = made(capsys, "m.onnx", "--dim=n=1:8", f"--compile_to={phase}", "-o", "phase.txt")
        assert reported == f"phase.txt: {phase}\n"
        assert (folder / "phase.txt").read_text() == found[name]
    text = refused(capsys, "m.onnx", "--compile_to=bound")
    assert "--compile_to: got 'bound'; expected a phase that is reached" in text
    text = refused(capsys, "m.onnx", "--compile_to=fused", "--rounding=each")
    assert "--compile_to: got 'fused'" in text
    text = refused(capsys, "m.onnx", "--dump_kernels_to=kernels")
    assert "--dump_kernels_to: got a program whose kernels are made" in text


def test_each_phase_shows_its_pass(folder, capsys):
    """The activation and the sum of the first product are joined with it, in this order."""
    (folder / "models_of_a_test.py").write_text(PYTHON + LAYERS)
    words = ["models_of_a_test:layers", "--input_shape=x=4x64xf16", "--dump_phases_to=phases"]
    made(capsys, *words, "-o", "m.gtp", "--quantize=w.0=int8", "--target=host")
    found = {p.stem[3:]: p.read_text() for p in (folder / "phases").iterdir()}
    assert set(found) == {*PHASES} - {"bound"}
    calls = {phase: re.findall(r"= (\w+)", text) for phase, text in found.items()}
    assert calls["clean"].count("elementwise") == calls["attention"].count("elementwise")
    assert "activation=relu" in found["epilogues"] and "activation=relu" not in found["attention"]
    assert "quantized_product" in calls["quantized"] and "quantized_product" not in calls["layouts"]
    assert "formula" in calls["formulas"] and "formula" not in calls["split"]


def test_an_interrupt_is_one_line_and_leaves_the_file(folder, capsys, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    (folder / "m.gtp").write_bytes(b"before")
    compiling = importlib.import_module("gputensor.programs.passes.order")
    monkeypatch.setattr(compiling, "verify_program", interrupted)
    assert main(["compile", "m.onnx", "-o", "m.gtp", "--dim=n=2"]) == 130
    assert capsys.readouterr() == ("", "gputensor: interrupted\n")
    assert (folder / "m.gtp").read_bytes() == b"before"


@needs_nvrtc
def test_launches_and_kernels_are_written(folder, capsys):
    words = ["models_of_a_test:scaled", "--input_shape=rows=4x3", "--target=h200+ptx"]
    made(capsys, *words, "--dump_phases_to=phases", "--dump_kernels_to=kernels", "-o", "p.gtp")
    bound = (folder / "phases/10-bound.txt").read_text()
    assert bound.startswith("@scaled for sm_90+ptx\n") and "models_of_a_test.py:9" in bound
    names = sorted(path.name for path in (folder / "kernels").iterdir())
    assert len(names) % 3 == 0 and names[0].startswith("0.")
    for path in (folder / "kernels").iterdir():
        content = path.read_bytes()
        if path.suffix == ".cubin":
            assert content[:4] == b"\x7fELF"
        else:
            assert (b".target sm_90" if path.suffix == ".ptx" else b"__global__") in content
