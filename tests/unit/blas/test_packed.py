"""Packed products without a GPU: which products are packed, and whether schedules cover all work.

An independent model follows the schedule that work.cuh describes. Together, the shares of all
clusters must contain every step of every tile and strip exactly once, and the tiles and strips must
contain every element of the result exactly once.
"""

import numpy as np
import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import programs
from tests.support.internals import is_packed, packing, schedule_of
from tests.support.nvrtc_library import why_no_nvrtc

BFLOAT16, FLOAT16, FLOAT32, FLOAT64 = 10, 9, 11, 12
COMPUTE_32F, TF32 = 68, 77


def test_only_unaligned_products_of_types_that_the_kernels_have_are_packed():
    sizes = {"lda": 4095, "ldb": 4099, "ldd": 4095}
    assert is_packed(BFLOAT16, COMPUTE_32F, 4095, 4097, 4099, **sizes)
    assert is_packed(FLOAT16, COMPUTE_32F, 4095, 4097, 4099, **sizes)
    assert is_packed(BFLOAT16, COMPUTE_32F, 4095, 4097, 4099, out=FLOAT32, **sizes)
    assert is_packed(FLOAT32, TF32, 4095, 4097, 4099, **sizes)
    assert not is_packed(FLOAT32, COMPUTE_32F, 4095, 4097, 4099, **sizes)
    assert not is_packed(BFLOAT16, COMPUTE_32F, 4095, 4097, 4099, out=FLOAT16, **sizes)
    aligned = {"lda": 4096, "ldb": 4096, "ldd": 4096}
    assert not is_packed(BFLOAT16, COMPUTE_32F, 4096, 4096, 4096, **aligned)
    assert is_packed(BFLOAT16, COMPUTE_32F, 4096, 4096, 4096, d=2, **aligned)
    assert is_packed(FLOAT32, TF32, 1023, 1025, 1027, lda=1023, ldb=1027, ldd=1023)
    assert is_packed(BFLOAT16, COMPUTE_32F, 1023, 1025, 1027, lda=1023, ldb=1027, ldd=1023)
    assert is_packed(FLOAT32, TF32, 8191, 8191, 8191, lda=8191, ldb=8191, ldd=8191)
    assert is_packed(BFLOAT16, COMPUTE_32F, 8191, 8191, 8191, lda=8191, ldb=8191, ldd=8191)
    assert not is_packed(FLOAT32, TF32, 4095, 4097, 255, lda=4095, ldb=255, ldd=4095)
    # The result is aligned, so padding copies the operands only, as packing does.
    assert is_packed(FLOAT32, TF32, 4096, 4096, 4097, lda=4096, ldb=4097, ldd=4096)
    assert not is_packed(BFLOAT16, COMPUTE_32F, 4096, 4096, 4097, lda=4096, ldb=4097, ldd=4096)
    # 36 tiles for 66 clusters; few tiles with many terms.
    assert not is_packed(BFLOAT16, COMPUTE_32F, 1537, 1535, 1539, lda=1537, ldb=1539, ldd=1537)
    assert not is_packed(BFLOAT16, COMPUTE_32F, 2047, 2049, 8191, lda=2047, ldb=8191, ldd=2047)
    assert not is_packed(BFLOAT16, COMPUTE_32F, 63, 65, 67, lda=63, ldb=67, ldd=63)
    assert not is_packed(BFLOAT16, COMPUTE_32F, 16, 50257, 4099, lda=17, ldb=4099, ldd=17)


def test_a_setting_that_does_not_exist_is_refused():
    assert packing() == "auto"
    with pytest.raises(
        ValueError, match=r"packing: got 'sometimes'; expected one of \['always', 'auto', 'never'\]"
    ):
        packing("sometimes")
    assert packing() == "auto"


