# The data model of the allocator: the structs, and the equations that hold between them.
#
# Blocks tile their segment, in address order, mapped or not:
#   block.ptr + block.nbytes == block.next.ptr             for every block but the last
# Two FREE neighbours of one stream are never both in the pool: free() merges before it inserts.
# A block is in exactly one place: FREE in the bins of its (pool, stream); UNMAPPED in the hole
# list of its segment; CACHED in the slot of a thread cache; PENDING in the list of its allocator;
# ALLOCATED with a caller; MOVING or HELD with one thread in the middle of an operation.
# Pages cover the mapped part of a virtual segment:
#   sum(page.nbytes in segment.pages) == segment.mapped
#                                     == sum(block.nbytes of blocks not UNMAPPED and not MOVING)
# Everything here is guarded by DeviceAllocator.lock, except what belongs to a ThreadCache, which
# its own spin lock guards. Order of locks: device lock, then cache locks in list order.
# checker.pxi re-derives all of this; DESIGN.md explains it.

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from gputensor._alloc.config cimport AllocatorConfig
from gputensor._driver.table cimport Driver, status_t

cdef extern from "pthread.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass

cdef extern from "gputensor/_alloc/core/sync.h" nogil:
    void gt_spin_lock(int32_t* lock)
    void gt_spin_unlock(int32_t* lock)
    cdef cppclass Held:             # the lock is held to the end of the function
        void take(pthread_mutex_t* mutex)
        bint take_waiting(pthread_mutex_t* mutex)
        void then(void (*function)(int, const char*) noexcept nogil, int device, const char* change)
    cdef cppclass SpinHeld:
        void take(int32_t* lock)
    T gt_load[T](const T* cell)
    void gt_store[T, V](T* cell, V value)
    void gt_add[T, V](T* cell, V value)
    uint8_t gt_clear_byte(uint8_t* cell)
    int gt_highest_bit(uint64_t value)
    int gt_lowest_bit(uint64_t value)

cdef extern from "gputensor/_alloc/core/list.h" nogil:
    cdef cppclass gt_list[T]:
        cppclass iterator:
            T* operator*()
            iterator operator++()
            bint operator!=(iterator)
        iterator begin()
        iterator end()
    gt_list[T] each[T](T* head)         # the records by next
    gt_list[T] linked[T](T* head)       # ... by link_next
    void row_push[T](T** head, T* record)
    void row_remove[T](T** head, T* record)
    T* row_pop[T](T** head)
    void link_push[T](T** head, T* record)
    void link_remove[T](T** head, T* record)
    void chain_push[T](T** head, T* record)
    T* chain_pop[T](T** head)
    void queue_append[Q, T](Q* queue, T* record)

cdef enum:
    UNIT = 512                  # bytes; every block is a multiple of it
    UNIT_SHIFT = 9
    SMALL_LIMIT = 1 << 20       # rounded requests up to this go to the small pools
    MIDDLE = 192 << 10          # ... those from this size on to the middle one, if memory is paged
    SMALL_SEGMENT = 2 << 20     # a plain segment of the small pool
    ROUND_LARGE = 2 << 20       # plain segments of large requests round to this
    MIN_LARGE = 10 << 20        # ... from this size on; below it large_segment_size is taken

# A cache flips its blocks between ALLOCATED and CACHED under its own lock, while the state of a
# neighbour may be read under the device lock: such reads and writes are atomic.
cdef enum:                      # BlockState
    BLOCK_UNMAPPED = 0
    BLOCK_FREE = 1
    BLOCK_CACHED = 2
    BLOCK_ALLOCATED = 3
    BLOCK_PENDING = 4
    BLOCK_MOVING = 5            # not mapped; one thread is about to map it
    BLOCK_HELD = 6              # mapped, free, and in flight in one thread

cdef enum:                      # PoolKind
    POOL_SMALL = 0
    POOL_LARGE = 1
    POOL_MIDDLE = 2             # a place in `pools`; its kind is POOL_SMALL
    POOLS = 3

cdef enum:
    BIN_ROWS = 40
    BIN_COLUMNS = 32
    CACHE_SLOTS = 128
    EVENT_RING = 8

