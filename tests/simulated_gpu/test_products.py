"""Products on a GPU: plans, padding, workspaces, captures, epilogues, fp8, groups.

Properties of the real libraries (their arithmetic, their speed, what they refuse) are tested in
tests/gpu.
"""

import math
import os
import tempfile
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor._kernels.launch import nvrtc
from gputensor.blas.kernels import padding, programs
from tests.conformance.products.test_epilogues import check_epilogue, check_vector_bias
from tests.conformance.products.test_factors import (
    INTEGERS,
    check_integer_factors,
    check_integer_vectors,
    check_no_terms,
)
from tests.conformance.products.test_flags import FLAGS, check_flag
from tests.conformance.products.test_grouped import exact_rows
from tests.conformance.products.test_matmul import (
    assert_within,
    bound,
    numpy_dtype,
    random_array,
    random_shapes,
    random_tensor,
    wide,
)
from tests.conformance.products.test_scaled import KINDS, check_scaled
from tests.support import refused_calls
from tests.support.device_memory import all_memory
from tests.support.products import grouped_on_cpu
from tests.support.used_kernels import UsedKernels
from tests.unit.blas import test_c_entry as c_entry_case


def test_views(rng):
    """Copies, transposes, folded and repeated batches, every library."""
    for library in ("auto", "cublas", "cublaslt"):
        blas.preferred_blas_library(library)
        for name in ("float32", "float64", "float16", "bfloat16", "complex64"):
            for _ in range(6):
                shape_a, shape_b = random_shapes(rng, 20)
                a, array_a = random_tensor(rng, shape_a, name, "cuda")
                b, array_b = random_tensor(rng, shape_b, name, "cuda")
                exact = np.matmul(wide(array_a), wide(array_b))
                out, _ = random_tensor(rng, exact.shape, name, "cuda", fill=np.nan)
                gt.matmul(a, b, out=out)
                assert_within(out.numpy(), exact, bound(array_a, array_b, name))


def test_paddings(rng):
    """Odd sizes, odd addresses, batches and addends, padded in every way."""
    for setting in ("never", "inputs", "all", "auto"):
        padding(setting)
        blas.forget_plans()
        for name in ("float16", "bfloat16"):
            for batch in ((), (3,)):
                a, array_a = random_tensor(rng, (*batch, 19, 35), name, "cuda")
                b, array_b = random_tensor(rng, (*batch, 35, 21), name, "cuda")
                c, array_c = random_tensor(rng, (*batch, 19, 21), name, "cuda")
                product = wide(array_a) @ wide(array_b)
                limit = bound(array_a, array_b, name)
                assert_within((a @ b).numpy(), product, limit)
                add = gt.baddbmm if batch else gt.addmm
                got = add(c, a, b, beta=2.0).numpy()
                exact = product + 2.0 * wide(array_c)
                unit = 2.0**-6 if name == "bfloat16" else 2.0**-9
                assert_within(got, exact, limit + unit * (np.abs(exact) + np.abs(product)))
        bias = gt.asarray(np.arange(21, dtype=np.float16), device="cuda")
        x, array_x = random_tensor(rng, (19, 35), "float16", "cuda")
        w, array_w = random_tensor(rng, (21, 35), "float16", "cuda")
        got = gt.linear(x, w, bias, activation="relu").numpy()
        exact = np.maximum(wide(array_x) @ wide(array_w).T + np.arange(21), 0)
        assert_within(got, exact, bound(array_x, array_w.T, "float16") + 2.0**-9 * (exact + 40))


