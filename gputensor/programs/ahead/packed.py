"""Kernels, launches and steps in a program's file: zlib streams if these are smaller.

The JSON has the decompressed size of each under ``packed``, by the name of its entry; an entry that
is not named there is not compressed. Hashes are those of the decompressed bytes. The JSON of such a
program is a stream too; its size is in the metadata, and its hash is that of the stream.
"""

from __future__ import annotations

import zlib

from gputensor.errors import Described, ProgramFileError, argument_error

__all__ = ["MOST_NBYTES", "packed", "unpacked"]

MOST_NBYTES = 1 << 28
_LEVEL = 9


def packed(content):
    """Return the zlib stream of bytes, or None if it would not be smaller."""
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
        The bytes in the file.
    nbytes : int or None
        The decompressed size that the file declares, which limits the memory. None if the entry is
        not compressed.

    Raises
    ------
    ProgramFileError
        If the content is not a valid stream, or has another decompressed size.
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
