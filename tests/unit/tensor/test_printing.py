"""A tensor shows its values, device and dtype; a large one fetches only what it shows."""

import numpy as np
import pytest

import gputensor as gt


def test_values_device_and_dtype_are_shown():
    assert repr(gt.asarray([[1, 2], [3, 4]], device="host")) == (
        "tensor([[1, 2],\n        [3, 4]], device='host', dtype=int64)"
    )
    assert repr(gt.asarray(1.5, device="host")) == "tensor(1.5, device='host', dtype=float32)"
    assert repr(gt.zeros((0, 2), device="host")) == (
        "tensor([], shape=(0, 2), device='host', dtype=float32)"
    )


def test_text_is_that_of_numpy(rng):
    floats, few = rng.normal(size=(3, 4)), rng.integers(-99, 99, 7)
    for values in (floats, few, floats < 0, floats[0] * 1j, floats[:0], few[0], np.arange(2000.0),
                   np.array(floats[0, 0])):  # fmt: skip
        x = gt.asarray(values, device="host")
        assert str(x) == f"{x}" == str(values) and repr(x).startswith("tensor(")
        assert np.array2string(x, separator=":") == np.array2string(values, separator=":")


def test_every_dtype_prints():
    for name in ("bfloat16", "float16", "float8_e4m3", "bool", "complex64", "uint64"):
        text = repr(gt.ones(2, dtype="float32", device="host").astype(name))
        assert f"dtype={gt.zeros(0, dtype=name, device='host').dtype.name}" in text


def test_half_precision_has_the_digits_that_tell_numbers_apart(rng):
    for values in (rng.normal(size=(3, 4)).astype("float16"), np.float16(5.09)):
        x = gt.asarray(values, device="host")
        assert str(x) == str(values) and np.array_str(x) == np.array_str(np.asarray(values))
    assert str(gt.asarray([5.09], dtype="float16", device="host")) == "[5.09]"


def test_bfloat16_has_the_digits_that_tell_numbers_apart():
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bits.view(gt.bfloat16)[(bits & 0x7FFF) < 0x7F80]
    with gt.printoptions(threshold=1 << 17, linewidth=20):
        text = str(gt.asarray(values, device="host"))
    found = np.array(text.strip("[]").split(), float)
    assert len(found) == len(values) and (found.astype(gt.bfloat16) == values).all()
    assert max(map(len, text.strip("[]").split())) == len("-1.234e+38")
    for value, expected in (
        (0.1, "0.1"), ([0.1, 1.0078125, -3.140625], "[ 0.1   1.01 -3.14]"), ([], "[]"),
        ([float("nan"), float("-inf"), -0.0], "[ nan -inf  -0.]"), (3.389e38, "3.39e+38"),
    ):  # fmt: skip
        assert str(gt.asarray(value, dtype="bfloat16", device="host")) == expected
    with gt.printoptions(precision=8, floatmode="fixed"):
        assert str(gt.asarray([0.1], dtype="bfloat16", device="host")) == "[0.10009766]"


def test_large_tensor_shows_what_numpy_shows():
    values = np.arange(20_000).reshape(100, 200)
    text = repr(gt.asarray(values, device="host"))
    expected = np.array2string(values, separator=", ", prefix="tensor(", threshold=0)
    assert text == f"tensor({expected}, shape=(100, 200), device='host', dtype=int64)"


def test_options_of_numpy_and_pytorch_hold_inside_a_block():
    x = gt.asarray([[1 / 3, 1e-9], [2.0, np.nan]], dtype="float64", device="host")
    before = repr(x)
    with gt.printoptions(precision=2, suppress=True, nanstr="none"):
        with np.printoptions(precision=2, suppress=True, nanstr="none"):
            text = np.array2string(x.numpy(), separator=", ", prefix="tensor(")
        assert repr(x) == f"tensor({text}, device='host', dtype=float64)" != before
        assert gt.get_printoptions()["precision"] == 2
        with pytest.raises(TypeError, match="printoptions: keywords: got colour; expected precis"):
            gt.set_printoptions(colour=3)
    assert repr(x) == before
    many = gt.arange(30, device="host")
    with gt.printoptions(threshold=10, edgeitems=1):
        assert repr(many) == "tensor([ 0, ..., 29], shape=(30,), device='host', dtype=int64)"
    with gt.printoptions(profile="full"):
        assert "..." not in repr(gt.arange(2000, device="host"))
    with gt.printoptions(sci_mode=False):
        assert "e-" not in repr(x)
    with pytest.raises(ValueError, match="profile: got 'long'"):
        gt.set_printoptions(profile="long")


def test_options_stay_until_they_are_set_again():
    kept = gt.get_printoptions()
    try:
        gt.set_printoptions(3, linewidth=20)
        assert repr(gt.asarray([1 / 3, 2 / 3], device="host")).startswith("tensor([0.333,\n")
    finally:
        gt.set_printoptions(**kept)
    assert gt.get_printoptions() == kept
