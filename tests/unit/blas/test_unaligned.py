"""The kernel for unaligned products, which makes no copies: its products and its program."""

import itertools

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import programs
from tests.support.internals import split_of
from tests.support.nvrtc_library import needs_nvrtc

FLOAT16, BFLOAT16, FLOAT32 = 9, 10, 11
LAYOUTS = list(itertools.product((False, True), repeat=2))
# Cluster size -> how many clusters of that size run at once.
ROOM = {1: 132, 2: 66, 3: 39, 4: 30, 5: 22, 6: 16, 7: 15, 8: 15}


def test_middle_sizes_are_cut_until_one_wave_of_clusters_fills_the_device():
    assert split_of(FLOAT32, 777, 333, 1555) == 5
    assert split_of(BFLOAT16, 777, 333, 1555) == 5
    assert split_of(FLOAT32, 2047, 445, 511) == 2
    for dtype, m, n in itertools.product(
        (FLOAT32, FLOAT16), range(65, 1600, 97), range(65, 900, 89)
    ):
        split = split_of(dtype, m, n, 1001)
        if split:
            assert -(-m // 128) * -(-n // 112) <= ROOM[split], (m, n)


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        (FLOAT32, (4095, 4097, 4099)),  # many waves
        (FLOAT32, (1025, 1023, 1027)),  # 72 tiles: more than 66 pairs, and half of 132 blocks
        (FLOAT32, (129, 1023, 4097)),  # nearly half of the tile area is empty
        (FLOAT32, (333, 401, 129)),  # too few terms
        (BFLOAT16, (1023, 1023, 1027)),  # a copy is cheaper
        (BFLOAT16, (129, 129, 1555)),
        (FLOAT32, (1 << 40, 1 << 40, 1 << 40)),
        (FLOAT32, (777, 333, 1555, 1 << 40)),
    ],
)
def test_other_products_are_left_to_other_backends(dtype, sizes):
    assert split_of(dtype, *sizes) == 0


def test_sizes_below_one_make_no_product():
    with pytest.raises(ValueError, match="sizes: got 0, 5, 5, 1; expected 1 or more"):
        split_of(FLOAT32, 0, 5, 5)


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize(("a_along_k", "b_along_k"), LAYOUTS)
@pytest.mark.parametrize(
    ("operand", "result"),
    [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")],
)
def test_program_compiles_copies_by_chunks_and_adds_without_atomics(
    operand, result, a_along_k, b_along_k
):
    columns = 112 if b_along_k or operand == "float32" else 128
    options = ("--gpu-architecture=compute_90a",)
    for is_even in (False, True):
        program = programs.unaligned(
            operand, result, (a_along_k, b_along_k), (is_even, is_even), columns, 5, 6
        )
        ptx = nvrtc.compile_source(program.text(), "compute_90a", options).decode()
        # Four parts of a step, and a warp's tiles of 16 x 8 in each.
        assert ptx.count("mma.sync") == 4 * (64 // 16) * (columns // 2 // 8)
        assert "cp.async.cg" in ptx
        assert "cp.async.ca" not in ptx
        assert " atom.global" not in ptx
        assert " red.global" not in ptx
