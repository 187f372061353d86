"""The generated CUDA source: it compiles for sm_80 and sm_90, with wide loads where they matter.

NVRTC needs no GPU; without it (cuda-python, libnvrtc) these tests are skipped.
"""

import re

import pytest

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels import programs
from gputensor._kernels.launch import nvrtc
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from gputensor._kernels.programs import FOLD, GATHER, SCALAR, SCATTER, SPACED, STRIDED, UNIT
from gputensor.errors import DeviceError
from tests.support.nvrtc_library import needs_nvrtc, quick_options

pytestmark = needs_nvrtc
KINDS = {"bool": (0,), "int": (1, 4), "uint": (5,), "float": (9, 11), "complex": (13,)}


def compile_program(program, target):
    return nvrtc.compile_source(program.text(), target, quick_options())


def ptx(program):
    return nvrtc.compile_source(program.text(), "compute_90").decode()


def element_codes(row, rotation):
    """Return one dtype code for each kind of an operation; `rotation` varies which."""
    return [codes[rotation % len(codes)] for kind, codes in KINDS.items() if kind in row.kinds]


@pytest.mark.slow
@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_every_operation_compiles_for_each_of_its_kinds(row):
    for code in element_codes(row, row.code):
        modes = (UNIT, SCALAR, STRIDED)[: row.arity] if row.code % 2 else (UNIT,) * row.arity
        rank = 2 if STRIDED in modes else 0
        inputs = [(code, mode) for mode in modes]
        source = programs.elementwise(row.code, code, code, inputs, 2, rank, 1)
        compile_program(source, "sm_80" if row.code % 3 else "sm_90")


@pytest.mark.parametrize(
    ("code", "vector", "wide"), [(11, 4, "v4.f32"), (9, 8, "v4.u32"), (10, 8, "v4.u32")]
)
def test_contiguous_add_moves_16_bytes_an_instruction(code, vector, wide):
    text = ptx(programs.elementwise(4, code, code, ((code, UNIT),) * 2, vector, 0, 1))
    assert len(re.findall(rf"ld\.global\.{wide}", text)) == 2
    assert len(re.findall(rf"st\.global\.{wide}", text)) == 1
    assert ".local" not in text


def test_broadcast_row_is_added_with_wide_loads():
    text = ptx(programs.elementwise(4, 11, 11, ((11, UNIT),) * 2, 4, 2, 1))
    assert len(re.findall(r"ld\.global\.v4\.f32", text)) == 2
    assert "div." not in text and "rem." not in text


@pytest.mark.slow
def test_casts_between_all_dtypes_compile():
    for source in range(len(DTYPES)):
        target = (source * 5 + 3) % len(DTYPES)
        text = programs.elementwise(0, target, target, ((source, UNIT),), 1, 0, 1)
        compile_program(text, "sm_80")


@pytest.mark.slow
@pytest.mark.parametrize("row", REDUCTIONS, ids=lambda row: row.name)
def test_every_reduction_compiles_in_each_form(row):
    common = {"kept": 1, "reduced": 2, "wide": False}
    for code in element_codes(row, row.code):
        source = programs.reduction(
            row.code, code, code, code, column=False, vector=2, partial=True, from_partial=False,
            **common,
        )  # fmt: skip
        compile_program(source, "sm_90")
    last = element_codes(row, 1)[-1]
    for column, from_partial in [(True, False), (False, True)]:
        source = programs.reduction(
            row.code, last, last, last, column=column, vector=1, partial=False,
            from_partial=from_partial, kept=2, reduced=1, wide=True,
        )  # fmt: skip
        compile_program(source, "sm_80")


def test_sum_has_four_wide_loads_in_flight_and_spills_nothing():
    source = programs.reduction(
        0, 11, 11, 11, column=False, vector=4, kept=1, reduced=1, wide=False, partial=True,
        from_partial=False,
    )  # fmt: skip
    text = ptx(source)
    assert re.search(r"(ld\.global\.v4\.f32[^;]*;(?:(?!add\.f32)[\s\S])*?){4}add\.f32", text)
    assert ".local" not in text


@pytest.mark.parametrize("step", [2, -2, 3, -1])
@pytest.mark.parametrize("code", [1, 10])
def test_elements_a_few_apart_are_read_with_wide_loads(code, step):
    vector = 16 if code == 1 else 8
    inputs = ((code, SPACED, step, 0, vector), (code, SCALAR))
    text = ptx(programs.elementwise(4, code, code, inputs, vector, 1, 2))
    loads = re.findall(r"ld\.global\.\S+", text)
    assert loads == ["ld.global.v4.u32"] * (2 * abs(step))
    assert ".local" not in text and "call" not in text


@pytest.mark.slow
def test_transposition_index_and_creation_kernels_compile():
    sources = [
        programs.transpose(9, 9, 1),
        programs.transpose(14, 14, 0),
        programs.transpose(11, 10, 2),
    ]
    sources += [
        programs.transpose(code, code, 1, edge) for code in (5, 6, 7) for edge in (128, 256)
    ]
    sources += [programs.index(form, 8, 4, 2) for form in (GATHER, SCATTER, FOLD)]
    sources += [programs.arange(code) for code in (0, 1, 9, 12, 14, 15)]
    sources.append(programs.condition())
    for source in sources:
        compile_program(source, "sm_80")


def test_rejected_source_raises_with_the_log():
    with pytest.raises(nvrtc.CompileError, match="undefined"):
        nvrtc.compile_source('extern "C" __global__ void kernel() { missing(); }', "sm_80")


def test_newer_device_gets_the_newest_older_ptx_and_older_device_an_error():
    assert nvrtc.architecture(90) == "sm_90"
    assert nvrtc.architecture(999).startswith("compute_")
    with pytest.raises(DeviceError, match="newer; the device is sm_20"):
        nvrtc.architecture(20)
