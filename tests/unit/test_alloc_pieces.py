"""What is free serves any request that it is enough for, up to the last byte of the device.

When no page is partly used nothing is in pieces, whatever was there before, on whatever streams.
"""

import random

import pytest

from gputensor._alloc import checker, raw_memory
from tests.unit.alloc_probe import MIB, opened

PAGE = 2 * MIB


def sizes(rng, free):
    """Some pages, few or many, and now and then all that are left."""
    left = free // PAGE
    return PAGE * min(left, rng.choice([1, 1, 2, 3, 5, 8, 13, 21, left]))


@pytest.mark.parametrize("first", range(0, 400, 100))
@pytest.mark.parametrize("kind", ["one stream", "streams", "uses on other streams"])
def test_a_request_that_the_free_bytes_are_enough_for_is_served(first, kind):
    total = 128 * MIB
    for seed in range(first, first + 100):
        rng = random.Random(seed)
        with opened("page_size_mb:2", capacity=total, seed=seed, phantom=True) as probe:
            streams = [0] if kind == "one stream" else [0, probe.stream(), probe.stream()]
            held, free = [], total
            for _ in range(400):
                if held and (free == 0 or rng.random() < 0.5):
                    ptr, nbytes = held.pop(rng.randrange(len(held)))
                    if kind == "uses on other streams" and rng.random() < 0.3:
                        raw_memory.raw_record_stream(ptr, rng.choice(streams))
                    raw_memory.raw_delete(ptr)
                    free += nbytes
                else:
                    nbytes, stream = sizes(rng, free), rng.choice(streams)
                    ptr = raw_memory.raw_alloc(probe.device, nbytes, stream)
                    assert probe.calls.fill_async(ptr, 7, 4, 64, stream) == 0
                    held.append((ptr, nbytes))
                    free -= nbytes
            assert not checker.check(probe.device)
            for ptr, _ in held:
                raw_memory.raw_delete(ptr)
            assert probe.stats()["num_ooms"] == 0
