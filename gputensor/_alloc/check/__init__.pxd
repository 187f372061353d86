# What other rooms may call of _alloc/check; each section is named after its part.

from libc.stdint cimport int64_t


# ---- tiles

# What the walk over a device's records adds up, and the part of it that follows segments and bins.
# All needs the device lock and stopped caches, and takes neither the GIL nor memory.

cdef extern from "gputensor/_alloc/check/faults.h" nogil:
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
    int64_t cached_count
    int64_t cached_nbytes
    int64_t part_nbytes         # tiles that stand for blocks in views
    int64_t waits               # of the pending blocks
    int64_t unqueued            # pending blocks that wait for no event yet
