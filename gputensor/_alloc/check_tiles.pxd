# What the walk over a device's records adds up, and the part of it that follows segments and bins.
# All needs the device lock and stopped caches, and takes neither the GIL nor memory.

from libc.stdint cimport int64_t

from gputensor._alloc.model cimport Block, DeviceAllocator

cdef extern from "gputensor/_alloc/faults.h" nogil:
    enum:
        GT_FAULTS
    ctypedef struct gt_faults:
        int count
        char[24][224] texts
    void gt_fault(gt_faults* faults, const char* format, ...)
    void gt_faults_abort(const gt_faults* faults, int device, const char* change)

cdef struct Walk:               # arrays are by PoolKind
    gt_faults* faults
    int64_t[2] mapped           # bytes; of blocks that bypass the pools as well
    int64_t[2] segments         # memory of one driver call each
    int64_t[2] given_count      # blocks in callers' hands
    int64_t[2] given_nbytes
    int64_t[2] given_requested
    int64_t[2] pending_count    # blocks that wait for other streams
    int64_t[2] pending_nbytes
    int64_t[2] split_count      # free blocks that share a plain segment
    int64_t[2] split_nbytes
    int64_t oversize_count      # blocks and segments that say that they count as oversize
    int64_t oversize_segments
    int64_t parked_count
    int64_t parked_nbytes
    int64_t part_nbytes         # tiles that stand for blocks in views
    int64_t waits               # of the pending blocks
    int64_t unqueued            # pending blocks that wait for no event yet

# Adds a block that is not free to the sums; a part of a view's block is none.
cdef void block_count(Walk* walk, Block* block) noexcept nogil
# Pools, segments, tiles, pages, holes and bins: invariants 1 to 5 of DESIGN.md.
cdef void tiles_check(DeviceAllocator* a, Walk* walk) noexcept nogil
# Says of two figures that should be one that they are not.
cdef void figures_check(Walk* walk, const char* what, int64_t walked,
                        int64_t counted) noexcept nogil
