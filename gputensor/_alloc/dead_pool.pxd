# Private pools that nobody holds any more: what they have left goes where it is of use.
# Called with the device lock.

from gputensor._alloc.model cimport DeviceAllocator, PrivatePool

# Whether a pool has neither a holder nor a scope.
cdef bint pool_is_dead(PrivatePool* pool) noexcept nogil
# Frees the record of a dead pool that has no memory and no address space left. No driver call.
cdef void dead_pool_drop(DeviceAllocator* a, PrivatePool* pool) noexcept nogil
# What the device is done with goes from all dead pools to the page pool, plain segments to the
# default pool, and address space to the driver. Gives the lock up. Not for use during a capture.
cdef void dead_pools_settle(DeviceAllocator* a) noexcept nogil
