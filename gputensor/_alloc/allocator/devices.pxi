"""The allocators of the open devices: made at first use, configured, closed."""

cdef enum:
    MAX_VIEWS = 64              # a plan looks at the pages of all of them

# The state of this room for each open device (registry.pxd).
cdef struct AllocatorSlot:
    # For a device that the parent process used, until it is used here: 1, or 2 if it cached.
    int caching_at_fork
    bint has_own_settings       # changes of the settings in force do not reach it
    DeviceAllocator* allocator

# Whether devices that are opened later cache; None: as the environment says.
_caching = None


# NULL when the device is not open.
cdef inline AllocatorSlot* kept_for(int device) noexcept nogil:
    return <AllocatorSlot*>device_slot(device, allocator_slot)


cdef DeviceAllocator* allocator_find(int device) noexcept nogil:
    if device < -HOST_DEVICES or device >= MAX_DEVICES - HOST_DEVICES:
        return NULL
    cdef AllocatorSlot* kept = kept_for(device)
    if kept == NULL:
        return NULL
    return gt_load(&kept.allocator)


cdef DeviceAllocator* allocator_open(int device) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    if a != NULL or device < -HOST_DEVICES or device >= MAX_DEVICES - HOST_DEVICES:
        return a
    with gil:
        try:
            _open(device)
        except Exception:
            return NULL
    return allocator_find(device)


# Sets how much may be reserved, by the share and the limit in the settings.
cdef void _set_limit(DeviceAllocator* a) noexcept nogil:
    cdef double share = a.config.per_process_memory_fraction
    a.limit_nbytes = SIZE_MAX
    if share < 1.0 or a.config.throw_on_cudamalloc_oom:    # also refuses more than the device has
        a.limit_nbytes = <size_t>(share * <double>a.total_nbytes)
    if a.config.memory_limit > 0 and a.config.memory_limit < a.limit_nbytes:
        a.limit_nbytes = a.config.memory_limit


cdef int _open(int device, object settings=None, object limit_nbytes=None) except -1:
    cdef Driver* driver = driver_open(device)
    cdef DeviceAllocator* a
    cdef size_t free_nbytes = 0
    if allocator_find(device) != NULL:
        return 0
    a = <DeviceAllocator*>calloc(1, sizeof(DeviceAllocator))
    if a == NULL:
        raise MemoryError("no host memory for the allocator of a device")
    pthread_mutex_init(&a.lock, NULL)
    a.driver = driver
    a.device = device
    a.granularity = driver.page_granularity
    a.view_limit = MAX_VIEWS
    a.epoch = 1
    a.caching = settings is not None or _starts_caching(device)
    try:
        raise_for_status(driver.mem_info(driver.self, &free_nbytes, &a.total_nbytes), "mem_info")
        # All this runs Python code, in which threads take turns: only one of them opens the device,
        # and the settings do not change between being read here and the first call of `configure`.
        with _settings.unchanged():
            if allocator_find(device) != NULL:
                free(a)
                return 0
            if settings is None:
                config_of_device(a.device, &a.config)
                _set_limit(a)
            else:
                settings_to_struct(settings, &a.config)
                a.limit_nbytes = SIZE_MAX if limit_nbytes is None else limit_nbytes
                kept_for(device).has_own_settings = True
            pools_init(a.pools, a, NULL, 0)
            kept_for(device).caching_at_fork = 0
            gt_store(&kept_for(device).allocator, a)
    except BaseException:
        free(a)
        raise
    check_after(device, "the opening of the device")
    return 0


def open_allocator(int device, settings=None, limit_nbytes=None):
    """Make the allocator of a device now; errors of opening the device are raised unchanged.

    With `settings`, the device keeps these, and may reserve `limit_nbytes` (None: all that it has)
    whatever limits they contain: for replays beside a running program.
    """
    _open(device, settings, limit_nbytes)


def configure(settings=None):
    """Apply the settings in force to every open allocator. Blocks in use are not touched."""
    cdef DeviceAllocator* a
    cdef AllocatorConfig config
    for device in open_devices():
        a = allocator_find(device)
        if a != NULL and not kept_for(device).has_own_settings:
            # Without the lock: this runs Python, and a thread that waits for it may hold the GIL.
            config_of_device(a.device, &config)
            if allocator_find(device) != a:
                continue        # another thread closed the device meanwhile, and freed this
            device_lock(a)
            a.config = config
            _set_limit(a)
            device_unlock(a)
            check_after(a.device, "a change of settings")


cpdef void set_caching(int device, bint caching) noexcept:
    """Turn caching on or off for requests to come (``caching_allocator_enable``)."""
    cdef DeviceAllocator* a = allocator_find(device)
    if a != NULL:
        a.caching = caching
        check_after(device, "set_caching")
    elif kept_for(device) != NULL and kept_for(device).caching_at_fork:
        kept_for(device).caching_at_fork = 1 + caching


