"""Moving free pages from pool to pool before a pool grows.

Memory that is free in a small pool, in the default pool or in a private pool without a holder
serves other pools: whole pages that the device is done with are unmapped there and mapped where
they are needed. That costs a little more than making pages, and saves memory that would never come
back. Less than LEAST is moved only if it is all that is missing: pools in steady use have that much
free for their own next requests. The small and the middle pool take no pages of each other.

Two pools that take turns would keep moving the same pages. So the time for it is bounded: by
SPARE_US, and SPEND times what making and mapping all pages has cost. DESIGN.md, *Growing*.
"""

cdef enum:
    LEAST = 6 << 20

cdef double PAGE_MOVES_SPEND = 1.5
cdef double PAGE_MOVES_SPARE_US = 500.0


# How many pages may still be moved.
cdef int64_t _page_moves_affordable(DeviceAllocator* a) noexcept nogil:
    cdef double left = PAGE_MOVES_SPARE_US + PAGE_MOVES_SPEND * a.making_us - a.moving_us
    return <int64_t>(left / (UNMAP_US + MAP_US)) if left > 0 else 0


# Moves whole free pages of other pools into the page pool, as many as the request needs and as the
# bound on driver time allows. Drops the lock; not for use during a capture.
cdef void pages_bring(DeviceAllocator* a, Request* request) noexcept nogil:
    cdef BlockPool* pool = request.pool
    cdef size_t need = growth_need(a, request)
    cdef size_t largest = SIZE_MAX
    cdef int64_t count = _page_moves_affordable(a)
    cdef int64_t left = count
    cdef size_t nbytes = 0
    cdef Block* tile
    if pool_source(pool) != NULL or a.page_pool_nbytes >= need or count == 0:
        return
    if pool.kind == POOL_SMALL:
        # A larger page would be held by a few small blocks.
        largest = _page_nbytes(a, pool, need, BY_PAGES)
    detached = pages_detach(a, pool, need - a.page_pool_nbytes, largest, &left, False)
    for tile in linked(detached):
        nbytes += tile.nbytes
    if nbytes < LEAST and nbytes < need - a.page_pool_nbytes:
        pool_insert_all(detached)
    elif nbytes > 0:
        # Mapping them again counts as growth; its cost has a bound of its own here.
        a.moving_us += (UNMAP_US + MAP_US) * (count - left)
        a.mapping_us = max(a.mapping_us - MAP_US * (count - left), 0.0)
        pages_take(a, detached)
        request.is_placed = False
