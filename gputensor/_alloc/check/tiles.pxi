"""The check of segments: their tiles, pages and holes, and the bins that the free tiles are in.

Each equation of model.pxd is derived here a second time, from the records alone; nothing calls the
functions that keep them. The device lock is held and the caches are stopped.
"""

ctypedef unsigned long long tiles_ull


cdef void _fault(Walk* walk, Block* block, const char* what) noexcept nogil:
    gt_fault(walk.faults, "block %#llx+%zu (state %d): %s", <tiles_ull>block.ptr, block.nbytes,
             <int>block.state, what)


# Says of two figures that should be one that they are not.
cdef void figures_check(Walk* walk, const char* what, int64_t walked,
                        int64_t counted) noexcept nogil:
    if walked != counted:
        gt_fault(walk.faults, "%s: %lld by the walk, %lld by the counters", what,
                 <long long>walked, <long long>counted)


# Adds a block that is not free to the sums; a part of a view's block is none.
cdef void block_count(Walk* walk, Block* block) noexcept nogil:
    cdef int kind = block.kind
    if block.is_oversize:
        walk.oversize_count += 1
        if block.state != BLOCK_ALLOCATED or block.is_part or block.home != NULL:
            _fault(walk, block, "it counts as oversize, and it has no owner or a cache may take it")
    if block.is_part:
        walk.part_nbytes += block.nbytes
    elif block.state == BLOCK_ALLOCATED:
        walk.given_count[kind] += 1
        walk.given_nbytes[kind] += block.nbytes
        walk.given_requested[kind] += block.requested
    elif block.state == BLOCK_PENDING:
        walk.pending_count[kind] += 1
        walk.pending_nbytes[kind] += block.nbytes
        walk.waits += block.waits
        walk.unqueued += block.waits == 0


cdef inline bint _is_unsplit(BlockPool* pool) noexcept nogil:
    return pool.owner != NULL and pool.owner.is_unsplit


# The invariants of each tile alone and with its neighbour.
cdef void _check_tile(DeviceAllocator* a, Walk* walk, Segment* segment,
                      Block* block) noexcept nogil:
    cdef Block* following = block.next
    cdef bint is_given = block.state == BLOCK_ALLOCATED and not block.is_part
    if block.nbytes == 0 or block.nbytes % UNIT:
        _fault(walk, block, "its size is not a multiple of 512")
    if (block.segment != segment or block.pool != segment.pool
            or block.kind != segment.pool.kind or block.device != a.device):
        _fault(walk, block, "wrong segment, pool or device")
    if block.view != NULL or block.parts != NULL:
        _fault(walk, block, "a tile that says it lies in a view")
    if is_given != (block.requested > 0) or block.requested > block.nbytes:
        _fault(walk, block, "what was requested does not fit its state and size")
    if following == NULL:
        if block.ptr + block.nbytes != segment.va + segment.nbytes:
            _fault(walk, block, "the tiles end before their segment")
        return
    if block.ptr + block.nbytes != following.ptr or following.previous != block:
        _fault(walk, block, "does not touch its next tile")
    if (block.state == BLOCK_FREE and following.state == BLOCK_FREE
            and block.stream == following.stream and not _is_unsplit(segment.pool)):
        _fault(walk, block, "two free neighbours of one stream")
    if block.state == BLOCK_UNMAPPED and following.state == BLOCK_UNMAPPED:
        _fault(walk, block, "two holes side by side")


# A tile with memory: its place in the sums.
cdef void _check_mapped(DeviceAllocator* a, Walk* walk, Block* block) noexcept nogil:
    cdef Segment* segment = block.segment
    cdef size_t cell
    cdef bint is_split
    if block.is_part and block.state not in (BLOCK_ALLOCATED, BLOCK_PENDING):
        _fault(walk, block, "a part of a view's block is not in use")
    if block.state in (BLOCK_FREE, BLOCK_CACHED):
        is_split = not segment.is_virtual and block.nbytes != segment.nbytes
        if (block.is_split != 0) != is_split:
            _fault(walk, block, "is_split and its neighbours disagree")
        if block.is_split:
            walk.split_count[block.kind] += 1
            walk.split_nbytes[block.kind] += block.nbytes
    if block.state == BLOCK_CACHED:
        walk.cached_count += 1
        walk.cached_nbytes += block.nbytes
    block_count(walk, block)
    if _is_unsplit(segment.pool):
        if segment.is_virtual:
            cell = (block.ptr - segment.va) // a.granularity
            if segment.va + cell * a.granularity != block.ptr or segment.pages[cell] == NULL:
                _fault(walk, block, "a tile of a pool without splits was cut")
        elif block.nbytes != segment.nbytes:
            _fault(walk, block, "a tile of a pool without splits was cut")


