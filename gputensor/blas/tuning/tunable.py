"""Tuned products: results of measurements are kept, written to files, and used again.

The results are in a table by (device, driver, library, signature of the product). They come
from a file, from :func:`tune_file`, or from products themselves while tuning is enabled. Each entry
states the device and versions for which it is valid: a file may hold entries of several devices and
library versions, and each process uses those that fit. A product without an entry may borrow that
of a near shape.

Planning reads a copy of the table, and calls this module only for products that have to be tuned or
noted; an enabled table does not slow down a cached product. Names and environment variables follow
PyTorch's TunableOp, with the prefix ``GPUTENSOR_TUNABLEOP_``: ENABLED, TUNING, FILENAME,
MAX_TUNING_DURATION_MS, MAX_TUNING_ITERATIONS, ROTATING_BUFFER_SIZE (MiB), RECORD_UNTUNED,
UNTUNED_FILENAME, NUMERICAL_CHECK.
"""

import contextlib
import functools
import json
import os
import sys
import threading
from pathlib import Path

from gputensor.atomic_file import write_whole
from gputensor.blas.libraries import library_versions
from gputensor.blas.plan import (
    FIELDS,
    check_signature,
    fill_tuned,
    forget_plans,
    forget_tuned,
    set_tuning,
)
from gputensor.blas.tuning.measured_algorithms import CONFIG_COUNT
from gputensor.blas.tuning.shapes_file import name_of_signature, read_signatures
from gputensor.blas.tuning.tunable_settings import MAX_MEBIBYTES, MAX_NUMBER, Given, counted
from gputensor.errors import BlasError, OutOfMemoryError
from gputensor.streams.queue import Device

__all__ = [
    "clear",
    "enable",
    "get_filename",
    "get_max_tuning_duration",
    "get_max_tuning_iterations",
    "get_numerical_check",
    "get_results",
    "get_rotating_buffer_size",
    "get_untuned_filename",
    "get_validators",
    "is_enabled",
    "read_file",
    "record_untuned",
    "record_untuned_enable",
    "record_untuned_is_enabled",
    "set_filename",
    "set_max_tuning_duration",
    "set_max_tuning_iterations",
    "set_numerical_check",
    "set_rotating_buffer_size",
    "set_untuned_filename",
    "tune_file",
    "tune_gemm_in_file",
    "tuning_enable",
    "tuning_is_enabled",
    "write_file",
]

_lock = threading.RLock()
_entries: dict = {}  # (environment, signature) -> entry
_untuned: dict = {}  # signatures of products without an entry, in the order of their first use


def _renew_lock():
    """Make a new lock in the child of a fork: another thread of the parent may have held it."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


_settings = Given()
_is_begun = False


def _changed():
    """Forget all plans, so that products are planned by the current settings."""
    is_tuned = _settings.is_enabled and _settings.is_tuning
    set_tuning(_settings.is_enabled, is_tuned or _settings.is_recording)
    forget_plans()


def _begin():
    """Apply the environment variables; until that succeeds, each use raises the error."""
    global _is_begun
    if not _is_begun:
        if _settings.is_enabled or _settings.is_recording:
            enable(_settings.is_enabled)
        _is_begun = True


def enable(val=True):
    """Set whether tuned results are used; enabling also reads the file of results if it exists.

    Forgets all plans. Raises ValueError if the file is not one of tuned results.

    >>> enable(False)
    >>> is_enabled()
    False
    """
    # Only a regular file is read, because /dev/zero has no end.
    if _boolean("val", val) and os.path.isfile(_settings.filename):
        read_file()
    _settings.is_enabled = val
    _changed()


def is_enabled():
    """Return whether tuned results are used."""
    return _settings.is_enabled


def tuning_enable(val=True):
    """Set whether products without an entry are tuned at their first use, if :func:`enable` is on.

    >>> tuning_enable(False)
    >>> tuning_is_enabled()
    False
    """
    _settings.is_tuning = _boolean("val", val)
    _changed()


def tuning_is_enabled():
    """Return whether products without an entry are tuned."""
    return _settings.is_tuning


def record_untuned(val=True):
    """Set whether products without an entry are noted; :func:`write_file` writes them to a file.

    >>> record_untuned(False)
    >>> record_untuned_is_enabled()
    False
    """
    _settings.is_recording = _boolean("val", val)
    _changed()


#: PyTorch's name of :func:`record_untuned`.
record_untuned_enable = record_untuned


def record_untuned_is_enabled():
    """Return whether untuned products are noted."""
    return _settings.is_recording


def set_max_tuning_duration(duration):
    """Set the time budget of one product, in milliseconds.

    >>> set_max_tuning_duration(600)
    """
    _settings.duration_ms = counted("duration", duration, MAX_NUMBER)


def get_max_tuning_duration():
    """Return the time budget of one product, in milliseconds."""
    return _settings.duration_ms


def set_max_tuning_iterations(iterations):
    """Set the number of rounds of the second pass, whose median decides.

    >>> set_max_tuning_iterations(5)
    """
    _settings.iterations = counted("iterations", iterations, MAX_NUMBER)


def get_max_tuning_iterations():
    """Return the number of rounds of the second pass."""
    return _settings.iterations


def set_rotating_buffer_size(buffer_size):
    """Set the MiB that operands rotate through while they are measured; 0: they do not."""
    _settings.rotating_mib = counted("buffer_size", buffer_size, MAX_MEBIBYTES, least=0)


def get_rotating_buffer_size():
    """Return the memory, in MiB, that operands rotate through while they are measured."""
    return _settings.rotating_mib


def set_numerical_check(value):
    """Set whether the fastest algorithm must agree with the default's result to be accepted."""
    _settings.is_checked = _boolean("value", value)


