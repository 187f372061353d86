"""Planning views: where free bytes are, and what stitching them together would cost.

A plan begins with a walk over the stream's free tiles of at least MIN_TILE bytes: it lists their
pages, and notes on each how much of its head and tail is free. Then the existing views are searched
for a run of free bytes, which costs nothing. If there is none, pages are chosen to extend
a view or to begin one: the free tail of a page, whole pages, new pages for what is missing, and the
free head of a page. Whole pages in tiles that are hardly larger come first, so that a tile of
several pages is left to a request of its size; among them those of the largest tiles, so that small
holes are left to small requests.

Mapping a page costs MAP_US whatever its size (measured: cuMemMap and cuMemSetAccess on an H200),
and growing costs memory that never comes back. So a view is made when it saves at least a granule,
at MIB_US for each MiB at most, and the mapping time so far stays within SPARE_US and SPEND times
what filling the reserved bytes with 20 MiB pages would have cost. If the user chose smaller pages,
the yardstick is filling with those, and SPEND_FINE and FINE_US apply. So the driver time of a
program is bounded whatever its pattern, and a miss plans nothing once that time is spent.
"""

cdef enum:                      # what a request may do to get a view
    VIEW_IF_WORTH = 0
    VIEW_OF_FREE = 1            # whatever it costs, but without memory of the driver
    VIEW_AND_GROW = 2           # whatever it costs, with new pages for what is missing

cdef enum:
    PLAN_PIECES = 512
    MIN_TILE = 2 << 20          # free tiles below this are not looked at
    STEP = 20 << 20             # the page of the yardstick; tiles so much larger come last

# Free bytes of one page: a run inside its home tile.
cdef struct Piece:
    Page* page
    Block* tile
    uint64_t start              # home address
    size_t nbytes

cdef struct PageList:
    Page* head
    Page* tail

cdef struct Plan:
    Page* noted                 # the pages under free tiles, each with its free head and tail
    View* view                  # the view to use or to extend; NULL: a new one
    int first                   # pieces before this one are mapped in the view already
    int count
    size_t offset               # of the first byte in the view
    size_t missing              # bytes for which new pages are needed
    int behind                  # pieces that come after the new pages: 0 or 1
    Piece pieces[512]

cdef double STEP_US = 40.5      # creating and mapping one page of STEP bytes
cdef double VIEW_PLAN_SPEND = 8.0
cdef double VIEW_PLAN_SPEND_FINE = 28.0   # for pages below COARSE
cdef double VIEW_PLAN_SPARE_US = 1000.0   # ... and this: a small program may map a few pages, too
cdef double MIB_US = 20.0       # the cost of a MiB of new memory: no view may cost more to spare it
cdef double FINE_US = 40.0      # ... with pages of STEP bytes, if the user chose any below COARSE
cdef double SHORT_MIB_US = 1e6
cdef double TOO_MUCH = 1e300


# The page that covers an address of a mapped tile.
cdef inline Page* _page_at(DeviceAllocator* a, Segment* segment, uint64_t address) noexcept nogil:
    cdef size_t cell = (address - segment.va) // a.granularity
    while segment.pages[cell] == NULL:
        cell -= 1
    return segment.pages[cell]


# Lists the pages of a tile that are in no list yet: in `apart` if the tile is much larger.
cdef void _note(DeviceAllocator* a, Block* tile, PageList* noted, PageList* apart) noexcept nogil:
    cdef uint64_t end = tile.ptr + tile.nbytes
    cdef uint64_t at = tile.ptr
    while at < end:
        page = _page_at(a, tile.segment, at)
        at = page.va + page.nbytes
        if page.stamp != a.view_clock:
            page.stamp = a.view_clock
            page.free_head = 0
            page.free_tail = 0
            queue_append(apart if tile.nbytes > page.nbytes + STEP else noted, page)
        if tile.ptr <= page.va:
            page.free_head = min(end - page.va, page.nbytes)
            page.head_tile = tile
        if end >= at:
            page.free_tail = min(at - tile.ptr, page.nbytes)
            page.tail_tile = tile


# The pages under free tiles, in the order in which whole ones are taken.
cdef Page* _note_all(DeviceAllocator* a, StreamBins* sb) noexcept nogil:
    cdef Block* tile
    cdef PageList noted = PageList(NULL, NULL)
    cdef PageList apart = PageList(NULL, NULL)
    cdef Block* head = bins_largest(&sb.bins)
    a.view_clock += 1
    while head != NULL and head.nbytes >= MIN_TILE:
        for tile in linked(head):
            if tile.segment.is_virtual:
                _note(a, tile, &noted, &apart)
        head = bins_below(&sb.bins, head)
    if noted.head == NULL:
        return apart.head
    noted.tail.next = apart.head
    return noted.head


