"""Memory shared by captures, pools and raw addresses: who owns it, and for how long."""

import gc
import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._alloc import check as checker
from gputensor.graphs import CUDAGraph, graph
from gputensor.memory import MemPool, use_mem_pool

COUNT = 5000


@pytest.fixture(autouse=True)
def current(place):
    with gt.Device(place):
        warm = gt.full((4,), 1.0, dtype="float32", device=place)  # compiles the kernels
        warm *= (warm + 1) * 2 + warm
        yield
        gt.synchronize(place)
        assert checker.check(place) == []


def captured_inside(pool, x, graph_pool=None):
    """A graph of 2 x + 1, whose intermediate in `pool` is freed in the capture; its result."""
    captured = CUDAGraph()
    gt.synchronize()
    with graph(captured, pool=graph_pool), use_mem_pool(pool):
        middle = x * 2
        result = middle + 1
        del middle
    return captured, result


def eager_of(pool, rng, count=8):
    """Tensors of the pool with the values that they must keep."""
    with use_mem_pool(pool):
        values = [rng.integers(0, 1 << 20, COUNT).astype(np.float32) for _ in range(count)]
        return [(gt.asarray(value, device=gt.current_device()), value) for value in values]


def check_kept(tensors):
    for tensor, value in tensors:
        np.testing.assert_array_equal(tensor.numpy(), value)


def check_replays(captured, x, result, rng):
    for _ in range(3):
        value = rng.integers(0, 1000, COUNT).astype(np.float32)
        x[...] = gt.asarray(value, device=x.device)
        captured.replay()
        np.testing.assert_array_equal(result.numpy(), value * 2 + 1)


@pytest.fixture
def x(place):
    return gt.zeros(COUNT, dtype="float32", device=place)


def test_memory_freed_in_a_capture_is_not_given_to_eager_tensors_of_its_pool(x, rng):
    pool = MemPool()
    captured, result = captured_inside(pool, x)
    tensors = eager_of(pool, rng)
    check_replays(captured, x, result, rng)
    check_kept(tensors)


def test_results_dropped_after_a_capture_are_not_given_to_eager_tensors_of_its_pool(x, rng):
    pool = MemPool()
    captured, result = captured_inside(pool, x)
    del result
    gt.synchronize()
    tensors = eager_of(pool, rng)
    captured.replay()
    check_kept(tensors)


def test_capture_into_a_pool_by_its_id_keeps_its_memory_from_eager_tensors(x, rng):
    pool = MemPool()
    captured = CUDAGraph()
    with graph(captured, pool=pool):
        middle = x * 2
        result = middle + 1
        del middle
    tensors = eager_of(pool, rng)
    check_replays(captured, x, result, rng)
    check_kept(tensors)
    assert pool.use_count() == 2
    captured.reset()
    assert pool.use_count() == 1


def test_graph_keeps_the_memory_of_a_pool_that_is_gone(x, rng):
    pool = MemPool()
    captured = CUDAGraph()
    gt.synchronize()
    with graph(captured):
        with use_mem_pool(pool):
            middle = x * 2
        result = middle + 1
        del middle
    del pool
    memory.empty_cache(x.device)
    tensors = [(gt.full((COUNT,), 7.0, device=x.device), np.full(COUNT, 7.0)) for _ in range(8)]
    check_replays(captured, x, result, rng)
    check_kept(tensors)


def test_pool_dropped_inside_the_capture_keeps_its_memory(x, rng):
    captured = CUDAGraph()
    gt.synchronize()
    with graph(captured):
        with use_mem_pool(MemPool()):
            middle = x * 2
        result = middle + 1
        del middle
    memory.empty_cache(x.device)
    tensors = [(gt.full((COUNT,), 7.0, device=x.device), np.full(COUNT, 7.0)) for _ in range(8)]
    check_replays(captured, x, result, rng)
    check_kept(tensors)


