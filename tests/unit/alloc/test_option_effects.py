"""Every option of the allocator has a visible effect, or is documented as having none and has none.

One table gives for each option what to observe, and what two or more of its values must show. An
option without a row fails. So does a row whose values all show the same, unless the documentation
of the option says that it is accepted without effect.
"""

import ctypes
import os
import threading

import pytest

from gputensor import memory
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import history
from gputensor._alloc import observe as report
from gputensor._alloc.config import options, settings
from gputensor._alloc.observe.accounts import pinned_statistics
from gputensor._alloc.pinned import PinnedMemory, empty_cache
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from gputensor.streams import Device
from tests.support.alloc_probe import MIB, opened
from tests.support.driver_calls import HEADER_WORDS, INT, PTR, SIGNATURES, SIZE
from tests.unit.alloc.test_captured_frees import Capture

PLAIN = "expandable_segments:False,thread_cache:False,"


def fits(probe, nbytes):
    try:
        probe.free(probe.malloc(nbytes))
    except OutOfMemoryError:
        return False
    return True


def driver_used(probe):
    probe.malloc(5 * MIB)
    names = ("mem_alloc", "page_map", "async_alloc")
    return [name for name in names if probe.made().get(name)]


def reserved_for_3_mib(probe):
    probe.malloc(3 * MIB)
    return probe.reserved() // MIB


def small_request_takes_a_large_block(probe):
    whole = probe.malloc(64 * MIB)
    probe.free(whole)
    return probe.malloc(30 * MIB) == whole


def request_takes_a_larger_unsplit_block(probe):
    whole = probe.malloc(80 * MIB)
    probe.free(whole)
    return probe.malloc(50 * MIB) == whole


def reserved_after_growth_beside_cached_segments(probe):
    probe.free_all([probe.malloc(30 * MIB) for _ in range(4)])
    probe.malloc(60 * MIB)
    return probe.reserved() // MIB


def allocated_for(nbytes):
    def observe(probe):
        probe.malloc(nbytes)
        return report.allocated_nbytes(probe.device)

    return observe


def others_allocate_while_the_driver_makes_memory(probe):
    """Whether requests of another thread go on while mem_alloc blocks one thread."""
    for nbytes in (512, 3 * MIB):
        probe.free(probe.malloc(nbytes))
    inside, go_on = threading.Event(), threading.Event()
    words = len(SIGNATURES) + HEADER_WORDS
    table = (ctypes.c_void_p * words).from_address(registry.table_address(probe.device))
    place = HEADER_WORDS + list(SIGNATURES).index("mem_alloc")
    prototype = ctypes.CFUNCTYPE(INT, PTR, PTR, SIZE)
    before = table[place]

    @prototype
    def slow(filler, ptr, nbytes):
        inside.set()
        go_on.wait(10)
        return prototype(before)(filler, ptr, nbytes)

    table[place] = ctypes.cast(slow, ctypes.c_void_p).value
    try:
        thread = threading.Thread(target=lambda: probe.malloc(50 * MIB))
        thread.start()
        inside.wait(10)
        probe.malloc(512)
        probe.malloc(2 * MIB)
        served = not go_on.is_set() and thread.is_alive()
        go_on.set()
        thread.join()
    finally:
        table[place] = before
    return served


def captured_block_is_reused(probe):
    with Device(probe.device):
        results = probe.calls.make("pinned_alloc", 64)
        with Capture(probe) as capture:
            ptr = capture.malloc()
            capture.use_and_free(ptr, results)
            capture.follow(capture.main, capture.side)
            is_reused = ptr in [capture.malloc() for _ in range(4)]  # reuse comes before growth
            probe.free_all()
        capture.graph.reset()
        assert probe.calls.synchronize() == probe.calls.pinned_free(results) == 0
    return is_reused


def most_that_fits(probe):
    return max(size for size in range(0, 257, 32) if size == 0 or fits(probe, size * MIB))


def rejections_and_what_is_left_cached(probe):
    probe.free(probe.malloc(60 * MIB))
    assert not fits(probe, 120 * MIB)
    return probe.stats()["num_oom_rejections"], probe.reserved() // MIB


def pinned_entry_used(probe):
    probe.malloc(512)
    probe.mark()
    with_memory = PinnedMemory(probe.device, 3 * MIB)
    names = [name for name in ("pinned_alloc", "pinned_register") if probe.made().get(name)]
    del with_memory
    return names


def threads_beside_while_pinning(probe):
    """Whether any thread is seen besides this one and the one that pins."""
    probe.malloc(512)
    ours, stop, most = len(os.listdir("/proc/self/task")), threading.Event(), [0]

    def pin():
        for _ in range(6):
            PinnedMemory(probe.device, 96 * MIB)
            empty_cache(probe.device)
        stop.set()

    thread = threading.Thread(target=pin)
    thread.start()
    while not stop.is_set():
        most[0] = max(most[0], len(os.listdir("/proc/self/task")) - ours - 1)
    thread.join()
    return most[0] > 0


