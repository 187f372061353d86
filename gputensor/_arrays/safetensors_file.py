"""The safetensors format: a JSON header and the bytes of named arrays, which are mapped.

A file is 8 bytes with the length of the header, the header, and the data without holes. The header
is not trusted: sizes are checked before memory is spent, and each fault raises a
:class:`SafetensorsFileError` of one line. The bytes of an entry are read when they are used.
"""

import itertools
import json
import os
import stat
from math import prod
from typing import NamedTuple

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.file_mapping import SafetensorsFileError, map_file
from gputensor.atomic_file import write_whole
from gputensor.errors import argument_error
from gputensor.strict_json import loads, shown

__all__ = [
    "DTYPE_OF",
    "TYPE_OF",
    "Entry",
    "Part",
    "SafetensorsFile",
    "entry_array",
    "open_file",
    "write_file",
]

# The format's names of element types -> our names. It has none for complex128.
DTYPE_OF = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3",
    "F8_E5M2": "float8_e5m2",
}
TYPE_OF = {dtype: name for name, dtype in DTYPE_OF.items()}
_NUMPY = {row.name: row.numpy for row in DTYPES}

MOST_HEADER = 64 << 20
MOST_ENTRIES = 100_000
MOST_AXES = 16
#: The data of a file with aligned entries begins at a multiple of it, as memory pages do.
DATA_ALIGNMENT = 4096
PADDING = "pad."


class Entry(NamedTuple):
    """The element type, shape and bytes of an array: `start` to `stop` of the file."""

    type: str
    shape: tuple
    start: int
    stop: int


class Part(NamedTuple):
    """An array to be written; ``chunks()`` returns its bytes, as buffers."""

    name: str
    type: str
    shape: tuple
    nbytes: int
    chunks: object


class SafetensorsFile(NamedTuple):
    """An open file: `entries` by name, without padding, in the order of their bytes."""

    path: str
    metadata: dict
    entries: dict
    mapping: object

    def data(self, name):
        """Return the bytes of an entry as a view of the mapped file."""
        entry = self.entries[name]
        self.mapping.check_whole()
        return memoryview(self.mapping)[entry.start : entry.stop]


