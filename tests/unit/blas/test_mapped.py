"""Plans of convolution by tensor maps, without a GPU."""

import pytest

from gputensor.blas.kernels.convolution_programs import mapped_shared_nbytes
from tests.support.internals import mapped

MULTIPROCESSOR = 228 << 10  # bytes of shared memory
RESERVED = 1 << 10  # of each block, by the driver


def test_plan_covers_all_work_within_limits(rng):
    seen = set()
    for _ in range(300):
        images, extent = int(2 ** rng.integers(0, 9)), int(rng.choice([1, 7, 14, 28, 56, 112]))
        channels, outputs = (int(rng.choice([32, 64, 72, 96, 128, 512, 2048])) for _ in range(2))
        kernel = int(rng.choice([1, 3, 5]))
        plan = mapped(images, channels, outputs, (extent, extent), (kernel, kernel),
                      int(rng.choice([1, 78, 132])), MULTIPROCESSOR)  # fmt: skip
        pixels, across = images * extent**2, plan["columns"] * (2 if plan["outputs"] == 64 else 1)
        seen.add((plan["splits"] > 1, plan["blocks"]))
        assert plan["columns"] % 16 == 0 and 32 <= plan["columns"] <= 256
        assert plan["columns"] // 8 % plan["splits"] == 0
        assert plan["splits"] == 1 or plan["blocks"] == 1
        assert plan["column_tiles"] * plan["outputs"] >= outputs
        assert plan["tiles"] == -(-pixels // across) * plan["column_tiles"]
        assert plan["steps"] == kernel**2 * -(-channels // 64)
        assert plan["each"] * plan["splits"] >= plan["steps"]
        nbytes = mapped_shared_nbytes((plan["outputs"], plan["columns"]), plan["stages"])
        assert plan["blocks"] * (nbytes + RESERVED) <= MULTIPROCESSOR
        # Registers of two blocks of nine warps: half of the sums that one block may have.
        assert plan["blocks"] == 1 or plan["columns"] <= 128
        # Sums that the blocks of a cluster exchange reuse the memory of the steps.
        held = plan["stages"] * (plan["outputs"] + across) * 128
        assert plan["splits"] == 1 or plan["columns"] * 512 <= held
    assert seen == {(False, 1), (False, 2), (True, 1)}


@pytest.mark.parametrize("multiprocessors", [1, 132])
def test_terms_are_split_when_tiles_are_few(multiprocessors):
    plan = mapped(1, 512, 512, (7, 7), (3, 3), multiprocessors, MULTIPROCESSOR)
    assert (plan["splits"] > 1) == (multiprocessors > 1)


def test_a_small_shared_memory_has_no_form():
    assert mapped(1, 64, 64, (7, 7), (3, 3), 132, 40 << 10) is None
