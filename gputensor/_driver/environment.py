"""The library's variables of the environment: which there are, and which were misspelt.

Importing the package calls `report` once. A variable that the library does not know, and a switch
with a value that it does not know, are one warning each in the life of a process and never an
error: the import has to succeed. Whoever owns a variable with other values checks it at first use.
"""

import os
import sys
import warnings

__all__ = ["KNOWN", "SWITCHES", "nearest", "report", "switch"]

PREFIX = "GPUTENSOR_"
VALUES = ("", "0", "1")  # of a switch; unset is as empty
SWITCHES = frozenset(
    {
        "GPUTENSOR_CHECK_INDICES",
        "GPUTENSOR_NO_MEMORY_CACHING",
        "GPUTENSOR_NVML_BASED_CUDA_CHECK",
        "GPUTENSOR_OBSERVE_DRIVER",
    }
)
KNOWN = SWITCHES | {
    "GPUTENSOR_ALLOC_CONF",
    "GPUTENSOR_BLAS_PREFER_CUBLASLT",
    "GPUTENSOR_CHECK_EVERY",
    "GPUTENSOR_DEVICE",
    "GPUTENSOR_HOST_MEMORY",
    "GPUTENSOR_KERNEL_CACHE",
    "GPUTENSOR_LIBCUDA",
    "GPUTENSOR_OOM_REPLAY_SECONDS",
    "GPUTENSOR_TUNABLEOP_ENABLED",
    "GPUTENSOR_TUNABLEOP_FILENAME",
    "GPUTENSOR_TUNABLEOP_MAX_TUNING_DURATION_MS",
    "GPUTENSOR_TUNABLEOP_MAX_TUNING_ITERATIONS",
    "GPUTENSOR_TUNABLEOP_NUMERICAL_CHECK",
    "GPUTENSOR_TUNABLEOP_RECORD_UNTUNED",
    "GPUTENSOR_TUNABLEOP_ROTATING_BUFFER_SIZE",
    "GPUTENSOR_TUNABLEOP_TUNING",
    "GPUTENSOR_TUNABLEOP_UNTUNED_FILENAME",
    # Of setup.py and of the tests; a shell that builds often imports as well.
    "GPUTENSOR_BUILD_DEBUG",
    "GPUTENSOR_BUILD_JOBS",
    "GPUTENSOR_BUILD_ONLY",
    "GPUTENSOR_REQUIRE_GPU",
    "GPUTENSOR_SANITIZE",
}
_said: set[str] = set()


def switch(name):
    """Return whether a switch is on; a value that is neither on nor off is warned of and is off.

    >>> switch("GPUTENSOR_NO_MEMORY_CACHING")
    False
    """
    text = os.environ.get(name, "")
    if text not in VALUES:
        _say(name, _bad_switch(name, text))
    return text == "1"


def report():
    """Warn of each unknown ``GPUTENSOR_`` variable, with the nearest known name, and bad switch."""
    for name, text in sorted(os.environ.items()):
        if not name.startswith(PREFIX):
            continue
        if name not in KNOWN:
            _say(name, f"{name}: no such variable, it has no effect; did you mean {nearest(name)}?")
        elif name in SWITCHES and text not in VALUES:
            _say(name, _bad_switch(name, text))


def nearest(name):
    """Return the known name that looks most like another.

    >>> nearest("GPUTENSOR_ALLOC_CONFIG")
    'GPUTENSOR_ALLOC_CONF'
    """
    # Imported here: it costs time, and misspelt names are rare.
    from difflib import SequenceMatcher

    return max(sorted(KNOWN), key=lambda known: SequenceMatcher(None, name, known).ratio())


def _bad_switch(name, text):
    return f"{name}: got {text[:60]!r}; expected 0 or 1; it counts as 0"


def _say(name, message):
    if name in _said:
        return
    _said.add(name)
    try:
        # 4: the line that imports the package, behind this function, `report` and __init__.
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    except RuntimeWarning:
        # The program makes errors of warnings; that must not stop the import.
        print(f"gputensor: {message}", file=sys.stderr)
