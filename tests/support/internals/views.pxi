"""The views of an allocator, the contents of its thread caches, and the records of blocks."""

cdef Block* held_records = NULL


def view_blocks(int device):
    """Return the addresses of the blocks in views."""
    cdef DeviceAllocator* a = allocator_find(device)
    cdef View* view
    cdef Block* block
    found = []
    if a == NULL:
        return found
    device_lock(a)
    view = a.views
    while view != NULL:
        block = view.blocks
        while block != NULL:
            found.append(block.ptr)
            block = block.next
        view = view.next
    device_unlock(a)
    return found


def view_sizes(int device):
    """Return the mapped bytes of each view, most recently used first."""
    cdef DeviceAllocator* a = allocator_find(device)
    cdef View* view
    found = []
    if a == NULL:
        return found
    device_lock(a)
    view = a.views
    while view != NULL:
        found.append(view.nbytes)
        view = view.next
    device_unlock(a)
    return found


def limit_views(int device, int count):
    """Set the maximum number of a device's views, so that a small program can reach it."""
    open_allocator(device)
    cdef DeviceAllocator* a = allocator_find(device)
    device_lock(a)
    a.view_limit = count
    device_unlock(a)
    check_after(device, "limit_views")


def contend(int device, int32_t requests=1 << 30):
    """Treat the next `requests` requests and frees as made while threads wait for the lock."""
    cdef DeviceAllocator* a
    open_allocator(device)
    a = allocator_find(device)
    device_lock(a)
    a.contention = requests
    device_unlock(a)


def cached_large_nbytes(int device):
    """Return the bytes of large blocks in the caches of all threads."""
    cdef DeviceAllocator* a = allocator_find(device)
    cdef ThreadCache* cache
    total = 0
    device_lock(a)
    cache = a.caches
    while cache != NULL:
        total += cache.cached_nbytes[POOL_LARGE]
        cache = cache.next
    device_unlock(a)
    return total


def hold_records(int left):
    """Take all block records there are, but for `left`; host memory for more must be denied."""
    global held_records
    record = block_new()
    while record != NULL:
        chain_push(&held_records, record)
        record = block_new()
    for _ in range(left):
        block_drop(chain_pop(&held_records))


def return_records():
    """Return the records that :func:`hold_records` took."""
    global held_records
    while held_records != NULL:
        block_drop(chain_pop(&held_records))
