"""Tuning on a simulated GPU: measuring, writing and reading files, near shapes; the command.

Each test starts without tuned results. The clock of those that tune gives every measurement the
same duration, so that the load of the machine has no effect.
"""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor.blas.bench import ProductBench
from gputensor.blas.bench.tuner import tune
from gputensor.blas.plan import signature_of_shape
from gputensor.blas.tuning import tunable
from gputensor.cli.main import main
from tests.conformance.products.test_matmul import (
    assert_within,
    bound,
    random_array,
    random_tensor,
    wide,
)
from tests.support.device_memory import all_memory

# Variables with bad values at the start of the process, and good values, in order of reading.
BAD_VARIABLES = {
    "GPUTENSOR_BLAS_PREFER_CUBLASLT": "0",
    "GPUTENSOR_TUNABLEOP_ENABLED": "0",
    "GPUTENSOR_TUNABLEOP_MAX_TUNING_ITERATIONS": "7",
}


@pytest.mark.process(FAKE_CUDA_ELAPSED="1")
def test_tuning(rng):
    """A product is tuned once, written to a file and read again; a near shape uses its result."""
    a, array_a = random_tensor(rng, (40, 72), "bfloat16", "cuda")
    b, array_b = random_tensor(rng, (72, 48), "bfloat16", "cuda")
    exact, limit = wide(array_a) @ wide(array_b), bound(array_a, array_b, "bfloat16")
    with tempfile.TemporaryDirectory() as folder:
        tunable.set_filename(Path(folder) / "results.json")
        tunable.set_untuned_filename(Path(folder) / "untuned.json")
        tunable.record_untuned(True)
        assert_within((a @ b).numpy(), exact, limit)
        tunable.write_file()
        tunable.record_untuned_enable(False)
        tunable.set_max_tuning_duration(6000)  # enough for two algorithms on any machine
        (result,) = tunable.tune_file(show=None)
        assert result["measured"] >= 2 and result["us"] <= result["default_us"], result
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
        tunable.set_max_tuning_duration(600)
        tunable.tuning_enable(True)
        assert_within((a @ b).numpy(), exact, limit)
        assert len(tunable.get_results()) == 1
        signature = tuple(tunable.get_results()[0]["problem"].values())
        assert tune(signature, 0, seconds=6, is_exhaustive=True)["measured"] >= 2
        tunable.tuning_enable(False)
        tunable.enable(False)


@pytest.mark.process(FAKE_CUDA_ELAPSED="1")
def test_no_memory_for_tuning(rng):
    """A product that needs no memory is computed even if there is none for the tuner's operands."""
    array_a, array_b = (random_array(rng, s, "bfloat16") for s in ((40, 72), (72, 48)))
    a, b = gt.asarray(array_a, device="cuda"), gt.asarray(array_b, device="cuda")
    exact, limit = wide(array_a) @ wide(array_b), bound(array_a, array_b, "bfloat16")
    out = gt.full((40, 48), np.nan, dtype=a.dtype, device="cuda")
    gt.matmul(a, b, out=out)  # this allocates the stream's workspace
    with tempfile.TemporaryDirectory() as folder:
        tunable.set_filename(Path(folder) / "results.json")
        tunable.enable(True)
        tunable.tuning_enable(True)
        out[...] = np.nan
        held = all_memory()
        before = gt.memory.memory_stats("cuda")["num_ooms"]
        gt.matmul(a, b, out=out)
        assert gt.memory.memory_stats("cuda")["num_ooms"] > before, "there was memory to tune"
        assert tunable.get_results() == []
        held.clear()
        assert_within(out.numpy(), exact, limit)
        # Once there is memory, products that are planned again are tuned.
        blas.forget_plans()
        gt.matmul(a, b, out=out)
        assert len(tunable.get_results()) == 1
        tunable.tuning_enable(False)
        tunable.enable(False)
    # Operands rotate through the requested amount of memory.
    signature = signature_of_shape(512, 512, 512, "fp32")  # 3 MiB
    for rotating_nbytes, count in ((0, 1), (1, 1), (2 << 20, 1), (8 << 20, 3), (1 << 30, 16)):
        assert ProductBench(signature, 0, rotating_nbytes).set_count == count


@pytest.mark.process(FAKE_CUDA_ELAPSED="1")
def test_command(rng):
    """`gputensor blas tune` keeps its results, names failed shapes, and checks its file first."""
    tuned, huge = "16x48x72 bf16 NT", "16384x16384x16384 fp32 NN"  # 3 GiB on a device with 1 GiB

    def run(*words):
        errors, output = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(output):
            code = main(["blas", "tune", "--seconds", "2", *map(str, words)])
        return code, output.getvalue(), errors.getvalue()

    with tempfile.TemporaryDirectory() as folder:
        shapes, results = Path(folder) / "shapes.txt", Path(folder) / "results.json"
        shapes.write_text(f"{tuned}\n{huge}\n24x40x8 fp32\n")
        code, output, errors = run("--shapes", shapes, "--output", results, "--quiet")
        assert code == 1 and errors.startswith(f"gputensor: {huge}: out of memory"), errors
        assert errors.count("\n") == 1 and tuned in output and str(results) in output
        rows = json.loads(results.read_text())["results"]
        assert [row["problem"]["k"] for row in rows] == [72, 8]
        # Written results stay when the next file cannot be read, or tuning is interrupted.
        tunable.clear()
        shapes.write_text("16x16 fp32\n")
        assert run("--shapes", shapes, "--output", results)[0] == 2
        assert json.loads(results.read_text())["results"] == rows
        shapes.write_text("8x8x8 fp32\n16x16x16 fp32\n")
        tuning_of, count = tunable._tune, [0]

        def interrupted(*arguments, **options):
            count[0] += 1
            if count[0] == 2:
                raise KeyboardInterrupt
            return tuning_of(*arguments, **options)

        tunable._tune = interrupted
        code, _, errors = run("--shapes", shapes, "--output", results)
        assert (code, errors.splitlines()[-1]) == (130, "gputensor: interrupted"), errors
        tunable._tune = tuning_of
        assert len(json.loads(results.read_text())["results"]) == 3
        # A missing folder is reported before any measurement.
        tunable.clear()
        nowhere = Path(folder) / "none" / "results.json"
        code, _, errors = run("--shapes", shapes, "--output", nowhere)
        assert code == 2 and "expected a file in a writable folder" in errors, errors
        assert tunable.get_results() == []


@pytest.mark.orders("at-once")
@pytest.mark.process(**dict.fromkeys(BAD_VARIABLES, "maybe"))
def test_bad_environment(rng):
    """Each product raises an error that names the bad variable, until the variable is corrected."""
    a, array_a = random_tensor(rng, (40, 40), "float32", "cuda")
    for variable, good in BAD_VARIABLES.items():
        for _ in range(2):
            with pytest.raises(ValueError, match=variable):
                a @ a
        os.environ[variable] = good
    assert_within(
        (a @ a).numpy(), wide(array_a) @ wide(array_a), bound(array_a, array_a, "float32")
    )
    assert not tunable.is_enabled() and blas.preferred_blas_library() == "cublas"
