"""A tensor shows its values, device and dtype; a large one fetches only what it shows."""

import numpy as np

import gputensor as gt


def test_values_device_and_dtype_are_shown():
    assert repr(gt.asarray([[1, 2], [3, 4]], device="host")) == (
        "tensor([[1, 2],\n        [3, 4]], device='host', dtype=int64)"
    )
    assert repr(gt.asarray(1.5, device="host")) == "tensor(1.5, device='host', dtype=float32)"
    assert repr(gt.zeros((0, 2), device="host")) == (
        "tensor([], shape=(0, 2), device='host', dtype=float32)"
    )


def test_every_dtype_prints():
    for name in ("bfloat16", "float16", "float8_e4m3", "bool", "complex64", "uint64"):
        text = repr(gt.ones(2, dtype="float32", device="host").astype(name))
        assert f"dtype={gt.zeros(0, dtype=name, device='host').dtype.name}" in text


def test_large_tensor_shows_what_numpy_shows():
    values = np.arange(20_000).reshape(100, 200)
    text = repr(gt.asarray(values, device="host"))
    expected = np.array2string(values, separator=", ", prefix="tensor(", threshold=0)
    assert text == f"tensor({expected}, shape=(100, 200), device='host', dtype=int64)"
