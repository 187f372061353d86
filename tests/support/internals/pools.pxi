"""Private pools by number, as MemPool and graphs use them."""


def retain_pool(int device, uint64_t pool_id):
    """Hold a pool: its free memory serves only its own users."""
    raise_for_status(pool_retain(device, pool_id), "pool_retain")


def set_pool_kind(int device, uint64_t pool_id, bint use_on_oom, bint no_split):
    """Set whether a pool's free blocks serve others before those fail, and are never cut."""
    raise_for_status(pool_set_kind(device, pool_id, use_on_oom, no_split), "pool_set_kind")


def release_pool(int device, uint64_t pool_id):
    """Release a hold. Nothing happens on a device that was closed meanwhile."""
    pool_release(device, pool_id)


def begin_pool(int device, uint64_t pool_id):
    """Serve this thread's requests from a pool. Returns the thread's number, for end_pool."""
    raise_for_status(pool_begin(device, pool_id, pool_thread(), False), "pool_begin")
    return pool_thread()


def end_pool(int device, uint64_t pool_id, thread=None):
    """End the effect of :func:`begin_pool` on this thread, or on the one whose number is given."""
    cdef uint64_t owner = pool_thread() if thread is None else thread
    raise_for_status(pool_end(device, pool_id, owner, NULL), "pool_end")
