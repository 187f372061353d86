"""Reads recorded allocation traces, ``.npz`` files, and trusts nothing in them.

A trace may come from anywhere, so everything is checked before the replay engine gets it: the
archive (size limits before anything is unpacked, no pickled objects), the four arrays (names,
dtypes, lengths) and their meaning (a free names a live allocation, no id is allocated twice at
once, sizes add up to something an address can hold). Every fault is a :class:`TraceFileError` whose
message is one line that names the file, the place and what is allowed. Ids and streams of the
result are dense, so that the engine can index arrays by them. The format is described in
benchmarks/traces/README.md.
"""

import os
import stat
import zipfile
from dataclasses import dataclass, field

import numpy as np

from gputensor.errors import GpuTensorError

__all__ = ["Trace", "TraceFileError", "check_trace", "read_trace"]

ARRAYS = {"op": np.int8, "id": np.int32, "size": np.int64, "stream": np.int16}
OPTIONAL = {"thread": np.int16}
PEAKS = ("peak_requested", "peak_allocated", "peak_reserved")
# 20 million events are two hundred times the largest trace at hand and unpack to 300 MB.
MAX_EVENTS = 20_000_000
# The replay makes each stream that it meets, and looks at all of them on a miss.
MAX_STREAMS = 1024
# The replay starts a thread for each number.
MAX_THREADS = 256
# Bounds that keep every sum of the replay within 63 bits.
MAX_SIZE = 2**60
MAX_LIVE = 2**62
# The header of a trace's array has 118 bytes; NumPy pads it to a multiple of 64.
MAX_HEADER = 4096


class TraceFileError(GpuTensorError, ValueError):
    """A trace file is missing, is not a trace, or describes what cannot have happened."""


@dataclass(frozen=True)
class Trace:
    """A checked trace: four arrays of one length, in order of events.

    Attributes
    ----------
    op : ndarray of int8
        +1 allocates, -1 frees.
    id : ndarray of int32
        Which allocation, numbered 0 .. ``allocations - 1`` in order of the ids of the file.
    size : ndarray of int64
        Requested bytes, 1 .. 2**60.
    stream : ndarray of int16
        0 is the default stream; the others are numbered from 1 in order of the file's numbers.
    recorded : dict
        The peaks in bytes that were counted while recording, where the file has them.
    thread : ndarray of int16 or None
        The thread of each event, numbered from 0 in order of the file's numbers; None where the
        file has no threads.
    """

    op: np.ndarray
    id: np.ndarray
    size: np.ndarray
    stream: np.ndarray
    recorded: dict = field(default_factory=dict)
    thread: np.ndarray | None = None

    @property
    def events(self):
        """Number of events."""
        return len(self.op)

    @property
    def peak_requested(self):
        """The most bytes that were requested at one time."""
        return int(np.cumsum(self.op * self.size).max(initial=0))


def read_trace(path):
    """Read and check the trace at `path`.

    Parameters
    ----------
    path : str or os.PathLike
        A ``.npz`` file with ``op`` (int8), ``id`` (int32), ``size`` (int64) and ``stream``
        (int16), all one-dimensional and of one length, and optionally ``thread`` (int16).

    Returns
    -------
    Trace

    Raises
    ------
    TraceFileError
        The file is missing, unreadable, not such an archive, or its events contradict themselves.
    """
    name = os.fspath(path)
    try:
        # Before it is opened: a pipe would wait for a writer, a device may never end.
        if not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode):
            raise TraceFileError("is not a regular file")
        with open(path, "rb") as file:
            arrays, recorded = read_archive(file)
    except FileNotFoundError:
        raise TraceFileError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise TraceFileError(f"{name}: is a directory, a .npz file is needed") from None
    except TraceFileError as error:
        raise TraceFileError(f"{name}: {error}") from None
    except OSError as error:
        raise TraceFileError(f"{name}: cannot be read ({error})") from None
    except Exception as error:
        # Whatever zipfile and NumPy raise on hostile bytes (they raise a dozen types, among them
        # RecursionError and tokenize.TokenError), the file is at fault.
        text = str(error).partition("\n")[0] or type(error).__name__
        raise TraceFileError(f"{name}: not a valid .npz file ({text})") from None
    try:
        return check_trace(**arrays, recorded=recorded)
    except TraceFileError as error:
        raise TraceFileError(f"{name}: {error}") from None


