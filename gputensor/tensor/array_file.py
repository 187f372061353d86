"""Tensors in NumPy's files: ``.npy`` with one array, ``.npz`` with several named arrays.

A ``.npy`` file is mapped, and its bytes go to the device through pinned buffers, so only a few MiB
of host memory are needed at a time. Pickled objects are neither read nor written.

NumPy's format has no names for bfloat16 and float8. They are written as records with one field, an
unsigned integer with the bits, which is named after the dtype: ``np.load(path)["bfloat16"]`` reads
the bits without any other library, and `load` returns a tensor of the original dtype.
"""

import contextlib
import os
import stat

import numpy as np

from gputensor._arrays.dtypes import dtype_code
from gputensor._arrays.element_types import DTYPES, dtype_name
from gputensor.atomic_file import write_whole
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import asarray
from gputensor.tensor.transfer import numpy

__all__ = ["Arrays", "load", "save", "savez", "savez_compressed"]

ZIP = b"PK"
MOST_TEXT = 300  # characters of NumPy's own message


class Arrays(dict):
    """The tensors of a ``.npz`` file by name, with what NumPy's object for such a file has.

    ``files`` lists the names. The file is already closed: ``close()`` and a ``with`` block have no
    effect.
    """

    @property
    def files(self):
        """The names of the tensors."""
        return list(self)

    def close(self):
        """Do nothing: the tensors are in memory."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def _path(file, name):
    if not isinstance(file, (str, bytes, os.PathLike)):
        rule = "a str, an os.PathLike or a binary file"
        raise argument_error(TypeError, f"{name}: file", file, rule)
    return os.fsdecode(file)


def _write(file, suffix, name, write):
    """Pass an open file to `write`: the given one, or a new one that replaces a path's at once."""
    if hasattr(file, "write"):
        write(file)
        return
    path = _path(file, name)
    write_whole(path if path.endswith(suffix) else path + suffix, write)


def _record(dtype):
    """Return the record dtype that represents a dtype which NumPy's files lack."""
    return np.dtype([(dtype_name(dtype), f"<u{dtype.itemsize}")])


#: Record -> the dtype that it represents.
_RECORDS = {_record(row.numpy): row.numpy for row in DTYPES if row.numpy.isbuiltin != 1}


def _array(x, name):
    """Return the values of a tensor, in a dtype that NumPy's files have."""
    array = numpy(tensor_argument(x, name))
    return array.view(_record(array.dtype)) if array.dtype.isbuiltin != 1 else array


def save(file, x, /):
    """Write a tensor to a ``.npy`` file, whole or not at all; waits for its values.

    PyTorch's ``save`` takes its arguments in the other order. NumPy reads bfloat16 and float8 as
    records with one field of bits, because it has no such types.

    Parameters
    ----------
    file : str, os.PathLike or binary file
        ``.npy`` is appended to a path unless it ends with it, as in NumPy.
    x : Tensor

    >>> import os, tempfile
    >>> import gputensor as gt
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> save(path, gt.asarray([1, 2], device="host"))
    >>> load(path, device="host").tolist()
    [1, 2]
    """
    array = _array(x, "save")
    write = np.lib.format.write_array
    _write(file, ".npy", "save", lambda out: write(out, array, allow_pickle=False))


def savez(file, /, *tensors, **named):
    """Write tensors to a ``.npz`` file by name; unnamed ones become ``arr_0``, ``arr_1`` ….

    >>> import os, tempfile
    >>> import gputensor as gt
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npz")
    >>> savez(path, weight=gt.ones(2, device="host"))
    >>> load(path, device="host")["weight"].tolist()
    [1.0, 1.0]
    """
    _save_several(file, tensors, named, np.savez, "savez")


def savez_compressed(file, /, *tensors, **named):
    """Write tensors to a compressed ``.npz`` file by name; see :func:`savez`.

    >>> import os, tempfile
    >>> import gputensor as gt
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npz")
    >>> savez_compressed(path, gt.ones(2, device="host"))
    >>> sorted(load(path, device="host"))
    ['arr_0']
    """
    _save_several(file, tensors, named, np.savez_compressed, "savez_compressed")


def _save_several(file, tensors, named, write, name):
    given = {f"arr_{i}": one for i, one in enumerate(tensors)}
    twice = given.keys() & named.keys()
    if twice:
        raise argument_error(ValueError, f"{name}: names", sorted(twice), "each name once")
    arrays = {key: _array(one, name) for key, one in (given | named).items()}
    _write(file, ".npz", name, lambda out: write(out, **arrays))


def load(file, /, *, device=None):
    """Return the tensor of a ``.npy`` file, or a dict from names to tensors of a ``.npz`` file.

    The dict is an `Arrays`: it has NumPy's ``files``, and may be used in a ``with`` block.

    Parameters
    ----------
    file : str, os.PathLike or binary file
        An open file is read from its position.
    device : str, int or Device, optional
        Default: the current device.

    Raises
    ------
    ValueError
        The file is not a regular file or not a NumPy file, or it contains pickled objects.
    TypeError
        The file contains an element type that this library lacks.
    """
    is_open = hasattr(file, "read")
    path = str(getattr(file, "name", "the file")) if is_open else _path(file, "load")
    with contextlib.ExitStack() as stack:
        source, mode = file, None
        if not is_open:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
                raise _unreadable(path, "not a regular file")
            source = stack.enter_context(open(path, "rb"))
            is_zip = source.read(2) == ZIP
            source.seek(0)
            source, mode = (source, None) if is_zip else (path, "r")
        found = _found(lambda: np.load(source, mmap_mode=mode, allow_pickle=False), path)
        if isinstance(found, np.ndarray):
            return _tensor(found, device, path)
        arrays = stack.enter_context(found)
        read = {name: lambda name=name: arrays[name] for name in arrays.files}
        return Arrays(
            (name, _tensor(_found(one, path), device, path)) for name, one in read.items()
        )


def _found(read, path):
    """Return what NumPy reads; its errors name the file, and become one kind."""
    try:
        with np.errstate(over="ignore"):  # sizes that a header declares
            return read()
    except Exception as error:
        # NumPy and zipfile raise a dozen kinds of errors for invalid files. NumPy takes any other
        # content for a pickle.
        text = " ".join(str(error).split())
        raise _unreadable(path, "objects or other content" if "pickle" in text else text) from None


def _unreadable(path, text):
    text = text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."
    return argument_error(
        ValueError, "load: file", Described(f"{path}: {text}"), "a .npy or .npz file"
    )


def _tensor(array, device, path):
    if not isinstance(array, np.ndarray):  # NumPy returns the bytes of any other member
        raise _unreadable(path, "a member that is not an array")
    if array.dtype in _RECORDS:
        array = array.view(_RECORDS[array.dtype])
    try:
        dtype_code(array.dtype.newbyteorder("="))
    except TypeError:
        got = Described(f"dtype {array.dtype} in {path}")
        raise argument_error(TypeError, "load: file", got, "a dtype of this library") from None
    return asarray(array, device=device)
