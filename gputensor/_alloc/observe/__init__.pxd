# What other rooms may call of _alloc/observe; each section is named after its part.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

# ---- snapshot

# The raw records that the core collects under its lock; snapshot.pxi turns them into PyTorch's
# schema without any lock. The core fills two arrays for a device: its segments by rising address,
# and the blocks of all segments in the same order, tiles by rising address
# (segment.n_blocks says how many belong to each).
#
# Python face of the core: collect_segments(device) -> (segments, blocks), NumPy arrays of
# snapshot.SEGMENT_DTYPE and snapshot.BLOCK_DTYPE, which mirror these structs.

cdef enum:
    RECORD_INACTIVE = 0
    RECORD_ALLOCATED = 1
    RECORD_PENDING_FREE = 2      # freed by its owner, waits for a stream

# One segment; of an expandable segment one record for each contiguous mapped range.
cdef struct SegmentRecord:
    uint64_t address
    uint64_t nbytes
    uint64_t stream
    uint64_t pool_id            # private pool; 0: the default pool
    uint32_t stack              # where it was made or grown; 0: unknown
    uint32_t n_blocks
    int32_t device
    uint8_t is_large
    uint8_t is_expandable
    uint8_t reserved[2]

cdef struct BlockRecord:
    uint64_t address
    uint64_t nbytes
    uint64_t requested          # 0 for an inactive block
    uint32_t stack              # where it was allocated; 0: unknown
    uint8_t state               # RECORD_*
    uint8_t reserved[3]
