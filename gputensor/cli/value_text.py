"""The grammar of --input, --output and --expected_output: values as text, and files of values.

    3.5                         a number, of the type that the program expects
    2x2xi32=1 2 3 4             a shape, a type and elements; brackets may group them: [1 2][3 4]
    1x224x224x3xf32=0           one element fills the array
    @array.npy  +array.npy      the array of a NumPy file; `+` reads the next array of that file
    2x2xi32=@raw.bin            the bytes of a file
    @list.txt                   one value per line; `#` begins a comment

Types: i, si and ui of 8 to 64 bits, i1, f16, bf16, f32, f64, f8E4M3FN, f8E5M2, cf64, cf128. Printed
values can be read again. Sizes are compared with the expected ones before memory is filled or read.
"""

import os
import re
import stat
from math import prod

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.atomic_file import write_whole
from gputensor.cli.input_error import InputError
from gputensor.errors import Described, argument_error
from gputensor.strict_json import shown

__all__ = ["Reader", "Writer", "described", "text_of", "type_of"]

_NUMPY = {row.name: row.numpy for row in DTYPES}
_OURS = {row.numpy: row.name for row in DTYPES}
#: Text of a type -> our name. The first text of each name is used for printing.
TYPES = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"si{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8E4M3FN": "float8_e4m3",
    "f8E5M2": "float8_e5m2",
    "cf64": "complex64",
    "cf128": "complex128",
}
TEXT_OF = {name: text for text, name in reversed(TYPES.items())}
# Digits with which a value is read back unchanged: 1 + ceil(bits of the fraction * log10(2)).
DIGITS = {"bfloat16": 4, "float8_e4m3": 3, "float8_e5m2": 2}
TYPED = re.compile(
    r"((?:[0-9]{1,19}x){0,16})([a-z]{1,2}[0-9]{1,3}(?:E[0-9]M[0-9](?:FN)?)?)=(.*)", re.S
)
#: Types of an extent that has several sizes.
SEVERAL = (range, tuple)
MOST_ELEMENTS = 1 << 40
MOST_TEXT = 64 << 20
MOST_LINES = 10_000


def type_of(dtype, shape):
    """Return a dtype and shape as text; `?` stands for an extent with several sizes.

    >>> type_of("float16", (1, 1000)), type_of("bool", ())
    ('1x1000xf16', 'i1')
    """
    extents = ["?" if isinstance(extent, SEVERAL) else str(extent) for extent in shape]
    return "x".join([*extents, TEXT_OF[dtype]])


def wanted_text(dtype, shape):
    """Return a dtype and shape as text, with the limits of extents that have several sizes.

    >>> wanted_text("float32", (range(1, 65), 3, range(8, 33, 8), (4, 16)))
    '?x3x?x?xf32, where ? is 1 to 64, 8 to 32 in steps of 8, 4 or 16'
    """
    several = [extent for extent in shape if isinstance(extent, SEVERAL)]
    limits = [
        " or ".join(map(str, one))
        if isinstance(one, tuple)
        else f"{one[0]} to {one[-1]}" + (f" in steps of {one.step}" if one.step > 1 else "")
        for one in several
        if len(one) < MOST_ELEMENTS
    ]
    text = type_of(dtype, shape)
    return f"{text}, where ? is {', '.join(limits)}" if len(limits) == len(several) > 0 else text


def described(text):
    """Return a given text as messages show it, cut at 80 characters."""
    return Described(shown(text, 80))


def text_of(array, most=1024):
    """Return an array as text that can be read again; dots follow the first `most` elements.

    >>> text_of(np.float32([[1, 2.5], [3, np.inf]]))
    '2x2xf32=[1 2.5][3 inf]'
    """
    name = _OURS[array.dtype]
    left = [most]
    body = grouped(array, name, left)
    return f"{type_of(name, array.shape)}={body}"


def grouped(array, name, left):
    if array.ndim == 0:
        left[0] -= 1
        return element_text(array[()], name)
    if array.ndim == 1:
        texts = [element_text(element, name) for element in array[: max(left[0], 0)]]
        left[0] -= len(texts)
        return " ".join(texts + ["..."] * (len(texts) < len(array)))
    parts = []
    for part in array:
        if left[0] <= 0:
            parts.append("[...]")
            break
        parts.append(f"[{grouped(part, name, left)}]")
    return "".join(parts)


