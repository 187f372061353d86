"""Parts that all user kernels share: programs, options, names, numbers and structs."""

import re
from typing import NamedTuple

import numpy as np

from gputensor.errors import Described, argument_error

__all__ = [
    "C_TYPES", "MOST_THREADS", "UserProgram", "named", "number_of", "option_list", "packed",
    "settings",
]  # fmt: skip

MOST_THREADS = 1024
_NAME = re.compile(r"[A-Za-z_]\w*")
C_TYPES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long long", "uint8": "unsigned char", "uint16": "unsigned short",
    "uint32": "unsigned int", "uint64": "unsigned long long", "float32": "float",
    "float64": "double",
}  # fmt: skip


class UserProgram(NamedTuple):
    """A user's program in place of a `Program`, with its complete text."""

    path: str
    source: str
    options: tuple
    minimum: int = 0
    architecture: str = ""
    entry: str = "kernel"

    def text(self):
        """Return the complete text."""
        return self.source


def option_list(options, name):
    """Return NVRTC's options as a tuple."""
    if isinstance(options, str) or not all(isinstance(one, str) for one in options):
        raise argument_error(TypeError, f"{name}: options", options, "a sequence of str")
    return tuple(options)


def settings(defaults, given, owner):
    """Return the defaults, updated with the given keywords; TypeError for an unknown keyword."""
    unknown = given.keys() - defaults.keys()
    if unknown:
        got = Described(", ".join(sorted(unknown)))
        raise argument_error(TypeError, f"{owner}: keywords", got, ", ".join(defaults))
    return defaults | given


def named(name, owner, pattern=_NAME):
    """Return a name; ValueError unless it is a C++ identifier, or matches `pattern`."""
    if not isinstance(name, str) or not pattern.fullmatch(name):
        raise argument_error(ValueError, f"{owner}: name", name, "a C++ identifier")
    return name


def number_of(value, owner):
    """Return the C type of a number, and the number in NumPy's type of that size."""
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64")):
        if isinstance(value, kind):
            return C_TYPES[name], np.dtype(name).type(value)
    if isinstance(value, np.generic) and value.dtype.name in C_TYPES:
        return C_TYPES[value.dtype.name], value
    rule = "a Tensor, a bool, an int, a float or a NumPy scalar"
    raise argument_error(TypeError, f"{owner}: argument", value, rule)


def packed(values):
    """Return the bytes of a C struct of the values, in order."""
    fields = [(f"a{i}", one.dtype) for i, one in enumerate(values)] or [("none", np.int32)]
    struct = np.zeros((), np.dtype(fields, align=True))
    for i, one in enumerate(values):
        struct[f"a{i}"] = one
    return struct.tobytes()
