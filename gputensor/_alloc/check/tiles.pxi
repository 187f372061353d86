"""The check of segments: their tiles, pages and holes, and the bins that the free tiles are in.

Each equation of model.pxd is derived here a second time, from the records alone; nothing calls the
functions that keep them. The device lock is held and the caches are stopped.
"""

cdef extern from "gputensor/_alloc/check/faults.h" nogil:
    enum:
        GT_FAULTS
    ctypedef struct gt_faults:
        int count
        char[24][224] texts
    void gt_fault(gt_faults* faults, const char* format, ...)
    void gt_faults_abort(const gt_faults* faults, int device, const char* change)

# The sums of a walk over a device's records.
cdef struct Walk:
    gt_faults* faults
    int64_t[2][9] sums          # by PoolKind and StatType: what the statistics should be
    int64_t oversize_count      # blocks and segments that are marked as oversize
    int64_t oversize_segments
    int64_t cached_count
    int64_t cached_nbytes
    int64_t part_nbytes         # tiles that stand for blocks in views
    int64_t waits               # of the pending blocks
    int64_t unqueued            # pending blocks that wait for no event yet
    bint is_settling            # a thread has left its budget, and not moved the peaks yet


cdef void _fault(Walk* walk, Block* block, const char* what) noexcept nogil:
    gt_fault(walk.faults, "block %#lx+%zu (state %d): %s", block.ptr, block.nbytes, block.state,
             what)


# Reports two figures that should be equal if they differ.
cdef void figures_check(Walk* walk, const char* what, int64_t walked,
                        int64_t counted) noexcept nogil:
    if walked != counted:
        gt_fault(walk.faults, "%s: %ld by the walk, %ld by the counters", what, walked, counted)


# Adds a block that is not free to the sums; a part of a view's block does not count as one.
cdef void block_count(Walk* walk, Block* block) noexcept nogil:
    cdef int64_t* sums = walk.sums[block.kind]
    if block.is_oversize:
        walk.oversize_count += 1
        if block.state != BLOCK_ALLOCATED or block.is_part or block.home != NULL:
            _fault(walk, block, "it counts as oversize, and it has no owner or a cache may take it")
    if block.is_part:
        walk.part_nbytes += block.nbytes
    elif block.state in (BLOCK_ALLOCATED, BLOCK_PENDING):
        sums[STAT_ACTIVE] += 1
        sums[STAT_ACTIVE_BYTES] += block.nbytes
        if block.state == BLOCK_ALLOCATED:
            sums[STAT_ALLOCATION] += 1
            sums[STAT_ALLOCATED_BYTES] += block.nbytes
            sums[STAT_REQUESTED_BYTES] += block.requested
        else:
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


# Checks a mapped tile and adds it to the sums.
cdef void _check_mapped(DeviceAllocator* a, Walk* walk, Block* block) noexcept nogil:
    cdef Segment* segment = block.segment
    cdef size_t cell
    cdef bint is_split, is_cut = False
    if block.is_part and block.state not in (BLOCK_ALLOCATED, BLOCK_PENDING):
        _fault(walk, block, "a part of a view's block is not in use")
    if block.state in (BLOCK_FREE, BLOCK_CACHED):
        is_split = not segment.is_virtual and block.nbytes != segment.nbytes
        if (block.is_split != 0) != is_split:
            _fault(walk, block, "is_split and its neighbours disagree")
        if block.is_split:
            walk.sums[block.kind][STAT_INACTIVE_SPLIT] += 1
            walk.sums[block.kind][STAT_INACTIVE_SPLIT_BYTES] += block.nbytes
    if block.state == BLOCK_CACHED:
        walk.cached_count += 1
        walk.cached_nbytes += block.nbytes
    block_count(walk, block)
    if _is_unsplit(segment.pool):
        if segment.is_virtual:
            cell = (block.ptr - segment.va) // a.granularity
            is_cut = segment.va + cell * a.granularity != block.ptr or segment.pages[cell] == NULL
        else:
            is_cut = block.nbytes != segment.nbytes
        if is_cut:
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
            gt_fault(walk.faults, "the page at %#lx says it is mapped at %#lx",
                     segment.va + cell * a.granularity, page.va)
        if page.view_count != 0 and segment.pool != &a.pools[POOL_LARGE]:
            gt_fault(walk.faults, "the page at %#lx is in a view of another pool", page.va)
        page.views_found = 0            # views.pxi goes on from here
        mapped += page.nbytes
        cell += page.nbytes // a.granularity
    if mapped != segment.mapped:
        gt_fault(walk.faults, "segment %#lx: its pages have %zu bytes, mapped are %zu",
                 segment.va, mapped, segment.mapped)


