"""Streams, events, the current device and stream of a thread, and automatic ordering."""

from gputensor.streams.device import Device
from gputensor.streams.event import Event
from gputensor.streams.ordering import ordering, ordering_mode
from gputensor.streams.stream import (
    ExternalStream,
    Stream,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
    synchronize,
)
from gputensor.streams.uses import Uses

__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "Stream",
    "Uses",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "ordering",
    "ordering_mode",
    "set_stream",
    "stream",
    "synchronize",
]
