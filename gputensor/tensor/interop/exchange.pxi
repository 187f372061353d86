"""DLPack's C exchange table (version 1.3): exchange between libraries without Python calls.

The type attribute ``__dlpack_c_exchange_api__`` is a capsule with a table of functions. They do not
order work between streams: a consumer calls `current_work_stream` and queues its work on that
stream, which is also the stream of our own work. Therefore an export orders the tensor's earlier
uses with that stream, and counts as a write on it, like a capsule.
"""

cdef extern from "gputensor/tensor/interop/dlpack.h":
    cdef struct DLPackExchangeAPIHeader:
        DLPackVersion version
        DLPackExchangeAPIHeader* prev_api

    cdef struct DLPackExchangeAPI:
        DLPackExchangeAPIHeader header
        int (*managed_tensor_allocator)(DLTensor*, DLManagedTensorVersioned**, void*,
                                        void (*)(void*, const char*, const char*) noexcept) noexcept
        int (*managed_tensor_from_py_object_no_sync)(void*, DLManagedTensorVersioned**) noexcept
        int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned*, void**) noexcept
        int (*dltensor_from_py_object_no_sync)(void*, DLTensor*) noexcept
        int (*current_work_stream)(int, int32_t, void**) noexcept

cdef extern from "Python.h":
    void PyErr_Clear() noexcept

cdef enum:
    MOST_TABLES = 64
    DL_COMPLEX = 5

cdef DLPackExchangeAPI exchange_table


cdef int exported(Tensor t, DLManagedTensorVersioned** out) except -1:
    """Make a managed tensor that holds a reference to `t`."""
    cdef Export* export
    prepare_export(t, current_handle(t.storage.device))
    if device_kind(t.storage.device) == DEVICE_HOST:
        order_export(t, None)       # host memory has no stream that a consumer could wait on
    export = <Export*> malloc(sizeof(Export))
    if export is NULL:
        raise MemoryError("no memory for a DLPack export")
    Py_INCREF(t)
    export.versioned.version.major = 1
    export.versioned.version.minor = 3
    export.versioned.manager_ctx = <void*> t
    export.versioned.deleter = delete_versioned
    export.versioned.flags = FLAG_READ_ONLY if t.storage.is_readonly else 0
    describe(t, export, &export.versioned.dl_tensor)
    out[0] = &export.versioned
    return 0


# The device number of DLPack's device, or an error.
cdef int device_of_pair(int kind, int32_t index) except? -1000:
    if kind == DL_CPU or kind == DL_CUDA_HOST:
        return host_home()
    if kind == DL_CUDA:
        return resolve_device(index)
    raise BufferError(f"dlpack: device type: got {kind}; expected 1 (CPU), 2 (CUDA) or 3 (pinned "
                      "host memory)")


cdef int exchange_allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                           void (*set_error)(void*, const char*, const char*) noexcept
                           ) noexcept with gil:
    """Allocate a tensor of the prototype's dtype, shape and device."""
    cdef int64_t[16] shape
    cdef int i
    try:
        pair = (prototype.dtype.code, prototype.dtype.bits)
        if pair not in DTYPE_OF_DL or prototype.dtype.lanes != 1:
            raise BufferError(f"dlpack: dtype: got type code {pair[0]} with {pair[1]} bits; "
                              "expected an element type of this library")
        if not 0 <= prototype.ndim <= MAX_NDIM:
            raise BufferError(f"dlpack: ndim: got {prototype.ndim}; expected 0 to {MAX_NDIM}")
        for i in range(prototype.ndim):
            shape[i] = prototype.shape[i]
        shape_argument(tuple([shape[i] for i in range(prototype.ndim)]), shape)
        exported(empty_tensor(DTYPE_OF_DL[pair], prototype.ndim, shape,
                              device_of_pair(prototype.device.device_type,
                                             prototype.device.device_id)), out)
        return 0
    except BaseException as error:
        name = type(error).__name__.encode()
        text = str(error).encode()
        set_error(context, name, text)
        return -1


cdef int exchange_export(void* object_, DLManagedTensorVersioned** out) noexcept with gil:
    try:
        exported(<Tensor?> <object> object_, out)
        return 0
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return -1


cdef int exchange_import(DLManagedTensorVersioned* managed, void** out) noexcept with gil:
    """Make a tensor that owns the managed one; on failure the caller still owns it."""
    cdef Layout layout
    cdef Imported owner
    cdef Tensor result
    cdef int device
    try:
        if managed.version.major != 1:
            raise BufferError(f"DLPack: got version {managed.version.major}; expected 1")
        device = device_of_pair(managed.dl_tensor.device.device_type,
                                managed.dl_tensor.device.device_id)
        read_managed(&managed.dl_tensor, &layout)
        owner = Imported.__new__(Imported)
        result = foreign_tensor(device, &layout, owner, managed.flags & FLAG_READ_ONLY, "dlpack")
        owner.versioned = managed
        Py_INCREF(result)
        out[0] = <void*> result
        return 0
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return -1