# Declared before use.
cdef struct Block
cdef struct Segment
cdef struct BlockPool
cdef struct ThreadCache
cdef struct DeviceAllocator
cdef struct PrivatePool
cdef struct PoolHold
cdef struct View
cdef struct CaptureReuse
cdef struct PendingQueue

# The use of a block by another stream: kept at the block until that is freed, then in the stream's
# queue until its event is complete.
cdef struct StreamUse:
    uint64_t stream
    uint64_t event              # 0: none could be created or recorded
    uint64_t wait               # ... then a device wait in this epoch or later completes it
    Block* block
    PendingQueue* queue
    StreamUse* next

# The slab aligns records to cache lines. A hit of a thread cache touches the first line only, so
# that threads whose blocks are neighbours do not write to each other's lines.
cdef struct Block:
    uint64_t ptr                # device address of the first byte
    size_t nbytes               # size of the tile, a multiple of UNIT
    size_t requested            # bytes that the caller requested; 0 without owner
    uint64_t stream             # the stream in whose order it may be used
    uint8_t state               # a BlockState
    uint8_t is_split            # not alone in a plain segment: an inactive split when it is free
    uint8_t kind                # a PoolKind
    int8_t device
    uint32_t stack              # where it was allocated (history.pxi), 0 unknown
    Block* link_next            # its place in a bin, hole list, slot or pending list
    ThreadCache* home           # the cache it returns to, or NULL
    StreamUse* uses             # other streams that used it since it was allocated
    # ---- the second line
    Block* link_previous
    Block* previous             # neighbours in address order; in a view, or uncached: in its list
    Block* next
    Segment* segment
    BlockPool* pool
    View* view                  # set when the block lies in a view and is no tile itself
    uint64_t epoch              # FREE: the epoch in which it was freed
    int32_t waits               # PENDING: events not yet seen complete
    uint8_t is_part             # its bytes stand for a block in a view, which a caller holds
    uint8_t is_oversize         # it counts in oversize_allocations
    uint8_t is_by_address       # given out as an address, and given back as one
    # ---- the third line
    Block* parts                # with `view`: the home tiles it stands for, by link_next
    uint64_t kept_at            # `inserts` + 1 when pools would have kept it as it is; 0: unknown

cdef struct Page:
    uint64_t handle
    size_t nbytes
    uint64_t va                 # where it is mapped at home; 0 in the page pool
    int view_count              # views that map it too: it stays at home while there are any
    int views_found             # the checker's count of them
    # Scratch of view_plan.pxi, valid while `stamp` is the plan's number:
    uint64_t stamp
    uint64_t member             # the last plan step that counted it
    size_t free_head            # free bytes from its start, and to its end
    size_t free_tail
    Block* head_tile            # the free tiles that hold them
    Block* tail_tile
    Page* next                  # page pool list

# The source of a private pool's plain segments, in place of the driver: the functions of a
# pluggable allocator. Never freed, because segments point to it. `allocate` may return NULL.
ctypedef void* (*source_allocate_t)(size_t nbytes, int device, void* stream) noexcept nogil
ctypedef void (*source_release_t)(void* ptr, size_t nbytes, int device, void* stream) noexcept nogil

cdef struct MemorySource:
    source_allocate_t allocate
    source_release_t release

cdef struct Segment:
    MemorySource* source        # plain: the source of its memory; NULL: the driver
    uint64_t va
    size_t nbytes               # reserved address space, or the size of a plain segment
    size_t mapped               # bytes backed by memory
    bint is_virtual
    bint is_oversize            # it counts in oversize_segments
    bint is_registered          # pinned: ordinary pages, which the driver registered
    uint64_t idle_since         # plain: blocks of its kind that pools had served at its last free
    uint64_t stream             # the stream that grew it first
    uint32_t stack
    BlockPool* pool
    Block* first                # tiles, in address order
    Block* holes                # UNMAPPED tiles, any order
    Page** pages                # by granule of the range; NULL where not mapped
    Segment* previous
    Segment* next

# Pages mapped a second time, side by side, so that free memory of several places serves one
# request. A view owns no memory: its pages stay in their home segment, which says whether they are
# free.
cdef struct View:
    uint64_t va
    size_t range_nbytes         # reserved address space
    size_t nbytes               # mapped: the sum of its pages
    int page_count
    Page** pages                # in address order
    int use_count               # blocks that callers hold in it, and a thread that extends it
    Block* blocks               # those blocks, by next and previous
    bint is_growing
    # It is unmapped only when the streams that used it, by their bits, are done with this epoch.
    uint64_t streams
    uint64_t epoch
    View* next

