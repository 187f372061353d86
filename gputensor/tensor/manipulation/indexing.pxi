"""``t[key]`` and ``t[key] = value``.

A key of ints, slices, ``...`` and None gives a view. Integer tensors, lists, NumPy arrays and
masks among its entries make it a gather (gathering.pxi). As in NumPy, the axes of the selection
replace the index arrays if these are adjacent (ints count as index arrays then), and come first
otherwise. Writing through a key broadcasts the value and converts it to the dtype of the tensor; a
value that overlaps its destination is copied first.
"""

cdef object ndarray = np.ndarray

cdef struct View:
    uint64_t ptr
    int ndim
    int64_t[16] shape
    int64_t[16] strides
    # The number of groups of adjacent index arrays, and of view axes in front of the first group.
    int groups
    int group_axis
    bint is_in_group


cdef int keep_axis(View* view, int64_t extent, int64_t stride) except -1:
    if view.ndim == MAX_NDIM:
        raise IndexError(f"index: got more than {MAX_NDIM} dimensions in the result; expected at "
                         f"most {MAX_NDIM}")
    view.shape[view.ndim] = extent
    view.strides[view.ndim] = stride
    view.ndim += 1
    return 0


cdef int join_group(View* view) noexcept:
    if not view.is_in_group:
        view.is_in_group = True
        if view.groups == 0:
            view.group_axis = view.ndim
        view.groups += 1
    return 0


cdef int take_integer(Tensor a, View* view, int axis, object key) except -1:
    cdef int64_t extent = a.shape_[axis]
    cdef int64_t index
    try:
        index = key
    except OverflowError:
        raise IndexError(f"index: got {key} for axis {axis}; expected an index within its extent "
                         f"{extent}") from None
    if index < -extent or index >= extent:
        raise IndexError(f"index: got {index} for axis {axis}; expected an index within its "
                         f"extent {extent}")
    if index < 0:
        index += extent
    view.ptr += <uint64_t> (index * a.strides_[axis] * dtype_itemsize(a.dtype_code))
    return join_group(view)


cdef int take_slice(Tensor a, View* view, int axis, object key) except -1:
    cdef Py_ssize_t start, stop, step, extent
    PySlice_Unpack(key, &start, &stop, &step)
    extent = PySlice_AdjustIndices(a.shape_[axis], &start, &stop, step)
    if extent > 0:
        view.ptr += <uint64_t> (start * a.strides_[axis] * dtype_itemsize(a.dtype_code))
    view.is_in_group = False
    return keep_axis(view, extent, a.strides_[axis] * step)


cdef object array_entry(object entry, int device):
    """Return an index array as a Tensor, or as a NumPy array still to be checked; or raise."""
    if type(entry) is Tensor:
        if (<Tensor> entry).dtype_code != DT_BOOL:
            check_index_dtype(<Tensor> entry)
        return entry
    if isinstance(entry, (list, tuple, range, ndarray)):
        try:
            array = np.asarray(entry)
        except ValueError:
            raise argument_error(IndexError, "index", entry,
                                 "ints or bools, in lists of equal lengths") from None
        if array.size == 0 and not isinstance(entry, ndarray):
            array = array.astype(np.int64)
        if array.dtype.kind == "b":
            return upload(array, DT_BOOL, device)
        if array.dtype.kind in "iu":
            return array
        raise IndexError(f"index: got an array of dtype {array.dtype}; expected integers or bool")
    raise IndexError(f"index: got {entry!r:.60}; expected ints, slices, ..., None, and tensors, "
                     "lists or arrays of integers or bool")


cdef Tensor indices_inside(object array, int64_t extent, int axis, int device):
    """Return indices from the host on the device, after checking them against the axis."""
    if array.size and not (-extent <= int(array.min()) and int(array.max()) < extent):
        raise IndexError(f"index: got values in [{array.min()}, {array.max()}] for axis {axis}; "
                         f"expected all within its extent {extent}")
    return upload(array, DT_INT64, device)


