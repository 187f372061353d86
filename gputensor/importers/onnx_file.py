"""Reads an untrusted ONNX file: its bytes, external data, and the checks of both.

Lengths are checked before memory is allocated, and external data must be inside the folder of the
model. Each fault raises a ModelError of one line.
"""

import math
import os
import stat
from pathlib import Path

import numpy as np

from gputensor._arrays.file_mapping import map_file
from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.onnx_values import numpy_dtype

try:
    import onnx
    from google.protobuf.message import DecodeError
except ImportError as _error:
    raise ImportError(
        f"load_onnx: needs the package onnx: pip install 'gputensor[onnx]' ({_error})"
    ) from _error

__all__ = ["array_of", "onnx", "read_model"]

MOST_BYTES = 1 << 31  # protobuf's own limit
MOST_ELEMENTS = 1 << 40
_PACKED = {"uint4": 2, "int4": 2, "float4_e2m1fn": 2, "uint2": 4, "int2": 4}
_EXTERNAL = 1  # TensorProto.EXTERNAL


def read_model(path):
    """Return (ModelProto, folder) of a file."""
    path = Path(path)
    name = path.name
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # a pipe would be waited for, and a device has no end
            got = Described("a folder" if path.is_dir() else "a pipe, a socket or a device")
            raise argument_error(ModelError, str(path), got, "an ONNX file")
        if facts.st_size >= MOST_BYTES:
            rule = "less than 2 GiB (larger models keep weights in files beside them)"
            raise argument_error(ModelError, name, Described(f"{facts.st_size} bytes"), rule)
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except OSError as error:
        got = Described(error.strerror or str(error))
        raise argument_error(ModelError, str(path), got, "an ONNX file") from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RuntimeError):
        got = Described("bytes that are not an ONNX model")
        raise argument_error(ModelError, name, got, "an ONNX file") from None
    if not model.HasField("graph") or not model.opset_import:
        got = Described("a file without a graph or without operator sets")
        raise argument_error(ModelError, name, got, "an ONNX model")
    return model, ModelFolder(path.resolve().parent)


class ModelFolder:
    """The folder of a model; each file of external data in it is mapped once."""

    def __init__(self, path):
        self.path = path
        self.mappings = {}

    def mapping(self, name, location):
        """Return the FileMapping of a file, or None if it is empty; `name` is the tensor's."""
        if location not in self.mappings:
            path = _inside(name, location, self.path)
            try:
                with path.open("rb") as file:
                    facts = os.fstat(file.fileno())
                    found = map_file(file.fileno(), location, facts) if facts.st_size else None
            except OSError as error:
                got = Described(f"{location} ({error.strerror or error})")
                raise argument_error(ModelError, name, got, "external data") from None
            self.mappings[location] = found
        return self.mappings[location]


def array_of(proto, folder=None):
    """Return a TensorProto as a NumPy array; external data in a ModelFolder is mapped, not read."""
    name = proto.name or "constant"
    if isinstance(name, bytes):  # protobuf returns it so if it is not UTF-8
        name = name.decode(errors="backslashreplace")
    dtype, shape = numpy_dtype(proto.data_type), tuple(proto.dims)
    if any(extent < 0 for extent in shape) or math.prod(shape) > MOST_ELEMENTS:
        rule = "extents of at least 0, and at most 2**40 elements"
        raise argument_error(ModelError, name, shape, rule)
    count = math.prod(shape)
    nbytes = -(-count // _PACKED[dtype.name]) if dtype.name in _PACKED else count * dtype.itemsize
    if proto.data_location == _EXTERNAL:
        if dtype.name in _PACKED or dtype.kind == "O":
            got = Described(f"external data of {dtype.name}")
            raise argument_error(ModelError, name, got, "an element type of whole bytes")
        return _external(proto, name, dtype, shape, nbytes, folder)
    if proto.HasField("raw_data"):
        if len(proto.raw_data) != nbytes:
            got = Described(f"{len(proto.raw_data)} bytes")
            raise argument_error(ModelError, name, got, f"{nbytes} for {dtype.name}{list(shape)}")
        if dtype.name not in _PACKED and dtype.kind != "O":
            return np.frombuffer(proto.raw_data, dtype.newbyteorder("<")).reshape(shape)
    else:
        held = max(len(getattr(proto, field)) for field in _FIELDS)
        if held < count // 4 or held > 2 * count:
            got = Described(f"{held} elements")
            raise argument_error(ModelError, name, got, f"{count} for {dtype.name}{list(shape)}")
    try:
        return onnx.numpy_helper.to_array(proto)
    except (TypeError, ValueError) as error:
        got = Described(str(error).splitlines()[0])
        raise argument_error(ModelError, name, got, f"data for {dtype.name}{list(shape)}") from None


_FIELDS = (
    "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data",
)  # fmt: skip


def _external(proto, name, dtype, shape, nbytes, folder):
    facts = {entry.key: entry.value for entry in proto.external_data}
    location = facts.get("location", "")
    if folder is None:
        _refuse_location(name, location)
    mapping = folder.mapping(name, location)
    try:
        offset, length = int(facts.get("offset", 0)), int(facts.get("length", nbytes))
    except ValueError:
        got = Described("an offset or a length that is not a number")
        raise argument_error(ModelError, name, got, "external data") from None
    size = 0 if mapping is None else len(mapping)
    if length != nbytes or offset < 0 or offset + nbytes > size:
        got = Described(f"bytes {offset} to {offset + length} of the {size} in {location}")
        raise argument_error(ModelError, name, got, f"{nbytes} for {dtype.name}{list(shape)}")
    if not nbytes:
        return np.zeros(shape, dtype)
    mapped = np.frombuffer(mapping, np.uint8, nbytes, offset)
    if offset % dtype.itemsize:
        mapped = np.array(mapped)
    return mapped.view(dtype).reshape(shape)


def _inside(name, location, folder):
    """Return the file of external data, which must be inside the model's folder, links resolved."""
    is_text = isinstance(location, str)  # other bytes are not UTF-8
    if not location or not is_text or os.path.isabs(location) or "\0" in location:
        _refuse_location(name, location)
    path = (Path(folder) / location).resolve()
    if Path(folder) not in path.parents or not os.path.isfile(path):  # False for a too long name
        _refuse_location(name, location)
    return path


def _refuse_location(name, location):
    raise argument_error(ModelError, name, location, "a file inside the folder of the model")
