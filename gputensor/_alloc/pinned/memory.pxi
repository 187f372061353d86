"""The Python face of pinned host memory: PinnedMemory, and the statistics of all devices."""

STAT_NAMES = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
FIELDS = ("current", "peak", "allocated", "freed")


cdef class PinnedMemory:
    """Host memory that a device copies to and from at full speed.

    It is an object with a buffer: ``numpy.frombuffer(memory, dtype)`` is a view of it. The memory
    goes back to the allocator when the object goes, and is used again once the work queued by then
    on the streams named by :meth:`used_on` is done.

    Parameters
    ----------
    device : int
        The number of an open device.
    nbytes : int
        Size, above 0.

    Raises
    ------
    OutOfMemoryError
        The system has no more pinned memory.
    """

    cdef Block* block
    cdef readonly int device
    cdef readonly size_t nbytes

    def __cinit__(self, int device, nbytes):
        cdef status_t status = 0
        if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__") or not 0 < nbytes < 1 << 62:
            raise ValueError(f"nbytes: got {nbytes!r}; expected an integer above 0")
        cdef size_t wanted = nbytes
        cdef uint32_t stack = stack_capture_if(HISTORY_STACK_ALLOC)
        with nogil:
            self.block = pinned_malloc_named(device, wanted, stack, &status)
        if self.block == NULL:
            raise_for_pinned(device, wanted, status)
        self.device = device
        self.nbytes = wanted
        pinned_ranges.add(self.block.ptr, wanted, self.block)

    def __dealloc__(self):
        if self.block != NULL:
            pinned_ranges.remove(self.block.ptr)
            pinned_free(self.block)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, <void*><uintptr_t>self.block.ptr, self.nbytes, 0, flags)

    def __len__(self):
        return self.nbytes

    @property
    def ptr(self):
        """The address of the first byte."""
        return self.block.ptr

    @property
    def capacity(self):
        """The size of the block behind it: `nbytes` rounded up to 512."""
        return self.block.nbytes

    def used_on(self, uint64_t stream):
        """Say that work queued on a stream (its handle) reads or writes the memory."""
        raise_for_status(pinned_use(self.block, stream), "pinned_use")


cdef class PinnedRegion:
    """Memory of the program's, pinned in place until the object goes.

    Parameters
    ----------
    device : int
        The number of an open device.
    buffer : object with a writable buffer
        Kept alive; its bytes must be contiguous.

    Raises
    ------
    DriverError
        The memory is pinned already, in whole or in part.
    """

    cdef Py_buffer view
    cdef bint is_held
    cdef bint is_registered
    cdef int generation
    cdef readonly int device

    def __cinit__(self, int device, buffer):
        cdef Driver* driver = driver_open(device)
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.is_held = True
        self.device = device
        self.generation = device_generation(device)
        raise_for_status(
            driver.pinned_register(driver.self, <uint64_t><uintptr_t>self.view.buf, self.view.len),
            "pinned_register", f"of {self.view.len} bytes on device {device}")
        pinned_ranges.add(self.ptr, self.view.len, NULL)
        self.is_registered = True

    def __dealloc__(self):
        self.release()
        if self.is_held:
            PyBuffer_Release(&self.view)

    @property
    def ptr(self):
        """The address of the first byte."""
        return <uint64_t><uintptr_t>self.view.buf

    @property
    def nbytes(self):
        """The size in bytes."""
        return self.view.len

    def unregister(self):
        """Unpin the memory; again without effect. Waits for the device."""
        raise_for_status(self.release(), "pinned_unregister", f"on device {self.device}")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.unregister()

    cdef status_t release(self) noexcept:
        cdef Driver* driver = driver_get(self.device)
        cdef uint64_t ptr = <uint64_t><uintptr_t>self.view.buf
        cdef status_t status = STATUS_OK
        if not self.is_registered:
            return STATUS_OK
        self.is_registered = False
        pinned_ranges.remove(ptr)
        if driver != NULL and self.generation == device_generation(self.device):
            with nogil:
                status = driver.pinned_unregister(driver.self, ptr)
        return status


