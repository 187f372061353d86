"""Views: free memory of several places as one block.

Best fit leaves free tiles that are too small for the next large request, though together they would
do. A view reserves address space and maps the pages under such tiles a second time, side by side:
the request is served from memory that is held already. The pages stay mapped at home, nothing is
unmapped, so there is no wait for the device. While a block of a view is in use its home tiles are
ALLOCATED (`block.parts`); when it is freed they go back to their pool, and the mappings stay for
the next request of that size, which then costs no driver call. When the table of views is full, the
idle one that was used the longest ago makes room for a new one.

CUDA allows several mappings of one handle. What is written through one is seen through another once
the writing operation has completed, which stream order gives: a tile changes its owner only in
stream order, or when its work is known to be done.

Claiming happens under the device lock, mapping without it. A view that a thread extends has
`use_count` of at least 1, so no thread drops it; `is_growing` keeps others from extending it too.
"""

cdef enum:
    RANGE_TIMES = 16            # address space of a view, in times its first request


cdef void _release_parts(BlockPool* pool, Block* parts) noexcept nogil:
    while parts != NULL:
        tile = chain_pop(&parts)
        tile.is_part = False
        tile.state = BLOCK_HELD
        pool_insert(pool, tile)


# Claims the pieces of a plan. From the highest address down: what is cut off a tile lies above what
# is still to be cut. Gives the claimed tiles, or NULL with nothing claimed.
cdef Block* _view_claim(BlockPool* pool, Plan* plan) noexcept nogil:
    cdef Block* parts = NULL
    cdef uint64_t below = <uint64_t>-1
    cdef int i, _turn, best
    for _turn in range(plan.count):
        best = -1
        for i in range(plan.count):
            piece = &plan.pieces[i]
            if piece.start < below and (best < 0 or piece.start > plan.pieces[best].start):
                best = i
        piece = &plan.pieces[best]
        below = piece.start
        tile = pool_cut(pool, piece.tile, piece.start, piece.start + piece.nbytes)
        if tile == NULL:
            _release_parts(pool, parts)
            return NULL
        chain_push(&parts, tile)
    return parts


cdef Block* _block_of(DeviceAllocator* a, BlockPool* pool, View* view, uint64_t ptr,
                      size_t nbytes, uint64_t stream, Block* parts) noexcept nogil:
    cdef Block* tile
    cdef Block* block = block_new()
    if block == NULL:
        return NULL
    block.ptr = ptr
    block.nbytes = nbytes
    block.stream = stream
    block.device = a.device
    block.kind = POOL_LARGE
    block.state = BLOCK_HELD
    block.pool = pool
    block.view = view
    block.parts = parts
    for tile in linked(parts):
        tile.is_part = True
    view_show(block, BLOCK_ALLOCATED)
    view.use_count += 1
    row_push(&view.blocks, block)
    if history_enabled(a.device):
        view_event_open(block)
    return block


cdef void _list(DeviceAllocator* a, View* view) noexcept nogil:
    row_push(&a.views, view)
    a.view_count += 1


cdef void _to_front(DeviceAllocator* a, View* view) noexcept nogil:
    row_remove(&a.views, view)
    row_push(&a.views, view)


