"""Element-wise kernels on the host device: immediate, and deferred in random order."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.operations import ELEMENTWISE
from tests.support import device_array
from tests.support import kernel_checks as checks
from tests.support.device_array import DeviceArray


@pytest.fixture(params=["immediate", "deferred"])
def device(request, deferred):
    return -1 if request.param == "immediate" else deferred


@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_operation_agrees_with_float64_for_every_dtype(row, device, rng):
    for code in checks.COMPUTED:
        if DTYPES[code].kind in row.kinds:
            checks.check_operation(device, row.name, code, rng)


@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_operation_on_a_kind_it_lacks_raises_type_error_and_writes_nothing(row):
    for element in DTYPES:
        if element.kind in row.kinds or row.name == "copy":
            continue
        out = checks.empty_like_shape(element.code, (2,), -1)
        before = out.numpy().tobytes()
        with pytest.raises(
            TypeError, match=f"{row.public_name}: dtype: got {element.name}; expected"
        ):
            device_array.elementwise(row.code, element.code, out, [out] * row.arity)
        assert out.numpy().tobytes() == before


def test_messages_name_operations_as_users_call_them():
    for row in ELEMENTWISE:
        assert callable(getattr(gt.special if row.is_special else gt, row.public_name)), row.name
    flags = gt.ones(2, dtype="bool", device="host")
    for call, message in [
        (lambda: gt.zeros(2, device="host") // 1j, "floor_divide: dtype: got complex64; expected"),
        (lambda: -flags, "negative: dtype: got bool"),
        (lambda: flags - flags, "subtract: dtype: got bool"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "where", "clip", "maximum"])
def test_scalar_operands_are_rounded_to_the_compute_dtype_first(name, device, rng):
    for code in (1, 4, 9, 10, 11, 12, 13):
        if DTYPES[code].kind in checks.OPS[name].kinds:
            checks.check_operation(device, name, code, rng, scalars=(1,))


def test_half_scalar_is_rounded_before_it_is_added():
    x = DeviceArray.from_numpy(np.full(3, 2048, np.float16), -1)
    out = checks.empty_like_shape(11, (3,), -1)
    device_array.elementwise(checks.OPS["add"].code, 9, out, [x, 2.0009765])
    np.testing.assert_array_equal(out.numpy(), np.float32(2050))


@pytest.mark.parametrize("code", [1, 9, 11, 14])
def test_every_pair_of_layouts_agrees_with_float64(code, device, rng):
    for shape, kinds in checks.layout_cases([(33,), (8, 6), (4, 6, 5), (2, 3, 1, 5), ()]):
        checks.check_layouts(device, code, rng, shape, kinds)


@pytest.mark.parametrize("source", range(len(DTYPES)), ids=[row.name for row in DTYPES])
def test_every_cast_agrees_with_astype(source, device, rng):
    for target in range(len(DTYPES)):
        checks.check_cast(device, source, target, rng)


def test_integer_edges_follow_numpy(device):
    low = np.iinfo(np.int32).min
    a = DeviceArray.from_numpy(np.array([low, 7, -7, 5, low], np.int32), device)
    b = DeviceArray.from_numpy(np.array([-1, -2, 2, 0, 0], np.int32), device)
    out = checks.empty_like_shape(3, (5,), device)
    device_array.elementwise(checks.OPS["floordiv"].code, 3, out, [a, b])
    np.testing.assert_array_equal(out.numpy(), [low, -4, -4, 0, 0])
    device_array.elementwise(checks.OPS["mod"].code, 3, out, [a, b])
    np.testing.assert_array_equal(out.numpy(), [0, -1, 1, 0, 0])


def test_negative_integer_powers_are_truncated_inverses(device):
    base = DeviceArray.from_numpy(np.array([1, -1, -1, 2, 0, 3], np.int64), device)
    exponent = DeviceArray.from_numpy(np.array([-5, -3, -2, -1, -1, 2], np.int64), device)
    out = checks.empty_like_shape(4, (6,), device)
    device_array.elementwise(checks.OPS["pow"].code, 4, out, [base, exponent])
    np.testing.assert_array_equal(out.numpy(), [1, -1, 1, 0, 0, 9])


def test_output_may_be_an_input(device, rng):
    values = rng.standard_normal((5, 6)).astype(np.float32)
    x = DeviceArray.from_numpy(values, device)
    device_array.elementwise(checks.OPS["mul"].code, 11, x, [x, x])
    np.testing.assert_array_equal(x.numpy(), values * values)


def test_wrong_shape_or_count_raises_before_anything_is_written():
    out = checks.empty_like_shape(11, (3,), -1)
    before = out.numpy().tobytes()
    long = checks.empty_like_shape(11, (4,), -1)
    flat = checks.empty_like_shape(11, (3, 1), -1)
    for inputs, text in [([out, long], "length 4"), ([out, flat], "2 axes"), ([out], "2 inputs")]:
        with pytest.raises(ValueError, match=text):
            device_array.elementwise(checks.OPS["add"].code, 11, out, inputs)
    assert out.numpy().tobytes() == before
