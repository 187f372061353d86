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

# Sizes in bytes; `growth` is the least by which the pool could grow for the request, `private` the
# reserved bytes of private pools, `largest_free_block` that of the request's own pools.
cdef struct Facts:
    size_t requested, rounded, growth, allocated, reserved, page_pool, free, total, limit
    size_t largest_free_block, cached, waiting, private_idle, private, granularity
    bint is_capturing, is_rejected, is_private, is_pooled, has_source


# The free blocks of some pools. Those of the request's own stream are usable by it at once.
cdef Free _free_in(DeviceAllocator* a, BlockPool* pools, bint serves,
                   uint64_t stream) noexcept nogil:
    cdef StreamBins* sb
    cdef Block* block
    cdef Free sums = Free(0, 0, 0)
    cdef int place
    for place in range(POOLS):
        for sb in each(pools[place].streams):
            head = bins_largest(&sb.bins)
            while head != NULL:
                for block in linked(head):
                    if (serves and sb.state.handle == stream
                            or progress_is_done(sb.state, block.epoch)):
                        sums.done += block.nbytes
                    else:
                        sums.busy += block.nbytes
                    sums.largest = max(sums.largest, block.nbytes)
                head = bins_below(&sb.bins, head)
    return sums


# Fills in the free bytes by the reason why they cannot serve, and the bytes that private pools
# reserve.
cdef void _survey(DeviceAllocator* a, BlockPool* own, uint64_t stream, Facts* facts) noexcept nogil:
    cdef PrivatePool* private
    cdef Segment* segment
    cdef Free sums = _free_in(a, own, True, stream)
    cdef int kind
    facts.largest_free_block = sums.largest
    facts.cached = sums.done + a.page_pool_nbytes
    facts.waiting = sums.busy
    facts.waiting += a.pending_sums[FLOW_BYTES][0] + a.pending_sums[FLOW_BYTES][1]
    if own != a.pools:
        sums = _free_in(a, a.pools, False, stream)
        facts.waiting += sums.busy
        if a.capturing:
            facts.waiting += sums.done          # a capture gives no memory of other pools back
        else:
            facts.cached += sums.done
    for private in each(a.private_pools):
        for kind in range(2):
            for segment in each(private.pools[kind].segments):
                facts.private += segment.mapped
        if private.pools == own:
            continue
        sums = _free_in(a, private.pools, False, stream)
        if (private.use_count > 0 or private.capturing) and not (
                private.is_for_oom and own == a.pools and not private.capturing):
            facts.private_idle += sums.done + sums.busy
        else:
            facts.cached += sums.done
            facts.waiting += sums.busy


cdef void _collect_facts(DeviceAllocator* a, uint64_t stream, Facts* facts) noexcept nogil:
    cdef Held held
    cdef Request request
    a.driver.mem_info(a.driver.self, &facts.free, &facts.total)
    held.take(&a.lock)
    stats_update(a)
    own = scope_pools(a, stream)
    facts.rounded = facts.growth = round_size(a, facts.requested)
    pool = pool_for(own, facts.rounded)
    facts.is_private = own != a.pools
    facts.has_source = pool.owner != NULL and pool.owner.source != NULL
    facts.is_pooled = facts.is_private or (a.caching and a.config.backend == BACKEND_NATIVE)
    if facts.is_pooled:
        request = request_for(pool, stream, facts.rounded)
        facts.growth = growth_need(a, &request)
        facts.is_rejected = miss_refuses(a, &request)
    _survey(a, own, stream, facts)
    facts.reserved = a.stats[STAT_RESERVED_BYTES][0].current
    facts.allocated = a.stats[STAT_ALLOCATED_BYTES][0].current
    facts.page_pool = a.page_pool_nbytes
    facts.limit = a.limit_nbytes
    facts.granularity = a.granularity
    facts.is_capturing = a.capturing > 0


def failure_facts(int device, size_t nbytes, uint64_t stream):
    """Return the :class:`Facts` of a request that just failed, as a dict.

    Its ``limit`` is None without one. Empty when the device has no allocator.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Facts facts
    if a == NULL:
        return {}
    memset(&facts, 0, sizeof(Facts))
    facts.requested = nbytes
    with nogil:
        _collect_facts(a, stream, &facts)
    # Not under the lock: making a Python object may run a destructor that frees.
    found = dict(facts)
    return found | {"limit": None if facts.limit == SIZE_MAX else facts.limit}
