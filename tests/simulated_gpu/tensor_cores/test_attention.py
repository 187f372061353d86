"""Attention on tensor cores on a simulated GPU: wgmma, mma, cut keys, options, empty rows."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import attention_programs as programs
from tests.support.kernel_variants import ATTENTION_WGMMA
from tests.support.products import tensor_cores_on_cpu
from tests.support.products.attention_checks import check, options
from tests.support.used_kernels import UsedKernels

pytestmark = [
    pytest.mark.orders("deferred"),
    pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="1"),
]
HALVES = ("float16", "bfloat16")
MASKS = ("bool", "float16", "bfloat16", "float32", "float64")


@pytest.fixture(autouse=True)
def used(monkeypatch):
    """The forms that a test uses: the name of a function of programs, and its arguments."""
    names = ("attention", "attention_few", "attention_few_mapped", "attention_wgmma", "join")
    monkeypatch.setattr(nvrtc, "compile_source", tensor_cores_on_cpu.compile_source)
    used = UsedKernels(monkeypatch, programs, names)
    yield used
    print(used())


# Head size, warpgroups, keys of a step, and the fewest and the most rows for which a single
# multiprocessor takes this form, if there are many keys.
FORMS = [(32, 1, 64, 128, 500), (64, 1, 64, 33, 64), (64, 2, 128, 65, 128),
         (64, 3, 128, 129, 192), (64, 4, 64, 385, 512), (128, 1, 64, 129, 192),
         (128, 2, 128, 193, 256)]  # fmt: skip
MANY = 5000
# Keys of all heads from which few rows take tensor maps.
MAPPED_KEYS = 1 << 15


@pytest.mark.parametrize(("size", "groups", "columns", "fewest", "most"), FORMS)
def test_wgmma(rng, used, size, groups, columns, fewest, most):
    """Tiles, stages and phases of several rounds; rows of several heads in a block."""
    dtype = str(rng.choice(HALVES))
    shared = int(rng.choice([n for n in (1, 2, 3) if fewest <= most // n * n]))
    queries = int(rng.integers(-(-fewest // shared), most // shared + 1))
    keys = int(rng.integers(1, 400))
    how = options(rng, queries, keys)
    # The keys of the shape choose the form, those of the length take time.
    how.setdefault("kv_length", keys)
    check(rng, dtype, (int(rng.integers(1, 3)), 1, shared, queries, MANY, size), how)
    assert used() == [("attention_wgmma", dtype, size, groups, columns)]
    assert {form[:3] for form in FORMS} == set(ATTENTION_WGMMA)


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="8")
@pytest.mark.parametrize(
    ("heads", "keys", "is_causal", "groups"),
    [(2, 256, 0, 1), (2, 256, 1, 1), (2, 512, 0, 2), (2, 512, 1, 2), (1, 1024, 1, 2),
     (6, 512, 0, 2), (6, 512, 1, 2), (2, 1024, 0, 4), (2, 1024, 1, 2), (4, 2048, 1, 4)],
)  # fmt: skip
def test_groups_of_few_rounds(rng, used, heads, keys, is_causal, groups):
    """Forms that were the fastest where a multiprocessor of an H200 has as many rows and keys."""
    how = {"is_causal": bool(is_causal), "kv_length": int(rng.integers(1, 40))}
    check(rng, str(rng.choice(HALVES)), (1, heads, 1, keys, keys, 64), how)
    assert used()[0][2:4] == (64, groups)


@pytest.mark.parametrize("sizes", [(8, 64, 72), (120, 256)])
def test_mma(rng, used, sizes):
    """Blocks of one to eight warps, with masks."""
    size = int(rng.choice(sizes))
    queries, keys, shared = (int(rng.integers(1, most)) for most in (43, 250, 4))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (1, int(rng.integers(1, 3)), shared, queries, keys, size),
          how)  # fmt: skip
    assert [form[0] for form in used()] == ["attention"] and not used()[0][6]


def test_few_blocks(rng, used):
    """Four warps; up to 128 keys are one step."""
    shared, keys = int(rng.integers(1, 4)), int(rng.integers(1, 256))
    queries, size = int(rng.integers(-(-17 // shared), 64 // shared + 1)), int(rng.integers(1, 9))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (1, 1, shared, queries, keys, 8 * size), how)
    assert [(form[0], *form[3:5]) for form in used()] == [
        ("attention", 4, 128 if 64 < keys <= 128 else 64)
    ]


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="132")
@pytest.mark.parametrize(("fewest", "most", "name"),
                         [(256, 330, "attention_wgmma"), (1100, 1300, "attention")])  # fmt: skip
def test_few_rows_of_few_heads(rng, used, fewest, most, name):
    """Blocks leave multiprocessors idle; the keys are cut if they are many."""
    size, keys = int(rng.choice([64, 128])), int(rng.integers(fewest, most))
    queries = int(rng.integers(65, 80))
    check(rng, str(rng.choice(HALVES)), (1, 1, 1, queries, keys, size),
          options(rng, queries, keys))  # fmt: skip
    assert used()[0][0] == name


@pytest.mark.parametrize("size", [72, 136, 256])
def test_cut_keys(rng, used, size):
    """Blocks share the keys of a row; the join keeps their order."""
    keys, shared = int(rng.integers(256, 900)), 2
    queries = int(rng.integers(9, 40) if size == 72 else rng.integers(1, 40))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (1, 2, shared, queries, keys, size), how)
    assert [form[0] for form in used()] == ["attention", "join"] and used()[0][6] is True


def few_rows(rng, used, sizes, splits):
    """Check rows that share keys, which are cut among `splits` blocks at most."""
    batch, kept, shared, size = sizes
    queries = int(rng.integers(1, 16 // shared + 1))
    # Some warps and blocks have no keys, and some have more steps than places.
    keys = int(rng.integers(256, 700 if batch * kept > 1 else 1900))
    how = options(rng, queries, keys, masks=MASKS)
    check(rng, str(rng.choice(HALVES)), (batch, kept, shared, queries, keys, size), how)
    head, eights = (size + 15) // 16 * 16, 1 if queries * shared <= 8 else 2
    assert (used()[0][0], *used()[0][2:4]) == ("attention_few", head, eights)
    assert len(used()) == 1 + (splits > 1)


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="8")
@pytest.mark.parametrize("sizes", [(8, 16), (40, 64), (72, 128)])
def test_few_rows_whose_keys_are_cut(rng, used, sizes):
    """Warps and blocks share the keys of up to 16 rows; the join keeps their order."""
    few_rows(rng, used, (1, 1, int(rng.integers(1, 9)), int(rng.choice(sizes))), 16)


@pytest.mark.process(FAKE_CUDA_SHARED="100000", FAKE_CUDA_MULTIPROCESSORS="1")
@pytest.mark.parametrize("sizes", [(24, 64), (128,)])
def test_few_rows_of_many_heads(rng, used, sizes):
    """A block has all keys of its rows; little shared memory has two steps under way."""
    few_rows(rng, used, (1, 2, int(rng.integers(1, 17)), int(rng.choice(sizes))), 1)
    assert used()[0][6] == 2


def mapped_rows(rng, used, sizes, form):
    """Check rows whose keys come by tensor maps: steps under way, splits, blocks of a cluster."""
    (batch, kept, size), (stages, splits, cluster) = sizes, form
    shared = int(rng.integers(1, 17))
    queries = int(rng.integers(1, 16 // shared + 1))
    keys = MAPPED_KEYS // (batch * kept) + int(rng.integers(1, 100))
    how = options(rng, queries, keys, masks=MASKS)
    # The keys of the shape choose the form, those of the length take time.
    how["kv_length"] = int(rng.integers(0, 1500 if splits > 1 else 700))
    check(rng, str(rng.choice(HALVES)), (batch, kept, shared, queries, keys, size), how)
    eights = 1 if queries * shared <= 8 else 2
    name, _, head, rows, _, *cut = used()[0]
    assert (name, head, rows) == ("attention_few_mapped", 64 if size < 128 else 128, eights)
    assert cut == [stages, cluster, False]
    assert len(used()) == 1 + (splits > cluster)


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="4")
@pytest.mark.parametrize(("kept", "size"), [(1, 56), (1, 128), (2, 64), (2, 128)])
def test_few_rows_by_tensor_maps(rng, used, kept, size):
    """A cluster joins the parts of its blocks, some of which have no keys."""
    mapped_rows(rng, used, (1, kept, size), (3, 4, 4) if kept == 1 else (4, 2, 2))


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="10")
@pytest.mark.parametrize(("kept", "size", "stages"), [(2, 64, 4), (4, 128, 3)])
def test_cut_keys_by_tensor_maps(rng, used, kept, size, stages):
    """Blocks have a multiprocessor to themselves or share it; the join keeps their order."""
    mapped_rows(rng, used, (1, kept, size), (stages, 5, 1))


@pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="10")
def test_graphs_are_replayed_on_other_keys(rng, used):
    """The maps in a captured call are moved with the keys and values."""

    def given(*shape):
        array = gt.asarray(rng.standard_normal(shape, dtype=np.float32), device="cuda")
        return array.astype(gt.bfloat16)

    query, length = given(1, 1, 1, 64), gt.asarray(np.array(300), device="cuda")
    key, value = given(1, 1, MAPPED_KEYS, 64), given(1, 1, MAPPED_KEYS, 64)

    def attention(key, value):
        return gt.scaled_dot_product_attention(query, key, value, kv_length=length)

    attention(key, value)
    captured = gt.graphs.CUDAGraph()
    gt.synchronize()
    with gt.graphs.graph(captured):
        y = attention(key, value)
    for other, second in [(given(*key.shape), value), (key, given(*key.shape)), (key, value)]:
        captured.replay(inputs={key: other, value: second})
        assert gt.all(y == attention(other, second)).item()
    assert used()[0][0] == "attention_few_mapped"


def test_many_heads_by_tensor_maps(rng, used):
    """A block has all keys of its rows."""
    mapped_rows(rng, used, (2, 1, int(rng.choice([64, 128]))), (3, 1, 1))


@pytest.mark.parametrize(("size", "rows", "stages"),
                         [(64, 8, 6), (64, 16, 5), (128, 8, 3), (128, 16, 2)])  # fmt: skip
def test_blocks_take_units_in_turn(rng, used, size, rows, stages):
    """Sequences of different lengths, also without keys; stages and phases of several rounds."""
    batch, kept = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    shared = int(rng.integers(rows // 2 + 1, rows + 1))
    keys = MAPPED_KEYS // (batch * kept) + int(rng.integers(1, 100))
    how = options(rng, 1, keys, masks=MASKS)
    length = rng.integers(0, 500, batch)
    length[rng.integers(batch)] = 0
    how["kv_length"] = length if rng.integers(4) else int(length.max())
    check(rng, str(rng.choice(HALVES)), (batch, kept, shared, 1, keys, size), how)
    name, _, head, eights, _, *form = used()[0]
    assert (name, head, eights) == ("attention_few_mapped", size, rows // 8)
    assert form == [stages, 1, True] and len(used()) == 1


@pytest.mark.parametrize(("groups", "tiles"), [(2, 2), (1, 3)])
def test_pairs_of_tiles(rng, used, groups, tiles):
    """Keys of all heads that the cache does not hold, so that long and short tiles make pairs."""
    queries = 64 * groups * tiles - int(rng.integers(30))
    sizes = (1, (16 << 20) // (4 * 256 * 128) + int(rng.integers(1, 9)), 1, queries, 256, 128)
    check(rng, "float16", sizes, {"is_causal": True, "kv_length": int(rng.integers(30, 90))})
    assert used() == [("attention_wgmma", "float16", 128, groups, 64 * groups)]
