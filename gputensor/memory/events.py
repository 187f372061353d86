"""The history of the allocator, snapshots of its state, and observers of failures.

Snapshots have PyTorch's schema, so that its viewers can read them.
"""

from typing import Any

from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import history
from gputensor._alloc import observe as _snapshot
from gputensor._alloc import observe as report
from gputensor._alloc.allocator import open_devices
from gputensor._alloc.explain import out_of_memory
from gputensor._alloc.observe import call_sites as _call_sites
from gputensor._alloc.pinned import pinned_devices
from gputensor.errors import argument_error
from gputensor.streams.queue import device_number

__all__ = [
    "attach_allocator_tracker",
    "attach_out_of_memory_observer",
    "detach_allocator_tracker",
    "detach_out_of_memory_observer",
    "dump_snapshot",
    "get_memory_metadata",
    "memory_snapshot",
    "record_memory_history",
    "set_memory_metadata",
    "snapshot",
    "top_call_sites",
    "where_allocated",
]


def _open_numbers(device):
    if device is not None:
        return [device_number(device)]
    return sorted({*open_devices(), *pinned_devices()})


def _collect(number):
    return report.collect_segments(number, with_page_pool=True)


def snapshot(device=None, include_traces=True) -> dict[str, Any]:
    """Return the state of the allocator in PyTorch's schema, for one device or all open ones.

    The allocator's lock is held while raw records are copied, not while they are formatted.

    Returns
    -------
    dict
        ``segments`` (by address, each with its ``blocks``; the one at address 0 is the page pool,
        whose pages are held but not mapped), ``device_traces`` (the events of
        :func:`record_memory_history`, a list for each device), ``allocator_settings``,
        ``external_annotations``, ``host_segments`` and ``host_traces`` (the segments and events of
        the devices' pinned host memory), and ``devices``, the names of the devices by the numbers
        used here: CUDA devices have their ordinals, host devices the numbers after them.

    Examples
    --------
    >>> sorted(snapshot("host"))[:3]
    ['allocator_settings', 'device_traces', 'devices']
    """
    return _snapshot.format_snapshot(_open_numbers(device), _collect, include_traces)


def dump_snapshot(filename="dump_snapshot.pickle", device=None) -> None:
    """Write :func:`snapshot` to a file that PyTorch's ``_memory_viz.py`` and web viewer read.

    The file is replaced atomically, so `filename` always has either the old or the new content. A
    symbolic link is followed; a pipe or a device is written to.
    """
    _snapshot.write_pickle(snapshot(device), filename)


def memory_snapshot(mempool_id=None, include_traces=True, device=None) -> list[dict[str, Any]]:
    """Return the segments of :func:`snapshot`, from all pools or one.

    Parameters
    ----------
    mempool_id : tuple of two int, optional
        The ``id`` of a :class:`MemPool` or of a graph's pool.
    include_traces : bool
        Accepted for compatibility with PyTorch; segments have no events.
    """
    is_pair = isinstance(mempool_id, (tuple, list)) and len(mempool_id) == 2
    if mempool_id is not None and not is_pair:
        raise argument_error(TypeError, "mempool_id", mempool_id, "None or a pair of integers")
    segments = snapshot(device, include_traces=False)["segments"]
    if mempool_id is None:
        return segments
    return [part for part in segments if part["segment_pool_id"] == tuple(mempool_id)]


record_memory_history = history.record_memory_history
set_memory_metadata = history.set_memory_metadata
get_memory_metadata = history.get_memory_metadata


def where_allocated(ptr) -> list[Any]:
    """Return the Python frames that allocated an address, innermost first.

    Parameters
    ----------
    ptr : int
        The first address of an allocation in use.

    Returns
    -------
    list of dict
        ``filename``, ``line``, ``name``; empty if the history did not record stacks at that time.
    """
    return raw_memory.raw_traceback(ptr)


def top_call_sites(device=None, count=5) -> list[Any]:
    """Return the lines of the program that hold the most memory of a device, largest first.

    Counts the blocks that were allocated while :func:`record_memory_history` recorded stacks.

    Parameters
    ----------
    device : optional
        Default: the current device.
    count : int
        How many lines, from 1.

    Returns
    -------
    list of CallSite
        Tuples of ``nbytes``, ``n_blocks`` and ``place``, such as ``"train.py:7 in step"``:
        the innermost line outside this library.

    Examples
    --------
    >>> record_memory_history()
    >>> ptr = raw_memory.raw_alloc(-1, 4096, 0)
    >>> [(site.nbytes, site.n_blocks) for site in top_call_sites("host", 1)]
    [(4096, 1)]
    >>> raw_memory.raw_delete(ptr)
    >>> record_memory_history(None)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise argument_error(ValueError, "count", count, "an integer, 1 or more")
    return _call_sites.top_call_sites(device_number(device), count)


def attach_out_of_memory_observer(observer) -> None:
    """Call ``observer(device, alloc_size, device_total_or_limit, device_free)`` at each failure.

    The arguments are ints: the device's number, and bytes. It is called before the
    OutOfMemoryError is raised, with no lock held, and may free memory, allocate, or take a
    snapshot. If it raises, the OutOfMemoryError mentions that exception and has it as its context.
    Failures of requests that the observer makes are not observed.
    """
    out_of_memory.attach_observer(observer)


def attach_allocator_tracker(tracker) -> None:
    """Call ``tracker(device, entry)`` for each event that is recorded in the history.

    :func:`record_memory_history` turns recording on. `entry` is a dict as in the
    ``device_traces`` of a :func:`snapshot`. The main thread calls the tracker, with no lock held,
    soon after the event; ``gputensor.device.deliver()`` delivers pending events at once.

    Examples
    --------
    >>> from gputensor import device
    >>> heard = []
    >>> def tracker(number, entry):
    ...     heard.append((entry["action"], entry["size"]))
    >>> record_memory_history()
    >>> attach_allocator_tracker(tracker)
    >>> raw_memory.raw_delete(raw_memory.raw_alloc(-1, 4096, 0))
    >>> detach_allocator_tracker(tracker)
    >>> heard[-1]
    ('free_completed', 4096)
    >>> record_memory_history(None)
    """
    if not callable(tracker):
        raise argument_error(TypeError, "tracker", tracker, "a callable")
    history.attach_tracker(tracker)


def detach_allocator_tracker(tracker) -> None:
    """Remove a tracker after delivering the events so far; ``ValueError`` if it is not attached."""
    try:
        history.detach_tracker(tracker)
    except ValueError:
        raise argument_error(ValueError, "tracker", tracker, "one that is attached") from None


def detach_out_of_memory_observer(observer) -> None:
    """Remove an observer; ``ValueError`` if it is not attached."""
    out_of_memory.detach_observer(observer)
