"""Skinny products by our own kernel, without a GPU: the program, its blocks, its results.

NVRTC compiles every variant; the kernels run on the CPU behind a driver made for tests
(fake_gpu.cpp), where layouts, fragments, splits and tails are held against float64. What only a GPU
shows (its arithmetic, its speed) is in tests/gpu and benchmarks/small_m.py.
"""

import re

import numpy as np
import pytest

from gputensor._kernels import nvrtc
from gputensor.blas import small_m
from gputensor.blas.quantized_source import dequantize_source
from gputensor.blas.small_m_source import COLUMNS, INT4, INT8, ROWS, small_m_source
from tests.unit.simulated_gpu import fresh_seed, needs_nvrtc, run_program

FLOAT16, BFLOAT16, FLOAT32 = 9, 10, 11
CASES = ["plain", "shapes", "quantized", "products", "layers"]


@pytest.mark.parametrize("case", CASES)
def test_kernels_agree_with_float64_on_a_simulated_gpu(libraries, case):
    # With less shared memory x goes through it in spans.
    shared_nbytes = str(np.random.default_rng().choice([60000, 100000, 233472]))
    run_program(libraries, "small_m_cases.py", case, shared_nbytes, seed=fresh_seed())


def variants():
    """Programs for the shapes of block that the rules give for a layer."""
    for form in (ROWS, COLUMNS, INT8, INT4):
        for code, name in ((FLOAT16, "float16"), (BFLOAT16, "bfloat16"), (FLOAT32, "float32")):
            if form >= INT8 and code == FLOAT32:
                continue
            for m in (1, 16):
                group = {INT8: 128, INT4: 32}.get(form, 0)
                shape = small_m.block_shape(form, code, (m, 8192, 8192), group=group)
                parts = {key: shape[key] for key in ("tiles", "warps", "stages", "splits")}
                yield pytest.param(
                    form, name, shape["tokens"], parts, group, id=f"{form}-{name}-{m}"
                )


@needs_nvrtc
@pytest.mark.parametrize(("form", "name", "tokens", "parts", "group"), list(variants()))
def test_programs_compile_with_16_byte_copies_and_without_spills(form, name, tokens, parts, group):
    source = small_m_source(form, name, name, tokens, **parts, group=group)
    text = nvrtc.compile_source(source, "compute_90").decode()
    assert re.search(r"cp\.async\.cg\.shared\.global\.L2::128B \[[^,]*, [^,]*, 16", text)
    assert ".local" not in text
    assert ("mma.sync" in text) == (name != "float32")
    assert not re.search(r"\b(atom|red)\.", text)
    nvrtc.compile_source(source, "sm_90")
    old = parts | {"splits": 1}
    nvrtc.compile_source(small_m_source(form, name, "float32", tokens, **old, group=group), "sm_80")


@needs_nvrtc
def test_quantized_programs_compile_for_every_group():
    for form in (INT8, INT4):
        for group in (0, 32, 64, 128):
            source = small_m_source(
                form, "bfloat16", "bfloat16", 8, tiles=1, warps=4, stages=4, splits=2, group=group
            )
            nvrtc.compile_source(source, "sm_90")
    for name in ("float16", "bfloat16", "float32"):
        for bits in (4, 8):
            nvrtc.compile_source(dequantize_source(name, bits), "sm_80")


def test_blocks_fill_the_device_once_and_fit_its_shared_memory():
    rng = np.random.default_rng()
    for _ in range(300):
        form = int(rng.integers(4))
        code = int(rng.choice([FLOAT16, BFLOAT16] if form >= INT8 else [BFLOAT16, FLOAT32]))
        m, n, k = (
            int(rng.integers(1, 17)),
            8 * int(rng.integers(1, 6000)),
            128 * int(rng.integers(1, 300)),
        )
        group = int(rng.choice([0, 32, 64, 128])) if form >= INT8 else 0
        multiprocessors, shared = (132, 115712) if rng.integers(2) else (58, 50176)
        shape = small_m.block_shape(
            form, code, (m, n, k), group=group, multiprocessors=multiprocessors,
            shared_nbytes=shared, can_cluster=bool(rng.integers(2)),
        )  # fmt: skip
        rows = 16 * shape["tiles"] * shape["warps"]
        assert shape["shared_nbytes"] <= shared
        assert shape["ring_nbytes"] >= shape["tokens"] * rows * 4
        assert shape["slice"] * shape["splits"] >= k
        assert shape["span"] % 128 == 0 and shape["slice"] % 128 == 0
        assert shape["tokens"] >= m and shape["stages"] >= 2
        blocks = -(-n // rows) * shape["splits"]
        assert blocks <= max(2 * multiprocessors, -(-n // rows))


def test_what_does_not_fit_is_refused():
    fits = (1 << 20, 1 << 21, 1 << 22, 0, 0, 0)
    for sizes, addresses, pitches in [
        ((17, 64, 64), fits, (64, 64, 64, 0)),
        ((4, 64, 60), fits, (64, 64, 64, 0)),
        ((4, 64, 64), fits, (65, 64, 64, 0)),
        ((4, 64, 64), fits, (64, 65, 64, 0)),
        ((4, 64, 64), ((1 << 20) + 2, *fits[1:]), (64, 64, 64, 0)),
        ((4, 64, 64), (fits[0], (1 << 21) + 8, *fits[2:]), (64, 64, 64, 0)),
    ]:
        assert not small_m.run(0, 0, ROWS, BFLOAT16, BFLOAT16, sizes, addresses, pitches)
    assert not small_m.run(0, 0, ROWS, 12, 12, (4, 64, 64), fits, (64, 64, 64, 0))
    assert not small_m.run(0, 0, INT8, FLOAT32, FLOAT32, (4, 64, 64), fits, (64, 64, 64, 0))
    with pytest.raises(ValueError, match="splits is 3"):
        small_m.configure(splits=3)
