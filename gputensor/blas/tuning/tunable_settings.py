"""The settings of tuning: from the setters of tunable.py, or else from the environment.

The environment is read at the first use of a setting, not by the import; a bad variable raises an
error each time until it is corrected.
"""

import os

__all__ = ["MAX_MEBIBYTES", "MAX_NUMBER", "FromEnvironment", "Given", "counted"]

# Limits of settings, small enough that bytes and seconds do not overflow.
MAX_NUMBER = 10**9
MAX_MEBIBYTES = 1 << 20


class FromEnvironment:
    """The checked variables of an environment."""

    def __init__(self, environ):
        self.is_enabled = _flag(environ, "GPUTENSOR_TUNABLEOP_ENABLED", False)
        self.is_tuning = _flag(environ, "GPUTENSOR_TUNABLEOP_TUNING", False)
        self.filename = environ.get("GPUTENSOR_TUNABLEOP_FILENAME", "gputensor_tunable.json")
        self.duration_ms = _number(
            environ, "GPUTENSOR_TUNABLEOP_MAX_TUNING_DURATION_MS", 600, MAX_NUMBER
        )
        self.iterations = _number(
            environ, "GPUTENSOR_TUNABLEOP_MAX_TUNING_ITERATIONS", 5, MAX_NUMBER
        )
        self.rotating_mib = _number(
            environ, "GPUTENSOR_TUNABLEOP_ROTATING_BUFFER_SIZE", 128, MAX_MEBIBYTES, least=0
        )
        self.is_recording = _flag(environ, "GPUTENSOR_TUNABLEOP_RECORD_UNTUNED", False)
        self.untuned_filename = environ.get(
            "GPUTENSOR_TUNABLEOP_UNTUNED_FILENAME", "gputensor_untuned.json"
        )
        self.is_checked = _flag(environ, "GPUTENSOR_TUNABLEOP_NUMERICAL_CHECK", True)


def _flag(environ, name, default):
    text = environ.get(name)
    if text is None:
        return default
    if text not in ("0", "1"):
        raise ValueError(f"{name}: got {text!r}; expected 0 or 1")
    return text == "1"


def _number(environ, name, default, most, least=1):
    text = environ.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise ValueError(f"{name}: got {text!r}; expected a whole number")
    return counted(name, int(text), most, least)


def counted(name, value, most, least=1):
    """Return a number of the environment or of a setter after checking it."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: got {type(value).__name__}; expected an int")
    if not least <= value <= most:
        raise ValueError(f"{name}: got {value}; expected {least} to {most}")
    return value


class Given:
    """The settings in force: the environment is read at the first use."""

    def __getattr__(self, name):
        vars(self).update(vars(FromEnvironment(os.environ)) | vars(self))
        return object.__getattribute__(self, name)