cdef int take_mask(Tensor a, View* view, int axis, Tensor mask, list arrays) except -1:
    cdef int i
    cdef Tensor flat
    if axis + mask.ndim_ > a.ndim_ or not all(
            [mask.shape_[i] in (0, a.shape_[axis + i]) for i in range(mask.ndim_)]):
        raise IndexError(f"mask: got shape {mask.shape}; expected the extents of the axes from "
                         f"{axis} on, of shape {a.shape}")
    if mask.ndim_ == 0:
        take_flag(view, bool(mask), a.storage.device, arrays)
        return 0
    if is_one_axis(a, axis, mask):
        # NumPy finds places in one axis several times as fast, and gathers by fewer indices.
        i = axis + mask.ndim_ - 1
        flat = view_tensor(mask, mask.ptr, 1, &mask.size_, &mask.strides_[mask.ndim_ - 1])
        arrays.append((view.ndim, mask_indices(flat)[0]))
        keep_axis(view, mask.size_, a.strides_[i])
        return mask.ndim_
    for index in mask_indices(mask):
        arrays.append((view.ndim, index))
        keep_axis(view, a.shape_[axis], a.strides_[axis])
        axis += 1
    return mask.ndim_


cdef bint is_one_axis(Tensor a, int axis, Tensor mask) noexcept:
    """Return whether a host device's mask, and the axes it selects from, are one run each."""
    cdef int i
    if mask.ndim_ < 2 or mask.size_ == 0 or mask.storage.device >= 0:
        return False
    for i in range(mask.ndim_ - 1):
        if mask.strides_[i] != mask.strides_[i + 1] * mask.shape_[i + 1]:
            return False
        if a.strides_[axis + i] != a.strides_[axis + i + 1] * a.shape_[axis + i + 1]:
            return False
    return True


cdef int take_flag(View* view, bint flag, int device, list arrays) except -1:
    """Apply a bool as an index: a new axis of extent 1, whose element is selected or not."""
    arrays.append((view.ndim, upload(np.zeros(1 if flag else 0, np.int64), DT_INT64, device)))
    return keep_axis(view, 1, 0)


cdef bint is_basic(object entry) noexcept:
    return entry is None or entry is Ellipsis or isinstance(entry, (int, slice)) or (
        hasattr(entry, "__index__") and not isinstance(entry, (Tensor, type))
        and not isinstance(entry, ndarray))


cdef list no_arrays = []        # never changed


cdef list walk(Tensor a, object key, View* view):
    """Apply the basic entries of a key; return a list of the others: (view axis, index tensor)."""
    cdef int axis = 0
    cdef int consumed = 0
    cdef int _skipped
    cdef bint has_ellipsis = False
    cdef list arrays = no_arrays
    cdef list entries
    view.ptr = a.ptr
    view.ndim = view.groups = view.group_axis = 0
    view.is_in_group = False
    if a.ndim_ > 0 and (type(key) is slice or type(key) is int):
        if type(key) is slice:
            take_slice(a, view, 0, key)
        else:
            take_integer(a, view, 0, key)
        for axis in range(1, a.ndim_):
            keep_axis(view, a.shape_[axis], a.strides_[axis])
        return arrays
    arrays, entries = [], []
    for entry in key if type(key) is tuple else (key,):
        if entry is Ellipsis:
            if has_ellipsis:
                raise IndexError("index: got more than one Ellipsis; expected at most one")
            has_ellipsis = True
        elif entry is not None:
            if not is_basic(entry):
                entry = bool(entry) if isinstance(entry, np.bool_) else array_entry(
                    entry, a.storage.device)
            is_mask = type(entry) is Tensor and (<Tensor> entry).dtype_code == DT_BOOL
            consumed += (<Tensor> entry).ndim_ if is_mask else not isinstance(entry, bool)
        entries.append(entry)
    if consumed > a.ndim_:
        raise IndexError(f"index: got {consumed} indices; expected at most {a.ndim_}, one for "
                         "each dimension")
    if not has_ellipsis:
        entries.append(Ellipsis)
    for entry in entries:
        if entry is None:
            view.is_in_group = False
            keep_axis(view, 1, 1)
        elif entry is Ellipsis:
            view.is_in_group = False
            for _skipped in range(a.ndim_ - consumed):
                keep_axis(view, a.shape_[axis], a.strides_[axis])
                axis += 1
        elif isinstance(entry, bool):
            join_group(view)
            take_flag(view, entry, a.storage.device, arrays)
        elif isinstance(entry, int):
            take_integer(a, view, axis, entry)
            axis += 1
        elif isinstance(entry, slice):
            take_slice(a, view, axis, entry)
            axis += 1
        elif type(entry) is Tensor and (<Tensor> entry).dtype_code == DT_BOOL:
            join_group(view)
            axis += take_mask(a, view, axis, <Tensor> entry, arrays)
        elif type(entry) is Tensor or isinstance(entry, ndarray):
            if type(entry) is not Tensor:
                entry = indices_inside(entry, a.shape_[axis], axis, a.storage.device)
            join_group(view)
            arrays.append((view.ndim, entry))
            keep_axis(view, a.shape_[axis], a.strides_[axis])
            axis += 1
        else:
            take_integer(a, view, axis, entry.__index__())
            axis += 1
    return arrays


