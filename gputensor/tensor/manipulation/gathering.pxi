"""Indexing with integer tensors and masks.

Integer indices stay on the device. An index out of range raises IndexError on a host device, even
if the selection is empty. A CUDA kernel cannot raise, so there such an index reads the nearest
element and writes nothing. Indices into an axis of extent 0 raise on both.
Indices from the host (lists, NumPy arrays) are checked before the upload. A mask is converted to
integer indices: large masks of a GPU on that GPU, where the host only reads their number
(tensor/places.py), and others by NumPy.
"""

cdef enum:
    MASK_ON_DEVICE = 1 << 15    # elements from which a mask of a GPU is not copied to the host
    MASK_LOOPED = 8192          # and from which a bool mask is not searched by NumPy

# Set by tensor/places.py, which is above this room.
cdef object find_places = None
cdef object pick_elements = None


def find_places_with(places, picked):
    """Set the functions that find the elements selected by a large mask of a GPU.

    ``places(x)`` returns where `x` is not zero; ``picked(x, mask)`` returns the elements of `x`
    where a mask of its shape is true.
    """
    global find_places, pick_elements
    find_places, pick_elements = places, picked


cdef int selection_shape(Tensor a, int first_axis, list indices, int64_t* shape,
                         int64_t* index_shape, int* index_ndim) except -1:
    """Compute the shape of the selection and the common shape of the indices; return the ndim."""
    cdef int count = len(indices)
    cdef int i
    cdef int ndim = 0
    try:
        for one in indices:
            ndim = broadcast_shape(index_shape, ndim, <Tensor> one, "index")
    except ValueError as error:
        raise IndexError(str(error)) from None      # as in NumPy
    if a.ndim_ - count + ndim > MAX_NDIM:
        raise IndexError(f"index: got more than {MAX_NDIM} dimensions in the result; expected at "
                         f"most {MAX_NDIM}")
    for i in range(first_axis):
        shape[i] = a.shape_[i]
    for i in range(ndim):
        shape[first_axis + i] = index_shape[i]
    for i in range(first_axis + count, a.ndim_):
        shape[i - count + ndim] = a.shape_[i]
    index_ndim[0] = ndim
    return a.ndim_ - count + ndim


cdef int fill_indices(list indices, Operand* operands, int ndim, const int64_t* shape,
                      uint64_t stream) except -1:
    cdef int i
    for i in range(len(indices)):
        broadcast_operand(<Tensor> indices[i], &operands[i], ndim, shape)
        (<Tensor> indices[i]).prepare_read(stream)
    return 0


cdef int check_unused(Tensor a, int first_axis, list indices, int ndim,
                      const int64_t* shape) except -1:
    """Check indices into `a` that select nothing."""
    cdef Operand[16] operands
    cdef Operand whole
    cdef uint64_t stream = current_handle(a.storage.device)
    work_begin()
    try:
        fill_indices(indices, operands, ndim, shape, stream)
        a.fill_operand(&whole)
        return check_unused_kernel(a.storage.device, stream, &whole, first_axis, len(indices),
                                   operands)
    finally:
        work_end(a.storage.device)


# The elements of `a` that index tensors select along consecutive axes, beginning with `first_axis`.
cdef Tensor gather_tensor(Tensor a, int first_axis, list indices):
    if not share_device(a, indices):
        a, *indices = on_one_device("index", (a, *indices), None)
    return gathered(a, first_axis, indices)


cdef bint share_device(Tensor a, list indices) noexcept:
    for one in indices:
        if (<Tensor> one).storage.device != a.storage.device:
            return False
    return True


cdef int checks_inside = 0      # checked_indices() blocks of the process, and the variable
if switch("GPUTENSOR_CHECK_INDICES"):
    checks_inside = 1


