"""The map from addresses to blocks, which callers that hold only an address use."""

import os
import random

import pytest

from gputensor._alloc import foreign as raw_memory
from gputensor._driver import registry

MIB = 1 << 20
WINDOW = 256 << 10  # blocks of at least this size have cells of their own


@pytest.fixture
def open_phantom():
    """A function that opens phantom host devices, which are closed after the test."""
    numbers = []

    def open_one():
        numbers.append(registry.open_host(capacity=1 << 35, phantom=True))
        return numbers[-1]

    yield open_one
    for number in numbers:
        registry.close_host(number)


def resident_nbytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_each_address_names_its_block_and_no_other_does(open_phantom, seed):
    rng = random.Random(seed)
    device = open_phantom()
    held = {}
    for _ in range(3000):
        if held and rng.random() < 0.45:
            ptr = rng.choice(list(held))
            raw_memory.raw_delete(ptr)
            del held[ptr]
            with pytest.raises(ValueError, match="an address that"):
                raw_memory.raw_delete(ptr)
        else:
            nbytes = rng.choice((512, 4096, WINDOW - 512, WINDOW, WINDOW + 512, 2 * MIB - 512))
            held[raw_memory.raw_alloc(device, nbytes, 0)] = nbytes
        for ptr in rng.sample(list(held), min(len(held), 3)):
            wrong = ptr + 512 * rng.randrange(1, 600)
            if wrong not in held:
                with pytest.raises(ValueError, match="an address that"):
                    raw_memory.raw_delete(wrong)
    for ptr in held:
        raw_memory.raw_delete(ptr)


def test_large_blocks_take_no_page_of_host_memory_each(open_phantom):
    device = open_phantom()
    raw_memory.raw_delete(raw_memory.raw_alloc(device, 8192 * MIB, 0))  # makes the pages
    before = resident_nbytes()
    held = [raw_memory.raw_alloc(device, 2 * MIB, 0) for _ in range(4096)]
    assert resident_nbytes() - before < 6 * MIB  # with a page for each: 16 MiB more
    for ptr in held:
        raw_memory.raw_delete(ptr)


def test_a_small_block_may_begin_where_a_closed_device_had_a_large_one():
    taken = set()
    for _ in range(20):
        device = registry.open_host(capacity=64 * MIB, phantom=True)
        taken.add(raw_memory.raw_alloc(device, 2 * MIB, 0))
        registry.close_host(device)
        device = registry.open_host(capacity=64 * MIB, phantom=True)
        ptr = raw_memory.raw_alloc(device, 512, 0)
        raw_memory.raw_delete(ptr)
        registry.close_host(device)
        if ptr in taken:
            return
    pytest.skip("the system gives out other addresses")
