"""Tensors over memory of somebody else: NumPy arrays on a host device, `__cuda_array_interface__`.

The owner stays alive until the last tensor over it is gone and the work queued with it is done.
Version 3 of the CUDA array interface names a stream that the memory is ready on; our current
stream waits for it. The protocol names no device, so the current CUDA device is assumed; DLPack
(dlpack.pyx) does name one and is preferred where an object offers both.
"""

from libc.stdint cimport int64_t, uint64_t

import numpy as np

from gputensor._driver.table cimport HOST_DEVICE
from gputensor._kernels.dtypes cimport KIND_SMALL, dtype_itemsize, dtype_kind
from gputensor._kernels.host_call cimport is_host
from gputensor._kernels.operand cimport DT_BFLOAT16, MAX_NDIM
from gputensor.streams.current cimport current_device, current_stream, device_text, resolve_device
from gputensor.streams.ordering cimport raise_for_order, stream_wait_stream
from gputensor.streams.stream cimport stream_handle
from gputensor.tensor.arguments cimport dtype_argument
from gputensor.tensor.section cimport work_begin, work_end
from gputensor.tensor.storage cimport storage_foreign
from gputensor.tensor.tensor cimport Tensor, tensor_over, tensor_span

from gputensor._kernels.dtypes import DTYPES


cdef Tensor foreign_tensor(int device, uint64_t ptr, int dtype, int ndim, const int64_t* shape,
                           const int64_t* strides, object owner, bint is_readonly):
    cdef Tensor result
    cdef uint64_t first, last
    if ptr % <uint64_t> dtype_itemsize(dtype):
        raise ValueError(f"the imported memory starts at {ptr:#x}, which is not a multiple of the "
                         f"element size {dtype_itemsize(dtype)}; copy it first")
    storage = storage_foreign(device, ptr, 0, owner, is_readonly, current_stream(device))
    result = tensor_over(storage, ptr, dtype, ndim, shape, strides)
    tensor_span(result, &first, &last)
    storage.ptr = first
    storage.nbytes = last - first
    return result


cdef int host_home() except? -1000:
    cdef int device = current_device()
    return device if is_host(device) else resolve_device(HOST_DEVICE)


cdef int prepare_export(Tensor t, uint64_t stream) except -1:
    work_begin()
    try:
        if t.storage.is_readonly:
            t.prepare_read(stream)
        else:
            t.prepare_write(stream)
    finally:
        work_end(t.storage.device)
    return 0


cdef int element_strides(object strides, int itemsize, int64_t* out) except -1:
    cdef int i
    for i in range(len(strides)):
        out[i] = strides[i]
        if out[i] % itemsize:
            raise ValueError(f"the imported strides {tuple(strides)} are not multiples of the "
                             f"element size {itemsize}; copy the array first")
        out[i] = out[i] // itemsize
    return 0


cdef int read_shape(object source, int64_t* shape) except -1:
    cdef int i
    if len(source) > MAX_NDIM:
        raise ValueError(f"the imported array has {len(source)} dimensions; at most {MAX_NDIM} "
                         "are allowed")
    for i in range(len(source)):
        shape[i] = source[i]
    return len(source)


def share_ndarray(array, device=None):
    """Return a tensor of a host device over the memory of a NumPy array, without a copy.

    Raises
    ------
    ValueError
        `device` is no host device, or the array is misaligned or in foreign byte order.
    """
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int target = host_home() if device is None else resolve_device(device)
    cdef int code
    if not is_host(target):
        raise ValueError(f"asarray: copy is False, but the memory of a NumPy array cannot be "
                         f"shared with {device_text(target)}")
    if not array.dtype.isnative:
        raise ValueError("asarray: copy is False, but the array is in foreign byte order")
    code = dtype_argument(array.dtype, 0)
    read_shape(array.shape, shape)
    element_strides(array.strides, dtype_itemsize(code), strides)
    return foreign_tensor(target, array.__array_interface__["data"][0], code, array.ndim, shape,
                          strides, array, not array.flags.writeable)


def from_cuda_array(obj):
    """Return a tensor over the memory of an object with ``__cuda_array_interface__``.

    The current stream waits for the stream that the object names.
    """
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef const int64_t* described = NULL
    cdef int device = current_device()
    cdef int code, status
    interface = obj.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ValueError("__cuda_array_interface__: masked arrays are not supported")
    code = DT_BFLOAT16
    if interface["typestr"] != "<V2":
        code = dtype_argument(np.dtype(interface["typestr"]), 0)
    if is_host(device):
        device = resolve_device("cuda:0")
    read_shape(interface["shape"], shape)
    given = interface.get("strides")
    if given is not None:
        element_strides(given, dtype_itemsize(code), strides)
        described = strides
    ptr, is_readonly = interface["data"]
    stream = interface.get("stream")
    if stream is not None:
        status = stream_wait_stream(device, current_stream(device), stream_of_protocol(stream))
        raise_for_order(device, current_stream(device), status)
    return foreign_tensor(device, ptr or 0, code, len(interface["shape"]), shape,
                          described, obj, is_readonly)


cdef uint64_t stream_of_protocol(object stream) except? 0xFFFFFFFF:
    """Our handle of a stream number of DLPack and the CUDA array interface.

    There 1 is the legacy default stream, which is our 0, and 2 the per-thread default stream,
    which has that number in the driver too. 0 is ambiguous and not allowed.
    """
    if stream == 0:
        raise ValueError("stream: 0 is ambiguous; 1 is the legacy default stream, 2 the one of "
                         "the thread")
    return 0 if stream == 1 else stream


def array_interface(Tensor t):
    """Return the ``__cuda_array_interface__`` (version 3) of a tensor.

    The stream it names is the current one, which is made to wait for all uses of the memory.
    AttributeError for host tensors and float8, which the protocol cannot describe.
    """
    cdef int device = t.storage.device
    cdef uint64_t stream
    if is_host(device):
        raise AttributeError("__cuda_array_interface__ exists for tensors on CUDA devices only; "
                             f"this one is on {device_text(device)}")
    if dtype_kind(t.dtype_code) == KIND_SMALL:
        raise AttributeError(f"__cuda_array_interface__ has no name for {t.dtype}; use DLPack")
    stream = current_stream(device)
    prepare_export(t, stream)
    return {
        "shape": t.shape,
        "typestr": DTYPES[t.dtype_code].numpy.str,
        "data": (t.data_ptr(), bool(t.storage.is_readonly)),
        "strides": None if t.is_c_contiguous else t.strides,
        "stream": 1 if stream == 0 else stream,
        "version": 3,
    }


def record_stream(Tensor t, stream):
    """Tell the library that work of a foreign kernel, queued on `stream`, uses the tensor's memory.

    The memory is not reused, and later operations on the tensor do not start, before that work is
    done. The library's own operations need no such call. To make after the kernel is queued.

    Parameters
    ----------
    stream : Stream or object with ``__cuda_stream__``
        A stream of the tensor's device.

    >>> with gt.Device("host"):
    ...     gt.zeros(3).record_stream(gt.Stream())
    """
    cdef uint64_t handle = 0
    stream_handle(stream, t.storage.device, &handle)
    prepare_export(t, handle)
