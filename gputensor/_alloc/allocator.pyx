# distutils: language = c++
"""Temporary bring-up form: one driver allocation for each block (being replaced)."""
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc

from gputensor._alloc.block cimport Block
from gputensor._driver.registry cimport driver_get
from gputensor._driver.table cimport Driver, status_t

from gputensor.errors import OutOfMemoryError


cdef Block* allocator_malloc(int device, size_t nbytes, uint64_t stream,
                             status_t* status) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef Block* block = <Block*>malloc(sizeof(Block))
    block.nbytes = (nbytes + 511) // 512 * 512
    block.requested = nbytes
    block.stream = stream
    block.device = device
    status[0] = driver.mem_alloc(driver.self, &block.ptr, block.nbytes)
    if status[0]:
        free(block)
        return NULL
    return block


cdef void allocator_free(Block* block) noexcept nogil:
    cdef Driver* driver = driver_get(block.device)
    driver.synchronize(driver.self)
    driver.mem_free(driver.self, block.ptr)
    free(block)


cdef status_t allocator_record_stream(Block* block, uint64_t stream) noexcept nogil:
    return 0


cdef int raise_for_malloc(int device, size_t nbytes, uint64_t stream,
                          status_t status) except -1:
    raise OutOfMemoryError(f"out of memory: {nbytes} bytes")