cdef void _check_pages(DeviceAllocator* a, Walk* walk, Segment* segment) noexcept nogil:
    cdef size_t cell = 0
    cdef size_t mapped = 0
    cdef size_t cells = segment.nbytes // a.granularity
    while cell < cells:
        page = segment.pages[cell]
        if page == NULL:
            cell += 1
            continue
        if page.va != segment.va + cell * a.granularity:
            gt_fault(walk.faults, "the page at %#llx says it is mapped at %#llx",
                     <tiles_ull>(segment.va + cell * a.granularity), <tiles_ull>page.va)
        if page.view_count != 0 and segment.pool != &a.pools[POOL_LARGE]:
            gt_fault(walk.faults, "the page at %#llx is in a view of another pool",
                     <tiles_ull>page.va)
        page.views_found = 0            # views.pxi goes on from here
        mapped += page.nbytes
        cell += page.nbytes // a.granularity
    if mapped != segment.mapped:
        gt_fault(walk.faults, "segment %#llx: its pages have %zu bytes, mapped are %zu",
                 <tiles_ull>segment.va, mapped, segment.mapped)


cdef void _check_segment(DeviceAllocator* a, Walk* walk, Segment* segment,
                         int64_t* free_count, int64_t* free_nbytes) noexcept nogil:
    cdef Block* block = segment.first
    cdef size_t mapped = 0
    cdef int holes = 0
    if block.ptr != segment.va or block.previous != NULL:
        gt_fault(walk.faults, "segment %#llx does not begin with its first tile",
                 <tiles_ull>segment.va)
    while block != NULL:
        _check_tile(a, walk, segment, block)
        if block_is_mapped(block):
            mapped += block.nbytes
            _check_mapped(a, walk, block)
        if block.state == BLOCK_FREE:
            free_count[0] += 1
            free_nbytes[0] += block.nbytes
        holes += block.state == BLOCK_UNMAPPED
        block = block.next
    if mapped != segment.mapped:
        gt_fault(walk.faults, "segment %#llx: its mapped tiles have %zu bytes, mapped are %zu",
                 <tiles_ull>segment.va, mapped, segment.mapped)
    block = segment.holes
    while block != NULL:
        if block.state != BLOCK_UNMAPPED or block.segment != segment:
            _fault(walk, block, "is in the list of holes")
        holes -= 1
        block = block.link_next
    if holes != 0:
        gt_fault(walk.faults, "segment %#llx: %d holes are not in its list",
                 <tiles_ull>segment.va, holes)


# The list for a size: below 32 units one for each, above it 32 between two powers of two.
cdef inline bint _belongs(Block* block, int row, int column) noexcept nogil:
    cdef size_t units = block.nbytes // UNIT
    cdef int high
    if units < 32:
        return row == 0 and column == <int>units
    high = gt_highest_bit(units)
    return row == high - 4 and column == <int>(units >> (high - 5)) - 32


cdef void _check_bins(Walk* walk, BlockPool* pool, StreamBins* sb, int64_t* count,
                      int64_t* nbytes) noexcept nogil:
    cdef int64_t here = 0
    cdef int row, column
    cdef bint is_marked
    cdef Block* before
    for row in range(BIN_ROWS):
        is_marked = (sb.bins.rows >> row) & 1
        if is_marked != (sb.bins.columns[row] != 0):
            gt_fault(walk.faults, "bins of stream %#llx: row %d and its columns disagree",
                     <tiles_ull>sb.state.handle, row)
        for column in range(BIN_COLUMNS):
            block = sb.bins.heads[row][column]
            is_marked = (sb.bins.columns[row] >> column) & 1
            if is_marked != (block != NULL):
                gt_fault(walk.faults, "bin %d,%d of stream %#llx: bitmap and list disagree", row,
                         column, <tiles_ull>sb.state.handle)
            before = NULL
            while block != NULL:
                if (block.state != BLOCK_FREE or block.stream != sb.state.handle
                        or block.pool != pool or block.link_previous != before
                        or not _belongs(block, row, column)):
                    _fault(walk, block, "is in a bin that is not its own")
                here += block.nbytes
                count[0] += 1
                before = block
                block = block.link_next
    nbytes[0] += here
    if here != <int64_t>sb.free_nbytes:
        gt_fault(walk.faults, "bins of stream %#llx hold %lld bytes and say %zu",
                 <tiles_ull>sb.state.handle, <long long>here, sb.free_nbytes)


