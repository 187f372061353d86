# What threads hold outside of the lists while the lock is given up: tiles, pages, views.
# Needs the device lock.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport DeviceAllocator

cdef enum:
    CLIMBS = 32     # of a request at most, while other threads free memory and put it back

# Around what a thread does with the lock given up and something in its hands. They nest.
# `brought`: whether anything comes back that others could use, or that the limit counted.
cdef void hands_fill(DeviceAllocator* a) noexcept nogil
cdef void hands_empty(DeviceAllocator* a, bint brought=*) noexcept nogil
# What lay apart is in the lists now. This thread looks at them again by itself.
cdef void hands_brought(DeviceAllocator* a) noexcept nogil
# How often other threads than this one have put back what they held, or brought something.
cdef uint64_t hands_others(DeviceAllocator* a) noexcept nogil
# Waits until another thread puts back what it holds, or frees a block: after `others` and `frees`,
# as they were read before. False when nobody else holds anything, or it lasts too long.
cdef bint hands_wait(DeviceAllocator* a, uint64_t others, uint64_t frees) noexcept nogil
