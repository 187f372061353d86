"""Tensors in safetensors files: named tensors without pickle, mapped when read."""

import contextlib
import importlib.util
import os
import sys

import numpy as np

from gputensor._arrays.element_types import dtype_name
from gputensor._arrays.file_mapping import SafetensorsFileError
from gputensor._arrays.safetensors_file import TYPE_OF, Part, entry_array, open_file, write_file
from gputensor.errors import argument_error
from gputensor.strict_json import MOST_NESTED, shown
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray
from gputensor.tensor.transfer import numpy

__all__ = ["load_safetensors", "map_safetensors", "save_safetensors"]


#: Files of at least this size show a progress bar in a terminal.
LARGE_NBYTES = 256 << 20


def progress_bar(nbytes, title, wanted):
    """Return tqdm's progress bar for a file; None if it is not wanted or tqdm is missing."""
    if wanted is False or importlib.util.find_spec("tqdm") is None:
        return None
    if wanted is None and (nbytes < LARGE_NBYTES or not sys.stderr.isatty()):
        return None
    tqdm = importlib.import_module("tqdm").tqdm
    return tqdm(total=nbytes, desc=title, unit="B", unit_scale=True, unit_divisor=1024)


def load_safetensors(path, *, device=None, progress=None):
    """Return the tensors of a safetensors file, as a dict from names to tensors.

    The file is mapped, so only a few MiB of host memory are needed at a time.

    Parameters
    ----------
    path : str or os.PathLike
    device : str, int or Device, optional
        Default: the current device.
    progress : bool, optional
        Whether to show tqdm's progress bar. Default: in a terminal, for files of 256 MiB and more,
        if tqdm is installed.

    Raises
    ------
    ValueError
        The file is not a safetensors file, or contains an element type that this library lacks.
    """
    file = open_file(path)
    arrays = {name: entry_array(file, name) for name in file.entries}
    bar = progress_bar(len(file.mapping), os.path.basename(file.path), progress)
    tensors = {}
    with bar or contextlib.nullcontext():
        for name, array in arrays.items():
            tensors[name] = asarray(array, device=device)
            if bar is not None:
                bar.update(array.nbytes)
    return tensors


def map_safetensors(path):
    """Return the arrays of a safetensors file as a tree by their dotted names, without reading.

    ``layers.0.q`` is ``tree["layers"][0]["q"]``: names that count from 0 make lists. The leaves are
    read-only NumPy arrays over the mapped file, whose bytes are read on demand. The file must not
    change while they live.

    Parameters
    ----------
    path : str or os.PathLike

    Raises
    ------
    ValueError
        As in :func:`load_safetensors`, or a name is the beginning of another.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "w.safetensors")
    >>> gt.save_safetensors({"layers.0.q": gt.ones((2, 3)), "head": gt.ones(4)}, path)
    >>> tree = gt.map_safetensors(path)
    >>> tree["layers"][0]["q"].shape
    (2, 3)
    """
    file = open_file(path)
    tree = {}
    for name in file.entries:
        *branches, leaf = name.split(".")
        node = tree
        for branch in branches if len(branches) < MOST_NESTED else ():
            node = node.setdefault(branch, {})
            if not isinstance(node, dict):
                break
        if not isinstance(node, dict) or leaf in node or len(branches) >= MOST_NESTED:
            raise SafetensorsFileError(
                f"{file.path}: got the name {shown(name)}; expected at most {MOST_NESTED} parts, "
                "and no name that is the beginning of another"
            )
        node[leaf] = entry_array(file, name)
    return with_lists(tree)


def with_lists(tree):
    """Return the tree with a list in place of each dict whose names count from 0."""
    if not isinstance(tree, dict):
        return tree
    parts = {name: with_lists(part) for name, part in tree.items()}
    numbers = [str(number) for number in range(len(parts))]
    if parts and parts.keys() == set(numbers):
        return [parts[number] for number in numbers]
    return parts


def save_safetensors(tensors, path, *, metadata=None, progress=None):
    """Write named tensors to a safetensors file, whole or not at all; waits for their values.

    Parameters
    ----------
    tensors : dict of str to Tensor
    path : str or os.PathLike
    metadata : dict of str to str, optional
        Free text for the file's header.
    progress : bool, optional
        As in :func:`load_safetensors`.
    """
    if not hasattr(tensors, "items"):
        got = type(tensors).__name__
        raise TypeError(f"save_safetensors: tensors: got {got}; expected a dict of tensors")
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict):
        rule = "a dict of str to str"
        raise argument_error(TypeError, "save_safetensors: metadata", metadata, rule)
    for key, text in metadata.items():
        if not (isinstance(key, str) and isinstance(text, str)):
            wrong = text if isinstance(key, str) else key
            raise argument_error(TypeError, f"save_safetensors: metadata: {key!r}", wrong, "a str")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            rule = "a str other than '__metadata__'"
            kind = ValueError if isinstance(name, str) else TypeError
            raise argument_error(kind, "save_safetensors: name", name, rule)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_safetensors: {name!r}: got {type(tensor).__name__}; expected a Tensor"
            )
        if dtype_name(tensor.dtype) not in TYPE_OF:
            raise ValueError(
                f"save_safetensors: {name!r}: got dtype {tensor.dtype}; expected one of "
                f"{', '.join(TYPE_OF)}"
            )
    # The widest elements first, so that each tensor is aligned to its elements.
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    bar = progress_bar(sum(one.nbytes for one in tensors.values()), str(path), progress)
    parts = [tensor_part(name, tensors[name], bar) for name in names]
    with bar or contextlib.nullcontext():
        write_file(os.fspath(path), parts, metadata)


def tensor_part(name, tensor, bar):
    def chunks():
        if bar is not None:
            bar.update(tensor.nbytes)
        return [numpy(tensor).reshape(-1).view(np.uint8)]

    nbytes = tensor.size * tensor.dtype.itemsize
    return Part(name, TYPE_OF[dtype_name(tensor.dtype)], tensor.shape, nbytes, chunks)
