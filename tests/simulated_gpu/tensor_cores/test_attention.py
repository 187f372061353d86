"""Attention on tensor cores on a simulated GPU: wgmma, mma, cut keys, options, empty rows."""

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import attention_programs as programs
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

    for name in ("attention", "attention_few", "attention_wgmma", "join"):
        monkeypatch.setattr(programs, name, counted(name))
    monkeypatch.setattr(nvrtc, "compile_source", tensor_cores_on_cpu.compile_source)
    yield used
    print(used)


# Head size, warpgroups, keys of a step, and the fewest and the most rows for which a single
# multiprocessor takes this form, if there are many keys.
FORMS = [(32, 1, 64, 128, 500), (64, 1, 64, 385, 448), (64, 2, 128, 128, 128),
         (64, 3, 128, 257, 384), (64, 4, 64, 449, 512), (128, 1, 64, 129, 192),
         (128, 2, 128, 193, 256)]  # fmt: skip
MANY = 5000


@pytest.mark.parametrize(("size", "groups", "columns", "fewest", "most"), FORMS)
def test_wgmma(rng, made, size, groups, columns, fewest, most):
    """Tiles, stages and phases of several rounds; rows of several heads in a block."""
    dtype = str(rng.choice(HALVES))
    shared = int(rng.choice([n for n in (1, 2, 3) if fewest <= most // n * n]))
    queries = int(rng.integers(-(-fewest // shared), most // shared + 1))
    keys = int(rng.integers(1, 400))
    how = options(rng, queries, keys)
    # The keys of the shape choose the form, those of the length take time.
    how.setdefault("kv_length", keys)
    check(rng, dtype, (int(rng.integers(1, 3)), 1, shared, queries, MANY, size), how)
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


def test_few_blocks(rng, made):
    """Four warps; up to 128 keys are one step."""
    shared, keys = int(rng.integers(1, 4)), int(rng.integers(1, 256))
    queries, size = int(rng.integers(-(-17 // shared), 64 // shared + 1)), int(rng.integers(1, 9))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (1, 1, shared, queries, keys, 8 * size), how)
    assert [(form[0], *form[3:5]) for form in made] == [
        ("attention", 4, 128 if 64 < keys <= 128 else 64)
    ]


@pytest.mark.parametrize("size", [64, 136, 256])
def test_cut_keys(rng, made, size):
    """Blocks share the keys of a row; the join keeps their order."""
    keys, shared = int(rng.integers(256, 900)), 2
    queries = int(rng.integers(9, 40) if size == 64 else rng.integers(1, 40))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (1, 2, shared, queries, keys, size), how)
    assert [form[0] for form in made] == ["attention", "join"] and made[0][6] is True


def few_rows(rng, made, sizes, splits):
    """Check rows that share keys, which are cut among `splits` blocks at most."""
    batch, kept, shared, size = sizes
    queries = int(rng.integers(1, 16 // shared + 1))
    # Some warps and blocks have no keys, and some have more steps than places.
    keys = int(rng.integers(256, 700 if batch * kept > 1 else 1900))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (batch, kept, shared, queries, keys, size), how)
    head, eights = (size + 15) // 16 * 16, 1 if queries * shared <= 8 else 2
    assert made[0][:1] + made[0][2:4] == ("attention_few", head, eights)
    assert len(made) == 1 + (splits > 1)


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="8")
@pytest.mark.parametrize("sizes", [(8, 16), (40, 64), (72, 128)])
def test_few_rows_whose_keys_are_cut(rng, made, sizes):
    """Warps and blocks share the keys of up to 16 rows; the join keeps their order."""
    few_rows(rng, made, (1, 1, int(rng.integers(1, 9)), int(rng.choice(sizes))), 16)


@pytest.mark.process(FAKE_CUDA_SHARED="100000", FAKE_CUDA_MULTIPROCESSORS="1")
@pytest.mark.parametrize("sizes", [(24, 64), (128,)])
def test_few_rows_of_many_heads(rng, made, sizes):
    """A block has all keys of its rows; little shared memory has two steps under way."""
    few_rows(rng, made, (1, 2, int(rng.integers(1, 17)), int(rng.choice(sizes))), 1)
    assert made[0][6] == 2