def get_numerical_check():
    """Return whether the result of the fastest algorithm is compared with the default's."""
    return _settings.is_checked


def set_filename(filename, insert_device_ordinal=False):
    """Set the file of results, ``%h`` being the host's name, with the device's index if wanted."""
    import platform

    name = os.fspath(filename).replace("%h", platform.node())
    if _boolean("insert_device_ordinal", insert_device_ordinal):
        name = str(Path(name).with_stem(f"{Path(name).stem}{Device().index}"))
    _settings.filename = name


def get_filename():
    """Return the name of the file of results."""
    return _settings.filename


def set_untuned_filename(filename):
    """Set the name of the file of untuned products."""
    _settings.untuned_filename = os.fspath(filename)


def get_untuned_filename():
    """Return the name of the file of untuned products."""
    return _settings.untuned_filename


def get_validators(device=0):
    """Return the facts that an entry must match to be used on a CUDA device.

    Returns
    -------
    tuple of (str, str)
        ``DEVICE``, ``DRIVER_VERSION`` and ``CUBLASLT_VERSION`` with their values.
    """
    names = ("DEVICE", "DRIVER_VERSION", "CUBLASLT_VERSION")
    return tuple(zip(names, environment(device), strict=True))


def __dir__():
    return sorted(__all__)


def _boolean(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name}: got {value!r:.60}; expected True or False")
    return value


@functools.cache
def environment(device):
    """Return the names of device, driver and library for which an entry is valid."""
    from gputensor._driver.registry import device_info

    info = device_info(device)
    return (
        info["name"],
        ".".join(map(str, info["driver_version"])),
        f"cublasLt {library_versions().get('cublasLt', 0)}",
    )


def fill(device):
    """Copy the entries that are valid for a device to the table that planning reads."""
    if not _settings.is_enabled:
        return
    with _lock:
        place = environment(device)
        fill_tuned(
            device, {key[1]: entry["choice"] for key, entry in _entries.items() if key[0] == place}
        )


def find(signature, device, is_capturing):
    """Return the measured choice for a product, or None; called for products without an entry.

    Tunes the product if that is enabled, it has no entry, its stream is not capturing and there
    is memory for it.
    """
    _begin()
    with _lock:
        place = environment(device)
        entry = _entries.get((place, signature))
        if entry is None and _settings.is_tuning and _settings.is_enabled and not is_capturing:
            # The bench needs memory of its own; without it, the product stays untuned.
            with contextlib.suppress(OutOfMemoryError):
                entry = _tune(signature, device, seconds=_settings.duration_ms / 1e3)
        if entry is None and _settings.is_recording:
            _untuned[signature] = None
        return entry["choice"] if entry is not None and _settings.is_enabled else None


_measure = None  # times the algorithms of a product; see measure_with


def measure_with(function):
    """Set the function that measures products; it is in a later room, which plans products."""
    global _measure
    _measure = function


def _tune(signature, device, *, seconds, is_exhaustive=False):
    """Measure a product and add the result."""
    result = _measure(
        signature,
        device,
        seconds=seconds,
        rounds=_settings.iterations,
        rotating_nbytes=_settings.rotating_mib << 20,
        is_exhaustive=is_exhaustive,
        is_checked=_settings.is_checked,
    )
    with _lock:
        _entries[environment(device), signature] = result
        forget_tuned()
    return result


def get_results():
    """Return the entries as dicts.

    ``device``, ``driver`` and ``library`` state where the entry is valid, ``problem`` has the
    fields of the signature, ``pad``, ``backend`` and ``config`` the choice, ``us`` and
    ``default_us`` its microseconds and the default's, ``measured`` the number of algorithms.

    >>> clear()
    >>> get_results()
    []
    """
    _begin()
    with _lock:
        return [
            {
                "device": place[0],
                "driver": place[1],
                "library": place[2],
                "problem": dict(zip(FIELDS, signature, strict=True)),
                "pad": entry["choice"][0],
                "backend": entry["choice"][1],
                "config": entry["choice"][2] and list(entry["choice"][2]),
                "us": entry["us"],
                "default_us": entry["default_us"],
                "measured": entry["measured"],
            }
            for (place, signature), entry in _entries.items()
        ]


def clear():
    """Forget all entries and all untuned products."""
    with _lock:
        _entries.clear()
        _untuned.clear()
        _changed()


