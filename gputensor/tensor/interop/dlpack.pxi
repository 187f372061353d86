"""DLPack, both ways: memory shared with other libraries without a copy.

Export: the capsule holds a reference to the tensor, so its block stays allocated. The consumer's
stream waits for the tensor's uses and is recorded as a writer, so our later uses wait for the work
that the consumer has queued by then. Import: the producer makes our current stream wait. The
producer's memory is kept until our tensors over it are gone and the work queued with it is done.
Host devices appear as DLPack's CPU, and an export waits until all queued work on the tensor is
done. The C structures are in dlpack.h.
"""

cdef extern from "gputensor/tensor/interop/dlpack.h":
    cdef struct DLDevice:
        int32_t device_type
        int32_t device_id

    cdef struct DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    cdef struct DLTensor:
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset

    cdef struct DLManagedTensor:
        DLTensor dl_tensor
        void* manager_ctx
        void (*deleter)(DLManagedTensor*) noexcept

    cdef struct DLPackVersion:
        uint32_t major
        uint32_t minor

    cdef struct DLManagedTensorVersioned:
        DLPackVersion version
        void* manager_ctx
        void (*deleter)(DLManagedTensorVersioned*) noexcept
        uint64_t flags
        DLTensor dl_tensor

cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil

cdef enum:
    DL_CPU = 1
    DL_CUDA = 2
    DL_CUDA_HOST = 3
    FLAG_READ_ONLY = 1
    FLAG_COPIED = 2

# The memory of one export; both managed forms keep their shape and strides in it.
cdef struct Export:
    DLManagedTensor plain
    DLManagedTensorVersioned versioned
    int64_t[16] shape
    int64_t[16] strides

# DType -> (DLPack type code, bits), and back.
cdef list DL_CODES = [
    ({"bool": 6, "int": 0, "uint": 1, "float": 2, "complex": 5, "small": 0}[row.kind],
     row.itemsize * 8) for row in DTYPES
]
DL_CODES[10] = (4, 16)      # bfloat16
DL_CODES[15] = (10, 8)      # float8_e4m3fn
DL_CODES[16] = (12, 8)      # float8_e5m2
cdef dict DTYPE_OF_DL = {pair: code for code, pair in enumerate(DL_CODES)}


# ---- export

cdef void release_export(void* tensor, Export* export) noexcept with gil:
    if Py_IsInitialized():
        Py_DECREF(<object> tensor)
    free(export)


cdef void delete_plain(DLManagedTensor* self) noexcept:
    release_export(self.manager_ctx, <Export*> self)


cdef void delete_versioned(DLManagedTensorVersioned* self) noexcept:
    cdef Export* zero = NULL
    cdef size_t offset = <size_t> &zero.versioned
    release_export(self.manager_ctx, <Export*> (<char*> self - offset))


cdef void drop_plain(object capsule) noexcept:
    cdef DLManagedTensor* managed
    if PyCapsule_IsValid(capsule, "dltensor"):
        managed = <DLManagedTensor*> PyCapsule_GetPointer(capsule, "dltensor")
        managed.deleter(managed)


cdef void drop_versioned(object capsule) noexcept:
    cdef DLManagedTensorVersioned* managed
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        managed = <DLManagedTensorVersioned*> PyCapsule_GetPointer(capsule, "dltensor_versioned")
        managed.deleter(managed)


cdef int describe(Tensor t, Export* export, DLTensor* out) except -1:
    memcpy(export.shape, t.shape_, sizeof(export.shape))
    memcpy(export.strides, t.strides_, sizeof(export.strides))
    out.data = <void*> t.ptr
    out.device.device_type = DL_CPU if device_kind(t.storage.device) == DEVICE_HOST else DL_CUDA
    out.device.device_id = 0 if device_kind(t.storage.device) == DEVICE_HOST else t.storage.device
    out.ndim = t.ndim_
    out.dtype.code, out.dtype.bits = DL_CODES[t.dtype_code]
    out.dtype.lanes = 1
    out.shape = export.shape
    out.strides = export.strides
    out.byte_offset = 0
    return 0


cdef int order_export(Tensor t, object stream) except -1:
    """Make the consumer see finished memory: its stream waits, or this thread waits."""
    cdef int device = t.storage.device
    cdef uint64_t handle
    cdef Driver* driver = driver_get(device)
    cdef status_t status
    if device_kind(device) == DEVICE_HOST:
        handle = current_handle(device)
    elif stream is None:
        handle = 0
    elif isinstance(stream, int) and stream == -1:
        return 0
    else:
        handle = stream_of_protocol(stream, "__dlpack__")
    prepare_export(t, handle)
    if device_kind(device) == DEVICE_HOST:
        with nogil:
            status = driver.stream_synchronize(driver.self, handle)
        raise_pending(device)
        if status:
            raise_for_status(status, "stream_synchronize", "while exporting a tensor")
    return 0


