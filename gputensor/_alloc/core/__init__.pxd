# The functions of _alloc/core for other rooms; each section is named after its part, which explains
# its idea. All need the device lock where nothing else is said.

from libc.stdint cimport int64_t, uint64_t

from gputensor._alloc.model cimport *
from gputensor._driver.table cimport status_t

# ---- check_hook, without a lock: `check_after` is the last step of each operation that changes an
# allocator, unless it has a guard of `device_hold`

cdef extern from *:
    """
    #ifdef GPUTENSOR_CHECK
    #define GT_IS_CHECKED 1
    #else
    #define GT_IS_CHECKED 0
    #endif
    """
    enum: GT_IS_CHECKED

ctypedef void (*check_function)(int device, const char* change) noexcept nogil

# `function` is called after every `every`-th change from now on. It takes the device lock.
cdef void check_install(check_function function, uint64_t every) noexcept nogil
cdef void check_run(int device, const char* change) noexcept nogil
# No check runs between these two: around the removal of an allocator.
cdef void checks_stop() noexcept nogil
cdef void checks_resume() noexcept nogil

cdef inline void check_after(int device, const char* change) noexcept nogil:
    if GT_IS_CHECKED:
        check_run(device, change)


# ---- mutex

# The device lock. Held for hundreds of nanoseconds; never over a call that maps, allocates or
# waits. A function that holds it to its end has a guard (Held, in sync.h); the others drop it
# around a driver call.

cdef extern from "pthread.h" nogil:
    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)

cdef inline void device_lock(DeviceAllocator* a) noexcept nogil:
    pthread_mutex_lock(&a.lock)

cdef inline void device_unlock(DeviceAllocator* a) noexcept nogil:
    pthread_mutex_unlock(&a.lock)

# For a function that changes the allocator: a debug build checks it once the lock is released.
cdef inline void device_hold(DeviceAllocator* a, Held* held, const char* change) noexcept nogil:
    held.take(&a.lock)
    if GT_IS_CHECKED:
        held.then(check_run, a.device, change)

cdef enum:
    CONTENTION = 256            # requests and frees without a wait, after one that waited

# The lock for a request or a free: whether threads wait for it decides what their caches keep.
cdef inline void device_lock_counted(DeviceAllocator* a, Held* held) noexcept nogil:
    if held.take_waiting(&a.lock):
        gt_store(&a.contention, CONTENTION)
    elif a.contention > 0:
        gt_store(&a.contention, a.contention - 1)


# ---- limit

