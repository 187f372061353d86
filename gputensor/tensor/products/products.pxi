"""Matrix products of tensors: the public functions.

Each reads its arguments into a ProductCall and passes it to `multiply` (product_call.pxi).
docs/blas.md describes what a product computes, and with which precision.
"""

# ---- arguments

cdef int set_factor(ProductCall call, str which, object value, double* real,
                    double* imag) except -1:
    """Store a factor of the product of `a` and `b`, which must be of their kind."""
    cdef str name = call.name
    cdef Tensor a = call.a
    cdef Tensor b = call.b
    cdef object number
    cdef int kind = number_kind(value)
    if kind < 0:
        raise TypeError(f"{name}: {which}: got {type(value).__name__}; expected a number")
    if is_whole(a) and is_whole(b):
        if kind > 1:
            raise TypeError(f"{name}: {which}: got {value!r}; expected an integer for a product "
                            "of integers")
        return split_integer(int(value), real, imag)
    if kind == 3 and not dtype_is_complex(a.dtype_code) and not dtype_is_complex(b.dtype_code):
        raise TypeError(f"{name}: {which}: got {value!r}; expected a real number for a product of "
                        "real numbers")
    number = complex(value)
    real[0] = number.real
    imag[0] = number.imag
    return 0


cdef bint is_whole(Tensor tensor) noexcept:
    cdef int kind = dtype_kind(tensor.dtype_code)
    return kind == KIND_INT or kind == KIND_UINT or kind == KIND_BOOL


cdef int need_ndim(str name, str which, Tensor tensor, int ndim) except -1:
    if tensor.ndim_ != ndim:
        raise ValueError(f"{name}: {which}: got {tensor.ndim_} dimensions; expected {ndim}")
    return 0


cdef inline int out_code(object out, object out_dtype) except -2:
    """Return the code of the result's type; -1 means that of the operands.

    Without `out_dtype`, a given `out` selects its own type.
    """
    if out_dtype is not None:
        return dtype_argument(out_dtype, -1)
    if type(out) is Tensor:
        return (<Tensor>out).dtype_code
    return -1


# ---- public

def matmul(x1, x2, /, *, scale=None, bias=None, activation=None, residual=None, out=None,
           out_dtype=None, precision=None):
    """Return the product of matrices, batches of matrices, or vectors.

    The keywords `scale`, `bias`, `activation` and `residual` are applied in this order: with all of
    them, one call returns ``activation(scale * (x1 @ x2) + bias) + residual``.

    Parameters
    ----------
    x1, x2 : Tensor
        One or more dimensions each, on one device. A vector is a row as `x1` and a column as `x2`,
        and the result lacks that dimension. Dimensions before the last two are a batch and
        broadcast. Operands of different types are promoted first.
    scale, bias, activation, residual
        As in :func:`linear`; the bias has one value for each element of the last axis.
    out : Tensor, optional
        The tensor to write to. It may have any strides, but must not overlap itself, `x1` or `x2`.
        Its type may be that of the operands; float32 for float16 and bfloat16 operands; int32 for
        int8 operands; bfloat16 (the default), float16 or float32 for fp8 operands.
    out_dtype : dtype, optional
        The type of the result if `out` is not given, by the same rule.
    precision : str or Precision, optional
        The precision of this call; see :class:`gputensor.blas.Precision`.

    Returns
    -------
    Tensor
        `out`, or a new row-major tensor.

    Raises
    ------
    ValueError
        Shapes do not match, devices differ, or `out` overlaps an operand.
    TypeError
        The element types have no product, or `scale` is not a number of their kind.

    Notes
    -----
    Queued on the current stream of the device. Products of float16 and bfloat16 are summed in
    float32 and rounded once, unless the precision flags allow less. fp8 operands are multiplied
    without scales; :func:`scaled_matmul` takes scales.

    Examples
    --------
    >>> import gputensor as gt
    >>> a = gt.reshape(gt.arange(6, dtype=gt.float32), (2, 3))
    >>> gt.matmul(a, gt.ones((3, 1), dtype=gt.float32)).numpy()
    array([[ 3.],
           [12.]], dtype=float32)
    """
    cdef ProductCall call
    if type(x1) is not Tensor or type(x2) is not Tensor:
        x1, x2 = without_lists((x1, x2))    # of the operator; the function has them as tensors
        tensor_argument(x1, "matmul")
        tensor_argument(x2, "matmul")
    call = product_call("matmul", <Tensor>x1, <Tensor>x2)
    if (<Tensor>x1).dtype_code == DT_BOOL or (<Tensor>x2).dtype_code == DT_BOOL:
        if out is out_dtype is scale is bias is activation is residual is None:
            return product_of_bool(call, precision, False)
    call.set_result(out, out_dtype, precision)
    if (scale is not None or bias is not None or activation is not None
            or residual is not None):
        call.finish(scale, bias, activation, residual)
    elif is_fp8_pair(<Tensor>x1, <Tensor>x2):
        return scaled_product(call)
    return multiply(call)


