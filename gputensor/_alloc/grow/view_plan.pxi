"""Planning views: where free bytes are, and what stitching them together would cost.

A plan begins with a walk over the stream's free tiles of at least MIN_TILE bytes: it notes on each
page how much of its head and tail is free. Then a run of free bytes is looked for in the views that
exist; such a run costs nothing. If there is none, pages are chosen to extend a view or to begin
one: pages in the largest free tiles first, so that small holes are left to small requests.

Mapping a page costs MAP_US whatever its size (measured: cuMemMap and cuMemSetAccess on an H200),
and growing costs memory that never comes back. While reserved bytes stay within CLOSE of the
largest sum ever requested, a pool simply grows. Beyond that a view is made when it spares a granule
and the mapping time so far stays within SPARE_US and SPEND times what filling the reserved bytes
with 20 MiB pages would have cost. With smaller pages, which a user chooses to
reserve less at the price of more driver calls, the yardstick is filling with those pages, SPEND is
SPEND_SMALL, and a MiB of new memory counts for more. So the driver time of a program is bounded
whatever its pattern, and a pool that has spent its time finds out before anything is planned.
"""

cdef enum:
    MIN_TILE = 1 << 20          # free tiles below this are not looked at
    STEP = 20 << 20             # the page of the yardstick

cdef double STEP_US = 40.5      # creating and mapping one page of STEP bytes
cdef double VIEW_PLAN_SPEND = 2.2
cdef double VIEW_PLAN_SPEND_SMALL = 14.0  # for pages up to STEP
cdef double VIEW_PLAN_SPARE_US = 1000.0   # ... and this: a small program may map a few pages, too
cdef double MIB_US = 25.0       # in choosing a plan: what a MiB of new memory counts for
cdef double SHORT_MIB_US = 1e6


cdef inline size_t _least(size_t a, size_t b) noexcept nogil:
    return a if a < b else b


# The page that covers an address of a mapped tile.
cdef inline Page* _page_at(DeviceAllocator* a, Segment* segment, uint64_t address) noexcept nogil:
    cdef size_t cell = (address - segment.va) // a.granularity
    while segment.pages[cell] == NULL:
        cell -= 1
    return segment.pages[cell]


cdef void _note(DeviceAllocator* a, Block* tile) noexcept nogil:
    cdef uint64_t end = tile.ptr + tile.nbytes
    cdef Page* page = _page_at(a, tile.segment, tile.ptr)
    while True:
        if page.stamp != a.view_clock:
            page.stamp = a.view_clock
            page.free_head = 0
            page.free_tail = 0
            page.head_tile = NULL
            page.tail_tile = NULL
        if tile.ptr <= page.va:
            page.free_head = _least(end - page.va, page.nbytes)
            page.head_tile = tile
        if end >= page.va + page.nbytes:
            page.free_tail = _least(page.va + page.nbytes - tile.ptr, page.nbytes)
            page.tail_tile = tile
        if page.va + page.nbytes >= end:
            return
        page = _page_at(a, tile.segment, page.va + page.nbytes)


cdef void _note_all(DeviceAllocator* a, StreamBins* sb) noexcept nogil:
    cdef Block* tile
    cdef Block* head = bins_largest(&sb.bins)
    a.view_clock += 1
    while head != NULL and head.nbytes >= MIN_TILE:
        for tile in linked(head):
            if tile.segment.is_virtual:
                _note(a, tile)
        head = bins_below(&sb.bins, head)


cdef inline bint _is_whole(DeviceAllocator* a, Page* page) noexcept nogil:
    return page.stamp == a.view_clock and page.free_head == page.nbytes


cdef inline void _add(Plan* plan, Page* page, Block* tile, uint64_t start,
                      size_t nbytes) noexcept nogil:
    plan.pieces[plan.count].page = page
    plan.pieces[plan.count].tile = tile
    plan.pieces[plan.count].start = start
    plan.pieces[plan.count].nbytes = nbytes
    plan.count += 1


# The free run that contains page `first` of a view as its first page: its bytes, and the page after
# it. A run may begin in the free tail of a page and end in the free head of one.
cdef size_t _run(DeviceAllocator* a, View* view, int first, int* after) noexcept nogil:
    cdef Page* page = view.pages[first]
    cdef size_t total
    cdef int i = first + 1
    after[0] = i
    if page.stamp != a.view_clock or page.free_tail == 0:
        return 0
    total = page.free_tail
    # A plan holds PLAN_PIECES pages: a longer run counts as two.
    while (i < view.page_count and i - first < PLAN_PIECES - 2
            and _is_whole(a, view.pages[i])):
        total += view.pages[i].nbytes
        i += 1
    after[0] = i
    if i < view.page_count and view.pages[i].stamp == a.view_clock:
        total += view.pages[i].free_head
    return total