# Reserves a view for at least `nbytes`. Gives the lock up for the driver call.
cdef View* _new_view(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef View* view = <View*>calloc(1, sizeof(View))
    cdef size_t size = (nbytes * RANGE_TIMES + a.granularity - 1) // a.granularity * a.granularity
    cdef status_t status
    if view == NULL or a.view_count >= a.view_limit:
        free(view)
        return NULL
    a.view_count += 1               # before the lock is given up: others count it, too
    in_flight_unlock(a)
    status = driver.va_reserve(driver.self, &view.va, size, a.granularity)
    in_flight_lock(a)
    if status != STATUS_OK:
        a.view_count -= 1
        free(view)
        return NULL
    view.range_nbytes = size
    row_push(&a.views, view)
    return view


cdef bint _room_for(View* view, int count) noexcept nogil:
    cdef int capacity = view.page_count + count
    if capacity > view.page_capacity:
        pages = <Page**>realloc(view.pages, capacity * 2 * sizeof(Page*))
        if pages == NULL:
            return False
        view.pages = pages
        view.page_capacity = capacity * 2
    return True


# Maps the plan's new pages, and those of the `fresh` tile, behind the view's end. Gives the lock
# up. What was mapped stays mapped, whatever fails afterwards.
cdef status_t _view_map(DeviceAllocator* a, View* view, Plan* plan, Block* fresh) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef size_t nbytes = view.nbytes
    cdef status_t status = STATUS_OK
    cdef int mapped = 0
    cdef int i = plan.first
    cdef uint64_t home = fresh.ptr if fresh != NULL else 0
    device_unlock(a)
    while status == STATUS_OK:
        if i < plan.count:
            page = plan.pieces[i].page
            i += 1
        elif fresh != NULL and home < fresh.ptr + fresh.nbytes:
            page = fresh.segment.pages[(home - fresh.segment.va) // a.granularity]
            home += page.nbytes
        else:
            break
        if nbytes + page.nbytes > view.range_nbytes:
            status = 1
            break
        status = driver.page_map(driver.self, view.va + nbytes, page.nbytes, page.handle)
        if status == STATUS_OK:
            view.pages[view.page_count + mapped] = page
            nbytes += page.nbytes
            mapped += 1
    device_lock(a)
    for i in range(mapped):
        view.pages[view.page_count + i].view_count += 1
    view.page_count += mapped
    view.nbytes = nbytes
    a.mapping_us += MAP_US * mapped
    return status


cdef Block* _reuse(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                   Plan* plan) noexcept nogil:
    cdef View* view = plan.view
    parts = _view_claim(pool, plan)
    if parts == NULL:
        return NULL
    block = _block_of(a, pool, view, view.va + plan.offset, nbytes, stream, parts)
    if block == NULL:
        _release_parts(pool, parts)
        return NULL
    _to_front(a, view)
    return block


cdef void _trim(BlockPool* pool, Block* block, size_t nbytes) noexcept nogil:
    cdef Block* tail = block_split(block, nbytes)
    if tail != NULL:
        pool_insert(pool, tail)


cdef Block* _stitch(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                    Plan* plan) noexcept nogil:
    cdef Block* fresh = NULL
    cdef Block* block = NULL
    cdef View* view = plan.view
    cdef status_t status = STATUS_OK
    cdef int pages
    parts = _view_claim(pool, plan)
    if parts == NULL:
        return NULL
    in_flight_begin(a)
    if view != NULL:
        view.use_count += 1
        view.is_growing = True
    if plan.missing > 0:
        fresh = pool_grow_page(a, pool, stream, plan.missing, &status)
    if status == STATUS_OK and view == NULL:
        view = _new_view(a, nbytes + (plan.offset if plan.view == NULL else 0))
        if view != NULL:
            view.use_count = 1
            view.is_growing = True
    if status == STATUS_OK and view != NULL:
        pages = plan.count - plan.first
        if fresh != NULL:
            pages += <int>(fresh.nbytes // a.granularity)
        if _room_for(view, pages):
            status = _view_map(a, view, plan, fresh)
        else:
            status = 2
    if fresh != NULL:
        if fresh.nbytes > plan.missing:
            _trim(pool, fresh, plan.missing)
        chain_push(&parts, fresh)
    if view != NULL:
        view.use_count -= 1
        view.is_growing = False
        if status == STATUS_OK:
            block = _block_of(a, pool, view, view.va + plan.offset, nbytes, stream, parts)
    if block == NULL:
        _release_parts(pool, parts)
    elif view != a.views:
        _to_front(a, view)
    in_flight_end(a)
    return block


# The best view to drop: of those without use and with completed work, the one
# whose last use is the longest ago.
cdef View* _least_useful(DeviceAllocator* a) noexcept nogil:
    cdef View* view
    cdef View* least = NULL
    for view in each(a.views):
        if view.use_count == 0 and _is_done(a, view):
            least = view
    return least


# Makes room in a full table. Only mappings go: the pages stay at home, with what lies in them.
# Gives the lock up.
cdef bint _evict(DeviceAllocator* a) noexcept nogil:
    cdef View* view = _least_useful(a)
    cdef bint is_gone
    if view == NULL:
        return False
    a.mapping_us += UNMAP_US * view.page_count
    in_flight_begin(a)
    is_gone = _drop(a, view)
    if not is_gone:
        _list(a, view)
    in_flight_end(a)
    return is_gone


cdef Block* view_open(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                      size_t nbytes, int effort) noexcept nogil:
    cdef ViewRequest request = ViewRequest(pool, stream, nbytes, effort)
    cdef Block* block = NULL
    cdef bint may_begin = True
    if pool != &a.pools[POOL_LARGE] or nbytes < 2 * a.granularity or a.granularity == 0:
        return NULL
    plan = <Plan*>malloc(sizeof(Plan))
    if plan == NULL:
        return NULL
    while True:
        if plan_reuse(a, &request, plan):
            block = _reuse(a, pool, stream, nbytes, plan)
            break
        if not plan_stitch(a, &request, growth_need(a, pool, stream, nbytes), may_begin, plan):
            break
        if plan.view != NULL or a.view_count < a.view_limit:
            block = _stitch(a, pool, stream, nbytes, plan)
            break
        # The table is full. Making room drops the lock: the planned pages may be gone by then.
        may_begin = _evict(a)
    free(plan)
    return block


# Notes until when the device may touch the view's addresses: they may be unmapped only after that.
cdef void _note_use(DeviceAllocator* a, View* view, Block* block) noexcept nogil:
    cdef ViewUse* use
    cdef StreamState* state = pool_bins(block.pool, block.stream).state
    for use in each(view.uses):
        if use.state == state:
            break
    else:
        use = <ViewUse*>calloc(1, sizeof(ViewUse))
        if use == NULL:
            # Not the stream: its owner may have destroyed it by now.
            a.driver.synchronize(a.driver.self)
            return
        use.state = state
        row_push(&view.uses, use)
    use.epoch = max(use.epoch, block.epoch)


cdef bint _is_done(DeviceAllocator* a, View* view) noexcept nogil:
    cdef ViewUse* use
    for use in each(view.uses):
        if not progress_is_done(a, use.state, use.epoch):
            return False
    return True


cdef void view_show(Block* block, int state) noexcept nogil:
    cdef Block* tile
    for tile in linked(block.parts):
        tile.state = state


cdef void view_close(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef Block* tile
    cdef View* view = block.view
    _note_use(a, view, block)
    if history_enabled(a.device):
        view_event_close(block)
    for tile in linked(block.parts):
        tile.epoch = max(tile.epoch, block.epoch)
        tile.stream = block.stream
    _release_parts(block.pool, block.parts)
    view.use_count -= 1
    row_remove(&view.blocks, block)
    block_drop(block)


# Takes a view without use off the list and unmaps it. Drops the lock. False: the driver refused;
# what is left of the view has to go back to the list.
cdef bint _drop(DeviceAllocator* a, View* view) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef bint is_unmapped
    cdef int i
    driver = a.driver
    row_remove(&a.views, view)
    a.view_count -= 1
    device_unlock(a)
    if view.nbytes > 0:
        status = driver.page_unmap(driver.self, view.va, view.nbytes)
    is_unmapped = status == STATUS_OK
    if is_unmapped:
        status = driver.va_release(driver.self, view.va, view.range_nbytes)
    device_lock(a)
    if is_unmapped:
        for i in range(view.page_count):
            view.pages[i].view_count -= 1
        view.page_count = 0
        view.nbytes = 0
    if status != STATUS_OK:
        return False
    while view.uses != NULL:
        free(row_pop(&view.uses))
    free(view.pages)
    free(view)
    return True


cdef void views_drop_idle(DeviceAllocator* a) noexcept nogil:
    cdef View* view = _least_useful(a)
    cdef View* kept = NULL
    if view == NULL:
        return
    in_flight_begin(a)
    while view != NULL:
        if not _drop(a, view):
            row_push(&kept, view)
        view = _least_useful(a)         # the list may have changed meanwhile
    while kept != NULL:
        _list(a, row_pop(&kept))
    in_flight_end(a)
