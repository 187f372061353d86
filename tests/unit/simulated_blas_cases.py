"""Runs in a process whose driver is fake_gpu.cpp and whose BLAS is fake_cublas.cpp.

Started by test_blas_simulated_gpu.py with the name of one case; prints "ok" at the end.
"""

import sys
import tempfile
import threading
from pathlib import Path

import ml_dtypes
import numpy as np

import gputensor as gt
from gputensor import blas
from gputensor.blas import tunable
from gputensor.blas.pad import padding
from gputensor.blas.tuner import tune
from tests.conformance.test_grouped_matmul import exact_rows
from tests.conformance.test_matmul import (
    assert_within,
    bound,
    random_array,
    random_shapes,
    random_tensor,
    wide,
)
from tests.conformance.test_matmul_epilogues import check_epilogue
from tests.unit import kernel_compiler


def views(rng):
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


def paddings(rng):
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


def epilogues(rng):
    """Scales, biases, activations and residuals, in the libraries and after them."""
    for library in ("auto", "cublas", "cublaslt"):
        blas.preferred_blas_library(library)
        for name in ("float32", "bfloat16"):
            for call in ("linear", "matmul"):
                for _ in range(3):
                    check_epilogue(rng, "cuda", name, call)
        # A batch walked backwards is repeated calls, whose addend may lie elsewhere or be shared.
        a, array_a = random_tensor(rng, (3, 4, 5), "float32", "cuda")
        b, array_b = random_tensor(rng, (3, 5, 6), "float32", "cuda")
        c, array_c = random_tensor(rng, (1, 4, 6), "float32", "cuda")
        got = gt.baddbmm(c, a[::-1], b).numpy()
        exact = wide(array_a)[::-1] @ wide(array_b)
        assert_within(
            got, exact + wide(array_c), bound(array_a[::-1], array_b, "float32") + 2.0**-20
        )


def streams(rng):
    """Threads with streams of their own share plans, never workspaces."""
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


def captures(rng):
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


def tuning(rng):
    """A product is tuned once, filed, read again, and borrowed by a near shape."""
    a, array_a = random_tensor(rng, (40, 72), "bfloat16", "cuda")
    b, array_b = random_tensor(rng, (72, 48), "bfloat16", "cuda")
    exact, limit = wide(array_a) @ wide(array_b), bound(array_a, array_b, "bfloat16")
    with tempfile.TemporaryDirectory() as folder:
        tunable.set_filename(Path(folder) / "results.json")
        tunable.set_untuned_filename(Path(folder) / "untuned.json")
        tunable.record_untuned_enable(True)
        assert_within((a @ b).numpy(), exact, limit)
        tunable.write_file()
        tunable.record_untuned_enable(False)
        (result,) = tunable.tune_file(seconds=3, show=None)
        assert result["measured"] >= 3 and result["us"] <= result["default_us"]
        tunable.enable(True)
        assert_within((a @ b).numpy(), exact, limit)
        tunable.write_file()
        tunable.clear()
        assert tunable.read_file() == 1
        (row,) = tunable.get_results()
        assert row["problem"]["k"] == 72 and row["device"] == "Fake GPU"
        near = gt.ones((44, 72), dtype=gt.bfloat16, device="cuda")
        assert_within(
            (near @ b).numpy(),
            wide(near.numpy()) @ wide(array_b),
            bound(near.numpy(), array_b, "bfloat16"),
        )
        tunable.clear()
        tunable.tuning_enable(True)
        assert_within((a @ b).numpy(), exact, limit)
        assert len(tunable.get_results()) == 1
        signature = tuple(tunable.get_results()[0]["problem"].values())
        assert tune(signature, 0, seconds=3, is_exhaustive=True)["measured"] > 3
        tunable.tuning_enable(False)
        tunable.enable(False)


def batches(rng):
    """Batches that no single stride describes: as pointer arrays, captured and not, added to."""
    for library in ("auto", "cublas", "cublaslt"):
        blas.preferred_blas_library(library)
        for name in ("float32", "float64", "float16", "bfloat16", "complex64"):
            for shape_a, shape_b in (
                ((3, 1, 5, 8), (1, 4, 8, 6)),
                ((2, 1, 3, 1, 4, 8), (5, 1, 2, 8, 8)),
            ):
                a, array_a = random_tensor(rng, shape_a, name, "cuda")
                b, array_b = random_tensor(rng, shape_b, name, "cuda")
                exact = np.matmul(wide(array_a), wide(array_b))
                out, _ = random_tensor(rng, exact.shape, name, "cuda", fill=np.nan)
                gt.matmul(a, b, out=out)
                limit = bound(array_a, array_b, name)
                assert_within(out.numpy(), exact, limit)
                graph = gt.graphs.CUDAGraph()
                with gt.graphs.graph(graph):
                    gt.matmul(a, b, out=out)
                out[...] = np.nan
                graph.replay()
                assert_within(out.numpy(), exact, limit)


def groups(rng):
    """Lists of pairs as one grouped call, rows with offsets on the device, captured and not."""
    for name in ("float32", "float16", "bfloat16"):
        for count in (3, 130):
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


CASES = (views, paddings, epilogues, batches, groups, streams, captures, tuning)

if __name__ == "__main__":
    kernel_compiler.install()
    {case.__name__: case for case in CASES}[sys.argv[1]](np.random.default_rng())
    print("ok")
