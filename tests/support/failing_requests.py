"""Requests that fail, and the checks of every failure."""

import contextlib
import ctypes

import pytest

from gputensor import memory
from gputensor._alloc import foreign as raw_memory
from gputensor._alloc.explain import out_of_memory
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.support.driver_calls import HEADER_WORDS, SIGNATURES

MIB = 1 << 20
REASONS = {
    "exhausted",
    "fragmented",
    "waiting on streams",
    "idle private pool",
    "limit",
    "other processes",
}


def fail(device, nbytes, stream=0):
    """Make a request that must fail, check its error, and return it."""
    before = memory.memory_stats(device)
    free, total = memory.mem_get_info(device)
    with pytest.raises(OutOfMemoryError) as caught:
        raw_memory.raw_alloc(device, nbytes, stream)
    error = caught.value
    facts, message, stats = error.facts, str(error), memory.memory_stats(device)
    assert error.reason in REASONS
    assert "\n" not in message
    assert f"reason: {error.reason} (" in message
    assert facts["requested"] == nbytes
    assert facts["allocated"] == before["allocated_bytes.all.current"]
    assert facts["allocated"] == stats["allocated_bytes.all.current"]
    assert facts["reserved"] == stats["reserved_bytes.all.current"]
    assert (facts["free"], facts["total"]) == memory.mem_get_info(device)
    assert facts["total"] == total
    for name in ("requested", "allocated", "reserved", "free", "total", "largest_free_block"):
        assert out_of_memory.amount(facts[name]) in message
    free_blocks = [
        block["size"]
        for segment in memory.memory_snapshot(device=device)
        if segment["segment_pool_id"] == (0, 0) and segment["address"] != 0
        for block in segment["blocks"]
        if block["state"] == "inactive"
    ]
    if not facts["is_private"]:
        assert facts["largest_free_block"] == max(free_blocks, default=0)
    assert stats["num_ooms"] + stats["num_oom_rejections"] == (
        before["num_ooms"] + before["num_oom_rejections"] + 1
    )
    return error


def serves(device, nbytes):
    raw_memory.raw_delete(raw_memory.raw_alloc(device, nbytes, 0))
    return True


def comb(device, count, nbytes, stream=0):
    """Fill a device with blocks, free every second one, and return the others."""
    held = [raw_memory.raw_alloc(device, nbytes, stream) for _ in range(count)]
    for ptr in held[::2]:
        raw_memory.raw_delete(ptr)
    return held[1::2]


@contextlib.contextmanager
def refusing(device, status, *names):
    """Have entries of a device's table return a status at every call."""
    table = (ctypes.c_void_p * (HEADER_WORDS + len(SIGNATURES))).from_address(
        registry.table_address(device)
    )
    refuse = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: status)
    before = list(table)
    for name in names:
        table[HEADER_WORDS + list(SIGNATURES).index(name)] = ctypes.cast(refuse, ctypes.c_void_p)
    try:
        yield
    finally:
        for i in range(HEADER_WORDS, len(before)):
            table[i] = before[i]