def mm(input, mat2, /, *, out=None, out_dtype=None, precision=None):
    """Return the product of two matrices; :func:`matmul` for exactly two dimensions.

    >>> import gputensor as gt
    >>> gt.mm(gt.ones((2, 3)), gt.ones((3, 4))).shape
    (2, 4)
    """
    need_ndim("mm", "input", tensor_argument(input, "mm"), 2)
    need_ndim("mm", "mat2", tensor_argument(mat2, "mm"), 2)
    return matmul(input, mat2, out=out, out_dtype=out_dtype, precision=precision)


def bmm(input, mat2, /, *, out=None, out_dtype=None, precision=None):
    """Return the products of two equally long batches of matrices, without broadcasting.

    >>> import gputensor as gt
    >>> gt.bmm(gt.ones((5, 2, 3)), gt.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    cdef Tensor a = tensor_argument(input, "bmm")
    cdef Tensor b = tensor_argument(mat2, "bmm")
    need_ndim("bmm", "input", a, 3)
    need_ndim("bmm", "mat2", b, 3)
    if a.shape_[0] != b.shape_[0]:
        raise ValueError(f"bmm: mat2: got {b.shape_[0]} matrices; expected {a.shape_[0]}, as in "
                         "the first batch")
    return matmul(a, b, out=out, out_dtype=out_dtype, precision=precision)


def mv(input, vec, /, *, out=None, precision=None):
    """Return the product of a matrix and a vector.

    >>> import gputensor as gt
    >>> gt.mv(gt.ones((2, 3)), gt.ones((3,))).shape
    (2,)
    """
    need_ndim("mv", "input", tensor_argument(input, "mv"), 2)
    need_ndim("mv", "vec", tensor_argument(vec, "mv"), 1)
    return matmul(input, vec, out=out, precision=precision)


cdef Tensor product_of_bool(ProductCall call, object precision, bint conjugates):
    """Return NumPy's product where an operand is bool: of bool if both are, else of numbers.

    Two of bool are multiplied in float32, where a sum of zeros and ones is 0 only without ones.
    """
    cdef Tensor a = call.a
    cdef Tensor b = call.b
    cdef bint is_bool = a.dtype_code == b.dtype_code
    cdef Tensor result
    if is_bool or dtype_kind(b.dtype_code) != KIND_SMALL and dtype_kind(a.dtype_code) != KIND_SMALL:
        if a.dtype_code == DT_BOOL:
            call.a = copied(a, DT_FLOAT32 if is_bool else b.dtype_code)
        if b.dtype_code == DT_BOOL:
            call.b = copied(b, DT_FLOAT32 if is_bool else a.dtype_code)
    call.set_result(None, None, precision)
    call.options.conj_a = conjugates
    result = multiply(call)
    return copied(result, DT_BOOL) if is_bool else result


cdef Tensor with_matrix(Tensor tensor, int axis, bint is_row):
    """Return a view with `axis` moved to the end, as the row or the column of matrices."""
    cdef int64_t[MAX_NDIM] shape
    cdef int64_t[MAX_NDIM] strides
    cdef int position
    cdef int count = 0
    for position in range(tensor.ndim_):
        if position != axis:
            shape[count], strides[count] = tensor.shape_[position], tensor.strides_[position]
            count += 1
    shape[count + is_row] = tensor.shape_[axis]
    strides[count + is_row] = tensor.strides_[axis]
    shape[count + (not is_row)] = 1
    strides[count + (not is_row)] = 1
    return view_tensor(tensor, tensor.ptr, count + 2, shape, strides)


@spellings(dim="axis")
def vecdot(x1, x2, /, *, axis=-1, precision=None):
    """Return the sums of products of vectors along an axis, with `x1` conjugated.

    Parameters
    ----------
    x1, x2 : Tensor
        Their other dimensions broadcast.
    axis : int
        An axis of the broadcast operands; both must have it.
    precision : str or Precision, optional
        The precision of this call.

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.vecdot(gt.ones((4, 3)), gt.ones((3,))).numpy()
    array([3., 3., 3., 3.], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x1, "vecdot")
    cdef Tensor b = tensor_argument(x2, "vecdot")
    cdef Tensor result
    cdef ProductCall call
    cdef int ndim = a.ndim_ if a.ndim_ > b.ndim_ else b.ndim_
    cdef int from_end
    if a.ndim_ < 1 or b.ndim_ < 1:
        raise ValueError("vecdot: x1 and x2: got 0 dimensions; expected 1 or more")
    from_end = axis_argument(axis, ndim, "vecdot") - ndim
    if from_end < -a.ndim_ or from_end < -b.ndim_:
        raise ValueError(f"vecdot: axis: got {axis}; expected an axis of {a.shape} and {b.shape}")
    if ndim + 1 > MAX_NDIM:
        raise ValueError(f"vecdot: x1 and x2: got {MAX_NDIM} dimensions; expected at most "
                         f"{MAX_NDIM - 1}")
    if a.shape_[a.ndim_ + from_end] != b.shape_[b.ndim_ + from_end]:
        raise ValueError(f"vecdot: x1 and x2: got shapes {a.shape} and {b.shape}; expected equal "
                         f"lengths along axis {axis}")
    call = product_call("vecdot", with_matrix(a, a.ndim_ + from_end, True),
                        with_matrix(b, b.ndim_ + from_end, False))
    if a.dtype_code == DT_BOOL or b.dtype_code == DT_BOOL:
        result = product_of_bool(call, precision, True)
    else:
        call.set_result(None, None, precision)
        call.options.conj_a = 1
        result = multiply(call)
    return view_tensor(result, result.ptr, result.ndim_ - 2, result.shape_, result.strides_)


