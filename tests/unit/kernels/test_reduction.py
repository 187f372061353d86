"""Reductions, creation and index kernels on the host device."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from gputensor._driver.registry import close_host, open_host
from gputensor._kernels.operations import REDUCTIONS
from gputensor.programs.ahead.bindings import Maker, sites_of
from gputensor.programs.ahead.call_places import places_of
from gputensor.programs.ahead.code import Kernels
from gputensor.programs.bind import bind
from gputensor.programs.compile import data_of, sources_of
from tests.support import device_array
from tests.support import kernel_checks as checks
from tests.support.device_array import DeviceArray


@pytest.fixture(params=["immediate", "deferred"])
def device(request, deferred):
    return -1 if request.param == "immediate" else deferred


@pytest.mark.parametrize("row", REDUCTIONS, ids=lambda row: row.name)
def test_reduction_agrees_with_float64(row, device, rng):
    cases = [((1000,), (0,)), ((37, 53), (0,)), ((37, 53), (1,)), ((37, 53), (0, 1)), ((), ())]
    cases += [((3, 5, 7), (0, 2)), ((2, 3, 4, 5), (1, 3)), ((1, 1), (0,)), ((6, 5), ())]
    views = [lambda x: x, lambda x: x.T, lambda x: x[::-1, ::2]]
    for code in checks.COMPUTED:
        for shape, axes in cases:
            for view_of in views if len(shape) == 2 else views[:1]:
                checks.check_reduction(device, row.name, code, rng, view_of, shape, axes)


def test_float32_sum_of_a_million_is_right_to_the_last_digits(rng):
    values = rng.random(1 << 20).astype(np.float32)
    out = checks.empty_like_shape(11, (), -1)
    for view in (values, values.reshape(1024, 1024).T):
        array = checks.upload(view, -1)
        device_array.reduce(0, 11, out, array, tuple(range(view.ndim)))
        assert abs(float(out.numpy()) - values.astype(np.float64).sum()) < 0.5


def test_half_sum_is_accumulated_in_float32():
    out = checks.empty_like_shape(9, (), -1)
    ones = DeviceArray.from_numpy(np.ones(4096, np.float16), -1)
    device_array.reduce(0, 9, out, ones, (0,))
    assert float(out.numpy()) == 4096


def test_integer_sum_wraps_modulo_two_to_the_64(device):
    values = DeviceArray.from_numpy(np.array([2**63 - 1, 2], np.int64), device)
    out = checks.empty_like_shape(4, (), device)
    device_array.reduce(0, 4, out, values, (0,))
    assert int(out.numpy()) == -(2**63) + 1


def test_arguments_give_the_first_occurrence_and_nan_wins(device):
    out = checks.empty_like_shape(4, (), device)
    for values, largest, smallest in [([1, 3, 3, 1], 1, 0), ([1, np.nan, 9, np.nan], 1, 1)]:
        array = DeviceArray.from_numpy(np.array(values, np.float32), device)
        device_array.reduce(4, 11, out, array, (0,))
        assert int(out.numpy()) == largest
        device_array.reduce(5, 11, out, array, (0,))
        assert int(out.numpy()) == smallest


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_no_thread_has_more_units_than_a_key_counts(dtype, axis):
    """Lines of which one thread would read more than 4,096 units are cut; there are many lines."""
    packed = dtype != "float32"
    vector = 16 // np.dtype(dtype).itemsize
    for units, is_cut in [(4096, False), (4097, packed)]:
        lines = 1 << 14 if axis else 512 * 32 * vector
        length = units * 32 * vector if axis else units * 8
        spec = gt.spec((lines, length) if axis else (length, lines), dtype)
        source = sources_of(lambda x, *, weights: gt.argmax(x, axis=axis), (spec,), {}, None, {})
        (function,) = data_of(source, -1).functions.values()
        kernels = Kernels()
        with Maker((90, 132, 228 << 10), kernels) as maker:
            for site in sites_of(bind(function, {})):
                maker.make(site.call, places_of(site.call, site.alignments))
        used = [dict(kernel.program.defines) for kernel in kernels.all]
        assert ("PACKED" in used[0], used[0]["VECTOR"]) == (packed, vector)
        assert len(used) == 1 + is_cut == 1 + used[0]["PARTIAL"]


def test_empty_reduction_gives_the_identity_or_raises(device):
    array = checks.empty_like_shape(11, (3, 0), device)
    for name, expected in [("sum", 0), ("prod", 1), ("mean", np.nan)]:
        out = checks.empty_like_shape(11, (3,), device)
        device_array.reduce(checks.REDS[name].code, 11, out, array, (1,))
        np.testing.assert_array_equal(out.numpy(), np.full(3, expected, np.float32))
    for name, expected in [("any", False), ("all", True)]:
        out = checks.empty_like_shape(0, (3,), device)
        device_array.reduce(checks.REDS[name].code, 11, out, array, (1,))
        np.testing.assert_array_equal(out.numpy(), np.full(3, expected))
    out = checks.empty_like_shape(11, (3,), device)
    with pytest.raises(ValueError, match="max, which has no identity"):
        device_array.reduce(checks.REDS["max"].code, 11, out, array, (1,))
    none = checks.empty_like_shape(11, (0,), device)
    device_array.reduce(checks.REDS["max"].code, 11, none, array, (0,))


def test_wrong_axes_or_output_raise():
    array = checks.empty_like_shape(11, (3, 4), -1)
    for shape, axes in [((4,), (1,)), ((3, 4), (1,)), ((), (2,))]:
        with pytest.raises(ValueError):
            device_array.reduce(0, 11, checks.empty_like_shape(11, shape, -1), array, axes)


@pytest.mark.parametrize("code", [0, 1, 9, 10, 11, 14])
def test_gather_and_scatter_agree_with_numpy(code, device, rng):
    checks.check_gather(device, code, rng, (50,), 0, [(20,)])
    checks.check_gather(device, code, rng, (9, 50, 33), 1, [(4, 6)], index_code=3)
    checks.check_gather(device, code, rng, (9, 11, 8), 0, [(5, 1), (1, 7)])
    checks.check_gather(device, code, rng, (6, 7, 8, 9), 1, [(3,), (3,), (2, 1)])
    checks.check_gather(device, code, rng, (70, 16), 0, [(40,)], index_code=5)
    checks.check_gather(device, code, rng, (5, 6), 0, [()])


def test_index_errors_are_raised_with_the_host_call():
    source = DeviceArray.from_numpy(np.arange(5.0), -1)
    out = checks.empty_like_shape(12, (1,), -1)
    with pytest.raises(IndexError, match="out of bounds"):
        device_array.gather(out, source, 0, [DeviceArray.from_numpy(np.array([5]), -1)])
    with pytest.raises(TypeError, match="integer dtype"):
        device_array.gather(out, source, 0, [DeviceArray.from_numpy(np.array([1.0]), -1)])
    empty = checks.empty_like_shape(12, (0,), -1)
    with pytest.raises(IndexError, match="no elements"):
        device_array.gather(out, empty, 0, [DeviceArray.from_numpy(np.array([0]), -1)])


@pytest.mark.parametrize("code", range(len(DTYPES)), ids=[row.name for row in DTYPES])
def test_fill_and_arange_agree_with_numpy(code, device):
    values = (0, 1, 3) if DTYPES[code].kind in ("bool", "int", "uint") else (0.0, -0.0, 3.75)
    for value in values:
        for shape, strides in [((33,), (1,)), ((5, 7), (16, 2)), ((), ())]:
            out = checks.empty_like_shape(code, (128,), device).view(code, shape, strides)
            device_array.fill(out, value)
            wanted = np.full(shape, value).astype(DTYPES[code].numpy)
            assert out.numpy().tobytes() == wanted.tobytes()
    if DTYPES[code].kind in ("int", "uint", "float"):
        checks.check_arange(device, code, 25, 3.0, 2.0)


def test_error_of_deferred_work_is_raised_once_by_the_next_wait():
    number = open_host(seed=3)
    source = DeviceArray.from_numpy(np.arange(5.0), number)
    out = checks.empty_like_shape(12, (1,), number)
    index = DeviceArray.from_numpy(np.array([9]), number)
    device_array.gather(out, source, 0, [index])
    with pytest.raises(IndexError, match="out of bounds"):
        device_array.synchronize(number)
    device_array.synchronize(number)
    del source, out, index
    close_host(number)
