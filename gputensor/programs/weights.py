"""Weights on devices: loaded once, and shared by all programs whose weights have the same content.

Tables of the process find a tensor that is already loaded: by the place in a file that it was
copied from, and by its content, (device, SHA-256, dtype, shape). They do not keep it alive: a
weight is freed with the last program that uses it. Elements of a file are hashed when another
file, or memory, declares the same hash, or on request; otherwise no call waits for a hash. Until
then a hash is only a claim, and no other program gets a tensor by a claim. So no file can put other
elements under the hash of another program's weight. The lock is held while weights load, but never
inside a destructor.
"""

import hashlib
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import TypeAlias

import numpy as np

from gputensor._alloc.foreign import device_memory
from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.file_mapping import SafetensorsFileError, mapping_of, start_in
from gputensor.errors import Described, DeviceError, ProgramFileError, argument_error
from gputensor.programs import dims
from gputensor.streams.queue import Device, current_stream
from gputensor.streams.queue import stream as on_stream
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, ascontiguous

__all__ = ["check_content", "check_memory", "host_bytes", "load", "with_hashes"]

_NUMPY = {row.name: row.numpy for row in DTYPES}
_lock = threading.Lock()
_Table: TypeAlias = "weakref.WeakValueDictionary[tuple, Tensor]"
_checked: _Table = weakref.WeakValueDictionary()  # keyed by content hashed in this process
_claimed: _Table = weakref.WeakValueDictionary()  # keyed by the hash that a file declares
_copied: _Table = weakref.WeakValueDictionary()  # keyed by the place in a file


def host_bytes(weight):
    """Return the elements of a weight as bytes in C order; those of a file are not copied."""
    source = weight.source
    check_source(weight)
    array = source.numpy() if isinstance(source, Tensor) else np.ascontiguousarray(source)
    return array.reshape(-1).view(np.uint8)


def check_source(weight):
    """Raise ProgramFileError if a weight's file has become shorter since it was mapped."""
    mapping = mapping_of(weight.source)
    if mapping is not None:
        try:
            mapping.check_whole()
        except SafetensorsFileError as error:
            raise ProgramFileError(str(error)) from None


def content_hash(weight):
    return hashlib.sha256(host_bytes(weight)).hexdigest()


def threads(work):
    """Return a pool of threads: a single core hashes and copies more slowly than the bus."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), f"gputensor-{work}")


def with_hashes(weights):
    """Fill in the `sha256` of each Weight that has none, and return the weights."""
    missing = [weight for weight in weights.values() if not weight.sha256]
    with threads("hash") as pool:
        for weight, found in zip(missing, pool.map(content_hash, missing), strict=True):
            weight.sha256 = found
    return weights


def load(weights, device, verify=False):
    """Return the weights on a device, name -> Tensor, after their elements have been copied.

    A source that is a Tensor of the device is used directly. Others are copied, or shared with
    programs that have loaded the same content before.

    Parameters
    ----------
    weights : dict
        Name -> Weight.
    device : str, int or Device
    verify : bool
        Compare all elements with their declared hashes, also of weights that are not shared.

    Raises
    ------
    ProgramFileError
        If the elements in a file do not have its declared hashes.
    OutOfMemoryError
        If the device has not enough memory; weights loaded so far are freed.
    """
    device = Device(device)
    stream = current_stream(device)

    def place(names):
        with on_stream(stream):
            return [
                (name, placed(device, weights[name], hashes.get(name), verify)) for name in names
            ]

    with _lock, threads("hash") as pool, threads("copy") as copying:
        hashes = {
            name: pool.submit(content_hash, weight)
            for name, weight in weights.items()
            if not isinstance(weight.source, Tensor) and is_hashed(device, weight, verify)
        }
        parts = copying.map(place, list(sharing(device, weights).values()))
        found = dict(pair for part in parts for pair in part)
        stream.synchronize()
        return {name: found[name] for name in weights}


def sharing(device, weights):
    """Return lists of names of weights that may share a tensor; one thread places each list."""
    found = {}
    for name, weight in weights.items():
        key = content_key(device, weight) or file_key(device, weight) or name
        found.setdefault(key, []).append(name)
    return found


def is_hashed(device, weight, verify):
    """Whether a weight's elements are hashed before its tensor is looked up or copied."""
    if not verify and mapping_of(weight.source) is not None:
        return False
    return verify or not weight.sha256 or known(_checked, content_key(device, weight)) is None


def placed(device, weight, future, verify):
    """Return the tensor of a weight: one that is already loaded, or a new one."""
    if isinstance(weight.source, Tensor):
        return ascontiguous(weight.source.to_device(device))
    sha256 = weight.sha256 if future is None else as_declared(weight, future.result())
    key, place = content_key(device, weight, sha256), file_key(device, weight)
    tensor = known(_checked, key)
    if tensor is None and not verify:
        tensor = known(_copied, place)
    if tensor is None:
        tensor = confirmed(key)
    if tensor is None:
        check_source(weight)
        tensor = asarray(weight.source, device=device)
        if place is not None:
            _copied[place] = tensor
        if sha256:
            (_claimed if future is None else _checked)[key] = tensor
    return tensor


def as_declared(weight, sha256):
    """Return the computed hash; ProgramFileError if the weight declares another one."""
    if weight.sha256 and sha256 != weight.sha256:
        got = Described(f"SHA-256 {sha256}")
        raise argument_error(ProgramFileError, f"weights.{weight.name}", got, weight.sha256)
    return sha256


def check_content(weights):
    """Raise ProgramFileError unless weights, name -> Weight, have their declared hashes."""
    with threads("hash") as pool:
        for weight, found in zip(
            weights.values(), pool.map(content_hash, weights.values()), strict=True
        ):
            as_declared(weight, found)


def content_key(device, weight, sha256=None):
    """Return the key for the content of a weight, or None without a hash."""
    sha256 = sha256 or weight.sha256
    return (device.number, sha256, weight.dtype, tuple(weight.shape)) if sha256 else None


def file_key(device, weight):
    """Return the key for a weight's place in a file and the file's state; None for memory."""
    mapping = mapping_of(weight.source)
    if mapping is None:
        return None
    start = start_in(mapping, weight.source)
    where = (*mapping.identity, *mapping.state, start)
    return (device.number, *where, weight.dtype, tuple(weight.shape))


def confirmed(key):
    """Return the tensor with a claimed content if hashing the tensor confirms it, or None."""
    tensor = known(_claimed, key)
    if tensor is None:
        return None
    del _claimed[key]
    if hashlib.sha256(tensor.numpy().reshape(-1).view(np.uint8)).hexdigest() != key[1]:
        return None
    _checked[key] = tensor
    return tensor


def known(table, key):
    """Return the tensor of a key, or None; a tensor of a closed device does not count."""
    tensor = None if key is None else table.get(key)
    try:
        if tensor is not None:
            tensor.data_ptr()
    except DeviceError:
        return None
    return tensor


def check_memory(data, device):
    """Raise ProgramFileError unless weights, states and each value fit into the device's memory.

    The check precedes any allocation. Sizes of values are those at the least dims.
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
