# The limit of reserved memory. What a thread is about to make counts from the moment it was
# allowed, since the books hear of it only after the driver's call. Needs the device lock.

from gputensor._alloc.model cimport STAT_RESERVED_BYTES, DeviceAllocator


# Whether `nbytes` more may be reserved. If so they are claimed, until the call that books them, or
# gives them up, settles the claim. Nothing more is always allowed: the limit may have been lowered.
cdef inline bint limit_claim(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef size_t held = <size_t>a.stats[STAT_RESERVED_BYTES][0].current + a.making_nbytes
    if nbytes > 0 and nbytes + held > a.limit_nbytes:
        return False
    a.making_nbytes += nbytes
    return True


cdef inline void limit_settle(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    a.making_nbytes -= nbytes
