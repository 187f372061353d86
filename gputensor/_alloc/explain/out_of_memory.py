"""Explains a failed request: the reason, in one paragraph with the amounts.

All steps of the miss (miss.pxi) have failed by then; this module only explains. No lock is held.
It collects everything before it calls observers, since they may free memory or take snapshots;
an exception of an observer does not replace the OutOfMemoryError.
"""

import threading
from collections.abc import Callable

from gputensor._alloc import history
from gputensor._alloc.allocator import open_allocator
from gputensor._alloc.config import fraction_of
from gputensor._alloc.explain.advice import advise
from gputensor._alloc.observe import device_name, failure_facts
from gputensor._alloc.observe.call_sites import top_call_sites
from gputensor.errors import DriverError, OutOfMemoryError, amount, argument_error, status_text

__all__ = ["attach_observer", "detach_observer", "raise_for", "reason_of"]

STATUS_INVALID_DEVICE = 101
STATUS_OUT_OF_MEMORY = 2
# Approximate GPU memory of a process besides its allocations: its context and loaded code.
CONTEXT_NBYTES = 640 << 20

_observers: list[Callable[[int, int, int, int], object]] = []
_thread = threading.local()


def attach_observer(observer):
    """Call ``observer(device, nbytes, limit_or_total, free)`` before each OutOfMemoryError."""
    if not callable(observer):
        raise TypeError(f"observer: got {type(observer).__name__}; expected a function")
    _observers.append(observer)


def detach_observer(observer):
    """Forget an observer."""
    if observer not in _observers:
        raise ValueError(f"observer: got {observer!r}; expected one that is attached")
    _observers.remove(observer)


def held_elsewhere(facts):
    """Return the bytes of the device that are neither free nor this allocator's."""
    return max(facts["total"] - facts["free"] - facts["reserved"] - facts["own_context"], 0)


def room_to_grow(facts):
    """Return the bytes that could still be reserved."""
    if facts["limit"] is None:
        return facts["free"]
    return max(min(facts["free"], facts["limit"] - facts["reserved"]), 0)


def reason_of(facts):
    """Return the class of a failure from its amounts.

    The classes are tested in the order of their cost: free memory in the cache together
    with the memory that could still be reserved; then memory that waits for streams; then free
    memory of private pools; then memory beyond the limit; then memory that others hold.

    >>> facts = dict(rounded=512, growth=512, reserved=1024, limit=1024, cached=0, waiting=0,
    ...         private_idle=0, free=9999, total=11023, is_rejected=0, has_source=0, own_context=0)
    >>> reason_of(facts), reason_of({**facts, "cached": 600}), reason_of({**facts, "free": 0})
    ('limit', 'fragmented', 'limit')
    >>> reason_of({**facts, "limit": None, "free": 100}), reason_of({**facts, "waiting": 512})
    ('other processes', 'waiting on streams')
    """
    need, room, cached = facts["rounded"], room_to_grow(facts), facts["cached"]
    if facts["is_rejected"] or facts["has_source"]:
        return "limit" if facts["is_rejected"] else "exhausted"
    if cached >= need or room < need <= cached + room:
        return "fragmented"
    if room >= need:
        need = facts["growth"]  # memory comes in larger pieces than the request
    have = cached + room
    if have < need <= have + facts["waiting"]:
        return "waiting on streams"
    have += facts["waiting"]
    if have < need <= have + facts["private_idle"]:
        return "idle private pool"
    cached += facts["waiting"] + facts["private_idle"]
    is_over = facts["limit"] is not None and facts["reserved"] + facts["growth"] > facts["limit"]
    if is_over and need <= cached + facts["total"] - facts["reserved"]:
        return "limit"
    if 0 < need - cached - facts["free"] <= held_elsewhere(facts):
        return "other processes"
    return "exhausted"


