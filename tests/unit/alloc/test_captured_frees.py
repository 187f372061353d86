"""graph_capture_record_stream_reuse: blocks that several streams used, reused inside a capture."""

import ctypes
import random

import numpy as np
import pytest

from gputensor import memory
from gputensor._alloc import check as checker
from gputensor._alloc import foreign as raw_memory
from gputensor._driver import registry
from gputensor.graphs import CUDAGraph
from gputensor.streams import Device, Event, Stream
from tests.support.alloc_probe import MIB, opened
from tests.support.driver_calls import HEADER_WORDS, INT, PTR, SIGNATURES, U64

REUSE = "graph_capture_record_stream_reuse:True"
NBYTES = 3 * MIB


class Capture:
    """A capture under way on a stream, with a second stream that has joined it."""

    def __init__(self, probe):
        self.probe = probe
        self.main, self.side = Stream(), Stream()
        self.graph = CUDAGraph()

    def __enter__(self):
        self.main.__enter__()
        self.graph.capture_begin()
        self.follow(self.side, self.main)
        return self

    def __exit__(self, *error):
        try:
            self.follow(self.main, self.side)
            self.graph.capture_end()
        finally:
            self.main.__exit__(*error)

    def follow(self, later, earlier):
        """Order all later work of one stream behind the work already queued on the other."""
        event = Event()
        event.record(earlier)
        later.wait_event(event)

    def malloc(self, nbytes=NBYTES, stream=None):
        return self.probe.malloc(nbytes, (stream or self.main).cuda_stream)

    def fill(self, ptr, value, stream=None):
        handle = (stream or self.main).cuda_stream
        assert self.probe.calls.fill_async(ptr, value, 4, NBYTES // 4, handle) == 0

    def copy(self, target, ptr, stream):
        assert self.probe.calls.copy_async(target, ptr, 64, stream.cuda_stream) == 0

    def use_and_free(self, ptr, target):
        """Let the side stream read the block, then free it."""
        self.follow(self.side, self.main)
        self.copy(target, ptr, self.side)
        raw_memory.raw_record_stream(ptr, self.side.cuda_stream)
        self.probe.free(ptr)


def opened_with_results(conf, seed, count=8):
    """A device, and pinned words that captured copies write to."""

    class Opened:
        def __enter__(self):
            self.context = opened(conf, capacity=128 * MIB, seed=seed)
            self.probe = self.context.__enter__()
            self.results = self.probe.calls.make("pinned_alloc", 64 * count)
            return self.probe, self.results

        def __exit__(self, *error):
            self.probe.calls.synchronize()
            self.probe.calls.pinned_free(self.results)
            return self.context.__exit__(*error)

    return Opened()


def words(address, count=16):
    return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address))


@pytest.mark.parametrize("option", [True, False])
def test_a_block_is_reused_in_the_graph_once_its_order_allows_it(option):
    conf = f"graph_capture_record_stream_reuse:{option}"
    with opened_with_results(conf, None) as (probe, results), Device(probe.device):
        with Capture(probe) as capture:
            first = capture.malloc()
            capture.fill(first, 7)
            capture.use_and_free(first, results)
            early = capture.malloc()
            assert early != first, "the side stream may still read it"
            assert checker.check(probe.device) == []
            probe.free(early)
            taken = capture.malloc()  # `early` is free on its own stream at once
            assert taken == early
            capture.follow(capture.main, capture.side)
            late = capture.malloc()
            assert (late == first) is option
            assert checker.check(probe.device) == []
            probe.free_all()
        capture.graph.reset()


def test_a_block_is_reused_before_other_free_memory():
    with opened_with_results(REUSE, None) as (probe, results), Device(probe.device):
        with Capture(probe) as capture:
            first = capture.malloc(512)
            capture.use_and_free(first, results)
            assert capture.malloc(512) != first, "the side stream may still read it"
            capture.follow(capture.main, capture.side)
            assert capture.malloc(512) == first
            probe.free_all()
        capture.graph.reset()


def test_the_default_is_pytorchs():
    with opened():
        assert memory.get_allocator_settings()["graph_capture_record_stream_reuse"].value is False


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_replays_read_what_was_written_before_the_reuse(seed):
    """In every replay the side stream reads each value before the next one overwrites it."""
    with opened_with_results(REUSE, seed) as (probe, results), Device(probe.device):
        with Capture(probe) as capture:
            places = set()
            for turn in range(5):
                ptr = capture.malloc()
                places.add(ptr)
                capture.fill(ptr, 100 + turn)
                capture.use_and_free(ptr, results + 64 * turn)
                capture.follow(capture.main, capture.side)
            assert len(places) == 1
            assert checker.check(probe.device) == []
        for _ in range(3):
            words(results, 16 * 5)[:] = 0
            capture.graph.replay()
            assert probe.calls.synchronize() == 0
            for turn in range(5):
                assert (words(results + 64 * turn) == 100 + turn).all()
        capture.graph.reset()


