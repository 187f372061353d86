"""New tensors that are empty, constant, progressions or identities, and triangles of matrices.

They are made on the current device unless `device` is given, and filled on its current stream. The
default dtype is float32, also for Python floats; ints give int64.
"""


@sized
def empty(shape, dtype=None, *, device=None):
    """Return a new tensor with undefined values.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : dtype, optional
        Default: float32.
    device : str, int or Device, optional
        Default: the current device.

    Raises
    ------
    OutOfMemoryError
        The device has not enough memory; nothing has changed then.

    >>> empty((2, 3), dtype="bfloat16", device="host").shape
    (2, 3)
    """
    cdef int64_t[16] dims
    cdef int ndim = shape_argument(shape, dims)
    return empty_tensor(dtype_argument(dtype, DT_FLOAT32), ndim, dims, device_argument(device))


@spellings(size="shape")
def full(shape, fill_value, dtype=None, *, device=None):
    """Return a new tensor with every element equal to `fill_value`: a number, tensor or list.

    The default dtype is int64 for an int, float32 for a float, bool for a bool, complex64 for a
    complex, and that of `fill_value` for a NumPy scalar or a tensor. Tensors and lists are
    broadcast.

    >>> full(2, 7, device="host").numpy()
    array([7, 7])
    """
    cdef int64_t[16] dims
    cdef Tensor result
    cdef int kind = number_kind(fill_value)
    cdef int code
    if isinstance(fill_value, (list, tuple)):
        fill_value = asarray(fill_value, dtype=dtype, device=device)
    if type(fill_value) is Tensor:
        result = empty(shape, fill_value.dtype if dtype is None else dtype,
                       device=fill_value.device if device is None else device)
        fill_from(result, <Tensor> fill_value)
        return result
    if kind < 0:
        raise TypeError(f"full: fill_value: got {type(fill_value).__name__}; expected a number")
    code = (DT_BOOL, DT_INT64, DT_FLOAT32, DT_COMPLEX64)[kind]
    if dtype is None and isinstance(fill_value, generic):
        dtype = fill_value.dtype
    code = dtype_argument(dtype, code)
    result = empty_tensor(code, shape_argument(shape, dims), dims, device_argument(device))
    fill_with(result, fill_value)
    return result


cdef int fill_from(Tensor target, Tensor value) except -1:
    """Write the values of a tensor on any device, broadcast."""
    if value.dtype.kind == "c" and target.dtype.kind != "c":
        raise TypeError("fill: value: got a complex number; expected one that dtype "
                        f"{target.dtype} can hold")
    if value.storage.device != target.storage.device:
        value = moved(value, target.storage.device)
    if value.ndim_ == 0:
        return copy_into(target, value)
    target[...] = value
    return 0


cdef Tensor constant(object shape, object value, object dtype, object device):
    cdef int64_t[16] dims
    cdef Tensor result = empty_tensor(dtype_argument(dtype, DT_FLOAT32),
                                      shape_argument(shape, dims), dims, device_argument(device))
    fill_with(result, value)
    return result


@sized
def zeros(shape, dtype=None, *, device=None):
    """Return a new tensor of zeros; float32 unless `dtype` is given.

    >>> zeros(2, device="host").numpy()
    array([0., 0.], dtype=float32)
    """
    return constant(shape, 0, dtype, device)


@sized
def ones(shape, dtype=None, *, device=None):
    """Return a new tensor of ones; float32 unless `dtype` is given.

    >>> ones(2, dtype="int8", device="host").numpy()
    array([1, 1], dtype=int8)
    """
    return constant(shape, 1, dtype, device)


cdef Tensor empty_for(object x, object dtype, object device, object shape, str name):
    cdef Tensor a = tensor_argument(x, name)
    cdef int code = dtype_argument(dtype, a.dtype_code)
    cdef Tensor made
    if shape is not None:
        return empty(shape, DTYPES[code].numpy, device=a.device if device is None else device)
    made = empty_tensor(code, a.ndim_, a.shape_,
                        a.storage.device if device is None else device_argument(device))
    if made.storage.device < closable:
        storage_check_write(made.storage)
    return made


def empty_like(x, /, dtype=None, *, device=None, shape=None):
    """Return a tensor with undefined values, and the dtype, device and shape of `x` unless given.

    >>> empty_like(zeros(3, device="host")).shape
    (3,)
    """
    return empty_for(x, dtype, device, shape, "empty_like")