def test_no_memory_for_copies(rng):
    """Without memory for padded copies, odd products are computed unpadded and are right;
    deterministic ones raise."""
    shape_a, shape_b = (131, 67), (67, 133)
    padding("all")
    for name in ("float16", "bfloat16"):
        # Contiguous, so that padding is the only reason for copies.
        array_a, array_b = random_array(rng, shape_a, name), random_array(rng, shape_b, name)
        a, b = gt.asarray(array_a, device="cuda"), gt.asarray(array_b, device="cuda")
        out = gt.full((131, 133), np.nan, dtype=a.dtype, device="cuda")
        limit = bound(array_a, array_b, name)
        gt.matmul(a, b, out=out)
        assert_within(out.numpy(), wide(array_a) @ wide(array_b), limit)
        out[...] = np.nan
        held = all_memory()
        before = gt.memory.memory_stats("cuda")["num_ooms"]
        gt.matmul(a, b, out=out)
        assert gt.memory.memory_stats("cuda")["num_ooms"] > before, "there was memory for copies"
        assert_within(out.numpy(), wide(array_a) @ wide(array_b), limit)
        # An unpadded product may differ in its last bits; so a deterministic one raises.
        kept = out.numpy().tobytes()
        with blas.precision(deterministic=True):
            for _ in range(2):
                with pytest.raises(gt.OutOfMemoryError):
                    gt.matmul(a, b, out=out)
            assert out.numpy().tobytes() == kept
            held.clear()
            results = [gt.matmul(a, b).numpy().tobytes() for _ in range(2)]
        assert results[0] == results[1]
    padding("auto")


def test_no_memory_for_a_workspace(rng):
    """Outputs keep their values, even where one is written before the library is called."""
    blas.preferred_blas_library("cublas")
    a, b, c = (gt.ones(shape, device="cuda") for shape in ((24, 40), (40, 16), (24, 16)))
    out = gt.full((24, 16), 7.0, device="cuda")
    blas.clear_workspaces()
    held = all_memory()
    with pytest.raises(gt.OutOfMemoryError):
        gt.addmm(c, a, b, out=out)  # cuBLAS adds to the contents of the result
    assert np.all(out.numpy() == 7)
    held.clear()
    assert np.all(gt.addmm(c, a, b, out=out).numpy() == 41)
    left = [gt.ones(shape, device="cuda") for shape in ((2, 0), (3, 40, 40))]
    right = [gt.ones(shape, device="cuda") for shape in ((0, 2), (3, 40, 40))]
    results = [gt.full(shape, 7.0, device="cuda") for shape in ((2, 2), (3, 40, 40))]
    blas.clear_workspaces()
    held = all_memory()
    with pytest.raises(gt.OutOfMemoryError):
        gt.grouped_matmul(left, right, out=results)  # the first pair needs no library
    assert all(np.all(result.numpy() == 7) for result in results)
    held.clear()
    gt.grouped_matmul(left, right, out=results)
    assert [np.unique(result.numpy()).tolist() for result in results] == [[0], [40]]


def test_a_workspace_is_in_no_pool_of_the_program(rng):
    blas.preferred_blas_library("cublas")
    a, b = (random_tensor(rng, shape, "float32", "cuda") for shape in ((24, 40), (40, 16)))
    exact = np.matmul(wide(a[1]), wide(b[1]))
    blas.clear_workspaces()
    pool = gt.memory.MemPool("cuda")
    with gt.memory.use_mem_pool(pool, "cuda"):
        out = gt.matmul(a[0], b[0])
        assert_within(out.numpy(), exact, bound(a[1], b[1], "float32"))
    pool_id = pool.id
    del out, pool
    gt.synchronize("cuda")
    gt.memory.empty_cache("cuda")
    assert gt.memory.memory_snapshot(pool_id) == []


def test_flags(rng):
    """Products of 16-bit types under each of their flags."""
    for library in ("auto", "cublas", "cublaslt"):
        blas.preferred_blas_library(library)
        for flag in FLAGS:
            check_flag(rng, "cuda", flag)


def test_factors(rng):
    """alpha, beta and scale of every kind."""
    for name in INTEGERS:
        check_integer_factors(rng, "cuda", name, name)
    check_integer_factors(rng, "cuda", "int8", "int32")
    check_integer_vectors("cuda")
    for name in ("float64", "float32", "bfloat16", "complex64"):
        for factor in (float("inf"), float("nan"), 2.0):
            check_no_terms("cuda", name, factor)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.orders("at-once")