def element_text(element, name):
    if name == "bool":
        return "1" if element else "0"
    if name.startswith("complex"):
        half = "float32" if name == "complex64" else "float64"
        real, imag = (
            element_text(_NUMPY[half].type(p), half) for p in (element.real, element.imag)
        )
        return f"{real}{imag if imag[0] in '+-' else '+' + imag}j"
    if name in DIGITS:
        return f"{float(element):.{DIGITS[name]}g}"
    return str(element).removesuffix(".0")


def parse_element(text, dtype):
    """Return one element as a Python number; ValueError if it is not one, or out of range."""
    if dtype.kind == "b":
        return {"0": False, "1": True, "false": False, "true": True}[text.lower()]
    if "_" in text or len(text) > 400 or not text.isascii():
        raise ValueError(text)
    if dtype.kind in "iu":
        value = int(text, 16 if text.lstrip("+-")[:2] in ("0x", "0X") else 10)
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise ValueError(text)
        return value
    value = complex(text) if dtype.kind == "c" else float(text)
    with np.errstate(over="ignore"):
        kept = abs(complex(dtype.type(value)))
    is_special = "n" in text.lower()  # inf and nan
    if not is_special and not kept < np.inf:
        raise ValueError(text)
    return value


def array_of(words, dtype):
    """Return the elements that the words describe, in one dimension."""
    return np.array([parse_element(word, dtype) for word in words], dtype)


def is_element(word, dtype):
    try:
        parse_element(word, dtype)
    except (ValueError, KeyError):
        return False
    return True


class Reader:
    """Reads the values of one option, and keeps its position in files that are read in parts.

    Parameters
    ----------
    option : str
        The option as messages show it, ``--input``.
    """

    def __init__(self, option):
        self.option = option
        self.places = {}  # path -> bytes read so far

    def refuse(self, text, rule):
        return argument_error(InputError, self.option, described(text), rule)

    def texts(self, given):
        """Return the texts of the option, with list files replaced by their lines."""
        found = []
        for text in given:
            if text.startswith("@") and text.endswith(".txt"):
                lines = (
                    self.content(text[1:], text, MOST_TEXT).decode("utf-8", "replace").splitlines()
                )
                lines = [line.strip() for line in lines]
                found += [line for line in lines if line and not line.startswith("#")]
            else:
                found.append(text)
            if len(found) > MOST_LINES:
                raise self.refuse(text, f"at most {MOST_LINES} values")
        return found

    def value(self, text, dtype, shape):
        """Return the array that a text describes.

        Parameters
        ----------
        text : str
        dtype : str
            The name of the expected dtype.
        shape : tuple
            The expected shape; a range or tuple stands for an extent that may be any number in it.
        """
        text = text.strip()
        if text[:1] in ("@", "+") and text.endswith(".npy"):
            return self.wanted(self.numpy_array(text), text, dtype, shape)
        if typed := TYPED.fullmatch(text):
            return self.typed(text, typed, dtype, shape)
        numpy = _NUMPY[dtype]
        try:
            array = array_of([text], numpy).reshape(())
        except (ValueError, KeyError):
            rule = "a number, SHAPExTYPE=ELEMENTS, SHAPExTYPE=@FILE.bin, @FILE.npy or @FILE.txt"
            raise self.refuse(text, rule) from None
        return self.wanted(array, text, dtype, shape)

    def typed(self, text, match, dtype, shape):
        extents, kind, body = match.groups()
        if kind not in TYPES:
            raise self.refuse(text, f"one of the types {', '.join(TYPES)}")
        found = tuple(int(extent) for extent in extents.split("x")[:-1])
        name, count = TYPES[kind], prod(found)
        self.check_wanted(name, found, text, dtype, shape)
        if count > MOST_ELEMENTS:
            raise self.refuse(text, f"at most {MOST_ELEMENTS} elements")
        numpy = _NUMPY[name]
        if body.startswith("@"):
            nbytes = count * numpy.itemsize
            content = self.content(body[1:], text, nbytes)
            if len(content) != nbytes:
                raise self.refuse(text, f"a file of {nbytes} bytes")
            array = np.frombuffer(content, np.uint8)
            if name == "bool" and array.max(initial=0) > 1:
                raise self.refuse(text, "bytes that are 0 or 1")
            return array.view(numpy).reshape(found)
        words = self.words(body, found, text)
        if len(words) not in (1, count):
            raise self.refuse(text, f"1 or {count} elements")
        try:
            array = array_of(words, numpy)
            return np.full(found, array[0]) if len(words) == 1 else array.reshape(found)
        except (ValueError, KeyError):
            word = next(word for word in words if not is_element(word, numpy))
            raise self.refuse(text, f"elements of {kind}, which {shown(word, 40)} is not") from None
        except MemoryError:
            raise self.refuse(text, "a value that fits into memory") from None

    def words(self, body, shape, text):
        """Return the texts of the elements; brackets may nest at most as deep as the shape."""
        tokens = re.findall(r"[\[\]]|[^\s,\[\]]+", body)
        depth = deepest = 0
        for token in tokens:
            depth += (token == "[") - (token == "]")
            deepest = max(deepest, depth)
            if depth < 0 or deepest > len(shape):
                break
        if depth or deepest > len(shape):
            raise self.refuse(text, f"brackets in pairs, at most {len(shape)} deep")
        return [token for token in tokens if token not in "[]"]

    def numpy_array(self, text):
        path = text[1:]
        place = self.places.get(path, 0) if text[0] == "+" else 0
        with self.opened(path, text) as file:
            file.seek(place)
            try:
                array = read_npy(file)
            except Exception as error:
                # NumPy raises a dozen types of errors for invalid headers.
                raise self.refuse(text, f"the array of a NumPy file: {error}") from None
            self.places[path] = file.tell()
        return array

    def content(self, path, text, most):
        """Return the bytes of a file, at most `most` + 1."""
        with self.opened(path, text) as file:
            try:
                return file.read(most + 1)
            except (OSError, MemoryError) as error:
                raise self.refuse(text, f"a file that can be read: {error}") from None

    def opened(self, path, text):
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise self.refuse(text, f"a file that can be read: {reason}") from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise self.refuse(text, "a regular file")
        return os.fdopen(file, "rb")

    def wanted(self, array, text, dtype, shape):
        if array.dtype.kind == "V" and array.dtype.itemsize == _NUMPY[dtype].itemsize:
            array = array.view(
                _NUMPY[dtype]
            )  # NumPy files have no names for the types of ml_dtypes
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        name = _OURS.get(array.dtype)
        if name is None:
            raise self.refuse(text, f"a dtype of the library, not {array.dtype}")
        self.check_wanted(name, array.shape, text, dtype, shape)
        return array

    def check_wanted(self, name, found, text, dtype, shape):
        fits = len(found) == len(shape) and all(
            have in want if isinstance(want, SEVERAL) else have == want
            for want, have in zip(shape, found, strict=False)
        )
        if name != dtype or not fits:
            got = Described(f"{described(text)}: {type_of(name, found)}")
            raise argument_error(InputError, self.option, got, wanted_text(dtype, shape))


