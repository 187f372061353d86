"""Sums, products, extremes, means, variances and logical reductions over axes.

`axis` is an int, a tuple of ints or None for all axes; `keepdims` leaves reduced axes with extent
1. Sums and products of integers have 64 bits; those of float16 and bfloat16 are accumulated in
float32 and rounded once. If an element is NaN, max and min return NaN, argmax and argmin its index.
"""

# The parameters of one reduction kernel.
cdef struct Reduction:
    int op                      # RED_*
    int mask                    # a bit for each reduced axis
    int compute                 # dtype code of the arithmetic
    int code                    # dtype code of the result


cdef Tensor reduced(Reduction reduction, str name, Tensor a, object keepdims, object out):
    cdef int op = reduction.op
    cdef int mask = reduction.mask
    cdef bint is_kept = flag_argument(keepdims, name, "keepdims")
    cdef int64_t[16] shape
    cdef int ndim = 0
    cdef int i
    cdef Tensor result, flat
    cdef Operand input, output
    cdef uint64_t stream
    if dtype_kind(a.dtype_code) == KIND_SMALL:
        raise TypeError(f"{name}: dtype: got {DTYPES[a.dtype_code].name}, a type for storage; "
                        "expected a dtype with arithmetic (convert the tensor with astype)")
    reduction_check(op, reduction.compute)
    for i in range(a.ndim_):
        if mask >> i & 1:
            if a.shape_[i] == 0 and RED_MAX <= op <= RED_ARGMIN:
                raise ValueError(f"{name}: axis {i}: got no elements; expected at least one")
            if is_kept:
                shape[ndim] = 1
                ndim += 1
        else:
            shape[ndim] = a.shape_[i]
            ndim += 1
    if out is None:
        result = empty_tensor(reduction.code, ndim, shape, a.storage.device)
    elif out is True or out is False:       # PyTorch's keepdim by position
        return reduced(reduction, name, a, out, None)
    else:
        a = beside(name, a, out)
        result = checked_result(name, out, tuple([shape[i] for i in range(ndim)]), reduction.code)
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
        reduce_kernel(op, a.storage.device, stream, reduction.compute, &output, &input, mask)
    finally:
        work_end(a.storage.device)
    return result


cdef Tensor without_reduced(Tensor result, int mask, int ndim):
    """Return a view of a keepdims result without the reduced axes."""
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


cdef Tensor beside(str name, Tensor a, object out):
    """Return the argument, moved to the device of `out` if that is a tensor of a trace."""
    if type(out) is Tensor and (<Tensor> out).storage.device != a.storage.device:
        return on_one_device(name, (a,), out)[0]
    return a


cdef Tensor checked_result(str name, object out, tuple shape, int code):
    cdef Tensor target = written_argument(out, name)
    if target.shape != shape:
        raise ValueError(f"{name}: out: got shape {target.shape}; expected {shape}, that of the "
                         "result")
    if not promotion.is_same_kind(code, target.dtype_code):
        raise TypeError(f"{name}: out: got dtype {DTYPES[target.dtype_code].name}; expected one "
                        f"that can take a result of {DTYPES[code].name}")
    check_distinct(target, name)
    return target


cdef Tensor total(int op, str name, object x, object axis, object dtype, object keepdims,
                  object out):
    cdef Tensor a = tensor_argument(x, name)
    cdef int kind = dtype_kind(a.dtype_code)
    cdef int code = a.dtype_code
    if dtype is not None:
        if dtype is True or dtype is False:     # PyTorch's keepdim by position
            return total(op, name, x, axis, None, dtype, out)
        code = dtype_argument(dtype, 0)
    elif kind == KIND_UINT:
        code = DT_UINT64
    elif kind == KIND_INT or kind == KIND_BOOL:
        code = DT_INT64
    cdef int mask = axes_mask(axis, a.ndim_, name)
    return reduced(Reduction(op, mask, code, code), name, a, keepdims, out)


cdef Tensor chosen(int op, str name, object x, object axis, object keepdims, int code,
                   object out):
    """Reduce in the dtype of x; the result has the dtype `code`, or if that is < 0, that of x."""
    cdef Tensor a = tensor_argument(x, name)
    if dtype_kind(a.dtype_code) == KIND_COMPLEX and op in (RED_MAX, RED_MIN):
        return masked("complex_extreme", name, (a, axis, out, keepdims), {})
    cdef Reduction reduction = Reduction(op, axes_mask(axis, a.ndim_, name), a.dtype_code,
                                         a.dtype_code if code < 0 else code)
    return reduced(reduction, name, a, keepdims, out)


