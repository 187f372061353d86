"""Block records: the slab they come from, splitting and joining, and the map from addresses.

The slab is shared by all devices and guarded by its own spin lock, held for a few instructions. It
only grows: a record takes three cache lines, so a million live blocks cost 192 MB at the peak.

The map is a radix tree over 49 address bits. The second level is lazily backed host memory for each
8 GiB of addresses, so that a lookup is two to four loads and needs no lock. It has a cell for each
unit, and for each WINDOW bytes one for the block of at least that size that begins there: with
cells of units alone each large block would touch a page of host memory. A cell holds the record
and, above the bits of its address, the unit of the window. Only blocks of callers are in the map.
"""

cdef extern from "stdlib.h" nogil:
    int posix_memalign(void** pointer, size_t alignment, size_t nbytes)

cdef extern from "sys/mman.h" nogil:
    void* mmap(void* address, size_t nbytes, int protection, int flags, int fd, long offset)
    int munmap(void* address, size_t nbytes)
    int PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE
    void* MAP_FAILED

cdef enum:
    SLAB_BLOCKS = 512
    LINE = 64                               # bytes of a cache line
    STRIDE = (sizeof(Block) + 63) // 64 * 64
    REGION = 0x200000000                    # 8 GiB of addresses for each second-level table
    REGION_COUNT = 1 << (49 - 33)
    REGION_UNITS = 1 << (33 - 9)
    WINDOW = 512 * UNIT                     # cells of its units: a page of host memory
    RECORD_BITS = 48

cdef int32_t slab_lock = 0
cdef Block* slab_free = NULL
cdef void* regions[65536]
cdef int32_t regions_lock = 0


cdef Block* block_new() noexcept nogil:
    cdef void* slab
    cdef SpinHeld held
    cdef int i
    held.take(&slab_lock)
    if slab_free == NULL:
        if posix_memalign(&slab, LINE, SLAB_BLOCKS * STRIDE):
            return NULL
        for i in range(SLAB_BLOCKS):
            chain_push(&slab_free, <Block*>(<char*>slab + i * STRIDE))
    block = chain_pop(&slab_free)
    memset(block, 0, sizeof(Block))
    return block


cdef void block_drop(Block* block) noexcept nogil:
    cdef SpinHeld held
    if block == NULL:
        return
    held.take(&slab_lock)
    chain_push(&slab_free, block)


cdef Block* block_split(Block* block, size_t nbytes) noexcept nogil:
    cdef Block* tail = block_new()
    return <Block*>NULL if tail == NULL else block_cut(block, nbytes, tail)


cdef Block* block_cut(Block* block, size_t nbytes, Block* tail) noexcept nogil:
    tail.ptr = block.ptr + nbytes
    tail.nbytes = block.nbytes - nbytes
    tail.stream = block.stream
    tail.device = block.device
    tail.state = block.state
    tail.kind = block.kind
    tail.segment = block.segment
    tail.pool = block.pool
    tail.epoch = block.epoch
    tail.previous = block
    tail.next = block.next
    if tail.next != NULL:
        tail.next.previous = tail
    block.next = tail
    block.nbytes = nbytes
    return tail


cdef void block_join_next(Block* block) noexcept nogil:
    cdef Block* tail = block.next
    block.nbytes += tail.nbytes
    if tail.epoch > block.epoch:
        block.epoch = tail.epoch
    block.next = tail.next
    if block.next != NULL:
        block.next.previous = block
    block_drop(tail)


cdef void* lazy_new(size_t nbytes) noexcept nogil:
    memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    return <void*>NULL if memory == MAP_FAILED else memory


cdef void* _new_table(uint64_t region) noexcept nogil:
    cdef SpinHeld held
    held.take(&regions_lock)
    if regions[region] == NULL:
        gt_store(&regions[region], lazy_new((REGION_UNITS + REGION // WINDOW) * sizeof(Block*)))
    return regions[region]


# The cells for an address; NULL: none were made.
cdef inline Block** _table(uint64_t ptr, bint create) noexcept nogil:
    cdef uint64_t region = ptr // REGION
    if region >= REGION_COUNT:
        return NULL
    table = gt_load(&regions[region])
    return <Block**>(_new_table(region) if table == NULL and create else table)


cdef inline Block** _cell(Block** table, uint64_t ptr, bint is_large) noexcept nogil:
    ptr %= REGION
    return table + (REGION_UNITS + ptr // WINDOW if is_large else ptr // UNIT)


# The bits above a record in the cell of a block at `ptr`.
cdef inline uint64_t _mark(uint64_t ptr) noexcept nogil:
    return ptr % WINDOW // UNIT << RECORD_BITS


# The record in a cell, if it is of a block at `ptr`.
cdef inline Block* _record(Block** cell, uint64_t ptr) noexcept nogil:
    cdef uint64_t record = <uint64_t>gt_load(cell) ^ _mark(ptr)
    return <Block*>(record if record >> RECORD_BITS == 0 else 0)


cdef bint block_map_insert(Block* block) noexcept nogil:
    cdef bint is_large = block.nbytes >= WINDOW
    cdef Block** table = _table(block.ptr, True)
    if table == NULL:
        return False
    if not is_large and _record(_cell(table, block.ptr, True), block.ptr) != NULL:
        gt_store(_cell(table, block.ptr, True), NULL)   # its device was closed while it was in use
    gt_store(_cell(table, block.ptr, is_large), <Block*>(<uint64_t>block | _mark(block.ptr)))
    return True


cdef void block_map_remove(Block* block) noexcept nogil:
    cdef Block** table = _table(block.ptr, False)
    if table != NULL:               # in the child of a fork it may be
        gt_store(_cell(table, block.ptr, block.nbytes >= WINDOW), NULL)


cdef Block* block_map_find(uint64_t ptr) noexcept nogil:
    table = _table(ptr, False)
    if table == NULL or ptr % UNIT:
        return NULL
    block = _record(_cell(table, ptr, True), ptr)
    return _record(_cell(table, ptr, False), ptr) if block == NULL else block


# In the child of a fork: blocks of the parent are found no more, and its free records are left.
cdef void block_fork() noexcept nogil:
    global slab_free
    cdef int region
    slab_free = NULL
    for region in range(REGION_COUNT):
        if regions[region] != NULL:
            regions[region] = NULL
    gt_spin_unlock(&slab_lock)
    gt_spin_unlock(&regions_lock)
