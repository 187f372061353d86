"""Tensors that move between two devices: complete, in order, and without blocking.

The pairs are host devices that run work at once or defer it, and two GPUs if present.
"""

import gc
import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from tests.support.tensor_arrays import DTYPES, check_same, random_array

SEEDS = {"host": (None, None), "deferred": (11, 12), "mixed": (13, None)}


@pytest.fixture(params=[*SEEDS, "cuda"], scope="module")
def pair(request):
    """The numbers of two devices."""
    if request.param == "cuda":
        if registry.cuda_device_count() < 2:
            pytest.skip("needs two CUDA devices")
        yield 0, 1
        return
    numbers = [registry.open_host(capacity=256 << 20, seed=s) for s in SEEDS[request.param]]
    yield tuple(numbers)
    for number in numbers:
        registry.host_run_all(number)
    gc.collect()
    for number in numbers:
        registry.close_host(number)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_values_arrive_whole_from_any_view(pair, rng, dtype):
    for here, there in (pair, pair[::-1]):
        for shape in ((), (0, 3), (7,), (3, 4, 5)):
            a = random_array(rng, shape, dtype)
            x = gt.asarray(a, device=here)
            y = x.to_device(there)
            assert y.device == gt.Device(there) and y.is_contiguous
            check_same(y, a)
            check_same(x, a)
        a = random_array(rng, (6, 8), dtype)
        x = gt.asarray(a, device=here)
        check_same(x.T[::2, ::-1].to_device(there), a.T[::2, ::-1])
        check_same(gt.astype(x, "complex128", device=there), a.astype("complex128"))


def test_a_copy_is_queued_and_both_sides_are_ordered(pair, rng):
    """Random programs that move values back and forth on several streams agree with NumPy."""
    here, there = pair
    streams = {number: [gt.Stream(number) for _ in range(2)] for number in pair}
    for _ in range(6):
        model = [random_array(rng, (300,), "int64") for _ in range(4)]
        tensors = [gt.asarray(a, device=pair[i % 2]) for i, a in enumerate(model)]
        for _ in range(40):
            i, j = rng.integers(0, 4, 2)
            one, other = (streams[number][rng.integers(0, 2)] for number in pair)
            with gt.stream(one), gt.stream(other):
                action = rng.integers(0, 4)
                place = here if tensors[i].device == gt.Device(here) else there
                if action == 0:
                    moved = tensors[j].to_device(here if place == there else there)
                    tensors[i] = moved.copy() if moved is tensors[j] else moved
                    model[i] = model[j]
                elif action == 1:
                    tensors[i] += 3
                    model[i] = model[i] + 3
                elif action == 2:
                    tensors[i] = tensors[i] * 2 - tensors[j].to_device(place)
                    model[i] = model[i] * 2 - model[j]
                else:
                    tensors[i] = tensors[i].copy()
                    tensors[i] -= gt.sum(tensors[j].to_device(place))
                    model[i] = model[i] - model[j].sum()
        for tensor, expected in zip(tensors, model, strict=True):
            check_same(tensor, expected)


def test_dropping_or_overwriting_the_source_does_not_change_the_copy(pair, rng):
    here, there = pair
    for _ in range(25):
        a = random_array(rng, (4096,), "float32")
        x = gt.asarray(a, device=here)
        y = x.to_device(there)
        x[...] = np.nan
        del x
        poison = [gt.full(4096, np.nan, device=here) for _ in range(3)]
        z = y.to_device(here)
        del y
        poison += [gt.full(4096, np.nan, device=there) for _ in range(3)]
        check_same(z * 2, a * 2)
        del poison


def test_results_reuse_memory_only_after_earlier_work(pair, rng):
    here, there = pair
    for _ in range(25):
        a = random_array(rng, (2048,), "float32")
        used = gt.full(2048, 1.0, device=there)
        kept = used + 1
        x = gt.asarray(a, device=here)
        del used
        y = x.to_device(there)
        check_same(kept, np.full(2048, 2, np.float32))
        check_same(y, a)


def test_events_and_streams_of_two_devices_wait_for_each_other(pair, rng):
    here, there = pair
    with gt.ordering("manual"):
        for _ in range(10):
            one, other = gt.Stream(here), gt.Stream(there)
            with gt.stream(one), gt.stream(other):
                a = random_array(rng, (500,), "int64")
                x = gt.asarray(a, device=here) * 2
                event = one.record_event()
                other.wait_event(event)
                y = x.to_device(there) + 1
                one.wait_stream(other)
                check_same(y.to_device(here), a * 2 + 1)


def test_captures_refuse_copies_between_devices_with_a_reason(pair):
    here, there = pair
    x = gt.ones(8, device=here)
    gt.synchronize(here)
    graph = gt.graphs.CUDAGraph()
    with gt.Device(here), gt.graphs.graph(graph):
        with pytest.raises(gt.DriverError, match="a graph holds work of one device"):
            x.to_device(there)
        y = x + 1
    graph.replay()
    check_same(y, np.full(8, 2, np.float32))


def test_out_of_memory_on_the_target_changes_nothing(pair):
    here, there = pair
    wide = gt.broadcast_to(gt.ones(1, dtype="int8", device=here), (2**44,))
    with pytest.raises(gt.OutOfMemoryError):
        wide.to_device(there)
    x = gt.arange(5, device=here)
    check_same(x.to_device(there), np.arange(5))


def test_threads_copy_both_ways_at_once(pair):
    errors = []

    def work(own):
        try:
            here, there = pair[own % 2], pair[1 - own % 2]
            with gt.stream(gt.Stream(here)), gt.stream(gt.Stream(there)):
                for i in range(20):
                    a = np.full(700, own * 1000 + i, np.int64)
                    x = gt.asarray(a, device=here).to_device(there) + 1
                    check_same(x.to_device(here) * 2, (a + 1) * 2)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors, errors
    assert not any(thread.is_alive() for thread in threads)
