"""The pinned memory of a device: a pool of the core, and the segments under it.

Pinned memory is slow to make (the system touches and locks every page), so a segment is at least
2 MiB and is kept when it is free. A request costs its size rounded up to 512 bytes, never to a
power of two. Bins, blocks, counts and waits are those of device memory; a segment comes from the
driver, or is ordinary pages that the driver registers.
"""

cdef extern from "gputensor/_alloc/pinned/prefault.h" namespace "gputensor" nogil:
    uint64_t touched_pages(size_t nbytes, int threads)
    void drop_pages(uint64_t ptr, size_t nbytes)

cdef extern from "gputensor/_alloc/history/ring.h" nogil:
    uint64_t gt_now_ns()

cdef enum:
    SEGMENT_STEP = 2 << 20


cdef PinnedPool* pinned_pool_peek(int device) noexcept nogil:
    cell = <void**>device_slot(device, pinned_slot)
    return <PinnedPool*>(NULL if cell == NULL else gt_load(cell))


# Makes the pool of an open device.
cdef status_t _open(int device) noexcept with gil:
    cdef AllocatorConfig config
    with _settings.unchanged():
        if pinned_pool_peek(device) != NULL:
            return STATUS_OK
        try:
            settings_to_struct(_settings.current(), &config)
        except ValueError:
            return STATUS_INVALID_VALUE     # a bad environment variable: raise_for_pinned says so
        pool = <PinnedPool*>calloc(1, sizeof(PinnedPool))
        if pool == NULL:
            return STATUS_OUT_OF_MEMORY
        a = &pool.a
        pthread_mutex_init(&a.lock, NULL)
        a.driver = driver_get(device)
        a.device = device
        a.config = config
        a.is_pinned = True
        a.epoch = 1
        pools_init(a.pools, a, NULL, 0)
        if pool_bins(a.pools, 0) == NULL:
            free(pool)
            return STATUS_OUT_OF_MEMORY
        gt_store(<void**>device_slot(device, pinned_slot), pool)
    return STATUS_OK


def _take_over(settings):
    cdef AllocatorConfig config
    cdef PinnedPool* pool
    settings_to_struct(settings, &config)
    for device in pinned_devices():
        pool = pinned_pool_peek(device)
        if pool != NULL:
            device_lock(&pool.a)
            pool.a.config = config
            device_unlock(&pool.a)


_settings.on_change(_take_over)


# Adds a completed call that began at `started_ns` to the times.
cdef void _count_call(CallTimes* times, int64_t started_ns) noexcept nogil:
    cdef int64_t spent = max((<int64_t>gt_now_ns() - started_ns) // 1000, 0)
    times.total += spent
    times.max = max(times.max, spent)
    times.min = spent if times.count == 0 else min(times.min, spent)
    times.count += 1


# Memory from the driver, or, with `threads`, pages that these touch and the driver registers.
cdef status_t _from_system(Driver* driver, uint64_t* ptr, size_t nbytes,
                           int threads) noexcept nogil:
    cdef status_t status
    if threads == 0:
        return driver.pinned_alloc(driver.self, ptr, nbytes)
    ptr[0] = touched_pages(nbytes, threads)
    if ptr[0] == 0:
        return STATUS_OUT_OF_MEMORY
    status = driver.pinned_register(driver.self, ptr[0], nbytes)
    if status != STATUS_OK:
        drop_pages(ptr[0], nbytes)
    return status


cdef status_t _to_system(Driver* driver, uint64_t ptr, size_t nbytes,
                         bint is_registered) noexcept nogil:
    cdef status_t status
    if not is_registered:
        return driver.pinned_free(driver.self, ptr)
    status = driver.pinned_unregister(driver.self, ptr)
    if status == STATUS_OK:
        drop_pages(ptr, nbytes)
    return status


# Counts a segment that was made (sign 1) or returned (-1) by a call that began at `started_ns`.
cdef void _count_segment(PinnedPool* pool, Segment* segment, int sign,
                         int64_t started_ns) noexcept nogil:
    _count_call(&pool.times[sign < 0], started_ns)
    account_segment(&pool.a, POOL_SMALL, sign)
    account_reserved(&pool.a, POOL_SMALL, sign * <int64_t>segment.nbytes)
    history_segment(HISTORY_SEGMENT_ALLOC if sign > 0 else HISTORY_SEGMENT_FREE, segment,
                    segment.va, segment.nbytes, segment.stack if sign > 0 else 0)


# A HELD block of `nbytes` cut from a new segment, the rest of which goes into the pool; NULL and a
# status when the system has none. Needs the lock, which it drops for the call.
cdef Block* pinned_grow(PinnedPool* pool, size_t segment_nbytes, size_t nbytes,
                        status_t* status) noexcept nogil:
    cdef DeviceAllocator* a = &pool.a
    cdef bint registers = a.config.pinned_use_cuda_host_register
    cdef int threads = a.config.pinned_num_register_threads if registers else 0
    cdef int64_t started = gt_now_ns()
    cdef uint64_t ptr = 0
    segment_nbytes = (segment_nbytes + SEGMENT_STEP - 1) // SEGMENT_STEP * SEGMENT_STEP
    in_flight_unlock(a)
    status[0] = _from_system(a.driver, &ptr, segment_nbytes, threads)
    in_flight_lock(a)
    if status[0] != STATUS_OK:
        return NULL
    segment = segment_new(a.pools, ptr, segment_nbytes, False, 0, 0)
    if segment == NULL:
        _to_system(a.driver, ptr, segment_nbytes, threads != 0)
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    segment.is_registered = threads != 0
    _count_segment(pool, segment, 1, started)
    pool_trim(a.pools, segment.first, nbytes)
    return segment.first


# Gives the largest of the whole free segments back; False: there is none, or the system refuses.
cdef bint _release_one(PinnedPool* pool) noexcept nogil:
    cdef DeviceAllocator* a = &pool.a
    cdef Segment* segment
    cdef Segment* largest = NULL
    cdef int64_t started = gt_now_ns()
    cdef status_t status
    for segment in each(a.pools[0].segments):
        if segment_is_free(segment) and (largest == NULL or segment.nbytes > largest.nbytes):
            largest = segment
    if largest == NULL:
        return False
    pool_remove(a.pools, largest.first)
    largest.first.state = BLOCK_HELD
    in_flight_unlock(a)
    status = _to_system(a.driver, largest.va, largest.nbytes, largest.is_registered)
    in_flight_lock(a)
    if status != STATUS_OK:
        pool_insert(a.pools, largest.first)     # the system keeps it, so it stays usable
        return False
    _count_segment(pool, largest, -1, started)
    segment_drop(largest)
    return True


# Whole free segments go back to the system, largest first, until at most `keep` bytes are free.
# Needs the lock, which it drops for the calls.
cdef void pinned_trim(PinnedPool* pool, size_t keep) noexcept nogil:
    while pool_bins(pool.a.pools, 0).free_nbytes > keep and _release_one(pool):
        pass