cdef inline bint _is_whole(DeviceAllocator* a, Page* page) noexcept nogil:
    return page.stamp == a.view_clock and page.free_head == page.nbytes


cdef inline void _add(Plan* plan, Page* page, Block* tile, uint64_t start,
                      size_t nbytes) noexcept nogil:
    plan.pieces[plan.count] = Piece(page, tile, start, nbytes)
    plan.count += 1


# The free run that begins in page `first` of a view: its bytes, and the page after it. A run may
# begin in the free tail of a page and end in the free head of one.
cdef size_t _run(DeviceAllocator* a, View* view, int first, int* after) noexcept nogil:
    cdef Page* page = view.pages[first]
    cdef size_t total
    cdef int i = first + 1
    after[0] = i
    if page.stamp != a.view_clock or page.free_tail == 0:
        return 0
    total = page.free_tail
    # A plan holds PLAN_PIECES pages: a longer run counts as two.
    while i < view.page_count and i - first < PLAN_PIECES - 2 and _is_whole(a, view.pages[i]):
        total += view.pages[i].nbytes
        i += 1
    after[0] = i
    if i < view.page_count and view.pages[i].stamp == a.view_clock:
        total += view.pages[i].free_head
    return total


# Writes the pieces of the first `nbytes` of a run.
cdef void _take_run(View* view, int first, size_t nbytes, Plan* plan) noexcept nogil:
    cdef Page* page = view.pages[first]
    cdef size_t part = min(page.free_tail, nbytes)
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
        part = min(page.free_head, nbytes)
        _add(plan, page, page.head_tile, page.va, part)
        nbytes -= part
        i += 1


# A run of free bytes in a view, already mapped. Costs nothing.
cdef bint _plan_reuse(DeviceAllocator* a, size_t nbytes, Plan* plan) noexcept nogil:
    cdef View* view
    cdef size_t total, best_total = SIZE_MAX
    cdef int first, after, best_first = 0
    plan.view = NULL
    for view in each(a.views):
        after = 0
        while after < view.page_count:
            first = after
            total = _run(a, view, first, &after)
            if nbytes <= total < best_total:
                plan.view = view
                best_total = total
                best_first = first
    if plan.view == NULL:
        return False
    plan.count = 0
    plan.missing = 0
    _take_run(plan.view, best_first, nbytes, plan)
    plan.first = plan.count
    return True


# Adds whole free pages that the plan does not have yet, and as the last piece a page with a free
# head, after new pages if it is not enough. (Not while the page pool has pages: a larger page from
# there would leave a gap before that piece.) `plan.missing` is then the size of the new pages.
cdef void _add_pages(DeviceAllocator* a, Plan* plan) noexcept nogil:
    cdef Page* page
    cdef Page* partial = NULL
    cdef size_t part, fresh = 0
    for page in each(plan.noted):
        if plan.missing == 0 or plan.count == PLAN_PIECES - 1:
            break
        if page.member == a.view_clock_step:
            continue
        if _is_whole(a, page):
            part = min(page.nbytes, plan.missing)
            _add(plan, page, page.head_tile, page.va, part)
            plan.missing -= part
        elif partial == NULL or page.free_head > partial.free_head:
            partial = page
    if plan.missing == 0 or partial == NULL:
        return
    if plan.missing > partial.free_head:
        if a.page_pool != NULL or partial.free_head < a.granularity:
            return
        fresh = _round_up(plan.missing - partial.free_head, a.granularity)
    _add(plan, partial, partial.head_tile, partial.va, plan.missing - fresh)
    plan.missing = fresh
    plan.behind = fresh > 0