class checked_indices:
    """Check indices on CUDA devices before they are used, in a ``with`` block.

    A kernel cannot raise, so by default an index out of range reads the nearest element and writes
    nothing on a CUDA device. Inside this block, in any thread, each gather and each assignment by
    integer tensors waits for the least and the greatest index and raises IndexError, as host
    devices always do. The environment variable ``GPUTENSOR_CHECK_INDICES=1`` does the same for the
    whole process. Work captured into a graph is not checked, because the host cannot wait for it.

    >>> with checked_indices():
    ...     gt.asarray([5, 6], device="host")[gt.asarray([1], device="host")].tolist()
    [6]
    """

    def __enter__(self):
        global checks_inside
        checks_inside += 1
        return self

    def __exit__(self, *error):
        global checks_inside
        checks_inside -= 1
        return False


cdef int check_inside(Tensor a, int first_axis, list indices) except -1:
    """Raise IndexError for an index out of range on a CUDA device, after waiting for it."""
    cdef Tensor index
    cdef int i
    cdef int64_t extent
    if device_kind(a.storage.device) == DEVICE_HOST or is_tracing() or stream_captures(
            a.storage.device, current_handle(a.storage.device)):
        return 0
    for i in range(len(indices)):
        index = <Tensor> indices[i]
        extent = a.shape_[first_axis + i]
        if index.size_ == 0:
            continue
        for bound in (least(index), greatest(index)):
            value = int(bound)
            if not -extent <= value < extent:
                raise IndexError(f"index: got {value} for axis {first_axis + i}; expected an index "
                                 f"within its extent {extent}")
    return 0


cdef Tensor gathered(Tensor a, int first_axis, list indices):
    cdef int64_t[16] shape
    cdef int64_t[16] index_shape
    cdef Operand[16] operands
    cdef Operand output, source
    cdef int index_ndim = 0
    cdef int device = a.storage.device
    cdef int ndim = selection_shape(a, first_axis, indices, shape, index_shape, &index_ndim)
    cdef Tensor result
    cdef uint64_t stream
    if checks_inside:
        check_inside(a, first_axis, indices)
    result = empty_tensor(a.dtype_code, ndim, shape, device)
    if result.size_ == 0:
        check_unused(a, first_axis, indices, index_ndim, index_shape)
        return result
    stream = current_handle(device)
    work_begin()
    try:
        fill_indices(indices, operands, index_ndim, index_shape, stream)
        a.prepare_read(stream)
        a.fill_operand(&source)
        result.prepare_write(stream)
        result.fill_operand(&output)
        gather_kernel(device, stream, &output, &source, first_axis, len(indices), operands)
    finally:
        work_end(device)
    return result


# Writes `values`, broadcast to the shape of the selection, to the same elements of `target`.
cdef int scatter_tensor(Tensor target, int first_axis, list indices, Tensor values) except -1:
    cdef int64_t[16] shape
    cdef int64_t[16] index_shape
    cdef int64_t[16] joint
    cdef Operand[16] operands
    cdef Operand output, source
    cdef int index_ndim = 0
    cdef int device = target.storage.device
    cdef int ndim
    cdef int64_t size = 1
    cdef int i
    cdef uint64_t stream
    if not share_device(target, indices) or values.storage.device != device:
        values, *indices = on_one_device("index assignment", (values, *indices), target)
    ndim = selection_shape(target, first_axis, indices, shape, index_shape, &index_ndim)
    values = without_leading(values, ndim)
    for i in range(ndim):
        joint[i] = shape[i]
        size *= shape[i]
    if broadcast_shape(joint, ndim, values, "index assignment") != ndim or not all(
            [joint[i] == shape[i] for i in range(ndim)]):
        raise ValueError(f"value: got shape {values.shape}; expected one that broadcasts to the "
                         f"selection's {tuple([shape[i] for i in range(ndim)])}")
    check_distinct(target, "index assignment")
    if checks_inside:
        check_inside(target, first_axis, indices)
    if size == 0:
        return check_unused(target, first_axis, indices, index_ndim, index_shape)
    if values.dtype_code != target.dtype_code or overlaps(target, values):
        values = copied(values, target.dtype_code)
    indices = [copied(one, (<Tensor> one).dtype_code) if overlaps(target, <Tensor> one) else one
               for one in indices]
    stream = current_handle(device)
    work_begin()
    try:
        fill_indices(indices, operands, index_ndim, index_shape, stream)
        values.prepare_read(stream)
        broadcast_operand(values, &source, ndim, shape)
        target.prepare_write(stream)
        target.fill_operand(&output)
        scatter_kernel(device, stream, &output, first_axis, len(indices), operands, &source)
    finally:
        work_end(device)
    return 0