def capture_done(int device, uint64_t capture_id):
    """Say that the graph of a capture is given up; its launches may still run."""
    with nogil:
        pinned_capture_done(device, capture_id)


def close(int device):
    """Wait for the freed blocks of a device and give back its pinned memory that is not in use."""
    with nogil:
        pinned_close(device)


def empty_cache(device=None):
    """Give free pinned segments back to the system, of one device or of all."""
    cdef int number
    for index in range(MAX_DEVICES):
        number = index - HOST_DEVICES
        if device is None or number == device:
            with nogil:
                pinned_empty_cache(number)


cdef Stat* _stat(PinnedPool* pool, int i) noexcept:
    if i == 0:
        return &pool.allocations
    if i == 1:
        return &pool.allocated_bytes
    return &pool.active_requests if i == 2 else &pool.active_bytes


cdef int _add_times(dict stats, str name, CallTimes* times) except -1:
    stats[f"{name}.total"] += times.total
    stats[f"{name}.count"] += times.count
    if times.count:
        stats[f"{name}.max"] = max(stats[f"{name}.max"], times.largest)
        smallest = stats[f"{name}.min"]
        stats[f"{name}.min"] = times.smallest if smallest is None else min(
            smallest, times.smallest)


def host_stats(device=None):
    """Return the flat statistics of pinned memory, of one device or summed over all.

    A peak of the sum is the sum of the devices' peaks.
    """
    cdef PinnedPool* pool
    cdef PinnedPool copy
    cdef Stat* stat
    cdef int i, index
    stats = {f"{name}.{field}": 0 for name in STAT_NAMES for field in FIELDS}
    stats.update(num_host_alloc=0, num_host_free=0)
    for name in ("host_alloc_time", "host_free_time"):
        stats.update({f"{name}.total": 0, f"{name}.max": 0, f"{name}.min": None,
                      f"{name}.count": 0})
    for index in range(MAX_DEVICES):
        pool = pinned_pool_peek(index - HOST_DEVICES)
        if pool == NULL or (device is not None and index - HOST_DEVICES != device):
            continue
        gt_spin_lock(&pool.lock)
        copy = pool[0]
        gt_spin_unlock(&pool.lock)
        for i, name in enumerate(STAT_NAMES):
            stat = _stat(&copy, i)
            stats[f"{name}.current"] += stat.current
            stats[f"{name}.peak"] += stat.peak
            stats[f"{name}.allocated"] += stat.allocated
            stats[f"{name}.freed"] += stat.freed
        stats["num_host_alloc"] += copy.num_host_alloc
        stats["num_host_free"] += copy.num_host_free
        _add_times(stats, "host_alloc_time", &copy.alloc_times)
        _add_times(stats, "host_free_time", &copy.free_times)
    for name in ("host_alloc_time", "host_free_time"):
        stats[f"{name}.min"] = stats[f"{name}.min"] or 0
        count = stats[f"{name}.count"]
        stats[f"{name}.avg"] = stats[f"{name}.total"] // count if count else 0
    return stats


def reset_peak_stats():
    """Set every peak to its current value."""
    cdef PinnedPool* pool
    cdef Stat* stat
    cdef int i, index
    for index in range(MAX_DEVICES):
        pool = pinned_pool_peek(index - HOST_DEVICES)
        if pool == NULL:
            continue
        gt_spin_lock(&pool.lock)
        for i in range(4):
            stat = _stat(pool, i)
            stat.peak = stat.current
        gt_spin_unlock(&pool.lock)


def reset_accumulated_stats():
    """Set all that only grows to zero: allocated, freed, the counts and the times."""
    cdef PinnedPool* pool
    cdef Stat* stat
    cdef CallTimes none
    cdef int i, index
    none.total = none.largest = none.smallest = none.count = 0
    for index in range(MAX_DEVICES):
        pool = pinned_pool_peek(index - HOST_DEVICES)
        if pool == NULL:
            continue
        gt_spin_lock(&pool.lock)
        for i in range(4):
            stat = _stat(pool, i)
            stat.allocated = 0
            stat.freed = 0
        pool.num_host_alloc = 0
        pool.num_host_free = 0
        pool.alloc_times = none
        pool.free_times = none
        gt_spin_unlock(&pool.lock)
