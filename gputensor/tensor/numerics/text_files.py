"""Tensors in text files and in files of raw bytes, with NumPy's formats."""

import os

import numpy as np

from gputensor.errors import argument_error
from gputensor.streams.queue import Device
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import asarray
from gputensor.tensor.interop.arrays import values_argument
from gputensor.tensor.manipulation.joining import stack
from gputensor.tensor.transfer import numpy

__all__ = ["fromfile", "fromstring", "genfromtxt", "loadtxt", "savetxt", "tofile"]


def _placed(array, device):
    return asarray(array, device=Device() if device is None else device)


def _check_file(file, name, rule, *, or_lines=False):
    """Refuse what is not a path or an open file, nor with `or_lines` an iterable of lines."""
    if isinstance(file, (str, os.PathLike)) or hasattr(file, "read") or hasattr(file, "write"):
        return
    if not or_lines or not hasattr(file, "__iter__") or hasattr(file, "dtype"):
        raise argument_error(TypeError, f"{name}: file", file, rule)


def _read(read, file, dtype, options):
    """Return what NumPy's function reads; its errors become one line with the function's name."""
    name = read.__name__
    _check_file(file, name, "a path, an open file or lines of text", or_lines=True)
    try:
        return read(file, dtype, **options)
    except (TypeError, ValueError, AttributeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        text = " ".join(str(error).split()).rstrip(".!")
        raise kind(f"{name}: {text[:1].lower()}{text[1:]}") from None


def loadtxt(file, dtype=np.float64, comments="#", delimiter=None, *, device=None, **options):
    """Return the numbers of a text file; options as in NumPy: ``skiprows``, ``usecols``, ….

    >>> import io
    >>> loadtxt(io.StringIO("1,2" + chr(10) + "3,4"), delimiter=",", device="host").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    options |= {"comments": comments, "delimiter": delimiter}
    return _placed(_read(np.loadtxt, file, dtype, options), device)


def genfromtxt(file, dtype=np.float64, comments="#", delimiter=None, *, device=None, **options):
    """Return the numbers of a text file with missing values, which become NaN; options as NumPy's.

    >>> import io
    >>> genfromtxt(io.StringIO("1,,3"), delimiter=",", device="host").tolist()
    [1.0, nan, 3.0]
    """
    options |= {"comments": comments, "delimiter": delimiter}
    return _placed(_read(np.genfromtxt, file, dtype, options), device)


def savetxt(file, x, /, fmt="%.18e", delimiter=" ", **options):
    """Write a vector, a matrix or a list of rows as text; options as in NumPy: ``header``, ….

    >>> import io
    >>> import gputensor as gt
    >>> file = io.StringIO()
    >>> savetxt(file, gt.asarray([1.0, 2.0], device="host"), fmt="%.1f", newline=" ")
    >>> file.getvalue()
    '1.0 2.0 '
    """
    _check_file(file, "savetxt", "a path or an open file")
    if not isinstance(fmt, (str, list, tuple)):
        raise argument_error(TypeError, "savetxt: fmt", fmt, "a format, or one for each column")
    if isinstance(x, (list, tuple)) and any(isinstance(one, Tensor) for one in x):
        x = stack(x)
    np.savetxt(file, numpy(values_argument(x, "savetxt")), fmt, delimiter, **options)


def fromfile(file, dtype=np.float64, count=-1, sep="", offset=0, *, device=None):
    """Return the numbers of a file of raw bytes, or with `sep` of text.

    >>> import tempfile
    >>> import gputensor as gt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gt.arange(3, device="host").tofile(folder + "/x")
    ...     fromfile(folder + "/x", "int64", device="host").tolist()
    [0, 1, 2]
    """
    _check_file(file, "fromfile", "a path or an open file")
    return _placed(np.fromfile(file, dtype, count, sep, offset), device)


def fromstring(text, dtype=np.float64, count=-1, *, sep="", device=None):
    """Return the numbers in a text, which are separated by `sep`.

    >>> fromstring("1 2 3", sep=" ", device="host").tolist()
    [1.0, 2.0, 3.0]
    """
    if not isinstance(text, str):
        raise argument_error(TypeError, "fromstring: text", text, "a str")
    if not isinstance(sep, str) or not sep:
        raise argument_error(ValueError, "fromstring: sep", sep, "a separator; see frombuffer")
    return _placed(np.fromstring(text, dtype, count, sep=sep), device)


def tofile(x, file, sep="", format="%s"):
    r"""Write the elements in row-major order, as raw bytes or, with `sep`, as text.

    >>> import tempfile
    >>> import gputensor as gt
    >>> with tempfile.TemporaryFile() as file:
    ...     gt.arange(3, dtype="uint8", device="host").tofile(file)
    ...     _ = file.seek(0)
    ...     file.read()
    b'\x00\x01\x02'
    """
    array = numpy(tensor_argument(x, "tofile"))
    _check_file(file, "tofile", "a path or an open file")
    array.tofile(file, sep, format)
