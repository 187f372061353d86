"""Tensors over memory of other libraries; the producer's description is checked here.

DLPack (dlpack.pxi), the CUDA array interface (cuda_interface.pxi) and NumPy arrays on a host device
fill a Layout; `foreign_tensor` makes a tensor of it only if all elements lie in the address space.
Whether the producer has memory there cannot be checked. The owner stays alive until the last tensor
over it is gone and the work queued with it is done.
"""

# Elements have at most 16 bytes, so sizes of fewer than 2**58 elements fit 64 bits.
# No processor gives a process addresses from this one on.
cdef uint64_t END_OF_ADDRESSES = <uint64_t> 1 << 63


cdef int64_t whole(object value, str source, str what) except? -1:
    """Return `value` as an int of 64 bits."""
    cdef object number
    try:
        number = PyNumber_Index(value)
    except TypeError:
        raise TypeError(f"{source}: {what}: got {value!r:.60}; expected ints") from None
    if not INT64_MIN <= number <= INT64_MAX:
        raise ValueError(f"{source}: {what}: got {number:#x}; expected at most 63 bits")
    return number


cdef tuple sequence(object value, str source, str what):
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{source}: {what}: got {value!r:.60}; expected a tuple of ints")
    return tuple(value)


# Read a tuple or list of extents, or of strides in bytes (None: row-major; call it after
# layout_shape). `source` names the protocol in messages. TypeError for anything but a sequence of
# ints, ValueError for wrong lengths, negative extents and strides that split elements.
cdef int layout_shape(Layout* layout, object shape, str source) except -1:
    cdef tuple extents = sequence(shape, source, "shape")
    cdef int i
    if len(extents) > MAX_NDIM:
        raise ValueError(f"{source}: shape: got {len(extents)} dimensions; expected at most "
                         f"{MAX_NDIM}")
    layout.ndim = len(extents)
    layout.has_strides = False
    for i in range(layout.ndim):
        layout.shape[i] = whole(extents[i], source, "shape")
        if layout.shape[i] < 0:
            raise ValueError(f"{source}: shape: got {extents}; expected extents of 0 or more")
    return 0


cdef int layout_strides(Layout* layout, object strides, str source) except -1:
    cdef tuple given
    cdef int64_t itemsize = dtype_itemsize(layout.dtype)
    cdef int i
    if strides is None:
        return 0
    given = sequence(strides, source, "strides")
    if len(given) != layout.ndim:
        raise ValueError(f"{source}: strides: got {len(given)} values; expected {layout.ndim}, "
                         "one for each dimension")
    for i in range(layout.ndim):
        layout.strides[i] = whole(given[i], source, "strides")
        # C's remainder; whether it is zero does not depend on its sign convention.
        if layout.shape[i] > 1 and layout.strides[i] % itemsize:
            raise ValueError(f"{source}: strides: got {given}; expected multiples of the element "
                             f"size {itemsize}; copy the array first")
        layout.strides[i] = layout.strides[i] // itemsize
    layout.has_strides = True
    return 0


