"""Attention on tensor cores on a simulated GPU: wgmma, mma, cut keys, options, empty rows."""

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import programs
from tests.support.kernel_variants import ATTENTION_WGMMA
from tests.support.products import tensor_cores_on_cpu
from tests.support.products.attention_checks import check, options

pytestmark = [
    pytest.mark.orders("deferred"),
    pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="1"),
]
HALVES = ("float16", "bfloat16")
MASKS = ("bool", "float16", "bfloat16", "float32", "float64")


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """The forms that a test uses: the name of a function of programs, and its arguments."""
    used = []

    def counted(name):
        source = getattr(programs, name)
        return lambda *given: used.append((name, *given)) or source(*given)

    for name in ("attention", "attention_wgmma", "join"):
        monkeypatch.setattr(programs, name, counted(name))
    monkeypatch.setattr(nvrtc, "compile_source", tensor_cores_on_cpu.compile_source)
    yield used
    print(used)


# Head size, warpgroups, keys of a step. Fewer keys than the last number choose one warpgroup; with
# a causal mask twice as many do, and only with one for heads of 128.
FORMS = [(64, 1, 64, 2049), (64, 2, 128, 2049), (64, 3, 128, 2049), (128, 1, 64, 513),
         (128, 2, 128, 513)]  # fmt: skip


@pytest.mark.parametrize(("size", "groups", "columns", "many"), FORMS)
def test_wgmma(rng, made, size, groups, columns, many):
    """Tiles, stages and phases of several rounds; rows of several heads in a block."""
    dtype, shared = str(rng.choice(HALVES)), int(rng.integers(1, 4))
    rows = int(rng.integers(1025, 1200) if groups == 3 else rng.integers(128, 300))
    queries, keys = -(-rows // shared), int(rng.integers(1, 400))
    how = options(rng, queries, keys)
    if groups == 1 and size == 128:
        how["is_causal"] = True
    if groups > 1:  # the keys of the shape choose the form, those of the length take time
        how["kv_length"], keys = keys, many << how.get("is_causal", False)
    batch = int(rng.integers(1, 3)) if groups < 3 else 1
    check(rng, dtype, (batch, 1, shared, queries, keys, size), how)
    assert made == [("attention_wgmma", dtype, size, groups, columns)]
    assert {form[:3] for form in FORMS} == set(ATTENTION_WGMMA)


@pytest.mark.parametrize("sizes", [(8, 64, 72), (128, 256)])
def test_mma(rng, made, sizes):
    """Blocks of one to eight warps, with masks."""
    size = int(rng.choice(sizes))
    queries, keys, shared = (int(rng.integers(1, most)) for most in (43, 250, 4))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (1, int(rng.integers(1, 3)), shared, queries, keys, size),
          how)  # fmt: skip
    assert [form[0] for form in made] == ["attention"] and not made[0][6]


@pytest.mark.parametrize("sizes", [(40, 64), (128, 200)])
def test_cut_keys(rng, made, sizes):
    """Blocks share the keys of a row, and warps those of a step; the join keeps their order."""
    size = int(rng.choice(sizes))
    queries, keys, shared = int(rng.integers(1, 40)), int(rng.integers(256, 900)), 2
    queries = queries if rng.integers(2) else int(rng.integers(1, 9))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (1, 2, shared, queries, keys, size), how)
    assert [form[0] for form in made] == ["attention", "join"]
    assert made[0][6] is True and made[0][7] == (4 if 2 * queries <= 16 and size <= 128 else 1)
