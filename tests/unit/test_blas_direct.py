"""Odd products by the kernel that takes them as they are: which they are, and its program."""

import itertools

import pytest

from gputensor._kernels import nvrtc
from gputensor.blas.direct import split_of
from gputensor.blas.direct_source import direct_source
from tests.unit.simulated_gpu import needs_nvrtc

FLOAT16, BFLOAT16, FLOAT32 = 9, 10, 11
LAYOUTS = list(itertools.product((False, True), repeat=2))
# How many clusters of a size run at once.
ROOM = {1: 132, 2: 66, 3: 39, 4: 30, 5: 22, 6: 16, 7: 15, 8: 15}


def test_middle_sizes_are_cut_until_one_wave_of_clusters_fills_the_device():
    assert split_of(FLOAT32, 777, 333, 1555) == 5
    assert split_of(BFLOAT16, 777, 333, 1555) == 5
    assert split_of(FLOAT32, 2047, 511, 511) == 2
    for dtype, m, n in itertools.product(
        (FLOAT32, FLOAT16), range(65, 1600, 97), range(65, 900, 89)
    ):
        split = split_of(dtype, m, n, 1001)
        if split:
            assert -(-m // 128) * -(-n // 128) <= ROOM[split], (m, n)


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        (FLOAT32, (4095, 4097, 4099)),  # many waves
        (FLOAT32, (1025, 1023, 1027)),  # 72 tiles: more than 66 pairs, and half of 132 blocks
        (FLOAT32, (129, 1023, 4097)),  # nearly half of the tiles is empty
        (FLOAT32, (333, 401, 129)),  # over before it is read
        (BFLOAT16, (1023, 1023, 1027)),  # a copy is cheaper
        (BFLOAT16, (129, 129, 1555)),
        (FLOAT32, (1 << 40, 1 << 40, 1 << 40)),
        (FLOAT32, (777, 333, 1555, 1 << 40)),
    ],
)
def test_other_products_are_left_to_others(dtype, sizes):
    assert split_of(dtype, *sizes) == 0


def test_sizes_below_one_make_no_product():
    with pytest.raises(ValueError, match="below 1"):
        split_of(FLOAT32, 0, 5, 5)


@needs_nvrtc
@pytest.mark.parametrize(("a_along_k", "b_along_k"), LAYOUTS)
@pytest.mark.parametrize(
    ("operand", "result"),
    [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")],
)
def test_program_compiles_and_keeps_its_multiplications_asynchronous(
    operand, result, a_along_k, b_along_k
):
    text = direct_source(operand, result, a_along_k, b_along_k, 128, 128, 64, 5, 2)
    options = ("--gpu-architecture=compute_90a",)
    ptx = nvrtc.compile_source(text, "compute_90a", options).decode()
    assert ptx.count("wgmma.mma_async") == 4 * 4
    assert "atom.global" not in ptx
    assert "red.global" not in ptx