def full_like(x, /, fill_value, dtype=None, *, device=None, shape=None):
    """Return a constant tensor with the dtype, device and shape of `x` unless given.

    >>> full_like(zeros(2, device="host"), 3).numpy()
    array([3., 3.], dtype=float32)
    """
    cdef Tensor result = empty_for(x, dtype, device, shape, "full_like")
    if isinstance(fill_value, (list, tuple)):
        fill_value = asarray(fill_value, dtype=result.dtype, device=result.device)
    if type(fill_value) is Tensor:
        fill_from(result, <Tensor> fill_value)
    else:
        fill_with(result, fill_value)
    return result


def zeros_like(x, /, dtype=None, *, device=None, shape=None):
    """Return zeros with the dtype, device and shape of `x` unless given.

    >>> zeros_like(ones(2, device="host")).numpy()
    array([0., 0.], dtype=float32)
    """
    cdef Tensor result = empty_for(x, dtype, device, shape, "zeros_like")
    fill_with(result, 0)
    return result


def ones_like(x, /, dtype=None, *, device=None, shape=None):
    """Return ones with the dtype, device and shape of `x` unless given.

    >>> ones_like(zeros(2, device="host")).numpy()
    array([1., 1.], dtype=float32)
    """
    cdef Tensor result = empty_for(x, dtype, device, shape, "ones_like")
    fill_with(result, 1)
    return result


cdef Tensor progression(int64_t count, int dtype, int device, object start, object step):
    """Return ``start + i * step`` for i < count."""
    cdef Tensor result = empty_tensor(dtype, 1, &count, device)
    cdef Operand operand
    cdef uint64_t stream
    cdef double real_start = 0
    cdef double real_step = 0
    cdef int64_t integer_start = 0
    cdef int64_t integer_step = 0
    if count == 0:
        return result
    if dtype_kind(dtype) >= KIND_FLOAT:
        real_start = start
        real_step = step
    else:
        integer_start = <int64_t> <uint64_t> (int(start) & 0xFFFFFFFFFFFFFFFF)
        integer_step = <int64_t> <uint64_t> (int(step) & 0xFFFFFFFFFFFFFFFF)
    stream = current_handle(device)
    result.prepare_write(stream)
    result.fill_operand(&operand)
    arange_kernel(device, stream, &operand, real_start, real_step, integer_start, integer_step)
    return result


def arange(start, /, stop=None, step=1, dtype=None, *, device=None):
    """Return ``start, start + step, ...`` up to but excluding `stop`, in one dimension.

    With one argument, that is `stop` and the values begin at 0. The default dtype is int64 for
    ints, otherwise float32. Tensors of one element count as numbers, read from the device.

    >>> arange(2, 8, 3, device="host").numpy()
    array([2, 5])
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = [one.item() if isinstance(one, Tensor) else one
                         for one in (start, stop, step)]
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if number_kind(value) not in (1, 2):
            raise TypeError(f"arange: {name}: got {type(value).__name__}; expected an int or a "
                            "float")
        if number_kind(value) == 2 and not math.isfinite(value):
            raise ValueError(f"arange: {name}: got {value}; expected a finite number")
    if step == 0:
        raise ValueError("arange: step: got 0; expected a nonzero number")
    is_integer = all(number_kind(value) == 1 for value in (start, stop, step))
    code = dtype_argument(dtype, DT_INT64 if is_integer else DT_FLOAT32)
    if is_integer:
        count = -((int(start) - int(stop)) // int(step))
    else:
        count = (float(stop) - float(start)) / float(step)
    if count > MAX_SIZE:
        raise argument_error(ValueError, "arange: stop", stop, "at most 2**58 values")
    count = math.ceil(max(0, count))
    if count > 0 and KIND_BOOL < dtype_kind(code) < KIND_FLOAT:
        whole_number(start, code)
        whole_number(int(start) + (count - 1) * int(step), code)
    return progression(count, code, device_argument(device), start, step)


cdef object complex_linspace(object start, object stop, object num, object endpoint,
                             object retstep, int code, object device):
    part = "float64" if code == DT_COMPLEX128 else "float32"
    real, real_step = linspace(start.real, stop.real, num, endpoint, True, dtype=part,
                               device=device)
    imag, imag_step = linspace(start.imag, stop.imag, num, endpoint, True, dtype=part,
                               device=device)
    result = real + imag * 1j
    if flag_argument(retstep, "linspace", "retstep"):
        return result, complex(real_step, imag_step)
    return result


cdef object make_lines = None


def find_lines_with(lines):
    """Set the function that makes lines between tensors, and of integers: ``grids.lines``."""
    global make_lines
    make_lines = lines


@spellings(steps="num")
def linspace(start, stop, /, num=50, endpoint=True, retstep=False, dtype=None, *, device=None):
    """Return `num` evenly spaced values from `start` to `stop`.

    Parameters
    ----------
    start, stop : float, complex or Tensor
        For tensors the values are along a new first axis.
    num : int
        The number of values, 0 or more.
    dtype : dtype, optional
        Default: float32, for complex numbers complex64; that of the tensors. Values are rounded
        down to an integer dtype.
    endpoint : bool
        Whether the last value is `stop`.
    retstep : bool
        Return a pair: the values, and the distance between them.

    >>> linspace(0, 1, 5, device="host").numpy()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    cdef Tensor result
    cdef int64_t one = 1
    cdef bint is_complex = number_kind(start) == 3 or number_kind(stop) == 3
    cdef int code = dtype_argument(dtype, DT_COMPLEX64 if is_complex else DT_FLOAT32)
    if (isinstance(start, (Tensor, list, tuple)) or isinstance(stop, (Tensor, list, tuple))
            or not is_complex and dtype_kind(code) < KIND_FLOAT):
        return make_lines(start, stop, num, endpoint, retstep, dtype, device)
    if dtype_kind(code) == KIND_COMPLEX:
        return complex_linspace(complex(start), complex(stop), num, endpoint, retstep, code, device)
    if is_complex:
        raise TypeError(f"linspace: dtype: got {dtype}; expected a complex dtype")
    num = count_argument(num, "linspace", "num")
    start = float_argument("linspace: start", start)
    stop = float_argument("linspace: stop", stop)
    endpoint = flag_argument(endpoint, "linspace", "endpoint")
    retstep = flag_argument(retstep, "linspace", "retstep")
    steps = num - 1 if endpoint else num
    step = (stop - start) / steps if steps > 0 else 0.0
    result = progression(num, code, device_argument(device), start, step)
    if endpoint and num > 1:
        fill_with(view_tensor(result, result.ptr + (num - 1) * dtype_itemsize(code), 1, &one,
                              result.strides_), stop)
    if retstep:
        return result, step if steps > 0 else float("nan")
    return result