def set_caching_everywhere(bint caching):
    """Turn caching on or off on all devices, also on those that are opened later."""
    restore_caching((caching, {}, caching))


def caching_everywhere():
    """Return the present state of caching, for :func:`restore_caching`."""
    return (_caching, {device: is_caching(device) for device in open_devices()},
            _new_devices_cache())


def restore_caching(state):
    """Restore caching; a device opened meanwhile gets the state that a new device had then.

    It runs no Python code, so a signal handler sees all devices changed, or none.
    """
    global _caching
    cdef int index
    cdef dict by_device = state[1]
    cdef bint fresh = state[2]
    _caching = state[0]
    for index in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES):
        if kept_for(index) != NULL and not kept_for(index).has_own_settings:
            set_caching(index, by_device.get(index, fresh))


cdef object _new_devices_cache():
    if _caching is None:
        return not switch("GPUTENSOR_NO_MEMORY_CACHING")
    return _caching


def _starts_caching(int device):
    cdef int noted = 0 if kept_for(device) == NULL else kept_for(device).caching_at_fork
    return noted - 1 == 1 if noted else _new_devices_cache()


def is_caching(int device):
    """Return whether requests on a device are served from the cache."""
    cdef DeviceAllocator* a = allocator_find(device)
    return _starts_caching(device) if a == NULL else bool(a.caching)


def open_devices():
    """Return the numbers of the devices that have an allocator."""
    return [device for device in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES)
            if allocator_find(device) != NULL]


cdef size_t allocator_empty(DeviceAllocator* a, const char* change) noexcept nogil:
    cdef Held held
    device_hold(a, &held, change)
    caches_drain(a)             # first: cached blocks are done after the wait, too
    synchronize_all(a)
    if a.pending != NULL:
        pending_poll(a)
    uncached_release(a)
    released = release_all(a)
    retired_pools_settle(a)
    return released


def close_allocator(int device, bint abandon=False):
    """Give everything back to the driver and forget the allocator of a device.

    For host devices that tests and the simulator open. While blocks are in use this raises
    ``RuntimeError`` and only gives back free memory; with `abandon` it forgets them, because the
    closing device frees its memory.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef size_t held
    if a == NULL:
        return
    with nogil:
        allocator_empty(a, "the return of everything free")
        held = <size_t>gt_load(&a.stats[STAT_RESERVED_BYTES][0].current)
    if held > 0 and not abandon:
        raise RuntimeError(f"device {device}: {held} bytes are still reserved by blocks in use")
    checks_stop()
    gt_store(&kept_for(device).allocator, NULL)
    checks_resume()
    kept_for(device).has_own_settings = False
    _forget(a)


# Frees the records of an allocator that holds no memory. Thread caches outlive it.
cdef void _forget(DeviceAllocator* a) noexcept nogil:
    cdef int i
    driver = a.driver
    caches_forget(a)
    while a.scopes != NULL:
        scope = row_pop(&a.scopes)
        pool_forget_holds(scope.holds)
        free(scope)
    _drop_pools(a, a.pools)
    while a.private_pools != NULL:
        private = row_pop(&a.private_pools)
        _drop_pools(a, private.pools)
        free(private)
    while a.streams != NULL:
        state = row_pop(&a.streams)
        for i in range(state.ring_count):
            driver.event_destroy(driver.self, state.ring[i].event)
        free(state)
    for i in range(a.spare_event_count):
        driver.event_destroy(driver.self, a.spare_events[i])
    free(a.spare_events)
    free(a)


cdef void _drop_pools(DeviceAllocator* a, BlockPool* pools) noexcept nogil:
    cdef int place
    for place in range(POOLS):
        while pools[place].segments != NULL:
            segment = pools[place].segments
            a.driver.va_release(a.driver.self, segment.va, segment.nbytes)
            segment_drop(segment)
        pool_clear(&pools[place])


cdef int _close(int device) except -1:
    close_allocator(device, abandon=True)
    return 0


# In the child of a fork the allocators are its parent's. They are left as they are, records, locks
# and all: other threads may have been in the middle of a change.
cdef void _fork() noexcept nogil:
    cdef int device
    for device in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES):
        a = allocator_find(device)
        if a != NULL:
            kept_for(device).caching_at_fork = 1 + (a.caching != 0)
            caches_forget(a)


_settings.on_change(configure)
cdef Slot slot
slot.nbytes = sizeof(AllocatorSlot)
slot.kept_nbytes = sizeof(int)          # caching_at_fork
slot.close = _close
slot.fork = _fork
cdef int allocator_slot = register_slot(&slot)
