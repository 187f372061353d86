"""The handles of cuBLAS and cuBLASLt, by device and thread.

A cuBLAS handle has a stream, a workspace and a math mode, so each thread has its own handle, and
these are set only when they change; `cublasSetStream` drops the workspace, so the two are set
together. A cuBLASLt handle has no state, so one for each device serves all threads without a lock.
The context of the device must be current in the calling thread (`_driver/registry.pyx`).
"""

cdef extern from "gputensor/blas/libraries/handle_pool.h":
    cdef struct PooledHandle:
        void* handle
        uint64_t stream
        uint64_t workspace
        int math
        int is_bound
    PooledHandle* thread_handle(int index) noexcept nogil
    void handle_pool_after_fork() noexcept nogil

cdef extern from *:
    """
    #include <mutex>
    #include <new>
    static std::mutex lt_handle_mutex;
    static inline void lt_handle_lock(void) { lt_handle_mutex.lock(); }
    static inline void lt_handle_unlock(void) { lt_handle_mutex.unlock(); }
    static inline void lt_handle_renew(void) { new (&lt_handle_mutex) std::mutex; }
    """
    void lt_handle_lock() noexcept nogil
    void lt_handle_unlock() noexcept nogil
    void lt_handle_renew() noexcept nogil

# This room's slot of each open device (registry.pxd).
cdef struct LibrariesSlot:
    size_t workspace_nbytes     # 0: not configured yet
    void* lt_handle             # NULL: not made yet

cdef LtTable* lt = NULL
cdef CublasTable* cublas = NULL


cdef inline LibrariesSlot* libraries_of(int device) noexcept nogil:
    return <LibrariesSlot*>device_slot(device, libraries_slot)


cdef int load_libraries(bint with_cublas) except -1:
    global lt, cublas
    if lt is NULL:
        lt = lt_table()
    if with_cublas and cublas is NULL:
        cublas = cublas_table()
    return 0


cdef void* lt_handle(int device, int* status) noexcept nogil:
    cdef void** cell = &libraries_of(device).lt_handle
    cdef void* handle = gt_load(cell)
    status[0] = BLAS_OK
    if handle is not NULL:
        return handle
    lt_handle_lock()
    handle = gt_load(cell)
    if handle is NULL:
        status[0] = lt.create(&handle)
        if status[0] == BLAS_OK:
            gt_store(cell, handle)
        else:
            handle = NULL
    lt_handle_unlock()
    return handle


cdef CublasHandle* cublas_handle(int device, uint64_t stream, uint64_t workspace, size_t nbytes,
                                 int math, int* status) noexcept nogil:
    cdef PooledHandle* own = thread_handle(device + HOST_DEVICES)
    status[0] = BLAS_OK
    if own.handle is NULL:
        status[0] = cublas.create(&own.handle)
        if status[0] != BLAS_OK:
            own.handle = NULL
            return NULL
        own.is_bound = 0
        own.math = 0
    if not own.is_bound or own.stream != stream or own.workspace != workspace:
        own.is_bound = 0
        status[0] = cublas.set_stream(own.handle, <void*>stream)
        if status[0] == BLAS_OK and nbytes:
            status[0] = cublas.set_workspace(own.handle, <void*>workspace, nbytes)
        if status[0] != BLAS_OK:
            return NULL
        own.stream = stream
        own.workspace = workspace
        own.is_bound = 1
    if own.math != math:
        status[0] = cublas.set_math(own.handle, math)
        if status[0] != BLAS_OK:
            return NULL
        own.math = math
    return <CublasHandle*>own