def explain(reason, facts):
    """Return the meaning of a class for these amounts, as part of a sentence."""
    room = room_to_grow(facts)
    if reason == "fragmented":
        more = f" and {amount(room)} could still be reserved" if room else ""
        return f"{amount(facts['cached'])} are free in the cache{more}, but not in one piece"
    if reason == "waiting on streams":
        why = "during a capture nothing is waited for" if facts["is_capturing"] else (
            "waiting for it failed")  # fmt: skip
        return f"{amount(facts['waiting'])} are freed but wait for work on streams, and {why}"
    if reason == "idle private pool":
        return (
            f"{amount(facts['private_idle'])} are free in private pools: release the graphs and "
            "pools that are no longer used"
        )
    if reason == "limit":
        over = f"at most {amount(facts['limit'])} may be reserved on this device"
        if facts["is_rejected"]:
            over += (
                ", and throw_on_cudamalloc_oom refuses at once what would pass that: nothing was "
                "waited for or given back"
            )
        return over
    if reason == "other processes":
        return f"{amount(held_elsewhere(facts))} are held by other processes or other libraries"
    if facts["has_source"]:
        return "the pool's own allocator refused"
    if facts["rounded"] > facts["total"]:
        return "the device is smaller than the request"
    short = max(facts["rounded"], facts["growth"]) - facts["cached"] - room
    if short <= 0:
        return "the driver refused, although its amounts suffice"
    return f"the device is full: {amount(short)} more would have to be free"


def message_of(device, facts, reason, option_sentence=None, sites=(), observer_errors=()):
    """Return the message of an OutOfMemoryError: one paragraph."""
    limit = f", limit {amount(facts['limit'])}" if facts["limit"] is not None else ""
    parts = [
        f"out of memory on {device_name(device)}: {amount(facts['requested'])} requested; "
        f"allocated {amount(facts['allocated'])}, reserved {amount(facts['reserved'])}, "
        f"free on the device {amount(facts['free'])} of {amount(facts['total'])}{limit}, "
        f"largest free block {amount(facts['largest_free_block'])}",
        f"reason: {reason} ({explain(reason, facts)})",
    ]
    if option_sentence:
        parts.append(option_sentence)
    if sites:
        held = (
            f"{site.place} {amount(site.nbytes)} in {site.n_blocks} "
            f"block{'s' if site.n_blocks != 1 else ''}"
            for site in sites
        )
        parts.append(f"most is held by {', '.join(held)}")
    parts += [f"an observer raised {error!r}" for error in observer_errors]
    return "; ".join(parts)


def call_observers(device, facts):
    """Call the observers and return the exceptions that they raised."""
    errors = []
    limit = facts["total"] if facts["limit"] is None else facts["limit"]
    for observer in list(_observers):
        try:
            observer(device, facts["requested"], limit, facts["free"])
        except Exception as error:
            errors.append(error)
    return errors


def raise_out_of_memory(device, nbytes, stream):
    """Raise the OutOfMemoryError of a request."""
    asked = min(nbytes, 1 << 62)  # of the allocator, whose sizes have 64 bits
    facts = failure_facts(device, asked, stream) | {"requested": nbytes}
    facts["fraction"] = fraction_of(device)
    facts["own_context"] = CONTEXT_NBYTES if device >= 0 else 0
    reason = reason_of(facts)
    option, sentence, sites, errors = None, None, [], []
    history.add_entry(device, "oom", facts["free"], asked, stream)
    # A failed request of an observer, or of a destructor that runs meanwhile, gets a short message.
    if not getattr(_thread, "is_explaining", False):
        _thread.is_explaining = True
        try:
            sites = top_call_sites(device)
            option, sentence = advise(device, facts, stream)
            errors = call_observers(device, facts)
        finally:
            _thread.is_explaining = False
    message = message_of(device, facts, reason, sentence, sites, errors)
    error = OutOfMemoryError(message, reason, facts, option, sites)
    try:
        if errors:
            error.__context__ = errors[0]
        raise error
    finally:
        # Tracebacks lead to this frame: a cycle would keep the memory of all callers alive.
        errors.clear()
        del error


def raise_for(device, nbytes, stream, status):
    """Raise the exception of a request that failed with `status`."""
    if status == STATUS_INVALID_DEVICE:
        open_allocator(device)  # raises the error of opening the device
    if nbytes == 0:
        raise argument_error(ValueError, "nbytes", nbytes, "1 or more")
    if status != STATUS_OUT_OF_MEMORY:
        raise DriverError(
            f"allocating {nbytes} bytes on device {device} failed: {status_text(status)}",
            "malloc",
            status,
        )
    raise_out_of_memory(device, nbytes, stream)
