"""What threads hold outside of the lists while they work with the lock given up.

A request that fails may fail only because others hold tiles or pages for a moment: the books say
that there is memory, and no list has it. So each thread that gives the lock up with something in
its hands says so, and who would fail looks whether another one put something back meanwhile, or
waits for it, before it climbs the ladder once more. The same holds for what comes to the lists in
other ways while a request has the lock given up: blocks that are freed, or that lay in the cache of
a thread until another one's request emptied it.
"""

cdef extern from "unistd.h" nogil:
    int usleep(unsigned int microseconds)

cdef extern from *:
    """
    // Of this thread, on all devices: what it holds now, and how often it put something back.
    static thread_local int gt_mine_now = 0;
    static thread_local unsigned long long gt_mine_done = 0;
    """
    int gt_mine_now
    unsigned long long gt_mine_done

cdef enum:
    FIRST_WAIT_US = 20
    LONGEST_WAIT_US = 1000
    ALL_WAITS_US = 2000000      # a call of the driver that lasts longer is not worth waiting for


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


# What lay apart is in the lists now. This thread looks at them again by itself.
cdef void in_flight_returned(DeviceAllocator* a) noexcept nogil:
    global gt_mine_done
    a.returns += 1
    gt_mine_done += 1


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
