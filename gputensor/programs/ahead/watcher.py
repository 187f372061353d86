"""Watchers: functions that observe the work of this thread during a `with` block."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Watcher"]


class Watcher:
    """Calls the current function, if there is one, with each step of some work.

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
        """Call `function` at each step, in this thread, inside the block."""
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