# ValueError if the layout has negative extents, more than 2**58 elements, memory outside the
# address space, or an address that is not a multiple of the element size. Empty layouts get
# address 0; strides of axes with fewer than two elements have no meaning and are replaced.
cdef int layout_check(Layout* layout, str source) except -1:
    cdef int64_t itemsize = dtype_itemsize(layout.dtype)
    cdef int64_t size = 1           # of the axes so far, from the last one; without empty ones
    cdef int64_t below = 0          # elements before and behind the first one
    cdef int64_t above = 0
    cdef int64_t extent, stride
    cdef bint is_empty = False
    cdef int i
    for i in range(layout.ndim - 1, -1, -1):
        extent = layout.shape[i]
        if extent < 0:
            raise ValueError(f"{source}: shape: got the extent {extent}; expected 0 or more")
        stride = layout.strides[i] if layout.has_strides and extent > 1 else size
        layout.strides[i] = stride
        if extent == 0:
            is_empty = True
            continue
        if size > MAX_SIZE // extent:
            raise ValueError(f"{source}: shape: got {shape_of(layout)}; expected at most 2**58 "
                             "elements, counted without the axes of extent 0")
        size *= extent
        if extent == 1:
            continue
        if not -(MAX_SIZE // (extent - 1)) <= stride <= MAX_SIZE // (extent - 1):
            raise ValueError(f"{source}: strides: got {stride} elements for the extent {extent}; "
                             "expected memory inside the address space")
        if stride < 0:
            below -= (extent - 1) * stride
        else:
            above += (extent - 1) * stride
    layout.has_strides = True
    if is_empty:
        layout.ptr = 0
        return 0
    if layout.ptr == 0:
        raise ValueError(f"{source}: data: got address 0 for {size} elements; expected memory")
    if layout.ptr % <uint64_t> itemsize:
        raise ValueError(f"{source}: data: got address {layout.ptr:#x}; expected a multiple of the "
                         f"element size {itemsize}; copy the array first")
    # At most 16 axes of 2**58 elements: divide instead of multiplying.
    if (<uint64_t> below > (layout.ptr - 1) // <uint64_t> itemsize
            or layout.ptr >= END_OF_ADDRESSES
            or <uint64_t> above >= (END_OF_ADDRESSES - layout.ptr) // <uint64_t> itemsize):
        raise ValueError(f"{source}: data: got address {layout.ptr:#x}, {below} elements before "
                         f"and {above} behind it; expected memory inside the address space")
    return 0


cdef tuple shape_of(Layout* layout):
    cdef int i
    return tuple([layout.shape[i] for i in range(layout.ndim)])


# A tensor over `owner`'s memory, after `layout_check`.
cdef Tensor foreign_tensor(int device, Layout* layout, object owner, bint is_readonly, str source):
    cdef Tensor result
    cdef uint64_t first, last
    layout_check(layout, source)
    storage = storage_foreign(device, layout.ptr, 0, owner, is_readonly, current_handle(device))
    result = tensor_over(storage, layout.ptr, layout.dtype, layout.ndim, layout.shape,
                         layout.strides)
    tensor_span(result, &first, &last)
    storage.ptr = first
    storage.nbytes = last - first
    return result


# The host device for imported host memory: the current one, or the default host device.
cdef int host_home() except? -1000:
    cdef int device = current_device()
    return device if device_kind(device) == DEVICE_HOST else resolve_device(HOST_DEVICE)


# Orders a coming use of a tensor by another library, which may write unless it is read-only.
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


# ValueError if elements of an array that NumPy made of an object lie outside its buffer.
cdef int check_inside_buffer(object array, str source) except -1:
    # NumPy checks the buffer of __array_interface__ against the number of elements, but not against
    # the strides.
    cdef object base = array.base
    if base is None or isinstance(base, np.ndarray) or not PyObject_CheckBuffer(base):
        return 0
    buffer = memoryview(base)
    if not buffer.c_contiguous or array.size == 0:
        return 0
    start = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0] if buffer.nbytes else 0
    low = high = array.__array_interface__["data"][0]
    for extent, stride in zip(array.shape, array.strides):
        low += min(0, (extent - 1) * stride)
        high += max(0, (extent - 1) * stride)
    high += array.itemsize
    if low < start or high > start + buffer.nbytes:
        raise ValueError(f"{source}: strides: got {array.strides} for shape {array.shape}; "
                         f"expected elements inside the buffer of {buffer.nbytes} bytes")
    return 0


def share_ndarray(array, device=None):
    """Return a tensor of a host device over the memory of a NumPy array, without a copy.

    Raises
    ------
    ValueError
        `device` is not a host device, or the array is misaligned or in foreign byte order.
    """
    cdef Layout layout
    cdef int target = host_home() if device is None else resolve_device(device)
    if device_kind(target) != DEVICE_HOST:
        raise ValueError("asarray: copy: got False; expected True or None, because the memory of "
                         f"a NumPy array cannot be shared with {device_text(target)}")
    # A subclass may describe itself wrongly; the plain array over its memory does not.
    plain = np.asarray(array)
    if not plain.dtype.isnative:
        raise ValueError("asarray: copy: got False; expected True or None, because the array is "
                         "in foreign byte order")
    layout.dtype = dtype_argument(plain.dtype, 0)
    layout.ptr = plain.__array_interface__["data"][0]
    layout_shape(&layout, plain.shape, "asarray")
    layout_strides(&layout, plain.strides, "asarray")
    return foreign_tensor(target, &layout, plain, not plain.flags.writeable, "asarray")


cdef uint64_t stream_of_protocol(object stream, str source) except? 0xFFFFFFFF:
    """Return our handle for a stream number of DLPack or the CUDA array interface.

    In both, 1 is the legacy default stream, which is our 0, and 2 is the per-thread default stream,
    as in the driver. 0 is ambiguous and not allowed.
    """
    cdef object number
    try:
        number = PyNumber_Index(stream)
    except TypeError:
        raise TypeError(f"{source}: stream: got {stream!r:.60}; expected an int or None") from None
    if number == 0:
        raise ValueError(f"{source}: stream: got 0, which is ambiguous; expected 1 for the legacy "
                         "default stream or 2 for the per-thread default stream")
    if not 0 < number < 1 << 64:
        raise ValueError(f"{source}: stream: got {number:#x}; expected 1, 2 or a stream handle")
    return 0 if number == 1 else number


def record_stream(Tensor t, stream):
    """Record that foreign work already queued on `stream` uses the tensor's memory.

    The memory is not reused, and later operations on the tensor do not start, until that work is
    done. The library's own operations need no such call. Call it after queueing the kernel.

    Parameters
    ----------
    stream : Stream or object with ``__cuda_stream__``
        A stream of the tensor's device.

    >>> with gt.Device("host"):
    ...     gt.zeros(3).record_stream(gt.Stream())
    """
    cdef uint64_t handle = 0
    resolve_stream(stream, t.storage.device, &handle)
    prepare_export(t, handle)


def over_memory(owner, uint64_t ptr, shape, strides, dtype):
    """Return a tensor over memory of `owner`, which keeps it alive and has a ``device`` number.

    `strides` are in elements; None means row-major.
    """
    cdef Layout layout
    cdef int i
    layout.ptr = ptr
    layout.dtype = dtype_argument(dtype, DT_FLOAT32)
    layout.ndim = len(shape)
    layout.has_strides = strides is not None
    for i in range(layout.ndim):
        layout.shape[i] = shape[i]
        if strides is not None:
            layout.strides[i] = strides[i]
    return foreign_tensor(owner.device, &layout, owner, False, "over_memory")


def memory_owner(Tensor t):
    """Return the owner of a tensor's memory; None for memory of the allocator."""
    return t.storage.owner
