"""The `.gtp` file: a program as a safetensors file, and the checks that every file must pass.

The metadata has `format`, `version` and the SHA-256 of the entry `program`, which is the JSON of
the functions. ``kernel.N.sm_90`` and ``launches.N`` are for GPUs (ahead/ahead_file.py);
``constant.N`` and ``weight.NAME`` hold elements; weights may be in a safetensors
file beside the program instead, ours or one that was there before. Elements are mapped here, and
read and compared with their hashes when they go to a device (weights.py).

A minor version adds fields and entries that older readers ignore; another major one is refused.
"""

import hashlib
import json
import os
import re
from contextlib import contextmanager
from math import prod

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.file_mapping import SafetensorsFileError, mapping_of, start_in
from gputensor._arrays.safetensors_file import TYPE_OF, Part, entry_array, open_file, write_file
from gputensor.errors import Described, ProgramError, ProgramFileError, argument_error
from gputensor.programs import function_json
from gputensor.programs.ahead import ahead_file
from gputensor.programs.ahead.packed import packed, unpacked
from gputensor.programs.passes import prepare
from gputensor.programs.verify import verify_program
from gputensor.programs.weights import host_bytes, with_hashes
from gputensor.strict_json import loads, shown

__all__ = ["VERSION", "describe", "names_of", "read", "write"]

FORMAT = "gtp"
VERSION = "1.0"
PROGRAM = "program"
ALIGNMENT = 256
MOST_PROGRAM = 64 << 20
MOST_VALUES = 1 << 23
MOST_PATH = 255
BESIDE = f"a relative path inside the folder of the program, at most {MOST_PATH} characters"
_NUMPY = {row.name: row.numpy for row in DTYPES}


def write(data, path, weights=None, compress=True, prepared=True):
    """Write a ProgramData to a `.gtp` file, completely or not at all.

    Parameters
    ----------
    data : ProgramData
    path : str or os.PathLike
    weights : str or os.PathLike, optional
        A safetensors file for the weights, relative to the folder of `path` and inside it. Weights
        that are mapped from this file are referenced, and the file is not rewritten.
    compress : bool, optional
        Whether kernels and launches, and the JSON that names them, are zlib streams.
    prepared : bool, optional
        False to write the weights that the functions were traced with (passes/prepare.py).
    """
    path = os.fspath(path)
    with_hashes(data.weights)
    kept = data.weights if prepared else with_hashes(traced_weights(data, path, weights))
    parts = {name: weight_part(entry_name(name), w) for name, w in kept.items()}
    tables = {}
    if weights is not None:
        weights = os.fspath(weights)
        beside = inside_folder(os.path.dirname(path), weights)
        if beside is None or os.path.realpath(path) == beside:
            raise argument_error(ValueError, "weights", weights, BESIDE)
        names = mapped_entries(kept, beside)
        if not names:
            if is_read(data.weights, beside):
                rule = "another file than one of another format that weights are read from"
                raise argument_error(ValueError, "weights", weights, rule)
            used = names_of(data.functions.values(), ("weight",))
            names = {name: name for name in data.weights if name in used}
            apart = [parts[name]._replace(name=name) for name in names]
            write_file(beside, apart, {"format": "gtp-weights"}, ALIGNMENT)
        parts = {name: part for name, part in parts.items() if name not in names}
        tables = {weights: names}
    ahead, code = ahead_file.parts_of(data, compress)
    text = program_text(data, tables, ahead, None if prepared else data.traced)
    metadata = {"format": FORMAT, "version": VERSION}
    # A program without code stays one that other tools read.
    stream = packed(text) if compress and code else None
    if stream is not None:
        metadata["program_nbytes"] = str(len(text))
        text = stream
    metadata["program_sha256"] = hashlib.sha256(text).hexdigest()
    program = Part(PROGRAM, "U8", (len(text),), len(text), lambda: [text])
    write_file(path, [program, *code, *parts.values()], metadata, ALIGNMENT)


def traced_weights(data, path, weights):
    """Return the weights of a Traced; ValueError if none is mapped from the file `weights`."""
    if data.traced is None:
        got = Described("a program without weights of a file")
        rule = "one of mapped weights, for the host device or GPUs by name, without calibrate"
        raise argument_error(ValueError, "prepared=False", got, rule)
    beside = weights and inside_folder(os.path.dirname(path), os.fspath(weights))
    if not beside or not mapped_entries(data.traced.weights, beside):
        rule = f"the file that weights of the program are mapped from, {BESIDE}"
        raise argument_error(ValueError, "weights", weights, rule)
    return data.traced.weights