# `values` without leading axes of extent 1 beyond `ndim`, which NumPy ignores in assignments.
cdef Tensor without_leading(Tensor values, int ndim):
    cdef int extra = values.ndim_ - ndim
    cdef int i
    if extra > 0 and all([values.shape_[i] == 1 for i in range(extra)]):
        return view_tensor(values, values.ptr, ndim, values.shape_ + extra,
                           values.strides_ + extra)
    return values


# Whether a mask is large enough to be searched by kernels, or by the loops of a host device.
cdef bint stays_on_device(Tensor mask) noexcept:
    if mask.storage.device < 0:
        return mask.dtype_code == DT_BOOL and mask.size_ >= MASK_LOOPED
    return mask.size_ >= MASK_ON_DEVICE


# Where a tensor is nonzero, in row-major order: one int64 tensor for each axis. Waits. A large mask
# of a GPU stays there; copying a small one to the host is faster.
cdef list mask_indices(Tensor mask):
    if is_tracing():
        refuse_value_of(mask, "a mask as an index")
    if stays_on_device(mask):
        return find_places(mask)
    return [upload(one, DT_INT64, mask.storage.device) for one in places_in(download(mask))]


cdef list places_in(object array):
    """Return ``np.nonzero(array)``, from the places in one axis, which NumPy finds faster."""
    cdef list found = []
    places = np.flatnonzero(array)
    for extent in array.shape[:0:-1]:
        before = places // extent
        scaled = before * extent
        found.append(np.subtract(places, scaled, out=scaled))
        places = before
    return [places, *found[::-1]]


def nonzero(x, /, *, as_tuple=True):
    """Return where `x` is not zero: one int64 tensor for each axis. Waits for the device.

    With PyTorch's ``as_tuple=False``: the rows of one matrix, as :func:`argwhere`.

    >>> nonzero(gt.asarray([0, 5, 7], device="host"))[0].numpy()
    array([1, 2])
    """
    cdef Tensor a = tensor_argument(x, "nonzero")
    if a.ndim_ == 0:
        raise ValueError("nonzero: x: got 0 dimensions; expected 1 or more")
    if is_tracing():
        refuse_value_of(a, "nonzero()")
    places = tuple(mask_indices(a))
    if flag_argument(as_tuple, "nonzero", "as_tuple"):
        return places
    rows = empty((places[0].size, len(places)), dtype=np.int64, device=a.device)
    for axis, indices in enumerate(places):
        rows[:, axis] = indices
    return rows


def take(x, indices, /, axis=None):
    """Return slices of `x` along `axis`, selected by integers: a tensor, a list or an int.

    In the result, the shape of `indices` replaces the axis. Without `axis` they select elements of
    `x` in row-major order. Indices in a tensor stay on the device.

    >>> take(gt.asarray([5, 6, 7], device="host"), gt.asarray([2, 0], device="host")).numpy()
    array([7, 5])
    """
    cdef Tensor a = tensor_argument(x, "take")
    cdef Tensor picks
    if isinstance(indices, (int, list, tuple)) and not isinstance(indices, bool):
        indices = asarray(indices, dtype=None if indices or indices == 0 else "int64",
                          device=a.device)
    picks = tensor_argument(indices, "take")
    if axis is None and a.ndim_ != 1 or a.ndim_ == 0:   # as in NumPy, which has axis 0 there, too
        a = reshape(a, -1)
    check_index_dtype(picks)
    return gather_tensor(a, axis_argument(0 if axis is None else axis, a.ndim_, "take"), [picks])


# Raises IndexError unless the tensor has an integer dtype.
cdef int check_index_dtype(Tensor index) except -1:
    if DTYPES[index.dtype_code].kind not in ("int", "uint"):
        raise IndexError(f"index: got a tensor of dtype {DTYPES[index.dtype_code].name}; expected "
                         "integers or bool")
    return 0
