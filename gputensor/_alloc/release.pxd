# Giving memory back to the driver. Called with the device lock held; given up for driver calls.

from gputensor._alloc.model cimport BlockPool, DeviceAllocator

# Destroys the pages in the page pool, down to `keep` bytes; gives the bytes released.
cdef size_t page_pool_release(DeviceAllocator* a, size_t keep) noexcept nogil
# Frees plain segments that are one free block each: at least `nbytes`, the smallest that suffices
# first, then from the largest down. Gives the bytes released.
cdef size_t segments_release(DeviceAllocator* a, size_t nbytes) noexcept nogil
# backend:cudaMallocAsync: the driver's pool gives back what is free in it. False: no such backend.
cdef bint driver_pool_trim(DeviceAllocator* a) noexcept nogil
# Everything that is free and done: pages, plain segments, address space that holds nothing.
cdef size_t release_all(DeviceAllocator* a) noexcept nogil
# Address space of a pool that nothing backs; says whether there was any.
cdef bint ranges_release(DeviceAllocator* a, BlockPool* pool) noexcept nogil
# The same of all pools.
cdef bint ranges_release_all(DeviceAllocator* a) noexcept nogil
# garbage_collection_threshold: the page pool and cached plain segments go, those that were not used
# for the longest time first, as few as bring the reserved bytes with the request below the
# threshold. Not in a capture.
cdef void collect_garbage(DeviceAllocator* a, size_t nbytes) noexcept nogil
# Before a capture, when the device was waited for and none is under way.
cdef void collect_for_capture(DeviceAllocator* a) noexcept nogil
# Waits for all streams of the device, so that every free block is done.
cdef void synchronize_all(DeviceAllocator* a) noexcept nogil
