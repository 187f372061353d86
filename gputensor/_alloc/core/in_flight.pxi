"""Counts operations in flight: threads that drop the device lock while they own blocks or pages.

A request may fail only because another thread owns tiles or pages for a moment: the accounting has
the memory, but no list does. So a thread that drops the lock in the middle of an operation
registers here, and a request that would fail checks whether another thread has returned memory
meanwhile, or waits for it, before it tries once more. The same holds for memory that reaches the
lists while a request has dropped the lock: blocks that are freed, or that were in a thread's cache
until another request drained it.
"""

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int microseconds)

cdef extern from *:
    """
    // Of this thread, on all devices: operations in flight, and those that returned memory.
    static thread_local int gt_mine_now = 0;
    static thread_local unsigned long long gt_mine_done = 0;
    """
    int gt_mine_now
    unsigned long long gt_mine_done

cdef enum:
    FIRST_WAIT_US = 20
    LONGEST_WAIT_US = 1000
    ALL_WAITS_US = 2000000      # a call of the driver that lasts longer is not worth waiting for


cdef void in_flight_unlock(DeviceAllocator* a) noexcept nogil:
    in_flight_begin(a)
    device_unlock(a)


cdef void in_flight_lock(DeviceAllocator* a, bint returned=True) noexcept nogil:
    device_lock(a)
    in_flight_end(a, returned)


cdef void in_flight_begin(DeviceAllocator* a) noexcept nogil:
    global gt_mine_now
    a.in_flight += 1
    gt_mine_now += 1


cdef void in_flight_end(DeviceAllocator* a, bint returned=True) noexcept nogil:
    global gt_mine_now, gt_mine_done
    a.in_flight -= 1
    a.returns += returned
    gt_mine_now -= 1
    gt_mine_done += returned


cdef uint64_t in_flight_others(DeviceAllocator* a) noexcept nogil:
    return a.returns - gt_mine_done


cdef bint in_flight_wait(DeviceAllocator* a, uint64_t others, uint64_t frees) noexcept nogil:
    cdef unsigned int wait = FIRST_WAIT_US
    cdef unsigned int waited = 0
    while in_flight_others(a) == others and a.frees == frees:
        if a.in_flight <= gt_mine_now or waited >= ALL_WAITS_US:
            return False
        device_unlock(a)
        usleep(wait)
        device_lock(a)
        waited += wait
        wait = wait * 2 if wait < LONGEST_WAIT_US else wait
    return True
