# A BlockPool: the free blocks of one kind, by stream. All functions need the device lock.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport (
    Block,
    BlockPool,
    DeviceAllocator,
    StreamBins,
    StreamState,
)

cdef void pool_init(BlockPool* pool, DeviceAllocator* a, int kind, uint64_t pool_id) noexcept nogil
cdef void pool_clear(BlockPool* pool) noexcept nogil
# The bins of a stream, made at first use; NULL when there is no host memory.
cdef StreamBins* pool_bins(BlockPool* pool, uint64_t stream) noexcept nogil
# A block that is done with its work goes in: it joins its free neighbours first.
cdef Block* pool_insert(BlockPool* pool, Block* block) noexcept nogil
cdef void pool_remove(BlockPool* pool, Block* block) noexcept nogil
# Takes the best-fitting free block of the stream out of the pool, cut to size. NULL: none fits.
cdef Block* pool_take(BlockPool* pool, uint64_t stream, size_t nbytes) noexcept nogil
# Gives all free blocks of other streams whose work is done to `stream`, so that they can join.
cdef bint pool_gather(BlockPool* pool, uint64_t stream) noexcept nogil
# Cuts an exclusively held block to size; the rest goes back to the pool.
cdef void pool_trim(BlockPool* pool, Block* block, size_t nbytes) noexcept nogil
# Cuts [start, end) out of a free block; the cut tile is HELD, the rest stays free. NULL: no host
# memory for the records.
cdef Block* pool_cut(BlockPool* pool, Block* block, uint64_t start, uint64_t end) noexcept nogil
