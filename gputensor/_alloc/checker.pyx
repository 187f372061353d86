# distutils: language = c++
"""Re-derives every invariant of model.pxd and statistics.pyx from the records themselves.

`check(device)` stops the allocator, walks everything, and returns the violations it finds as
sentences, none when all holds. Debug builds call it after every change (allocator.pyx).
"""

from libc.stdint cimport int64_t, uint64_t, uintptr_t

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
    View,
)
from gputensor._alloc.mutex cimport device_lock, device_unlock
from gputensor._alloc.segment cimport block_has_mapped_neighbour, block_is_mapped
from gputensor._alloc.statistics cimport caches_resume, caches_stop, stats_settle

from gputensor._alloc.device_allocator import open_allocator


cdef class Totals:
    """What the walk adds up, to be compared with the counters."""

    cdef int64_t free_bytes, parked_bytes, allocated_bytes, pending_bytes, mapped, split_bytes
    cdef int64_t moving, part_bytes
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
                and block.stream == following.stream
                and (segment.pool.owner == NULL or not segment.pool.owner.is_unsplit)):
            totals.faults.append(f"{name}: two free neighbours of one stream")
        if block.state == BLOCK_UNMAPPED and following.state == BLOCK_UNMAPPED:
            totals.faults.append(f"{name}: two holes side by side")
    elif block.ptr + block.nbytes != segment.va + segment.nbytes:
        totals.faults.append(f"{name}: the tiles end before their segment")
    if not block_is_mapped(block):
        return
    totals.mapped += block.nbytes
    totals.part_bytes += block.nbytes if block.is_part else 0
    if block.is_part and block.state not in (BLOCK_ALLOCATED, BLOCK_PENDING):
        totals.faults.append(f"{name}: part of a block in a view")
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


# What a private pool counts is what its segments have.
cdef void _check_private(PrivatePool* private, Totals totals):
    cdef Segment* segment
    cdef int64_t mapped[2]
    cdef int i
    for i in range(2):
        mapped[i] = 0
        segment = private.pools[i].segments
        while segment != NULL:
            mapped[i] += segment.mapped
            segment = segment.next
        _compare(totals, f"reserved bytes of pool {private.pool_id}", mapped[i],
                 private.reserved[2 - i].current)
    _compare(totals, f"reserved bytes of pool {private.pool_id}", mapped[0] + mapped[1],
             private.reserved[0].current)
    for i in range(3):
        if not 0 <= private.reserved[i].current <= private.reserved[i].peak:
            totals.faults.append(f"pool {private.pool_id}: current not within its peak")


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


# Ranges of bytes in address order, touching ones joined.
cdef list _joined(list ranges):
    cdef list joined = []
    first, last = 0, 0
    for start, end in sorted(ranges):
        if start != last:
            joined.append((first, last))
            first = start
        last = end
    joined.append((first, last))
    return joined


# The bytes of a view's block are, where its pages are at home, those of its parts, each once.
cdef void _check_view_block(DeviceAllocator* a, View* view, Block* block, Totals totals):
    cdef str name = f"block {block.ptr:#x}+{block.nbytes} of a view (state {block.state})"
    cdef Block* tile = block.parts
    cdef Page* page
    cdef uint64_t va = view.va
    cdef uint64_t start, end
    cdef list parts = []
    cdef list mapped = []
    cdef int i
    if block.view != view or block.state not in (BLOCK_ALLOCATED, BLOCK_PENDING):
        totals.faults.append(f"{name}: wrong view or state")
    while tile != NULL:
        if not tile.is_part or tile.state != block.state:
            totals.faults.append(f"{name}: part {tile.ptr:#x} has state {tile.state}")
        parts.append((tile.ptr, tile.ptr + tile.nbytes))
        tile = tile.link_next
    for i in range(view.page_count):
        page = view.pages[i]
        start = max(va, block.ptr)
        end = min(va + page.nbytes, block.ptr + block.nbytes)
        if start < end:
            mapped.append((page.va + (start - va), page.va + (end - va)))
        va += page.nbytes
    if _joined(parts) != _joined(mapped):
        totals.faults.append(f"{name}: its parts are not what is mapped there")


cdef void _check_views(DeviceAllocator* a, Totals totals):
    cdef View* view = a.views
    cdef Block* block
    cdef Page* page
    cdef size_t mapped
    cdef int64_t part_bytes = 0
    cdef int i, count, listed = 0
    cdef dict mappings = {}
    while view != NULL:
        listed += 1
        mapped = 0
        for i in range(view.page_count):
            page = view.pages[i]
            mapped += page.nbytes
            mappings[<uintptr_t>page] = mappings.get(<uintptr_t>page, 0) + 1
            if page.va == 0:
                totals.faults.append(f"a page of view {view.va:#x} has no home")
        if mapped != view.nbytes or view.nbytes > view.range_nbytes:
            totals.faults.append(f"view {view.va:#x}: pages {mapped}, mapped {view.nbytes}")
        count = 0
        block = view.blocks
        while block != NULL:
            count += 1
            part_bytes += block.nbytes
            _check_view_block(a, view, block, totals)
            block = block.next
        if count + (1 if view.is_growing else 0) != view.use_count:
            totals.faults.append(f"view {view.va:#x}: {count} blocks, use_count {view.use_count}")
        view = view.next
    if totals.moving == 0 and (listed != a.view_count or listed > a.view_limit):
        totals.faults.append(f"{listed} views listed, {a.view_count} counted of {a.view_limit}")
    for number, count in mappings.items():
        page = <Page*><uintptr_t>number
        if page.view_count != count:
            totals.faults.append(f"page at {page.va:#x}: in {count} views, counts "
                                 f"{page.view_count}")
    _compare(totals, "parts of blocks in views", totals.part_bytes, part_bytes)


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
    cdef Block* block
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
            _check_private(private, totals)
            private = private.next
        _check_caches(a, totals)
        _check_views(a, totals)
        block = a.direct
        while block != NULL:
            totals.mapped += block.nbytes
            if block.state == BLOCK_ALLOCATED:
                totals.allocated_bytes += block.nbytes
            block = block.next
        if totals.moving == 0:
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


def view_blocks(int device):
    """Return the addresses of the blocks that callers hold in views."""
    cdef DeviceAllocator* a = allocator_find(device)
    cdef View* view
    cdef Block* block
    found = []
    if a == NULL:
        return found
    device_lock(a)
    view = a.views
    while view != NULL:
        block = view.blocks
        while block != NULL:
            found.append(block.ptr)
            block = block.next
        view = view.next
    device_unlock(a)
    return found


def view_sizes(int device):
    """Return the mapped bytes of each view, most recently used first."""
    cdef DeviceAllocator* a = allocator_find(device)
    cdef View* view
    found = []
    if a == NULL:
        return found
    device_lock(a)
    view = a.views
    while view != NULL:
        found.append(view.nbytes)
        view = view.next
    device_unlock(a)
    return found


def limit_views(int device, int count):
    """Allow a device fewer views than the default, so that a small program fills the table."""
    open_allocator(device)
    cdef DeviceAllocator* a = allocator_find(device)
    device_lock(a)
    a.view_limit = count
    device_unlock(a)
