# The functions of _alloc/order for other rooms; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator
from gputensor._driver.table cimport status_t

# ---- capture_reuse

# Blocks freed during a capture that the graph itself gives back. Needs the device lock.

# Returns to the pool those of its blocks whose uses all come before the next work of `stream`; says
# whether there were any.
cdef bint capture_reuse_collect(DeviceAllocator* a, BlockPool* pool,
                                uint64_t stream) noexcept nogil


# ---- deferred_free

# Frees that wait for other streams. All need the device lock; those that call the driver drop it
# meanwhile: all but use_add.

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