def test_exact_gelu_of_every_number(name):
    """Its 16-bit form is a polynomial inside a logistic function."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        numbers = bits.view(numpy_dtype(name)).astype(float)
    kept = np.isfinite(numbers) & ((numbers == 0) | (np.abs(numbers) > 1e-4))
    x = gt.asarray(bits[kept].view(numpy_dtype(name))[:, None], device="cuda")
    made = gt.linear(x, gt.ones((8, 1), dtype=name, device="cuda"), activation="gelu")
    made = made.numpy().astype(float)
    numbers = numbers[kept]
    wanted = np.array([0.5 * x * math.erfc(-x / math.sqrt(2)) for x in numbers])
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[name] + 2.0**-13
    limit = unit * np.abs(wanted) + np.where(numbers < -5, 2e-6, 3e-8)
    assert (np.abs(made - wanted[:, None]) <= limit[:, None]).all()


def test_epilogues(rng):
    """Scales, biases, activations and residuals, in the library call and after it."""
    for library in ("auto", "cublas", "cublaslt"):
        blas.preferred_blas_library(library)
        for name in ("float32", "bfloat16"):
            for call in ("linear", "matmul"):
                for _ in range(2):
                    check_epilogue(rng, "cuda", name, call)
            for shape in ((17,), (2, 17), (3, 2, 9)):
                check_vector_bias(rng, "cuda", name, shape)
        # A reversed batch takes one call per matrix; the addend may lie elsewhere or be shared.
        a, array_a = random_tensor(rng, (3, 4, 5), "float32", "cuda")
        b, array_b = random_tensor(rng, (3, 5, 6), "float32", "cuda")
        c, array_c = random_tensor(rng, (1, 4, 6), "float32", "cuda")
        got = gt.baddbmm(c, a[::-1], b).numpy()
        exact = wide(array_a)[::-1] @ wide(array_b)
        assert_within(
            got, exact + wide(array_c), bound(array_a[::-1], array_b, "float32") + 2.0**-20
        )


def test_scaled(rng):
    """fp8 with scales of every kind, in the library and without it; a captured product replays."""
    os.environ.pop("FAKE_CUBLAS_OLD", None)
    for is_old in (False, True):
        if is_old:
            # A library without scale modes: its support is queried again.
            os.environ["FAKE_CUBLAS_OLD"] = "1"
            blas.forget_plans()
        for kind_a in KINDS:
            for kind_b in KINDS:
                kinds, sizes = (kind_a, kind_b), rng.choice([1, 5, 16, 40, 130], 3)
                sizes = [int(x) for x in sizes]
                check_scaled(rng, 0, kinds=kinds, result="bfloat16", sizes=sizes)
        for result in ("float16", "float32", "float8_e4m3"):
            for _ in range(2):
                check_scaled(rng, 0, result=result, sizes=[int(x) for x in rng.integers(1, 60, 3)])
    a = gt.asarray(rng.standard_normal((16, 32)), dtype="float8_e4m3", device="cuda")
    b = gt.asarray(rng.standard_normal((32, 16)), dtype="float8_e5m2", device="cuda")
    factor = gt.ones((), device="cuda")
    out = gt.scaled_matmul(a, b, factor, None, out_dtype="float32")
    before = out.numpy()
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        gt.scaled_matmul(a, b, factor, None, out=out)
    factor[...] = 4.0
    graph.replay()
    np.testing.assert_array_equal(out.numpy(), 4 * before)


def test_attributes(rng):
    """The attributes passed to the library for fp8 products; numbers as in cublasLt.h."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "calls"
        os.environ["FAKE_CUBLAS_LOG"] = str(log)

        def logged(a, b, scale_a=None, scale_b=None, **keywords):
            log.unlink(missing_ok=True)
            tensors = [None if s is None else gt.ones(s, device="cuda") for s in (scale_a, scale_b)]
            gt.scaled_matmul(a, b, *tensors, **keywords)
            gt.synchronize()
            return log.read_text().split("  ")

        def matrix(m, k, name="float8_e4m3"):
            return gt.ones((m, k), dtype=name, device="cuda")

        a, b = matrix(48, 256), matrix(64, 256).mT
        bias = gt.ones((64,), dtype="bfloat16", device="cuda")
        # Row-major results swap the operands: the library's m is the number of columns.
        facts = logged(a, b, (), (), bias=bias, activation="relu")
        assert facts[:4] == ["28 28 14", "op 10", "m 64 n 48 k 256", "scales 11 modes 0 0"]
        assert facts[4:6] == ["fast 0", "epilogue 6"]
        assert logged(a, b)[3] == "scales 00 modes 0 0"
        assert logged(a, b, fast_accumulation=True)[4] == "fast 1"
        assert logged(a, b, (48, 1), (1, 64))[3] == "scales 11 modes 3 3"
        assert logged(a, b, (), (1, 64))[3] == "scales 11 modes 3 3"
        assert logged(a, b, (48, 2), (2, 1))[3] == "scales 11 modes 5 4"
        assert logged(a, b, (48, 2), (2, 64))[3] == "scales 11 modes 4 4"
        assert logged(a, b, (1, 2), (2, 64))[3] == "scales 11 modes 4 5"
        assert logged(a, b, (1, 2), (2, 1))[3] == "scales 11 modes 4 5"
        blocks = logged(a, b, (48, 2), (2, 1), fast_accumulation=True)
        assert blocks[3:5] == ["scales 11 modes 5 4", "fast 0"]
        # A column-major result swaps no operands; odd sizes are rounded up.
        out = gt.empty((64, 48), dtype="float32", device="cuda").mT
        assert logged(a, b, out=out)[:3] == ["28 28 0", "op 10", "m 48 n 64 k 256"]
        odd = matrix(47, 250), matrix(250, 63, "float8_e5m2")
        assert logged(*odd, (), ())[:3] == ["29 28 14", "op 10", "m 64 n 47 k 256"]
        assert logged(*odd, (47, 2), (2, 1))[2] == "m 64 n 48 k 256"
        log.unlink()
        x = gt.ones((164, 512), device="cuda")
        gt.matmul(x, x.mT, precision="bf16x9")
        os.environ["FAKE_CUBLAS_OLD"] = "1"  # a version without that compute type
        gt.matmul(x, x.mT, precision="bf16x9")
        gt.synchronize()
        assert [line[-2:] for line in log.read_text().split("\n")[:2]] == ["78", "68"]
        os.environ.pop("FAKE_CUBLAS_OLD")
        # There is no fp8 kernel for two e5m2 matrices: they are multiplied as bfloat16.
        odd = matrix(250, 163, "float8_e5m2")
        assert logged(odd.mT, odd, (), ())[0] == "14 14 0"
        os.environ.pop("FAKE_CUBLAS_LOG")


