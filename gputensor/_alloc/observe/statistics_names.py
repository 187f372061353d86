"""The names of the allocator's statistics, and the order in which the core counts them.

The names are PyTorch's (``torch.cuda.memory_stats``). The core keeps one run of 64-bit counters in
the order of :data:`STATISTICS_KEYS`, from ``DeviceAllocator.stats`` on (model.pxd).
"""

STATISTIC_TYPES = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
POOLS = ("all", "large_pool", "small_pool")
FIELDS = ("current", "peak", "allocated", "freed")
OVERSIZE = ("oversize_allocations", "oversize_segments")
SCALARS = (
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
    "max_split_size",
)

STATISTICS_KEYS = (
    tuple(
        f"{stat}.{pool}.{field}" for stat in STATISTIC_TYPES for pool in POOLS for field in FIELDS
    )
    + tuple(f"{stat}.{field}" for stat in OVERSIZE for field in FIELDS)
    + SCALARS
)

# PyTorch returns its statistics sorted by name: the indices of the counters in that order, and
# the names in that order.
SORTED_INDICES = tuple(sorted(range(len(STATISTICS_KEYS)), key=STATISTICS_KEYS.__getitem__))
SORTED_KEYS = tuple(STATISTICS_KEYS[index] for index in SORTED_INDICES)


def statistic_index(stat, pool="all", field="current"):
    """Return the index of one of the nine types in the core's array.

    >>> STATISTICS_KEYS[statistic_index("reserved_bytes", "small_pool", "peak")]
    'reserved_bytes.small_pool.peak'
    """
    return (STATISTIC_TYPES.index(stat) * 3 + POOLS.index(pool)) * 4 + FIELDS.index(field)


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
