"""Private pools: memory set apart for some requests."""

import contextlib
import os
import weakref

from gputensor._alloc import raw_memory
from gputensor._alloc.device_allocator import open_allocator
from gputensor._alloc.pool_names import note_user_pool, pool_pair
from gputensor._driver.registry import after_fork
from gputensor.memory.events import memory_snapshot
from gputensor.streams.device_number import device_number

__all__ = [
    "MemPool",
    "use_mem_pool",
]

_pools: weakref.WeakSet["MemPool"] = weakref.WeakSet()


class MemPool:
    """A set of memory of its own: requests in :func:`use_mem_pool` are served from it.

    Its free memory serves nobody else while the object lives.

    Parameters
    ----------
    device : optional
        Where it is first held; default: the current device.
    use_on_oom : bool
        Lend the pool's free blocks to requests outside of any pool that would fail otherwise. They
        come back when those are freed.
    no_split : bool
        Never cut a block of the pool, nor join two: a request takes a whole free block, or new
        memory of its size rounded up to the device's pages (with ``expandable_segments:False``, a
        whole segment).

    Examples
    --------
    >>> pool = MemPool("host")
    >>> pool.use_count(), pool.id[0]
    (1, 0)
    """

    def __init__(self, device=None, *, use_on_oom=False, no_split=False):
        for name, value in (("use_on_oom", use_on_oom), ("no_split", no_split)):
            if not isinstance(value, bool):
                raise TypeError(f"{name}: got {type(value).__name__}, allowed: bool")
        self._devices = {}
        _pools.add(self)
        self._kind = use_on_oom, no_split
        self._number = raw_memory.new_pool_id()
        note_user_pool(self._number)
        self._hold(device_number(device))

    def _hold(self, number):
        if number not in self._devices:
            open_allocator(number)
            raw_memory.retain_pool(number, self._number)
            self._devices[number] = True
            raw_memory.set_pool_kind(number, self._number, *self._kind)

    @property
    def id(self):
        """The pair that names the pool in snapshots."""
        return pool_pair(self._number)

    def use_count(self):
        """Return how many holders the pool has: this object, and blocks of :func:`use_mem_pool`."""
        return max(
            (raw_memory.count_pool_uses(number, self._number) for number in self._devices),
            default=0,
        )

    def snapshot(self, include_traces=True):
        """Return the pool's segments in PyTorch's schema."""
        return memory_snapshot(self.id, include_traces)

    def __reduce__(self):
        # A copy would give back a hold that is not its own.
        raise TypeError("cannot copy or pickle a MemPool")

    def __del__(self):
        for number in getattr(self, "_devices", ()):
            raw_memory.release_pool(number, self._number)


@after_fork
def _forget(device):
    """In the child of a fork, where no pool is held: each is held again when it is used."""
    for pool in _pools:
        pool._devices.pop(device, None)


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Serve this thread's requests on a device from a :class:`MemPool` in a ``with`` block.

    Should the block end in another thread, it ends for the one in which it began; in the child of a
    fork inside of it, requests are served as outside.
    """
    if not isinstance(pool, MemPool):
        raise TypeError(f"pool: got {type(pool).__name__}, allowed: MemPool")
    number = device_number(device)
    pool._hold(number)
    process = os.getpid()
    raw_memory.retain_pool(number, pool._number)
    try:
        thread = raw_memory.begin_pool(number, pool._number)
        try:
            yield
        finally:
            if os.getpid() == process:
                raw_memory.end_pool(number, pool._number, thread)
    finally:
        if os.getpid() == process:
            raw_memory.release_pool(number, pool._number)
