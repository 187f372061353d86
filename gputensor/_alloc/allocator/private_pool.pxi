"""Private pools and scopes.

A private pool is a pair of block pools of its own. While it has a holder, its free memory serves
only its own requests, because the replays of a graph write to addresses that look free to the
allocator. retired_pool.pxi handles pools without holders. Scopes form a stack: the innermost scope
that matches the thread or the stream selects the pool. Thread caches are bypassed while any scope
is open (`scope_count`), because they do not tell pools apart.

A pool that serves both captures and eager requests has a record for each graph pool, besides the
one for eager requests: memory that a capture used and freed looks free, but the next replay writes
to it. Its captures and their graphs hold such a record, independently of other holders of the pool.
The records of one pool differ in `graph_id` and count as one.
"""

cdef extern from "Python.h" nogil:
    ctypedef struct PyThreadState:
        pass
    int PyGILState_Check()
    PyThreadState* PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState* state)

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef extern from * nogil:
    int __ATOMIC_RELAXED
    uint64_t __atomic_add_fetch(uint64_t* cell, uint64_t value, int order)

cdef uint64_t newest_pool_id = 0


cdef uint64_t pool_new_id() noexcept nogil:
    return __atomic_add_fetch(&newest_pool_id, 1, __ATOMIC_RELAXED)


