"""A separate host device for a test of the allocator, with the queries that tests need."""

import contextlib
import ctypes

from gputensor._alloc import (
    allocator as device_allocator,
)
from gputensor._alloc import (
    check as checker,
)
from gputensor._alloc import (
    core,
)
from gputensor._alloc import (
    foreign as raw_memory,
)
from gputensor._alloc import (
    observe as report,
)
from gputensor._alloc import (
    pinned as pinned_memory,
)
from gputensor._alloc.config import settings as allocator_settings
from gputensor._alloc.observe.statistics_names import STATISTICS_KEYS
from gputensor._driver import registry
from gputensor.streams import order as event_pool
from tests.support.driver_calls import HEADER_WORDS, INT, PTR, SIGNATURES, Calls
from tests.support.internals import view_blocks

MIB = 1 << 20


class Probe:
    """An open host device: allocation by address, driver calls counted since `mark`."""

    def __init__(self, number):
        self.device = number
        self.calls = Calls(number)
        self.held = []
        self.streams = [0]

    def stream(self):
        """Make a stream that lasts as long as the device, like those of the library."""
        self.streams.append(self.foreign_stream())
        core.stream_own(self.device, self.streams[-1])
        return self.streams[-1]

    def foreign_stream(self):
        """Make a stream that its owner may destroy."""
        return self.calls.make("stream_create", 0)

    def malloc(self, nbytes, stream=0):
        ptr = raw_memory.raw_alloc(self.device, nbytes, stream)
        self.held.append(ptr)
        return ptr

    def free(self, ptr):
        self.held.remove(ptr)
        raw_memory.raw_delete(ptr)

    def free_all(self, pointers=None):
        for ptr in list(self.held if pointers is None else pointers):
            self.free(ptr)

    def work(self, ptr, stream, count=40):
        """Queue work of a stream on a block; a deferred device does it some time later."""
        for _ in range(count):
            assert self.calls.fill_async(ptr, 7, 4, 64, stream) == 0

    def stats(self):
        return dict(zip(STATISTICS_KEYS, report.all_values(self.device)[0], strict=True))

    def reserved(self):
        return self.stats()["reserved_bytes.all.current"]

    def mark(self):
        registry.reset_counts(self.device)

    def made(self):
        """Return the driver calls since `mark`, by name, without those that were not made."""
        return {name: n for name, n in registry.counts(self.device).items() if n}

    def asked_for_memory(self):
        return {name: n for name, n in self.made().items()
                if name in ("mem_alloc", "page_create", "page_map", "async_alloc")}  # fmt: skip

    def lies_in_a_view(self, ptr):
        return ptr in view_blocks(self.device)


@contextlib.contextmanager
def opened(conf="", capacity=256 * MIB, seed=None, phantom=False):
    """Open a device with a configuration; at the end no resource may be left."""
    before = allocator_settings.current()
    allocator_settings._in_force = allocator_settings.parse(conf)
    allocator_settings.tell()
    number = registry.open_host(capacity=capacity, seed=seed, phantom=phantom)
    try:
        probe = Probe(number)
        yield probe
        probe.free_all()
        faults = checker.check(number)
        assert not faults, faults
        device_allocator.close_allocator(number)
        pinned_memory.close(number)
        for stream in probe.streams[1:]:
            assert probe.calls.stream_destroy(stream) == 0
        event_pool.release_events(number)
        left = registry.leaks(number)
        left.pop("streams")  # the library keeps one to capture on
        assert not any(left.values()), left
    finally:
        registry.close_host(number)
        allocator_settings._in_force = before
        allocator_settings.tell()


@contextlib.contextmanager
def held_up(probe, name, hook):
    """Have an entry of the device's table call ``hook()``, without the lock, before its work."""
    table = (ctypes.c_void_p * (len(SIGNATURES) + HEADER_WORDS)).from_address(
        registry.table_address(probe.device)
    )
    place = HEADER_WORDS + list(SIGNATURES).index(name)
    kinds = [PTR if isinstance(kind, list) else kind for kind in SIGNATURES[name]]
    prototype = ctypes.CFUNCTYPE(INT, PTR, *kinds)
    before = table[place]

    @prototype
    def slow(*arguments):
        hook()
        return prototype(before)(*arguments)

    table[place] = ctypes.cast(slow, ctypes.c_void_p).value
    try:
        yield
    finally:
        table[place] = before