def read_archive(file):
    """Return the arrays by name, and the recorded peaks, of an open ``.npz`` file."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        present = {n: t for n, t in OPTIONAL.items() if f"{n}.npy" in names} | ARRAYS
        for name in present:
            count = names.count(f"{name}.npy")
            if count != 1:
                raise TraceFileError(
                    f"has {count} arrays named '{name}', exactly one is needed"
                    f" (a trace has {', '.join(ARRAYS)})"
                )
        arrays = {name: read_array(archive, name, dtype, 1) for name, dtype in present.items()}
        recorded = {
            name: int(read_array(archive, name, np.int64, 0))
            for name in PEAKS
            if names.count(f"{name}.npy") == 1
        }
    return arrays, recorded


def read_array(archive, name, dtype, ndim):
    """Return one array of the archive.

    The size in the archive's directory bounds the bytes unpacked, whatever the compressed stream
    holds or its header promises.
    """
    dtype = np.dtype(dtype)
    member = archive.getinfo(f"{name}.npy")
    if member.file_size > MAX_HEADER + MAX_EVENTS * dtype.itemsize:
        raise TraceFileError(
            f"'{name}' would unpack to {member.file_size} bytes;"
            f" at most {MAX_EVENTS} events are allowed"
        )
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise TraceFileError(f"'{name}' is compressed by a method that .npz files do not use")
    with archive.open(member) as stream:
        try:
            array = np.lib.format.read_array(stream, max_header_size=MAX_HEADER)
        except ValueError as error:
            text = str(error).partition("\n")[0]
            raise TraceFileError(f"'{name}' cannot be read, {dtype} is needed ({text})") from None
        is_whole = not stream.read(1)
    if array.dtype != dtype:
        raise TraceFileError(f"'{name}' has dtype {array.dtype}, {dtype} is needed")
    if array.ndim != ndim:
        raise TraceFileError(f"'{name}' has {array.ndim} dimensions, {ndim} are needed")
    if not is_whole:
        raise TraceFileError(f"'{name}' holds more bytes than its header promises")
    return array


def check_trace(op, id, size, stream, thread=None, recorded=None):
    """Check the meaning of the arrays and return them as a :class:`Trace` with dense ids.

    Raises
    ------
    TraceFileError
        Naming the first event at fault.

    >>> import numpy as np
    >>> arrays = np.int8([1, -1, -1]), np.int32([7, 7, 7]), np.int64([512] * 3), np.int16([0] * 3)
    >>> check_trace(*arrays)
    Traceback (most recent call last):
    ...
    gputensor._alloc.replay.trace_file.TraceFileError: event 2 frees allocation 7, which is not live
    """
    lengths = [len(op), len(id), len(size), len(stream)]
    lengths += [] if thread is None else [len(thread)]
    if len(set(lengths)) != 1:
        names = ARRAYS | OPTIONAL  # in the order of the lengths; the last may be missing
        facts = ", ".join(f"{name} {n}" for name, n in zip(names, lengths, strict=False))
        raise TraceFileError(f"the arrays differ in length: {facts}")
    if lengths[0] > MAX_EVENTS:
        raise TraceFileError(f"has {lengths[0]} events, at most {MAX_EVENTS} are allowed")
    refuse((op != 1) & (op != -1), op, "op", "+1 (malloc) and -1 (free)")
    refuse(id < 0, id, "id", "0 and more")
    refuse((size < 1) | (size > MAX_SIZE), size, "size", f"1 to {MAX_SIZE} bytes")
    refuse(stream < 0, stream, "stream", "0 and more")
    dense = check_lives(op, id, size)
    streams = np.unique(stream[stream > 0])
    if len(streams) > MAX_STREAMS:
        raise TraceFileError(f"has {len(streams)} streams, at most {MAX_STREAMS} are allowed")
    if thread is not None:
        thread = check_threads(thread)
    dense_stream = np.where(stream > 0, np.searchsorted(streams, stream) + 1, 0)
    # In floating point first: the exact sum of absurd sizes would wrap.
    if len(op) and np.cumsum(op * size.astype(np.float64)).max() > MAX_LIVE:
        raise TraceFileError(f"more than {MAX_LIVE} bytes are live at one time")
    for name, value in (recorded or {}).items():
        if value < 0:
            raise TraceFileError(f"'{name}' is {value}, 0 and more are allowed")
    return Trace(op, dense, size, dense_stream.astype(np.int16), dict(recorded or {}), thread)


def check_threads(thread):
    """Return the threads numbered from 0, once they are not too many to start."""
    refuse(thread < 0, thread, "thread", "0 and more")
    threads, dense = np.unique(thread, return_inverse=True)
    if len(threads) > MAX_THREADS:
        raise TraceFileError(f"has {len(threads)} threads, at most {MAX_THREADS} are allowed")
    return dense.astype(np.int16)


def refuse(is_bad, values, name, allowed):
    """Raise for the first event at which `is_bad` holds."""
    if is_bad.any():
        event = int(is_bad.argmax())
        raise TraceFileError(f"event {event}: got {name} {values[event]}; expected {allowed}")


def check_lives(op, id, size):
    """Return dense ids, once malloc and free alternate for each id and agree on the size.

    Sorting the events by id (keeping their order) puts each allocation's life in one run: it
    starts with a malloc, and no two neighbours of the run are the same operation.
    """
    if not len(op):
        return id.astype(np.int32)
    order = np.argsort(id, kind="stable")
    sorted_id, sorted_op, sorted_size = id[order], op[order], size[order]
    is_first = np.append(True, sorted_id[1:] != sorted_id[:-1])
    is_free = sorted_op < 0
    same_as_before = np.append(False, sorted_op[1:] == sorted_op[:-1])
    is_bad = np.where(is_first, is_free, same_as_before)
    if is_bad.any():
        event = int(order[is_bad].min())
        verb, state = ("frees", "not live") if op[event] < 0 else ("allocates", "live already")
        raise TraceFileError(f"event {event} {verb} allocation {id[event]}, which is {state}")
    differs = is_free & np.append(False, sorted_size[1:] != sorted_size[:-1])
    if differs.any():
        event = int(order[differs].min())
        raise TraceFileError(
            f"event {event} frees allocation {id[event]} with size {size[event]},"
            " which is not the size it was allocated with"
        )
    dense = np.empty(len(id), np.int32)
    dense[order] = np.cumsum(is_first) - 1
    return dense