def place(plan, cluster, clusters):
    units = plan["units"] * cluster // clusters
    is_strip = units >= plan["units_tiles"]
    if is_strip:
        units -= plan["units_tiles"]
    item, step = divmod(units // plan["weight_strip" if is_strip else "weight_tile"], plan["steps"])
    if is_strip:
        item += plan["divided"]
        if plan["columns"] == 256:
            step -= step % 2
    return item, step


def work_of(plan, cluster, clusters):
    """(is_strip, index, first, last) in the order of the kernel."""
    if plan["units"]:
        item, step = place(plan, cluster, clusters)
        end_item, end_step = place(plan, cluster + 1, clusters)
        while (item, step) < (end_item, end_step):
            last = end_step if item == end_item else plan["steps"]
            is_strip = item >= plan["divided"]
            index = item - plan["divided"] if is_strip else plan["whole"] + item
            if step < last:
                yield is_strip, index, step, last
            item, step = item + 1, 0
    for index in range(cluster, plan["whole"], clusters):
        yield False, index, 0, plan["steps"]
    strips = plan["strips_n"] + plan["strips_m"]
    if plan["strips_from"] >= 0 and cluster >= plan["strips_from"]:
        for index in range(cluster - plan["strips_from"], strips, clusters - plan["strips_from"]):
            yield True, index, 0, plan["steps"]


def shapes():
    rng = np.random.default_rng()
    fixed = [(4095, 4097, 4099), (2047, 50257, 768), (2049, 2047, 8191), (1023, 1025, 1027)]
    fixed += [(256, 256, 8), (257, 257, 64), (288, 289, 100), (300, 31, 77), (8191, 8191, 8191)]
    return fixed + [tuple(int(x) for x in rng.integers(1, 5000, 3)) for _ in range(100)]


@pytest.mark.parametrize("clusters", [66, 57, 1])
def test_shares_of_clusters_cover_all_work_once(clusters):
    for m, n, k in shapes():
        for itemsize in (2, 4):
            plan = schedule_of(m, n, k, itemsize, clusters)
            tiles = plan["main_m"] * plan["main_n"] + plan["edge_m"] + plan["edge_n"]
            strips = plan["strips_n"] + plan["strips_m"]
            done = np.zeros((tiles + strips, plan["steps"]), dtype=np.int8)
            for cluster in range(clusters):
                for is_strip, index, first, last in work_of(plan, cluster, clusters):
                    done[tiles + index if is_strip else index, first:last] += 1
            assert (done == 1).all(), (m, n, k, itemsize, clusters)


def test_tiles_and_strips_cover_all_elements_once():
    for m, n, k in shapes():
        plan = schedule_of(m, n, k, 2, 66)
        if m * n > 30e6:
            continue
        columns, main_m, main_n = (plan[key] for key in ("columns", "main_m", "main_n"))
        count = np.zeros((m, n), dtype=np.int8)
        for row in range(main_m):
            count[256 * row : 256 * row + 256, : columns * main_n] += 1
        for column in range(plan["edge_m"]):
            count[256 * main_m :, columns * column : columns * (column + 1)] += 1
        for row in range(plan["edge_n"]):
            count[256 * row : 256 * row + 256, columns * main_n :] += 1
        for row in range(plan["strips_n"]):
            count[256 * row : 256 * row + 256, columns * main_n :] += 1
        limit = columns * main_n if plan["strips_n"] else n
        for column in range(plan["strips_m"]):
            count[256 * main_m :, 256 * column : min(256 * column + 256, limit)] += 1
        assert (count == 1).all(), (m, n, k)


def test_packed_tiles_hold_both_operands():
    for m, n, k in shapes():
        for itemsize in (2, 4):
            plan = schedule_of(m, n, k, itemsize, 66)
            assert plan["steps"] * 128 >= k * itemsize > (plan["steps"] - 1) * 128
            assert plan["line"] in (plan["steps"], plan["steps"] + 1)
            assert plan["tiles_a"] == -(-m // 128) * plan["line"]
            assert plan["tiles_b"] == -(-n // 128) * plan["line"]


@pytest.fixture
def ptx():
    """Compile to PTX with the instructions specific to Hopper."""
    if why_no_nvrtc:
        pytest.skip(why_no_nvrtc)
    return lambda text: nvrtc.compile_source(
        text, "compute_90", ("--gpu-architecture=compute_90a",)
    ).decode()


@pytest.mark.parametrize("nbytes", [2, 4])
def test_packing_programs_compile(ptx, nbytes):
    assert ("cvt.rna.tf32.f32" in ptx(programs.packing(nbytes).text())) == (nbytes == 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "out", "columns", "has_addend", "instruction"),
    [
        ("float32", "float32", 256, False, "m64n256k8.f32.tf32.tf32"),
        ("bfloat16", "bfloat16", 128, True, "m64n128k16.f32.bf16.bf16"),
        ("float16", "float32", 128, False, "m64n128k16.f32.f16.f16"),
    ],
)
def test_product_programs_compile(ptx, dtype, out, columns, has_addend, instruction):
    text = ptx(programs.packed(dtype, out, columns, has_addend).text())
    assert instruction in text
    assert ("m64n256" in text) == (columns == 256)
    assert programs.packed_shared_nbytes(columns) <= 227 * 1024
