"""The pools that graphs capture into, and this room's state for a device."""

CAPTURE_ERROR_MODES = ("global", "thread_local", "relaxed")

# Graphs that were dropped when a wait for the last replay was not possible: inside a host function
# (800), or because the wait failed.
cdef list postponed = []


# The number of a pool argument. Raises TypeError for any other object.
cdef uint64_t pool_number(object pool) except 0:
    if isinstance(pool, CUDAGraph):
        pool = pool.pool()
    elif hasattr(pool, "id"):
        pool = pool.id
    if isinstance(pool, tuple) and len(pool) == 2:
        pool = pool[0] or pool[1]
    if isinstance(pool, bool) or not isinstance(pool, int) or pool <= 0:
        raise argument_error(TypeError, "pool", pool,
                             "graph_pool_handle(), CUDAGraph.pool() or a MemPool")
    return pool


# The ids of the pools with the number of the pair `own` and of the holds, each once.
cdef tuple pools_of(tuple own, PoolHold* hold):
    cdef list found = [own]
    while hold != NULL:
        pair = pool_pair(hold.pool_id)
        if hold.pool_id not in own and pair not in found:
            found.append(pair)
        hold = hold.next
    return tuple(found)


# The stream kept for captures into a pool; None: no capture yet.
cdef object pool_stream(int device, uint64_t pool_id):
    return pool_streams(device).get(pool_id)


# ---- the slot of this room (registry.pxd) ----

# For an open device: pool id -> the Stream of the last capture into the pool. Graphs that share a
# pool capture on one stream, because the allocator reuses memory stream by stream.
cdef dict pool_streams(int device):
    cdef PyObject** kept = <PyObject**>device_slot(device, capture_slot)
    cdef dict made
    if kept[0] == NULL:
        made = {}
        Py_INCREF(made)
        kept[0] = <PyObject*>made
    return <dict>kept[0]


cdef int _close(int device) except -1:
    Py_CLEAR((<PyObject**>device_slot(device, capture_slot))[0])
    return 0


# After a wait for a device: releases the graphs that could not be released earlier.
cdef int _synchronize(int device) except -1:
    global postponed
    dropped, postponed = postponed, []
    del dropped
    return 0


# Pinned memory that a capture used belongs to the graph until the graph is released.
cdef int _release(int device, uint64_t capture_id) except -1:
    capture_done(device, capture_id)
    return 0


cdef Slot slot
slot.nbytes = sizeof(PyObject*)
slot.close = _close
slot.synchronize = _synchronize
slot.release = _release
cdef int capture_slot = register_slot(&slot)