cdef Tensor transposed(Tensor matrix):
    cdef int64_t[2] shape
    cdef int64_t[2] strides
    shape[0], shape[1] = matrix.shape_[1], matrix.shape_[0]
    strides[0], strides[1] = matrix.strides_[1], matrix.strides_[0]
    return view_tensor(matrix, matrix.ptr, 2, shape, strides)


def linear(input, weight, bias=None, *, scale=None, activation=None, residual=None, out=None,
           out_dtype=None, precision=None):
    """Return ``activation(scale * (input @ weight.T) + bias) + residual`` as one call.

    Parameters
    ----------
    input : Tensor
        Of shape ``(..., in_features)``.
    weight : Tensor
        Of shape ``(out_features, in_features)``.
    bias : Tensor, optional
        Of shape ``(out_features,)`` and the type of the result.
    scale : number or Tensor, optional
        A factor of the product, an integer if the product is one of integers. A Tensor must be
        float32, with one element or the shape ``(out_features,)``.
    activation : {None, "relu", "gelu", "gelu_tanh", "silu"}
        Applied to the sum. ``"gelu"`` is the exact form.
    residual : Tensor, optional
        Added last. It has the type of the result, broadcasts to its shape, and may be `out`.
    out, out_dtype, precision
        As in :func:`matmul`.

    Raises
    ------
    ValueError
        Shapes do not match, or devices differ.
    TypeError
        An element type is not allowed.

    Notes
    -----
    The product itself applies a bias, ReLU, the tanh form of GELU, a number as scale, and a
    residual without activation. Everything else takes one further kernel, which computes in
    float32. It may read the product rounded to the type of the result (in float32 if the scale is a
    Tensor).

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.linear(gt.ones((2, 3)), gt.ones((4, 3)), gt.ones((4,)), activation="relu").numpy()
    array([[4., 4., 4., 4.],
           [4., 4., 4., 4.]], dtype=float32)
    >>> x = gt.ones((1, 2))
    >>> gt.linear(x, gt.ones((2, 2)), scale=0.5, activation="relu", residual=x).numpy()
    array([[2., 2.]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(input, "linear")
    cdef Tensor w = tensor_argument(weight, "linear")
    cdef ProductCall call
    need_ndim("linear", "weight", w, 2)
    call = product_call("linear", a, transposed(w))
    call.set_result(out, out_dtype, precision)
    call.finish(scale, bias, activation, residual)
    return multiply(call)


def addmm(input, mat1, mat2, *, beta=1, alpha=1, activation=None, out=None, out_dtype=None,
          precision=None):
    """Return ``activation(beta * input + alpha * mat1 @ mat2)``.

    Parameters
    ----------
    input : Tensor
        It broadcasts to the shape of the product and may be `out`. With ``beta=0`` it is not read,
        so a NaN in it does not reach the result.
    mat1, mat2 : Tensor
        Matrices.
    beta, alpha : number
        Factors; integers, of any size, if the matrices are integers.
    activation : {None, "relu", "gelu", "gelu_tanh", "silu"}
        Applied to the sum.
    out, out_dtype, precision
        As in :func:`matmul`.

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.addmm(gt.ones((2,)), gt.ones((2, 3)), gt.ones((3, 2)), alpha=2).numpy()
    array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(mat1, "addmm")
    cdef Tensor b = tensor_argument(mat2, "addmm")
    cdef ProductCall call
    need_ndim("addmm", "mat1", a, 2)
    need_ndim("addmm", "mat2", b, 2)
    call = product_call("addmm", a, b)
    call.set_result(out, out_dtype, precision)
    call.add(input, beta, alpha, activation)
    return multiply(call)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, activation=None, out=None, out_dtype=None,
            precision=None):
    """Return ``activation(beta * input + alpha * batch1 @ batch2)`` for batches of matrices.

    >>> import gputensor as gt
    >>> gt.baddbmm(gt.ones((1, 2, 2)), gt.ones((5, 2, 3)), gt.ones((5, 3, 2))).shape
    (5, 2, 2)
    """
    cdef Tensor a = tensor_argument(batch1, "baddbmm")
    cdef Tensor b = tensor_argument(batch2, "baddbmm")
    cdef ProductCall call
    need_ndim("baddbmm", "batch1", a, 3)
    need_ndim("baddbmm", "batch2", b, 3)
    if a.shape_[0] != b.shape_[0]:
        raise ValueError(f"baddbmm: batch2: got {b.shape_[0]} matrices; expected {a.shape_[0]}, "
                         "as in the first batch")
    call = product_call("baddbmm", a, b)
    call.set_result(out, out_dtype, precision)
    call.add(input, beta, alpha, activation)
    return multiply(call)
