"""Skinny products by our own kernel, without a GPU: the program and its blocks.

NVRTC compiles variants of each form. tests/simulated_gpu/test_skinny.py compares results with
float64; tests/gpu and benchmarks/skinny.py show the arithmetic and the speed of a GPU.
"""

import re

import numpy as np
import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.backends import panel_wins
from gputensor.blas.kernels.brief_programs import brief_row_wins, brief_wins
from gputensor.blas.kernels.programs import (
    INT4,
    INT8,
    PLAIN,
    dequantize,
    skinny,
    skinny_mma,
)
from tests.support import internals
from tests.support.internals import skinny_run
from tests.support.nvrtc_library import needs_nvrtc, quick_options

FLOAT16, BFLOAT16, FLOAT32 = 9, 10, 11


def mma_variants():
    """Programs for the block shapes that the rules give for a layer."""
    for form in (PLAIN, INT8, INT4):
        for code, name in ((FLOAT16, "float16"), (BFLOAT16, "bfloat16")):
            for m in (1, 16):
                group = {INT8: 128, INT4: 32}.get(form, 0)
                shape = internals.skinny_mma_block_shape(form, code, (m, 8192, 8192), group=group)
                yield pytest.param(form, name, shape, group, id=f"{form}-{name}-{m}")


def mma_parts(shape):
    keys = ("tiles", "step", "row_warps", "k_warps", "stages", "splits")
    return {key: shape[key] for key in keys}


def assert_program(source, pattern):
    """16-byte copies, no spills, no atomics."""
    text = nvrtc.compile_source(source, "compute_90").decode()
    assert re.search(pattern, text)
    assert ".local" not in text
    assert not re.search(r"\b(atom|red)\.", text)
    nvrtc.compile_source(source, "sm_90", quick_options())
    return text


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize(("form", "name", "shape", "group"), list(mma_variants()))
def test_programs_for_tensor_cores_compile_without_spills(form, name, shape, group):
    parts, tokens = mma_parts(shape), shape["tokens"]
    source = skinny_mma(form, name, name, tokens, **parts, group=group).text()
    copy = r"cp\.async\.cg\.shared\.global\.L2::[^ ]*256B \[[^,]*, [^,]*, 16"
    assert "mma.sync" in assert_program(source, copy)
    old = parts | {"splits": 1}
    source = skinny_mma(form, name, "float32", tokens, **old, group=group).text()
    nvrtc.compile_source(source, "sm_80", quick_options())


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("m", [1, 16])
def test_programs_in_float32_compile_without_spills(m):
    shape = internals.skinny_block_shape((m, 8192, 8192))
    parts = {key: shape[key] for key in ("tiles", "warps", "stages", "splits")}
    source = skinny(shape["tokens"], **parts).text()
    copy = r"cp\.async\.cg\.shared\.global\.L2::128B \[[^,]*, [^,]*, 16"
    assert "mma.sync" not in assert_program(source, copy)
    source = skinny(shape["tokens"], **(parts | {"splits": 1})).text()
    nvrtc.compile_source(source, "sm_80", quick_options())


@pytest.mark.slow
@needs_nvrtc
def test_quantized_programs_compile_for_every_group():
    for form in (INT8, INT4):
        for group in (0, 32, 64, 128):
            shape = internals.skinny_mma_block_shape(form, BFLOAT16, (4, 4096, 4096), group=group)
            program = skinny_mma(
                form, "bfloat16", "bfloat16", shape["tokens"], **mma_parts(shape), group=group
            )
            nvrtc.compile_source(program.text(), "sm_90", quick_options())
    for name in ("float16", "bfloat16", "float32"):
        for bits in (4, 8):
            nvrtc.compile_source(dequantize(name, bits).text(), "sm_80", quick_options())


def random_sizes(rng):
    return int(rng.integers(1, 17)), 8 * int(rng.integers(1, 6000)), 128 * int(rng.integers(1, 300))


