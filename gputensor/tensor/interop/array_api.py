"""The array API standard: the supported versions, and the result of ``__array_namespace__``.

The namespace is the package itself. `Info` implements the standard's inspection functions.
"""

import importlib

from gputensor._arrays.dtypes import DEFAULT_COMPLEX, DEFAULT_FLOAT, DEFAULT_INT, isdtype
from gputensor._arrays.element_types import DTYPES
from gputensor._driver.registry import cuda_device_count
from gputensor._driver.settings import host_count
from gputensor.streams.queue import Device

__all__ = ["Info", "VERSION", "namespace"]

VERSION = "2025.12"
KNOWN_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
#: The dtypes of the standard; it lacks bfloat16, float16 and float8.
STANDARD = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 "
    "complex128".split()
)


def namespace(api_version=None):
    """Return the package; ValueError for a version of the standard that it does not support.

    >>> namespace().__name__
    'gputensor'
    """
    if api_version is not None and api_version not in KNOWN_VERSIONS:
        raise ValueError(
            f"api_version: got {api_version!r}; expected {', '.join(KNOWN_VERSIONS)} or None"
        )
    return importlib.import_module("gputensor")


class Info:
    """The result of ``__array_namespace_info__()``."""

    def capabilities(self):
        """Return the support of optional features of the standard.

        >>> Info().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self):
        """Return the current device."""
        return Device()

    def default_dtypes(self, *, device=None):
        """Return the default dtypes of creation functions, by kind."""
        Device(device)  # raises for one that is none
        return {
            "real floating": DTYPES[DEFAULT_FLOAT].numpy,
            "complex floating": DTYPES[DEFAULT_COMPLEX].numpy,
            "integral": DTYPES[DEFAULT_INT].numpy,
            "indexing": DTYPES[DEFAULT_INT].numpy,
        }

    def dtypes(self, *, device=None, kind=None):
        """Return the standard's dtypes of a kind (default: all), by name."""
        Device(device)  # raises for one that is none
        return {
            row.name: row.numpy
            for row in DTYPES
            if row.name in STANDARD and (kind is None or isdtype(row.numpy, kind))
        }

    def devices(self):
        """Return a tuple of all devices: the host devices with names, and every CUDA device."""
        hosts = (Device("host", i) for i in range(host_count()))
        return (*hosts, *(Device("cuda", i) for i in range(cuda_device_count())))
