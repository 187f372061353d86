"""What happened and what there is: history, snapshots, and observers of failures.

Snapshots have PyTorch's schema, so that its viewers read them.
"""

from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import history
from gputensor._alloc import observe as _snapshot
from gputensor._alloc import observe as report
from gputensor._alloc.allocator import open_devices
from gputensor._alloc.explain import out_of_memory
from gputensor._alloc.observe import call_sites as _call_sites
from gputensor._alloc.observe import collect_pinned
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


def snapshot(device=None, include_traces=True):
    """Return the state of the allocator in PyTorch's schema, of one device or of all in use.

    The allocator's lock is held while raw records are copied, not while they are formatted.

    Returns
    -------
    dict
        ``segments`` (by address, each with its ``blocks``; the one at address 0 is the page pool,
        which is held and mapped nowhere), ``device_traces`` (the events of
        :func:`record_memory_history`, a list for each device), ``allocator_settings``,
        ``external_annotations``, ``host_segments`` and ``host_traces`` (the same of the devices'
        pinned host memory: its segments, and its events in a list for each device), and
        ``devices``, which names the devices that the numbers in it stand for: CUDA devices by their
        ordinal, host devices after them.

    Examples
    --------
    >>> sorted(snapshot("host"))[:3]
    ['allocator_settings', 'device_traces', 'devices']
    """
    return _snapshot.format_snapshot(
        _open_numbers(device), _collect, include_traces, collect_pinned
    )


def dump_snapshot(path="dump_snapshot.pickle", device=None):
    """Write :func:`snapshot` to a file that PyTorch's ``_memory_viz.py`` and web viewer read.

    The file is replaced atomically; the old content of `path` stays until then. A pipe or a device
    is written into, and a symbolic link stays.
    """
    _snapshot.write_pickle(snapshot(device), path)


def memory_snapshot(mempool_id=None, include_traces=True, device=None):
    """Return the segments of :func:`snapshot`, of all pools or of one.

    Parameters
    ----------
    mempool_id : tuple of two int, optional
        The ``id`` of a :class:`MemPool` or of a graph's pool.
    include_traces : bool
        Accepted for PyTorch's callers; segments carry no events.
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


def where_allocated(ptr):
    """Return the Python frames that allocated an address, innermost first.

    Parameters
    ----------
    ptr : int
        The first address of an allocation in use.

    Returns
    -------
    list of dict
        ``filename``, ``line``, ``name``; empty when the history did not record stacks then.
    """
    return raw_memory.raw_traceback(ptr)


def top_call_sites(device=None, count=5):
    """Return the lines of the program that hold most memory of a device, largest first.

    Counts blocks allocated while :func:`record_memory_history` captured stacks.

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
        the innermost line outside of this library.

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
        raise argument_error(ValueError, "count", count, "an integer from 1")
    return _call_sites.top_call_sites(device_number(device), count)


def attach_out_of_memory_observer(observer):
    """Call ``observer(device, alloc_size, device_total_or_limit, device_free)`` at each failure.

    It is called before the OutOfMemoryError is raised, with no lock held; it may free memory,
    allocate, or take a snapshot. All are ints: the device's number and bytes. When it raises, the
    OutOfMemoryError is still raised, mentions the exception, and has it as its context; requests
    of its own that fail are not observed.
    """
    out_of_memory.attach_observer(observer)


def attach_allocator_tracker(tracker):
    """Call ``tracker(device, entry)`` for each event of the history.

    Those are what :func:`record_memory_history` records. `entry` is a dict as in the
    ``device_traces`` of a :func:`snapshot`. The tracker is called with no lock held, by the main
    thread soon after the event; ``gputensor.device.deliver()`` does it at once.

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


def detach_allocator_tracker(tracker):
    """Remove a tracker after it received the events so far; ``ValueError`` for another one."""
    history.detach_tracker(tracker)


def detach_out_of_memory_observer(observer):
    """Forget an observer that was attached; ``ValueError`` when it was not."""
    out_of_memory.detach_observer(observer)