def test_pool_counts_a_graph_as_holder_and_gets_its_memory_back(x, rng):
    memory.empty_cache(x.device)
    pool = MemPool()
    first, one = captured_inside(pool, x)
    second, two = captured_inside(pool, x, first.pool())
    assert pool.use_count() == 3
    reserved = sum(part["total_size"] for part in pool.snapshot())
    name = f"reserved_bytes_by_private_pools.0_{pool.id[1]}.all.current"
    assert memory.memory_stats(x.device)[name] == reserved > 0
    del first
    assert pool.use_count() == 2
    check_replays(second, x, two, rng)
    del second, one, two
    assert pool.use_count() == 1
    memory.empty_cache(x.device)
    assert pool.snapshot() == []
    assert memory.memory_stats(x.device)[name] == 0


def test_graphs_of_different_pools_do_not_share_memory_freed_in_a_third_pool(x, rng):
    """Their replays are not ordered with each other."""
    pool = MemPool()
    first, one = captured_inside(pool, x)
    second, two = captured_inside(pool, x)
    for _ in range(3):
        with gt.Stream():
            first.replay()
        with gt.Stream():
            second.replay()
        np.testing.assert_array_equal(one.numpy(), x.numpy() * 2 + 1)
        np.testing.assert_array_equal(two.numpy(), x.numpy() * 2 + 1)
    parts = [part["address"] for part in pool.snapshot()]
    assert len(parts) >= 2


def test_pool_used_on_oom_keeps_what_a_capture_freed(x, rng):
    pool = MemPool(use_on_oom=True)
    captured, result = captured_inside(pool, x)
    assert pool.use_count() == 2
    check_replays(captured, x, result, rng)


def test_streams_that_join_a_capture_keep_the_pool_as_well(x, rng):
    pool = MemPool()
    captured = CUDAGraph()
    gt.synchronize()
    side = gt.Stream()
    with graph(captured):
        origin = gt.current_stream()
        side.wait_stream(origin)
        with side:
            with use_mem_pool(pool):
                middle = x * 2
            result = middle + 1
            del middle
        origin.wait_stream(side)
    del pool
    memory.empty_cache(x.device)
    tensors = [(gt.full((COUNT,), 7.0, device=x.device), np.full(COUNT, 7.0)) for _ in range(8)]
    check_replays(captured, x, result, rng)
    check_kept(tensors)


# ---- addresses ----


def check_refused(ptr):
    gc.collect()  # garbage of earlier tests would be freed in between
    before = memory.memory_allocated()
    with pytest.raises(ValueError, match=r"^mem_ptr: got 0x[0-9a-f]+; expected an address that"):
        memory.caching_allocator_delete(ptr)
    assert memory.memory_allocated() == before


def address_of(tensor):
    return tensor.data_ptr()


def test_memory_of_a_tensor_is_not_given_back_by_its_address(x, rng):
    kept = eager_of(MemPool(), rng)
    value = x.numpy()
    check_refused(address_of(x))
    failed = []

    def foreign():
        try:
            memory.caching_allocator_delete(address_of(x))
        except ValueError as error:
            failed.append(error)

    thread = threading.Thread(target=foreign)
    thread.start()
    thread.join()
    assert len(failed) == 1
    others = [gt.full((COUNT,), 3.0, device=x.device) for _ in range(4)]
    np.testing.assert_array_equal(x.numpy(), value)
    check_kept(kept)
    del others


