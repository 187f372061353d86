"""Thread caches: a hit costs one uncontended lock and no shared cache line.

A cache has 128 slots; a slot holds free blocks of one exact size and stream, so a hit returns
the best fit for that size without a split. Only the thread that owns the cache takes from it. A
block returns to the cache it came from, whichever thread frees it, so memory that one thread
allocates and another frees comes home. A cache refuses a block if its slot serves another size that
is in use, if the slot is full, or if it holds its maximum of bytes; the pools then take the block.

Before a pool grows, all caches are drained. A cached block does not merge with its neighbours, and
best fit does not see it, which costs memory whenever sizes vary. So a request from MIDDLE on (here:
a *large* one) that no cache serves returns all large blocks to the pools first. While one thread is
alone its cache keeps none; beside others, one of them keeps one large block, which its own thread
freed, and which the pools would keep and choose. Only while threads wait for each other at the
device lock (`contention`) caches keep more, a fourth (LARGE_SHARE) of the reserved bytes in all.

Each cache has a spin lock. The owner holds it for the hit; the others are threads that free into
it, and those that drain, count or check, under the device lock. A cache outlives its thread and is
handed to the next new one: blocks may point to it.
"""

cdef extern from "gputensor/_alloc/core/thread_slot.h" nogil:
    void** gt_caches_new(int index, void (*retire)(void*) noexcept nogil)
    void* gt_caches_get(int index)

cdef enum:
    SLOT_BLOCKS = 64            # blocks in one slot
    SMALL_CACHED = 4 << 20      # bytes of small blocks in one cache
    LARGE_SHARE = 4             # large blocks in all caches: at most reserved / LARGE_SHARE


# Held by an ending thread, around its device's lock, and by a thread that closes a device.
cdef int32_t closing_lock = 0


cdef void _retire(void* pointer) noexcept nogil:
    cdef ThreadCache* cache = <ThreadCache*>pointer
    cdef SpinHeld held
    held.take(&closing_lock)        # the device may be closed while the thread ends
    a = cache.allocator
    if a != NULL:
        device_lock(a)
        _drain(a, cache, 0)
        gt_store(&cache.in_use, 0)
        gt_store(&a.caches_in_use, a.caches_in_use - 1)
        device_unlock(a)
        check_after(a.device, "the end of a thread")