cdef BlockPool* scope_pools(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef PoolScope* scope
    cdef PrivatePool* named = NULL          # by the innermost scope of this thread
    cdef uint64_t thread = pool_thread()
    for scope in each(a.scopes):
        if not scope.by_thread and scope.owner == stream:
            return &(scope.pool if named == NULL else _captured(a, scope, named)).pools[0]
        if named == NULL and scope.by_thread and scope.owner == thread:
            named = scope.pool
    return &a.pools[0] if named == NULL else &named.pools[0]


# The record from which a capture takes memory of the pool `named`; its graph will hold it. Without
# host memory for that, the capture's own pool serves.
cdef PrivatePool* _captured(DeviceAllocator* a, PoolScope* capture,
                            PrivatePool* named) noexcept nogil:
    cdef PoolHold* hold
    cdef uint64_t graph_id = capture.pool.graph_id
    if named.pool_id == capture.pool.pool_id:
        return capture.pool
    for hold in each(capture.holds):
        if hold.pool_id == named.pool_id:
            return _find(a, named.pool_id, graph_id)
    hold = <PoolHold*>calloc(1, sizeof(PoolHold))
    pool = _find_or_make(a, named.pool_id, graph_id) if hold != NULL else <PrivatePool*>NULL
    if pool == NULL:
        free(hold)
        return capture.pool
    hold.pool_id = named.pool_id
    hold.graph_id = graph_id
    row_push(&capture.holds, hold)
    _count(a, pool, 1, 0, 0)
    return pool


cdef PrivatePool* _find(DeviceAllocator* a, uint64_t pool_id, uint64_t graph_id) noexcept nogil:
    cdef PrivatePool* pool
    for pool in each(a.private_pools):
        if pool.pool_id == pool_id and pool.graph_id == graph_id:
            return pool
    return NULL


# The record that counts for all of a pool's; NULL: the pool has none.
cdef PrivatePool* _account_of(DeviceAllocator* a, uint64_t pool_id) noexcept nogil:
    cdef PrivatePool* pool
    for pool in each(a.private_pools):
        if pool.pool_id == pool_id:
            return pool.account
    return NULL


cdef PrivatePool* _find_or_make(DeviceAllocator* a, uint64_t pool_id,
                                uint64_t graph_id) noexcept nogil:
    pool = _find(a, pool_id, graph_id)
    if pool != NULL:
        return pool
    pool = <PrivatePool*>calloc(1, sizeof(PrivatePool))
    if pool == NULL:
        return NULL
    pool.pool_id = pool_id
    pool.graph_id = graph_id
    pool.account = _account_of(a, pool_id)
    if pool.account == NULL:
        pool.account = pool
    pool.is_unsplit = pool.account.is_unsplit
    pool.source = pool.account.source
    pools_init(pool.pools, a, pool, pool_id)
    row_push(&a.private_pools, pool)
    a.retired_pools += 1               # until it has a holder
    return pool


# Changes the numbers of a pool's holders, scopes and captures.
cdef void _count(DeviceAllocator* a, PrivatePool* pool, int holders, int scopes,
                 int captures) noexcept nogil:
    a.retired_pools -= pool_is_retired(pool)
    pool.use_count += holders
    pool.account.holders += holders
    pool.scopes += scopes
    pool.capturing += captures
    a.capturing += captures
    a.retired_pools += pool_is_retired(pool)


# Waits for threads that saw no capture, and record, query or wait for the device: their calls must
# neither become part of this capture nor break it. On a deferred host device they may need the GIL.
cdef void _wait_for_driver_requests(DeviceAllocator* a) noexcept nogil:
    cdef PyThreadState* state = NULL
    while a.driver_requests > 0:
        device_unlock(a)
        if PyGILState_Check():
            state = PyEval_SaveThread()
        sched_yield()
        if state != NULL:
            PyEval_RestoreThread(state)
            state = NULL
        device_lock(a)


cdef status_t pool_begin(int device, uint64_t pool_id, uint64_t owner,
                         bint captures=True) noexcept nogil:
    cdef DeviceAllocator* a = allocator_open(device)
    cdef PrivatePool* pool = NULL
    cdef Held held
    if a == NULL:
        return STATUS_INVALID_VALUE
    scope = <PoolScope*>calloc(1, sizeof(PoolScope))
    device_hold(a, &held, "the begin of a pool")
    if scope != NULL:
        pool = _find_or_make(a, pool_id, pool_id if captures else 0)
    if pool == NULL:
        free(scope)
        return STATUS_OUT_OF_MEMORY
    pool.pins += 1
    if captures:
        _wait_for_driver_requests(a)
    pool.pins -= 1
    scope.pool = pool
    scope.by_thread = not captures
    scope.owner = owner
    row_push(&a.scopes, scope)
    gt_add(&a.scope_count, 1)
    _count(a, pool, captures, 1, captures)
    return STATUS_OK


cdef status_t pool_end(int device, uint64_t pool_id, uint64_t owner,
                       PoolHold** holds) noexcept nogil:
    cdef PoolScope* scope
    cdef bint captures = holds != NULL
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Held held
    if a == NULL:
        return STATUS_INVALID_VALUE
    device_hold(a, &held, "the end of a pool")
    for scope in each(a.scopes):
        if scope.pool.pool_id == pool_id and scope.owner == owner and scope.by_thread != captures:
            break
    else:
        return STATUS_NOT_FOUND
    row_remove(&a.scopes, scope)
    gt_add(&a.scope_count, -1)
    pool = scope.pool
    _count(a, pool, 0, -1, -captures)
    if scope.holds != NULL:
        while holds[0] != NULL:
            holds = &holds[0].next
        holds[0] = scope.holds
    free(scope)
    retired_pool_drop(a, pool)
    if captures and a.capturing == 0:
        pending_resume(a)
        uncached_release(a)
    return STATUS_OK


cdef status_t _hold(int device, uint64_t pool_id, uint64_t graph_id, int change) noexcept nogil:
    cdef DeviceAllocator* a = allocator_open(device)
    cdef Held held
    if a == NULL:
        return STATUS_INVALID_VALUE
    device_hold(a, &held, "a hold on a pool" if change > 0 else "a pool's release")
    if change > 0:
        pool = _find_or_make(a, pool_id, graph_id)
    else:
        pool = _find(a, pool_id, graph_id)
    if pool == NULL:
        return STATUS_NOT_FOUND
    if pool.use_count + change < 0:
        return STATUS_INVALID_VALUE
    _count(a, pool, change, 0, 0)
    retired_pool_drop(a, pool)
    return STATUS_OK


cdef status_t pool_retain(int device, uint64_t pool_id) noexcept nogil:
    return _hold(device, pool_id, 0, 1)


cdef status_t pool_release(int device, uint64_t pool_id) noexcept nogil:
    return _hold(device, pool_id, 0, -1)


cdef status_t pool_release_capture(int device, uint64_t pool_id) noexcept nogil:
    return _hold(device, pool_id, pool_id, -1)


cdef void pool_release_holds(int device, PoolHold* holds) noexcept nogil:
    while holds != NULL:
        hold = row_pop(&holds)
        _hold(device, hold.pool_id, hold.graph_id, -1)
        free(hold)


cdef void pool_forget_holds(PoolHold* holds) noexcept nogil:
    while holds != NULL:
        free(row_pop(&holds))


# Needs the device lock: whether a pool holds memory.
cdef inline bint _is_used(PrivatePool* pool) noexcept nogil:
    return pool.pools[0].segments != NULL or pool.pools[1].segments != NULL


cdef status_t pool_set_kind(int device, uint64_t pool_id, bint is_for_oom,
                            bint is_unsplit) noexcept nogil:
    cdef DeviceAllocator* a = allocator_open(device)
    cdef Held held
    if a == NULL:
        return STATUS_INVALID_VALUE
    device_hold(a, &held, "set_pool_kind")
    pool = _find_or_make(a, pool_id, 0)
    if pool == NULL:
        return STATUS_OUT_OF_MEMORY
    if pool.is_unsplit != is_unsplit and _is_used(pool):
        return STATUS_INVALID_VALUE
    pool.is_for_oom = is_for_oom
    pool.is_unsplit = is_unsplit
    return STATUS_OK


cdef status_t pool_set_source(int device, uint64_t pool_id, MemorySource* source) noexcept nogil:
    cdef DeviceAllocator* a = allocator_open(device)
    cdef Held held
    if a == NULL:
        return STATUS_INVALID_VALUE
    held.take(&a.lock)
    pool = _find_or_make(a, pool_id, 0)
    if pool == NULL:
        return STATUS_OUT_OF_MEMORY
    if _is_used(pool):
        return STATUS_INVALID_VALUE
    pool.source = source
    return STATUS_OK


cdef int pool_use_count(int device, uint64_t pool_id) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Held held
    if a == NULL:
        return 0
    held.take(&a.lock)
    pool = _account_of(a, pool_id)
    return 0 if pool == NULL else pool.holders