def open_file(path):
    """Read and check the header of the file at `path`, and map its data.

    Raises
    ------
    SafetensorsFileError
        The file is missing, is not a regular file, or breaks a rule of the format.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise argument_error(TypeError, "path", path, "a str or an os.PathLike")
    name = os.fsdecode(path)
    name = name if name.isprintable() else ascii(name)
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SafetensorsFileError(f"{name}: cannot be opened: {reason}") from None
    try:
        return read_header(file, name)
    except SafetensorsFileError:
        raise
    except (OSError, ValueError) as error:
        raise SafetensorsFileError(f"{name}: {error}") from None
    finally:
        os.close(file)


def read_header(file, name):
    facts = os.fstat(file)
    if not stat.S_ISREG(facts.st_mode):
        raise ValueError("is not a regular file")
    most = min(MOST_HEADER, facts.st_size - 8)
    if most < 2:
        raise ValueError(f"got {facts.st_size} bytes; expected at least 10")
    length = int.from_bytes(os.pread(file, 8, 0), "little")
    if not 2 <= length <= most:
        raise ValueError(
            f"got a header of {length} bytes; expected 2 to {most}: the file has another format, "
            "or its end is missing"
        )
    header = os.pread(file, length, 8)
    if len(header) != length:
        raise ValueError(f"got {len(header)} bytes of the header; expected {length}")
    if not header.startswith(b"{"):
        raise ValueError("the header is not a JSON object")
    try:
        found = loads(header, 32 * MOST_ENTRIES)
    except ValueError as error:
        raise ValueError(f"header: {error}") from None
    metadata = checked_metadata(found.pop("__metadata__", {}))
    entries = checked_entries(found, 8 + length, facts.st_size)
    mapping = map_file(file, name, facts)
    if metadata.get("padding") == PADDING:
        entries = {name: e for name, e in entries.items() if not name.startswith(PADDING)}
    mapping.entries = entries
    return SafetensorsFile(name, metadata, entries, mapping)


def checked_metadata(found):
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ValueError("header: __metadata__ is not an object of strings")
    return found


def checked_entries(found, start, size):
    """Return the entries in the order of their bytes, which must fill the file from `start` on."""
    if len(found) > MOST_ENTRIES:
        raise ValueError(f"got {len(found)} entries; expected at most {MOST_ENTRIES}")
    entries = [(name, checked_entry(name, fields, start)) for name, fields in found.items()]
    entries.sort(key=lambda item: (item[1].start, item[1].stop))
    place = start
    for name, entry in entries:
        if entry.start != place:
            fault = "overlaps the one before" if entry.start < place else "leaves a hole"
            raise ValueError(f"entry {shown(name)} {fault}")
        place = entry.stop
    if place != size:
        raise ValueError(f"got {size} bytes; expected the {place} that the entries take")
    return dict(entries)


def checked_entry(name, fields, start):
    try:
        kind, shape, (first, last) = (fields[key] for key in ("dtype", "shape", "data_offsets"))
    except (TypeError, KeyError, ValueError):
        raise ValueError(
            f"entry {shown(name)}: got {shown(fields)}; expected dtype, shape and two data_offsets"
        ) from None
    if not isinstance(kind, str):
        raise ValueError(f"entry {shown(name)}: dtype: got {shown(kind)}; expected a string")
    if not isinstance(shape, list) or len(shape) > MOST_AXES or not all(map(is_extent, shape)):
        raise ValueError(
            f"entry {shown(name)}: shape: got {shown(shape)}; expected at most {MOST_AXES} "
            "extents, each 0 or more"
        )
    if not (is_extent(first) and is_extent(last) and first <= last):
        raise ValueError(
            f"entry {shown(name)}: data_offsets: got {shown([first, last])}; expected first <= last"
        )
    if kind in DTYPE_OF:
        nbytes = prod(shape) * _NUMPY[DTYPE_OF[kind]].itemsize
        if last - first != nbytes:
            raise ValueError(
                f"entry {shown(name)}: got {last - first} bytes; expected {shown(nbytes)} for "
                f"{kind}{shown(shape)}"
            )
    return Entry(kind, tuple(shape), start + first, start + last)


def is_extent(value):
    return type(value) is int and 0 <= value < 2**62


def entry_array(file, name):
    """Return an entry of an open file as a read-only NumPy array over the mapping."""
    entry = file.entries[name]
    if entry.type not in DTYPE_OF:
        raise SafetensorsFileError(
            f"{file.path}: entry {shown(name)}: got element type {shown(entry.type)}; "
            f"expected one of {', '.join(DTYPE_OF)}"
        )
    dtype = _NUMPY[DTYPE_OF[entry.type]]
    if entry.start == entry.stop:
        return np.empty(entry.shape, dtype)
    array = np.frombuffer(file.data(name), np.uint8)
    if dtype == np.bool_ and array.max() > 1:
        raise SafetensorsFileError(f"{file.path}: entry {shown(name)}: a bool is neither 0 nor 1")
    return array.view(dtype).reshape(entry.shape)


def write_file(path, parts, metadata, alignment=1):
    """Write the parts in order, whole or not at all; a failed write leaves no file.

    With an `alignment`, the data begins at a multiple of 4,096 and each part at a multiple of
    `alignment`: entries ``pad.N`` fill the gaps, because the format allows no holes.
    """
    is_aligned = alignment > 1
    metadata = {**metadata, "padding": PADDING} if is_aligned else metadata
    header = {"__metadata__": metadata} if metadata else {}
    body, place, numbers = [], 0, itertools.count()
    for part in parts:
        if part.name in header or is_aligned and part.name.startswith(PADDING):
            raise ValueError(f"name: got {shown(part.name)}; expected one that no entry has yet")
        gap = -place % alignment
        if gap:
            pad = Part(f"{PADDING}{next(numbers)}", "U8", (gap,), gap, lambda n=gap: [bytes(n)])
            place = add_entry(header, body, pad, place)
        place = add_entry(header, body, part, place)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % (DATA_ALIGNMENT if is_aligned else 8))
    if len(text) > MOST_HEADER or len(header) > MOST_ENTRIES:
        raise ValueError(
            f"got {len(header)} entries and a header of {len(text)} bytes; expected at most "
            f"{MOST_ENTRIES} and {MOST_HEADER}"
        )

    def write(file):
        file.write(len(text).to_bytes(8, "little") + text)
        for part in body:
            written = sum(file.write(chunk) for chunk in part.chunks())
            if written != part.nbytes:
                raise ValueError(f"{part.name}: got {written} bytes; expected {part.nbytes}")

    write_whole(path, write)


def add_entry(header, body, part, place):
    """Append a part to the others; returns where the next one begins."""
    stop = place + part.nbytes
    header[part.name] = {
        "dtype": part.type,
        "shape": list(part.shape),
        "data_offsets": [place, stop],
    }
    body.append(part)
    return stop
