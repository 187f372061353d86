"""Sums, products, extremes, means and truth over axes.

`axis` is an int, a tuple of ints or None for all axes; `keepdims` leaves reduced axes with extent
1. Sums and products of integers have 64 bits; those of float16 and bfloat16 are accumulated in
float32 and rounded once. NaN wins in max, min, argmax and argmin.
"""

cdef Tensor reduced(int op, str name, object x, int mask, object keepdims, int compute, int code,
                    object out):
    """One reduction kernel; `mask` has a bit for each reduced axis."""
    cdef Tensor a = tensor_argument(x, name)
    cdef bint is_kept = flag_argument(keepdims, name, "keepdims")
    cdef int64_t[16] shape
    cdef int ndim = 0
    cdef int i
    cdef Tensor result, flat
    cdef Operand input, output
    cdef uint64_t stream
    if dtype_kind(a.dtype_code) == KIND_SMALL:
        raise TypeError(f"{name}: {DTYPES[a.dtype_code].name} is a type for storage; convert the "
                        "tensor with astype first")
    reduction_check(op, compute)
    for i in range(a.ndim_):
        if mask >> i & 1:
            if a.shape_[i] == 0 and RED_MAX <= op <= RED_ARGMIN:
                raise ValueError(f"{name}: axis {i} has no elements; at least one is needed")
            if is_kept:
                shape[ndim] = 1
                ndim += 1
        else:
            shape[ndim] = a.shape_[i]
            ndim += 1
    if out is None:
        result = empty_tensor(code, ndim, shape, a.storage.device)
    else:
        result = checked_result(name, out, a, tuple([shape[i] for i in range(ndim)]), code)
        if overlaps(result, a):
            a = copied(a, a.dtype_code)
    if result.size_ == 0:
        return result
    flat = without_reduced(result, mask, a.ndim_) if is_kept else result
    stream = current_handle(a.storage.device)
    work_begin()
    try:
        a.prepare_read(stream)
        a.fill_operand(&input)
        result.prepare_write(stream)
        flat.fill_operand(&output)
        reduce_kernel(op, a.storage.device, stream, compute, &output, &input, mask)
    finally:
        work_end(a.storage.device)
    return result


cdef Tensor without_reduced(Tensor result, int mask, int ndim):
    """A view of a keepdims result without the reduced axes."""
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int i
    cdef int kept = 0
    for i in range(ndim):
        if not mask >> i & 1:
            shape[kept] = result.shape_[i]
            strides[kept] = result.strides_[i]
            kept += 1
    return tensor_over(result.storage, result.ptr, result.dtype_code, kept, shape, strides)


cdef Tensor checked_result(str name, object out, Tensor a, tuple shape, int code):
    cdef Tensor target = tensor_argument(out, name)
    common_device(a, target, name)
    if target.shape != shape:
        raise ValueError(f"{name}: out has shape {target.shape}; the result has {shape}")
    if not promotion.is_same_kind(code, target.dtype_code):
        raise TypeError(f"{name}: out has dtype {DTYPES[target.dtype_code].name}, which cannot "
                        f"take a result of {DTYPES[code].name}")
    check_distinct(target, name)
    return target


cdef Tensor total(int op, str name, object x, object axis, object dtype, object keepdims,
                  object out):
    cdef Tensor a = tensor_argument(x, name)
    cdef int kind = dtype_kind(a.dtype_code)
    cdef int code = a.dtype_code
    if dtype is not None:
        code = dtype_argument(dtype, 0)
    elif kind == KIND_UINT:
        code = DT_UINT64
    elif kind == KIND_INT or kind == KIND_BOOL:
        code = DT_INT64
    return reduced(op, name, a, axes_mask(axis, a.ndim_, name), keepdims, code, code, out)


cdef Tensor chosen(int op, str name, object x, object axis, object keepdims, int code,
                   object out):
    """A reduction over axes that computes in the dtype of x; code < 0 gives that dtype too."""
    cdef Tensor a = tensor_argument(x, name)
    return reduced(op, name, a, axes_mask(axis, a.ndim_, name), keepdims, a.dtype_code,
                   a.dtype_code if code < 0 else code, out)


cdef Tensor position(int op, str name, object x, object axis, object keepdims):
    cdef Tensor a = tensor_argument(x, name)
    cdef int mask = (1 << a.ndim_) - 1
    if axis is not None:
        mask = 1 << axis_argument(axis, a.ndim_, name)
    return reduced(op, name, a, mask, keepdims, a.dtype_code, DT_INT64, None)


def sum(x, /, *, axis=None, dtype=None, keepdims=False, out=None):
    """Return the sum over `axis`; 0 when there are no elements.

    Parameters
    ----------
    axis : int, tuple of int, optional
        All axes when not given.
    dtype : dtype, optional
        The dtype to sum in and to return. Without it: that of a floating-point `x`; int64 for
        bool and signed, uint64 for unsigned integers.
    keepdims : bool
        Keep the summed axes with extent 1.
    out : Tensor, optional
        Takes the result.

    >>> sum(gt.asarray([[1, 2], [3, 4]], device="host"), axis=0).numpy()
    array([4, 6])
    """
    return total(RED_SUM, "sum", x, axis, dtype, keepdims, out)