def random_capture(rng, probe, results, count):
    """Allocate blocks, read them on another stream and free them; sometimes one stream waits.


    Returns how often an address was reused, and how many replayed values were wrong.
    """
    reused, wrong, seen = 0, 0, set()
    with Device(probe.device):
        with Capture(probe) as capture:
            for turn in range(count):
                stream = rng.choice([capture.main, capture.main, capture.side])
                other = capture.side if stream is capture.main else capture.main
                ptr = capture.malloc(stream=stream)
                reused += ptr in seen
                seen.add(ptr)
                capture.fill(ptr, 1000 + turn, stream)
                capture.follow(other, stream)
                capture.copy(results + 64 * turn, ptr, other)
                raw_memory.raw_record_stream(ptr, other.cuda_stream)
                probe.free(ptr)
                if rng.random() < 0.5:
                    capture.follow(stream, other)
                assert checker.check(probe.device) == []
        for _ in range(2):
            words(results, 16 * count)[:] = 0
            capture.graph.replay()
            assert probe.calls.synchronize() == 0
            for turn in range(count):
                wrong += bool((words(results + 64 * turn) != 1000 + turn).any())
        capture.graph.reset()
    return reused, wrong


@pytest.mark.parametrize("attempt", range(8))
def test_random_captures_never_overwrite_what_is_read(attempt):
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    with opened_with_results(REUSE, seed, 24) as (probe, results):
        reused, wrong = random_capture(random.Random(seed), probe, results, 24)
    assert reused > 0 and wrong == 0


def test_a_wrong_order_reported_by_the_driver_shows_in_the_values():
    """The planted bug: the driver reports that every node comes before the current one."""
    prototype = ctypes.CFUNCTYPE(INT, PTR, U64, PTR, INT, PTR)

    @prototype
    def follows_always(filler, stream, nodes, count, follows):
        ctypes.memset(follows, 1, count)
        return 0

    wrong = 0
    for seed in range(40):
        with opened_with_results(REUSE, seed, 24) as (probe, results):
            words_of_table = len(SIGNATURES) + HEADER_WORDS
            table = (ctypes.c_void_p * words_of_table).from_address(
                registry.table_address(probe.device)
            )
            place = HEADER_WORDS + list(SIGNATURES).index("capture_follows")
            table[place] = ctypes.cast(follows_always, ctypes.c_void_p).value
            wrong += random_capture(random.Random(seed), probe, results, 24)[1]
        if wrong:
            return
    raise AssertionError("no value showed the planted bug")


def test_the_capture_proves_nothing_about_uses_outside_of_it():
    with opened(REUSE, capacity=128 * MIB) as probe, Device(probe.device):
        outside = probe.stream()
        with Capture(probe) as capture:
            ptr = capture.malloc()
            raw_memory.raw_record_stream(ptr, outside)
            probe.free(ptr)
            capture.follow(capture.main, capture.side)
            assert capture.malloc() != ptr
        probe.free_all()
        capture.graph.reset()


def test_a_block_allocated_before_the_capture_is_not_reused_until_it_ends():
    with opened(REUSE, capacity=128 * MIB) as probe, Device(probe.device):
        with Capture(probe) as capture:
            pass
        before = probe.malloc(NBYTES)
        with Capture(probe) as capture:
            raw_memory.raw_record_stream(before, capture.side.cuda_stream)
            probe.free(before)
            capture.follow(capture.main, capture.side)
            assert capture.malloc() != before
            assert probe.stats()["active.large_pool.current"] == 2
        probe.free_all()
        probe.malloc(512)
        assert probe.stats()["active.large_pool.current"] == 0
        capture.graph.reset()


def test_blocks_not_reused_by_the_graph_return_when_the_capture_ends():
    with opened(REUSE, capacity=128 * MIB) as probe, Device(probe.device):
        results = probe.calls.make("pinned_alloc", 64)
        with Capture(probe) as capture:
            ptr = capture.malloc()
            capture.use_and_free(ptr, results)
            assert probe.stats()["active_bytes.all.current"] == NBYTES
        probe.calls.synchronize()
        probe.malloc(512)
        assert probe.stats()["active_bytes.all.current"] == 512
        assert probe.calls.pinned_free(results) == 0
        capture.graph.reset()


def test_blocks_are_not_reused_when_the_driver_cannot_report_the_order():
    for name in ("capture_nodes", "capture_follows"):
        with opened_with_results(REUSE, None) as (probe, results), Device(probe.device):
            with Capture(probe) as capture:
                ptr = capture.malloc()
                capture.fill(ptr, 1)
                if name == "capture_nodes":
                    registry.fail_call(probe.device, 1, status=911, name=name)
                capture.use_and_free(ptr, results)
                capture.follow(capture.main, capture.side)
                if name == "capture_follows":
                    registry.fail_call(probe.device, 1, status=911, name=name)
                assert capture.malloc() != ptr
                probe.free_all()
            capture.graph.reset()
