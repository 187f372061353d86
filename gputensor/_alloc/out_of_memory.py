"""Why a request failed: the class of the reason, in one message with the amounts.

The ladder has been climbed by then (ladder.pyx); this module only explains. Observers are called
here, outside of any lock, before the exception is raised.
"""

from gputensor._alloc import history
from gputensor._alloc.report import memory_facts
from gputensor.errors import DriverError, OutOfMemoryError, status_text

__all__ = ["attach_observer", "detach_observer", "raise_for", "reason_of"]

STATUS_OUT_OF_MEMORY = 2

_observers = []

# What would help, for each class.
ADVICE = {
    "exhausted": "the device is full: use less, or free what is no longer needed",
    "fragmented": "enough is free, but not in one piece: expandable_segments:True (the default) "
    "maps free pages side by side",
    "waiting on streams": "free memory waits for work on other streams: synchronise them, or free "
    "earlier",
    "idle private pool": "private pools hold enough free memory: release graphs or pools that are "
    "no longer used",
    "limit": "a limit is in force: raise per_process_memory_fraction or memory_limit_mb",
    "other processes": "other processes hold the memory that is missing",
}


def attach_observer(function):
    """Call ``function(device, nbytes, limit_or_total, free)`` before each OutOfMemoryError."""
    _observers.append(function)


def detach_observer(function):
    """Forget an observer."""
    _observers.remove(function)


def reason_of(facts):
    """Return the class of a failure from its amounts.

    >>> reason_of(dict(rounded=512, reserved=1024, limit=1024, allocated=1024, pending=0,
    ...                private_idle=0, free=9999, total=99999))
    'limit'
    """
    need = facts["rounded"]
    idle = facts["reserved"] - facts["allocated"] - facts["pending"] - facts["private_idle"]
    if facts["pending"] >= need:
        return "waiting on streams"
    if facts["private_idle"] >= need:
        return "idle private pool"
    if idle >= need:
        return "fragmented"
    if facts["limit"] is not None and facts["reserved"] + need > facts["limit"]:
        return "limit"
    elsewhere = facts["total"] - facts["free"] - facts["reserved"]
    if need <= facts["total"] - facts["reserved"] and elsewhere >= need - facts["free"] > 0:
        return "other processes"
    return "exhausted"


def in_units(nbytes):
    """Return bytes as text.

    >>> in_units(512), in_units(20 * 2**20), in_units(3 * 2**30 // 2)
    ('512 bytes', '20.0 MiB', '1.50 GiB')
    """
    if nbytes < 2**20:
        return f"{nbytes} bytes"
    return f"{nbytes / 2**20:.1f} MiB" if nbytes < 2**30 else f"{nbytes / 2**30:.2f} GiB"


def top_call_sites(device, count=5):
    """Return the ``(bytes, place)`` that hold most, when the history records stacks."""
    from gputensor._alloc import snapshot

    return snapshot.top_call_sites(device, count) if hasattr(snapshot, "top_call_sites") else []


def message_of(device, facts, reason):
    """Return the message of an OutOfMemoryError."""
    limit = f", limit {in_units(facts['limit'])}" if facts["limit"] is not None else ""
    return (
        f"out of memory on device {device}: {in_units(facts['requested'])} requested; "
        f"allocated {in_units(facts['allocated'])}, reserved {in_units(facts['reserved'])}, "
        f"free on the device {in_units(facts['free'])} of {in_units(facts['total'])}{limit}, "
        f"largest free block {in_units(facts['largest_free_block'])}; "
        f"reason: {reason} ({ADVICE[reason]})"
    )


def raise_for(device, nbytes, stream, status):
    """Raise the exception of a request that failed with `status`."""
    if status == 101:
        from gputensor._alloc.device_allocator import open_allocator

        open_allocator(device)  # raises why the device cannot be opened
    if nbytes == 0:
        raise ValueError("an allocation must have at least 1 byte")
    if status != STATUS_OUT_OF_MEMORY:
        raise DriverError(
            f"allocating {nbytes} bytes on device {device} failed: {status_text(status)}",
            "malloc",
            status,
        )
    facts = memory_facts(device, nbytes)
    reason = reason_of(facts)
    history.add_entry(device, "oom", facts["free"], nbytes, stream)
    for observer in list(_observers):
        observer(device, nbytes, facts["limit"] or facts["total"], facts["free"])
    message = message_of(device, facts, reason)
    sites = top_call_sites(device)
    if sites:
        held = "; ".join(f"{place} {in_units(size)}" for size, place in sites)
        message += f"; most is held by {held}"
    raise OutOfMemoryError(message, reason, facts)
