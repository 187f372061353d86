"""Block records: the slab they come from, splitting and joining, and the map from addresses.

The slab is shared by all devices and guarded by its own spin lock, held for a few instructions. It
only grows: a record takes three cache lines, so a million live blocks cost 192 MB at the peak.

The map is a radix tree over 49 address bits in units of 512 bytes. The second level is one range
of lazily backed host memory for each 8 GiB of addresses, so that a lookup is two loads and needs
no lock. Only blocks that callers hold are in it.
"""

cdef extern from "stdlib.h" nogil:
    int posix_memalign(void** pointer, size_t alignment, size_t nbytes)

cdef extern from "sys/mman.h" nogil:
    void* mmap(void* address, size_t nbytes, int protection, int flags, int fd, long offset)
    int PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE
    void* MAP_FAILED

cdef enum:
    SLAB_BLOCKS = 512
    LINE = 64                               # bytes of a cache line
    STRIDE = (sizeof(Block) + 63) // 64 * 64
    REGION_SHIFT = 33                       # 8 GiB of addresses for each second-level table
    REGION_COUNT = 1 << (49 - 33)
    REGION_UNITS = 1 << (33 - 9)

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


cdef void* _new_table(uint64_t region) noexcept nogil:
    cdef SpinHeld held
    held.take(&regions_lock)
    if regions[region] == NULL:
        table = mmap(NULL, REGION_UNITS * sizeof(Block*), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        if table != MAP_FAILED:
            gt_store(&regions[region], table)
    return regions[region]


cdef Block** _cell(uint64_t ptr, bint create) noexcept nogil:
    cdef uint64_t region = ptr >> REGION_SHIFT
    if region >= REGION_COUNT:
        return NULL
    table = gt_load(&regions[region])
    if table == NULL and create:
        table = _new_table(region)
    if table == NULL:
        return NULL
    return (<Block**>table) + ((ptr >> UNIT_SHIFT) & (REGION_UNITS - 1))


cdef bint block_map_insert(Block* block) noexcept nogil:
    cdef Block** cell = _cell(block.ptr, True)
    if cell == NULL:
        return False
    gt_store(cell, block)
    return True


cdef void block_map_remove(uint64_t ptr) noexcept nogil:
    cdef Block** cell = _cell(ptr, False)
    if cell != NULL:
        gt_store(cell, NULL)


cdef Block* block_map_find(uint64_t ptr) noexcept nogil:
    if ptr & ((1 << UNIT_SHIFT) - 1):
        return NULL
    cell = _cell(ptr, False)
    return <Block*>NULL if cell == NULL else gt_load(cell)


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
