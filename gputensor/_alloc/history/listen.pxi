"""Allocator trackers: functions that receive each event that the history records."""

cdef list tracker_functions = []


def _notify_trackers(raised):
    cdef vector[Tracked] events = undelivered.take()
    cdef StackFormatter formatter = StackFormatter()
    cdef dict patterns = {}
    cdef size_t i
    for i in range(events.size()):
        entry = entry_of(&events[i].record, patterns, formatter)
        tell(tracker_functions, raised, events[i].device, entry)


on_delivery(_notify_trackers)


def attach_tracker(function):
    """Call ``function(device, entry)`` for each event that the history records from now on."""
    tracker_functions.append(function)
    gt_store(&is_tracked, True)


def detach_tracker(function):
    """Remove a tracker after it has received all events so far; ``ValueError`` if unknown."""
    try:
        deliver()
    finally:
        tracker_functions.remove(function)
        gt_store(&is_tracked, len(tracker_functions) != 0)
