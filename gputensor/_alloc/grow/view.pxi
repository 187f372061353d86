"""Views: free memory of several places as one block.

Best fit leaves free tiles that are too small for the next large request, though together they would
be enough. A view reserves address space and maps the pages under such tiles a second time, side by
side: the request is served from memory that is held already. The pages stay mapped at home, and
nothing is unmapped, so there is no wait for the device. While a block of a view is in use, its home
tiles are ALLOCATED (`block.parts`); when it is freed they go back to their pool, and the mappings
stay for the next request of that size, which then costs no driver call. When the table of views is
full, the least recently used idle view makes room for a new one.

CUDA allows several mappings of one handle. Data written through one is visible through another once
the writing operation has completed, which stream order ensures: a tile changes its owner only in
stream order, or when its work is known to be done.

Claiming happens under the device lock, mapping without it. A view that a thread extends has
`use_count` of at least 1, so no thread drops it; `is_growing` keeps others from extending it too.
"""

cdef enum:
    RANGE_TIMES = 16            # address space of a view, as a multiple of its first request


# Claims the pieces of a plan, from the highest address down, so that each cut of a tile lies above
# the cuts that are still to come. Returns the claimed tiles, or NULL with nothing claimed.
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
            pool_insert_all(parts)
            return NULL
        chain_push(&parts, tile)
    return parts


# Makes the block of a plan whose bytes are all mapped; `parts` are its home tiles.
cdef Block* _block_of(DeviceAllocator* a, Request* request, Plan* plan,
                      Block* parts) noexcept nogil:
    cdef Block* tile
    cdef View* view = plan.view
    cdef Block* block = block_new()
    if block == NULL:
        return NULL
    block.ptr = view.va + plan.offset
    block.nbytes = request.nbytes
    block.stream = request.stream
    block.device = a.device
    block.kind = POOL_LARGE
    block.state = BLOCK_HELD
    block.pool = request.pool
    block.view = view
    block.parts = parts
    for tile in linked(parts):
        tile.is_part = True
    view_show(block, BLOCK_ALLOCATED)
    view.use_count += 1
    row_push(&view.blocks, block)
    row_remove(&a.views, view)
    row_push(&a.views, view)
    if history_enabled(a.device):
        view_event_open(block)
    return block


