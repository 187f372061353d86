"""Uses: automatic ordering for memory that does not belong to a Tensor.

A tensor's storage contains such a record (UseLog). This type offers it to programs that launch
their own kernels on raw addresses.
"""


@cython.no_gc
cdef class Uses:
    """The record of the streams that used some memory, for work outside the library.

    Parameters
    ----------
    device : device, optional
        The device of the memory; the current device by default.
    stream : Stream, optional
        The stream that may use the memory without a wait, because the memory was allocated or last
        written there; the device's current stream by default.

    Notes
    -----
    Call :meth:`read` or :meth:`write` right before the work is queued, with no other use of the
    memory between the two. Under ``ordering("manual")`` no stream waits.

    Examples
    --------
    >>> from gputensor.streams import Stream
    >>> producer, consumer = Stream("host"), Stream("host")
    >>> uses = Uses("host", producer)
    >>> uses.write(producer)    # then: launch the kernel that writes, on producer
    >>> uses.read(consumer)     # consumer waits; then: launch the kernel that reads
    """

    cdef UseLog log
    cdef int generation

    def __cinit__(self, device=None, stream=None):
        cdef int number = resolve_device(device)
        cdef uint64_t handle
        resolve_stream(stream, number, &handle)
        use_log_init(&self.log, number, handle)
        self.generation = device_generation(number)

    def __dealloc__(self):
        use_log_drop(&self.log)

    @property
    def device(self):
        """The device of the memory."""
        return device_object(self.log.device)

    def read(self, stream=None):
        """Make `stream` (the current one by default) wait for the last write on another stream."""
        cdef uint64_t handle = self.handle(stream)
        cdef status_t status
        section_begin()
        status = order_read(&self.log, NULL, handle)
        section_end()
        raise_for_order(self.log.device, handle, status)

    def write(self, stream=None):
        """Make `stream` (the current one by default) wait for every use on other streams."""
        cdef uint64_t handle = self.handle(stream)
        cdef status_t status
        section_begin()
        status = order_write(&self.log, NULL, handle)
        section_end()
        raise_for_order(self.log.device, handle, status)

    cdef uint64_t handle(self, object stream) except? 0:
        cdef uint64_t handle = 0
        if self.generation != device_generation(self.log.device):
            raise_closed(self.log.device, self.generation, "memory")
        resolve_stream(stream, self.log.device, &handle)
        return handle
