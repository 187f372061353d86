"""The allocator's settings, changed by a test and restored at its end."""

import contextlib

from gputensor._alloc.config import settings


@contextlib.contextmanager
def restored():
    """Restore the settings and the fractions at the end."""
    before = settings.current()
    try:
        yield
    finally:
        settings._in_force = before
        settings.fraction_changes += 1
        settings.tell()


def put_in_force(text):
    """Set all settings from a text, even those that cannot change once an allocator is open."""
    settings._in_force = settings.parse(text)
    settings.tell()
