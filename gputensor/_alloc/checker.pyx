# distutils: language = c++
"""Re-derives every invariant of model.pxd and statistics.pyx from the records themselves.

`check(device)` stops the allocator, walks everything, and returns the violations it finds as
sentences, none when all holds. Debug builds call it after every change (allocator.pyx).
"""

from libc.stdint cimport int64_t

from gputensor._alloc.device_allocator cimport allocator_find
from gputensor._alloc.model cimport (
    BIN_COLUMNS,
    BIN_ROWS,
    BLOCK_ALLOCATED,
    BLOCK_FREE,
    BLOCK_PARKED,
    BLOCK_PENDING,
    BLOCK_UNMAPPED,
    CACHE_SLOTS,
    STAT_ACTIVE_BYTES,
    STAT_ALLOCATED_BYTES,
    STAT_INACTIVE_SPLIT_BYTES,
    STAT_RESERVED_BYTES,
    STAT_TYPES,
    Block,
    BlockPool,
    DeviceAllocator,
    Page,
    PrivatePool,
    Segment,
    StreamBins,
    ThreadCache,
)
from gputensor._alloc.mutex cimport device_lock, device_unlock
from gputensor._alloc.segment cimport block_has_mapped_neighbour, block_is_mapped
from gputensor._alloc.statistics cimport caches_resume, caches_stop, stats_settle


cdef class Totals:
    """What the walk adds up, to be compared with the counters."""

    cdef int64_t free_bytes, parked_bytes, allocated_bytes, pending_bytes, mapped, split_bytes
    cdef int64_t moving
    cdef list faults

    def __cinit__(self):
        self.faults = []


cdef void _check_pages(DeviceAllocator* a, Segment* segment, Totals totals):
    cdef size_t cell = 0
    cdef size_t mapped = 0
    cdef size_t cells = segment.nbytes // a.granularity
    cdef Page* page
    while cell < cells:
        page = segment.pages[cell]
        if page == NULL:
            cell += 1
            continue
        if page.va != segment.va + cell * a.granularity:
            totals.faults.append(f"page at cell {cell} says it is mapped at {page.va:#x}")
        mapped += page.nbytes
        cell += page.nbytes // a.granularity
    if mapped != segment.mapped:
        totals.faults.append(f"segment {segment.va:#x}: pages {mapped}, mapped {segment.mapped}")


cdef void _check_tile(Segment* segment, Block* block, Totals totals):
    cdef Block* following = block.next
    cdef str name = f"block {block.ptr:#x}+{block.nbytes} (state {block.state})"
    if block.nbytes == 0 or block.nbytes % 512:
        totals.faults.append(f"{name}: size is not a multiple of 512")
    if block.segment != segment or block.pool != segment.pool:
        totals.faults.append(f"{name}: wrong segment or pool")
    if following != NULL:
        if block.ptr + block.nbytes != following.ptr or following.previous != block:
            totals.faults.append(f"{name}: does not touch its next tile {following.ptr:#x}")
        if (block.state == BLOCK_FREE and following.state == BLOCK_FREE
                and block.stream == following.stream):
            totals.faults.append(f"{name}: two free neighbours of one stream")
        if block.state == BLOCK_UNMAPPED and following.state == BLOCK_UNMAPPED:
            totals.faults.append(f"{name}: two holes side by side")
    elif block.ptr + block.nbytes != segment.va + segment.nbytes:
        totals.faults.append(f"{name}: the tiles end before their segment")
    if not block_is_mapped(block):
        return
    totals.mapped += block.nbytes
    if block.state in (BLOCK_FREE, BLOCK_PARKED):
        if bool(block.is_split) != bool(block_has_mapped_neighbour(block)):
            totals.faults.append(f"{name}: is_split {block.is_split}, its neighbours disagree")
        if block.is_split:
            totals.split_bytes += block.nbytes
    if block.state == BLOCK_FREE:
        totals.free_bytes += block.nbytes
    elif block.state == BLOCK_PARKED:
        totals.parked_bytes += block.nbytes
    elif block.state == BLOCK_ALLOCATED:
        totals.allocated_bytes += block.nbytes
    elif block.state == BLOCK_PENDING:
        totals.pending_bytes += block.nbytes
    else:
        totals.moving += 1