def pointed_to(tensor):
    """The DLPack struct of a matrix on the GPU, as the C entry takes it."""
    result = c_entry_case.dl(np.empty(tensor.shape, numpy_dtype(tensor.dtype.name)))
    result.data = tensor.data_ptr()
    result.device = c_entry_case.Device(2, 0)
    result.strides[0], result.strides[1] = (x // tensor.itemsize for x in tensor.strides)
    return result


def test_c_entry(rng):
    """The C entry on every layout; sums are float32 whatever the flags of 16-bit products."""
    for name in ("float32", "float16", "bfloat16"):
        for turned in ("", "a", "b", "o", "abo"):
            arrays = [random_array(rng, shape, name) for shape in ((17, 24), (24, 9), (17, 9))]
            arrays[2][...] = np.nan
            tensors = []
            for letter, array in zip("abo", arrays, strict=True):
                tensor = gt.asarray(array.T.copy() if letter in turned else array, device="cuda")
                tensors.append(tensor.T if letter in turned else tensor)
            a, b, out = tensors
            assert c_entry_case.mm(*(pointed_to(x) for x in (out, a, b))) == 0, c_entry_case.error()
            exact = wide(arrays[0]) @ wide(arrays[1])
            assert_within(out.numpy(), exact, bound(arrays[0], arrays[1], name))
        none = [gt.empty(shape, dtype=name, device="cuda") for shape in ((5, 0), (0, 3))]
        for base in (gt.empty((5, 7), dtype=name, device="cuda")[:, :3], out[:3, :5].T):
            base[...] = np.nan
            status = c_entry_case.mm(*(pointed_to(x) for x in (base, *none)))
            assert status == 0, c_entry_case.error()
            assert np.all(base.numpy() == 0)

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "calls"
        os.environ["FAKE_CUBLAS_LOG"] = str(log)

        def compute_of(name):
            log.unlink(missing_ok=True)
            a = gt.ones((64, 64), dtype=name, device="cuda")
            out = gt.empty((64, 64), dtype=name, device="cuda")
            assert c_entry_case.mm(*(pointed_to(x) for x in (out, a, a))) == 0, c_entry_case.error()
            assert np.all(out.numpy() == 64)
            return log.read_text().split()[-1]

        for name in ("float16", "bfloat16", "float32"):
            assert compute_of(name) == "68"
            known = blas.plan_count()
            with blas.precision(
                allow_fp16_accumulation=True,
                allow_fp16_reduced_precision_reduction=True,
                allow_bf16_reduced_precision_reduction=True,
            ):
                assert compute_of(name) == "68"
            assert blas.plan_count() == known, "planned again: a flag had an effect"
        for setting, compute in (("high", "77"), ("medium", "75"), ("bf16x9", "78")):
            with blas.precision(float32=setting):
                assert compute_of("float32") == compute
                assert compute_of("float16") == "68"
        os.environ["FAKE_CUBLAS_OLD"] = "1"
        with blas.precision(float32="bf16x9"):
            assert compute_of("float32") == "68"
        os.environ.pop("FAKE_CUBLAS_OLD")
        os.environ.pop("FAKE_CUBLAS_LOG")


def test_streams(rng):
    """Threads with their own streams share plans, but never workspaces."""
    failures = []

    def work(seed):
        own = np.random.default_rng(seed)
        with gt.stream(gt.Stream("cuda")):
            for _ in range(30):
                a = own.integers(-8, 9, (6, 40)).astype(np.float32)
                b = own.integers(-8, 9, (40, 5)).astype(np.float32)
                got = gt.asarray(a, device="cuda") @ gt.asarray(b, device="cuda")
                if not np.array_equal(got.numpy(), a @ b):
                    failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_captures(rng):
    """A captured product replays with new values, beside other products on other streams."""
    a, _ = random_tensor(rng, (8, 24), "bfloat16", "cuda", fill=0)
    b, array_b = random_tensor(rng, (24, 9), "bfloat16", "cuda")
    out = gt.matmul(a, b)
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        gt.matmul(a, b, out=out)
    for _ in range(4):
        fresh = rng.standard_normal((8, 24)).astype(ml_dtypes.bfloat16)
        a[...] = gt.asarray(fresh, device="cuda")
        out[...] = np.nan
        graph.replay()
        other = gt.ones((4, 64), device="cuda") @ gt.ones((64, 4), device="cuda")
        assert_within(out.numpy(), wide(fresh) @ wide(array_b), bound(fresh, array_b, "bfloat16"))
        assert np.all(other.numpy() == 64)


def test_batches(rng):
    """Batches that no single stride describes: as pointer arrays, captured and not."""
    for name in ("float32", "bfloat16", "complex64"):
        for shape_a, shape_b in (
            ((3, 1, 5, 8), (1, 4, 8, 6)),
            ((2, 1, 3, 1, 4, 8), (5, 1, 2, 8, 8)),
        ):
            # Row-major, so that no layout needs a copy kernel to be compiled.
            array_a, array_b = (random_array(rng, shape, name) for shape in (shape_a, shape_b))
            a, b = (gt.asarray(array, device="cuda") for array in (array_a, array_b))
            exact = np.matmul(wide(array_a), wide(array_b))
            out = gt.full(exact.shape, np.nan, dtype=name, device="cuda")
            gt.matmul(a, b, out=out)
            limit = bound(array_a, array_b, name)
            assert_within(out.numpy(), exact, limit)
            graph = gt.graphs.CUDAGraph()
            with gt.graphs.graph(graph):
                gt.matmul(a, b, out=out)
            out[...] = np.nan
            graph.replay()
            assert_within(out.numpy(), exact, limit)


def test_groups(rng):
    """Lists of pairs as one grouped call, rows with offsets on the device, captured and not."""
    for name in ("float32", "float16", "bfloat16"):
        for count in (4, 130):
            sizes = rng.integers(1, 12, (count, 3))
            left = [random_array(rng, (m, 8 * k), name) for m, k, n in sizes]
            right = [random_array(rng, (8 * k, n), name) for m, k, n in sizes]
            a = [gt.asarray(x, device="cuda") for x in left]
            b = [gt.asarray(x, device="cuda") for x in right]
            for got, x, y in zip(gt.grouped_matmul(a, b), left, right, strict=True):
                assert_within(got.numpy(), wide(x) @ wide(y), bound(x, y, name))
        for tokens, groups in ((70, 3), (150, 1030)):
            x, w = random_array(rng, (tokens, 20), name), random_array(rng, (groups, 20, 9), name)
            ends = np.sort(rng.integers(0, tokens + 1, groups))
            offsets = gt.asarray(ends, device="cuda")
            out = gt.full((tokens, 9), np.nan, dtype=name, device="cuda")
            gt.grouped_matmul(
                gt.asarray(x, device="cuda"), gt.asarray(w, device="cuda"), offsets, out=out
            )
            exact, limit = exact_rows(x, w, ends)
            assert_within(out.numpy(), exact, limit)


@pytest.mark.orders("deferred")
@pytest.mark.process(FAKE_CUDA_SHARED="233472")
def test_groups_by_wgmma(rng, monkeypatch):
    """Rows with offsets on the device, aligned as the tensor cores of Hopper need them."""
    monkeypatch.setattr(nvrtc, "compile_source", grouped_on_cpu.compile_source)
    used = UsedKernels(monkeypatch, programs, ["grouped_wgmma"])
    name = str(rng.choice(["float16", "bfloat16"]))
    is_along = bool(rng.integers(2))
    groups = int(rng.integers(1, 4))
    tokens = int(rng.integers(1, 200))
    k, n = (8 * int(size) for size in (rng.integers(1, 26), rng.integers(1, 21)))
    x, w = random_array(rng, (tokens, k), name), random_array(rng, (groups, k, n), name)
    ends = np.sort(rng.integers(0, tokens + 1, groups))
    weights = gt.asarray(w.swapaxes(1, 2).copy() if is_along else w, device="cuda")
    out = gt.full((tokens, n), np.nan, dtype=name, device="cuda")
    gt.grouped_matmul(
        gt.asarray(x, device="cuda"), weights.swapaxes(1, 2) if is_along else weights,
        gt.asarray(ends, device="cuda"), out=out,
    )  # fmt: skip
    print(tokens, k, n, name, used())
    assert used(), "the product did not go to the kernel"
    exact, limit = exact_rows(x, w, ends)
    assert_within(out.numpy(), exact, limit)


def test_refusals(rng):
    """Whichever driver call of a product is refused, context calls included, the next works."""
    x, y = (random_array(rng, (200, 200), "complex64") for _ in range(2))
    a, b = gt.asarray(x, device="cuda"), gt.asarray(y, device="cuda")
    out = gt.empty((200, 200), dtype="complex64", device="cuda")

    def request():
        gt.matmul(a, b, out=out)
        assert_within(out.numpy(), wide(x) @ wide(y), bound(x, y, "complex64"))

    seen = refused_calls.sweep(request)
    assert {"context_enter", "context_leave", "capture_info"} <= seen, seen
