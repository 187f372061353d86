"""Values cross between host and device unchanged, and every use waits for the work it needs."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import gputensor as gt
from tests.support.driver_calls import Calls
from tests.support.tensor_arrays import DTYPES, INTEGERS, check_same, random_array


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_array_comes_back_unchanged(place, rng, dtype):
    for shape in [(), (0, 3), (7,), (3, 4, 5)]:
        a = random_array(rng, shape, dtype)
        x = gt.asarray(a, device=place)
        check_same(x, a)
        back = x.numpy()
        back[...] = 0
        check_same(x, a)


def test_array_in_any_layout_is_taken(place, rng):
    a = random_array(rng, (6, 5, 4), "float32")
    for view in (
        a.T,
        a[::-1, 1::2],
        a.transpose(1, 0, 2)[..., ::-2],
        np.broadcast_to(a, (2, *a.shape)),
    ):
        check_same(gt.asarray(view, device=place), view)
    check_same(gt.asarray(a.astype(">f4"), device=place), a)


def test_source_may_change_right_after_asarray(place, rng):
    for size in (10, 300_000):
        a = random_array(rng, (size,), "float32")
        expected = a.copy()
        x = gt.asarray(a, device=place)
        a[...] = -1
        check_same(x + 0, expected)


def test_transfers_of_many_chunks_are_exact_while_buffers_are_used_again(place, rng):
    for nbytes in (4 << 20, (4 << 20) + 1, (23 << 20) + 5):
        a = rng.integers(0, 256, nbytes, dtype=np.uint8)
        expected = a.copy()
        x = gt.asarray(a, device=place)
        a[...] = 0
        y = gt.asarray(expected[::-1], device=place)
        np.testing.assert_array_equal(x.numpy(), expected)
        np.testing.assert_array_equal(y.numpy(), expected[::-1])


def test_python_values_get_the_default_dtypes(place):
    for value, dtype in [
        (True, "bool"),
        (3, "int64"),
        (2.5, "float32"),
        (1j, "complex64"),
        ([1, 2.5], "float32"),
        ([[1, 2], [3, 4]], "int64"),
        ([], "float32"),
        (range(3), "int64"),
        (np.float64(2), "float64"),
        (np.arange(3.0), "float64"),
        (b"ab", "uint8"),
        (memoryview(np.arange(3, dtype="int16")), "int16"),
    ]:
        x = gt.asarray(value, device=place)
        assert x.dtype == dtype, value
        expected = np.frombuffer(value, "uint8") if isinstance(value, bytes) else np.asarray(value)
        np.testing.assert_array_equal(x.numpy(), expected.astype(dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_numbers_and_lists_fit_the_integer_dtype_or_raise(place, rng, dtype):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    inside = [low, high, low // 3, int(rng.integers(0, 100)), high - 1]
    expected = np.array(inside, dtype)
    x = gt.full(5, 7, dtype=dtype, device=place)
    check_same(gt.asarray(inside, dtype=dtype, device=place), expected)
    check_same(gt.asarray([high, 1.5], dtype=dtype, device=place), np.array([high, 1], dtype))
    outside = [high + 1, low - 1, high * 2 + 2, 2**70, -(2**70), 1e30, np.inf]
    outside += [np.int64(300)] if high < 300 else []
    for number in outside:
        shown = number if isinstance(number, float) and np.isinf(number) else int(number)
        for value in (number, [1, number], ((3, 4), (number, 5)), [1.5, number]):
            with pytest.raises(
                OverflowError, match=f"number: got {shown}; expected .* which {dtype} holds"
            ):
                gt.asarray(value, dtype=dtype, device=place)
        for key in (slice(None), [0, 3, 1, 4, 2]):
            with pytest.raises(
                OverflowError, match=f"number: got {shown}; expected .* which {dtype} holds"
            ):
                x[key] = [1, 2, 3, number, 5]
    for value in (np.nan, [1, np.nan]):
        with pytest.raises(ValueError, match=f"number: got nan; expected .* which {dtype} holds"):
            gt.asarray(value, dtype=dtype, device=place)
    for value in (1j, [1, 2j]):
        with pytest.raises(TypeError, match="complex"):
            gt.asarray(value, dtype=dtype, device=place)
        with pytest.raises(TypeError, match="complex"):
            x[:] = value
    check_same(x, np.full(5, 7, dtype))
    x[:] = inside
    check_same(x, expected)
    x[[4, 3, 2, 1, 0]] = inside
    check_same(x, expected[::-1])


def test_lists_are_written_in_the_precision_of_the_tensor(place, rng):
    numbers = [*rng.standard_normal(4).tolist(), 1e30]
    for name in ("float64", "float32", "complex128", "complex64"):
        x = gt.zeros(5, dtype=name, device=place)
        x[:] = numbers
        check_same(x, np.array(numbers, name))
        x[[4, 3, 2, 1, 0]] = numbers
        check_same(x, np.array(numbers, name)[::-1])
    half = gt.zeros(1, dtype="float16", device=place)
    half[:] = [2049.0000001]
    assert float(half[0]) == 2050
    for name in ("bfloat16", "float32", "float64"):
        x = gt.asarray([2**70, 1], dtype=name, device=place)
        assert x.numpy().astype(float).tolist() == [2.0**70, 1]
        x[:] = [1, 2**70]
        assert x.numpy().astype(float).tolist() == [1, 2.0**70]
    for odd in (2**53 + 1, -(2**53) - 1):
        assert int(gt.asarray([odd, 0.5], dtype="int64", device=place)[0]) == odd


def test_arrays_are_converted_as_in_c(place):
    a = np.array([300, -1, 2**40])
    check_same(gt.asarray(a, dtype="uint8", device=place), a.astype("uint8"))
    x = gt.zeros(3, dtype="int16", device=place)
    x[:] = a
    check_same(x, a.astype("int16"))


def test_ints_beyond_64_bits_are_taken_as_floats_only(place):
    for value in (2**70, [2**70, 1], [[-(2**70)]]):
        with pytest.raises(
            OverflowError, match=r"number: got -?\d+; expected .* which int64 holds"
        ):
            gt.asarray(value, device=place)
        got = gt.asarray(value, dtype="float32", device=place)
        check_same(got, np.asarray(value, "float32"))
    check_same(gt.asarray([2**70, 1.5], device=place), np.array([2**70, 1.5], "float32"))
    with pytest.raises(TypeError, match="obj: got list of unequal or unsupported parts"):
        gt.asarray([2**70, None], device=place)


def test_asarray_of_a_tensor_shares_unless_a_copy_is_requested(place):
    x = gt.zeros(3, device=place)
    assert gt.asarray(x) is x
    assert gt.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert gt.asarray(x, dtype="int32").dtype == gt.int32
    with pytest.raises(ValueError, match="copy: got False; expected True or None, because dtype"):
        gt.asarray(x, dtype="int32", copy=False)


def test_scalars_and_lists(place):
    x = gt.asarray([[1.5, 2.5]], device=place)
    assert x.tolist() == [[1.5, 2.5]]
    assert (float(x[0, 0]), int(x[0, 1]), bool(x[0, 0]), complex(x[0, 0])) == (1.5, 2, True, 1.5)
    with pytest.raises(ValueError, match=r"item: got a tensor of shape \(1, 2\)"):
        x.item()
    with pytest.raises(ValueError, match="expected one element"):
        bool(x)
    with pytest.raises(TypeError, match=r"index: got a tensor of dtype float32 and shape \(\)"):
        range(x[0, 0])
    np.testing.assert_array_equal(np.asarray(x), [[1.5, 2.5]])


def test_copies_between_devices(place, rng):
    a = random_array(rng, (3, 4), "bfloat16" if place else "float32")
    x = gt.asarray(a, device=place)
    there = x.to_device("host")
    assert str(there.device) == "host"
    check_same(there, a)
    back = there.to(place)
    assert back.device == x.device
    check_same(back, a)
    assert x.to(place) is x


def test_copy_pickle_and_deepcopy_are_equal_and_apart(place, rng):
    x = gt.asarray(random_array(rng, (3, 4), "float16"), device=place)
    for twin in (copy.copy(x), copy.deepcopy(x), x.copy(), pickle.loads(pickle.dumps(x))):
        check_same(twin, x.numpy())
        assert twin.device == x.device
        assert twin.data_ptr() != x.data_ptr()
    assert pickle.loads(pickle.dumps(x.T)).shape == (4, 3)


def test_reads_and_writes_on_many_streams_need_no_waits(place, rng):
    """Random programs on four streams give the results of the same program in order."""
    for _ in range(6):
        streams = [gt.Stream(place) for _ in range(3)] + [None]
        model = [random_array(rng, (50,), "int64") for _ in range(4)]
        tensors = [gt.asarray(a, device=place) for a in model]
        for _ in range(40):
            i, j, k = rng.integers(0, 4, 3)
            stream = streams[rng.integers(0, 4)]
            action = rng.integers(0, 5)
            with gt.stream(stream) if stream else gt.Device(place):
                if action == 0:
                    tensors[i], model[i] = tensors[j] + tensors[k], model[j] + model[k]
                elif action == 1:
                    tensors[i] -= tensors[j]
                    model[i] = model[i] - model[j]
                elif action == 2:
                    tensors[i][5:] = tensors[i][:-5]
                    model[i] = np.concatenate([model[i][:5], model[i][:-5]])
                elif action == 3:
                    fresh = random_array(rng, (50,), "int64")
                    tensors[i], model[i] = gt.asarray(fresh, device=place), fresh
                else:
                    tensors[i] = gt.sum(tensors[j]) - tensors[k]
                    model[i] = model[j].sum() - model[k]
        for tensor, expected in zip(tensors, model, strict=True):
            check_same(tensor, expected)


def test_memory_freed_while_another_stream_uses_it_is_not_reused_too_early(place, rng):
    side = gt.Stream(place)
    for _ in range(30):
        a = random_array(rng, (4096,), "float32")
        x = gt.asarray(a, device=place)
        with gt.stream(side):
            y = x * 2
        del x
        poison = [gt.full(4096, np.nan, device=place) for _ in range(3)]
        check_same(y, a * 2)
        del poison


def test_imported_memory_lives_until_queued_work_is_done(place, rng):
    if place >= 0:
        pytest.skip("host memory is shared with host devices only; tests/gpu imports CUDA memory")
    for _ in range(20):
        a = random_array(rng, (2000,), "float32")
        expected = a * 3
        x = gt.asarray(a, device=place, copy=False)
        y = x * 3
        del a, x
        gc.collect()
        poison = np.full(2000, np.nan, np.float32)
        check_same(y, expected)
        del poison


def test_out_of_memory_passes_through_and_leaves_everything_usable(place):
    x = gt.ones(8, device=place)
    with pytest.raises(gt.OutOfMemoryError):
        gt.empty(2**45, device=place)
    with pytest.raises(gt.OutOfMemoryError):
        gt.broadcast_to(x, (2**42, 8)) + 1
    check_same(x + 1, np.full(8, 2, np.float32))


def test_tensor_reports_its_properties(place):
    x = gt.zeros((2, 3), dtype="int16", device=place)
    assert (x.ndim, x.size, x.itemsize, x.nbytes, len(x)) == (2, 6, 2, 12, 2)
    assert x.strides == (6, 2) and x.T.strides == (2, 6)
    assert x.is_contiguous and not x.T.is_contiguous
    assert x.data_ptr() % 256 == 0
    assert gt.zeros(0, device=place).data_ptr() == 0
    assert x.device == gt.Device(place)
    assert {x: 1}[x] == 1
    for arguments in ((), ([1, 2],), (2, 3)):
        with pytest.raises(TypeError, match="Tensor: got a call of its constructor"):
            gt.Tensor(*arguments)
    with pytest.raises(TypeError, match="Tensor: got a call of its constructor"):
        gt.Tensor(shape=2)
    with pytest.raises(TypeError, match="0 dimensions"):
        len(gt.zeros((), device=place))


def test_recorded_use_of_a_foreign_kernel_is_waited_for(place, rng):
    """A raw driver copy stands in for the kernel; only record_stream informs the library of it."""
    side = gt.Stream(place)
    calls = Calls(place)
    for _ in range(15):
        a = random_array(rng, (2048,), "float32")
        x, y = gt.asarray(a, device=place), gt.zeros(2048, device=place)
        side.wait_stream(gt.current_stream(place))
        assert calls.copy_async(y.data_ptr(), x.data_ptr(), x.nbytes, side.cuda_stream) == 0
        x.record_stream(side)
        y.record_stream(side)
        del x
        poison = [gt.full(2048, np.nan, device=place) for _ in range(3)]
        check_same(y * 2, a * 2)
        del poison
    with pytest.raises(TypeError):
        gt.zeros(1, device=place).record_stream("side")


def test_threads_on_their_own_streams_do_not_disturb_each_other(place):
    errors = []

    def work(thread):
        try:
            with gt.stream(gt.Stream(place)):
                for i in range(25):
                    a = np.full(500, thread * 1000 + i, np.int64)
                    y = (gt.asarray(a, device=place) + 1) * 2
                    check_same(y, (a + 1) * 2)
                    assert gt.sum(y).item() == y.numpy().sum()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors, errors
    assert not any(thread.is_alive() for thread in threads)


class Big:
    """An object whose array is big-endian."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3, dtype=">i4")


def test_foreign_byte_order_is_converted_from_every_source(place):
    for source in (Big().__array__(), memoryview(Big().__array__()), Big()):
        check_same(gt.asarray(source, device=place), np.arange(3, dtype="int32"))


def test_zeros_over_partly_written_pages(where, rng):
    """A host device may skip untouched pages, but must clear the written ones."""
    for offset, written in ((0, 0), (3, 5), (1029, 500), (7, 1 << 20)):
        x = gt.empty((1 << 20) + 5000, dtype="float32", device=where)
        places = np.unique(rng.integers(0, x.size, written))
        if written:
            x[gt.asarray(places, device=where)] = 7.0
        x[offset:-3] = 0
        x[:offset] = 1
        x[-3:] = 2
        want = np.zeros(x.size, np.float32)
        want[:offset], want[-3:] = 1, 2
        assert np.array_equal(x.numpy(), want)
        assert not gt.zeros(x.shape, device=where).numpy().any()
