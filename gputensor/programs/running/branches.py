"""Calls of several streams in a capture: branches of the graph, forked and joined by events."""

from __future__ import annotations

from gputensor.programs.running.device import Launches
from gputensor.streams.queue import Event

__all__ = ["MOST_BRANCHES", "branch_count", "launch_branches"]

MOST_BRANCHES = 8


def branch_count(binding):
    """On how many streams the calls of a binding are captured."""
    return max(1, min(MOST_BRANCHES, len(set(binding.streams))))


def launch_branches(queue, binding, addresses, weights, streams):
    """Launch the calls of a binding on streams that capture, or that join the capture here.

    Parameters
    ----------
    queue : callable
        Takes a stream and a list of (row, arguments), and launches them.
    binding : Binding
    addresses : tuple of int
        Of its pieces.
    weights : dict
        From names of weights to addresses, for regions.
    streams : list of Stream
        The first one captures; the others wait for it first, and it waits for them at the end.
    """
    numbers = {
        number: at % len(streams) for at, number in enumerate(dict.fromkeys(binding.streams))
    }
    needed = {index for waits in binding.waits for index in waits}
    lanes = [
        Launches(lambda calls, stream=stream: queue(stream, calls), None) for stream in streams
    ]
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
        lane.launch(call, addresses, weights)
        if index in needed:
            lane.flush()
            marks[index] = recorded(stream)
    for place in sorted(joined):
        lanes[place].flush()
        if place:
            streams[0].wait_event(recorded(streams[place]))


def recorded(stream):
    """Return an event behind what a stream holds."""
    event = Event()
    event.record(stream)
    return event