def program_text(data, tables, ahead=None, traced=None):
    """Return the bytes of the entry `program`; ValueError if they could not be read again."""
    found = function_json.to_json(data)
    found["apart"] = tables
    if traced is not None:
        found["prepare"] = prepare.to_json(traced)
    if ahead is not None:
        found["ahead"] = ahead
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MOST_PROGRAM:
        raise ValueError(f"program: got {len(text)} bytes; expected at most {MOST_PROGRAM}")
    try:
        loads(text, MOST_VALUES, function_json.MAX_DEPTH)
    except ValueError as error:
        raise ValueError(f"program: {error}") from None
    return text


def names_of(functions, kinds):
    """Return the names of values of these kinds in functions and their regions."""
    found = set()
    for function in functions:
        found |= {value.name for value in function.values if value.kind in kinds}
        for call in function.calls:
            found |= names_of(call.regions, kinds)
    return found


def entry_name(name):
    return name if re.fullmatch(r"constant\.\d+", name) else f"weight.{name}"


def weight_part(entry, weight):
    kind, shape = stored(weight)
    nbytes = prod(weight.shape) * _NUMPY[weight.dtype].itemsize
    return Part(entry, kind, shape, nbytes, lambda: [host_bytes(weight)])


def stored(weight):
    """Return the format's element type and shape for a weight: complex128 is pairs of float64."""
    if weight.dtype == "complex128":
        return "F64", (prod(weight.shape), 2)
    return TYPE_OF[weight.dtype], tuple(weight.shape)


def inside_folder(folder, path):
    """Return the real path of a short relative `path` inside `folder`, or None; resolves links."""
    if os.path.isabs(path) or not 0 < len(path) <= MOST_PATH or "\0" in path:
        return None
    folder = os.path.realpath(folder or os.curdir)
    target = os.path.realpath(os.path.join(folder, path))
    is_inside = target.startswith(os.path.join(folder, ""))
    return target if is_inside and os.pardir not in path.split("/") else None


def mapped_entries(weights, path):
    """Return {weight: entry} for the weights that are arrays over entries of the file at `path`."""
    try:
        facts = os.stat(path)
    except OSError:
        return {}
    tables, found = {}, {}
    for name, weight in weights.items():
        mapping = mapping_of(weight.source)
        if mapping is None or mapping.identity != (facts.st_dev, facts.st_ino):
            continue
        if id(mapping) not in tables:
            entries = {e.start: (n, e) for n, e in mapping.entries.items() if e.start < e.stop}
            tables[id(mapping)] = entries
        start = start_in(mapping, weight.source)
        entry_name, entry = tables[id(mapping)].get(start, (None, None))
        if entry is not None and (entry.type, entry.shape) == stored(weight):
            found[name] = entry_name
    return found


def is_read(weights, path):
    """Whether a weight is an array over the file at `path`."""
    try:
        facts = os.stat(path)
    except OSError:
        return False
    mappings = filter(None, (mapping_of(weight.source) for weight in weights.values()))
    return any(one.identity == (facts.st_dev, facts.st_ino) for one in mappings)


def read(path, weights=None):
    """Return the ProgramData of a `.gtp` file, with weights as read-only arrays over mapped files.

    Parameters
    ----------
    path : str or os.PathLike
    weights : str or os.PathLike, optional
        The file with the weights that are not inside the program, in any folder.

    Raises
    ------
    ProgramFileError
        If the file is missing, not a program, damaged, or of another major version.
    """
    with one_error(path):
        opened = open_file(path)
        data, tables = read_program(opened)
        kept = data.weights if data.traced is None else data.traced.weights
        places = {name: (opened, entry_name(name)) for name in kept}
        for beside, names in tables.items():
            apart = open_file(path_beside(path, beside) if weights is None else weights)
            places |= {name: (apart, entry) for name, entry in names.items()}
        for weight in kept.values():
            weight.source = mapped(weight, *places[weight.name])
        if data.traced is not None:
            prepare.prepare(data)
    if weights is not None and not tables:
        rule = "None, because the program contains its weights"
        raise argument_error(ValueError, "weights", os.fspath(weights), rule)
    return data


def describe(path):
    """Return the ProgramData of a file, without the elements of weights, and facts about the file.

    Raises
    ------
    ProgramFileError
        As `read` does; but separate weight files may be missing.
    """
    with one_error(path):
        opened = open_file(path)
        data, tables = read_program(opened)
    facts = {
        **opened.metadata,
        "nbytes": len(opened.mapping),
        "weights": next(iter(tables), "inside"),
    }
    facts.pop("padding", None)
    return data, facts