cdef ThreadCache* _adopt(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache
    cdef void* made
    cdef Held held
    held.take(&a.lock)
    for cache in each(a.caches):
        if not gt_load(&cache.in_use):
            break
    else:
        # Processors fetch cache lines in pairs: the caches of two threads share no pair.
        if posix_memalign(&made, 128, (sizeof(ThreadCache) + 127) // 128 * 128):
            return NULL
        memset(made, 0, sizeof(ThreadCache))
        cache = <ThreadCache*>made
        cache.allocator = a
        cache.next = a.caches
        gt_store(&a.caches, cache)
        gt_store(&a.cache_count, a.cache_count + 1)
    gt_store(&cache.in_use, 1)
    gt_store(&a.caches_in_use, a.caches_in_use + 1)
    stats_update(a)
    return cache


cdef ThreadCache* cache_mine(DeviceAllocator* a) noexcept nogil:
    cdef int index = a.device + HOST_DEVICES
    cache = <ThreadCache*>gt_caches_get(index)
    if cache == NULL or cache.allocator != a:
        cell = gt_caches_new(index, _retire)
        if cell == NULL:
            return NULL
        cell[0] = cache = _adopt(a)
    return cache


cdef inline CacheSlot* _slot(ThreadCache* cache, size_t nbytes, uint64_t stream) noexcept nogil:
    cdef uint64_t key = (nbytes >> UNIT_SHIFT) + (stream >> 4) * 37 + stream
    return &cache.slots[(key ^ (key >> 7) ^ (key >> 14)) & (CACHE_SLOTS - 1)]


# Takes the first block off a slot. Needs the cache's lock.
cdef inline Block* _pop(ThreadCache* cache, CacheSlot* slot) noexcept nogil:
    block = chain_pop(&slot.head)
    slot.count -= 1
    gt_add(&cache.cached_nbytes[block.nbytes >= MIDDLE], -block.nbytes)
    cache.cached_count -= 1
    if block.is_split:
        counters_split_out(&cache.counters[block.kind], block.nbytes)
    return block


# A hit or a free left the budget of its shard: all shards stop and count again.
cdef void _settle(DeviceAllocator* a, bint is_locked) noexcept nogil:
    cdef Held held
    if not is_locked:
        held.take(&a.lock)
    stats_update(a, True)


cdef Block* cache_take(ThreadCache* cache, size_t nbytes, size_t requested,
                       uint64_t stream) noexcept nogil:
    cdef CacheSlot* slot = _slot(cache, nbytes, stream)
    cdef Block* block = NULL
    cdef bint within = True
    if nbytes >= MIDDLE and gt_load(&cache.cached_nbytes[True]) == 0:
        return NULL
    gt_spin_lock(&cache.lock)
    if slot.head != NULL and slot.nbytes == nbytes and slot.stream == stream:
        block = _pop(cache, slot)
        within = counters_give(&cache.counters[block.kind], nbytes, requested)
        gt_store(&block.state, BLOCK_ALLOCATED)
        block.requested = requested
    gt_spin_unlock(&cache.lock)
    if not within:
        _settle(cache.allocator, False)
    return block


cdef inline bint _is_mine(ThreadCache* cache) noexcept nogil:
    return <ThreadCache*>gt_caches_get(cache.allocator.device + HOST_DEVICES) == cache


# How many bytes of large blocks a cache may hold once it accepts `block`. A lent block is none.
cdef inline size_t _large_limit(ThreadCache* cache, Block* block) noexcept nogil:
    cdef DeviceAllocator* a = cache.allocator
    cdef int count = gt_load(&a.caches_in_use)
    if count < 2 or (block.kind == POOL_LARGE and block.nbytes <= SMALL_LIMIT):
        return 0
    if gt_load(&a.contention) == 0:
        inserts = &a.inserts[(block.nbytes >> UNIT_SHIFT) % 64]
        return block.nbytes if (gt_load(&a.large_holder) == cache and _is_mine(cache)
                                and gt_load(&block.kept_at) == gt_load(inserts) + 1) else 0
    return <size_t>gt_load(&a.stats[STAT_RESERVED_BYTES][0].current) // (LARGE_SHARE * count)


cdef bint cache_put(ThreadCache* cache, Block* block, bint is_locked=False) noexcept nogil:
    cdef CacheSlot* slot = _slot(cache, block.nbytes, block.stream)
    cdef Counters* c = &cache.counters[block.kind]
    cdef size_t limit = SMALL_CACHED
    cdef bint is_large = block.nbytes >= MIDDLE
    cdef bint wanted, within = True
    if is_large:
        limit = _large_limit(cache, block)
        if limit == 0:
            return False
    gt_spin_lock(&cache.lock)
    if slot.head == NULL:
        slot.nbytes = block.nbytes
        slot.stream = block.stream
    wanted = (slot.nbytes == block.nbytes and slot.stream == block.stream
              and slot.count < SLOT_BLOCKS and gt_load(&cache.in_use)
              and cache.cached_nbytes[is_large] + block.nbytes <= limit)
    if wanted:
        counters_take(c, block.nbytes, block.requested)
        within = not block.is_split or counters_split_in(c, block.nbytes)
        block.requested = 0
        gt_store(&block.state, BLOCK_CACHED)
        chain_push(&slot.head, block)
        slot.count += 1
        gt_add(&cache.cached_nbytes[is_large], block.nbytes)
        cache.cached_count += 1
    gt_spin_unlock(&cache.lock)
    if not within:
        _settle(cache.allocator, is_locked)
    return wanted


cdef bint cache_keep(ThreadCache* cache, Block* block) noexcept nogil:
    cdef DeviceAllocator* a = cache.allocator
    if not _is_mine(cache) or not pool_would_keep(block):
        return False
    gt_store(&a.large_holder, cache)
    gt_store(&block.kept_at, a.inserts[(block.nbytes >> UNIT_SHIFT) % 64] + 1)
    return cache_put(cache, block, True)


# Returns a cache's blocks of at least `least` bytes to the pools. Needs the device lock.
cdef int _drain(DeviceAllocator* a, ThreadCache* cache, size_t least) noexcept nogil:
    cdef Block* taken = NULL
    cdef int i, count = 0
    gt_spin_lock(&cache.lock)
    for i in range(CACHE_SLOTS if cache.cached_count > 0 else 0):
        while cache.slots[i].head != NULL and cache.slots[i].nbytes >= least:
            block = _pop(cache, &cache.slots[i])
            block.state = BLOCK_HELD
            chain_push(&taken, block)
    gt_spin_unlock(&cache.lock)
    while taken != NULL:
        block = chain_pop(&taken)
        block.home = NULL
        block_map_remove(block)
        pool_give(block)
        count += 1
    if count > 0:
        in_flight_begin(a)          # they are in the lists now: others may try again
        in_flight_end(a)
    return count


cdef int caches_drain(DeviceAllocator* a, size_t least=0) noexcept nogil:
    cdef ThreadCache* cache
    cdef int count = 0
    for cache in each(a.caches):
        # Read without its lock: a block that arrives now is treated like one that comes later.
        if least < MIDDLE or gt_load(&cache.cached_nbytes[True]) > 0:
            count += _drain(a, cache, least)
    return count


cdef void caches_forget(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache
    cdef SpinHeld held
    held.take(&closing_lock)
    for cache in each(a.caches):
        cache.allocator = NULL
