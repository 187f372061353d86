"""Tensors survive a safetensors file, and files of the reference writer are read."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import DTYPES, check_same, random_array

safetensors = pytest.importorskip("safetensors", reason="needs the safetensors package")


def test_every_dtype_survives(tmp_path, rng):
    arrays = {
        dtype.name: random_array(rng, (3, 5), dtype) for dtype in DTYPES if dtype != "complex128"
    }
    arrays["empty"] = np.zeros((0, 4), np.float32)
    tensors = {name: gt.asarray(a, device="host") for name, a in arrays.items()}
    path = tmp_path / "model.safetensors"
    gt.save_safetensors(tensors, path, metadata={"made": "by a test"})
    loaded = gt.load_safetensors(path, device="host")
    assert loaded.keys() == arrays.keys()
    for name, tensor in loaded.items():
        check_same(tensor, arrays[name], name=name)


def test_file_of_the_reference_writer_is_read(tmp_path, rng):
    from safetensors.numpy import load_file, save_file

    array = random_array(rng, (4, 4), "float32")
    save_file({"w": array}, tmp_path / "a.safetensors")
    loaded = gt.load_safetensors(tmp_path / "a.safetensors", device="host")
    check_same(loaded["w"], array)
    gt.save_safetensors({"w": loaded["w"].T}, tmp_path / "b.safetensors")
    np.testing.assert_array_equal(load_file(tmp_path / "b.safetensors")["w"], array.T)


def test_what_is_no_tensor_is_named(tmp_path):
    with pytest.raises(TypeError, match="'w' is a ndarray; a Tensor is needed"):
        gt.save_safetensors({"w": np.zeros(2)}, tmp_path / "c.safetensors")
