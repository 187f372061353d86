# The order of the core's counters; the same numbers as statistics_names.py (a test compares them).
#   counters[(stat * 3 + pool) * 4 + field]

cdef enum:
    STAT_ALLOCATION = 0
    STAT_SEGMENT = 1
    STAT_ACTIVE = 2
    STAT_INACTIVE_SPLIT = 3
    STAT_ALLOCATED_BYTES = 4
    STAT_RESERVED_BYTES = 5
    STAT_ACTIVE_BYTES = 6
    STAT_INACTIVE_SPLIT_BYTES = 7
    STAT_REQUESTED_BYTES = 8
    STAT_TYPES = 9

cdef enum:
    POOL_ALL = 0
    POOL_LARGE = 1
    POOL_SMALL = 2

cdef enum:
    FIELD_CURRENT = 0
    FIELD_PEAK = 1
    FIELD_ALLOCATED = 2
    FIELD_FREED = 3

cdef enum:
    STAT_OVERSIZE_ALLOCATIONS = 108     # four fields
    STAT_OVERSIZE_SEGMENTS = 112        # four fields
    STAT_NUM_ALLOC_RETRIES = 116
    STAT_NUM_OOMS = 117
    STAT_NUM_SYNC_ALL_STREAMS = 118
    STAT_NUM_DEVICE_ALLOC = 119
    STAT_NUM_DEVICE_FREE = 120
    STAT_NUM_OOM_REJECTIONS = 121
    STAT_MAX_SPLIT_SIZE = 122           # -1: no limit
    STAT_COUNT = 123