# Free blocks by size. Row and column of a size: bins.pxi.
cdef struct Bins:
    uint64_t rows
    uint32_t columns[40]
    Block* heads[40][32]

cdef struct StreamEvent:
    uint64_t event
    uint64_t epoch

# The progress of a stream. A block freed in epoch e is done on the device when e < completed. An
# epoch of the device ends when an event is recorded on any stream, which happens only on a miss.
cdef struct StreamState:
    uint64_t handle
    uint64_t completed
    uint64_t newest             # the largest epoch of the blocks that were free on it so far
    StreamEvent ring[8]
    int ring_count
    bint is_queried             # a thread is querying the driver about it, and owns the ring
    bint is_owned               # its handle stays valid as long as the device is open
    bint was_idle               # when it was last queried
    uint64_t bit                # one of 64 that stand for streams in a set
    StreamState* next

cdef struct StreamBins:
    StreamState* state
    StreamBins* next
    size_t free_nbytes          # sum over the bins
    Bins bins

cdef struct Stat:
    int64_t current, peak, allocated, freed

cdef struct BlockPool:
    int kind                    # a PoolKind
    uint64_t pool_id            # 0: the default pool
    DeviceAllocator* allocator
    PrivatePool* owner          # NULL: the default pool
    StreamBins* streams
    Segment* segments

# The memory of the pool `pool_id` that captures into the graph pool `graph_id` take. Replays write
# to it while it looks free, so neither eager requests of the pool nor captures into other graph
# pools get it. graph_id 0: memory of eager requests.
cdef struct PrivatePool:
    uint64_t pool_id
    uint64_t graph_id
    int use_count               # holders: graphs, MemPool objects
    int scopes                  # in the list of scopes
    int capturing               # ... those of captures among them
    int pins                    # threads that work on it and have dropped the lock
    bint is_for_oom             # its free blocks serve other requests before those fail
    bint is_unsplit             # blocks are neither cut nor joined
    MemorySource* source        # of all its segments; NULL: the driver
    PrivatePool* account        # the record that counts for all with this pool_id:
    int holders                 # ... the sum of their use counts
    Stat reserved[3]            # ... bytes of their segments: all, large, small
    BlockPool pools[3]
    PrivatePool* next

# One more holder of a private pool, until pool_release_holds.
cdef struct PoolHold:
    uint64_t pool_id
    uint64_t graph_id
    PoolHold* next

# While a scope is open, requests that match it are served from its pool.
cdef struct PoolScope:
    PrivatePool* pool
    bint by_thread
    uint64_t owner              # the thread, or the stream
    PoolHold* holds             # of a capture: other pools that it took memory from
    PoolScope* next

# The values that a shard counts, of blocks with callers and of free blocks that are splits.
cdef enum:                      # Flow
    FLOW_BYTES = 0              # allocated and active bytes
    FLOW_COUNT = 1              # and their blocks
    FLOW_REQUESTED = 2
    FLOW_SPLIT_BYTES = 3        # inactive_split bytes
    FLOW_SPLIT_COUNT = 4
    FLOWS = 5

# Counters of one pool kind in one shard, by Flow. `came` and `gone` only grow; current is their
# difference. A budget says by how much current may still rise before a peak could be exceeded.
cdef struct Counters:
    uint64_t came[5]
    uint64_t gone[5]
    int64_t budgets[5]

cdef struct CacheSlot:
    uint64_t stream
    size_t nbytes               # the one size it holds; 0: unused
    int count
    Block* head

# A thread's cache in front of the pools of one device.
cdef struct ThreadCache:
    int32_t lock
    int32_t in_use              # a thread has it; otherwise it waits for the next new thread
    DeviceAllocator* allocator
    size_t cached_nbytes[2]     # below MIDDLE, and from there on
    int cached_count
    Counters counters[2]
    ThreadCache* next
    CacheSlot slots[128]

