"""The statistics of a device under their names.

The core's counters only grow. A reset of what has accumulated is a baseline, subtracted here,
so that it costs the core nothing.
"""

from operator import itemgetter

from gputensor._alloc import report
from gputensor._alloc.pool_names import pool_pair
from gputensor._alloc.statistics_names import SORTED_INDICES, SORTED_KEYS
from gputensor._driver.registry import before_close

__all__ = ["flat_statistics", "reset_accumulated"]

_accumulated = tuple(
    key.endswith((".allocated", ".freed")) or key.startswith("num_") for key in SORTED_KEYS
)
_in_order = itemgetter(*SORTED_INDICES)
# Device -> what to subtract, in sorted order.
_baselines: dict[int, tuple[int, ...]] = {}


@before_close
def _forget(device):
    _baselines.pop(device, None)


def flat_statistics(device):
    """Return the statistics of a device number as a dict sorted by name, all of one moment.

    >>> list(flat_statistics(-1))[:2]
    ['active.all.allocated', 'active.all.current']
    """
    values = _in_order(report.stats_values(device))
    baseline = _baselines.get(device)
    if baseline is not None:
        values = map(int.__sub__, values, baseline)
    statistics = dict(zip(SORTED_KEYS, values, strict=True))
    private = report.private_pool_bytes(device)
    if not private:
        return statistics
    for pool_id, (large, small) in private.items():
        first, second = pool_pair(pool_id)
        name = f"reserved_bytes_by_private_pools.{first}_{second}"
        statistics[f"{name}.all.current"] = large + small
        statistics[f"{name}.large_pool.current"] = large
        statistics[f"{name}.small_pool.current"] = small
    return dict(sorted(statistics.items()))


def reset_accumulated(device):
    """Count from zero again what only grows: allocated, freed, and the numbers of events."""
    values = _in_order(report.stats_values(device))
    _baselines[device] = tuple(
        value if grows else 0 for value, grows in zip(values, _accumulated, strict=True)
    )
