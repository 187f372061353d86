"""Other shapes of the same elements.

Only `reshape` may copy, and only if no strides describe the result. All other functions return a
view: it shares memory with its argument, and a write to one changes the other.
"""

# A view with the axes in another order; `order` holds each axis once.
cdef Tensor permuted(Tensor a, const int* order):
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int i
    for i in range(a.ndim_):
        shape[i] = a.shape_[order[i]]
        strides[i] = a.strides_[order[i]]
    return view_tensor(a, a.ptr, a.ndim_, shape, strides)


# A view broadcast to a compatible shape.
cdef Tensor broadcast_view(Tensor a, int ndim, const int64_t* shape):
    cdef int64_t[16] strides
    cdef int i
    cdef int shift = ndim - a.ndim_
    for i in range(ndim):
        if i < shift or (a.shape_[i - shift] == 1 and shape[i] != 1):
            strides[i] = 0
        else:
            strides[i] = a.strides_[i - shift]
    return view_tensor(a, a.ptr, ndim, shape, strides)


cdef bint restride(Tensor a, int ndim, const int64_t* shape, int64_t* strides) noexcept:
    """Compute strides for a view of `a` in another shape of the same size; False if impossible.

    Both shapes are divided into the shortest runs of axes with equal products. The elements of a
    run of `a` must be evenly spaced; the new axes of the run then divide them.
    """
    cdef int64_t[16] old_shape
    cdef int64_t[16] old_strides
    cdef int old_ndim = 0
    cdef int i, first, last, new_first, new_last, k
    cdef int64_t old_product, new_product
    for i in range(a.ndim_):
        if a.shape_[i] != 1:
            old_shape[old_ndim] = a.shape_[i]
            old_strides[old_ndim] = a.strides_[i]
            old_ndim += 1
    first = new_first = 0
    while first < old_ndim and new_first < ndim:
        last = first + 1
        new_last = new_first + 1
        old_product = old_shape[first]
        new_product = shape[new_first]
        while old_product != new_product:
            if new_product < old_product:
                new_product *= shape[new_last]
                new_last += 1
            else:
                old_product *= old_shape[last]
                last += 1
        for k in range(first, last - 1):
            if old_strides[k] != old_shape[k + 1] * old_strides[k + 1]:
                return False
        strides[new_last - 1] = old_strides[last - 1]
        for k in range(new_last - 2, new_first - 1, -1):
            strides[k] = strides[k + 1] * shape[k + 1]
        first = last
        new_first = new_last
    for k in range(new_first, ndim):     # only axes of extent 1 are left
        strides[k] = 1
    return True


cdef int plain_shape(object shape, int64_t size, int64_t* dims):
    """Read an int or ints above 0, one of which may be -1, as a shape of `size` elements.

    Return the number of axes; -1 for any other shape, and one that does not fit.
    """
    cdef int64_t known = 1
    cdef int i, ndim = 1, unknown = -1, is_beyond = 0
    cdef bint is_int = type(shape) is int
    if not is_int:
        if type(shape) is not tuple or len(<tuple> shape) > MAX_NDIM:
            return -1
        ndim = <int> len(<tuple> shape)
    for i in range(ndim):
        extent = shape if is_int else (<tuple> shape)[i]
        if type(extent) is not int:
            return -1
        dims[i] = PyLong_AsLongAndOverflow(extent, &is_beyond)
        if dims[i] == -1 and unknown < 0 and not is_beyond:
            unknown = i
        elif dims[i] > 0 and known <= size // dims[i]:
            known *= dims[i]
        else:
            return -1
    if unknown < 0:
        return ndim if known == size else -1
    if size % known:
        return -1
    dims[unknown] = size // known
    return ndim


