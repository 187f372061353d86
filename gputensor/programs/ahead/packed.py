"""Kernels, launches and steps in a program's file: zlib streams where that makes them smaller.

The JSON has the size of each as it was, under ``packed`` by the name of its entry; an entry that is
not named there is stored as it is. Hashes are those of the plain bytes. The JSON of such a program
is a stream itself; its size is in the metadata, and its hash that of the stream.
"""

from __future__ import annotations

import zlib

from gputensor.errors import Described, ProgramFileError, argument_error

__all__ = ["MOST_NBYTES", "packed", "unpacked"]

MOST_NBYTES = 1 << 28
_LEVEL = 9


def packed(content):
    """Return the zlib stream of bytes, or None where it would not be smaller."""
    if len(content) > MOST_NBYTES:
        return None
    made = zlib.compress(content, _LEVEL)
    return made if len(made) < len(content) else None


def unpacked(name, content, nbytes):
    """Return the bytes of an entry of a file.

    Parameters
    ----------
    name : str
    content : bytes-like
        As the file has it.
    nbytes : int or None
        The size that the file declares; no more is ever made. None: it is stored as it is.

    Raises
    ------
    ProgramFileError
        The content is no such stream, or has another size.
    """
    if nbytes is None:
        return bytes(content)
    stream, found = zlib.decompressobj(), b""
    try:
        found = stream.decompress(content, nbytes + 1)
    except zlib.error:
        pass
    if len(found) != nbytes or not stream.eof or stream.unused_data:
        got = Described("other bytes")
        raise argument_error(ProgramFileError, name, got, f"a zlib stream of {nbytes}")
    return found
