"""The statistics of a device, and of pinned memory, under their names.

The core's accumulated counters only grow. Resetting them stores a baseline, which is subtracted
here, so that it costs the core nothing.
"""

from operator import itemgetter

from gputensor._alloc import observe as report
from gputensor._alloc.history.pool_names import pool_pair
from gputensor._alloc.observe.statistics_names import (
    FIELDS,
    PINNED,
    PINNED_CALLS,
    POOLS,
    SORTED_INDICES,
    SORTED_KEYS,
)
from gputensor._alloc.pinned import pinned_devices

__all__ = ["flat_statistics", "pinned_statistics", "reset_accumulated", "reset_accumulated_pinned"]

_accumulated = tuple(
    key.endswith((".allocated", ".freed")) or key.startswith("num_") for key in SORTED_KEYS
)
_in_order = itemgetter(*SORTED_INDICES)
_private_names = tuple(f"{pool}.{field}" for pool in POOLS for field in FIELDS)


# By device and its generation: a dict from a pool's number, "device" and "pinned" to the values to
# subtract since the last reset, in sorted order; for a private pool in the order of the names.
_resets: dict[tuple[int, int], dict] = {}


def _baselines(device):
    return _resets.get((device, report.generation_of(device)), {})


def _keep(device, baselines):
    for key in [key for key in _resets if key[0] == device]:
        del _resets[key]
    _resets[device, report.generation_of(device)] = baselines


def _grown(values):
    return tuple(value if grows else 0 for value, grows in zip(values, _accumulated, strict=True))


def _named(values, baseline):
    if baseline is not None:
        values = map(int.__sub__, values, baseline)
    return dict(zip(SORTED_KEYS, values, strict=True))


def flat_statistics(device):
    """Return the statistics of a device number as a dict sorted by name, all of one moment.

    >>> list(flat_statistics(-1))[:2]
    ['active.all.allocated', 'active.all.current']
    """
    counters, private = report.all_values(device)
    baselines = _baselines(device)
    statistics = _named(_in_order(counters), baselines.get("device"))
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
    """Restart the counters that only grow: allocated, freed, and the numbers of events."""
    counters, private = report.all_values(device)
    baselines = {
        pool_id: tuple(value if i % 4 >= 2 else 0 for i, value in enumerate(values))
        for pool_id, values in private.items()
    }
    pinned = _baselines(device).get("pinned")
    _keep(device, {**baselines, "device": _grown(_in_order(counters)), "pinned": pinned})


def pinned_statistics(device=None):
    """Return the statistics of pinned memory, of one device or summed over all, sorted by name.

    A peak of the sum is the sum of the devices' peaks.
    """
    statistics = {f"{name}.{field}": 0 for name in PINNED for field in FIELDS}
    calls = {name: [] for name in PINNED_CALLS}
    for number in pinned_devices(device):
        counters, times = report.pinned_values(number)
        named = _named(_in_order(counters), _baselines(number).get("pinned"))
        for name, counted in PINNED.items():
            for field in FIELDS:
                statistics[f"{name}.{field}"] += named[f"{counted}.{field}"]
        for made, time in zip(calls.values(), times, strict=False):
            made += [time] if time["count"] else []
    for name, made in calls.items():
        count = statistics[PINNED_CALLS[name]] = sum(time["count"] for time in made)
        total = sum(time["total"] for time in made)
        statistics |= {
            f"{name}.count": count,
            f"{name}.total": total,
            f"{name}.avg": total // max(count, 1),
            f"{name}.max": max((time["max"] for time in made), default=0),
            f"{name}.min": min((time["min"] for time in made), default=0),
        }
    return dict(sorted(statistics.items()))


def reset_accumulated_pinned():
    """Restart the counters that only grow, for the pinned memory of all devices."""
    for number in pinned_devices():
        counters, _ = report.pinned_values(number, reset_times=True)
        grown = _grown(_in_order(counters))
        _keep(number, {**_baselines(number), "pinned": grown})