cdef tuple int_pair(object value, str argument, str rule):
    """Return a caller's pair of ints; bypasses overridden methods of a subclass of tuple."""
    cdef tuple items = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(items) == 2:
        try:
            return PyNumber_Index(items[0]), PyNumber_Index(items[1])
        except TypeError:
            pass
    raise TypeError(f"__dlpack__: {argument}: got {value!r:.60}; expected {rule}")


cdef int check_stream(object stream) except -1:
    """Raise if `stream` is not a stream number on any device; host tensors ignore valid ones."""
    try:
        number = PyNumber_Index(stream)
    except TypeError:
        raise TypeError(f"__dlpack__: stream: got {stream!r:.60}; expected an int or None"
                        ) from None
    if not -1 <= number < 1 << 64:
        raise ValueError(f"__dlpack__: stream: got {number:#x}; expected -1, or a stream handle")
    return 0


def dlpack(Tensor t, stream=None, max_version=None, dl_device=None, copy=None):
    """Return a DLPack capsule of a tensor; the implementation of ``Tensor.__dlpack__``.

    Parameters
    ----------
    stream : int, optional
        The consumer's stream on CUDA: 1 or None is the legacy default stream, 2 the per-thread one,
        -1 means no ordering, and other values are stream handles. Exports of host tensors ignore
        it and wait.
    max_version : tuple of two ints, optional
        ``(1, 0)`` or more selects the versioned form.
    dl_device : tuple of int, optional
        The device of the exported memory: the tensor's own, or the CPU, which needs a copy.
    copy : bool, optional
        True: export a copy. False: BufferError if one would be needed.
    """
    cdef Export* export
    cdef bint is_copied = False
    cdef bint is_versioned = max_version is not None and int_pair(
        max_version, "max_version", "a pair of ints (major, minor)")[0] >= 1
    copy = copy_argument(copy, "__dlpack__")
    if is_tracing():
        refuse_value_of(t, "DLPack")
    if stream is not None:
        check_stream(stream)
    if dl_device is not None:
        dl_device = int_pair(dl_device, "dl_device", "a pair of ints (device type, index)")
    if dl_device is not None and dl_device != device_pair(t):
        if dl_device != (DL_CPU, 0):
            others = "" if device_kind(t.storage.device) == DEVICE_HOST else (
                f"{device_pair(t)} and ")
            raise BufferError(f"dl_device: got {dl_device}; expected {others}(1, 0) for a tensor "
                              f"on {t.device}")
        if copy is False:
            raise BufferError("copy: got False; expected True or None, because a tensor on "
                              f"{t.device} reaches dl_device {dl_device} only by a copy")
        t = moved(t, resolve_device(HOST_DEVICE))
        is_copied = True
    elif copy:
        t = copied(t, t.dtype_code)
        is_copied = True
    if t.storage.is_readonly and not is_versioned:
        raise BufferError("tensor: got read-only memory, which DLPack before version 1 cannot "
                          "express; expected writable memory (copy the tensor first)")
    order_export(t, stream)
    export = <Export*> malloc(sizeof(Export))
    if export is NULL:
        raise MemoryError("no memory for a DLPack export")
    Py_INCREF(t)
    if not is_versioned:
        export.plain.manager_ctx = <void*> t
        export.plain.deleter = delete_plain
        describe(t, export, &export.plain.dl_tensor)
        return PyCapsule_New(&export.plain, "dltensor", drop_plain)
    export.versioned.version.major = 1
    export.versioned.version.minor = 0
    export.versioned.manager_ctx = <void*> t
    export.versioned.deleter = delete_versioned
    export.versioned.flags = (FLAG_READ_ONLY if t.storage.is_readonly else 0) | (
        FLAG_COPIED if is_copied else 0)
    describe(t, export, &export.versioned.dl_tensor)
    return PyCapsule_New(&export.versioned, "dltensor_versioned", drop_versioned)


def device_pair(Tensor t):
    """Return (DLPack device type, index); the implementation of ``Tensor.__dlpack_device__``.

    >>> device_pair(gt.zeros(1, device="host"))
    (1, 0)
    """
    if device_kind(t.storage.device) == DEVICE_HOST:
        return int(DL_CPU), 0
    return int(DL_CUDA), t.storage.device


# ---- import