cdef void _check_bins(BlockPool* pool, Totals totals, int64_t* binned):
    cdef StreamBins* sb = pool.streams
    cdef Block* block
    cdef int row, column
    cdef int64_t sum_bytes
    while sb != NULL:
        sum_bytes = 0
        for row in range(BIN_ROWS):
            for column in range(BIN_COLUMNS):
                block = sb.bins.heads[row][column]
                if (block != NULL) != bool(sb.bins.columns[row] & (1 << column)):
                    totals.faults.append(f"bin {row},{column}: bitmap and list disagree")
                while block != NULL:
                    if block.state != BLOCK_FREE or block.stream != sb.state.handle:
                        totals.faults.append(f"block {block.ptr:#x} in a bin: state {block.state}")
                    sum_bytes += block.nbytes
                    block = block.link_next
        if sum_bytes != <int64_t>sb.free_nbytes:
            totals.faults.append(f"stream {sb.state.handle}: bins hold {sum_bytes}, "
                                 f"free_nbytes is {sb.free_nbytes}")
        binned[0] += sum_bytes
        sb = sb.next


cdef void _check_pool(DeviceAllocator* a, BlockPool* pool, Totals totals):
    cdef Segment* segment = pool.segments
    cdef Block* block
    cdef int64_t binned = 0
    cdef int64_t before = totals.free_bytes
    while segment != NULL:
        if segment.is_virtual:
            _check_pages(a, segment, totals)
        block = segment.first
        if block.ptr != segment.va or block.previous != NULL:
            totals.faults.append(f"segment {segment.va:#x} does not begin with its first tile")
        while block != NULL:
            _check_tile(segment, block, totals)
            block = block.next
        segment = segment.next
    _check_bins(pool, totals, &binned)
    if binned != totals.free_bytes - before:
        totals.faults.append(f"pool kind {pool.kind}: free tiles {totals.free_bytes - before}, "
                             f"binned {binned}")


cdef void _check_caches(DeviceAllocator* a, Totals totals):
    cdef ThreadCache* cache = a.caches
    cdef Block* block
    cdef int64_t parked = 0
    cdef int i
    while cache != NULL:
        for i in range(CACHE_SLOTS):
            block = cache.slots[i].head
            while block != NULL:
                if block.state != BLOCK_PARKED or block.nbytes != cache.slots[i].nbytes:
                    totals.faults.append(f"block {block.ptr:#x} in a cache: state {block.state}")
                parked += block.nbytes
                block = block.link_next
        cache = cache.next
    if parked != totals.parked_bytes:
        totals.faults.append(f"parked tiles {totals.parked_bytes}, in caches {parked}")


cdef void _compare(Totals totals, str what, int64_t walked, int64_t counted):
    if walked != counted:
        totals.faults.append(f"{what}: {walked} by the walk, {counted} by the counters")


def check(int device):
    """Return the violated invariants of a device's allocator, as sentences.

    Meant for moments when no thread is in the middle of an operation; blocks in such hands are left
    out of the sums.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Totals totals = Totals()
    cdef PrivatePool* private
    cdef int i
    if a == NULL:
        return []
    device_lock(a)
    caches_stop(a)
    stats_settle(a)
    try:
        for i in range(2):
            _check_pool(a, &a.pools[i], totals)
        private = a.private_pools
        while private != NULL:
            for i in range(2):
                _check_pool(a, &private.pools[i], totals)
            private = private.next
        _check_caches(a, totals)
        if totals.moving == 0 and a.direct_count == 0:
            _compare(totals, "reserved bytes", totals.mapped + <int64_t>a.page_pool_nbytes,
                     a.stats[STAT_RESERVED_BYTES][0].current)
            _compare(totals, "allocated bytes", totals.allocated_bytes,
                     a.stats[STAT_ALLOCATED_BYTES][0].current)
            _compare(totals, "active bytes", totals.allocated_bytes + totals.pending_bytes,
                     a.stats[STAT_ACTIVE_BYTES][0].current)
            _compare(totals, "inactive split bytes", totals.split_bytes,
                     a.stats[STAT_INACTIVE_SPLIT_BYTES][0].current)
        for i in range(STAT_TYPES * 3):
            if (&a.stats[0][0])[i].current > (&a.stats[0][0])[i].peak:
                totals.faults.append(f"statistic {i}: current above peak")
            if (&a.stats[0][0])[i].current < 0:
                totals.faults.append(f"statistic {i}: negative")
    finally:
        caches_resume(a)
        device_unlock(a)
    return totals.faults