def calls_of_pinned_memory_that_waits(probe):
    """Include the number of threads: the option adds neither a thread nor a driver call."""
    stream = probe.stream()
    ours = threading.active_count(), len(os.listdir("/proc/self/task"))
    for _ in range(5):
        held = PinnedMemory(probe.device, 10_000)
        held.used_on(stream)
        del held
    beside = threading.active_count() - ours[0], len(os.listdir("/proc/self/task")) - ours[1]
    return beside, sorted(probe.made().items())


def pinned_segment(probe):
    held = PinnedMemory(probe.device, MIB)
    made = pinned_statistics(probe.device)["allocated_bytes.current"] // MIB
    del held
    return made


def pinned_size_of_10_kib(probe):
    probe.malloc(512)
    return [PinnedMemory(probe.device, nbytes).capacity for nbytes in (10_240, 3 * MIB + 512)]


def pinned_memory_kept(probe):
    held = [PinnedMemory(probe.device, 4 * MIB) for _ in range(3)]
    held.clear()
    return pinned_statistics(probe.device)["allocated_bytes.current"] // MIB


def pages_for_100_mib(probe):
    for _ in range(20):
        probe.malloc(5 * MIB)
    return "many" if probe.made()["page_create"] > 20 else "few"


def pages_move_between_pools(probe):
    probe.free_all([probe.malloc(MIB) for _ in range(40)])
    probe.malloc(512)
    probe.mark()
    probe.malloc(230 * MIB)
    return "page_destroy" not in probe.made()


def free_neighbours_stay_apart(probe):
    probe.free_all([probe.malloc(4096) for _ in range(10)])
    return len(report.collect_segments(probe.device)[1]) > 5


def events_kept(probe):
    memory.record_memory_history()
    try:
        probe.free_all([probe.malloc(512) for _ in range(20)])
        return min(len(history.entries(probe.device)), 30)
    finally:
        memory.record_memory_history(None)


# Option -> (what to observe, settings placed before the option, {value: what it shows}).
EFFECTS = {
    "backend": (driver_used, "", {"native": ["page_map"], "cudaMallocAsync": ["async_alloc"]}),
    "large_segment_size_mb": (reserved_for_3_mib, PLAIN, {"20": 20, "12": 12, "64": 64}),
    "max_split_size_mb": (small_request_takes_a_large_block, PLAIN, {"32": False, "100": True}),
    "max_non_split_rounding_mb": (
        request_takes_a_larger_unsplit_block, PLAIN + "max_split_size_mb:32,",
        {"20": False, "29": False, "31": True},
    ),
    "garbage_collection_threshold": (
        reserved_after_growth_beside_cached_segments, PLAIN + "memory_limit_mb:200,",
        {"0.5": 90, "0.99": 180},
    ),
    "roundup_power2_divisions": (
        allocated_for(5 * MIB + 1),
        "",
        {"0": 5 * MIB + 512, "2": 6 * MIB, "4": 6 * MIB, "16": 5 * MIB + 256 * 1024,
         "[4:2,8:8,>:1]": 6 * MIB, "[1:4,>:0]": 5 * MIB + 512},
    ),
    "expandable_segments": (driver_used, "", {"True": ["page_map"], "False": ["mem_alloc"]}),
    "release_lock_on_cudamalloc": (
        others_allocate_while_the_driver_makes_memory, PLAIN, {"True": True, "False": True},
    ),
    "graph_capture_record_stream_reuse": (
        captured_block_is_reused, "", {"True": True, "False": False},
    ),
    "per_process_memory_fraction": (most_that_fits, "", {"1.0": 256, "0.5": 128, "0.0": 0}),
    "throw_on_cudamalloc_oom": (
        rejections_and_what_is_left_cached, PLAIN + "memory_limit_mb:100,",
        {"True": (1, 60), "False": (0, 0)},
    ),
    "pinned_use_cuda_host_register": (
        pinned_entry_used, "", {"True": ["pinned_register"], "False": ["pinned_alloc"]},
    ),
    "pinned_num_register_threads": (
        threads_beside_while_pinning, "pinned_use_cuda_host_register:True,",
        {"1": False, "8": True},
    ),
    "pinned_use_background_threads": (
        calls_of_pinned_memory_that_waits, "", {"True": None, "False": None},
    ),
    "pinned_reserve_segment_size_mb": (pinned_segment, "", {"1": 2, "8": 8, "32": 32}),
    "pinned_max_round_threshold_mb": (
        pinned_size_of_10_kib, "", {"0": [10_240, 3 * MIB + 512], "1": [10_240, 3 * MIB + 512]},
    ),
    "pinned_max_cached_size_mb": (pinned_memory_kept, "", {"0": 0, "8": 8, "100": 12}),
    "page_size_mb": (pages_for_100_mib, "", {"2": "many", "40": "few"}),
    "page_reuse": (pages_move_between_pools, "", {"True": True, "False": False}),
    "thread_cache": (free_neighbours_stay_apart, "", {"True": True, "False": False}),
    "memory_limit_mb": (most_that_fits, "", {"0": 256, "100": 96, "200": 192}),
    "history_max_entries": (events_kept, "", {"7": 7, "16": 16, "1000": 30}),
}  # fmt: skip
MEMORY_BEHIND = {"pinned_num_register_threads", "graph_capture_record_stream_reuse"}