cdef void _check_segment(DeviceAllocator* a, Walk* walk, Segment* segment,
                         int64_t* free_count, int64_t* free_nbytes) noexcept nogil:
    cdef Block* block
    cdef size_t mapped = 0
    cdef int holes = 0
    if segment.first.ptr != segment.va or segment.first.previous != NULL:
        gt_fault(walk.faults, "segment %#lx does not begin with its first tile", segment.va)
    for block in each(segment.first):
        _check_tile(a, walk, segment, block)
        if block_is_mapped(block):
            mapped += block.nbytes
            _check_mapped(a, walk, block)
        if block.state == BLOCK_FREE:
            free_count[0] += 1
            free_nbytes[0] += block.nbytes
        holes += block.state == BLOCK_UNMAPPED
    if mapped != segment.mapped:
        gt_fault(walk.faults, "segment %#lx: its mapped tiles have %zu bytes, mapped are %zu",
                 segment.va, mapped, segment.mapped)
    for block in linked(segment.holes):
        if block.state != BLOCK_UNMAPPED or block.segment != segment:
            _fault(walk, block, "is in the list of holes")
        holes -= 1
    if holes != 0:
        gt_fault(walk.faults, "segment %#lx: %d holes are not in its list", segment.va, holes)


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
    cdef Block* block
    cdef Block* before
    for row in range(BIN_ROWS):
        is_marked = (sb.bins.rows >> row) & 1
        if is_marked != (sb.bins.columns[row] != 0):
            gt_fault(walk.faults, "bins of stream %#lx: row %d and its columns disagree",
                     sb.state.handle, row)
        for column in range(BIN_COLUMNS):
            is_marked = (sb.bins.columns[row] >> column) & 1
            if is_marked != (sb.bins.heads[row][column] != NULL):
                gt_fault(walk.faults, "bin %d,%d of stream %#lx: bitmap and list disagree", row,
                         column, sb.state.handle)
            before = NULL
            for block in linked(sb.bins.heads[row][column]):
                if (block.state != BLOCK_FREE or block.stream != sb.state.handle
                        or block.pool != pool or block.link_previous != before
                        or not _belongs(block, row, column) or block.epoch > sb.state.newest):
                    _fault(walk, block, "is in a bin that is not its own")
                here += block.nbytes
                count[0] += 1
                before = block
    nbytes[0] += here
    if here != <int64_t>sb.free_nbytes:
        gt_fault(walk.faults, "bins of stream %#lx hold %ld bytes and say %zu",
                 sb.state.handle, here, sb.free_nbytes)


cdef void _check_pool(DeviceAllocator* a, Walk* walk, BlockPool* pool) noexcept nogil:
    cdef Segment* segment
    cdef StreamBins* sb
    cdef int64_t free_count = 0, free_nbytes = 0, binned_count = 0, binned_nbytes = 0
    for segment in each(pool.segments):
        if segment.is_virtual:
            _check_pages(a, walk, segment)
        else:
            walk.sums[pool.kind][STAT_SEGMENT] += 1
        _check_segment(a, walk, segment, &free_count, &free_nbytes)
        if segment.idle_since > a.counters[pool.kind].came[FLOW_COUNT]:
            gt_fault(walk.faults, "segment %#lx: its last free comes after the newest block",
                     segment.va)
        walk.oversize_segments += segment.is_oversize != 0
        walk.sums[pool.kind][STAT_RESERVED_BYTES] += segment.mapped
    for sb in each(pool.streams):
        _check_bins(walk, pool, sb, &binned_count, &binned_nbytes)
    figures_check(walk, "free tiles and those in bins", free_count, binned_count)
    figures_check(walk, "bytes of free tiles and in bins", free_nbytes, binned_nbytes)


# Checks the counts of a private pool's scopes and holders.
cdef void _check_holders(DeviceAllocator* a, Walk* walk, PrivatePool* private) noexcept nogil:
    cdef PoolScope* scope
    cdef int64_t scopes = 0
    for scope in each(a.scopes):
        scopes += scope.pool == private
    figures_check(walk, "scopes of a private pool", scopes, private.scopes)
    if private.use_count < 0 or private.pins < 0 or not 0 <= private.capturing <= private.scopes:
        gt_fault(walk.faults, "pool %lu: a count of its holders is wrong", private.pool_id)


# Checks the sums over the records of one pool.
cdef void _check_account(DeviceAllocator* a, Walk* walk, PrivatePool* account) noexcept nogil:
    cdef PrivatePool* private
    cdef Segment* segment
    cdef int64_t[2] mapped = [0, 0]
    cdef int64_t holders = 0
    cdef int i
    for private in each(a.private_pools):
        if (private.account == account) != (private.pool_id == account.pool_id):
            gt_fault(walk.faults, "pool %lu: a record of it counts elsewhere", private.pool_id)
        if private.pool_id == account.pool_id:
            holders += private.use_count
            for i in range(2):
                for segment in each(private.pools[i].segments):
                    mapped[i] += <int64_t>segment.mapped
    figures_check(walk, "holders of a private pool", holders, account.holders)
    for i in range(2):
        figures_check(walk, "reserved bytes of a kind in a private pool", mapped[i],
                      account.reserved[2 - i].current)
    figures_check(walk, "reserved bytes of a private pool", mapped[0] + mapped[1],
                  account.reserved[0].current)
    for i in range(3):
        if not 0 <= account.reserved[i].current <= account.reserved[i].peak:
            gt_fault(walk.faults, "pool %lu: its reserved bytes are above their peak",
                     account.pool_id)


# Pools, segments, tiles, pages, holes and bins: invariants 1 to 5 of DESIGN.md.
cdef void tiles_check(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef PrivatePool* private
    cdef int64_t retired = 0
    cdef int i
    for i in range(POOLS):
        _check_pool(a, walk, &a.pools[i])
    for private in each(a.private_pools):
        _check_holders(a, walk, private)
        retired += private.use_count == 0 and private.scopes == 0
        for i in range(POOLS):
            _check_pool(a, walk, &private.pools[i])
        if private.account == private:
            _check_account(a, walk, private)
    figures_check(walk, "private pools without holder and scope", retired, a.retired_pools)