cdef int exchange_borrow(void* object_, DLTensor* out) noexcept with gil:
    """Describe a tensor without a reference; the description is valid as long as the tensor."""
    cdef Tensor t
    try:
        t = <Tensor?> <object> object_
        prepare_export(t, current_handle(t.storage.device))
        if device_kind(t.storage.device) == DEVICE_HOST:
            order_export(t, None)
        out.data = <void*> t.ptr
        out.device.device_type, out.device.device_id = device_pair(t)
        out.ndim = t.ndim_
        code, bits = DL_CODES[t.dtype_code]
        out.dtype.code, out.dtype.bits, out.dtype.lanes = code, bits, 1
        out.shape = t.shape_
        out.strides = t.strides_
        out.byte_offset = 0
        return 0
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return -1


cdef int exchange_stream(int kind, int32_t index, void** out) noexcept with gil:
    """Store the stream on which our work is queued; NULL for a host device."""
    try:
        out[0] = NULL
        if kind == DL_CUDA:
            out[0] = <void*> <uint64_t> current_handle(device_of_pair(kind, index))
        return 0
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        return -1


# ---- import through a producer's table

# Class -> address of its table, or 0 if it has no usable one.
cdef dict producer_tables = {}


cdef DLPackExchangeAPI* table_of(object cls) except? NULL:
    """Return the table of version 1 that a class itself defines, or NULL.

    A subclass may store its memory differently, so an inherited table is not used.
    """
    cdef DLPackExchangeAPI* table = NULL
    cdef DLPackExchangeAPIHeader* header
    cdef object address = producer_tables.get(cls)
    if address is not None:
        return <DLPackExchangeAPI*> <size_t> address
    capsule = vars(cls).get("__dlpack_c_exchange_api__")
    if PyCapsule_IsValid(capsule, "dlpack_exchange_api"):
        header = <DLPackExchangeAPIHeader*> PyCapsule_GetPointer(capsule, "dlpack_exchange_api")
        while header is not NULL and header.version.major != 1:
            header = header.prev_api
        table = <DLPackExchangeAPI*> header
        if table is not NULL and (table.managed_tensor_from_py_object_no_sync is NULL
                                  or table.current_work_stream is NULL):
            table = NULL
    if len(producer_tables) < MOST_TABLES:
        producer_tables[cls] = <size_t> table
    return table


cdef Tensor taken(object x, DLPackExchangeAPI* table, object wanted):
    """Return a tensor over the memory of `x` through the table, or None to use ``__dlpack__``.

    Complex numbers go through ``__dlpack__``, because the table does not show lazy conjugation.
    """
    cdef DLManagedTensorVersioned* managed = NULL
    cdef Layout layout
    cdef Imported owner
    cdef int device, kind
    cdef bint is_readonly
    cdef Tensor result
    if table.managed_tensor_from_py_object_no_sync(<void*> x, &managed) != 0 or managed is NULL:
        PyErr_Clear()
        return None
    owner = Imported.__new__(Imported)
    owner.versioned = managed
    kind = managed.dl_tensor.device.device_type
    if (managed.version.major != 1 or managed.dl_tensor.dtype.code == DL_COMPLEX
            or kind not in (DL_CPU, DL_CUDA, DL_CUDA_HOST)):
        return None
    if kind == DL_CUDA:
        device = resolve_device(managed.dl_tensor.device.device_id)
    else:
        device = home_for(wanted)
    read_managed(&managed.dl_tensor, &layout)
    is_readonly = managed.flags & FLAG_READ_ONLY
    if kind == DL_CUDA and not follow(device, kind, managed.dl_tensor.device.device_id, table):
        return None
    result = foreign_tensor(device, &layout, owner, is_readonly, "__dlpack__")
    return result


cdef bint follow(int device, int kind, int32_t index, DLPackExchangeAPI* table) except -1:
    """Make our current stream wait for the producer's stream; False: ``__dlpack__`` has to."""
    cdef void* theirs = NULL
    if table.current_work_stream(kind, index, &theirs) != 0:
        PyErr_Clear()
        return False
    return stream_wait_stream(device, current_handle(device), <uint64_t> theirs) == 0


def exchange_capsule():
    """Return the capsule with the table, which lives as long as the process.

    >>> "dlpack_exchange_api" in repr(exchange_capsule())
    True
    """
    exchange_table.header.version.major = 1
    exchange_table.header.version.minor = 3
    exchange_table.header.prev_api = NULL
    exchange_table.managed_tensor_allocator = exchange_allocate
    exchange_table.managed_tensor_from_py_object_no_sync = exchange_export
    exchange_table.managed_tensor_to_py_object_no_sync = exchange_import
    exchange_table.dltensor_from_py_object_no_sync = exchange_borrow
    exchange_table.current_work_stream = exchange_stream
    return PyCapsule_New(&exchange_table, "dlpack_exchange_api", NULL)