def producer_device(x):
    """Return the result of ``x.__dlpack_device__()`` as two ints, after checking them."""
    given = x.__dlpack_device__()
    try:
        kind, index = given
        kind, index = PyNumber_Index(kind), PyNumber_Index(index)
    except (TypeError, ValueError):
        raise TypeError(f"__dlpack_device__: got {given!r:.60} from a {type(x).__name__}; "
                        "expected a pair (device type, index)") from None
    if not 0 <= index < 1 << 31:
        raise ValueError(f"__dlpack_device__: index: got {index:#x}; expected 0 to 2**31 - 1")
    return kind, index


cdef class Imported:
    """Owner of a managed tensor of another library; calls its deleter when dropped."""

    cdef DLManagedTensor* plain
    cdef DLManagedTensorVersioned* versioned

    def __dealloc__(self):
        if self.plain is not NULL and self.plain.deleter is not NULL:
            self.plain.deleter(self.plain)
        if self.versioned is not NULL and self.versioned.deleter is not NULL:
            self.versioned.deleter(self.versioned)


cdef object ask_for_capsule(object x, object stream, object copy):
    """Return the producer's capsule, in the versioned form if it supports that.

    The producer is told when it must not copy; we make a requested copy ourselves.
    """
    if copy is False:
        try:
            return x.__dlpack__(stream=stream, max_version=(1, 0), copy=False)
        except TypeError:
            pass        # its version of DLPack lacks this argument
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:
        return x.__dlpack__(stream=stream) if stream is not None else x.__dlpack__()


cdef int read_managed(DLTensor* source, Layout* layout) except -1:
    """Fill a layout from a producer's description; none of its numbers is trusted."""
    cdef int i
    pair = (source.dtype.code, source.dtype.bits)
    if pair not in DTYPE_OF_DL or source.dtype.lanes != 1:
        raise BufferError(f"dtype: got DLPack type code {pair[0]} with {pair[1]} bits and "
                          f"{source.dtype.lanes} lanes; expected an element type of this library")
    if not 0 <= source.ndim <= MAX_NDIM:
        raise BufferError(f"__dlpack__: ndim: got {source.ndim}; expected 0 to {MAX_NDIM}")
    if source.ndim and source.shape is NULL:
        raise BufferError(f"__dlpack__: shape: got NULL; expected {source.ndim} extents")
    layout.dtype = DTYPE_OF_DL[pair]
    layout.ndim = source.ndim
    layout.has_strides = source.strides is not NULL
    for i in range(source.ndim):
        layout.shape[i] = source.shape[i]
        if layout.has_strides:
            layout.strides[i] = source.strides[i]
    layout.ptr = 0
    if source.data is not NULL:
        layout.ptr = <uint64_t> source.data + source.byte_offset
        if layout.ptr < source.byte_offset:
            raise BufferError(f"__dlpack__: byte_offset: got {source.byte_offset:#x}; expected "
                              "memory inside the address space")
    return 0


cdef int check_place(DLTensor* source, int device) except -1:
    """Raise unless the memory is on the device that ``__dlpack_device__`` named."""
    cdef int kind = source.device.device_type
    if device_kind(device) == DEVICE_HOST and kind in (DL_CPU, DL_CUDA_HOST):
        return 0
    if kind == DL_CUDA and source.device.device_id == device:
        return 0
    raise BufferError(f"__dlpack__: device: got type {kind}, index {source.device.device_id}; "
                      f"expected memory on {device_text(device)}, as __dlpack_device__ says")


cdef Tensor adopt(object capsule, int device, bint assume_writable):
    """Return a tensor over a capsule's memory; this consumes the capsule, unless it raises.

    An unconsumed capsule frees its memory itself, so the deleter runs once in either case.
    """
    cdef DLTensor* source
    cdef Layout layout
    cdef Imported owner = Imported.__new__(Imported)
    cdef DLManagedTensorVersioned* versioned = NULL
    cdef DLManagedTensor* plain = NULL
    cdef bint is_readonly
    cdef Tensor result
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        versioned = <DLManagedTensorVersioned*> PyCapsule_GetPointer(capsule, "dltensor_versioned")
        # Only the version field is at the same place in every version.
        if versioned.version.major != 1:
            raise BufferError(f"DLPack: got version {versioned.version.major}; expected 1")
        source = &versioned.dl_tensor
        is_readonly = versioned.flags & FLAG_READ_ONLY
    elif PyCapsule_IsValid(capsule, "dltensor"):
        plain = <DLManagedTensor*> PyCapsule_GetPointer(capsule, "dltensor")
        source = &plain.dl_tensor
        is_readonly = not assume_writable
    else:
        raise BufferError("__dlpack__: got no unused DLPack capsule; expected one")
    check_place(source, device)
    read_managed(source, &layout)
    result = foreign_tensor(device, &layout, owner, is_readonly, "__dlpack__")
    # Nothing fails from here on, and the deleter is now ours to call.
    if versioned is not NULL:
        owner.versioned = versioned
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
    else:
        owner.plain = plain
        PyCapsule_SetName(capsule, "used_dltensor")
    return result


