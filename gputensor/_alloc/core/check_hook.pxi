"""The hook that a debug build calls after each change of an allocator's records.

A build with GPUTENSOR_BUILD_DEBUG=1 defines GPUTENSOR_CHECK. The rooms that change the records know
only this file; the checker, which knows them all, registers itself here when it is imported. Its
own lock lets one check run at a time; it is taken with no other lock held but that of an ending
thread (thread_cache.pxi), and the device lock is taken under it.
"""

cdef extern from *:
    """
    #include <pthread.h>
    #include <stdint.h>
    static pthread_mutex_t gt_check_mutex = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t gt_check_changes = 0;
    static inline void gt_check_lock(void) { pthread_mutex_lock(&gt_check_mutex); }
    static inline void gt_check_unlock(void) { pthread_mutex_unlock(&gt_check_mutex); }
    static inline void gt_check_renew(void) { pthread_mutex_init(&gt_check_mutex, NULL); }
    static inline uint64_t gt_check_count(void) {
        return __atomic_add_fetch(&gt_check_changes, 1, __ATOMIC_RELAXED);
    }
    """
    void gt_check_lock() nogil
    void gt_check_unlock() nogil
    void gt_check_renew() nogil
    uint64_t gt_check_count() nogil

# Written under the check lock, by the checker's import.
cdef check_function _function = NULL
cdef uint64_t _every = 1

IS_CHECKED = bool(GT_IS_CHECKED)


cdef void check_install(check_function function, uint64_t every) noexcept nogil:
    global _function, _every
    gt_check_lock()
    _function = function
    _every = every
    gt_check_unlock()


cdef void check_run(int device, const char* change) noexcept nogil:
    cdef uint64_t number = gt_check_count()
    gt_check_lock()
    if _function != NULL and number % _every == 0:
        _function(device, change)
    gt_check_unlock()


cdef void checks_stop() noexcept nogil:
    gt_check_lock()


cdef void checks_resume() noexcept nogil:
    gt_check_unlock()