# Writes the pieces of the first `nbytes` of a run.
cdef void _take_run(View* view, int first, size_t nbytes, Plan* plan) noexcept nogil:
    cdef Page* page = view.pages[first]
    cdef size_t part = _least(page.free_tail, nbytes)
    cdef int i
    plan.offset = 0
    for i in range(first):
        plan.offset += view.pages[i].nbytes
    plan.offset += page.nbytes - page.free_tail
    _add(plan, page, page.tail_tile, page.va + page.nbytes - page.free_tail, part)
    nbytes -= part
    i = first + 1
    while nbytes > 0 and i < view.page_count:
        page = view.pages[i]
        part = _least(page.free_head, nbytes)
        _add(plan, page, page.head_tile, page.va, part)
        nbytes -= part
        i += 1


# A run of free bytes in a view, already mapped. Costs nothing.
cdef bint plan_reuse(DeviceAllocator* a, const ViewRequest* request, Plan* plan) noexcept nogil:
    cdef StreamBins* sb = pool_bins(request.pool, request.stream)
    cdef size_t nbytes = request.nbytes
    cdef View* view = a.views
    cdef View* best = NULL
    cdef size_t total, best_total = 0
    cdef int first, after, best_first = 0
    plan.is_noted = False
    if sb == NULL or view == NULL or sb.free_nbytes < nbytes:
        return False
    _note_all(a, sb)
    plan.is_noted = True
    while view != NULL:
        first = 0
        while first < view.page_count:
            total = _run(a, view, first, &after)
            if total >= nbytes and (best == NULL or total < best_total):
                best = view
                best_total = total
                best_first = first
            first = after
        view = view.next
    if best == NULL:
        return False
    plan.view = best
    plan.count = 0
    plan.missing = 0
    _take_run(best, best_first, nbytes, plan)
    plan.first = plan.count
    return True


# Bytes of the free run that ends with a view's last page, and the page it begins with.
cdef size_t _tail_run(DeviceAllocator* a, View* view, int* first) noexcept nogil:
    cdef int i = view.page_count - 1
    cdef size_t total = 0
    while (i >= 0 and view.page_count - i < PLAN_PIECES - 2
            and _is_whole(a, view.pages[i])):
        total += view.pages[i].nbytes
        i -= 1
    if i >= 0:
        page = view.pages[i]
        if page.stamp == a.view_clock and page.free_tail > 0:
            total += page.free_tail
            i -= 1
    first[0] = i + 1
    return total


# Adds whole free pages that no earlier step of the plan counted, largest tiles first, and as the
# last piece a page with a free head; gives the bytes still missing.
cdef size_t _add_pages(DeviceAllocator* a, StreamBins* sb, uint64_t step, size_t nbytes,
                       Plan* plan) noexcept nogil:
    cdef Block* head = bins_largest(&sb.bins)
    cdef Page* partial = NULL
    cdef uint64_t end
    while head != NULL and head.nbytes >= MIN_TILE and nbytes > 0:
        tile = head
        while tile != NULL and nbytes > 0:
            if tile.segment.is_virtual:
                end = tile.ptr + tile.nbytes
                page = _page_at(a, tile.segment, tile.ptr)
                while nbytes > 0 and plan.count < PLAN_PIECES - 1:
                    if page.member != step:
                        if _is_whole(a, page):
                            page.member = step
                            _add(plan, page, tile, page.va, _least(page.nbytes, nbytes))
                            nbytes -= plan.pieces[plan.count - 1].nbytes
                        elif partial == NULL or page.free_head > partial.free_head:
                            partial = page
                    if page.va + page.nbytes >= end:
                        break
                    page = _page_at(a, tile.segment, page.va + page.nbytes)
            tile = tile.link_next
        head = bins_below(&sb.bins, head)
    if (nbytes > 0 and partial != NULL and partial.member != step
            and partial.free_head >= nbytes):
        partial.member = step
        _add(plan, partial, partial.head_tile, partial.va, nbytes)
        nbytes = 0
    return nbytes


# The page that is not wholly free and has the largest free tail: a new view may begin in it.
cdef Page* _largest_tail(DeviceAllocator* a, StreamBins* sb) noexcept nogil:
    cdef Block* tile
    cdef Block* head = bins_largest(&sb.bins)
    cdef Page* best = NULL
    while head != NULL and head.nbytes >= MIN_TILE:
        for tile in linked(head):
            if tile.segment.is_virtual:
                page = _page_at(a, tile.segment, tile.ptr)
                if (page.free_tail > 0 and page.free_tail < page.nbytes
                        and (best == NULL or page.free_tail > best.free_tail)):
                    best = page
        head = bins_below(&sb.bins, head)
    return best


# What a plan costs. When memory is short, it is all that counts.
cdef inline double _cost(DeviceAllocator* a, int handles, size_t missing,
                         bint is_short) noexcept nogil:
    cdef double us = MAP_US * handles
    cdef double mib_us = MIB_US * STEP / <double>_least(a.config.page_size, STEP)
    if missing > 0:
        us += 2 * MAP_US + (SHORT_MIB_US if is_short else mib_us) * (<double>missing / (1 << 20))
    return us


