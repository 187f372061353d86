"""``with`` blocks that change how this process or thread allocates, and restore it.

Each enters and leaves in one C call that runs no Python after its first change. A signal handler
runs before the call or after it, and by then the ``with`` statement will restore the state.
"""

from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport malloc

from gputensor._alloc.allocator cimport (
    pool_begin, pool_end, pool_release, pool_retain, pool_set_kind, pool_set_source, pool_thread,
)
from gputensor._alloc.model cimport MemorySource, source_allocate_t, source_release_t
from gputensor._driver.registry cimport device_generation
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES, STATUS_OK, status_t

from gputensor._alloc import allocator as device_allocator
from gputensor.errors import raise_for_status
from gputensor.streams.queue import device_number

cdef extern from "unistd.h" nogil:
    int getpid()


cdef class PoolDevices:
    """The devices on which an object holds its pool; releases the holds when dropped.

    Parameters
    ----------
    pool_id : int
    use_on_oom, no_split : bool
        The kind of the pool, on each device.
    allocator : pair of int, optional
        The addresses of the functions that allocate and free its memory.
    """

    cdef uint64_t pool_id
    cdef bint use_on_oom
    cdef bint no_split
    cdef MemorySource* source       # NULL: the driver
    # By device + HOST_DEVICES: 1 + the device's generation when it was held; 0: never.
    cdef int[MAX_DEVICES] held

    def __init__(self, uint64_t pool_id, bint use_on_oom, bint no_split, allocator=None):
        if allocator is not None:
            # Never freed: segments refer to it as long as they exist, even after this object.
            self.source = <MemorySource*>malloc(sizeof(MemorySource))
            if self.source == NULL:
                raise MemoryError
            allocate, release = allocator
            self.source.allocate = <source_allocate_t><uintptr_t>allocate
            self.source.release = <source_release_t><uintptr_t>release
        self.pool_id = pool_id
        self.use_on_oom = use_on_oom
        self.no_split = no_split

    def __dealloc__(self):
        cdef int index
        for index in range(MAX_DEVICES):
            if self.holds(index - HOST_DEVICES):
                pool_release(index - HOST_DEVICES, self.pool_id)

    def __iter__(self):
        return iter([device for device in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES)
                     if self.holds(device)])

    # A hold does not count if the device has been closed since, or if it was made before a fork, by
    # the parent process.
    cdef bint holds(self, int device) noexcept:
        return self.held[device + HOST_DEVICES] == 1 + device_generation(device)

    def hold(self, int device):
        """Hold the pool on a device; repeated calls have no effect."""
        cdef status_t status
        if self.holds(device):
            return
        device_allocator.open_allocator(device)
        status = pool_retain(device, self.pool_id)
        if status == STATUS_OK:
            self.held[device + HOST_DEVICES] = 1 + device_generation(device)
            status = pool_set_kind(device, self.pool_id, self.use_on_oom, self.no_split)
            if status == STATUS_OK and self.source != NULL:
                status = pool_set_source(device, self.pool_id, self.source)
        if status != STATUS_OK:
            raise_for_status(status, "pool_retain")


cdef class PoolBlock:
    """Serves the thread's requests on a device from a pool; :class:`gputensor.memory.use_mem_pool`.

    If the block ends in another thread, it still ends for the thread in which it began. In the
    child of a fork inside the block, requests are served as outside.
    """

    cdef readonly object pool
    cdef readonly object device
    cdef int number
    cdef uint64_t pool_id
    cdef uint64_t thread
    cdef int process                # the one that entered; 0: not entered

    def __init__(self, pool, device=None):
        self.pool = pool
        self.device = device

    def __enter__(self):
        cdef int number = device_number(self.device)
        cdef uint64_t pool_id = self.pool._number
        cdef status_t status
        if self.process:
            raise RuntimeError("use_mem_pool: got a second entry; expected one block at a time")
        self.pool._devices.hold(number)
        status = pool_retain(number, pool_id)
        if status == STATUS_OK:
            status = pool_begin(number, pool_id, pool_thread(), False)
            if status != STATUS_OK:
                pool_release(number, pool_id)
        if status != STATUS_OK:
            raise_for_status(status, "pool_begin")
        self.number = number
        self.pool_id = pool_id
        self.thread = pool_thread()
        self.process = getpid()

    def __exit__(self, kind, value, trace):
        cdef bint is_own = self.process == getpid()
        cdef status_t status = STATUS_OK
        self.process = 0
        if is_own:
            status = pool_end(self.number, self.pool_id, self.thread, NULL)
            pool_release(self.number, self.pool_id)
        raise_for_status(status, "pool_end")


cdef class UncachedBlock:
    """Turns caching off; :class:`gputensor.memory.caching_allocator_disabled`."""

    cdef readonly object device
    cdef list former                # the settings to restore, innermost last

    def __init__(self, device=None):
        self.device = device
        self.former = []

    def __enter__(self):
        cdef object former
        cdef int number
        if self.device is None:
            former = None, device_allocator.caching_everywhere()
            self.former.append(former)
            device_allocator.set_caching_everywhere(False)
            return
        number = device_number(self.device)
        device_allocator.open_allocator(number)
        self.former.append((number, device_allocator.is_caching(number)))
        device_allocator.set_caching(number, False)

    def __exit__(self, kind, value, trace):
        number, former = self.former.pop()
        if number is None:
            device_allocator.restore_caching(former)
        else:
            device_allocator.set_caching(number, former)
