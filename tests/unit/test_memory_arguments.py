"""Arguments of gt.memory: what is taken, and that a refusal names what came and what is allowed."""

import numpy as np
import pytest

from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError


@pytest.fixture
def device():
    number = registry.open_host(capacity=64 << 20)
    yield number
    registry.close_host(number)


def test_an_address_is_an_integer_and_that_of_an_allocation(device):
    ptr = memory.caching_allocator_alloc(4096, device)
    for wrong in (ptr + 512, 1 << 62, 1 << 80, -1, -ptr, True):
        for take in (memory.caching_allocator_delete, memory.where_allocated):
            with pytest.raises(ValueError, match="^ptr: got -?0x"):
                take(wrong)
    for wrong in (float(ptr), 0.0, str(ptr), None):
        match = f"^ptr: got {type(wrong).__name__}, allowed: an integer"
        for take in (memory.caching_allocator_delete, memory.where_allocated):
            with pytest.raises(TypeError, match=match):
                take(wrong)
        with pytest.raises(TypeError, match=match):
            memory.record_stream(wrong, 0, device)
    memory.caching_allocator_delete(ptr)


def test_a_size_is_an_integer_that_an_address_can_hold(device):
    for wrong in (-1, 1.5, "4", True, None, 2**62 + 1, 1 << 80):
        with pytest.raises(ValueError, match="^size: got .*, allowed: an integer from 0 to 2"):
            memory.caching_allocator_alloc(wrong, device)
    with pytest.raises(OutOfMemoryError, match="4194304.00 TiB requested"):
        memory.caching_allocator_alloc(2**62, device)


def test_sizes_and_addresses_may_be_integers_of_numpy(device):
    ptr = memory.caching_allocator_alloc(np.int64(4096), device)
    assert memory.memory_allocated(device) == 4096
    memory.caching_allocator_delete(np.uint64(ptr))
    assert memory.memory_allocated(device) == 0
    assert memory.pinned_buffer(np.prod([4, 8]), device).nbytes == 32


def test_an_observer_is_a_function_and_only_one_that_is_attached_can_be_detached():
    with pytest.raises(TypeError, match="^observer: got int, allowed: a function"):
        memory.attach_out_of_memory_observer(5)
    with pytest.raises(ValueError, match="^observer: got .*print.*, allowed: one that is attached"):
        memory.detach_out_of_memory_observer(print)


def test_a_dump_that_cannot_be_written_names_the_file_that_was_asked_for(device, tmp_path):
    for path in (tmp_path / "none" / "dump.pickle", tmp_path):
        with pytest.raises(OSError, match=r"(No such file|directory)") as caught:
            memory.dump_snapshot(path, device)
        assert caught.value.filename == str(path) and caught.value.filename2 is None
    assert list(tmp_path.iterdir()) == []
