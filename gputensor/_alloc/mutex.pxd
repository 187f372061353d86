# The device lock. Held for hundreds of nanoseconds; never over a call that maps, allocates or
# waits.

from gputensor._alloc.model cimport DeviceAllocator, pthread_mutex_t

cdef extern from "pthread.h" nogil:
    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)


cdef inline void device_lock(DeviceAllocator* a) noexcept nogil:
    pthread_mutex_lock(&a.lock)


cdef inline void device_unlock(DeviceAllocator* a) noexcept nogil:
    pthread_mutex_unlock(&a.lock)
