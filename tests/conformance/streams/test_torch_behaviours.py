"""What programs written for torch.cuda rely on, in tables of calls and results.

The calls run on the current device, which is each device in turn. docs/streams.md lists where the
library differs from PyTorch on purpose.
"""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import gputensor as gt
from gputensor import cuda, memory
from gputensor._driver import registry


@pytest.fixture(autouse=True)
def current(place):
    """Make the device current during a test."""
    with gt.Device(place):
        yield


def recorded(**options):
    """Return a recorded event, whose work is done."""
    event = gt.Event(**options)
    event.record()
    event.synchronize()
    return event


def captured(function, **options):
    """Return a graph of one call of a function, and the call's result."""
    graph = cuda.CUDAGraph(**options)
    with cuda.graph(graph):
        result = function()
    return graph, result


class Foreign:
    """A stream of another library."""

    def __init__(self, handle, version=0):
        self.handle, self.version = handle, version

    def __cuda_stream__(self):
        return self.version, self.handle


# A call, and what it returns.
RESULTS = {
    "stream of a handle": (lambda: gt.ExternalStream((s := gt.Stream()).cuda_stream) == s, True),
    "streams differ": (lambda: gt.Stream() == gt.Stream(), False),
    "stream and number": (lambda: gt.Stream() == 3, False),
    "hash of streams": (
        lambda: hash(gt.ExternalStream((s := gt.Stream()).cuda_stream)) == hash(s), True),
    "stream protocol": (lambda: (s := gt.Stream()).__cuda_stream__() == (0, s.cuda_stream), True),
    "priorities": (lambda: (r := gt.Stream.priority_range())[0] >= r[1], True),
    "priority is limited": (
        lambda: gt.Stream(priority=-100).priority == gt.Stream.priority_range()[1], True),
    "no stream to set": (lambda: cuda.set_stream(None), None),
    "waiting for itself": (lambda: (s := gt.Stream()).wait_stream(s), None),
    "waiting for no record": (lambda: gt.Stream().wait_event(gt.Event()), None),
    # Streams share handles with those of earlier tests, whose work may not be done.
    "many streams": (
        lambda: gt.synchronize() or all(s.query() for s in [gt.Stream() for _ in range(100)]),
        True,
    ),
    "foreign stream": (lambda: gt.Event().record(Foreign(gt.Stream().cuda_stream)), None),
    "event without record": (
        lambda: ((e := gt.Event()).query(), e.device, e.cuda_event), (True, None, 0)),
    "event in words": (
        lambda: [repr(e) for e in (gt.Event(), gt.Event(enable_timing=True))],
        ["<Event not recorded timing=False>", "<Event not recorded timing=True>"]),
    "recorded event in words": (
        lambda: repr(e := recorded()).split()
        == f"<Event device={gt.Device()} handle={e.cuda_event:#x} timing=False>".split(), True),
    "event's device": (lambda: recorded().device == gt.Device(), True),
    "event of a dropped stream": (lambda: gt.Stream().record_event().synchronize(), None),
    "time to itself": (lambda: (e := recorded(enable_timing=True)).elapsed_time(e), 0.0),
    "time backwards": (
        lambda: (first := recorded(enable_timing=True)) is not None
        and recorded(enable_timing=True).elapsed_time(first) <= 0, True),
    "subclass of Event": (lambda: type("Own", (gt.Event,), {})().query(), True),
    "no capture": (
        lambda: (gt.Stream().is_capturing(), cuda.is_current_stream_capturing()), (False, False)),
    "pool handles": (lambda: len({cuda.graph_pool_handle() for _ in range(9)}), 9),
    "reset without capture": (lambda: cuda.CUDAGraph().reset(), None),
    "two pools": (lambda: memory.MemPool().id == memory.MemPool().id, False),
    "holders of a pool": (lambda: memory.MemPool().use_count(), 1),
    "unknown pool": (lambda: memory.memory_snapshot((0, 1 << 40)), []),
    "peers": (lambda: cuda.can_device_access_peer("host", "host"), False),
    "nothing to allocate": (lambda: memory.caching_allocator_alloc(0), 0),
    "order of statistics": (
        lambda: list(stats := memory.memory_stats()) == sorted(stats), True),
    "summary": (
        lambda: len(memory.memory_summary()) > len(memory.memory_summary(abbreviated=True)), True),
    "metadata": (memory.get_memory_metadata, ""),
    "states of CUDA devices": (lambda: len(cuda.get_rng_state_all()), cuda.device_count()),
    "nothing to set": (lambda: cuda.set_rng_state_all([]), None),
    "shared memory": (cuda.ipc_collect, None),
    "devices of other objects": (lambda: cuda.device_of(3).__enter__(), None),
    "built": (gt.backends.cuda.is_built, True),
    "library": (lambda: gt.backends.cuda.preferred_blas_library("default"), "auto"),
}  # fmt: skip