cdef Tensor arranged(Tensor a, View* view, list arrays, int* first_axis):
    """Return the view with its indexed axes side by side, starting at `first_axis`."""
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int i
    cdef int ndim = 0
    indexed = [axis for axis, _index in arrays]
    others = [i for i in range(view.ndim) if i not in indexed]
    first_axis[0] = view.group_axis if view.groups == 1 else 0
    for i in others[:first_axis[0]] + indexed + others[first_axis[0]:]:
        shape[ndim] = view.shape[i]
        strides[ndim] = view.strides[i]
        ndim += 1
    return view_tensor(a, view.ptr, ndim, shape, strides)


def getitem(Tensor a, key):
    """Return ``a[key]``: a view for basic keys, a copy for keys with index arrays."""
    cdef View view
    cdef int first_axis = 0
    cdef list arrays
    if (type(key) is Tensor and stays_on_device(<Tensor> key) and is_whole_mask(a, key)
            and (<Tensor> key).ndim_ == a.ndim_ and not is_tracing()):
        return pick_elements(a, *on_one_device("index", (key,), a))
    arrays = walk(a, key, &view)
    if not arrays:
        return view_tensor(a, view.ptr, view.ndim, view.shape, view.strides)
    target = arranged(a, &view, arrays, &first_axis)
    return gather_tensor(target, first_axis, [index for _axis, index in arrays])


def setitem(Tensor a, key, value):
    """Carry out ``a[key] = value``."""
    cdef View view
    cdef int first_axis = 0
    cdef list arrays
    cdef Tensor target, source
    if is_whole_mask(a, key) and number_kind(value) >= 0:
        value = {"b": bool, "i": int, "u": int}.get(a.dtype.kind, lambda x: x)(value)
        where(spread_mask(<Tensor> key, a), value, a, out=a)
        return
    arrays = walk(a, key, &view)
    if not arrays:
        target = view_tensor(a, view.ptr, view.ndim, view.shape, view.strides)
        if number_kind(value) >= 0:
            fill_with(target, value)
        else:
            copy_into(target, without_leading(value_tensor(value, a), target.ndim_))
        return
    target = arranged(a, &view, arrays, &first_axis)
    source = value_tensor(value, a)
    scatter_tensor(target, first_axis, [index for _axis, index in arrays], source)


cdef bint is_whole_mask(Tensor a, object key):
    cdef int i
    return (type(key) is Tensor and (<Tensor> key).dtype_code == DT_BOOL
            and (<Tensor> key).ndim_ <= a.ndim_
            and all([(<Tensor> key).shape_[i] == a.shape_[i]
                     for i in range((<Tensor> key).ndim_)]))


cdef Tensor spread_mask(Tensor mask, Tensor a):
    """Return the mask with axes of extent 1 appended, so that it broadcasts over all of `a`."""
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int i
    for i in range(a.ndim_):
        shape[i] = mask.shape_[i] if i < mask.ndim_ else 1
        strides[i] = mask.strides_[i] if i < mask.ndim_ else 1
    return view_tensor(mask, mask.ptr, a.ndim_, shape, strides)


cdef Tensor value_tensor(object value, Tensor a):
    """Return a value to write as a tensor on the device of `a`."""
    cdef Tensor source
    if type(value) is Tensor:
        source = <Tensor> value
    elif number_kind(value) >= 0 or isinstance(value, (list, tuple, range)):
        source = asarray(value, dtype=a.dtype, device=a.device)
    elif isinstance(value, (str, bytes)):
        raise argument_error(TypeError, "value", value, "a number, a tensor, an array or a list")
    else:
        source = asarray(value, device=a.device)
    if a.dtype.kind != "c" and source.dtype.kind == "c":
        raise TypeError(f"value: got complex numbers; expected numbers that dtype {a.dtype} can "
                        "hold")
    return source