# Reserves a view for at least `nbytes`, for a thread that extends it. Drops the lock.
cdef View* _new_view(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef View* view = <View*>calloc(1, sizeof(View))
    cdef status_t status
    if view == NULL or a.view_count >= a.view_limit:
        free(view)
        return NULL
    view.range_nbytes = _round_up(nbytes * RANGE_TIMES, a.granularity)
    view.use_count = 1
    view.is_growing = True
    a.view_count += 1               # before the lock is dropped: other threads count it, too
    in_flight_unlock(a)
    status = driver.va_reserve(driver.self, &view.va, view.range_nbytes, a.granularity)
    in_flight_lock(a)
    if status != STATUS_OK:
        a.view_count -= 1
        free(view)
        return NULL
    row_push(&a.views, view)
    return view


# Maps the plan's pieces, and the pages of the `fresh` tile, behind the view's end. Drops the lock.
# Pages that were mapped stay mapped, whatever fails afterwards.
cdef status_t _view_map(DeviceAllocator* a, View* view, Plan* plan, Block* fresh) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef size_t nbytes = view.nbytes
    cdef status_t status = STATUS_OK
    cdef int capacity = view.page_count + plan.count - plan.first
    cdef int mapped = 0
    cdef int i = plan.first
    cdef uint64_t home = 0, end = 0
    if fresh != NULL:
        home = fresh.ptr
        end = fresh.ptr + fresh.nbytes
        capacity += <int>(fresh.nbytes // a.granularity)
        if plan.behind > 0 and fresh.nbytes != plan.missing:
            return STATUS_OUT_OF_MEMORY     # a larger page came into the page pool meanwhile
    pages = <Page**>realloc(view.pages, capacity * sizeof(Page*))
    if pages == NULL:
        return STATUS_OUT_OF_MEMORY
    view.pages = pages
    device_unlock(a)
    while status == STATUS_OK:
        if i < plan.count - plan.behind or (i < plan.count and home == end):
            page = plan.pieces[i].page
            i += 1
        elif home < end:
            page = fresh.segment.pages[(home - fresh.segment.va) // a.granularity]
            home += page.nbytes
        else:
            break
        if nbytes + page.nbytes > view.range_nbytes:
            status = STATUS_OUT_OF_MEMORY
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


# Maps what a plan adds to its view, or to a new one. New pages join `parts`. Drops the lock.
cdef bint _extend(DeviceAllocator* a, Request* request, Plan* plan, Block** parts) noexcept nogil:
    cdef Request more = request_for(request.pool, request.stream, plan.missing)
    cdef Block* fresh = NULL
    if plan.view != NULL:
        plan.view.use_count += 1
        plan.view.is_growing = True
    more.alone = True
    if plan.missing > 0:
        fresh = _grow_virtual(a, &more, AS_NEEDED)
    if more.status == STATUS_OK and plan.view == NULL:
        plan.view = _new_view(a, request.nbytes + plan.offset)
    if more.status == STATUS_OK and plan.view != NULL:
        more.status = _view_map(a, plan.view, plan, fresh)
    if fresh != NULL:
        pool_trim(request.pool, fresh, plan.missing)
        chain_push(parts, fresh)
    if plan.view == NULL:
        return False
    plan.view.use_count -= 1
    plan.view.is_growing = False
    return more.status == STATUS_OK


cdef Block* _serve(DeviceAllocator* a, Request* request, Plan* plan) noexcept nogil:
    cdef Block* block = NULL
    cdef Block* parts = _view_claim(request.pool, plan)
    cdef bint is_mapped = True
    if parts == NULL:
        return NULL
    if plan.first < plan.count or plan.missing > 0:
        in_flight_begin(a)
        is_mapped = _extend(a, request, plan, &parts)
        in_flight_end(a)
    if is_mapped:
        block = _block_of(a, request, plan, parts)
    if block == NULL:
        pool_insert_all(parts)
    return block


# The least recently used of the views without use whose work is done.
cdef View* _least_useful(DeviceAllocator* a) noexcept nogil:
    cdef View* view
    cdef View* least = NULL
    for view in each(a.views):
        if view.use_count == 0 and view_is_done(a, view):
            least = view
    return least


# Makes room in a full table. Only mappings go: the pages stay at home, with their contents.
# Drops the lock.
cdef bint _evict(DeviceAllocator* a) noexcept nogil:
    cdef View* view = _least_useful(a)
    if view == NULL:
        return False
    a.mapping_us += UNMAP_US * view.page_count
    return _drop(a, view)


# A HELD block that is a view, or NULL when a view is not possible, or not worth its driver calls
# with an `effort` of VIEW_IF_WORTH. May drop the lock.
cdef Block* view_open(DeviceAllocator* a, Request* request, int effort) noexcept nogil:
    cdef Plan plan                  # 16 KiB, not cleared
    cdef bint may_begin = True
    if (request.pool != &a.pools[POOL_LARGE] or request.nbytes < 2 * a.granularity
            or a.granularity == 0):
        return NULL
    while plan_view(a, request, effort, may_begin, &plan):
        request.is_placed = False               # what follows takes tiles, or drops the lock
        if plan.view != NULL or a.view_count < a.view_limit:
            return _serve(a, request, &plan)
        # The table is full. Making room drops the lock: the planned pages may be gone by then.
        may_begin = _evict(a)
    return NULL


# Takes an unused view off the list and unmaps it. Drops the lock. False: the driver refused, and
# the rest of the view is back in the list.
cdef bint _drop(DeviceAllocator* a, View* view) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef bint is_unmapped
    cdef int i
    driver = a.driver
    row_remove(&a.views, view)
    a.view_count -= 1
    in_flight_unlock(a)
    if view.nbytes > 0:
        status = driver.page_unmap(driver.self, view.va, view.nbytes)
    is_unmapped = status == STATUS_OK
    if is_unmapped:
        status = driver.va_release(driver.self, view.va, view.range_nbytes)
    in_flight_lock(a)
    if is_unmapped:
        for i in range(view.page_count):
            view.pages[i].view_count -= 1
        view.page_count = 0
        view.nbytes = 0
    if status != STATUS_OK:
        row_push(&a.views, view)
        a.view_count += 1
        return False
    free(view.pages)
    free(view)
    return True


# Unmaps and forgets all unused views that the device is done with.
cdef void views_drop_idle(DeviceAllocator* a) noexcept nogil:
    cdef View* view = _least_useful(a)
    while view != NULL and _drop(a, view):
        view = _least_useful(a)         # the list may have changed meanwhile