# Plans to map pages behind the end of a view, or into a new one (NULL). It begins with the free run
# that ends there, or with the largest free tail of a page that is not free as a whole.
cdef void _plan_pages(DeviceAllocator* a, View* view, size_t nbytes, Plan* plan) noexcept nogil:
    cdef Page* page
    cdef Page* start = NULL
    cdef size_t run = 0
    cdef int i, first, after = 0
    a.view_clock_step += 1
    plan.view = view
    plan.first = 0
    plan.count = 0
    plan.behind = 0
    plan.offset = 0
    if view == NULL:
        for page in each(plan.noted):
            if a.granularity <= page.free_tail < page.nbytes and (
                    start == NULL or page.free_tail > start.free_tail):
                start = page
        if start != NULL:
            run = min(start.free_tail, nbytes)
            start.member = a.view_clock_step
            plan.offset = start.nbytes - start.free_tail
            _add(plan, start, start.tail_tile, start.va + plan.offset, run)
    else:
        plan.offset = view.nbytes
        for i in range(view.page_count):
            view.pages[i].member = a.view_clock_step
        while after < view.page_count:
            first = after
            run = min(_run(a, view, first, &after), nbytes)
        if run > 0:
            _take_run(view, first, run, plan)
        plan.first = plan.count
    plan.missing = nbytes - run
    _add_pages(a, plan)


# The cost of a plan, when a MiB of new memory costs `mib_us`. It is beyond all limits if the view
# lacks addresses for what the plan adds.
cdef double _cost(Plan* plan, double mib_us) noexcept nogil:
    cdef double us = MAP_US * (plan.count - plan.first)
    cdef size_t added = plan.missing
    cdef int i
    for i in range(plan.first, plan.count):
        added += plan.pieces[i].page.nbytes
    if plan.view != NULL and plan.view.nbytes + added > plan.view.range_nbytes:
        return TOO_MUCH
    if plan.missing > 0:
        us += 2 * MAP_US + mib_us * (<double>plan.missing / (1 << 20))
    return us


# Whether another `us` of driver time, in place of `grow_us`, is within bounds.
cdef bint _view_plan_affordable(DeviceAllocator* a, double us, double grow_us) noexcept nogil:
    cdef double times = VIEW_PLAN_SPEND_FINE if a.config.page_size < COARSE else VIEW_PLAN_SPEND
    cdef double spend_us = times * STEP_US * <double>_reserved(a) / min(_page_size(a), <size_t>STEP)
    return a.mapping_us + us - grow_us <= VIEW_PLAN_SPARE_US + spend_us


# Plans a view for a request: a free run in an existing view, otherwise pages to map behind a view's
# end, or into a new view if one `may_begin`. False: growing is better, or no view is possible.
cdef bint plan_view(DeviceAllocator* a, Request* request, int effort, bint may_begin,
                    Plan* plan) noexcept nogil:
    cdef StreamBins* sb = pool_bins(request.pool, request.stream)
    cdef size_t grow_need, nbytes = request.nbytes
    cdef double us, grow_us, best_us = TOO_MUCH
    cdef double mib_us = FINE_US * STEP / _page_size(a) if a.config.page_size < COARSE else MIB_US
    cdef View* view
    cdef View* best = NULL
    cdef bint forced = effort != VIEW_IF_WORTH
    if sb == NULL or sb.free_nbytes < (nbytes if effort == VIEW_OF_FREE else a.granularity):
        return False
    plan.noted = NULL
    if a.views != NULL and sb.free_nbytes >= nbytes:
        plan.noted = _note_all(a, sb)
        if _plan_reuse(a, nbytes, plan):
            return True
    grow_need = growth_need(a, request)
    grow_us = STEP_US * (1 + grow_need // (64 << 20))
    # Without a plan it is clear already that a view is too expensive.
    if not forced and not _view_plan_affordable(a, MAP_US, grow_us):
        return False
    if plan.noted == NULL:
        plan.noted = _note_all(a, sb)
    if may_begin:
        _plan_pages(a, NULL, nbytes, plan)
        best_us = _cost(plan, SHORT_MIB_US if forced else mib_us)
    for view in each(a.views):
        if not view.is_growing:
            _plan_pages(a, view, nbytes, plan)
            us = _cost(plan, SHORT_MIB_US if forced else mib_us)
            if us < best_us:
                best = view
                best_us = us
    if best == NULL and not may_begin:
        return False
    _plan_pages(a, best, nbytes, plan)
    if forced:
        return plan.missing == 0 or (effort == VIEW_AND_GROW and plan.missing < nbytes)
    us = MAP_US * (plan.count - plan.first) + (MAP_US + STEP_US if plan.missing > 0 else 0)
    return (plan.missing + a.granularity <= grow_need
            and us - grow_us <= mib_us * (<double>(grow_need - plan.missing) / (1 << 20))
            and _view_plan_affordable(a, us, grow_us))
