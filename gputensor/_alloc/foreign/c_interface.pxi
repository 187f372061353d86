"""The C symbols for foreign callers; their contract is in c_interface.h.

A free of an address that was not given out as one, or was given back already, does nothing: a
foreign program's double free must take memory neither from its next owner nor from a tensor.
"""

cdef extern from "gputensor/_alloc/foreign/c_interface.h" nogil:
    ctypedef void* (*gt_malloc_function)(size_t, int, void*) noexcept nogil
    ctypedef void (*gt_free_function)(void*, size_t, int, void*) noexcept nogil
    ctypedef int (*gt_record_function)(void*, void*) noexcept nogil
    gt_malloc_function gt_malloc_entry
    gt_free_function gt_free_entry
    gt_record_function gt_record_entry


# The block in use that begins at an address, or NULL.
cdef inline Block* block_in_use(uint64_t ptr) noexcept nogil:
    cdef Block* block = block_map_find(ptr)
    if block == NULL or block.ptr != ptr or gt_load(&block.state) != BLOCK_ALLOCATED:
        return NULL
    return block


cdef void* _malloc(size_t nbytes, int device, void* stream) noexcept nogil:
    cdef status_t status = 0
    if nbytes == 0:
        return NULL
    block = allocator_malloc(device, nbytes, <uint64_t>stream, &status)
    if block == NULL:
        return NULL
    gt_store(&block.is_by_address, 1)
    return <void*>block.ptr


cdef void _free(void* ptr, size_t nbytes, int device, void* stream) noexcept nogil:
    cdef Block* block = block_in_use(<uint64_t>ptr)
    if block == NULL or not gt_clear_byte(&block.is_by_address):
        return
    if <uint64_t>stream != block.stream:
        allocator_record_stream(block, <uint64_t>stream)
    allocator_free(block)


cdef int _record_stream(void* ptr, void* stream) noexcept nogil:
    cdef Block* block = block_in_use(<uint64_t>ptr)
    if block == NULL:
        return STATUS_INVALID_VALUE
    return allocator_record_stream(block, <uint64_t>stream)


gt_malloc_entry = _malloc
gt_free_entry = _free
gt_record_entry = _record_stream


def library_path():
    """Return the path of the shared object that holds the C symbols."""
    return __file__