cdef void _check_pool(DeviceAllocator* a, Walk* walk, BlockPool* pool,
                      int64_t* mapped) noexcept nogil:
    cdef Segment* segment = pool.segments
    cdef StreamBins* sb = pool.streams
    cdef int64_t free_count = 0
    cdef int64_t free_nbytes = 0
    cdef int64_t binned_count = 0
    cdef int64_t binned_nbytes = 0
    mapped[0] = 0
    while segment != NULL:
        if segment.is_virtual:
            _check_pages(a, walk, segment)
        else:
            walk.segments[pool.kind] += 1
        _check_segment(a, walk, segment, &free_count, &free_nbytes)
        if segment.idle_since > a.counters[pool.kind].came[FLOW_COUNT]:
            gt_fault(walk.faults, "segment %#llx: its last free comes after the newest block",
                     <tiles_ull>segment.va)
        walk.oversize_segments += segment.is_oversize != 0
        mapped[0] += segment.mapped
        segment = segment.next
    walk.mapped[pool.kind] += mapped[0]
    while sb != NULL:
        _check_bins(walk, pool, sb, &binned_count, &binned_nbytes)
        sb = sb.next
    figures_check(walk, "free tiles and those in bins", free_count, binned_count)
    figures_check(walk, "bytes of free tiles and in bins", free_nbytes, binned_nbytes)


# The holders of a private pool are counted there; the retired pools, in the allocator.
cdef void _check_holders(DeviceAllocator* a, Walk* walk, PrivatePool* private) noexcept nogil:
    cdef PoolScope* scope = a.scopes
    cdef int64_t scopes = 0
    while scope != NULL:
        scopes += scope.pool == private
        scope = scope.next
    figures_check(walk, "scopes of a private pool", scopes, private.scopes)
    if private.use_count < 0 or private.pins < 0 or not 0 <= private.capturing <= private.scopes:
        gt_fault(walk.faults, "pool %llu: a count of its holders is wrong",
                 <tiles_ull>private.pool_id)


# The sums over the records of one pool.
cdef void _check_account(DeviceAllocator* a, Walk* walk, PrivatePool* account) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    cdef int64_t[2] mapped
    cdef int64_t holders = 0
    cdef int i
    mapped[0] = mapped[1] = 0
    while private != NULL:
        if (private.account == account) != (private.pool_id == account.pool_id):
            gt_fault(walk.faults, "pool %llu: a record of it counts elsewhere",
                     <tiles_ull>private.pool_id)
        if private.pool_id == account.pool_id:
            holders += private.use_count
            for i in range(2):
                segment = private.pools[i].segments
                while segment != NULL:
                    mapped[i] += <int64_t>segment.mapped
                    segment = segment.next
        private = private.next
    figures_check(walk, "holders of a private pool", holders, account.holders)
    for i in range(2):
        figures_check(walk, "reserved bytes of a kind in a private pool", mapped[i],
                      account.reserved[2 - i].current)
    figures_check(walk, "reserved bytes of a private pool", mapped[0] + mapped[1],
                  account.reserved[0].current)
    for i in range(3):
        if not 0 <= account.reserved[i].current <= account.reserved[i].peak:
            gt_fault(walk.faults, "pool %llu: its reserved bytes are above their peak",
                     <tiles_ull>account.pool_id)


# Pools, segments, tiles, pages, holes and bins: invariants 1 to 5 of DESIGN.md.
cdef void tiles_check(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    cdef int64_t[2] mapped
    cdef int64_t retired = 0
    cdef int i
    for i in range(2):
        _check_pool(a, walk, &a.pools[i], &mapped[i])
    while private != NULL:
        _check_holders(a, walk, private)
        retired += private.use_count == 0 and private.scopes == 0
        for i in range(2):
            _check_pool(a, walk, &private.pools[i], &mapped[i])
        if private.account == private:
            _check_account(a, walk, private)
        private = private.next
    figures_check(walk, "private pools without holder and scope", retired, a.retired_pools)