@contextmanager
def one_error(path):
    """Make every fault of a file a ProgramFileError of one line that names the file."""
    try:
        yield
    except (ProgramError, SafetensorsFileError) as error:
        name, text = os.fsdecode(path), str(error)
        name = name if name.isprintable() else ascii(name)
        text = text if text.startswith(f"{name}: ") else f"{name}: {text}"
        raise ProgramFileError(text) from None


def read_program(file):
    """Return the ProgramData of an open file, and its separate weights: {file: {name: entry}}."""
    kind = file.metadata.get("format")
    if kind != FORMAT:
        raise argument_error(ProgramFileError, "format", described(kind), f"{FORMAT!r}")
    version = file.metadata.get("version", "")
    major = VERSION.split(".")[0]
    if not re.fullmatch(rf"{major}\.[0-9]{{1,4}}", version):
        raise argument_error(ProgramFileError, "version", described(version), f"{major}.N")
    entry = file.entries.get(PROGRAM)
    if entry is None or entry.type != "U8" or entry.stop - entry.start > MOST_PROGRAM:
        raise argument_error(
            ProgramFileError, PROGRAM, described(entry), f"U8, at most {MOST_PROGRAM} bytes"
        )
    text = bytes(file.data(PROGRAM))
    found = hashlib.sha256(text).hexdigest()
    if found != file.metadata.get("program_sha256"):
        raise argument_error(
            ProgramFileError, "program", Described(f"SHA-256 {found}"), "that of the metadata"
        )
    nbytes = file.metadata.get("program_nbytes")
    if nbytes is not None:
        if not re.fullmatch("[1-9][0-9]{0,7}", nbytes) or int(nbytes) > MOST_PROGRAM:
            rule = f"1 to {MOST_PROGRAM}"
            raise argument_error(ProgramFileError, "program_nbytes", described(nbytes), rule)
        text = unpacked(PROGRAM, text, int(nbytes))
    try:
        plain = loads(text, MOST_VALUES, function_json.MAX_DEPTH)
    except ValueError as error:
        raise ProgramFileError(f"program: {error}") from None
    data = function_json.from_json(plain)
    verify_program(data)
    data.ahead = ahead_file.read_ahead(plain.get("ahead"), file)
    if plain.get("prepare") is not None:
        data.traced = prepare.from_json(plain["prepare"], plain.get("states"))
    kept = data.weights if data.traced is None else data.traced.weights
    return data, checked_tables(plain.get("apart", {}), kept)


def checked_tables(tables, weights):
    """Return the table of separate weights after a check of its form."""
    is_table = isinstance(tables, dict) and len(tables) <= 1
    for names in tables.values() if is_table else ():
        is_table = isinstance(names, dict) and all(isinstance(n, str) for n in names.values())
        unknown = next((n for n in names if n not in weights), None) if is_table else None
        if unknown is not None:
            raise argument_error(
                ProgramFileError, "apart", described(unknown), "the name of a weight"
            )
    if not is_table:
        raise argument_error(
            ProgramFileError, "apart", described(tables), "one file, with the entry of each weight"
        )
    return tables


def path_beside(path, beside):
    found = inside_folder(os.path.dirname(os.fsdecode(path)), beside)
    if found is None:
        raise argument_error(ProgramFileError, "apart", described(beside), BESIDE)
    return found


def mapped(weight, file, entry_name):
    """Return the elements of a weight as an array over its entry, which must be as declared."""
    where = f"weights.{weight.name}"
    if not re.fullmatch("[0-9a-f]{64}", weight.sha256):
        raise argument_error(
            ProgramFileError, f"{where}.sha256", weight.sha256[:70], "64 hex digits"
        )
    entry = file.entries.get(entry_name)
    if entry is None:
        raise argument_error(
            ProgramFileError,
            where,
            Described(f"no entry {shown(entry_name)}"),
            f"an entry of {file.path}",
        )
    if (entry.type, entry.shape) != stored(weight):
        raise argument_error(
            ProgramFileError,
            where,
            described((entry.type, entry.shape)),
            "{} {}".format(*stored(weight)),
        )
    array = entry_array(file, entry_name)
    if weight.dtype == "complex128":
        array = array.reshape(-1).view(np.complex128)
    return array.reshape(weight.shape)


def described(value):
    return Described(shown(value))
