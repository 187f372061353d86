"""Every kernel compiles for each of its architectures and for no older one.

NVRTC needs no GPU. These tests compile a few variants of each kernel; ``make check-kernels`` (the
marker ``sweep``) compiles all of them. The host side of the parameters is compiled with the
extensions, which include the same headers.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gputensor._arrays.element_types import CODE_OF
from gputensor._kernels.launch import nvrtc
from gputensor._kernels.operations import ELEMENTWISE
from gputensor._kernels.program import Program, read_text
from gputensor._kernels.programs import elementwise
from tests.support.kernel_variants import KERNELS, few, variants
from tests.support.nvrtc_library import needs_nvrtc, quick_options
from tests.unit.kernels.kernel_twins import TWINS

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("gputensor/_kernels/cuda", "gputensor/blas/kernels")
#: Compute capability -> the architecture that the kernels are compiled for.
ARCHITECTURES = {
    75: "sm_75",
    80: "sm_80",
    86: "sm_86",
    89: "sm_89",
    90: "sm_90a",
    100: "sm_100a",
    120: "sm_120",
}


def targets(program):
    """The architectures that a program supports."""
    if program.architecture:
        return [program.architecture]
    return [name for capability, name in ARCHITECTURES.items() if capability >= program.minimum]


def compile_for(program, target, *options):
    architecture = f"--gpu-architecture={target}"
    return nvrtc.compile_source(program.text(), target, (architecture, *options))


def faults(found, of, *options):
    """NVRTC's errors for the programs that do not compile."""
    for program in found:
        for target in of(program):
            try:
                assert compile_for(program, target, *options)
            except nvrtc.CompileError as error:
                yield f"{program} for {target}: {error}"


def shared_out(programs):
    """Give each architecture to one program, and each program at least one, at random."""
    given = {program: [] for program in random.sample(programs, len(programs))}
    known = sorted({target for program in programs for target in targets(program)})
    for target in random.sample(known, len(known)):
        able = [program for program in given if target in targets(program)]
        given[min(able, key=lambda program: len(given[program]))].append(target)
    for program, found in given.items():
        found += [] if found else [random.choice(targets(program))]
    return given


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_compiles_for_each_architecture(name):
    given = shared_out(few(name))
    assert not list(faults(given, given.get, *quick_options()))


@needs_nvrtc
@pytest.mark.sweep
@pytest.mark.parametrize("name", KERNELS)
def test_every_variant_compiles_for_each_architecture(name):
    assert not list(faults(variants(name), targets))


SPECIAL = [row for row in ELEMENTWISE if "::" in row.cuda.get("float", "")]


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("row", SPECIAL, ids=lambda row: row.name)
def test_functions_of_special_headers_compile(row):
    code = CODE_OF[np.dtype("float64")]
    program = elementwise(row.code, code, code, [(code, 0)] * row.arity, 2, 0, 1)
    assert not list(faults([program], lambda _program: ["sm_90"], *quick_options()))


def needs():
    """One program for each file and each requirement that its variants name."""
    found = {}
    for name in KERNELS:
        for program in variants(name):
            found.setdefault((program.path, program.minimum), program)
    return found.values()


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize(
    "program",
    [program for program in needs() if program.minimum > 75],
    ids=lambda program: f"{Path(program.path).stem}-{program.minimum}",
)
def test_kernel_does_not_compile_below_its_minimum(program):
    older = max(capability for capability in ARCHITECTURES if capability < program.minimum)
    with pytest.raises(nvrtc.CompileError):
        compile_for(program, f"sm_{older}")
    if "wgmma" in "".join(str(value) for _, value in program.defines):
        with pytest.raises(nvrtc.CompileError):
            compile_for(program, "sm_90")


@needs_nvrtc
def test_error_names_the_line_of_the_file(monkeypatch):
    path = "gputensor/_kernels/cuda/divide.cuh"
    number = read_text(path).splitlines().index("}") + 1
    broken = read_text(path).replace("\n}", "\nmissing(); }")
    read = {path: broken}
    monkeypatch.setattr(
        "gputensor._kernels.program.read_text", lambda name: read.get(name) or read_text(name)
    )
    program = next(iter(variants("indices")))
    with pytest.raises(nvrtc.CompileError, match=rf"{re.escape(path)}\({number}\): error"):
        compile_for(program, "sm_80")


def test_text_changes_with_every_header_it_includes():
    program = next(iter(variants("indices")))
    text = program.text()
    for name in ("words.h", "axis.h", "index.h", "types.cuh", "divide.cuh", "index.cuh"):
        content = read_text(f"gputensor/_kernels/cuda/{name}").splitlines()
        assert max(content, key=len) in text, name
    assert "#include" not in text


def files(*suffixes):
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path.relative_to(ROOT).as_posix()


def test_every_file_of_kernel_text_belongs_to_a_variant():
    roots = {program.path for name in KERNELS for program in variants(name)}
    assert roots == {path for path in files(".cuh") if "__global__" in read_text(path)}
    used = "\n".join(Program(root).text() for root in roots)
    assert {path for path in files(".cuh", ".h") if f'"{path}"' not in used} == set()


def test_every_kernel_runs_on_the_cpu_in_a_test():
    assert sorted(name for names in TWINS.values() for name in names) == sorted(KERNELS)
    for place in TWINS:
        path, function = place.split("::")
        text = (ROOT / "tests/simulated_gpu" / path).read_text(encoding="utf-8")
        assert f"\ndef {function}(" in text, place


def test_kernels_that_start_early_wait_before_anything_else():
    """If a kernel did not wait, the next one could run before earlier kernels are done."""
    late = {"condition", "packing", "random"}
    for path in files(".cuh"):
        text = read_text(path)
        for found in re.finditer(r"__global__[^;{]*\bkernel\([^)]*\) \{\n\s*([^\n]*)", text):
            is_first = found[1] in ("start_early();", "start_together();")
            # All may copy weights before: steady ones, and those of a product whose first kernel
            # has waited. Boxes are prepared before, which reads the parameters.
            is_first |= Path(path).stem in ("brief", "skinny_mma", "held", "panel", "wgmma")
            is_first |= Path(path).stem == "depthwise_boxes"
            assert is_first is (Path(path).stem not in late), path
        if "__global__" in text:
            assert text.count("chain/early.cuh") == (Path(path).stem not in late), path


def test_parameters_are_declared_once_and_their_size_is_asserted():
    for path in files(".cuh"):
        assert not re.search(r"^struct \w*Parameters\b", read_text(path), re.M), path
    for path in files(".h"):
        for name in re.findall(r"^struct (\w*Parameters) \{", read_text(path), re.M):
            assert f"static_assert(sizeof({name}) ==" in read_text(path), (path, name)
    for package in ("_kernels", "blas"):
        for path in (ROOT / "gputensor" / package).glob("*.p[yx][xd]"):
            mirrored = re.findall(r"^cdef struct (\w*Parameters)", path.read_text(), re.M)
            assert not mirrored, f"{path.name} mirrors {mirrored}"


def test_import_reads_no_kernel_text():
    code = (
        "import gputensor as gt; import gputensor.blas.kernels; gt.ones(3, device='host') + 1;"
        "from gputensor._kernels import program; print(program.read_text.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "0", done.stderr
