"""Watchers: functions that follow the work of this thread for the time of a block."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Watcher"]


class Watcher:
    """A place for a function, which is called with each step of some work.

    >>> steps = Watcher("steps")
    >>> with steps.watching(print):
    ...     steps("bound", 3)
    bound 3
    >>> steps("bound", 4)
    """

    def __init__(self, name):
        self._function = ContextVar(name, default=None)

    @contextmanager
    def watching(self, function):
        """Have `function` called at each step, in this thread, inside the block."""
        token = self._function.set(function)
        try:
            yield
        finally:
            self._function.reset(token)

    def __call__(self, *step):
        """Pass a step to the function, if there is one."""
        function = self._function.get()
        if function is not None:
            function(*step)