def read_npy(file):
    """Return the array of a NumPy file; its size is compared before memory is allocated."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise argument_error(ValueError, "version", version, "(1, 0) or (2, 0)")
    shape, is_fortran, dtype = readers[version](file, max_header_size=4096)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise argument_error(
            ValueError, "shape and dtype", (shape, str(dtype)), "extents of at least 0, and numbers"
        )
    nbytes = prod(shape) * dtype.itemsize
    left = os.fstat(file.fileno()).st_size - file.tell()
    if nbytes > left:
        raise argument_error(ValueError, "data", Described(f"{left} bytes"), f"{nbytes}")
    array = np.frombuffer(file.read(nbytes), np.uint8).view(dtype)
    return array.reshape(shape, order="F" if is_fortran else "C")


class Writer:
    """Carries out an --output for a result: prints it, writes it to a file, or drops it."""

    def __init__(self, most_elements):
        self.most_elements = most_elements

    def check(self, text):
        """Raise InputError for a text that is not a valid output."""
        is_file = text[:1] in ("@", "+") and text.endswith((".npy", ".bin"))
        if not is_file and text not in ("", "-"):
            rule = "an empty text, -, or a file: @FILE.npy, @FILE.bin, +FILE.npy, +FILE.bin"
            raise argument_error(InputError, "--output", described(text), rule)

    def write(self, text, index, array):
        """Carry out the output `text` for result number `index`."""
        if text == "-":
            print(f"result[{index}]: {text_of(array, self.most_elements)}")
        elif text:

            def write(file):
                if text.endswith(".npy"):
                    # NumPy files do not name the types of ml_dtypes.
                    is_raw = _OURS[array.dtype] in DIGITS
                    stored = array.view(f"V{array.itemsize}") if is_raw else array
                    np.lib.format.write_array(file, stored, allow_pickle=False)
                else:
                    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8))

            if text[0] == "@":
                write_whole(text[1:], write)
            else:
                with open(text[1:], "ab") as file:
                    write(file)
