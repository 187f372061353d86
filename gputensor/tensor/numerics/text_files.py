"""Tensors in text files and in files of raw bytes, with NumPy's formats."""

import numpy as np

from gputensor.errors import argument_error
from gputensor.streams.queue import Device
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import asarray
from gputensor.tensor.transfer import numpy

__all__ = ["fromfile", "fromstring", "genfromtxt", "loadtxt", "savetxt", "tofile"]


def _placed(array, device):
    return asarray(array, device=Device() if device is None else device)


def loadtxt(file, dtype=np.float64, *, device=None, **options):
    """Return the numbers of a text file; options as in NumPy: ``delimiter``, ``skiprows``, ….

    >>> import io
    >>> loadtxt(io.StringIO("1,2" + chr(10) + "3,4"), delimiter=",", device="host").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _placed(np.loadtxt(file, dtype, **options), device)


def genfromtxt(file, dtype=np.float64, *, device=None, **options):
    """Return the numbers of a text file with missing values, which become NaN; options as NumPy's.

    >>> import io
    >>> genfromtxt(io.StringIO("1,,3"), delimiter=",", device="host").tolist()
    [1.0, nan, 3.0]
    """
    return _placed(np.genfromtxt(file, dtype, **options), device)


def savetxt(file, x, /, **options):
    """Write a vector or a matrix as text; options as in NumPy: ``fmt``, ``delimiter``, ….

    >>> import io
    >>> import gputensor as gt
    >>> file = io.StringIO()
    >>> savetxt(file, gt.asarray([1.0, 2.0], device="host"), fmt="%.1f", newline=" ")
    >>> file.getvalue()
    '1.0 2.0 '
    """
    np.savetxt(file, numpy(tensor_argument(x, "savetxt")), **options)


def fromfile(file, dtype=np.float64, count=-1, sep="", offset=0, *, device=None):
    """Return the numbers of a file of raw bytes, or with `sep` of text.

    >>> import tempfile
    >>> import gputensor as gt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gt.arange(3, device="host").tofile(folder + "/x")
    ...     fromfile(folder + "/x", "int64", device="host").tolist()
    [0, 1, 2]
    """
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
    numpy(tensor_argument(x, "tofile")).tofile(file, sep, format)
