"""The library's environment variables: their descriptions, and warnings about misspelt ones.

Importing the package calls `report` once. An unknown variable, or a switch with an unknown value,
causes one warning in the life of a process and never an error, because the import has to succeed.
The module that owns a variable with other values checks it at first use.
"""

import os
import re
import sys
import warnings

__all__ = ["DESCRIPTIONS", "KNOWN", "SWITCHES", "nearest", "report", "switch"]

PREFIX = "GPUTENSOR_"
VALUES = ("", "0", "1")  # of a switch; unset counts as empty
SWITCHES = frozenset(
    {
        "GPUTENSOR_CHECK_INDICES",
        "GPUTENSOR_NO_MEMORY_CACHING",
        "GPUTENSOR_NVML_BASED_CUDA_CHECK",
        "GPUTENSOR_OBSERVE_DRIVER",
    }
)
# Variables whose module cannot raise: a pattern of their values, and what others count as.
LENIENT = {
    "GPUTENSOR_EARLY_START": ("|0|1", "0 or 1; it counts as 1"),
    "GPUTENSOR_OOM_REPLAY_SECONDS": (
        r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?",
        "a number of seconds, 0 or more; it counts as 0.5",
    ),
}
#: Every variable and its meaning (docs/environment.md). Those of setup.py and the tests are here
#: too, because a shell that builds often also imports the library.
DESCRIPTIONS = {
    "GPUTENSOR_ALLOC_CONF": "options of the allocator: `name:value,...`; see [memory](memory.md)",
    "GPUTENSOR_BLAS_PREFER_CUBLASLT": "1: prefer cuBLASLt to cuBLAS for products",
    "GPUTENSOR_CHECK_EVERY": (
        "in a debug build: check the allocator's invariants at every n-th change"
    ),
    "GPUTENSOR_CHECK_INDICES": (
        "switch: check indices on CUDA devices before use, which waits for the device"
    ),
    "GPUTENSOR_DEVICE": "the device that a process starts with: `cuda:1`, `host`",
    "GPUTENSOR_EARLY_START": (
        "0: each kernel starts after the work before it has ended; see [streams](streams.md)"
    ),
    "GPUTENSOR_HOST_DEVICES": "the number of host devices (`host`, `host:1`, ...): 1 to 16",
    "GPUTENSOR_HOST_MEMORY": "the capacity of each host device in bytes, such as `8G`",
    "GPUTENSOR_KERNEL_CACHE": "the folder of compiled kernels; 0 turns this cache off",
    "GPUTENSOR_LIBCUDA": "the path of the CUDA driver's library",
    "GPUTENSOR_NO_MEMORY_CACHING": "switch: turn the allocator's caching off",
    "GPUTENSOR_NVML_BASED_CUDA_CHECK": "switch: count devices by NVML, without initialising CUDA",
    "GPUTENSOR_OBSERVE_DRIVER": "switch: count driver calls",
    "GPUTENSOR_OOM_REPLAY_SECONDS": (
        "the most seconds that an `OutOfMemoryError` takes to find an option that would have helped"
    ),
    "GPUTENSOR_TUNABLEOP_ENABLED": "1: use tuned algorithms for products; see [products](blas.md)",
    "GPUTENSOR_TUNABLEOP_FILENAME": "the file of tuned algorithms",
    "GPUTENSOR_TUNABLEOP_MAX_TUNING_DURATION_MS": "the most milliseconds to tune one product",
    "GPUTENSOR_TUNABLEOP_MAX_TUNING_ITERATIONS": "the most runs of one algorithm",
    "GPUTENSOR_TUNABLEOP_NUMERICAL_CHECK": "1: compare the results of algorithms while tuning",
    "GPUTENSOR_TUNABLEOP_RECORD_UNTUNED": "1: record products that are not tuned",
    "GPUTENSOR_TUNABLEOP_ROTATING_BUFFER_SIZE": (
        "the MiB of operand copies to alternate between, so that caches stay cold"
    ),
    "GPUTENSOR_TUNABLEOP_TUNING": "1: tune products that are not tuned yet",
    "GPUTENSOR_TUNABLEOP_UNTUNED_FILENAME": "the file of the recorded products",
    "GPUTENSOR_BUILD_DEBUG": "of `setup.py`: 1 builds an allocator that checks its invariants",
    "GPUTENSOR_BUILD_JOBS": "of `setup.py`: the number of compilers that run at once",
    "GPUTENSOR_BUILD_ONLY": "of `setup.py`: the extensions to build; `none` for none",
    "GPUTENSOR_COVERAGE": "of `setup.py`: 1 counts which lines of the allocator run",
    "GPUTENSOR_REQUIRE_GPU": "of the tests: 1 makes skipped GPU tests fail",
    "GPUTENSOR_SANITIZE": "of `setup.py`: `address` or `thread`",
}
KNOWN = frozenset(DESCRIPTIONS)
_said: set[str] = set()


def switch(name):
    """Return whether a switch is on; any other value than 0, 1 or none causes a warning and is off.

    >>> switch("GPUTENSOR_NO_MEMORY_CACHING")
    False
    """
    text = os.environ.get(name, "")
    if text not in VALUES:
        _say(name, _bad_switch(name, text))
    return text == "1"


def report():
    """Warn of unknown ``GPUTENSOR_`` variables, naming the nearest known one, and bad values."""
    for name, text in sorted(os.environ.items()):
        if not name.startswith(PREFIX):
            continue
        if name not in KNOWN:
            _say(name, f"{name}: unknown variable without effect; did you mean {nearest(name)}?")
        elif name in SWITCHES and text not in VALUES:
            _say(name, _bad_switch(name, text))
        elif name in LENIENT and not re.fullmatch(LENIENT[name][0], text):
            _say(name, f"{name}: got {text[:60]!r}; expected {LENIENT[name][1]}")


def nearest(name):
    """Return the known name that looks most like another.

    >>> nearest("GPUTENSOR_ALLOC_CONFIG")
    'GPUTENSOR_ALLOC_CONF'
    """
    # Imported here because importing takes time and misspelt names are rare.
    from difflib import SequenceMatcher

    return max(sorted(KNOWN), key=lambda known: SequenceMatcher(None, name, known).ratio())


def _bad_switch(name, text):
    return f"{name}: got {text[:60]!r}; expected 0 or 1; it counts as 0"


def _say(name, message):
    if name in _said:
        return
    _said.add(name)
    try:
        # 4: the line that imports the package, beyond this function, `report` and __init__.
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    except RuntimeWarning:
        # The program turns warnings into errors; that must not stop the import.
        print(f"gputensor: {message}", file=sys.stderr)
