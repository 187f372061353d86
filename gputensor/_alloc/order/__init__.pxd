# The functions of _alloc/order for other rooms. All need the device lock; those whose names begin
# with `pending_` call the driver, and drop it meanwhile.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator, View
from gputensor._driver.table cimport status_t

# A block that no work uses goes back to its pool, or its home tiles if it lies in a view.
cdef void block_return(DeviceAllocator* a, Block* block) noexcept nogil
# Sets the state of the home tiles of a view's block.
cdef void view_show(Block* block, int state) noexcept nogil
# Whether the device can no longer touch a view's addresses.
cdef bint view_is_done(DeviceAllocator* a, View* view) noexcept nogil

# Returns to the pool those blocks that a capture freed and whose uses all come before the next work
# of `stream`; says whether there were any.
cdef bint capture_reuse_collect(DeviceAllocator* a, BlockPool* pool, uint64_t stream) noexcept nogil

cdef status_t use_add(Block* block, uint64_t stream) noexcept nogil
# A block with uses on other streams is freed: it waits for an event on each of them.
cdef void pending_add(DeviceAllocator* a, Block* block) noexcept nogil
# The same for a PENDING block that counts already; it may have no uses.
cdef void pending_begin(DeviceAllocator* a, Block* block) noexcept nogil
# Looks at the oldest event of each stream; blocks that wait for nothing more go to their pool.
cdef void pending_poll(DeviceAllocator* a) noexcept nogil
# Waits for the oldest event there is. False: nothing waits, or the wait failed.
cdef bint pending_wait_one(DeviceAllocator* a) noexcept nogil
# The captures are over: blocks freed during one begin to wait.
cdef void pending_resume(DeviceAllocator* a) noexcept nogil
