"""Device memory and the blocks of private pools by address: the core's C functions for Python code.

An address is given back once, by :func:`raw_delete` or by a C caller, and only when it was given
out as an address: a tensor's memory goes with the tensor.
"""

cdef object _address(object ptr, str name="mem_ptr"):
    try:
        return index(ptr)
    except TypeError:
        raise TypeError(f"{name}: got {type(ptr).__name__}; expected an integer") from None


# The block in use that begins at an address, or NULL.
cdef Block* _find(object number) except? NULL:
    return block_in_use(number) if 0 <= number < 1 << 64 else NULL


cdef Block* _raw_memory_held(object ptr, str name="mem_ptr") except NULL:
    cdef object number = _address(ptr, name)
    cdef Block* block = _find(number)
    if block == NULL:
        raise ValueError(f"{name}: got {number:#x}; expected the address of an allocation in use")
    return block


def raw_alloc(int device, nbytes, uint64_t stream):
    """Allocate and return the address; 0 for 0 bytes."""
    cdef status_t status = 0
    cdef Block* block
    if nbytes == 0:
        return 0
    block = allocator_malloc(device, min(nbytes, 1 << 62), stream, &status)     # fits no device
    if block == NULL:
        explain_failure(device, nbytes, stream, status)
    gt_store(&block.is_by_address, 1)
    return block.ptr


def raw_delete(ptr):
    """Free memory that :func:`raw_alloc` returned. Raises ``ValueError`` for any other address."""
    cdef object number = _address(ptr)
    cdef Block* block
    if number == 0:
        return
    block = _find(number)
    if block == NULL or not gt_clear_byte(&block.is_by_address):
        raise ValueError(f"mem_ptr: got {number:#x}; expected an address that "
                         "caching_allocator_alloc returned and that was not given back since")
    allocator_free(block)


def raw_record_stream(ptr, uint64_t stream):
    """Record that work queued on `stream` uses the allocation at an address."""
    raise_for_status(allocator_record_stream(_raw_memory_held(ptr), stream), "record_stream")


def raw_traceback(ptr):
    """Return the frames that allocated an address, innermost first; empty when not recorded."""
    return StackFormatter().frames(_raw_memory_held(ptr, "ptr").stack)


def uncached_block(int device, uint64_t address):
    """Return (address, requested bytes) of the uncached block that holds an address, or None.

    Blocks are searched from the newest on.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Block* block
    cdef uint64_t start = 0, nbytes = 0
    if a == NULL:
        return None
    with nogil:
        device_lock(a)
        for block in each(a.uncached):
            if block.ptr <= address < block.ptr + block.nbytes:
                start, nbytes = block.ptr, block.requested
                break
        device_unlock(a)
    return (start, nbytes) if start else None


def device_memory(int device):
    """Return (free, total) bytes of a device, as its driver reports them. Opens the device."""
    cdef Driver* driver = driver_open(device)
    cdef size_t free_nbytes = 0, total_nbytes = 0
    cdef status_t status
    with nogil:
        status = driver.mem_info(driver.self, &free_nbytes, &total_nbytes)
    raise_for_status(status, "mem_info")
    return free_nbytes, total_nbytes


def new_pool_id():
    """Return a number that no private pool had before."""
    return pool_new_id()


def count_pool_uses(int device, uint64_t pool_id):
    """Return how many holders a pool has."""
    return pool_use_count(device, pool_id)


def live_blocks(int device, uint64_t pool_id):
    """Return (address, requested bytes, stream) of each block in use of a private pool."""
    cdef vector[LiveBlock] found
    cdef LiveBlock live
    pool_live(device, pool_id, &found)
    return [(live.ptr, live.requested, live.stream) for live in found]


def take_at(int device, uint64_t pool_id, uint64_t ptr, size_t nbytes, uint64_t stream):
    """Take the block at an address of a private pool into use again; return whether it was free."""
    cdef Block* block = pool_take_at(device, pool_id, ptr, nbytes, stream)
    if block == NULL:
        return False
    gt_store(&block.is_by_address, 1)
    return True