def observe(option, value):
    look, before, _ = EFFECTS[option]
    phantom = option not in MEMORY_BEHIND
    with opened(f"{before}{option}:{value}", capacity=256 * MIB, phantom=phantom) as probe:
        assert memory.get_allocator_settings()[option].source == "environment"
        return look(probe)


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, row in EFFECTS.items() for value in row[2]]
)
def test_the_value_of_an_option_has_the_expected_effect(option, value):
    expected = EFFECTS[option][2][value]
    found = observe(option, value)
    assert expected is None or found == expected


def test_every_option_has_a_row_with_values_that_differ():
    assert set(EFFECTS) == set(options.OPTIONS)
    for option, (_, _, shown) in EFFECTS.items():
        distinct = {repr(effect) for effect in shown.values()}
        if options.OPTIONS[option].doc.startswith("Accepted without effect"):
            assert len(shown) > 1 and len(distinct) == 1, f"{option} should have no effect"
        else:
            assert len(distinct) > 1, f"{option}: no two values show a difference"


def test_options_without_effect_show_the_same_whatever_their_value():
    for option in ("pinned_use_background_threads", "pinned_max_round_threshold_mb"):
        first, second = (observe(option, value) for value in EFFECTS[option][2])
        assert first == second, option


# Options for plain segments; with `expandable_segments:True`, the default, they change nothing.
FOR_PLAIN_SEGMENTS = {
    "large_segment_size_mb": 6, "max_split_size_mb": True, "max_non_split_rounding_mb": True,
    "garbage_collection_threshold": 120,
}  # fmt: skip


@pytest.mark.parametrize("option", FOR_PLAIN_SEGMENTS)
def test_an_option_for_plain_segments_changes_nothing_in_virtual_ones_and_says_so(option):
    look, before, shown = EFFECTS[option]
    assert before.startswith(PLAIN), "the row of the option shows its effect in plain segments"
    before = before.removeprefix(PLAIN) + "thread_cache:False,"
    for value in shown:
        with opened(f"{before}{option}:{value}", phantom=True) as probe:
            assert look(probe) == FOR_PLAIN_SEGMENTS[option]
    assert "expandable_segments:True" in options.OPTIONS[option].doc


# Options of PyTorch's grammar that take effect again when they change at run time.
AT_RUN_TIME = {
    "large_segment_size_mb": ("20", "64"),
    "max_split_size_mb": ("100", "32"),
    "roundup_power2_divisions": ("0", "2"),
    "expandable_segments": ("False", "True"),
    "per_process_memory_fraction": ("1.0", "0.5"),
    "throw_on_cudamalloc_oom": ("False", "True"),
    "memory_limit_mb": ("0", "100"),
    "page_size_mb": ("40", "2"),
    "page_reuse": ("True", "False"),
    "thread_cache": ("True", "False"),
    "history_max_entries": ("16", "7"),
    "graph_capture_record_stream_reuse": ("False", "True"),
    "garbage_collection_threshold": ("0.99", "0.5"),
    "pinned_max_cached_size_mb": ("100", "0"),
    "pinned_reserve_segment_size_mb": ("32", "8"),
    "pinned_use_cuda_host_register": ("False", "True"),
}


@pytest.mark.parametrize("option", AT_RUN_TIME)
def test_an_option_that_is_changed_at_run_time_shows_at_once(option):
    first, second = AT_RUN_TIME[option]
    look, before, shown = EFFECTS[option]
    phantom = option not in MEMORY_BEHIND
    with opened(f"{before}{option}:{first}", capacity=256 * MIB, phantom=phantom) as probe:
        raw_memory.raw_delete(raw_memory.raw_alloc(probe.device, 512, 0))
        report.empty_cache(probe.device)
        probe.mark()
        others = memory.get_allocator_settings()
        memory.set_allocator_settings(f"{option}:{second}")
        changed = memory.get_allocator_settings()
        assert {name for name in others if others[name] != changed[name]} == {option}
        assert changed[option].source == settings.RUN_TIME
        assert look(probe) == shown[second]