cdef void _plan_append(DeviceAllocator* a, StreamBins* sb, View* view, size_t nbytes,
                       Plan* plan) noexcept nogil:
    cdef int i, first
    cdef size_t run = _tail_run(a, view, &first)
    a.view_clock_step += 1
    for i in range(view.page_count):
        view.pages[i].member = a.view_clock_step
    plan.view = view
    plan.count = 0
    plan.missing = nbytes
    plan.offset = view.nbytes
    if run > 0:
        _take_run(view, first, _least(run, nbytes), plan)
        plan.missing = nbytes - _least(run, nbytes)
    plan.first = plan.count
    plan.missing = _add_pages(a, sb, a.view_clock_step, plan.missing, plan)


cdef void _plan_new(DeviceAllocator* a, StreamBins* sb, size_t nbytes, Plan* plan) noexcept nogil:
    cdef Page* page = _largest_tail(a, sb)
    cdef size_t part
    a.view_clock_step += 1
    plan.view = NULL
    plan.first = 0
    plan.count = 0
    plan.offset = 0
    if page != NULL:
        part = _least(page.free_tail, nbytes)
        page.member = a.view_clock_step
        plan.offset = page.nbytes - page.free_tail
        _add(plan, page, page.tail_tile, page.va + page.nbytes - page.free_tail, part)
        nbytes -= part
    plan.missing = _add_pages(a, sb, a.view_clock_step, nbytes, plan)


# Whether a view has the addresses for what a plan adds to it.
cdef bint _has_room(View* view, Plan* plan) noexcept nogil:
    cdef size_t nbytes = view.nbytes + plan.missing
    cdef int i
    for i in range(plan.first, plan.count):
        nbytes += plan.pieces[i].page.nbytes
    return nbytes <= view.range_nbytes


# Whether `us` more of driver time, in place of `grow_us`, are within bounds.
cdef bint _view_plan_affordable(DeviceAllocator* a, double us, double grow_us) noexcept nogil:
    cdef double reserved = <double>a.stats[STAT_RESERVED_BYTES][0].current
    cdef double step = <double>_least(a.config.page_size, STEP)
    cdef double times = VIEW_PLAN_SPEND_SMALL if a.config.page_size <= STEP else VIEW_PLAN_SPEND
    cdef double spend_us = times * STEP_US * reserved / step
    return a.mapping_us + us - grow_us <= VIEW_PLAN_SPARE_US + spend_us


# After plan_reuse found nothing, with its plan: pages to map behind a view's end, or into a new
# view if one `may_begin`. False: growing by `grow_need` is the better choice, or no view can be.
cdef bint plan_stitch(DeviceAllocator* a, const ViewRequest* request, size_t grow_need,
                      bint may_begin, Plan* plan) noexcept nogil:
    cdef StreamBins* sb = pool_bins(request.pool, request.stream)
    cdef size_t nbytes = request.nbytes
    cdef int effort = request.effort
    cdef double reserved = <double>a.stats[STAT_RESERVED_BYTES][0].current
    cdef double grow_us = STEP_US * (1 + grow_need // (64 << 20))
    cdef double us, best_us = 0
    cdef View* view = a.views
    cdef View* best = NULL
    cdef bint forced = effort != VIEW_IF_WORTH
    # What can be seen without a plan: growth is harmless, or a view impossible or too expensive.
    if sb == NULL or sb.free_nbytes < (nbytes if effort == VIEW_OF_FREE else a.granularity):
        return False
    if not forced and (
            reserved + grow_need <= CLOSE * <double>a.stats[STAT_REQUESTED_BYTES][0].peak
            or not _view_plan_affordable(a, MAP_US, grow_us)):
        return False
    if not plan.is_noted:
        _note_all(a, sb)
    if may_begin:
        _plan_new(a, sb, nbytes, plan)
        best_us = _cost(a, plan.count, plan.missing, forced)
    while view != NULL:
        if not view.is_growing:
            _plan_append(a, sb, view, nbytes, plan)
            us = _cost(a, plan.count - plan.first, plan.missing, forced)
            if ((us < best_us or (best == NULL and not may_begin))
                    and _has_room(view, plan)):
                best = view
                best_us = us
        view = view.next
    if best == NULL:
        if not may_begin:
            return False
        _plan_new(a, sb, nbytes, plan)
    else:
        _plan_append(a, sb, best, nbytes, plan)
    if forced:
        return plan.missing == 0 or (effort == VIEW_AND_GROW and plan.missing < nbytes)
    if plan.missing + a.granularity > grow_need:
        return False
    us = MAP_US * (plan.count - plan.first) + (MAP_US + STEP_US if plan.missing > 0 else 0)
    return _view_plan_affordable(a, us, grow_us)
