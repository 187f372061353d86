"""A request is refused only if it exceeds what the device and the whole free pages hold together.

The pages are followed in the driver calls, and the blocks by the program, so that the answer does
not come from the allocator.
"""

import random

import pytest

from gputensor._alloc import foreign as raw_memory
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.support.alloc_probe import MIB, opened

GRANULE = 2 * MIB


class Pages:
    """The sizes of the device's pages, and the addresses at which they are mapped."""

    def __init__(self, device):
        self.device, self.nbytes, self.at = device, {}, {}
        registry.start_trace(device)

    def follow(self):
        for name, status, arguments in registry.take_trace(self.device):
            first, second, *_ = (*arguments, 0, 0)
            if name == "page_create" and status == 0:
                self.nbytes[first] = second
            elif name == "page_destroy" and status == 0:
                del self.nbytes[first]
            elif name == "page_map" and status == 0:
                self.at[first] = arguments[2]
            elif name == "page_unmap" and status == 0:
                gone = [va for va in self.at if first <= va < first + second]
                for va in gone:
                    del self.at[va]
        registry.start_trace(self.device)

    def available(self, capacity, held):
        """Return the bytes of the device and of pages that hold no byte of a block."""
        used = {
            page
            for va, page in self.at.items()
            for ptr, nbytes in held.items()
            if va < ptr + nbytes and ptr < va + self.nbytes[page]
        }
        return capacity - sum(self.nbytes[page] for page in used)


def random_size(rng, most):
    if rng.random() < 0.7:
        return min(most, int(rng.lognormvariate(15, 2)) + 1)
    return rng.randrange(1, most)


@pytest.mark.parametrize("page_size", [2, 8, 40])
@pytest.mark.parametrize("streams", [1, 3])
def test_refused_requests_exceed_whole_free_pages_and_the_device(page_size, streams):
    refusals = 0
    for seed in range(8):
        rng = random.Random(seed)
        capacity, most = rng.choice([128, 256, 512]) * MIB, rng.choice([20, 60, 173]) * MIB
        with opened(f"page_size_mb:{page_size}", capacity, seed, phantom=True) as probe:
            handles = [0] + [probe.stream() for _ in range(streams - 1)]
            pages, held = Pages(probe.device), {}
            for _ in range(200):
                if held and rng.random() < 0.48:
                    ptr = rng.choice(list(held))
                    if rng.random() < 0.2:
                        raw_memory.raw_record_stream(ptr, rng.choice(handles))
                    del held[ptr]
                    raw_memory.raw_delete(ptr)
                    continue
                nbytes, stream = random_size(rng, most), rng.choice(handles)
                try:
                    ptr = raw_memory.raw_alloc(probe.device, nbytes, stream)
                except OutOfMemoryError:
                    refusals += 1
                    pages.follow()
                    need = -(-nbytes // GRANULE) * GRANULE
                    assert need > pages.available(capacity, held), (seed, nbytes)
                else:
                    held[ptr] = nbytes
                    probe.calls.fill_async(ptr, 7, 4, 1 + nbytes // 4 % 64, stream)
            registry.take_trace(probe.device)
            for ptr in held:
                raw_memory.raw_delete(ptr)
    assert refusals > 20
