"""Tensors in safetensors files: named tensors without pickle.

The `safetensors` package does the format and is imported at the first call. Its NumPy reader knows
neither bfloat16 nor float8, so reading goes one level below it, to the bytes of each tensor.
"""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray
from gputensor.tensor.transfer import numpy

__all__ = ["load_safetensors", "save_safetensors"]

# The format's names of the element types -> ours.
NAMES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3",
    "F8_E5M2": "float8_e5m2",
}
_NUMPY = {row.name: row.numpy for row in DTYPES}


def load_safetensors(path, *, device=None):
    """Return the tensors of a safetensors file, as a dict of name to Tensor.

    Parameters
    ----------
    path : str or os.PathLike
    device : str, int or Device, optional
        The current device when not given.

    Raises
    ------
    ModuleNotFoundError
        The ``safetensors`` package is not installed.
    ValueError
        The file holds an element type that has no counterpart here.
    """
    import safetensors

    with open(path, "rb") as file:
        entries = safetensors.deserialize(file.read())
    tensors = {}
    for name, entry in entries:
        if entry["dtype"] not in NAMES:
            raise ValueError(
                f"{path}: tensor {name!r} has element type {entry['dtype']}; "
                f"allowed are {', '.join(NAMES)}"
            )
        dtype = _NUMPY[NAMES[entry["dtype"]]]
        array = np.frombuffer(entry["data"], dtype).reshape(entry["shape"])
        tensors[name] = asarray(array, device=device)
    return tensors


def save_safetensors(tensors, path, *, metadata=None):
    """Write named tensors to a safetensors file; waits for their values.

    Parameters
    ----------
    tensors : dict of str to Tensor
    path : str or os.PathLike
    metadata : dict of str to str, optional
        Free text that goes into the file's header.
    """
    from safetensors.numpy import save_file

    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_safetensors: {name!r} is a {type(tensor).__name__}; a Tensor is needed"
            )
    save_file({name: numpy(tensor) for name, tensor in tensors.items()}, path, metadata=metadata)
