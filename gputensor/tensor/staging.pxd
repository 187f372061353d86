# Copies between a device and ordinary host memory, through pinned memory.

from libc.stdint cimport uint64_t

from gputensor.tensor.tensor cimport Tensor

# Queues a copy of `nbytes` > 0 from host memory to the device. The source may change as soon as the
# call returns. No other thread may know the target yet: the GIL is released on the way.
cdef int stage_to_device(int device, uint64_t target, const void* source, size_t nbytes,
                         uint64_t stream) except -1
# Copies `nbytes` > 0 from the device to host memory and returns when the bytes are there.
# No write to the source comes between, of whatever thread; the read is ordered here.
cdef int stage_to_host(Tensor source, void* target, size_t nbytes, uint64_t stream) except -1