def eye(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None):
    """Return a matrix with ones on diagonal `k` and zeros elsewhere.

    `k` > 0 is above the main diagonal. The default dtype is float32.

    >>> eye(2, 3, k=1, device="host").numpy()
    array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    cdef Tensor result
    cdef int64_t rows = count_argument(n_rows, "eye", "n_rows")
    cdef int64_t columns = rows if n_cols is None else count_argument(n_cols, "eye", "n_cols")
    cdef int64_t shift = diagonal_argument(k, "eye")
    cdef int64_t length = min(rows - max(-shift, 0), columns - max(shift, 0))
    cdef int64_t stride = columns + 1
    cdef int64_t first = shift if shift >= 0 else -shift * columns
    result = zeros((rows, columns), dtype=dtype, device=device)
    if length > 0:
        fill_with(view_tensor(result, result.ptr + first * dtype_itemsize(result.dtype_code), 1,
                              &length, &stride), 1)
    return result


cdef Tensor triangle(object x, object k, bint is_lower, str name):
    cdef Tensor a = tensor_argument(x, name)
    cdef Tensor rows, columns
    cdef int64_t[2] shape
    cdef int64_t[2] strides
    if a.ndim_ < 2:
        raise ValueError(f"{name}: x: got {a.ndim_} dimensions; expected at least 2")
    rows = progression(a.shape_[a.ndim_ - 2], DT_INT64, a.storage.device,
                       diagonal_argument(k, name), 1)
    columns = progression(a.shape_[a.ndim_ - 1], DT_INT64, a.storage.device, 0, 1)
    shape[0] = rows.size_
    shape[1] = 1
    strides[0] = 1
    strides[1] = 1
    rows = view_tensor(rows, rows.ptr, 2, shape, strides)
    keep = columns <= rows if is_lower else columns >= rows
    return where(keep, a, False)


@spellings(diagonal="k")
def tril(x, /, k=0):
    """Return a copy of matrices with zeros above diagonal `k`.

    >>> tril(ones((2, 2), device="host")).numpy()
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return triangle(x, k, True, "tril")


@spellings(diagonal="k")
def triu(x, /, k=0):
    """Return a copy of matrices with zeros below diagonal `k`.

    >>> triu(ones((2, 2), device="host")).numpy()
    array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return triangle(x, k, False, "triu")