def prod(x, /, *, axis=None, dtype=None, keepdims=False, out=None):
    """Return the product over `axis`; 1 when there are no elements. Arguments as for :func:`sum`.

    >>> prod(gt.asarray([2, 3, 4], device="host")).item()
    24
    """
    return total(RED_PROD, "prod", x, axis, dtype, keepdims, out)


def max(x, /, *, axis=None, keepdims=False, out=None):
    """Return the greatest element over `axis`; ValueError when there is none.

    >>> max(gt.asarray([2, 3, 1], device="host")).item()
    3
    """
    return chosen(RED_MAX, "max", x, axis, keepdims, -1, out)


def min(x, /, *, axis=None, keepdims=False, out=None):
    """Return the least element over `axis`; ValueError when there is none.

    >>> min(gt.asarray([2, 3, 1], device="host")).item()
    1
    """
    return chosen(RED_MIN, "min", x, axis, keepdims, -1, out)


def argmax(x, /, *, axis=None, keepdims=False):
    """Return the int64 index of the first greatest element along `axis` (None: of all elements).

    >>> argmax(gt.asarray([2, 3, 3], device="host")).item()
    1
    """
    return position(RED_ARGMAX, "argmax", x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """Return the int64 index of the first least element along `axis` (None: of all elements).

    >>> argmin(gt.asarray([2, 1, 1], device="host")).item()
    1
    """
    return position(RED_ARGMIN, "argmin", x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False, out=None):
    """Return whether an element over `axis` is nonzero; False when there are none.

    >>> any(gt.asarray([0, 2], device="host")).item()
    True
    """
    return chosen(RED_ANY, "any", x, axis, keepdims, DT_BOOL, out)


def all(x, /, *, axis=None, keepdims=False, out=None):
    """Return whether every element over `axis` is nonzero; True when there are none.

    >>> all(gt.asarray([0, 2], device="host")).item()
    False
    """
    return chosen(RED_ALL, "all", x, axis, keepdims, DT_BOOL, out)


def mean(x, /, *, axis=None, keepdims=False, out=None):
    """Return the mean over `axis`; NaN when there are no elements.

    Bool and integers are summed in float64 and give float32.

    >>> mean(gt.asarray([1, 2], device="host")).item()
    1.5
    """
    cdef Tensor a = tensor_argument(x, "mean")
    cdef int kind = dtype_kind(a.dtype_code)
    cdef bint is_whole = kind < KIND_FLOAT
    return reduced(RED_MEAN, "mean", a, axes_mask(axis, a.ndim_, "mean"), keepdims,
                   DT_FLOAT64 if is_whole else a.dtype_code,
                   DT_FLOAT32 if is_whole else a.dtype_code, out)


cdef Tensor wide_variance(str name, object x, object axis, object correction, object keepdims):
    """The variance in the dtype it is computed in: float64 but for floats of up to 32 bits."""
    cdef Tensor a = tensor_argument(x, name)
    cdef int mask = axes_mask(axis, a.ndim_, name)
    cdef bint is_kept = flag_argument(keepdims, name, "keepdims")
    cdef int64_t count = 1
    cdef int i
    if number_kind(correction) not in (0, 1, 2):
        raise TypeError(f"{name}: correction is a {type(correction).__name__}; a number is needed")
    if dtype_kind(a.dtype_code) == KIND_COMPLEX:
        raise TypeError(f"{name}: a real dtype is needed, not {a.dtype}")
    for i in range(a.ndim_):
        if mask >> i & 1:
            count *= a.shape_[i]
    # Squares of 16-bit floats are summed in float32, so that they are rounded once.
    code = DT_FLOAT32 if dtype_kind(a.dtype_code) >= KIND_FLOAT else DT_FLOAT64
    code = DT_FLOAT64 if a.dtype_code == DT_FLOAT64 else code
    wide = a if a.dtype_code == code else copied(a, code)
    distance = square(subtract(wide, mean(wide, axis=axis, keepdims=True)))
    divisor = count - correction
    result = sum(distance, axis=axis, keepdims=is_kept)
    result /= divisor if divisor > 0 else 0.0
    return result


cdef Tensor of_spread(Tensor result, object x):
    """`result` in the dtype that var and std of `x` have."""
    cdef int code = (<Tensor> x).dtype_code
    code = code if dtype_kind(code) == KIND_FLOAT else DT_FLOAT32
    return result if result.dtype_code == code else copied(result, code)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Return the variance over `axis`: the mean squared distance from the mean.

    Bool and integers are computed with in float64 and give float32.

    Parameters
    ----------
    correction : float
        The divisor is the number of elements less `correction`, or 0 when that is negative; 1 gives
        the unbiased estimate.

    >>> var(gt.asarray([1.0, 3.0], device="host")).item()
    1.0
    """
    return of_spread(wide_variance("var", x, axis, correction, keepdims), x)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """Return the standard deviation over `axis`: the root of :func:`var`.

    >>> std(gt.asarray([1.0, 3.0], device="host")).item()
    1.0
    """
    return of_spread(sqrt(wide_variance("std", x, axis, correction, keepdims)), x)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """Return the int64 number of nonzero elements over `axis`.

    >>> count_nonzero(gt.asarray([0, 2, 3], device="host")).item()
    2
    """
    cdef Tensor a = tensor_argument(x, "count_nonzero")
    return sum(a != 0, axis=axis, keepdims=flag_argument(keepdims, "count_nonzero", "keepdims"))
