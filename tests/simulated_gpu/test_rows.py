"""Row formulas, launch by launch: lanes along and across, rows read twice, several axes."""

import numpy as np
import pytest

import gputensor as gt
from gputensor import nn
from gputensor._kernels import calls
from gputensor._kernels import row_program as texts
from gputensor._kernels.launch import CallOperand, forget_kernels, loaded_programs
from tests.conformance.nn.test_attention import attention_program
from tests.support.row_checks import DTYPES, close, row_program


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_without_tensor_cores_ignores_values_beyond_the_length(dtype, rng):
    q, k, v = (rng.standard_normal((2, 2, n, 5)).astype(DTYPES[dtype]) for n in (4, 9, 9))
    lengths = gt.asarray(np.array([3, 0], np.int32), device="cuda")
    results = []
    for filler in (0, np.nan):
        for one in (k, v):
            one[0, :, 3:] = one[1] = filler
        tensors = [gt.asarray(one, device="cuda") for one in (q, k, v)]
        results.append(gt.scaled_dot_product_attention(*tensors, kv_length=lengths).numpy())
    assert np.array_equal(results[0], results[1])
    assert (results[1][1] == 0).all()


def test_random_calls(rng):
    for _ in range(25):
        row_program(rng, "cuda", most=120)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(40, 128), (3, 1001), (1, 600000), (9000, 3), (1, 7)])
def test_widths(shape, dtype, rng):
    # The simulated GPU has no clusters: a GPU tests rows of 16,384 to 524,288 columns.
    values = (rng.standard_normal(shape) * 2).astype(DTYPES[dtype])
    exact = values.astype(np.float64)
    for axis in (0, 1):
        powers = np.exp(exact - exact.max(axis=axis, keepdims=True))
        want = powers / powers.sum(axis=axis, keepdims=True)
        got = nn.softmax(gt.asarray(values, device="cuda"), axis)
        close(f"softmax {shape} {axis}", got, want, dtype, 200 * want)


@pytest.mark.parametrize(("rows", "lanes"), [(1040, 64), (1060, 32)])
def test_many_rows_have_a_warp_each(rows, lanes, rng):
    values = rng.standard_normal((rows, 4 * int(rng.integers(33, 50)))).astype(np.float32)
    x = gt.asarray(values, device="cuda")
    forget_kernels(0)  # another run of this test may have made the kernel
    got = nn.layer_norm(x)
    assert [dict(one.defines)["LANES"] for one in loaded_programs(0)] == [lanes]
    want = values - values.mean(axis=1, keepdims=True, dtype=np.float64)
    want /= np.sqrt((want**2).mean(axis=1, keepdims=True) + 1e-5)
    close(f"layer_norm {values.shape}", got, want, "float32", 20 * (1 + abs(want)))


#: dtype, columns, and for a softmax, a norm with a weight and one with a bias too: lanes, rows of a
#: block, units, blocks that a cache serves (0: the row is held), whether weights come together.
CHOICES = [
    ("float32", 128, (16, 8, 2, 0, 1), (16, 8, 2, 0, 1), (16, 8, 2, 0, 1)),
    ("bfloat16", 256, (16, 8, 2, 0, 1), (16, 8, 2, 0, 1), (16, 8, 2, 0, 1)),
    ("float32", 200, (32, 8, 2, 0, 0), (32, 8, 2, 0, 0), (32, 8, 2, 0, 0)),
    ("bfloat16", 512, (32, 4, 2, 0, 1), (32, 4, 2, 0, 1), (32, 4, 2, 0, 1)),
    ("bfloat16", 768, (64, 4, 2, 0, 0), (64, 4, 2, 0, 0), (32, 4, 3, 0, 1)),
    ("float32", 1000, (128, 1, 2, 0, 0), (128, 1, 2, 0, 0), (128, 1, 2, 0, 0)),
    ("float32", 1536, (256, 1, 2, 0, 0), (256, 1, 2, 0, 0), (256, 1, 2, 0, 0)),
    ("bfloat16", 2048, (128, 1, 2, 0, 1), (128, 1, 2, 0, 1), (128, 1, 2, 0, 1)),
    ("bfloat16", 3072, (256, 1, 2, 0, 0), (256, 1, 2, 0, 0), (128, 1, 3, 0, 0)),
    ("float32", 3000, (128, 2, 6, 0, 0), (128, 2, 6, 0, 0), (128, 2, 6, 0, 0)),
    ("float32", 2048, (128, 1, 4, 8, 0), (128, 1, 2, 8, 0), (64, 1, 4, 10, 0)),
    ("bfloat16", 8192, (256, 1, 4, 5, 0), (256, 1, 4, 4, 0), (128, 1, 4, 5, 0)),
    ("float32", 4000, (128, 2, 8, 0, 0), (128, 2, 8, 0, 0), (128, 2, 8, 0, 0)),
    ("float32", 8192, (512, 1, 4, 3, 0), (512, 1, 4, 3, 0), (512, 1, 4, 0, 1)),
    ("bfloat16", 32768, (1024, 1, 4, 2, 0), (1024, 1, 2, 2, 0), (512, 1, 4, 1, 0)),
    ("float32", 32768, (1024, 1, 8, 0, 1), (1024, 1, 8, 1, 0), (1024, 1, 8, 0, 1)),
]