# A call, the kind of error that it raises, and a part of the message.
ERRORS = {
    "default stream": (lambda: cuda.CUDAGraph().capture_begin(), RuntimeError, "default stream"),
    "no capture to end": (lambda: cuda.CUDAGraph().capture_end(), RuntimeError, "not capturing"),
    "no capture to replay": (lambda: cuda.CUDAGraph().replay(), RuntimeError, "capture"),
    "handle not kept": (lambda: captured(lambda: gt.ones(3))[0].raw_cuda_graph(), RuntimeError,
                        "keep_graph"),
    "not instantiated": (
        lambda: captured(lambda: gt.ones(3), keep_graph=True)[0].raw_cuda_graph_exec(),
        RuntimeError, "instantiate"),
    "value in a capture": (lambda: captured(lambda: gt.ones(3).tolist()), RuntimeError, "captured"),
    "wait in a capture": (lambda: captured(gt.synchronize), RuntimeError, "captur"),
    "mode": (lambda: cuda.make_graphed_callables(lambda x: x + 1, (gt.ones(3),),
                                                 capture_error_mode="x"), ValueError, "mode"),
    "untimed event": (lambda: recorded().elapsed_time(recorded()), ValueError, "enable_timing"),
    "timed and shared": (lambda: gt.Event(enable_timing=True, interprocess=True), ValueError,
                         "interprocess"),
    "time of text": (lambda: recorded(enable_timing=True).elapsed_time("x"), TypeError, "Event"),
    "wait for a number": (lambda: gt.Stream().wait_event(3), TypeError, "Event"),
    "record on text": (lambda: gt.Event().record("x"), TypeError, "stream"),
    "version of a stream": (lambda: gt.Event().record(Foreign(1, 7)), ValueError, "7"),
    "whole fraction": (lambda: memory.set_per_process_memory_fraction(1), TypeError, "float"),
    "large fraction": (lambda: memory.set_per_process_memory_fraction(1.5), ValueError, "1.5"),
    "negative size": (lambda: memory.caching_allocator_alloc(-1), ValueError, "size"),
    "too much": (lambda: gt.empty(1 << 50), gt.OutOfMemoryError, "out of memory"),
    "more than addresses": (lambda: gt.empty(1 << 62, dtype="int8"), gt.OutOfMemoryError,
                            "out of memory"),
    "more pinned than addresses": (lambda: memory.pinned_buffer(1 << 70), gt.OutOfMemoryError,
                                   "out of pinned host memory"),
    "pool of text": (lambda: memory.memory_snapshot("x"), TypeError, "mempool_id"),
    "unknown action": (lambda: memory.record_memory_history(skip_actions=["x"]), ValueError, "x"),
    "unknown option": (lambda: memory.set_allocator_settings("x:1"), ValueError, "x"),
    "divisions": (lambda: memory.set_allocator_settings("roundup_power2_divisions:3"), ValueError,
                  "power of 2"),
    "unknown tracker": (lambda: memory.detach_allocator_tracker(len), ValueError, "attached"),
    "unknown listener": (lambda: gt.device.detach_listener(len), ValueError, "attached"),
    "unknown observer": (
        lambda: memory.detach_out_of_memory_observer(len), ValueError, "attached"),
    "less than nothing": (lambda: cuda.tunable.set_rotating_buffer_size(-1), ValueError, "-1"),
    "unknown flag": (lambda: gt.backends.cuda.matmul.allow_fp64, AttributeError, "allow_fp64"),
    "no precision": (lambda: gt.set_float32_matmul_precision(None), TypeError, "precision"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_result(name):
    call, expected = RESULTS[name]
    result = call()
    assert (type(result), result) == (type(expected), expected)


@pytest.mark.filterwarnings("ignore:The CUDA graph is empty")
@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    call, kind, part = ERRORS[name]
    with pytest.raises(kind, match=f"(?i){part}"):
        call()
    assert not cuda.is_current_stream_capturing()
    assert gt.sum(gt.ones(3)).item() == 3


@pytest.mark.parametrize("make", [gt.Stream, gt.Event, cuda.CUDAGraph, memory.MemPool])
def test_weak_references_end_with_the_object(make):
    one = make()
    reference = weakref.ref(one)
    assert reference() is one
    del one
    gc.collect()
    assert reference() is None


def test_copy_between_devices(rng):
    values = rng.random((2, 3), np.float32)
    there = gt.asarray(values, device="host")
    for shape, dtype in (((2, 3), "float32"), ((4, 2, 3), "float64")):
        x = gt.full(shape, np.nan, dtype=dtype)
        assert x.copy_(there) is x and x.device == gt.Device()
        np.testing.assert_array_equal(x.numpy(), np.broadcast_to(values.astype(dtype), shape))
    y = gt.full((3, 2), np.nan, device="host")
    y.T.copy_(x[0])
    np.testing.assert_array_equal(y.numpy(), values.T)
    with pytest.raises(ValueError, match="broadcast"):
        x.copy_(gt.zeros(5, device="host"))


def test_device_of_a_tensor_is_current_in_a_block():
    before = gt.Device()
    with cuda.device_of(gt.ones(3, device="host")):
        assert str(gt.Device()) == "host"
    with cuda.device_of("text"):
        assert gt.Device() == before
    assert gt.Device() == before


def test_flags_of_products_are_attributes():
    flags = gt.backends.cuda.matmul
    try:
        flags.allow_tf32 = True
        assert gt.blas.allow_tf32() and flags.fp32_precision == "tf32"
        for precision, name in (("bf16x9", "bf16x9"), ("bf16", "medium"), ("ieee", "highest")):
            flags.fp32_precision = precision
            assert gt.get_float32_matmul_precision() == name
            assert flags.fp32_precision == precision
            assert flags.allow_tf32 is (precision == "bf16")  # as in PyTorch: not the highest
        gt.set_float32_matmul_precision("high")
        assert flags.allow_tf32
        flags.allow_tf32 = False
        flags.allow_bf16_reduced_precision_reduction = (False, False)
        assert flags.allow_bf16_reduced_precision_reduction_split_k is False
        for name, value, kind in (
            ("allow_tf32", 1.5, TypeError),
            ("allow_tf32", None, TypeError),
            ("fp32_precision", "none", ValueError),
            ("fp32_precision", None, ValueError),
            ("allow_bf16_reduced_precision_reduction_split_k", True, AttributeError),
            ("allow_all", True, AttributeError),
        ):
            with pytest.raises(kind, match=name):
                setattr(flags, name, value)
        assert all(isinstance(getattr(flags, name), (bool, str)) for name in dir(flags))
    finally:
        gt.set_float32_matmul_precision("highest")
        flags.allow_bf16_reduced_precision_reduction = (False, True)


@pytest.fixture
def report_mode():
    """Restore the mode in which reads that wait are reported."""
    yield
    cuda.set_sync_debug_mode("default")


READS = {
    "numpy": lambda x: x.numpy(),
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x[0].item(),
    "float": lambda x: float(x[0]),
    "bool": lambda x: bool(x[0] == 0),
    "repr": repr,
    "mask": lambda x: x[x > 0],
    "nonzero": gt.nonzero,
    "array": np.asarray,
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("name", READS)
def test_read_that_waits_is_reported(name, report_mode):
    x, read = gt.arange(5), READS[name]
    cuda.set_sync_debug_mode("warn")
    assert cuda.get_sync_debug_mode() == 1
    with pytest.warns(UserWarning, match="waits here for a device") as caught:
        read(x)
    assert {one.filename for one in caught} <= {__file__, pickle.__file__}
    cuda.set_sync_debug_mode(2)
    with pytest.raises(RuntimeError, match="waits here for a device"):
        read(x)
    cuda.set_sync_debug_mode("default")
    read(x)


def test_work_that_does_not_read_values_is_not_reported(report_mode):
    cuda.set_sync_debug_mode("error")
    x = gt.asarray(np.arange(5.0)) + 1
    x[1:] = 3
    with gt.stream(gt.Stream()) as stream:
        y = gt.sum(x) * 2
        stream.synchronize()
    recorded()
    gt.synchronize()
    gt.zeros(0).numpy()
    for wrong in ("x", 3, -1, True, None):
        with pytest.raises(ValueError, match="^debug_mode: got"):
            cuda.set_sync_debug_mode(wrong)
    assert cuda.get_sync_debug_mode() == 2
    cuda.set_sync_debug_mode("default")
    assert y.item() == 2 * (1 + 4 * 3)


def test_graphed_callable_takes_a_mode(rng):
    for mode in ("global", "thread_local", "relaxed"):
        double = cuda.make_graphed_callables(
            lambda x: x * 2, (gt.zeros(5),), capture_error_mode=mode
        )
        values = rng.random(5, np.float32)
        np.testing.assert_array_equal(double(gt.asarray(values)).numpy(), 2 * values)


def test_streams_of_threads_are_their_own():
    stream, seen = gt.Stream(), []

    def work():
        seen.append(gt.current_stream() == stream)
        gt.set_stream(stream)
        seen.append(gt.current_stream() == stream)

    before = gt.current_stream()
    with gt.Device("host"):
        stream = gt.Stream()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [False, True] and gt.current_stream() == before


def test_memory_of_a_capture_is_kept_for_its_replays(rng):
    values = rng.random(1000, np.float32)
    x, y = gt.asarray(values), gt.zeros(1000)

    def work():
        y[...] = x + gt.full(1000, 2.0)

    graph, _ = captured(work)
    gc.collect()
    junk = [gt.full(1000, np.nan) for _ in range(50)]
    graph.replay()
    np.testing.assert_array_equal(y.numpy(), values + 2)
    assert len(junk) == 50


def test_split_limit_of_a_device_before_and_after_its_first_use():
    number = registry.open_host(capacity=16 << 20)
    try:
        for _ in range(2):
            assert memory.memory_stats(number)["max_split_size"] == -1
            memory.set_allocator_settings("max_split_size_mb:64")
            assert memory.memory_stats(number)["max_split_size"] == 64 << 20
            memory.set_allocator_settings("max_split_size_mb:none")
            gt.ones(3, device=number)
    finally:
        registry.close_host(number)


def test_an_error_of_missing_memory_survives_a_pickle():
    with pytest.raises(gt.OutOfMemoryError) as caught:
        gt.empty(1 << 50)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
