"""Private pools: memory that is reserved for some requests."""

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
    """Two C functions that allocate and free device memory, for a :class:`MemPool`.

    Parameters
    ----------
    path_to_so_file : str
        The library that contains them.
    alloc_fn_name : str
        ``void* alloc(size_t nbytes, int device, void* stream)``. It returns NULL or throws a C++
        exception if there is no memory, and otherwise returns an address that is a multiple of 512.
    free_fn_name : str
        ``void free(void* ptr, size_t nbytes, int device, void* stream)``. It is called when all
        work of the device is done.

    Raises
    ------
    OSError
        The library cannot be loaded.
    AttributeError
        The library lacks one of the functions.

    Notes
    -----
    The functions are called from any thread, without the GIL, and must not use this library. A
    request raises :class:`~gputensor.OutOfMemoryError` if there is no memory, and
    :class:`~gputensor.DriverError` (misaligned address) after an address that is no multiple of
    512, which is freed at once.
    """

    def __init__(self, path_to_so_file, alloc_fn_name, free_fn_name):
        self._library = ctypes.CDLL(path_to_so_file)
        functions = (getattr(self._library, name) for name in (alloc_fn_name, free_fn_name))
        self.addresses = tuple(ctypes.cast(one, ctypes.c_void_p).value for one in functions)

    def allocator(self):
        """Return the object itself, for code written for PyTorch."""
        return self


class MemPool:
    """A private pool: requests inside :func:`use_mem_pool` are served from it.

    While the object lives, the pool's free memory serves no other requests.

    Parameters
    ----------
    device : optional
        The device on which it is held at first; default: the current device. An `allocator` may
        stand in its place, as in PyTorch.
    use_on_oom : bool
        Lend the pool's free blocks to requests outside of private pools that would otherwise fail.
        The blocks return to the pool when they are freed.
    allocator : CUDAPluggableAllocator, optional
        The source of the pool's memory; default: the driver. Blocks are cached as in other pools;
        the segments return to the allocator when the pool is given up.
    no_split : bool
        Never split a block of the pool or join two: a request takes a whole free block, or new
        memory of its size rounded up to the device's pages (with ``expandable_segments:False``, a
        whole segment).

    Examples
    --------
    >>> pool = MemPool("host")
    >>> pool.use_count(), pool.id[0]
    (1, 0)
    """

    def __init__(self, device=None, use_on_oom=False, no_split=False, *, allocator=None):
        if isinstance(device, CUDAPluggableAllocator) and allocator is None:
            device, allocator = None, device
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
        """The pair of ints that identifies the pool in snapshots."""
        return pool_pair(self._number)

    def use_count(self):
        """Return how many holders the pool has.

        Holders are this object, ``with`` blocks of :class:`use_mem_pool`, and graphs captured
        inside them.
        """
        return max(
            (raw_memory.count_pool_uses(number, self._number) for number in self._devices),
            default=0,
        )

    def snapshot(self, include_traces=True):
        """Return the pool's segments in PyTorch's schema."""
        return memory_snapshot(self.id, include_traces)

    def __reduce__(self):
        # A copy would release a hold that it does not have.
        raise TypeError("cannot copy or pickle a MemPool")


class PoolCheckpoint(NamedTuple):
    """The blocks of a private pool that were in use: the result of :func:`checkpoint_pool`."""

    device: int
    pool: int
    blocks: tuple


def checkpoint_pool(pool, device=None):
    """Return the blocks of a private pool that are in use, for :func:`restore_pool`.

    Parameters
    ----------
    pool : MemPool, or the id of one or of a graph's pool
    device : optional
        Default: the current device.
    """
    pair = getattr(pool, "id", pool)
    if not _is_numbers(pair, 2):
        raise argument_error(TypeError, "pool", pool, "a MemPool or the id of a pool")
    if min(pair) < 0 or max(pair) >= 1 << 64 or not any(pair):
        raise argument_error(ValueError, "pool", pair, "the id of a private pool")
    number, pool_id = device_number(device), pair[0] or pair[1]
    return PoolCheckpoint(number, pool_id, tuple(raw_memory.live_blocks(number, pool_id)))


def restore_pool(checkpoint):
    """Allocate the blocks of a checkpoint again, at their old addresses.

    Blocks that tensors still hold stay with them. The others become allocations by address, like
    those of :func:`caching_allocator_alloc`: captures into the pool do not use them until they are
    freed. This protects values that a replay left in memory that its capture had freed from later
    captures.

    Returns
    -------
    list of int
        The addresses that were allocated. Free each with :func:`caching_allocator_delete`.

    Raises
    ------
    RuntimeError
        A block is in use that was not in use at the checkpoint, or the place of a block is not
        free, or its stream may still use it. Nothing has changed.
    TypeError
        The argument is not a result of :func:`checkpoint_pool`.

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
    if not isinstance(checkpoint, PoolCheckpoint) or not _has_blocks(checkpoint):
        raise argument_error(TypeError, "checkpoint", checkpoint, "a result of checkpoint_pool()")
    device, pool_id, blocks = checkpoint
    # Another block may begin at the same address, so the size and the stream count too.
    live = set(raw_memory.live_blocks(device, pool_id))
    new = live - set(blocks)
    if new:
        raise RuntimeError(
            f"pool {pool_id}: {len(new)} blocks are in use that were not at the checkpoint, the "
            f"first at {min(new)[0]:#x}; drop their tensors first"
        )
    taken = []
    for address, nbytes, stream in blocks:
        if (address, nbytes, stream) in live:
            continue
        if not raw_memory.take_at(device, pool_id, address, nbytes, stream):
            for ptr in taken:
                raw_memory.raw_delete(ptr)
            raise RuntimeError(
                f"pool {pool_id}: the place of {nbytes} bytes at {address:#x} is not free"
            )
        taken.append(address)
    return taken


def _is_numbers(value, count):
    return (
        isinstance(value, tuple)
        and len(value) == count
        and all(isinstance(part, int) and not isinstance(part, bool) for part in value)
    )


def _has_blocks(checkpoint):
    """Whether the blocks can be of a pool: addresses are multiples of 512."""
    return isinstance(checkpoint.blocks, tuple) and all(
        _is_numbers(block, 3) and min(block) >= 0 < block[1] and block[0] % 512 == 0
        for block in checkpoint.blocks
    )


class use_mem_pool(PoolBlock, contextlib.ContextDecorator):  # noqa: N801
    """Serve this thread's requests on a device from a :class:`MemPool` in a ``with`` block.

    If the block ends in another thread, it still ends for the thread in which it began. In the
    child of a fork inside the block, requests are served as outside. A graph captured inside the
    block uses memory of the pool, which serves no other request as long as the graph exists.

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
