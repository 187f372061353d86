# Private pools: memory set apart for a graph's replays or for a MemPool, and the scopes that send
# requests there. Except for scope_pools the functions take the device lock themselves.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport BlockPool, DeviceAllocator, PoolHold
from gputensor._driver.table cimport status_t

# Needs the device lock: the pools that a request of this thread on this stream is served from.
cdef BlockPool* scope_pools(DeviceAllocator* a, uint64_t stream) noexcept nogil

cdef uint64_t pool_new_id() noexcept nogil
# A capture on `stream` begins or ends: requests on it go to the pool, which stays in use until
# pool_release_capture. While any capture is under way no event is recorded or polled. `holds` gets,
# behind what it has, holds on the other pools that the capture took memory from: for its graph, to
# be ended by pool_release_holds, or by pool_forget_holds when the device was closed meanwhile.
cdef status_t pool_begin(int device, uint64_t pool_id, uint64_t stream) noexcept nogil
cdef status_t pool_end(int device, uint64_t pool_id, uint64_t stream,
                       PoolHold** holds) noexcept nogil
cdef status_t pool_release_capture(int device, uint64_t pool_id) noexcept nogil
cdef void pool_release_holds(int device, PoolHold* holds) noexcept nogil
cdef void pool_forget_holds(PoolHold* holds) noexcept nogil
# Requests of the calling thread go to the pool, until any thread ends that for the one it names:
# pool_thread() in the thread that began.
cdef status_t pool_begin_thread(int device, uint64_t pool_id) noexcept nogil
cdef status_t pool_end_thread(int device, uint64_t pool_id, uint64_t thread) noexcept nogil
cdef uint64_t pool_thread() noexcept nogil
# One holder more, one holder less. Without holders the free memory serves others.
cdef status_t pool_retain(int device, uint64_t pool_id) noexcept nogil
cdef status_t pool_release(int device, uint64_t pool_id) noexcept nogil
# Whether the pool's free blocks serve other requests before those fail; and whether its blocks are
# neither cut nor joined, which can only be said of a pool that holds no memory yet.
cdef status_t pool_set_kind(int device, uint64_t pool_id, bint is_for_oom,
                            bint is_unsplit) noexcept nogil
# Objects, blocks of `with` and graphs.
cdef int pool_use_count(int device, uint64_t pool_id) noexcept nogil
