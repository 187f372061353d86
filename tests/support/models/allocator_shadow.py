"""A model of one device's allocator, compared with its statistics and with the memory itself.

Each block is filled in stream order with a distinct value when it is allocated, and read back in
stream order at random places just before it is freed, on its own stream and on the others that use
it. If a block is allocated while its memory is still in use, at any address, the new fill
overwrites the old value, and a later comparison finds it. The driver table is called directly, so
the same model works for a host device, deferred or not, and for a GPU.
"""

import ctypes
import random

import numpy as np

from gputensor import memory
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
from gputensor._alloc.observe.statistics_names import STATISTICS_KEYS
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.support.driver_calls import Calls
from tests.support.internals import view_blocks

UNIT = 512
MIB = 1 << 20
PROBES = 6
SLOTS = 1 << 16
ALLOCATED, PENDING_FREE = 1, 2  # states of a block in a snapshot


class Held:
    """A block of a caller: address, bytes requested, bytes allocated, value, stream."""

    def __init__(self, ptr, nbytes, rounded, value, stream):
        self.ptr = ptr
        self.nbytes = nbytes
        self.rounded = rounded
        self.value = value
        self.stream = stream
        self.readers = []


def round_up(nbytes):
    """Return the size of the block for a request if no rounding option is set."""
    return max(UNIT, (nbytes + UNIT - 1) // UNIT * UNIT)


def c_symbols():
    """Return the C symbols of the allocator through ctypes, which releases the GIL in each call."""
    library = ctypes.CDLL(memory.c_library())
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.gputensor_malloc.restype = pointer
    library.gputensor_malloc.argtypes = [size, number, pointer]
    library.gputensor_free.restype = None
    library.gputensor_free.argtypes = [pointer, size, number, pointer]
    library.gputensor_record_stream.restype = number
    library.gputensor_record_stream.argtypes = [pointer, pointer]
    return library


class Shadow:
    """The device `number` as its callers see it, compared with the allocator.

    Parameters
    ----------
    number : int
        An open device whose allocator has no other user.
    streams : int
        Streams to make in addition to stream 0.
    rng : random.Random
        Selects the places that are read.
    """

    def __init__(self, number, streams=3, rng=None):
        self.device = number
        self.calls = Calls(number)
        self.rng = rng or random.Random(0)
        self.streams = [0] + [self.calls.make("stream_create", 0) for _ in range(streams)]
        for stream in self.streams[1:-1]:  # the last is not declared permanent
            core.stream_own(number, stream)
        self.slots = self.calls.make("pinned_alloc", SLOTS * 4)
        self.expected = []
        self.held = []
        self.next_value = 1
        self.library = c_symbols()
        self.out_of_memory_count = 0

    # Actions of callers.

    def malloc(self, nbytes, stream=0):
        """Allocate and fill a block, or return None if memory is exhausted."""
        try:
            ptr = raw_memory.raw_alloc(self.device, nbytes, self.streams[stream])
        except OutOfMemoryError:
            self.out_of_memory_count += 1
            return None
        assert ptr % UNIT == 0
        block = Held(ptr, nbytes, round_up(nbytes), self.next_value, stream)
        self.next_value += 1
        words = (nbytes + 3) // 4
        self.succeed("fill_async", ptr, block.value, 4, words, self.streams[stream])
        self.held.append(block)
        return block

    def use(self, block, stream, early=False):
        """Read the block on another stream, after its fill; with `early`, record the use first."""
        if stream == block.stream:
            self.read(block, stream)
            return
        if early:
            raw_memory.raw_record_stream(block.ptr, self.streams[stream])
        event = self.calls.make("event_create", 0)
        self.succeed("event_record", event, self.streams[block.stream])
        self.succeed("stream_wait_event", self.streams[stream], event)
        self.succeed("event_destroy", event)
        self.read(block, stream)
        if not early:
            raw_memory.raw_record_stream(block.ptr, self.streams[stream])

    def free(self, block):
        """Read the block on its stream and free it."""
        self.held.remove(block)
        self.read(block, block.stream)
        raw_memory.raw_delete(block.ptr)

    def free_on(self, block, stream):
        """Free the block through the C symbol, naming a stream that has just used it."""
        self.use(block, stream, early=True)
        self.held.remove(block)
        self.library.gputensor_free(block.ptr, block.nbytes, self.device, self.streams[stream])

    def read(self, block, stream):
        """Queue copies of some of the block's words to the results."""
        words = (block.nbytes + 3) // 4
        places = {0, words - 1, words // 2}
        while len(places) < min(PROBES, words):
            places.add(self.rng.randrange(words))
        for place in places:
            if len(self.expected) == SLOTS:
                self.compare()
            slot = self.slots + 4 * len(self.expected)
            self.expected.append(block.value)
            self.succeed("copy_async", slot, block.ptr + 4 * place, 4, self.streams[stream])

    def succeed(self, name, *arguments):
        status = getattr(self.calls, name)(*arguments)
        assert status == 0, f"{name}{arguments} gave {status}"

    # Checks.

    def compare(self):
        """Wait for the device and compare the values read with those written."""
        self.succeed("synchronize")
        words = (ctypes.c_uint32 * max(len(self.expected), 1)).from_address(self.slots)
        got = np.array(words[: len(self.expected)], np.uint32)
        wrong = np.flatnonzero(got != np.array(self.expected, np.uint32))
        assert not len(wrong), (
            f"{len(wrong)} of {len(got)} words were overwritten while in use, first read "
            f"{wrong[0]}: {got[wrong[0]]:#x} instead of {self.expected[wrong[0]]:#x}"
        )
        self.expected.clear()

    def stats(self):
        return dict(zip(STATISTICS_KEYS, report.all_values(self.device)[0], strict=True))

    def check(self):
        """Check the invariants, the statistics against the model, and a snapshot against both."""
        faults = checker.check(self.device)
        assert not faults, faults
        stats = self.stats()
        assert stats["allocation.all.current"] == len(self.held)
        assert stats["requested_bytes.all.current"] == sum(b.nbytes for b in self.held)
        allocated = stats["allocated_bytes.all.current"]
        assert allocated == report.allocated_nbytes(self.device)
        assert allocated >= sum(b.rounded for b in self.held)
        segments, blocks = report.collect_segments(self.device)
        mine = blocks["state"] == ALLOCATED
        waiting = blocks["state"] == PENDING_FREE
        assert {b.ptr for b in self.held} == set(blocks["address"][mine].tolist())
        assert mine.sum() == stats["allocation.all.current"]
        assert (mine | waiting).sum() == stats["active.all.current"]
        assert blocks["nbytes"][mine].sum() == allocated
        assert blocks["nbytes"][mine | waiting].sum() == stats["active_bytes.all.current"]
        assert blocks["requested"].sum() == stats["requested_bytes.all.current"]
        reserved = stats["reserved_bytes.all.current"]
        assert report.collect_segments(self.device, True)[0]["nbytes"].sum() == reserved
        spans = sorted((b.ptr, b.ptr + b.nbytes) for b in self.held)
        for before, after in zip(spans, spans[1:], strict=False):
            assert before[1] <= after[0], "two blocks overlap"

    def views(self):
        """Return how many of the held blocks are in views."""
        found = set(view_blocks(self.device))
        assert found <= {b.ptr for b in self.held} | self.waiting()
        return sum(b.ptr in found for b in self.held)

    def waiting(self):
        """Return the addresses of freed blocks that still wait for a stream."""
        _, blocks = report.collect_segments(self.device)
        return set(blocks["address"][blocks["state"] == PENDING_FREE].tolist())

    def finish(self):
        """Free everything; no memory may remain reserved, and all values read must be right."""
        for block in list(self.held):
            self.free(block)
        self.compare()
        report.empty_cache(self.device)
        stats = self.stats()
        assert stats["reserved_bytes.all.current"] == 0
        for name, value in stats.items():
            if name.endswith(".current"):
                assert value == 0, name
            if name.endswith(".allocated"):
                assert value == stats[name.replace(".allocated", ".freed")], name
        device_allocator.close_allocator(self.device)
        self.succeed("pinned_free", self.slots)
        if self.device < 0:  # streams of a GPU are permanent
            for stream in self.streams[1:]:
                self.succeed("stream_destroy", stream)
            left = registry.leaks(self.device)
            assert not any(left.values()), left


# (weight, range) of sizes in random programs: small, medium, and large ones that fragment memory.
SIZES = (
    (30, (1, 2048)),
    (25, (2048, MIB)),
    (20, (MIB, 8 * MIB)),
    (20, (8 * MIB, 24 * MIB)),
    (5, (24 * MIB, 40 * MIB)),
)


def random_size(rng):
    low, high = rng.choices([span for _, span in SIZES], [weight for weight, _ in SIZES])[0]
    return rng.choice([low, high, rng.randint(low, high)])


def random_step(shadow, rng, budget):
    """Take one random step; the held bytes vary around `budget`."""
    live = sum(block.rounded for block in shadow.held)
    kind = rng.random()
    if kind < 0.45 and (live < budget or rng.random() < 0.3):
        stream = rng.choice([0, 0, *range(len(shadow.streams))])
        shadow.malloc(random_size(rng), stream)
    elif kind < 0.80 and shadow.held:
        block = rng.choice(shadow.held)
        if rng.random() < 0.25:
            shadow.free_on(block, rng.randrange(len(shadow.streams)))
        else:
            shadow.free(block)
    elif kind < 0.95 and shadow.held:
        block = rng.choice(shadow.held)
        shadow.use(block, rng.randrange(len(shadow.streams)), early=rng.random() < 0.5)
    elif kind < 0.96:
        report.empty_cache(shadow.device)
    elif kind < 0.97:
        shadow.succeed("stream_synchronize", rng.choice(shadow.streams))
    elif kind < 0.975:
        shadow.compare()
    elif shadow.held:  # repeated frees and requests of one size: hits of the thread cache
        block = rng.choice(shadow.held)
        nbytes, stream = block.nbytes, block.stream
        for _ in range(4):
            shadow.free(block)
            block = shadow.malloc(nbytes, stream)
            if block is None:
                break


def fragment(shadow, rng):
    """Make holes on one stream, then request more than any of them has: views and gathering."""
    stream = rng.randrange(len(shadow.streams))
    nbytes = rng.randrange(2 * MIB, 7 * MIB)
    blocks = [shadow.malloc(nbytes, stream) for _ in range(rng.randrange(6, 14))]
    for block in blocks[:: rng.choice([2, 2, 3])]:
        if block is not None:
            shadow.free(block)
    shadow.malloc(nbytes * rng.choice([2, 3, 4]) + rng.randrange(MIB), stream)


def random_program(number, seed, steps=300, budget=100 * MIB, check_every=1):
    """Run a random program on a device; return the finished model."""
    rng = random.Random(seed)
    shadow = Shadow(number, rng=rng)
    shadow.most_views = 0
    for step in range(steps):
        if rng.random() < 0.03:
            fragment(shadow, rng)
        random_step(shadow, rng, budget)
        if step % check_every == 0:
            shadow.check()
            shadow.most_views = max(shadow.most_views, shadow.views())
    shadow.finish()
    return shadow
