# Counting what callers hold, exactly, without one counter that all threads write.
#
# Each thread cache, and the allocator itself for work under the device lock, is a shard with its
# own counters; a current value is the sum over shards. A peak of a sum cannot be kept by shards
# alone, so each shard has a budget: settle() hands out the distance between every peak and its
# current value, split over the shards. A shard that stays inside its budget cannot have exceeded
# a peak; one that would leave it stops all shards, counts, and settles again.

from libc.stdint cimport int64_t, uint64_t

from gputensor._alloc.model cimport (
    DOWN_BYTES,
    DOWN_COUNT,
    UP_BYTES,
    UP_COUNT,
    UP_REQUESTED,
    Block,
    BlockPool,
    Counters,
    DeviceAllocator,
    Stat,
    gt_add,
    gt_load,
)

# A caller receives `nbytes` for a request of `requested` bytes; a caller gives them back.
cdef inline void counters_give(Counters* c, size_t nbytes, size_t requested) noexcept nogil:
    gt_add(&c.count_in, 1)
    gt_add(&c.bytes_in, nbytes)
    gt_add(&c.requested_in, requested)
    c.budgets[UP_BYTES] -= <int64_t>nbytes
    c.budgets[UP_COUNT] -= 1
    c.budgets[UP_REQUESTED] -= <int64_t>requested


cdef inline void counters_take(Counters* c, size_t nbytes, size_t requested) noexcept nogil:
    gt_add(&c.count_out, 1)
    gt_add(&c.bytes_out, nbytes)
    gt_add(&c.requested_out, requested)
    c.budgets[UP_BYTES] += <int64_t>nbytes
    c.budgets[UP_COUNT] += 1
    c.budgets[UP_REQUESTED] += <int64_t>requested


# A free block that is a split comes to be, or ceases to be.
cdef inline void counters_split_in(Counters* c, size_t nbytes) noexcept nogil:
    c.split_count_in += 1
    c.split_bytes_in += nbytes
    c.budgets[DOWN_BYTES] -= <int64_t>nbytes
    c.budgets[DOWN_COUNT] -= 1


cdef inline void counters_split_out(Counters* c, size_t nbytes) noexcept nogil:
    c.split_count_out += 1
    c.split_bytes_out += nbytes
    c.budgets[DOWN_BYTES] += <int64_t>nbytes
    c.budgets[DOWN_COUNT] += 1


# The functions below need the device lock. `stop` takes all cache locks, `resume` gives them back.
cdef void caches_stop(DeviceAllocator* a) noexcept nogil
cdef void caches_resume(DeviceAllocator* a) noexcept nogil
# Needs stopped caches: sums the shards, moves the peaks, hands out new budgets.
cdef void stats_settle(DeviceAllocator* a) noexcept nogil
# The allocator's own shard; they settle when the budget asks for it.
cdef void account_give(DeviceAllocator* a, int kind, size_t nbytes, size_t requested) noexcept nogil
cdef void account_take(DeviceAllocator* a, int kind, size_t nbytes, size_t requested) noexcept nogil
cdef void account_split_in(DeviceAllocator* a, Block* block) noexcept nogil
cdef void account_split_out(DeviceAllocator* a, Block* block) noexcept nogil
# Blocks that their caller freed while other streams still use them.
cdef void account_pending(DeviceAllocator* a, Block* block, int sign) noexcept nogil
# Segments and reserved bytes.
cdef void account_segment(DeviceAllocator* a, int kind, int count) noexcept nogil
cdef void account_reserved(DeviceAllocator* a, int kind, int64_t nbytes) noexcept nogil
# The same for a pool's segments, which count for a private pool as well.
cdef void account_pool_reserved(DeviceAllocator* a, BlockPool* pool,
                                int64_t nbytes) noexcept nogil
# A current value or a peak that stat_change keeps; no lock.
cdef inline int64_t stat_read(const int64_t* value) noexcept nogil:
    return <int64_t>gt_load(<const uint64_t*>value)


cdef void stat_change(Stat* stat, int64_t amount) noexcept nogil
# One load for each shard; no lock.
cdef int64_t stats_allocated(DeviceAllocator* a) noexcept nogil