def test_address_is_given_back_once_by_any_thread_and_at_its_start():
    ptr = memory.caching_allocator_alloc(1 << 21)
    for offset in (1, 512, 4096, 1 << 20):
        check_refused(ptr + offset)
    outcomes = []

    def give_back():
        try:
            memory.caching_allocator_delete(ptr)
            outcomes.append("given back")
        except ValueError:
            outcomes.append("refused")

    threads = [threading.Thread(target=give_back) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["given back"] + ["refused"] * 5
    check_refused(ptr)


def test_pinned_memory_is_not_given_back_by_its_address(place):
    pinned = memory.pinned_buffer(4096, place)
    check_refused(np.frombuffer(pinned, "u1").__array_interface__["data"][0])


def test_a_stale_address_does_not_free_the_tensor_that_reuses_it(place):
    ptr = memory.caching_allocator_alloc(COUNT * 4)
    memory.caching_allocator_delete(ptr)
    tensors = [gt.zeros(COUNT, dtype="float32", device=place) for _ in range(4)]
    check_refused(ptr)
    assert all(float(gt.sum(tensor)) == 0 for tensor in tensors)


# ---- captures and threads ----


def in_thread(function):
    """The result of `function` in a new thread, or its error as text: a traceback keeps objects."""
    found = []

    def run():
        try:
            found.append(function())
        except Exception as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()
    return found[0]


@pytest.mark.parametrize("mode", ["global", "thread_local"])
def test_capture_continues_when_another_thread_fails_to_end_it(x, rng, mode):
    captured = CUDAGraph()
    gt.synchronize()
    with gt.Stream():
        captured.capture_begin(capture_error_mode=mode)
        error = in_thread(captured.capture_end)
        assert "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD" in error
        result = x * 2 + 1
        captured.capture_end()
    check_replays(captured, x, result, rng)
    gt.synchronize()


def test_relaxed_capture_may_be_ended_by_another_thread(x, rng):
    captured = CUDAGraph()
    gt.synchronize()
    with gt.Stream():
        captured.capture_begin(capture_error_mode="relaxed")
        result = x * 2 + 1
        assert in_thread(captured.capture_end) is None
    check_replays(captured, x, result, rng)


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("who", ["the same thread", "another thread", "a thread for another"])
def test_graph_that_is_dropped_ends_its_capture(place, mode, who):
    kept = [CUDAGraph()]

    def begin():
        with gt.Device(place), gt.Stream():
            kept[0].capture_begin(capture_error_mode=mode)
            kept.append(gt.zeros(10))

    begin() if who != "a thread for another" else in_thread(begin)
    if mode != "relaxed" and who == "another thread":
        assert "WRONG_THREAD" in in_thread(kept[0].capture_end)
    kept.clear() if who == "the same thread" else in_thread(kept.clear)
    assert kept == []
    gt.synchronize(place)
    again = CUDAGraph()
    with graph(again):
        y = gt.full((10,), 4.0)
    again.replay()
    assert y.tolist() == [4.0] * 10


def test_finished_work_can_be_captured_while_its_stream_is_busy(place, rng):
    """A thread queues work in the meantime on the stream that wrote what the capture reads."""
    values = [rng.integers(0, 100, COUNT).astype(np.float32) for _ in range(2)]
    x, busy = (gt.asarray(value, device=place) for value in values)
    gt.synchronize(place)
    captured = CUDAGraph()
    with gt.Stream():
        captured.capture_begin(capture_error_mode="thread_local")

        def more():
            with gt.Device(place):
                for _ in range(20):
                    gt.add(busy, 0, out=busy)

        in_thread(more)
        result = x * 2 + 1
        captured.capture_end()
    captured.replay()
    np.testing.assert_array_equal(result.numpy(), values[0] * 2 + 1)


def test_threads_capture_finished_work_at_the_same_time(place):
    errors = []
    start = threading.Barrier(2)

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            with gt.Device(place):
                for _ in range(12):
                    value = rng.integers(0, 100, 200).astype(np.float32)
                    x = gt.asarray(value, device=place) + 1
                    read = x
                    start.wait(30)
                    gt.current_stream(place).synchronize()
                    captured = CUDAGraph()
                    with graph(captured, capture_error_mode="thread_local"):
                        y = read * 3
                    for _ in range(5):
                        x = x + 1  # on the default stream, beside the other thread's capture
                    captured.replay()
                    np.testing.assert_array_equal(y.numpy(), (value + 1) * 3)
        except BaseException as error:
            errors.append(error)
            start.abort()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert errors == [] and not any(thread.is_alive() for thread in threads)


def test_replay_after_the_wait_is_waited_for_again(place):
    """An earlier wait for the memory does not mean that the writes of a later replay are done."""
    x = gt.zeros(COUNT, dtype="float32", device=place)
    gt.synchronize(place)
    adds = CUDAGraph()
    with graph(adds):
        x += 1
    gt.synchronize(place)
    for turn in range(1, 6):
        adds.replay()
        captured = CUDAGraph()
        try:
            with gt.Stream():
                captured.capture_begin(capture_error_mode="thread_local")
                y = x * 2
                captured.capture_end()
        except RuntimeError as error:
            assert "graph capture" in str(error)
            del captured
        else:
            captured.replay()
            np.testing.assert_array_equal(y.numpy(), np.full(COUNT, 2.0 * turn))
        gt.synchronize(place)
