"""Launches of this room's kernels, and their scratch memory."""

cdef extern from "gputensor/_kernels/cuda/orders/orders.h" namespace "gputensor" nogil:
    cdef struct SortParameters:
        uint64_t input
        uint64_t values
        uint64_t order
        int64_t rows
        int64_t columns
        int64_t width
        int64_t is_descending

    cdef struct RadixParameters:
        uint64_t input
        uint64_t out
        uint64_t result
        uint64_t places
        uint64_t next_places
        uint64_t counts
        uint64_t words
        uint64_t counter
        int64_t rows
        int64_t columns
        int64_t tiles
        int64_t number "pass"
        int64_t is_descending

    cdef struct SearchParameters:
        uint64_t sorted
        uint64_t wanted
        uint64_t out
        int64_t columns
        int64_t count
        int64_t is_right

    cdef struct CountParameters:
        uint64_t input
        uint64_t edges
        uint64_t counts
        int64_t count
        int64_t length

    cdef struct ScanParameters:
        uint64_t input
        uint64_t out
        uint64_t totals
        uint64_t words
        uint64_t counter
        int64_t outer
        int64_t length
        int64_t inner
        int64_t chunks
        int64_t chunk

    cdef struct MarkParameters:
        uint64_t input
        uint64_t bits
        uint64_t starts
        uint64_t words
        uint64_t counter
        int64_t count
        int64_t tiles

    cdef struct SeenParameters:
        uint64_t input
        uint64_t least
        uint64_t bits
        int64_t count
        int64_t words

    cdef struct PickParameters:
        uint64_t input
        uint64_t bits
        uint64_t starts
        uint64_t out
        int64_t count
        int64_t total
        int64_t[16] extents

    cdef struct AddParameters:
        uint64_t target
        uint64_t index
        uint64_t source
        int64_t outer
        int64_t length
        int64_t inner
        int64_t count

cdef enum:
    SORT = 0                # the forms of order_programs.py
    RADIX = 1
    TOPK = 2
    SEARCH = 3
    COUNT = 4
    SCAN = 5
    MARK = 6
    PICK = 7
    ADD = 8
    SEEN = 9
    MOST_BLOCKS = 0x7fffffff

cdef KernelTable order_kernels


cdef int launch_order(int form, const int* numbers, int64_t blocks, Launch* launch) except -1:
    """Launch the kernel of a form and five numbers with this number of blocks."""
    cdef int[6] variant
    cdef uint64_t key = form
    cdef int i
    variant[0] = form
    for i in range(5):
        variant[i + 1] = numbers[i]
        key |= <uint64_t>numbers[i] << (4 + 12 * i)
    if blocks > MOST_BLOCKS:
        raise argument_error(ValueError, "blocks", blocks, "fewer than 2**31")
    launch.grid[0] = <uint32_t>blocks
    return launch_kernel(kernel_of(&order_kernels, key, order_program, variant), launch)


cdef object order_program(const void* given):
    cdef const int* variant = <const int*>given
    return order_programs.program(variant[0], variant[1], variant[2], variant[3], variant[4],
                                  variant[5])


cdef Block* scratch(int device, uint64_t stream, size_t nbytes) except NULL:
    cdef status_t status = 0
    cdef Block* block = allocator_malloc(device, nbytes, stream, &status)
    if block == NULL:
        raise_for_malloc(device, nbytes, stream, status)
    return block


cdef int clear(int device, uint64_t stream, uint64_t address, size_t nbytes) except -1:
    """Write zeros; `nbytes` is a multiple of 4."""
    cdef Driver* driver = driver_get(device)
    cdef status_t status = driver.fill_async(driver.self, address, 0, 4, nbytes // 4, stream)
    if status != 0:
        raise_for_status(status, "fill_async", f"of {nbytes} bytes on device {device}")
    return 0


cdef int64_t ceil_divide(int64_t a, int64_t b) noexcept nogil:
    return (a + b - 1) // b
