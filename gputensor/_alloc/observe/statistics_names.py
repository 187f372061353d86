"""The table of statistics: their names, the order in which the core counts them, their labels.

The names are PyTorch's (``torch.cuda.memory_stats``). The core keeps one run of 64-bit counters in
the order of :data:`STATISTICS_KEYS`, from ``DeviceAllocator.stats`` on (model.pxd), for device
memory and for pinned memory alike. A label names the row of a statistic in the summary; None: no
row.
"""

TYPES = {
    "allocation": "blocks allocated",
    "active": "blocks active",
    "segment": "segments reserved",
    "inactive_split": "free blocks, split",
    "allocated_bytes": "allocated",
    "active_bytes": "active",
    "requested_bytes": "requested",
    "reserved_bytes": "reserved",
    "inactive_split_bytes": "free, split",
}
POOLS = {"all": "", "large_pool": "  large", "small_pool": "  small"}
FIELDS = {"current": "now", "peak": "peak", "allocated": "total in", "freed": "total out"}
OVERSIZE = {
    "oversize_allocations": "oversize blocks",
    "oversize_segments": "oversize segments",
}
SCALARS = {
    "num_ooms": "out of memory",
    "num_alloc_retries": "retries",
    "num_sync_all_streams": None,
    "num_device_alloc": "made",
    "num_device_free": "freed",
    "num_oom_rejections": None,
    "max_split_size": None,
}
# The sources of the statistics of pinned memory: PyTorch has other names for them.
PINNED = {
    "allocations": "segment.all",
    "allocated_bytes": "reserved_bytes.all",
    "active_requests": "active.all",
    "active_bytes": "active_bytes.all",
}
# The times of a driver call for pinned memory, and its count.
PINNED_CALLS = {"host_alloc_time": "num_host_alloc", "host_free_time": "num_host_free"}

STATISTICS_KEYS = (
    *(f"{stat}.{pool}.{field}" for stat in TYPES for pool in POOLS for field in FIELDS),
    *(f"{stat}.{field}" for stat in OVERSIZE for field in FIELDS),
    *SCALARS,
)

# PyTorch returns its statistics sorted by name: the indices of the counters in that order, and
# the names in that order.
SORTED_INDICES = tuple(sorted(range(len(STATISTICS_KEYS)), key=STATISTICS_KEYS.__getitem__))
SORTED_KEYS = tuple(STATISTICS_KEYS[index] for index in SORTED_INDICES)


def nest(flat):
    """Return the nested form of a flat dict of statistics (split at the dots).

    >>> nest({"segment.all.current": 2, "num_ooms": 0})
    {'segment': {'all': {'current': 2}}, 'num_ooms': 0}
    """
    nested = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        level = nested
        for part in path:
            level = level.setdefault(part, {})
        level[last] = value
    return nested