# Whether `nbytes` more may be reserved (0 always: the limit may be lower now). They are claimed
# until the caller, which accounts for them or gives up, takes them off `making_nbytes`.
cdef inline bint limit_claim(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef size_t held = <size_t>a.stats[STAT_RESERVED_BYTES][0].current + a.making_nbytes
    if nbytes > 0 and nbytes + held > a.limit_nbytes:
        return False
    a.making_nbytes += nbytes
    return True


# ---- in_flight

cdef enum:
    ATTEMPTS = 32   # of a request at most, while other threads free and return memory

# Called around work that owns memory and drops the lock on its way; calls nest.
# `returned`: whether it returns memory that others could use, or that the limit counted.
cdef void in_flight_begin(DeviceAllocator* a) noexcept nogil
cdef void in_flight_end(DeviceAllocator* a, bint returned=*) noexcept nogil
# The same, dropping the lock at the beginning and taking it again at the end.
cdef void in_flight_unlock(DeviceAllocator* a) noexcept nogil
cdef void in_flight_lock(DeviceAllocator* a, bint returned=*) noexcept nogil
# How often other threads have returned memory.
cdef uint64_t in_flight_others(DeviceAllocator* a) noexcept nogil
# Waits until another thread returns memory or frees a block, after `others` and `frees` were read.
# False if no other thread has memory in flight, or it takes too long.
cdef bint in_flight_wait(DeviceAllocator* a, uint64_t others, uint64_t frees) noexcept nogil


# ---- statistics

# Take and release all cache locks.
cdef void caches_stop(DeviceAllocator* a) noexcept nogil
cdef void caches_resume(DeviceAllocator* a) noexcept nogil
# Sum the shards, move the peaks and hand out new budgets: for all values, or for those of which a
# shard has exceeded its budget. For stats_settle the caches are stopped already; stats_update stops
# them meanwhile.
cdef void stats_settle(DeviceAllocator* a, bint exceeded_only=*) noexcept nogil
cdef void stats_update(DeviceAllocator* a, bint exceeded_only=*) noexcept nogil
# Count in the allocator's own shard, and settle when its budget requires it.
cdef void account_give(DeviceAllocator* a, int kind, size_t nbytes, size_t requested) noexcept nogil
cdef void account_take(DeviceAllocator* a, int kind, size_t nbytes, size_t requested) noexcept nogil
# Blocks that their caller freed while other streams still use them.
cdef void account_pending(DeviceAllocator* a, Block* block, int sign) noexcept nogil
# Segments and reserved bytes.
cdef void account_segment(DeviceAllocator* a, int kind, int count) noexcept nogil
cdef void account_reserved(DeviceAllocator* a, int kind, int64_t nbytes) noexcept nogil
# The same for a pool's segments, which count for a private pool as well.
cdef void account_pool_reserved(DeviceAllocator* a, BlockPool* pool, int64_t nbytes) noexcept nogil
# Bytes that stay reserved and change their pool; NULL is the page pool.
cdef void account_reserved_moved(DeviceAllocator* a, BlockPool* source, BlockPool* target,
                                 int64_t nbytes) noexcept nogil

cdef void stat_change(Stat* stat, int64_t amount) noexcept nogil
# Four loads for each shard; no lock.
cdef int64_t stats_allocated(DeviceAllocator* a) noexcept nogil
# The bytes that large memory has served, by pools and caches, without `used_before`; no lock.
cdef uint64_t stats_used(DeviceAllocator* a) noexcept nogil


# ---- owned_streams

# The stream stays valid as long as its device is open. Any thread, no lock needed.
cpdef void stream_own(int device, uint64_t stream) noexcept nogil


# ---- progress

# Whether work queued before the end of `epoch` is known to be done.
cdef bint progress_is_done(StreamState* state, uint64_t epoch) noexcept nogil
# On a miss of `stream`: queries the events recorded before, and records new ones, which end the
# current epochs of that stream and of the owned ones. Drops the lock meanwhile.
cdef void progress_advance(DeviceAllocator* a, uint64_t stream) noexcept nogil
# Whether a miss need not do so before it searches the pools: there is one stream, idle when it was
# last queried. Only moving pages and dropping views requires to know more about it.
cdef inline bint progress_can_wait(DeviceAllocator* a) noexcept nogil:
    cdef StreamState* only = a.streams
    return only != NULL and only.next == NULL and only.was_idle and only.is_owned
# Waits for the whole device, with the lock dropped: then every stream has caught up with the work
# queued before the wait began. During a capture it only calls the driver, and notes nothing.
cdef status_t progress_synchronize(DeviceAllocator* a) noexcept nogil
# Events to record into, kept for reuse. event_take may drop the lock.
cdef status_t event_take(DeviceAllocator* a, uint64_t* event) noexcept nogil
cdef void event_give(DeviceAllocator* a, uint64_t event) noexcept nogil


# ---- bins

cdef void bins_insert(Bins* bins, Block* block) noexcept nogil
cdef void bins_remove(Bins* bins, Block* block) noexcept nogil
# The smallest block of at least `nbytes` (a multiple of UNIT), or NULL. Stays in the bins.
cdef Block* bins_best_fit(Bins* bins, size_t nbytes) noexcept nogil
# The first block of the largest non-empty column, or NULL.
cdef Block* bins_largest(Bins* bins) noexcept nogil
# The column after the one of `block` (downwards in size), for walks over large blocks.
cdef Block* bins_below(Bins* bins, Block* block) noexcept nogil


# ---- block

# Records come from a slab shared by all devices and go back to it; NULL: no host memory is left.
# Needs no lock.
cdef Block* block_new() noexcept nogil
cdef void block_drop(Block* block) noexcept nogil
# Cuts the tile at `nbytes`; gives the new tail, which has the same state and is in no list. NULL:
# no host memory for its record, which block_cut gets from its caller.
cdef Block* block_split(Block* block, size_t nbytes) noexcept nogil
cdef Block* block_cut(Block* block, size_t nbytes, Block* tail) noexcept nogil
# Joins `block` with the tile after it, which is in no list; the tail's record is dropped.
cdef void block_join_next(Block* block) noexcept nogil
# The block that starts at an address, for callers that hold only the address. Lookups need no
# lock. insert returns False when there is no host memory for the table.
cdef bint block_map_insert(Block* block) noexcept nogil
cdef void block_map_remove(Block* block) noexcept nogil
cdef Block* block_map_find(uint64_t ptr) noexcept nogil


# ---- segment

# The records of a segment over [va, va + nbytes), one UNMAPPED (virtual) or HELD (plain) tile.
cdef Segment* segment_new(BlockPool* pool, uint64_t va, size_t nbytes, bint is_virtual,
                          uint64_t stream, size_t granularity) noexcept nogil
cdef void segment_drop(Segment* segment) noexcept nogil
# Whether a plain segment is one free block, so that it can leave its pool; and whether, besides,
# the device is done with it.
cdef bint segment_is_free(Segment* segment) noexcept nogil
cdef bint segment_is_done(Segment* segment) noexcept nogil
# Moves such a segment to another pool of its kind; returns its block, HELD.
cdef Block* segment_move(Segment* segment, BlockPool* pool) noexcept nogil
# An UNMAPPED tile joins its UNMAPPED neighbours and the hole list.
cdef void hole_insert(Block* block) noexcept nogil
# Writes a page into the segment's map, or takes out the page that starts at an address.
cdef void segment_put_page(Segment* segment, Page* page, uint64_t va) noexcept nogil
cdef Page* segment_take_page(Segment* segment, uint64_t va) noexcept nogil
# The run of whole pages inside a block: its first address and end; False when there is none.
cdef bint block_whole_pages(DeviceAllocator* a, Block* block, uint64_t* start,
                            uint64_t* end) noexcept nogil

cdef inline bint block_is_mapped(Block* block) noexcept nogil:
    cdef int state = gt_load(&block.state)
    return state != BLOCK_UNMAPPED and state != BLOCK_MOVING


# ---- pool

cdef void pools_init(BlockPool* pools, DeviceAllocator* a, PrivatePool* owner,
                     uint64_t pool_id) noexcept nogil
cdef void pool_clear(BlockPool* pool) noexcept nogil
# The one of `pools` that serves a rounded request.
cdef BlockPool* pool_for(BlockPool* pools, size_t nbytes) noexcept nogil
# The bins of a stream, made at first use; NULL when there is no host memory.
cdef StreamBins* pool_bins(BlockPool* pool, uint64_t stream) noexcept nogil
# Inserts a free block, which joins its free neighbours first. insert_all: tiles that were taken out
# of their pools, linked by link_next. give: a block whose use has just ended.
cdef Block* pool_insert(BlockPool* pool, Block* block) noexcept nogil
cdef void pool_insert_all(Block* tiles) noexcept nogil
cdef void pool_give(Block* block) noexcept nogil
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


# ---- thread_cache

# The calling thread's cache for a device, made at first use; NULL without host memory. The first
# three need no lock.
cdef ThreadCache* cache_mine(DeviceAllocator* a) noexcept nogil
# A cached block of exactly this size and stream, for the caller; NULL on a miss.
cdef Block* cache_take(ThreadCache* cache, size_t nbytes, size_t requested,
                       uint64_t stream) noexcept nogil
# Caches a block that its caller frees, in the cache it came from. False: that does not accept it.
cdef bint cache_put(ThreadCache* cache, Block* block, bint is_locked=*) noexcept nogil
# The same under the device lock, for a large block while no other is cached: if its own thread
# frees it, and the pools would keep it as it is and choose it for its size. That holds until they
# receive a neighbour or an equal (`kept_at`); cache_put accepts it until then.
cdef bint cache_keep(ThreadCache* cache, Block* block) noexcept nogil
# Moves all cached blocks of at least `least` bytes to their pools; returns their number.
cdef int caches_drain(DeviceAllocator* a, size_t least=*) noexcept nogil
# The allocator of a device is closed: threads forget its caches.
cdef void caches_forget(DeviceAllocator* a) noexcept nogil
