"""Tiny products: which products are tiny, and their program.

tests/simulated_gpu/test_tiny.py runs it; what only a GPU can show (its time) is in tests/gpu.
"""

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.backends import tiny_program
from tests.support.internals import tile_of
from tests.support.nvrtc_library import needs_nvrtc, quick_options

FLOAT16, BFLOAT16, FLOAT32, FLOAT64 = 9, 10, 11, 12


def test_only_products_of_one_wave_and_few_terms_are_tiny():
    assert tile_of(FLOAT32, 64, 64, 64) == tile_of(BFLOAT16, 128, 128, 128) == 16
    assert tile_of(FLOAT32, 128, 128, 256) == 16
    assert tile_of(FLOAT32, 256, 256, 128) == 32
    assert tile_of(BFLOAT16, 3200, 5, 14) == 32
    assert tile_of(FLOAT32, 1, 2000, 23) == tile_of(BFLOAT16, 2000, 1, 9) == 16
    assert tile_of(FLOAT16, 256, 256, 17) == 0
    for dtype, *sizes in (
        (FLOAT64, 8, 8, 8),
        (BFLOAT16, 128, 128, 129),
        (FLOAT32, 1, 2049, 8),
        (BFLOAT16, 2028, 1, 24),
        (BFLOAT16, 40, 6708, 2),
        (FLOAT32, 128, 128, 257),
        (FLOAT32, 256, 256, 129),
        (FLOAT32, 4096, 4096, 1),
        (FLOAT32, 1 << 40, 1 << 40, 1),
        (FLOAT32, 8, 8, 8, 1 << 40),
        (FLOAT32, 1, 1, 1, 133),
    ):
        assert tile_of(dtype, *sizes) == 0, sizes


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("tile", [16, 32])
@pytest.mark.parametrize("output", ["float32", "float16", "bfloat16"])
def test_program_compiles_without_local_memory(output, tile):
    for target in ("sm_80", "sm_90"):
        nvrtc.compile_source(tiny_program(output, output, tile).text(), target, quick_options())
    text = tiny_program(output, "float32", tile).text()
    text = nvrtc.compile_source(text, "compute_90").decode()
    assert ".local" not in text
    assert text.count("ld.shared.v4.f32") >= 2