def from_dlpack(x, /, *, device=None, copy=None, assume_writable=False):
    """Return a tensor over the memory of an object with ``__dlpack__``.

    Parameters
    ----------
    x : object
        An array of any library on the CPU or a CUDA device, or an unused DLPack capsule. Work
        that still writes to the memory of a capsule is not waited for.
    device : str, int or Device, optional
        The device of the tensor; the memory is copied if `x` is on another device.
    copy : bool, optional
        True: new memory. False: ValueError if the memory cannot be shared. None: share it if
        possible.
    assume_writable : bool
        Allow writing to memory that the producer cannot declare writable. This never overrides a
        producer that declares its memory read-only.

    Raises
    ------
    BufferError
        The dtype, device or DLPack version of `x` has no counterpart, or its capsule is malformed.
    TypeError, ValueError
        The description of the device or memory by `x` is invalid.

    Notes
    -----
    For a tensor of this library the result is a view, whose uses are ordered with those of `x` on
    all streams.

    DLPack before version 1 cannot express whether memory may be written, and some libraries export
    immutable arrays with it. Memory imported that way is read-only, as in NumPy; write to a copy,
    or pass ``assume_writable=True`` if you may write to the memory.

    >>> import numpy as np
    >>> x = np.arange(3)
    >>> t = from_dlpack(x)
    >>> x[0] = 7
    >>> t[0].item()
    7
    """
    cdef int home
    cdef uint64_t stream
    cdef Tensor result
    cdef DLPackExchangeAPI* table
    cdef bint is_ours = flag_argument(assume_writable, "from_dlpack", "assume_writable")
    copy = copy_argument(copy, "from_dlpack")
    if PyCapsule_CheckExact(x):
        return imported_to(adopt(x, home_of_capsule(x, device), is_ours), device, copy)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: x: got {type(x).__name__}; expected an object with "
                        "__dlpack__ and __dlpack_device__, or a DLPack capsule")
    if type(x) is Tensor:
        home = (<Tensor> x).storage.device
        if device is None or resolve_device(device) == home:
            return copied(x, (<Tensor> x).dtype_code) if copy else x[()]
    table = table_of(type(x))
    # An array that records its uses for gradients refuses in __dlpack__; the table does not check.
    if table is not NULL and not getattr(x, "requires_grad", False):
        result = taken(x, table, device)
        if result is not None:
            return imported_to(result, device, copy)
    kind, index = producer_device(x)
    if kind == DL_CUDA:
        home = resolve_device(index)
        stream = current_handle(home)
        capsule = ask_for_capsule(x, 1 if stream == 0 else stream, copy)
    elif kind in (DL_CPU, DL_CUDA_HOST):
        home = home_for(device)
        capsule = ask_for_capsule(x, None, copy)
    else:
        raise BufferError(f"from_dlpack: device type: got {kind}; expected 1 (CPU), 2 (CUDA) or 3 "
                          "(pinned host memory)")
    return imported_to(adopt(capsule, home, is_ours), device, copy)


cdef int home_of_capsule(object capsule, object wanted) except? -1000:
    """Return the number of the device of a capsule's memory; `adopt` checks the rest."""
    cdef DLDevice place
    place.device_type, place.device_id = DL_CPU, 0
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        versioned = <DLManagedTensorVersioned*> PyCapsule_GetPointer(capsule, "dltensor_versioned")
        if versioned.version.major == 1:
            place = versioned.dl_tensor.device
    elif PyCapsule_IsValid(capsule, "dltensor"):
        place = (<DLManagedTensor*> PyCapsule_GetPointer(capsule, "dltensor")).dl_tensor.device
    return resolve_device(place.device_id) if place.device_type == DL_CUDA else home_for(wanted)


cdef int home_for(object wanted) except? -1000:
    """Return `wanted` if it is a host device, otherwise the host device for imported memory."""
    if wanted is not None and device_kind(resolve_device(wanted)) == DEVICE_HOST:
        return resolve_device(wanted)
    return host_home()


cdef Tensor imported_to(Tensor x, object device, object copy):
    """Return an imported tensor on the requested device."""
    cdef int target = x.storage.device if device is None else resolve_device(device)
    if target != x.storage.device:
        if copy is False:
            raise ValueError("from_dlpack: copy: got False; expected True or None, because the "
                             f"memory is not on {device}")
        return moved(x, target)
    return copied(x, x.dtype_code) if copy else x
