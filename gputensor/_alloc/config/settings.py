"""The allocator's settings: the values in force, and the source of each.

``GPUTENSOR_ALLOC_CONF`` is read once, at first use of the settings. The grammar is that of
``PYTORCH_CUDA_ALLOC_CONF``: ``key:value,key:value``, lists ``[a:b,c:d,>:e]``, whitespace ignored.
A text is checked whole before anything changes, and a changed setting changes only itself (in
PyTorch each call also resets three others). :func:`on_change` notifies the core of changes.
"""

import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gputensor._alloc.config.options import OPTIONS, REJECTED

__all__ = ["VARIABLE", "Setting", "Settings", "change", "current", "on_change", "parse"]

VARIABLE = "GPUTENSOR_ALLOC_CONF"
RUN_TIME = "set_allocator_settings"
FRACTION = "per_process_memory_fraction"
FOR_ONE_DEVICE = "set_per_process_memory_fraction"


class Setting(NamedTuple):
    """One setting in force: its value and ``"default"``, ``"environment"`` or the function."""

    value: object
    source: str


@dataclass(frozen=True)
class Settings:
    """All settings of the allocator, an attribute for each option; sizes in the unit of the name.

    `given` has the options that were given, in that order: the :class:`Setting`, and its text,
    which PyTorch shows in a snapshot. Immutable.

    >>> parse("max_split_size_mb:64").max_split_size_mb
    64
    """

    given: dict[str, tuple[Setting, str]] = field(default_factory=dict)

    def __getattr__(self, name):
        if name not in OPTIONS:
            raise AttributeError(f"the allocator has no option {name!r}")
        return self.given[name][0].value if name in self.given else OPTIONS[name].default

    def in_force(self):
        """Return a dict from every option's name to its :class:`Setting`.

        >>> Settings().in_force()["page_size_mb"]
        Setting(value=40, source='default')
        """
        return {name: Setting(option.default, "default") for name, option in OPTIONS.items()} | {
            name: setting for name, (setting, _) in self.given.items()
        }

    def text(self):
        """Return the options that were given, in the grammar that :func:`parse` reads."""
        return ",".join(f"{name}:{text}" for name, (_, text) in self.given.items())


def _split(text, source):
    """Yield (key, value text) of a configuration text."""
    position = 0
    while position < len(text):
        match = re.compile(r"([^,:\[\]]*):(\[[^\[\]]*\]|[^,:\[\]]*)(,|$)").match(text, position)
        if match is None or not match[1] or not match[2]:
            rest = text[position : position + 60]
            raise ValueError(
                f"{source}: got {rest!r}; expected key:value pairs with commas between them"
            )
        yield match[1], match[2]
        position = match.end()


def _check_together(settings, source, given):
    """Check the options whose bounds depend on another option."""
    lowest = settings.large_segment_size_mb
    for name in ("max_split_size_mb", "max_non_split_rounding_mb"):
        value = getattr(settings, name)
        if value is not None and value < lowest:
            blamed = name if name in given else "large_segment_size_mb"
            raise ValueError(
                f"{source}: {blamed}: got {getattr(settings, blamed)}; expected {name} "
                f"(now {value}) to be at least large_segment_size_mb (now {lowest})"
            )


def parse(text, base=None, source=VARIABLE, provenance="environment"):
    """Return `base` changed by a configuration text.

    Parameters
    ----------
    text : str
        ``key:value,key:value``; the last of equal keys holds.
    base : Settings, optional
        The values of the options that `text` does not name; their defaults when not given.
    source : str
        The origin of the text in error messages.
    provenance : str
        The source that is noted for the named options.

    Raises
    ------
    ValueError
        For an unknown key or a bad value: gives the source, the key, the value and the rule.

    Examples
    --------
    >>> parse("expandable_segments:False, page_size_mb : 2").page_size_mb
    2
    >>> parse("page_size_mb:3")
    Traceback (most recent call last):
    ...
    ValueError: GPUTENSOR_ALLOC_CONF: page_size_mb: got '3'; expected an even integer from 2 to 1024
    """
    given = {}
    for key, value in _split("".join(text.split()), source):
        if key in REJECTED:
            raise ValueError(
                f"{source}: {key}: got {value!r}; expected no such option, since {REJECTED[key]}"
            )
        if key not in OPTIONS:
            raise ValueError(f"{source}: got unknown key {key!r}; expected {', '.join(OPTIONS)}")
        try:
            given[key] = Setting(OPTIONS[key].convert(value), provenance), value
        except ValueError as error:
            raise ValueError(f"{source}: {key}: got {value!r}; expected {error}") from None
    settings = Settings((base.given if base else {}) | given)
    _check_together(settings, source, given)
    return settings


_lock = threading.RLock()
_in_force = None
_listeners: list[Callable[[Settings], object]] = []
#: How often the fraction of all devices was set at run time.
fraction_changes = 0


def _renew_lock():
    """Make a new lock in the child of a fork: another thread of the parent may have held it."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def current():
    """Return the settings in force; reads ``GPUTENSOR_ALLOC_CONF`` on the first call.

    Raises
    ------
    ValueError
        When the variable cannot be parsed, on every call until it can.
    """
    global _in_force
    if _in_force is None:
        with _lock:
            if _in_force is None:
                _in_force = parse(os.environ.get(VARIABLE, ""))
    return _in_force


def change(text):
    """Change the settings that a configuration text names; the others stay.

    Nothing changes when the text is bad. `backend` cannot be changed at run time. A fraction that
    the text names holds for every device, including those with one of their own.
    """
    global _in_force, fraction_changes
    with _lock:
        before = current()
        settings = parse(text, before, RUN_TIME, RUN_TIME)
        if settings.backend != before.backend:
            raise ValueError(
                f"{RUN_TIME}: backend: got {settings.backend!r}; expected {before.backend!r}; "
                f"the backend is chosen by {VARIABLE} before the library is used"
            )
        _in_force = settings
        if FRACTION in (key for key, _ in _split("".join(text.split()), RUN_TIME)):
            fraction_changes += 1
        tell()
    return settings


def tell():
    """Notify the listeners of the settings in force."""
    for listener in _listeners:
        listener(_in_force)


def unchanged():
    """Return a context in which no other thread changes the settings or notifies listeners.

    A new device reads the settings in it, so that no change is lost before it is notified of them.
    """
    return _lock


def on_change(listener):
    """Call ``listener(settings)`` after each change. The core takes over new values by it."""
    with _lock:
        _listeners.append(listener)
