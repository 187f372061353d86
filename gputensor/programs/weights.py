"""Weights on devices: loaded once, and shared by all programs whose weights have the same content.

A table of the process finds the tensor for (device, SHA-256, dtype, shape). It does not keep it
alive: a weight is freed with the last program that holds it. What comes from a file is hashed
before it enters the table, so that no file can put other elements under the hash of a weight of
another program. The lock is held while weights load, and never inside a destructor.
"""

import hashlib
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from math import prod

import numpy as np

from gputensor._alloc.foreign import device_memory
from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.safetensors_file import SafetensorsFileError, mapping_of
from gputensor.errors import Described, DeviceError, ProgramFileError, argument_error
from gputensor.programs import dims
from gputensor.streams.queue import Device, current_stream
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, ascontiguous

__all__ = ["check_memory", "host_bytes", "load", "with_hashes"]

_NUMPY = {row.name: row.numpy for row in DTYPES}
_lock = threading.Lock()
_shared: "weakref.WeakValueDictionary[tuple, Tensor]" = weakref.WeakValueDictionary()


def host_bytes(weight):
    """Return the elements of a weight as bytes in C order; those of a file are not copied."""
    source = weight.source
    check_source(weight)
    array = source.numpy() if isinstance(source, Tensor) else np.ascontiguousarray(source)
    return array.reshape(-1).view(np.uint8)


def check_source(weight):
    """Raise when a weight's file has become shorter since it was mapped."""
    mapping = mapping_of(weight.source)
    if mapping is not None:
        try:
            mapping.check_whole()
        except SafetensorsFileError as error:
            raise ProgramFileError(str(error)) from None


def content_hash(weight):
    return hashlib.sha256(host_bytes(weight)).hexdigest()


def hashing():
    """Threads that hash: a processor core each, since hashing is slower than any copy."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), "gputensor-hash")


def with_hashes(weights):
    """Fill in the `sha256` of each Weight that has none, and return the weights."""
    missing = [weight for weight in weights.values() if not weight.sha256]
    with hashing() as pool:
        for weight, found in zip(missing, pool.map(content_hash, missing), strict=True):
            weight.sha256 = found
    return weights


def load(weights, device):
    """Return the weights on a device, name -> Tensor, as soon as their elements are there.

    A source that is a Tensor of the device is taken as it is. Others are copied, or shared with the
    programs that have loaded the same content before.

    Parameters
    ----------
    weights : dict
        Name -> Weight.
    device : str, int or Device

    Raises
    ------
    ProgramFileError
        A file has other elements than its hashes say.
    OutOfMemoryError
        The device has not enough memory; nothing of the weights stays there.
    """
    device = Device(device)
    with _lock, hashing() as pool:
        found, copies = {}, {}
        for name, weight in weights.items():
            if isinstance(weight.source, Tensor):
                found[name] = ascontiguous(weight.source.to_device(device))
                continue
            key = (device.number, weight.sha256, weight.dtype, tuple(weight.shape))
            tensor = known(key) if weight.sha256 else None
            if tensor is None:
                copies[name] = pool.submit(content_hash, weight)
            found[name] = tensor
        for name, future in copies.items():
            # Two weights of one program may have the same content too.
            found[name] = copy_to(device, weights[name], future)
        if copies:
            current_stream(device).synchronize()
        return found


def copy_to(device, weight, future):
    """Return a new tensor for a weight, once its hash (a future) is what the weight declares."""
    sha256 = future.result()
    if weight.sha256 and sha256 != weight.sha256:
        raise argument_error(
            ProgramFileError,
            f"weights.{weight.name}",
            Described(f"SHA-256 {sha256}"),
            weight.sha256,
        )
    key = (device.number, sha256, weight.dtype, tuple(weight.shape))
    tensor = known(key)
    if tensor is None:
        tensor = asarray(weight.source, device=device)
        _shared[key] = tensor
    return tensor


def known(key):
    """Return the tensor of a key, or None; one of a device that was closed counts for nothing."""
    tensor = _shared.get(key)
    try:
        if tensor is not None:
            tensor.data_ptr()
    except DeviceError:
        return None
    return tensor


def check_memory(data, device):
    """Raise unless weights, states and each value of a program fit into the device's memory.

    It is asked before anything is allocated. Sizes of values are those at the least dims.

    Raises
    ------
    ProgramFileError
    """
    _free, total = device_memory(Device(device).number)
    kept = sum(nbytes_of(weight.dtype, weight.shape) for weight in data.weights.values())
    kept += sum(nbytes_of(dtype, shape) for dtype, shape in data.states.values())
    largest = 0
    for function in data.functions.values():
        low = {dim.name: dim.low for dim in function.dims.values()}
        for value in function.values:
            if value.kind in ("input", "temporary"):
                largest = max(largest, dims.evaluate(value.nbytes, low))
    if kept + largest > total:
        raise argument_error(
            ProgramFileError,
            "memory",
            Described(f"{kept + largest} bytes"),
            f"at most {total} of the device",
        )


def nbytes_of(dtype, shape):
    return prod(shape) * _NUMPY[dtype].itemsize
