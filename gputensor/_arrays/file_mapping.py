"""Files whose bytes are mapped: those of arrays in safetensors, .gtp and ONNX's external data.

A process that reads mapped bytes which the file no longer has is ended by the system. So a mapping
is found again from any array over it, and checked before the array is read.
"""

import mmap

import numpy as np

from gputensor.errors import GpuTensorError

__all__ = [
    "FileMapping", "SafetensorsFileError", "check_mapped", "map_file", "mapping_of", "start_in",
]  # fmt: skip


class SafetensorsFileError(GpuTensorError, ValueError):
    """A file is missing, is no safetensors file, contradicts itself, or has lost mapped bytes."""


class FileMapping(mmap.mmap):
    """The bytes of a file, read only. `mapping_of` finds it for an array over it."""

    path = ""  # as shown in messages
    identity: tuple = ()  # device and inode number of the file
    state: tuple = ()  # its length, and the times of its last changes
    entries: dict = {}

    def check_whole(self):
        """Raise if the file has become shorter, because its lost bytes must not be accessed."""
        if self.size() < len(self):
            raise SafetensorsFileError(
                f"{self.path}: got {self.size()} bytes; expected the {len(self)} that the file "
                "had when it was opened"
            )


def map_file(file, name, facts):
    """Return a FileMapping of an open regular file that is not empty; `facts` are its `fstat`."""
    mapping = FileMapping(file, facts.st_size, access=mmap.ACCESS_READ)
    mapping.path = name
    mapping.identity = facts.st_dev, facts.st_ino
    mapping.state = facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
    return mapping


def mapping_of(array):
    """Return the FileMapping over which a NumPy array is a view, or None."""
    while array is not None and not isinstance(array, FileMapping):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


def check_mapped(array):
    """Raise if an array is over a mapped file that has become shorter since it was opened."""
    mapping = mapping_of(array)
    if mapping is not None:
        mapping.check_whole()


def start_in(mapping, array):
    """Return the position in the file of the first byte of an array over its mapping."""
    first = np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]
    return array.__array_interface__["data"][0] - first
