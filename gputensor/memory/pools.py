"""Private pools: memory set apart for some requests."""

import contextlib
import ctypes
from typing import NamedTuple

from gputensor._alloc import foreign as raw_memory
from gputensor._alloc.history.pool_names import note_user_pool, pool_pair
from gputensor.errors import argument_error
from gputensor.memory.events import memory_snapshot
from gputensor.memory.scopes import PoolBlock, PoolDevices
from gputensor.streams.queue import device_number

__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "PoolCheckpoint",
    "checkpoint_pool",
    "restore_pool",
    "use_mem_pool",
]


class CUDAPluggableAllocator:
    """Two C functions that give and take device memory, for a :class:`MemPool`.

    Parameters
    ----------
    path_to_so_file : str
        The library that has them.
    alloc_fn_name : str
        ``void* alloc(size_t nbytes, int device, void* stream)``; NULL for no memory. The address is
        a multiple of 512 at least.
    free_fn_name : str
        ``void free(void* ptr, size_t nbytes, int device, void* stream)``; all work of the device is
        done when it is called.

    Raises
    ------
    OSError
        The library cannot be loaded.
    AttributeError
        It lacks one of the functions.

    Notes
    -----
    They are called from any thread, without the GIL, and must not use this library.
    """

    def __init__(self, path_to_so_file, alloc_fn_name, free_fn_name):
        self._library = ctypes.CDLL(path_to_so_file)
        functions = (getattr(self._library, name) for name in (alloc_fn_name, free_fn_name))
        self.addresses = tuple(ctypes.cast(one, ctypes.c_void_p).value for one in functions)

    def allocator(self):
        """Return the object itself, as PyTorch's callers ask for it."""
        return self


class MemPool:
    """A set of memory of its own: requests in :func:`use_mem_pool` are served from it.

    Its free memory serves only this pool while the object lives.

    Parameters
    ----------
    device : optional
        Where it is first held; default: the current device.
    use_on_oom : bool
        Lend the pool's free blocks to requests outside of any pool that would fail otherwise. They
        come back when those are freed.
    allocator : CUDAPluggableAllocator, optional
        Where the pool's memory comes from; by default the driver. Its blocks are cached as others
        are, in segments that go back to the allocator when the pool is given up.
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

    def __init__(self, device=None, *, use_on_oom=False, no_split=False, allocator=None):
        for name, value in (("use_on_oom", use_on_oom), ("no_split", no_split)):
            if not isinstance(value, bool):
                raise argument_error(TypeError, name, value, "bool")
        if allocator is not None and not isinstance(allocator, CUDAPluggableAllocator):
            raise argument_error(TypeError, "allocator", allocator, "CUDAPluggableAllocator")
        self.allocator = allocator
        functions = None if allocator is None else allocator.addresses
        self._number = raw_memory.new_pool_id()
        self._devices = PoolDevices(self._number, use_on_oom, no_split, functions)
        note_user_pool(self._number)
        self._devices.hold(device_number(device))

    @property
    def id(self):
        """The pair that names the pool in snapshots."""
        return pool_pair(self._number)

    def use_count(self):
        """Return how many holders the pool has.

        This object, blocks of :class:`use_mem_pool`, and graphs that captured inside of them.
        """
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


class PoolCheckpoint(NamedTuple):
    """Which blocks of a private pool were in use: what :func:`checkpoint_pool` returns."""

    device: int
    pool: int
    blocks: tuple


def checkpoint_pool(pool, device=None):
    """Return which blocks of a private pool are in use, for :func:`restore_pool`.

    Parameters
    ----------
    pool : MemPool, or the id of one or of a graph's pool
    device : optional
        Default: the current device.
    """
    pair = getattr(pool, "id", pool)
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise argument_error(TypeError, "pool", pool, "a MemPool or the id of a pool")
    number, pool_id = device_number(device), pair[0] or pair[1]
    return PoolCheckpoint(number, pool_id, tuple(raw_memory.live_blocks(number, pool_id)))


def restore_pool(checkpoint):
    """Have the blocks of a checkpoint in use again, at their addresses.

    Tensors that still hold theirs keep them. The others become allocations by address, as after
    :func:`caching_allocator_alloc`: captures into the pool leave them alone until they are given
    back. So what a replay left in memory that its capture had freed can be kept beside later
    captures.

    Returns
    -------
    list of int
        The addresses that were allocated, each to be given to :func:`caching_allocator_delete`.

    Raises
    ------
    RuntimeError
        A block in use was not in use at the checkpoint, or a block's place is not free, or not done
        for its stream. Nothing has changed.

    Examples
    --------
    >>> pool = MemPool("host")
    >>> with use_mem_pool(pool, "host"):
    ...     ptr = raw_memory.raw_alloc(-1, 4096, 0)
    >>> state = checkpoint_pool(pool, "host")
    >>> raw_memory.raw_delete(ptr)
    >>> restore_pool(state) == [ptr]
    True
    >>> raw_memory.raw_delete(ptr)
    """
    device, pool_id, blocks = checkpoint
    live = {address for address, _, _ in raw_memory.live_blocks(device, pool_id)}
    new = live - {address for address, _, _ in blocks}
    if new:
        raise RuntimeError(
            f"pool {pool_id}: {len(new)} blocks are in use that were not at the checkpoint, the "
            f"first at {min(new):#x}; drop their tensors first"
        )
    taken = []
    for address, nbytes, stream in blocks:
        if address in live:
            continue
        if not raw_memory.take_at(device, pool_id, address, nbytes, stream):
            for ptr in taken:
                raw_memory.raw_delete(ptr)
            raise RuntimeError(
                f"pool {pool_id}: the place of {nbytes} bytes at {address:#x} is not free"
            )
        taken.append(address)
    return taken


class use_mem_pool(PoolBlock, contextlib.ContextDecorator):  # noqa: N801
    """Serve this thread's requests on a device from a :class:`MemPool` in a ``with`` block.

    Should the block end in another thread, it ends for the one in which it began; in the child of a
    fork inside of it, requests are served as outside. What a graph captures inside of the block has
    memory of the pool that serves no other request as long as the graph exists.

    Examples
    --------
    >>> pool = MemPool("host")
    >>> with use_mem_pool(pool, "host"):
    ...     pool.use_count()
    2
    """

    def __init__(self, pool, device=None):
        if not isinstance(pool, MemPool):
            raise argument_error(TypeError, "pool", pool, "MemPool")
        super().__init__(pool, device)

    def _recreate_cm(self):
        return use_mem_pool(self.pool, self.device)
