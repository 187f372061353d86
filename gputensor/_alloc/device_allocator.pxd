# The allocators of the open devices.

from gputensor._alloc.model cimport DeviceAllocator

# The allocator of a device, or NULL when the device was not used yet.
cdef DeviceAllocator* allocator_find(int device) noexcept nogil
# The same, made at first use (takes the GIL then); NULL when the device cannot be opened.
cdef DeviceAllocator* allocator_open(int device) noexcept nogil