def read_file(filename=None):
    """Add the entries of a file; :func:`write_file` also writes those of other devices or versions.

    By default it is the file of :func:`get_filename`. Returns the number of its entries. Raises
    ValueError if it is not a file of tuned results; no entry is added then.
    """
    path = Path(_settings.filename if filename is None else filename)
    try:
        content = json.loads(path.read_text())
        rows = [_entry_of(row) for row in content["results"]]
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: got {error}; expected a file of tuned results") from None
    with _lock:
        _entries.update(rows)
        _changed()
    return len(rows)


def _entry_of(row):
    signature = check_signature([row["problem"][name] for name in FIELDS])
    config = row["config"] and tuple(int(number) for number in row["config"])
    pad, backend = int(row["pad"]), int(row["backend"])
    if config and (len(config) != CONFIG_COUNT or max(map(abs, config)) >= 1 << 31):
        raise ValueError(
            f"configuration: got {config!r:.60}; expected {CONFIG_COUNT} integers of 32 bits"
        )
    if not (-1 <= pad <= 7 and -1 <= backend < 1 << 31):  # a mask of three matrices
        raise ValueError(
            f"choice: got padding {pad} and library {backend}; expected -1 to 7 and -1 or more"
        )
    if pad > 0 and row["problem"]["is_repeated"]:
        raise ValueError(
            f"padding: got {pad} for a repeated product; expected -1 or 0, since each repetition "
            "has different matrices"
        )
    entry = {
        "choice": (pad, backend, config or None),
        "us": float(row["us"]),
        "default_us": float(row["default_us"]),
        "measured": int(row["measured"]),
    }
    return ((str(row["device"]), str(row["driver"]), str(row["library"])), signature), entry


def write_file(filename=None):
    """Write all entries to a file, and recorded untuned products, if any, to their own file.

    The file of results is `filename`, by default that of :func:`get_filename`; untuned products go
    to that of :func:`get_untuned_filename`. Each file is replaced in one step.
    """
    path = Path(_settings.filename if filename is None else filename)
    _write(path, {"format": "gputensor tuned products 1", "results": get_results()})
    if _settings.is_recording and _untuned:
        with _lock:
            shapes = [dict(zip(FIELDS, signature, strict=True)) for signature in _untuned]
        _write(
            Path(_settings.untuned_filename),
            {"format": "gputensor untuned products 1", "problems": shapes},
        )


def _write(path, content):
    """Replace a file in one step, so that a reader never sees a part of it."""
    text = json.dumps(content, indent=1) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


def tune_file(filename=None, *, device=0, seconds=60.0, is_exhaustive=False, show=sys.stderr):
    """Tune the untuned products of a file and add the results.

    Parameters
    ----------
    filename : str, optional
        A file of recorded products from :func:`write_file`, or one with lines such as
        ``16x4096x8192 bf16 NT`` (see :mod:`gputensor.blas.tuning.shapes_file`); by default the one
        of :func:`get_untuned_filename`.
    device : int
        The number of the CUDA device.
    seconds : float
        Budget for the whole file. Each product gets an even share of it and, unless
        `is_exhaustive`, at most the budget of one product.
    is_exhaustive : bool
        Measure every algorithm that fits, not only those that the library proposes.
    show : file, optional
        The file to which the progress bar is printed; None for none.

    Returns
    -------
    list of dict
        One result for each product, with its name as ``product``. If the device lacks the memory
        for a product or no library can compute it, its result has the reason as ``error``, and the
        other products are tuned.
    """
    path = Path(_settings.untuned_filename if filename is None else filename)
    signatures = read_signatures(path)
    return tune_signatures(
        signatures, device=device, seconds=seconds, is_exhaustive=is_exhaustive, show=show
    )


#: PyTorch's name of :func:`tune_file`.
tune_gemm_in_file = tune_file


def tune_signatures(signatures, *, device, seconds, is_exhaustive=False, show=None):
    """Tune products within a budget, with a progress bar."""
    results = []
    share = seconds / max(1, len(signatures))
    if not is_exhaustive:
        share = min(share, _settings.duration_ms / 1e3)
    try:
        for number, signature in enumerate(signatures):
            _progress(show, number, len(signatures))
            result = {"product": name_of_signature(signature)}
            try:
                result |= _tune(signature, device, seconds=share, is_exhaustive=is_exhaustive)
            except (OutOfMemoryError, BlasError, ValueError) as error:
                result["error"] = str(error)
            results.append(result)
        _progress(show, len(signatures), len(signatures))
    finally:
        if show is not None:
            print(file=show)
        _changed()
    return results


def _progress(show, done, total):
    if show is not None and total:
        width = 40
        filled = width * done // total
        bar = "#" * filled + "." * (width - filled)
        print(f"\r[{bar}] {done}/{total} products", end="", file=show, flush=True)


try:
    _begin()
except (ValueError, OSError):
    set_tuning(False, True)  # the first planned product raises the error, not the import