def reshape(x, /, shape, order="C", *, copy=None):
    """Return the elements of `x` in another shape.

    Parameters
    ----------
    shape : int or tuple of int
        One extent may be -1; it is computed from the others.
    order : {"C", "F", "A"}
        The order in which elements are read and placed: "C": the last axis changes fastest; "F":
        the first one; "A": "F" if `x` has this order in memory and not the other, otherwise "C".
    copy : bool, optional
        True: always copy. False: never; ValueError if the result cannot be a view. Default: copy
        only if necessary.

    >>> reshape(gt.arange(6, device="host"), (2, -1)).shape
    (2, 3)
    """
    cdef Tensor a = tensor_argument(x, "reshape")
    cdef int64_t[16] dims
    cdef int64_t[16] strides
    cdef int ndim
    cdef int64_t known = 1
    if type(order) is not str:
        if order is not None:
            raise argument_error(TypeError, "reshape: order", order, "'C', 'F' or 'A'")
        order = "C"
    if copy is None and a.is_c_contiguous and order == "C":
        ndim = plain_shape(shape, a.size_, dims)
        if ndim >= 0:
            return view_tensor(a, a.ptr, ndim, dims, NULL)
    copy = copy_argument(copy, "reshape")
    if not hasattr(shape, "__iter__"):
        shape = (shape,)
    if order != "C" and is_first_fastest(a, order.upper()):
        return transpose(reshape(transpose(a), tuple(shape)[::-1], copy=copy))
    wanted = list(shape)
    if wanted.count(-1) > 1:
        raise ValueError(f"reshape: shape: got {tuple(shape)}; expected at most one -1")
    if -1 in wanted:
        try:
            for extent in wanted:
                known *= 1 if extent == -1 else <int64_t> extent
        except OverflowError:
            known = 0
        if known == 0 or a.size_ % known:
            raise ValueError(f"reshape: shape: got {tuple(shape)}; expected room for {a.size_} "
                             "elements")
        wanted[wanted.index(-1)] = a.size_ // known
    ndim = shape_argument(wanted, dims)
    known = 1
    for i in range(ndim):
        known *= dims[i]
    if known != a.size_:
        raise ValueError(f"reshape: shape: got {tuple(shape)}; expected room for {a.size_} "
                         "elements")
    if copy:
        a = copied(a, a.dtype_code)
    if a.is_c_contiguous:
        return view_tensor(a, a.ptr, ndim, dims, NULL)
    if restride(a, ndim, dims, strides):
        return view_tensor(a, a.ptr, ndim, dims, strides)
    if copy is not None:
        raise ValueError("reshape: copy: got False; expected True or None, because strides "
                         f"{a.strides} allow no view of shape {tuple(shape)}")
    a = copied(a, a.dtype_code)
    return view_tensor(a, a.ptr, ndim, dims, NULL)


cdef bint is_first_fastest(Tensor a, object order) except -1:
    """Whether reshape's order "F", or "A" for this tensor, lets the first axis change fastest."""
    if order == "A":
        return not a.is_c_contiguous and (<Tensor> transpose(a)).is_c_contiguous
    if order == "C":
        return False
    if order != "F":
        raise argument_error(ValueError, "reshape: order", order, "'C', 'F' or 'A'")
    return True


@spellings(dims="axes")
def permute_dims(x, /, axes):
    """Return a view with the axes in the order `axes`.

    >>> permute_dims(gt.zeros((2, 3, 4), device="host"), (2, 0, 1)).shape
    (4, 2, 3)
    """
    cdef Tensor a = tensor_argument(x, "permute_dims")
    cdef int[16] order
    cdef int i
    if not hasattr(axes, "__iter__"):
        raise TypeError(f"permute_dims: axes: got {axes!r}; expected a sequence of {a.ndim_} ints")
    axes = tuple(axes)
    if len(axes) != a.ndim_:
        raise ValueError(f"permute_dims: axes: got {axes}; expected each of {a.ndim_} dimensions "
                         "once")
    axes_mask(axes, a.ndim_, "permute_dims")
    for i in range(a.ndim_):
        order[i] = axis_argument(axes[i], a.ndim_, "permute_dims")
    return permuted(a, order)


def matrix_transpose(x, /):
    """Return a view with the last two axes exchanged.

    >>> matrix_transpose(gt.zeros((2, 3, 4), device="host")).shape
    (2, 4, 3)
    """
    cdef Tensor a = tensor_argument(x, "matrix_transpose")
    cdef int[16] order
    cdef int i
    if a.ndim_ < 2:
        raise ValueError(f"matrix_transpose: x: got {a.ndim_} dimensions; expected at least 2")
    for i in range(a.ndim_):
        order[i] = i
    order[a.ndim_ - 1] = a.ndim_ - 2
    order[a.ndim_ - 2] = a.ndim_ - 1
    return permuted(a, order)


def transpose(x, /):
    """Return a view with the axes in reverse order, as the attribute ``T``.

    >>> gt.zeros((2, 3, 4), device="host").T.shape
    (4, 3, 2)
    """
    cdef Tensor a = tensor_argument(x, "T")
    cdef int[16] order
    cdef int i
    for i in range(a.ndim_):
        order[i] = a.ndim_ - 1 - i
    return permuted(a, order)


def moveaxis(x, source, destination, /):
    """Return a view with axes `source` moved to positions `destination`; others keep their order.

    >>> moveaxis(gt.zeros((2, 3, 4), device="host"), 0, -1).shape
    (3, 4, 2)
    """
    cdef Tensor a = tensor_argument(x, "moveaxis")
    sources = source if isinstance(source, (tuple, list)) else (source,)
    targets = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(sources) != len(targets):
        raise ValueError(f"moveaxis: destination: got {len(targets)} for {len(sources)} sources; "
                         "expected one for each")
    axes_mask(tuple(sources), a.ndim_, "moveaxis")
    axes_mask(tuple(targets), a.ndim_, "moveaxis")
    placed = {axis_argument(to, a.ndim_, "moveaxis"): axis_argument(axis, a.ndim_, "moveaxis")
              for axis, to in zip(sources, targets)}
    rest = iter([i for i in range(a.ndim_) if i not in placed.values()])
    return permute_dims(a, [placed[i] if i in placed else next(rest) for i in range(a.ndim_)])