cdef Tensor position(int op, str name, object x, object axis, object keepdims, object out):
    cdef Tensor a = tensor_argument(x, name)
    cdef int mask = (1 << a.ndim_) - 1
    if dtype_kind(a.dtype_code) == KIND_COMPLEX:
        return masked("complex_position", name, (a, axis, out, keepdims), {})
    if axis is not None and not (a.ndim_ == 0 and type(axis) is int and -1 <= axis <= 0):
        mask = 1 << axis_argument(axis, a.ndim_, name)
    return reduced(Reduction(op, mask, a.dtype_code, DT_INT64), name, a, keepdims, out)


cdef object masked_reductions = None    # returns their module


def find_masked_with(finder):
    """Set the function that returns the module of masked reductions, which is a later room."""
    global masked_reductions
    masked_reductions = finder


cdef object masked(str kind, str name, tuple arguments, dict options):
    """Return a reduction of the elements that a mask selects, or with an initial value."""
    return getattr(masked_reductions(), kind)(name, *arguments, **options)


@spellings(dim="axis", keepdim="keepdims")
def sum(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Return the sum over `axis`; 0 if there are no elements.

    Parameters
    ----------
    axis : int, tuple of int, optional
        Default: all axes.
    dtype : dtype, optional
        The dtype of the sum and of the result. Default: that of a floating-point `x`, int64 for
        bool and signed integers, uint64 for unsigned integers.
    keepdims : bool
        Keep the summed axes with extent 1. A bool in the place of `dtype` is PyTorch's keepdim.
    out : Tensor, optional
        Takes the result.
    initial : number, optional
        A value to begin with. `max` and `min` give it where there is no element.
    where : Tensor of bool, optional
        Selects the elements; it broadcasts to the shape of `x`. With `max` and `min`, `initial` is
        needed too.

    >>> sum(gt.asarray([[1, 2], [3, 4]], device="host"), axis=0).numpy()
    array([4, 6])
    """
    if initial is not None or where is not None:
        return masked("total", "sum", (x, axis, dtype, out, keepdims),
                      {"initial": initial, "where": where})
    return total(RED_SUM, "sum", x, axis, dtype, keepdims, out)


@spellings(dim="axis", keepdim="keepdims")
def prod(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Return the product over `axis`; 1 if there are no elements. Arguments as in :func:`sum`.

    >>> prod(gt.asarray([2, 3, 4], device="host")).item()
    24
    """
    if initial is not None or where is not None:
        return masked("total", "prod", (x, axis, dtype, out, keepdims),
                      {"initial": initial, "where": where})
    return total(RED_PROD, "prod", x, axis, dtype, keepdims, out)


@spellings("gputensor.tensor.numerics.torch_results.max_with_index", dim="axis", keepdim="keepdims")
def max(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the greatest element over `axis`; ValueError if there is none.

    With PyTorch's ``dim=`` or ``keepdim=``, or a bool after the axis: the pair (values, indices).
    If the second argument is a tensor: :func:`maximum`, as in PyTorch.

    >>> max(gt.asarray([2, 3, 1], device="host")).item()
    3
    """
    if initial is not None or where is not None:
        return masked("extreme", "max", (x, axis, out, keepdims),
                      {"initial": initial, "where": where})
    if out is True or out is False:
        return masked("extreme_with_index", "max", (x, axis, out), {})
    if type(axis) is Tensor:
        return maximum(x, axis, out)
    return chosen(RED_MAX, "max", x, axis, keepdims, -1, out)


@spellings("gputensor.tensor.numerics.torch_results.min_with_index", dim="axis", keepdim="keepdims")
def min(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the least element over `axis`; ValueError if there is none.

    With PyTorch's ``dim=`` or ``keepdim=``, or a bool after the axis: the pair (values, indices).
    If the second argument is a tensor: :func:`minimum`, as in PyTorch.

    >>> min(gt.asarray([2, 3, 1], device="host")).item()
    1
    """
    if initial is not None or where is not None:
        return masked("extreme", "min", (x, axis, out, keepdims),
                      {"initial": initial, "where": where})
    if out is True or out is False:
        return masked("extreme_with_index", "min", (x, axis, out), {})
    if type(axis) is Tensor:
        return minimum(x, axis, out)
    return chosen(RED_MIN, "min", x, axis, keepdims, -1, out)


@spellings(dim="axis", keepdim="keepdims")
def amax(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the greatest element over `axis`: :func:`max`, with PyTorch's keywords too.

    >>> amax(gt.asarray([2, 3, 1], device="host"), dim=0).item()
    3
    """
    if initial is not None or where is not None:
        return masked("extreme", "amax", (x, axis, out, keepdims),
                      {"initial": initial, "where": where})
    return chosen(RED_MAX, "amax", x, axis, keepdims, -1, out)


@spellings(dim="axis", keepdim="keepdims")
def amin(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the least element over `axis`: :func:`min`, with PyTorch's keywords too.

    >>> amin(gt.asarray([2, 3, 1], device="host"), dim=0).item()
    1
    """
    if initial is not None or where is not None:
        return masked("extreme", "amin", (x, axis, out, keepdims),
                      {"initial": initial, "where": where})
    return chosen(RED_MIN, "amin", x, axis, keepdims, -1, out)


@spellings(dim="axis", keepdim="keepdims")
def argmax(x, /, axis=None, out=None, *, keepdims=False):
    """Return the int64 index of the first greatest element along `axis` (default: of all).

    >>> argmax(gt.asarray([2, 3, 3], device="host")).item()
    1
    """
    return position(RED_ARGMAX, "argmax", x, axis, keepdims, out)


@spellings(dim="axis", keepdim="keepdims")
def argmin(x, /, axis=None, out=None, *, keepdims=False):
    """Return the int64 index of the first least element along `axis` (default: of all).

    >>> argmin(gt.asarray([2, 1, 1], device="host")).item()
    1
    """
    return position(RED_ARGMIN, "argmin", x, axis, keepdims, out)


@spellings(dim="axis", keepdim="keepdims")
def any(x, /, axis=None, out=None, keepdims=False, *, where=None):
    """Return whether any element over `axis` is nonzero; False if there are no elements.

    >>> any(gt.asarray([0, 2], device="host")).item()
    True
    """
    if where is not None:
        return masked("truth", "any", (x, axis, out, keepdims), {"where": where})
    return chosen(RED_ANY, "any", x, axis, keepdims, DT_BOOL, out)


@spellings(dim="axis", keepdim="keepdims")
def all(x, /, axis=None, out=None, keepdims=False, *, where=None):
    """Return whether every element over `axis` is nonzero; True if there are no elements.

    >>> all(gt.asarray([0, 2], device="host")).item()
    False
    """
    if where is not None:
        return masked("truth", "all", (x, axis, out, keepdims), {"where": where})
    return chosen(RED_ALL, "all", x, axis, keepdims, DT_BOOL, out)


@spellings(dim="axis", keepdim="keepdims")
def mean(x, /, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Return the mean over `axis`; NaN if there are no elements. Arguments as in :func:`sum`.

    Bool and integers are summed in float64 and give float32. `dtype`, a floating-point or complex
    dtype, is the dtype of the sum and of the result.

    >>> mean(gt.asarray([1, 2], device="host")).item()
    1.5
    """
    if where is not None:
        return masked("mean", "mean", (x, axis, dtype, out, keepdims), {"where": where})
    if dtype is True or dtype is False:     # PyTorch's keepdim by position
        dtype, keepdims = None, dtype
    cdef Tensor a = tensor_argument(x, "mean")
    cdef bint is_whole = dtype_kind(a.dtype_code) < KIND_FLOAT
    cdef int code = dtype_argument(dtype, DT_FLOAT32 if is_whole else a.dtype_code)
    cdef bint is_narrow = is_whole and dtype_kind(code) == KIND_FLOAT
    cdef Reduction reduction = Reduction(RED_MEAN, axes_mask(axis, a.ndim_, "mean"),
                                         DT_FLOAT64 if is_narrow else code, code)
    return reduced(reduction, "mean", a, keepdims, out)


cdef object divisor(str name, object ddof, object correction):
    """Return the number to subtract from the element count; it has two names."""
    if ddof is not None and correction is not None:
        raise argument_error(TypeError, f"{name}: ddof and correction", Described("both"),
                             "only one of them, because they mean the same")
    value = correction if ddof is None else ddof
    if value is None:
        return 0
    if number_kind(value) not in (0, 1, 2):
        raise argument_error(TypeError, f"{name}: correction", value, "a number")
    return value


# The variance, or its root, in the requested dtype. It is computed in float64, except for floats
# of at most 32 bits.
cdef Tensor spread(str name, object x, object axis, int code, object out, object correction,
                   object keepdims):
    cdef Tensor a = tensor_argument(x, name)
    cdef int mask = axes_mask(axis, a.ndim_, name)
    cdef bint is_plain = name == "var" and not correction
    cdef int64_t count = 1
    cdef int i
    if dtype_kind(code) != KIND_FLOAT:
        raise argument_error(TypeError, f"{name}: dtype", Described(DTYPES[code].name),
                             "a real floating-point dtype")
    if dtype_kind(a.dtype_code) == KIND_COMPLEX:
        total = spread("var", a.real, axis, code, None, correction, keepdims)
        total += spread("var", a.imag, axis, code, None, correction, keepdims)
        result = sqrt(total, out=total) if name == "std" else total
        return result if out is None else positive(result, out=out)
    for i in range(a.ndim_):
        if mask >> i & 1:
            count *= a.shape_[i]
    # 16-bit floats are computed with in float32, so that the result is rounded once.
    wide_code = DT_FLOAT32 if dtype_kind(a.dtype_code) >= KIND_FLOAT else DT_FLOAT64
    wide_code = DT_FLOAT64 if DT_FLOAT64 in (a.dtype_code, code) else wide_code
    if out is not None:
        shape = tuple([1 if mask >> i & 1 else a.shape_[i] for i in range(a.ndim_)
                       if keepdims or not mask >> i & 1])
        a = beside(name, a, out)
        checked_result(name, out, shape, code)
    if dtype_kind(a.dtype_code) == KIND_SMALL:
        a = copied(a, wide_code)
    result = reduced(Reduction(RED_VAR, mask, wide_code, code if is_plain else wide_code), name, a,
                     keepdims, out if is_plain else None)
    if is_plain:
        return result
    if correction:
        result *= count / (count - correction) if count > correction else float("inf")
    if name == "std":
        result = sqrt(result, out=result)
    if out is not None:
        copy_into(<Tensor> out, result)
        return out
    return result if (<Tensor> result).dtype_code == code else copied(<Tensor> result, code)


cdef int spread_code(object x, str name, object dtype) except -1:
    """Return the dtype of var and std: that of a float or of a complex part, otherwise float32."""
    cdef int code = (<Tensor> tensor_argument(x, name)).dtype_code
    if dtype_kind(code) == KIND_COMPLEX:
        code = DT_FLOAT64 if code == DT_COMPLEX128 else DT_FLOAT32
    return dtype_argument(dtype, DT_FLOAT32 if dtype_kind(code) < KIND_FLOAT else code)


@spellings("gputensor.tensor.numerics.torch_results.unbiased_var", dim="axis", keepdim="keepdims",
           unbiased="unbiased")
def var(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=None,
        where=None):
    """Return the variance over `axis`: the mean squared distance from the mean.

    Bool and integers are computed in float64 and give float32.

    Parameters
    ----------
    ddof, correction : float
        The divisor is the number of elements minus this number, or 0 if that is negative. These
        are two names for one argument, NumPy's and the array API's; default: 0, or with PyTorch's
        ``dim=`` or ``keepdim=`` 1, the unbiased estimate.
    dtype : dtype, optional
        A real floating-point dtype to compute in and to return.

    >>> var(gt.asarray([1.0, 3.0], device="host")).item()
    1.0
    """
    if where is not None:
        return masked("variance", "var", (x, axis, dtype, out, keepdims),
                      {"ddof": divisor("var", ddof, correction), "where": where})
    if dtype is True or dtype is False:     # PyTorch's unbiased and keepdim by position
        return masked("unbiased", "var", (x, axis, dtype, out), {})
    return spread("var", x, axis, spread_code(x, "var", dtype), out,
                  divisor("var", ddof, correction), flag_argument(keepdims, "var", "keepdims"))


@spellings("gputensor.tensor.numerics.torch_results.unbiased_std", dim="axis", keepdim="keepdims",
           unbiased="unbiased")
def std(x, /, axis=None, dtype=None, out=None, ddof=None, keepdims=False, *, correction=None,
        where=None):
    """Return the standard deviation over `axis`: the root of :func:`var`, with its arguments.

    >>> std(gt.asarray([1.0, 3.0], device="host")).item()
    1.0
    """
    if where is not None:
        return masked("variance", "std", (x, axis, dtype, out, keepdims),
                      {"ddof": divisor("std", ddof, correction), "where": where})
    if dtype is True or dtype is False:     # PyTorch's unbiased and keepdim by position
        return masked("unbiased", "std", (x, axis, dtype, out), {})
    return spread("std", x, axis, spread_code(x, "std", dtype), out,
                  divisor("std", ddof, correction), flag_argument(keepdims, "std", "keepdims"))


@spellings(dim="axis", keepdim="keepdims")
def count_nonzero(x, /, axis=None, *, keepdims=False):
    """Return the int64 number of nonzero elements over `axis`.

    >>> count_nonzero(gt.asarray([0, 2, 3], device="host")).item()
    2
    """
    cdef Tensor a = tensor_argument(x, "count_nonzero")
    cdef bint is_kept = flag_argument(keepdims, "count_nonzero", "keepdims")
    cdef int mask = axes_mask(axis, a.ndim_, "count_nonzero")
    return reduced(Reduction(RED_SUM, mask, DT_INT64, DT_INT64), "count_nonzero",
                   a if a.dtype_code == DT_BOOL else a != 0, is_kept, None)
