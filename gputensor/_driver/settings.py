"""Settings of host devices from the environment: their number and their capacity.

The variables are read when a device opens, never at import.
"""

import os
import re

from gputensor.errors import argument_error

__all__ = ["LARGEST_HOST", "MOST_HOSTS", "host_capacity", "host_count", "parse_nbytes"]

# A process has 128 TiB of addresses, and each segment of the allocator reserves 9/8 of the device's
# capacity.
LARGEST_HOST = 1 << 44
# The most named host devices; open_host uses the numbers below theirs.
MOST_HOSTS = 16
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_nbytes(text, name="value"):
    """Return the number of bytes that a text such as ``"4G"`` or ``"123456"`` means.

    Parameters
    ----------
    text : str
        A whole number, optionally followed by ``K``, ``M``, ``G`` or ``T`` (powers of 1024), and
        then optionally by ``B`` or ``iB``.
    name : str
        The name of the value, for the message.

    Raises
    ------
    ValueError
        The text is anything else.

    Examples
    --------
    >>> parse_nbytes("4G") == 4 << 30
    True
    """
    match = re.fullmatch(r"\s*(\d{1,20})\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE | re.ASCII)
    if match is None:
        raise argument_error(ValueError, name, text, "bytes such as 4294967296 or 4G")
    return int(match[1]) * UNITS[match[2].upper()]


def host_capacity():
    """Return the bytes of a host device: ``GPUTENSOR_HOST_MEMORY``, or half the physical memory.

    That half is divided evenly among the devices of :func:`host_count`.

    >>> host_capacity() > 0
    True
    """
    text = os.environ.get("GPUTENSOR_HOST_MEMORY")
    if text is not None:
        nbytes = parse_nbytes(text, "GPUTENSOR_HOST_MEMORY")
        if nbytes > LARGEST_HOST:
            raise argument_error(
                ValueError, "GPUTENSOR_HOST_MEMORY", text, f"at most {LARGEST_HOST} bytes"
            )
        return nbytes
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // host_count()


def host_count():
    """Return the number of host devices with names: ``GPUTENSOR_HOST_DEVICES``, 1 by default.

    >>> host_count()
    1
    """
    text = os.environ.get("GPUTENSOR_HOST_DEVICES", "1")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MOST_HOSTS):
        raise argument_error(
            ValueError, "GPUTENSOR_HOST_DEVICES", text, f"a number from 1 to {MOST_HOSTS}"
        )
    return int(text)
