# Thread caches: blocks of exact sizes in front of the pools. See thread_cache.pyx for the rules.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, DeviceAllocator, ThreadCache

# The calling thread's cache for a device, made at first use; NULL without host memory.
cdef ThreadCache* cache_mine(DeviceAllocator* a) noexcept nogil
# A parked block of exactly this size and stream, given to the caller; NULL on a miss.
cdef Block* cache_take(ThreadCache* cache, size_t nbytes, size_t requested,
                       uint64_t stream) noexcept nogil
# Parks a block that its caller frees, with the cache it belongs to. False: the cache does not want
# it.
cdef bint cache_park(ThreadCache* cache, Block* block) noexcept nogil
# Needs the device lock: returns all parked blocks to their pools; gives how many.
cdef int caches_drain(DeviceAllocator* a) noexcept nogil
# The allocator of a device is closed: threads forget its caches.
cdef void caches_forget(DeviceAllocator* a) noexcept nogil
# In the child of a fork: whoever was about to forget caches is not there.
cdef void caches_after_fork() noexcept nogil
