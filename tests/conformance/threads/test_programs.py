"""Threads on one device: work keeps the order of its streams and of the uses of its memory.

Each scenario once failed as it stands here; the random programs search for similar faults.
`python -m tests.conformance.threads.threaded_programs` runs many of those.
"""

import random
import time

import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph, graph
from gputensor.streams import Device, Stream, ordering
from tests.conformance.threads.threaded_programs import KINDS, campaign, devices, run_threads

ADDITIONS = 100
LARGE = 8 << 20  # float32 elements, 32 MB: two rounds of pinned buffers


def kind_or_skip(kind):
    if kind == "cuda" and not registry.cuda_device_count():
        pytest.skip("needs a CUDA device: run this on a machine with an NVIDIA GPU and driver")
    return kind


@pytest.fixture(params=KINDS)
def any_device(request):
    """A device, current for the test, of each kind; deferring ones have a fresh seed."""
    seed = random.SystemRandom().getrandbits(32)
    number, close = devices(kind_or_skip(request.param), seed)
    print(f"{request.param}: seed {seed}")
    with Device(number):
        yield number
        gt.synchronize()
    close()


def range_of(tensor):
    values = tensor.numpy()
    return values.min(), values.max()


def adder(x, device, stream=None, times=ADDITIONS):
    """A body that adds 1 to `x`, on a new stream by default."""

    def body():
        with Device(device), stream or Stream():
            y = x
            for _ in range(times):
                y += 1

    return body


def replayer(captured, device, times=ADDITIONS):
    def body():
        with Device(device), Stream():
            for _ in range(times):
                captured.replay()

    return body


def captured_addition(x):
    captured = CUDAGraph()
    with graph(captured):
        y = x
        y += 1
    return captured


@pytest.mark.parametrize("size", [1000, 100_000])
def test_additions_of_threads_to_one_tensor_on_one_stream_all_arrive(any_device, size):
    for shared in (gt.default_stream(), Stream()):
        x = gt.zeros(size)
        run_threads([adder(x, any_device, shared)] * 4)
        assert range_of(x) == (4 * ADDITIONS,) * 2


@pytest.mark.parametrize("size", [1000, 100_000])
@pytest.mark.parametrize("interval", [1e-5, None])
def test_additions_of_threads_to_one_tensor_on_own_streams_all_arrive(any_device, size, interval):
    for _ in range(3):
        x = gt.zeros(size)
        run_threads([adder(x, any_device)] * 4, interval)
        assert range_of(x) == (4 * ADDITIONS,) * 2


def test_additions_on_one_stream_need_no_automatic_order(any_device):
    x, shared = gt.zeros(100_000), Stream()
    shared.wait_stream(gt.default_stream())
    add = adder(x, any_device, shared)

    def body():
        with ordering("manual"):
            add()

    run_threads([body] * 4)
    gt.synchronize()
    assert range_of(x) == (4 * ADDITIONS,) * 2


@pytest.mark.parametrize(("size", "reads"), [(1000, 300), (100_000, 100), (LARGE, 8)])
@pytest.mark.parametrize("is_shared", [False, True], ids=["own-streams", "one-stream"])
def test_reads_beside_a_writer_are_not_torn(any_device, size, reads, is_shared):
    x, shared, done = gt.zeros(size), Stream() if is_shared else None, []
    torn = []

    def write():
        with Device(any_device), shared or Stream():
            y = x
            while not done:
                y += 1
                time.sleep(1e-4)

    def read():
        try:
            with Device(any_device), shared or Stream():
                for _ in range(reads):
                    low, high = range_of(x)
                    if low != high:
                        torn.append((low, high))
        finally:
            done.append(True)

    run_threads([write, read])
    assert not torn, f"{len(torn)} of {reads} reads were torn: {torn[:5]}"


def test_large_reads_beside_replays_are_not_torn(any_device):
    x, done, torn = gt.zeros(LARGE), [], []
    captured = captured_addition(x)

    def write():
        with Device(any_device), Stream():
            while not done:
                captured.replay()
                time.sleep(1e-3)

    def read():
        try:
            with Device(any_device), Stream():
                for _ in range(8):
                    low, high = range_of(x)
                    if low != high:
                        torn.append((low, high))
        finally:
            done.append(True)

    run_threads([write, read])
    assert not torn, f"torn reads: {torn}"


@pytest.mark.parametrize("kind", KINDS)
def test_eight_threads_that_add_and_replay_end_and_all_additions_arrive(kind):
    for _ in range(40 if kind == "deferred" else 10):
        seed = random.SystemRandom().getrandbits(32)
        number, close = devices(kind_or_skip(kind), seed)
        print(f"{kind}: seed {seed}")
        with Device(number):
            x = gt.zeros(1000)
            captured = captured_addition(x)
            bodies = [adder(x, number, times=50), replayer(captured, number, times=50)]
            run_threads(bodies * 4, 1e-5)
            gt.synchronize()
            assert range_of(x) == (400, 400)
        del x, captured, bodies
        close()


@pytest.mark.parametrize("size", [1000, 100_000])
def test_replays_of_two_graphs_by_threads_all_arrive(any_device, size):
    for _ in range(5):
        x = gt.zeros(size)
        graphs = [captured_addition(x), captured_addition(x)]
        run_threads([replayer(graphs[i % 2], any_device, 50) for i in range(8)], 1e-5)
        gt.synchronize()
        assert range_of(x) == (400, 400)


def test_replays_of_one_graph_on_several_streams_by_threads_all_arrive(any_device):
    x, other = gt.zeros(100_000), gt.zeros(100_000)
    captured = CUDAGraph()
    with graph(captured):
        y, z = x, other
        y += 1
        z += y
    run_threads([replayer(captured, any_device)] * 4, 1e-5)
    gt.synchronize()
    assert range_of(x) == (400, 400)
    assert range_of(other) == (400 * 401 / 2,) * 2


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_of_threads_give_the_result_of_any_order(kind):
    first = random.SystemRandom().getrandbits(40)
    print(f"programs from seed {first}")
    assert campaign(kind_or_skip(kind), range(first, first + 40)) == 40
