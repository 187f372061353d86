"""Programs from files and their weights, on every device."""

import gc
import os
import subprocess
import sys

import numpy as np

import gputensor as gt
from gputensor import memory
from gputensor.programs import file, weights
from gputensor.programs.function import Weight
from tests.project.test_docs import ROOT
from tests.support.programs.models import mlp
from tests.support.tensor_arrays import random_array


def weights_of(arrays):
    return {n: Weight(n, a.dtype.name, a.shape, a) for n, a in arrays.items()}


def test_mapped_weights_are_loaded_and_shared(where, tmp_path, rng):
    """The large weight exceeds all bounce buffers together, and is not a multiple of one."""
    arrays = {
        "large": random_array(rng, (5_000_003,), "float32"),
        "half": random_array(rng, (777, 33), "float16"),
        "flags": rng.integers(0, 2, 1000).astype(bool),
        "one": random_array(rng, (), "float64"),
    }
    tensors = {name: gt.asarray(array, device="host") for name, array in arrays.items()}
    gt.save_safetensors(tensors, tmp_path / "w.safetensors")
    mapped = gt.map_safetensors(tmp_path / "w.safetensors")
    gc.collect()
    before = memory.memory_allocated(where)
    first = weights.load(weights.with_hashes(weights_of(mapped)), where)
    taken = memory.memory_allocated(where) - before
    for name, tensor in first.items():
        assert tensor.numpy().tobytes() == arrays[name].tobytes(), name
    second = weights.load(weights.with_hashes(weights_of(arrays)), where)
    assert all(second[name] is first[name] for name in arrays)
    assert memory.memory_allocated(where) - before == taken
    del first, second, tensor
    gc.collect()
    assert memory.memory_allocated(where) == before


def test_safetensors_are_loaded_from_the_mapped_file(where, tmp_path, rng):
    array = random_array(rng, (3_000, 1_001), "bfloat16")
    gt.save_safetensors({"w": gt.asarray(array, device=where)}, tmp_path / "w")
    found = gt.load_safetensors(tmp_path / "w", device=where)["w"]
    assert found.numpy().tobytes() == array.tobytes()


def test_program_from_a_file_gives_the_same_results(where, tmp_path, rng):
    def model(x, *, weights):
        for w, b in weights["hidden"]:
            x = gt.maximum(gt.linear(x, w, b), 0)
        return {"y": x, "mean": gt.mean(x)}

    shapes = ((48, 32), (64, 48))
    tree = {
        "hidden": [
            tuple(
                gt.asarray(random_array(rng, s, "float32"), device=where)
                for s in (shape, shape[:1])
            )
            for shape in shapes
        ]
    }
    rows = gt.spec((gt.Dim("batch", 1, 64), 32), gt.float32)
    program = gt.compile(model, rows, weights=tree, target=where)
    x = gt.asarray(random_array(rng, (7, 32), "float32"), device=where)
    want = program(x)
    for apart in (None, "w.safetensors"):
        program.save(tmp_path / "p.gtp", weights=apart)
        with gt.load_program(tmp_path / "p.gtp", device=where) as loaded:
            found = loaded(x)
            for name in ("y", "mean"):
                assert found[name].numpy().tobytes() == want[name].numpy().tobytes()


def test_command_runs_a_program_on_the_device(where, tmp_path, rng):
    data, reference = mlp(rng)
    file.write(data, tmp_path / "p.gtp")
    x = rng.standard_normal((5, 12)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "want.npy", reference(x).astype(np.float32))
    done = subprocess.run(
        [sys.executable, "-m", "gputensor.cli.main", "run", "--module=p.gtp", f"--device={where}",
         "--input=@x.npy", "--expected_output=@want.npy", "--expected_rtol=1e-4"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "EXEC @mlp\n[SUCCESS] all results are as expected\n"