def expand_dims(x, /, axis=0):
    """Return a view with new axes of extent 1 at the positions `axis`, an int or a tuple.

    >>> expand_dims(gt.zeros(3, device="host"), axis=1).shape
    (3, 1)
    """
    cdef Tensor a = tensor_argument(x, "expand_dims")
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int count = len(axis) if isinstance(axis, (tuple, list)) else 1
    cdef int ndim = a.ndim_ + count
    cdef int mask, i
    cdef int source = 0
    if ndim > MAX_NDIM:
        raise ValueError(f"expand_dims: axis: got {ndim} dimensions in the result; expected at "
                         f"most {MAX_NDIM}")
    mask = axes_mask(axis, ndim, "expand_dims")
    for i in range(ndim):
        if mask >> i & 1:
            shape[i] = 1
            strides[i] = 1
        else:
            shape[i] = a.shape_[source]
            strides[i] = a.strides_[source]
            source += 1
    return view_tensor(a, a.ptr, ndim, shape, strides)


@spellings("gputensor.tensor.numerics.torch_results.squeeze_ones", dim="axis")
def squeeze(x, /, axis=None):
    """Return a view without the axes `axis`, an int or a tuple, which must have extent 1.

    By default all axes of extent 1 are removed.

    >>> squeeze(gt.zeros((1, 3, 1), device="host"), 0).shape
    (3, 1)
    """
    cdef Tensor a = tensor_argument(x, "squeeze")
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int ndim = 0
    cdef int i
    cdef int mask = axes_mask(axis, a.ndim_, "squeeze")
    for i in range(a.ndim_):
        if mask >> i & 1 and a.shape_[i] == 1:
            continue
        if mask >> i & 1 and axis is not None:
            raise ValueError(f"squeeze: axis: got {i}, of extent {a.shape_[i]}; expected an axis "
                             "of extent 1")
        shape[ndim] = a.shape_[i]
        strides[ndim] = a.strides_[i]
        ndim += 1
    return view_tensor(a, a.ptr, ndim, shape, strides)


@spellings(dims="axis")
def flip(x, /, axis=None):
    """Return a view with the order reversed along `axis`, an int or a tuple (default: all).

    >>> flip(gt.arange(3, device="host")).numpy()
    array([2, 1, 0])
    """
    cdef Tensor a = tensor_argument(x, "flip")
    cdef int64_t[16] strides
    cdef int64_t reach = 0
    cdef int i
    cdef int mask = axes_mask(axis, a.ndim_, "flip")
    for i in range(a.ndim_):
        strides[i] = a.strides_[i]
        if mask >> i & 1 and a.size_ > 0:
            reach += (a.shape_[i] - 1) * a.strides_[i]
            strides[i] = -a.strides_[i]
    return view_tensor(a, a.ptr + <uint64_t> (reach * dtype_itemsize(a.dtype_code)), a.ndim_,
                       a.shape_, strides)


def diagonal_view(Tensor tensor, int first, int second):
    """Return a view in which axis `first` is the diagonal of axes `first` and `second`."""
    cdef int64_t[MAX_NDIM] shape
    cdef int64_t[MAX_NDIM] strides
    cdef int axis
    cdef int count = 0
    for axis in range(tensor.ndim_):
        if axis == second:
            continue
        shape[count], strides[count] = tensor.shape_[axis], tensor.strides_[axis]
        if axis == first:
            strides[count] += tensor.strides_[second]
        count += 1
    return view_tensor(tensor, tensor.ptr, count, shape, strides)


def broadcast_to(x, /, shape):
    """Return a view of `x` repeated to `shape`; not writable, because its elements share memory.

    >>> broadcast_to(gt.arange(2, device="host"), (2, 2)).numpy()
    array([[0, 1],
           [0, 1]])
    """
    cdef Tensor a = tensor_argument(x, "broadcast_to")
    cdef int64_t[16] dims
    cdef int64_t[16] common
    cdef int i
    cdef int ndim = shape_argument(shape, dims)
    for i in range(ndim):
        common[i] = dims[i]
    if broadcast_shape(common, ndim, a, "broadcast_to") != ndim or not all(
            [common[i] == dims[i] for i in range(ndim)]):
        raise ValueError(f"broadcast_to: shape: got {shape}; expected one that {a.shape} "
                         "broadcasts to")
    return broadcast_view(a, ndim, dims)


def broadcast_arrays(*arrays):
    """Return views of all arguments, broadcast to their common shape.

    >>> x, y = broadcast_arrays(gt.zeros((2, 1), device="host"), gt.zeros(3, device="host"))
    >>> x.shape, y.shape
    ((2, 3), (2, 3))
    """
    cdef int64_t[16] shape
    cdef int ndim = 0
    for one in arrays:
        ndim = broadcast_shape(shape, ndim, tensor_argument(one, "broadcast_arrays"),
                               "broadcast_arrays")
    return tuple([broadcast_view(<Tensor> one, ndim, shape) for one in arrays])
