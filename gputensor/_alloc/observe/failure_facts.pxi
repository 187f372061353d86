"""The amounts that explain a failed request, all from one moment.

Free memory is classified by the reason why it cannot serve the request: `cached` lies in pieces,
`waiting` is not done on the device or waits for other streams, `private_idle` belongs to pools that
have a holder. Collected under the device lock right after the miss failed; explain/ formats and
decides.
"""

cdef struct Free:
    size_t done                 # free, and the device has finished with it
    size_t busy                 # free for its own stream only
    size_t largest


cdef void _add_bins(DeviceAllocator* a, StreamBins* sb, bint is_own, Free* sums) noexcept nogil:
    cdef Block* head = bins_largest(&sb.bins)
    cdef Block* block
    while head != NULL:
        block = head
        head = bins_below(&sb.bins, block)
        while block != NULL:
            if is_own or progress_is_done(a, sb.state, block.epoch):
                sums.done += block.nbytes
            else:
                sums.busy += block.nbytes
            if block.nbytes > sums.largest:
                sums.largest = block.nbytes
            block = block.link_next


# The free blocks of a pair of pools. Those of the request's own stream are usable by it at once.
cdef Free _free_in(DeviceAllocator* a, BlockPool* pools, bint serves,
                   uint64_t stream) noexcept nogil:
    cdef Free sums
    cdef StreamBins* sb
    cdef int kind
    memset(&sums, 0, sizeof(Free))
    for kind in range(2):
        sb = pools[kind].streams
        while sb != NULL:
            _add_bins(a, sb, serves and sb.state.handle == stream, &sums)
            sb = sb.next
    return sums


cdef size_t _mapped(BlockPool* pools) noexcept nogil:
    cdef Segment* segment
    cdef size_t total = 0
    cdef int kind
    for kind in range(2):
        segment = pools[kind].segments
        while segment != NULL:
            total += segment.mapped
            segment = segment.next
    return total


# Fills cached, waiting, private_idle and the reserved bytes of private pools.
cdef Free _survey(DeviceAllocator* a, BlockPool* own, uint64_t stream, size_t* cached,
                  size_t* waiting, size_t* private_idle, size_t* private_nbytes) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    cdef Free mine = _free_in(a, own, True, stream)
    cdef Free others
    cached[0] = mine.done + a.page_pool_nbytes
    waiting[0] = mine.busy + <size_t>(a.pending_bytes[0] + a.pending_bytes[1])
    if own != a.pools:
        others = _free_in(a, a.pools, False, stream)
        waiting[0] += others.busy
        if a.capturing:
            waiting[0] += others.done       # a capture gives no memory of other pools back
        else:
            cached[0] += others.done
    while private != NULL:
        private_nbytes[0] += _mapped(private.pools)
        if &private.pools[0] != own:
            others = _free_in(a, private.pools, False, stream)
            if (private.use_count > 0 or private.capturing) and not (
                    private.is_for_oom and own == a.pools and not private.capturing):
                private_idle[0] += others.done + others.busy
            else:
                cached[0] += others.done
                waiting[0] += others.busy
        private = private.next
    return mine


def failure_facts(int device, size_t nbytes, uint64_t stream):
    """Return the facts of a request that just failed, as a dict; sizes in bytes.

    ``requested``, ``rounded``; ``growth``: the least that the pool could grow by for it;
    ``allocated``, ``reserved``, ``page_pool``; ``free`` and ``total`` of the device; ``limit``
    (None: no limit); ``largest_free_block`` of the pools that could serve it; ``cached``,
    ``waiting``, ``private_idle`` as above; ``private``: reserved by private pools;
    ``granularity``; and the facts ``is_capturing``, ``is_rejected``, ``is_private``,
    ``is_pooled``. Empty when the device has no allocator.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef BlockPool* own
    cdef Free mine
    cdef size_t rounded, growth, reserved, device_free = 0, total = 0
    cdef size_t cached = 0, waiting = 0, private_idle = 0, private_nbytes = 0
    cdef size_t allocated, page_pool, limit
    cdef bint is_pooled, is_capturing, is_rejected
    if a == NULL:
        return {}
    with nogil:
        a.driver.mem_info(a.driver.self, &device_free, &total)
        device_lock(a)
        caches_stop(a)
        stats_settle(a)
        caches_resume(a)
        own = scope_pools(a, stream)
        is_pooled = own != a.pools or (a.caching and a.config.backend == BACKEND_NATIVE)
        rounded = round_size(a, nbytes)
        growth = rounded
        if is_pooled:
            growth = growth_need(a, &own[POOL_SMALL if rounded <= SMALL_LIMIT else POOL_LARGE],
                                 stream, rounded)
        mine = _survey(a, own, stream, &cached, &waiting, &private_idle, &private_nbytes)
        reserved = <size_t>a.stats[STAT_RESERVED_BYTES][0].current
        allocated = a.stats[STAT_ALLOCATED_BYTES][0].current
        page_pool = a.page_pool_nbytes
        limit = a.limit_nbytes
        is_capturing = a.capturing > 0
        is_rejected = is_pooled and miss_refuses(
            a, &own[POOL_SMALL if rounded <= SMALL_LIMIT else POOL_LARGE], stream, rounded)
        device_unlock(a)
    # Not under the lock: making a Python object may run a destructor that frees.
    return {
        "requested": nbytes,
        "rounded": rounded,
        "growth": growth,
        "allocated": allocated,
        "reserved": reserved,
        "page_pool": page_pool,
        "free": device_free,
        "total": total,
        "limit": None if limit == SIZE_MAX else limit,
        "largest_free_block": mine.largest,
        "cached": cached,
        "waiting": waiting,
        "private_idle": private_idle,
        "private": private_nbytes,
        "granularity": a.granularity,
        "is_capturing": bool(is_capturing),
        "is_rejected": bool(is_rejected),
        "is_private": own != a.pools,
        "is_pooled": bool(is_pooled),
    }
