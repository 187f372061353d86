"""The pools that graphs capture into, their streams, and this room's state for a device."""

CAPTURE_ERROR_MODES = ("global", "thread_local", "relaxed")

# Graphs that were dropped when a wait for the last replay was not possible: inside a host function
# (800), or because the wait failed.
cdef list postponed = []

cdef uint64_t pool_member_changes = 0   # of the members of all PoolStreams


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


# Graphs of one pool use the same memory, also if they were captured on different streams: a capture
# may get memory that an earlier one had finished with. So a replay of one is ordered with the
# streams of all.
@cython.final
@cython.no_gc
cdef class PoolStreams:
    cdef int device
    cdef int generation
    cdef Stream latest              # of the latest capture
    cdef list members               # handles of the streams of all captures

    cdef int add(self, list streams) except -1:
        global pool_member_changes
        pool_member_changes += 1
        for stream in streams:
            if stream not in self.members:
                graph_stream_retain(self.device, stream)
                self.members.append(stream)
        return 0

    def __dealloc__(self):
        if self.generation == device_generation(self.device):
            for stream in self.members:
                graph_stream_release(self.device, stream)


# The stream kept for captures into a pool; None: no capture yet.
cdef object pool_stream(int device, uint64_t pool_id):
    cdef PoolStreams found = pool_streams(device).get(pool_id)
    return None if found is None else found.latest


cdef int note_pool_stream(int device, uint64_t pool_id, Stream stream) except -1:
    cdef dict pools = pool_streams(device)
    cdef PoolStreams made = pools.get(pool_id)
    if made is None:
        made = PoolStreams.__new__(PoolStreams)
        made.device, made.generation = device, device_generation(device)
        made.members = []
        pools[pool_id] = made
    made.latest = stream
    return 0


# The streams of the pools whose memory a graph uses, after its capture.
cdef list streams_of_pools(CUDAGraph graph):
    cdef dict pools = pool_streams(graph.device)
    cdef list found = []
    cdef size_t i
    for i in range(graph.captured.own.size()):
        if pool_of_name(graph.captured.own[i]):
            found.append(pools.get(pool_of_name(graph.captured.own[i])))
    (<PoolStreams>pools[graph.pool_id]).add(graph.members)
    return [one for one in found if one is not None]


# ---- the slot of this room (registry.pxd) ----

# For an open device: pool id -> PoolStreams. Graphs that share a pool capture on one stream unless
# the program gives them others, because the allocator reuses memory stream by stream.
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