def test_blocks_in_float32_fill_the_device_once_and_fit_its_shared_memory():
    rng = np.random.default_rng()
    for _ in range(300):
        m, n, k = random_sizes(rng)
        multiprocessors, shared = (132, 233472) if rng.integers(2) else (58, 102400)
        shape = internals.skinny_block_shape(
            (m, n, k), multiprocessors=multiprocessors, shared_nbytes=shared,
            can_cluster=bool(rng.integers(2)),
        )  # fmt: skip
        rows = 16 * shape["tiles"] * shape["warps"]
        assert shape["shared_nbytes"] <= shared // 2 - 1024
        assert shape["ring_nbytes"] >= shape["tokens"] * rows * 4
        assert shape["slice"] * shape["splits"] >= k
        assert shape["span"] % 128 == 0 and shape["slice"] % 128 == 0
        assert shape["tokens"] >= m and shape["stages"] >= 2
        blocks = -(-n // rows) * shape["splits"]
        assert blocks <= max(2 * multiprocessors, -(-n // rows))


def test_blocks_for_tensor_cores_fit_the_shared_memory_and_cover_the_product():
    rng = np.random.default_rng()
    for _ in range(300):
        form, (m, n, k) = int(rng.integers(3)), random_sizes(rng)
        group = int(rng.choice([0, 32, 64, 128])) if form != PLAIN else 0
        shared, can_cluster = int(rng.choice([102400, 167936, 233472])), bool(rng.integers(2))
        shape = internals.skinny_mma_block_shape(
            form, BFLOAT16, (m, n, k), group=group, shared_nbytes=shared, can_cluster=can_cluster
        )
        assert shape["shared_nbytes"] <= shared - 1024
        assert shape["row_warps"] * shape["k_warps"] <= 16
        assert shape["splits"] == 1 or can_cluster
        assert shape["tokens"] >= m and shape["stages"] >= 2
        assert shape["span"] > 0 and shape["span"] % shape["step"] == 0
        # The sums reuse the memory of the stages.
        rows = 16 * shape["tiles"] * shape["row_warps"]
        assert shape["x_offset"] >= shape["k_warps"] * m * rows * 4


def test_blocks_of_large_products_fill_an_h200():
    for form, group in ((PLAIN, 0), (INT8, 128), (INT4, 128)):
        for n in (4096, 8192, 28672):
            shape = internals.skinny_mma_block_shape(form, BFLOAT16, (1, n, 8192), group=group)
            rows = 16 * shape["tiles"] * shape["row_warps"]
            assert 120 <= -(-n // rows) * shape["splits"] <= 132


@pytest.mark.parametrize(
    ("form", "sizes"), [(INT4, (1, 7280, 7936)), (INT8, (1, 5584, 5376)), (PLAIN, (8, 4400, 2816))]
)
def test_blocks_of_odd_products_leave_few_multiprocessors_idle(form, sizes):
    """Shapes for which an older rule took a second wave of few blocks, or a third of the device."""
    group = 128 if form != PLAIN else 0
    shape = internals.skinny_mma_block_shape(form, BFLOAT16, sizes, group=group)
    rows = 16 * shape["tiles"] * shape["row_warps"]
    blocks = -(-sizes[1] // rows) * shape["splits"]
    assert 90 <= blocks <= 132


def test_products_that_the_kernel_does_not_support_are_refused():
    fits = (1 << 20, 1 << 21, 1 << 22, 0, 0, 0)
    for sizes, addresses, pitches in [
        ((17, 64, 64), fits, (64, 64, 64, 0)),
        ((4, 64, 60), fits, (64, 64, 64, 0)),
        ((4, 64, 64), fits, (65, 64, 64, 0)),
        ((4, 64, 64), fits, (64, 65, 64, 0)),
        ((4, 64, 64), ((1 << 20) + 2, *fits[1:]), (64, 64, 64, 0)),
        ((4, 64, 64), (fits[0], (1 << 21) + 8, *fits[2:]), (64, 64, 64, 0)),
    ]:
        assert not skinny_run(0, 0, PLAIN, (BFLOAT16, BFLOAT16), sizes, addresses, pitches)
    assert not skinny_run(0, 0, PLAIN, (12, 12), (4, 64, 64), fits, (64, 64, 64, 0))
    types, sizes = (FLOAT32, FLOAT32), (4, 64, 64)
    assert not skinny_run(0, 0, INT8, types, sizes, fits, (64, 64, 64, 0))
    with pytest.raises(ValueError, match="splits: got 3; expected 0, 1, 2, 4 or 8"):
        internals.skinny_configure(splits=3)
    with pytest.raises(ValueError, match="warps: got 4 times 5; expected at most 16 in a block"):
        internals.skinny_mma_configure(row_warps=4, k_warps=5)


@pytest.mark.parametrize("sizes", [(64, 384, 384), (128, 384, 384), (8, 768, 768), (2, 304, 224)])
def test_small_products_of_several_rows_go_to_panels(sizes):
    assert panel_wins(*sizes) and panel_wins(*sizes, is_normed=True)


@pytest.mark.parametrize("sizes", [(4096, 1152, 384), (4096, 384, 384), (100000, 128, 128)])
def test_many_rows_by_few_terms_go_to_held_weights(sizes):
    assert panel_wins(*sizes) and panel_wins(*sizes, is_late=True)


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 384, 384),  # one row has the kernel of skinny products
        (4096, 3072, 768),
        (128, 2304, 768),
        (64, 64, 8192),  # panels do not fit into shared memory
        (64, 60, 384),  # rows are not multiples of 16 bytes
        (64, 64, 380),
        (0, 64, 64),
    ],
)
def test_other_products_go_to_other_kernels(sizes):
    assert not panel_wins(*sizes)


@pytest.mark.parametrize(
    "sizes, dtype",
    [((1, 512, 784), "float16"), ((8, 10, 512), "bfloat16"), ((2, 1024, 1024), "bfloat16")],
)
def test_small_weights_go_to_brief_products(sizes, dtype):
    assert brief_wins(*sizes, dtype)


@pytest.mark.parametrize(
    "sizes, dtype",
    [
        ((9, 10, 512), "float16"),
        ((8, 1024, 1024), "float16"),
        ((1, 8192, 4096), "float16"),
        ((1, 8, 8192), "float16"),  # too long a row
        ((1, 10, 508), "float16"),  # rows are not multiples of 16 bytes
        ((1, 10, 512), "float32"),  # never measured
        ((1, 10, 0), "float16"),
    ],
)
def test_other_weights_do_not_go_to_brief_products(sizes, dtype):
    assert not brief_wins(*sizes, dtype)


def test_one_block_reads_all_weights_for_a_row():
    assert brief_row_wins(16, 10, 512, "float16") and brief_row_wins(1, 10, 784, "bfloat16")
    assert not brief_row_wins(17, 10, 512, "float16")
    assert not brief_row_wins(1, 257, 8, "float16") and not brief_row_wins(1, 200, 512, "float16")


def test_kernels_saved_count_for_panels():
    """A norm, and an activation that libraries do not apply, cost them a kernel each."""
    assert not panel_wins(4096, 1536, 384) and panel_wins(4096, 1536, 384, is_late=True)
    assert not panel_wins(4096, 2048, 512) and panel_wins(4096, 2048, 512, is_late=True)
    assert not panel_wins(128, 1152, 384) and panel_wins(128, 1152, 384, is_normed=True)
    assert panel_wins(128, 1536, 384, is_late=True)
    assert not panel_wins(64, 64, 2048, is_normed=True)  # more than a warp holds of a row
