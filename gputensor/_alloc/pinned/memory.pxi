"""The Python face of pinned host memory: PinnedMemory and PinnedRegion."""

# Of each PinnedRegion, by its address: size, device, and the generation of the device.
cdef dict registered = {}


# The block in use that holds all of a range, or NULL.
cdef Block* _block_over(PinnedPool* pool, uint64_t ptr, size_t nbytes) noexcept nogil:
    cdef Segment* segment
    cdef Block* block
    cdef Held held
    held.take(&pool.a.lock)
    for segment in each(pool.a.pools[0].segments):
        if segment.va <= ptr < segment.va + segment.nbytes:
            for block in each(segment.first):
                if (block.state == BLOCK_ALLOCATED and block.ptr <= ptr
                        and ptr + nbytes <= block.ptr + block.requested):
                    return block
    return NULL


cdef bint pinned_holds(uint64_t ptr, size_t nbytes, Block** block):
    for number in pinned_devices():
        block[0] = _block_over(pinned_pool_peek(number), ptr, nbytes)
        if block[0] != NULL:
            return True
    return any(start <= ptr and ptr + nbytes <= start + size
               and generation == device_generation(device)
               for start, (size, device, generation) in list(registered.items()))


cdef class PinnedMemory:
    """Host memory that a device copies to and from at full speed.

    The object supports the buffer protocol: ``numpy.frombuffer(memory, dtype)`` is a view of it.
    When the object is deleted, the memory returns to the allocator, which reuses it once the work
    queued by then on the streams named by :meth:`used_on` is done.

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
        if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__") or nbytes <= 0:
            raise ValueError(f"nbytes: got {nbytes!r}; expected an integer above 0")
        cdef size_t wanted = min(nbytes, 1 << 62)   # more than any system has
        stack_for_request(HISTORY_STACK_ALLOC)
        with nogil:
            self.block = _malloc(device, wanted, &status)
        stack_for_request(0)
        if self.block == NULL:
            raise_for_pinned(device, int(nbytes), status)
        self.device = device
        self.nbytes = wanted

    def __dealloc__(self):
        if self.block != NULL:
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
        """Report that work queued on a stream (its handle) reads or writes the memory."""
        raise_for_status(pinned_use(self.block, stream), "pinned_use")


cdef class PinnedRegion:
    """Memory of the program, pinned in place until the object is deleted.

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
        PyObject_GetBuffer(buffer, &self.view, PyBUF_WRITABLE)
        self.is_held = True
        self.device = device
        self.generation = device_generation(device)
        raise_for_status(
            driver.pinned_register(driver.self, <uint64_t><uintptr_t>self.view.buf, self.view.len),
            "pinned_register", f"of {self.view.len} bytes on device {device}")
        registered[self.ptr] = (self.view.len, device, self.generation)
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
        """Unpin the memory, after a wait for the device; a second call has no effect."""
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
        registered.pop(ptr, None)
        if driver != NULL and self.generation == device_generation(self.device):
            with nogil:
                status = driver.pinned_unregister(driver.self, ptr)
        return status


def capture_done(int device, uint64_t capture_id):
    """Report that the graph of a capture was deleted; its launches may still run."""
    with nogil:
        pinned_capture_done(device, capture_id)


def close(int device):
    """Wait for the freed blocks of a device, and return its unused pinned memory to the system."""
    with nogil:
        pinned_close(device)


def empty_cache(device=None):
    """Return free pinned segments of one device, or of all, to the system."""
    cdef int number
    for number in pinned_devices(device):
        with nogil:
            pinned_empty_cache(number)


def pinned_devices(device=None):
    """Return the numbers of the open devices that have a pool of pinned memory.

    With `device`, only that one, if it has a pool.
    """
    return [number for number in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES)
            if (device is None or number == device) and pinned_pool_peek(number) != NULL]
