"""Captures calls of several streams as branches of the graph, forked and joined by events."""

from __future__ import annotations

from functools import partial

from gputensor.programs.running.device import Launches
from gputensor.programs.session import launch_on
from gputensor.streams.capture import Conditions
from gputensor.streams.queue import Event

__all__ = ["MOST_BRANCHES", "branch_count", "launch_branches"]

MOST_BRANCHES = 8


def branch_count(binding):
    """Return the number of streams on which the calls of a binding are captured."""
    return max(1, min(MOST_BRANCHES, len(set(binding.streams))))


def launch_branches(binding, addresses, weights, streams, bodies):
    """Launch the calls of a binding on streams that capture, or that join the capture.

    Parameters
    ----------
    binding : Binding
    addresses : tuple of int
        The addresses of its pieces.
    weights : dict
        Name of a weight -> address, for regions.
    streams : list of Stream
        The first one captures; the others wait for it first, and it waits for them at the end.
    bodies : list of list
        For each stream, the streams on which bodies of its conditions are captured.
    """
    numbers = {
        number: at % len(streams) for at, number in enumerate(dict.fromkeys(binding.streams))
    }
    needed = {index for waits in binding.waits for index in waits}
    lanes = [Launches(partial(launch_on, stream)) for stream in streams]
    marks, joined = {}, {0}
    start = recorded(streams[0]) if len(streams) > 1 else None
    for index, call in enumerate(binding.calls):
        place = numbers[binding.streams[index]]
        stream, lane = streams[place], lanes[place]
        waits = [marks[one] for one in binding.waits[index]]
        if place not in joined:
            joined.add(place)
            waits.append(start)
        if waits:
            lane.flush()
        for event in waits:
            stream.wait_event(event)
        if lane.conditions is None and binding.has_bodies:
            lane.conditions = Conditions(stream, bodies[place])
        lane.launch(call, addresses, weights)
        if index in needed:
            lane.flush()
            marks[index] = recorded(stream)
    for place in sorted(joined):
        lanes[place].flush()
        if place:
            streams[0].wait_event(recorded(streams[place]))


def recorded(stream):
    """Return an event after the work that a stream has queued."""
    event = Event()
    event.record(stream)
    return event
