"""The allocator's settings, changed by a test and restored after it."""

import contextlib

from gputensor._alloc.config import settings


@contextlib.contextmanager
def restored():
    """Put the settings and the fractions of before back into force at the end."""
    before = settings.current()
    try:
        yield
    finally:
        settings._in_force = before
        settings.fraction_changes += 1
        settings.tell()


def put_in_force(text):
    """Let a text say all settings, also those that cannot change once an allocator is open."""
    settings._in_force = settings.parse(text)
    settings.tell()
