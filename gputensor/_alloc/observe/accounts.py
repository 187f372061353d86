"""The statistics of a device under their names.

The core's counters only grow. A reset of what has accumulated is a baseline, subtracted here,
so that it costs the core nothing.
"""

from operator import itemgetter

from gputensor._alloc import observe as report
from gputensor._alloc.history.pool_names import pool_pair
from gputensor._alloc.observe.statistics_names import FIELDS, POOLS, SORTED_INDICES, SORTED_KEYS

__all__ = ["flat_statistics", "reset_accumulated"]

_accumulated = tuple(
    key.endswith((".allocated", ".freed")) or key.startswith("num_") for key in SORTED_KEYS
)
_in_order = itemgetter(*SORTED_INDICES)
_private_names = tuple(f"{pool}.{field}" for pool in POOLS for field in FIELDS)
# What a device has never reset. A baseline is what to subtract, in sorted order; and for each
# private pool in the order of the names.
_NO_BASELINE: tuple[None, dict[int, tuple[int, ...]]] = (None, {})


def flat_statistics(device):
    """Return the statistics of a device number as a dict sorted by name, all of one moment.

    >>> list(flat_statistics(-1))[:2]
    ['active.all.allocated', 'active.all.current']
    """
    counters, private = report.all_values(device)
    values = _in_order(counters)
    baseline, baselines = report.kept_for(device) or _NO_BASELINE
    if baseline is not None:
        values = map(int.__sub__, values, baseline)
    statistics = dict(zip(SORTED_KEYS, values, strict=True))
    if not private:
        return statistics
    for pool_id, values in private.items():
        first, second = pool_pair(pool_id)
        name = f"reserved_bytes_by_private_pools.{first}_{second}"
        if pool_id in baselines:
            values = map(int.__sub__, values, baselines[pool_id])
        for part, value in zip(_private_names, values, strict=True):
            statistics[f"{name}.{part}"] = value
    return dict(sorted(statistics.items()))


def reset_accumulated(device):
    """Count from zero again what only grows: allocated, freed, and the numbers of events."""
    counters, private = report.all_values(device)
    baseline = tuple(
        value if grows else 0
        for value, grows in zip(_in_order(counters), _accumulated, strict=True)
    )
    baselines = {
        pool_id: tuple(value if i % 4 >= 2 else 0 for i, value in enumerate(values))
        for pool_id, values in private.items()
    }
    report.keep_for(device, (baseline, baselines))
