# The functions of _alloc/allocator for other rooms; each section is named after its part.

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator, MemorySource, PoolHold
from gputensor._driver.table cimport status_t

# ---- devices

# The allocator of a device, or NULL when the device was not used yet.
cdef DeviceAllocator* allocator_find(int device) noexcept nogil
# The same, made at first use (takes the GIL then); NULL when the device cannot be opened.
cdef DeviceAllocator* allocator_open(int device) noexcept nogil
# Waits for the device and gives everything free back to the driver; gives the bytes released.
# `change` names the operation in the message of a debug build's check.
cdef size_t allocator_empty(DeviceAllocator* a, const char* change) noexcept nogil


# ---- private_pool

# Private pools: memory set apart for a graph's replays or for a MemPool, and the scopes that send
# requests there. Except for scope_pools the functions take the device lock themselves.

# Needs the device lock: the pools that a request of this thread on this stream is served from.
cdef BlockPool* scope_pools(DeviceAllocator* a, uint64_t stream) noexcept nogil
cdef uint64_t pool_new_id() noexcept nogil
# A capture on the stream `owner` begins or ends: requests on it go to the pool, in use until
# pool_release_capture. While any capture is under way no event is recorded or polled. pool_end adds
# to `holds` the holds on the other pools that the capture took memory from. They are for its graph,
# which ends them by pool_release_holds, or by pool_forget_holds if the device was closed meanwhile.
cdef status_t pool_begin(int device, uint64_t pool_id, uint64_t owner,
                         bint captures=*) noexcept nogil
cdef status_t pool_end(int device, uint64_t pool_id, uint64_t owner,
                       PoolHold** holds) noexcept nogil
cdef status_t pool_release_capture(int device, uint64_t pool_id) noexcept nogil
cdef void pool_release_holds(int device, PoolHold* holds) noexcept nogil
cdef void pool_forget_holds(PoolHold* holds) noexcept nogil
# Without `captures`, requests of the thread `owner` go to the pool until any thread calls pool_end
# for it, with NULL for `holds`.
cdef extern from "pthread.h" nogil:
    uint64_t pool_thread "pthread_self"()
# Add or remove a holder. Without holders, the free memory serves other requests.
cdef status_t pool_retain(int device, uint64_t pool_id) noexcept nogil
cdef status_t pool_release(int device, uint64_t pool_id) noexcept nogil
# Sets whether the pool's free blocks serve other requests before those fail; and whether its blocks
# are neither cut nor joined, which can only change while the pool holds no memory.
cdef status_t pool_set_kind(int device, uint64_t pool_id, bint is_for_oom,
                            bint is_unsplit) noexcept nogil
# Sets the source of a pool's memory; the pool must hold none yet.
cdef status_t pool_set_source(int device, uint64_t pool_id, MemorySource* source) noexcept nogil
# Adds the blocks in use of a pool.
cdef struct LiveBlock:
    uint64_t ptr, requested, stream
cdef void pool_live(int device, uint64_t pool_id, vector[LiveBlock]* found) noexcept nogil
# Takes the block of the pool at an address; NULL when that place is not free for the stream.
cdef Block* pool_take_at(int device, uint64_t pool_id, uint64_t ptr, size_t nbytes,
                         uint64_t stream) noexcept nogil
# The number of a pool's holders: objects, `with` blocks and graphs.
cdef int pool_use_count(int device, uint64_t pool_id) noexcept nogil


# ---- central

# The size that a request is served with: a multiple of UNIT, or a division of a power of two.
cdef size_t round_size(DeviceAllocator* a, size_t nbytes) noexcept nogil


# ---- allocator

# The allocator's face for the rest of the library. No call needs the GIL; `stream` is a handle.

# Gives a block of at least `nbytes` (> 0) usable in stream order on `stream`, or NULL and a status.
cdef Block* allocator_malloc(int device, size_t nbytes, uint64_t stream,
                             status_t* status) noexcept nogil
# Never waits. The memory is reused once the work queued so far on the block's streams is done.
cdef void allocator_free(Block* block) noexcept nogil
# The block is also used by work queued on `stream`; free() will wait for it by an event.
cdef status_t allocator_record_stream(Block* block, uint64_t stream) noexcept nogil
# Waits for the whole device, on request of a user, and records that everything freed before is
# done.
cdef status_t allocator_synchronize(int device) noexcept nogil
# The same before a capture, and free memory goes back to the driver. Not while another one
# is under way, which it would break: STATUS_CAPTURE_UNSUPPORTED.
cdef status_t allocator_settle(int device) noexcept nogil
cdef object explain_failure     # raises for (device, nbytes, stream, status)
# Turns a failed malloc into the exception for it (OutOfMemoryError with reason and amounts).
cdef int raise_for_malloc(int device, size_t nbytes, uint64_t stream,
                          status_t status) except -1 with gil
