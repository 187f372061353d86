"""Streams, events, the current device and stream of a thread, and automatic ordering."""

from gputensor.streams.order import ordering, ordering_mode
from gputensor.streams.queue import (
    Device,
    Event,
    ExternalStream,
    Stream,
    Uses,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
    synchronize,
)

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