@pytest.mark.process(FAKE_CUDA_SHARED="233472")  # of an H200, whose first cache is as large
@pytest.mark.orders("at-once")
def test_variants_of_many_rows(rng, monkeypatch):
    """Programs show what each layout gets; nothing is computed."""
    made, program = [], texts.program

    def seen(formula, variant):
        names = ("lanes", "rows", "units", "cached", "together")
        made.append(tuple(variant[name] for name in names))
        return program(formula, variant)

    monkeypatch.setattr(texts, "program", seen)
    for dtype, columns, *wanted in CHOICES:
        number = float(rng.uniform(0.5, 2))  # another number than before, so another kernel
        functions = (
            lambda x, w, b, number=number: nn.softmax(x, scale=number),
            lambda x, w, b, number=number: nn.rms_norm(x, w, eps=number),
            lambda x, w, b, number=number: nn.layer_norm(x, w, b, eps=number),
        )
        for function, one in zip(functions, wanted, strict=True):
            for nbytes in (1 << 30, 1 << 22):
                made.clear()
                rows = nbytes // columns // DTYPES[dtype].itemsize
                specs = [gt.spec(shape, dtype) for shape in ((rows, columns), columns, columns)]
                gt.compile(function, *specs, target="h200").close()
                is_right = made == [one] if nbytes == 1 << 30 else not any(m[3] for m in made)
                assert is_right, (dtype, columns, made)


def test_attention(rng):
    for _ in range(8):
        attention_program(rng, "cuda", has_tensor_cores=False)


def test_many_folds_fit_the_memory_of_a_block(rng):
    # Rows that are adjacent in memory: each fold keeps one value per thread.
    values = rng.standard_normal((40, 6))
    x, out = gt.asarray(values, device="cuda"), gt.zeros((40, 6), dtype="float64", device="cuda")
    total = ("number", 0.0)
    for i in range(26):
        total = ("add", total, ("fold", "max", ("mul", ("load", 0), ("number", 1.0 + i))))
    given = [CallOperand(one.data_ptr(), "float64", (6, 40), (1, 6)) for one in (out, x)]
    before = set(loaded_programs(0))
    calls.make("formula", 0, 0, [[("sub", ("load", 0), total)], 1, *given])
    (made,) = set(loaded_programs(0)) - before
    sizes = dict(made.defines)
    assert sizes["ACROSS"] and sizes["FOLDS"] * sizes["LANES"] * sizes["ROWS"] * 8 <= 48 << 10
    want = values - sum((values * (1.0 + i)).max(axis=0) for i in range(26))
    assert np.allclose(out.numpy(), want, rtol=1e-13)


def test_calls_of_a_layout_seen_before(rng):
    # A thread keeps its latest launches by layout. These differ in address, alignment, row step,
    # rows and function, one at a time; with many numbers of rows, launches replace each other.
    places = [np.s_[8:16, :32], np.s_[:8, 1:33], np.s_[:16:2, :32]]
    places += [np.s_[:rows, :32] for rows in range(1, 17)]
    memory = gt.zeros((16, 36), device="cuda")
    for _ in range(3):
        values = rng.standard_normal((16, 36)).astype(np.float32)
        memory[...] = gt.asarray(values, device="cuda")
        for i in rng.permutation(len(places)):
            powers = np.exp(values[places[i]].astype(np.float64))
            total = powers.sum(axis=-1, keepdims=True)
            x = memory[places[i]]
            assert np.allclose(nn.softmax(x).numpy(), powers / total, rtol=1e-5, atol=1e-7)
            assert np.allclose(nn.log_softmax(x).numpy(), np.log(powers / total), rtol=0, atol=1e-5)