# The order is part of the contract with statistics_names.py.
cdef enum:                      # StatType
    STAT_ALLOCATION = 0
    STAT_ACTIVE = 1
    STAT_SEGMENT = 2
    STAT_INACTIVE_SPLIT = 3
    STAT_ALLOCATED_BYTES = 4
    STAT_ACTIVE_BYTES = 5
    STAT_REQUESTED_BYTES = 6
    STAT_RESERVED_BYTES = 7
    STAT_INACTIVE_SPLIT_BYTES = 8
    STAT_TYPES = 9

# A block freed in a capture whose streams all take part in it: it is free for a stream whose next
# work comes after all `nodes`.
cdef struct CaptureReuse:
    Block* block
    uint64_t capture_id
    int count
    uint64_t* nodes
    CaptureReuse* next

# Uses on one other stream, oldest first.
cdef struct PendingQueue:
    uint64_t stream
    StreamUse* head
    StreamUse* tail
    PendingQueue* next

cdef struct DeviceAllocator:
    pthread_mutex_t lock
    Driver* driver
    int device
    size_t granularity          # bytes; 0: no virtual memory
    size_t total_nbytes         # of the device
    AllocatorConfig config
    size_t limit_nbytes         # reserved may not exceed it; SIZE_MAX: no limit
    bint caching                # caching_allocator_enable()
    bint is_pinned              # of the pinned host memory of the device (pinned/)
    BlockPool pools[3]
    PrivatePool* private_pools
    PoolScope* scopes
    View* views                 # of the large default pool, most recently used first
    int view_count
    int view_limit              # how many there may be
    uint64_t view_clock         # number of the newest plan, and of its newest step
    uint64_t view_clock_step
    double mapping_us           # what creating and mapping has cost so far, by the model
    uint64_t used_before        # bytes served by large memory that the driver has back since
    int32_t scope_count         # read without the lock: caches are bypassed when not 0
    int capturing               # captures under way: no events are recorded or polled
    StreamState* streams
    uint64_t epoch              # the current one: see StreamState
    uint64_t waited             # the latest epoch that a wait for the whole device has covered
    # free pages of the device; the bytes include pages in flight in a thread that grows
    Page* page_pool
    size_t page_pool_nbytes
    int in_flight               # threads that hold tiles, pages or views outside of their lists
    # frees that wait for other streams
    PendingQueue* pending
    int64_t pending_sums[2][2]  # [FLOW_BYTES and FLOW_COUNT][kind]
    int64_t leads[2][2]         # how much more room `active` has below its peak than `allocated`
    int pending_in_flight       # events that threads query or wait for, out of their queues
    int driver_requests         # threads that call the driver without the lock: see pool_begin
    Block* deferred             # freed during a capture, with uses; link_next
    CaptureReuse* capture_reuses  # uses that the graph has to order before a reuse
    uint64_t* spare_events      # events to record into again
    int spare_event_count
    int spare_event_capacity
    # thread caches, newest first; none is ever freed
    ThreadCache* caches
    int32_t cache_count
    int32_t caches_in_use       # ... those that threads have now
    int32_t contention          # requests and frees until the lock counts as free of contention
    ThreadCache* large_holder   # without contention: the only one with large blocks, if any has
    uint64_t inserts[64]        # free blocks that pools have received, by units of size modulo 64
    # statistics; see statistics.pxi
    Counters counters[2]        # the shard of work done under the device lock
    Stat stats[9][3]            # [type][all, large, small], exact after settle(); from here on in
    Stat oversize_allocations   # the order of statistics_names.py
    Stat oversize_segments
    int64_t num_ooms
    int64_t num_alloc_retries
    int64_t num_sync_all_streams
    int64_t num_device_alloc
    int64_t num_device_free
    int64_t num_oom_rejections
    Block* uncached             # blocks that bypass the pools (uncached.pxi), by next and previous
    Block* unreleased           # ... that the driver did not take back yet; link_next
    # Only misses read these; the fields of a hit stay together.
    size_t making_nbytes        # bytes that threads are creating; see limit_claim
    int retired_pools           # private pools without holder and scope
    uint64_t returns            # how often a thread returned memory: in_flight.pxi
    uint64_t frees              # blocks that callers gave back to the pools
    double making_us            # of the pages ever made: what making and mapping them cost
    double moving_us            # the cost of page moves between pools so far: page_moves.pxi
