"""Element-wise calls: dtype, shape, device and overlap of the arguments, then one kernel.

Every call has the same order: check all arguments; allocate the result; in one section, order the
reads and the write after other streams and queue the kernel. A call that fails has changed nothing.
The public functions, one line each, are made from the table of operations (functions/source.py).
"""

cdef const unsigned char* PROMOTED = promotion.TABLE
cdef object keep_table = promotion.TABLE
cdef object numpy_scalar = np.generic
cdef object numpy_array = np.ndarray
cdef dict INTEGER_LIMITS = {
    row.code: (int(np.iinfo(row.numpy).min), int(np.iinfo(row.numpy).max))
    for row in DTYPES if row.kind in ("int", "uint")
}


# ---- arguments

cdef int number_kind(object value) except -2:
    if isinstance(value, bool):
        return 0
    if isinstance(value, int):
        return 1
    if isinstance(value, float):
        return 2
    if isinstance(value, complex):
        return 3
    if isinstance(value, numpy_scalar) or (isinstance(value, numpy_array) and value.ndim == 0):
        return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3, "V": 2}.get(value.dtype.kind, -1)
    return -1


cdef object whole_number(object value, int dtype):
    cdef object number
    try:
        number = int(value)
    except (OverflowError, ValueError):     # infinities and NaN, which no integer dtype holds
        number = value
    low, high = INTEGER_LIMITS[dtype]
    if not low <= number <= high:
        raise (OverflowError if number == number else ValueError)(
            f"number: got {number}; expected {low} to {high}, which {DTYPES[dtype].name} holds")
    return number


# Fills a scalar operand; OverflowError if the number does not fit an integer `dtype`.
cdef int fill_scalar(Operand* out, object value, int dtype) except -1:
    cdef int kind = dtype_kind(dtype)
    cdef object number
    out.is_scalar = 1
    out.ptr = 0
    out.dtype = dtype
    out.ndim = 0
    out.real = out.imag = 0
    out.integer = 0
    if kind == KIND_BOOL:
        out.integer = 1 if value else 0
        out.real = out.integer
    elif kind == KIND_INT or kind == KIND_UINT:
        number = whole_number(value, dtype)
        out.integer = <int64_t> (<uint64_t> (number & 0xFFFFFFFFFFFFFFFF))
        out.real = <double> number
    elif kind == KIND_COMPLEX:
        number = complex(value)
        out.real = number.real
        out.imag = number.imag
    else:
        out.real = float(value)
    return 0


cdef int promote_codes(int a, int b) except -1:
    cdef int code
    if a == b:
        return a
    code = PROMOTED[a * DTYPE_COUNT + b]
    return promotion.promote(a, b) if code == 255 else code


cdef int promote_number(int code, int kind) except -1:
    if kind == 0 or dtype_kind(code) == KIND_SMALL:
        return code
    if kind == 1:
        return DT_INT64 if code == DT_BOOL else code
    if kind == 2:
        return code if dtype_kind(code) >= KIND_FLOAT else DT_FLOAT32
    if dtype_kind(code) == KIND_COMPLEX:
        return code
    return DT_COMPLEX128 if code == DT_FLOAT64 else DT_COMPLEX64


cdef int weak_code(int kind) noexcept:
    return (DT_BOOL, DT_INT64, DT_FLOAT32, DT_COMPLEX64)[kind]


cdef int broadcast_shape(int64_t* shape, int ndim, Tensor a, str name) except -1:
    cdef int i, shift
    if ndim == 0:
        memcpy(shape, a.shape_, a.ndim_ * sizeof(int64_t))
        return a.ndim_
    if a.ndim_ == ndim and memcmp(shape, a.shape_, ndim * sizeof(int64_t)) == 0:
        return ndim
    if a.ndim_ > ndim:
        shift = a.ndim_ - ndim
        for i in range(ndim - 1, -1, -1):
            shape[i + shift] = shape[i]
        for i in range(shift):
            shape[i] = a.shape_[i]
        ndim = a.ndim_
    shift = ndim - a.ndim_
    for i in range(a.ndim_):
        if shape[i + shift] != 1 and a.shape_[i] != 1 and a.shape_[i] != shape[i + shift]:
            raise ValueError(f"{name}: shapes: got {tuple([shape[k] for k in range(ndim)])} and "
                             f"{a.shape}, which do not broadcast; "
                             "expected extents that are equal or 1")
    for i in range(a.ndim_):
        if shape[i + shift] == 1:
            shape[i + shift] = a.shape_[i]
    return ndim


cdef void broadcast_operand(Tensor a, Operand* out, int ndim, const int64_t* shape) noexcept:
    cdef int i
    cdef int shift = ndim - a.ndim_
    out.ptr = a.ptr
    out.dtype = a.dtype_code
    out.ndim = ndim
    out.is_scalar = 0
    for i in range(ndim):
        out.shape[i] = shape[i]
        if i < shift or (a.shape_[i - shift] == 1 and shape[i] != 1):
            out.strides[i] = 0
        else:
            out.strides[i] = a.strides_[i - shift]


# ---- dtypes

cdef int choose_dtypes(int op, str name, int common, int rule, int* compute,
                       int* result) except -1:
    cdef int kind = dtype_kind(common)
    if kind == KIND_SMALL and rule != RULE_WHERE and op != OP_COPY:
        raise TypeError(f"{name}: dtype: got {DTYPES[common].name}, a type for storage; expected "
                        "a dtype with arithmetic (convert the tensor with astype)")
    compute[0] = common
    if rule == RULE_FLOAT or rule == RULE_CLASSIFY:
        if kind < KIND_FLOAT:
            compute[0] = DT_FLOAT32
    elif rule == RULE_BITS and kind >= KIND_FLOAT:
        raise TypeError(f"{name}: dtype: got {DTYPES[common].name}; expected bool or an integer "
                        "dtype")
    elif rule == RULE_LOGICAL:
        compute[0] = DT_BOOL
    result[0] = compute[0]
    if rule == RULE_COMPARE or rule == RULE_CLASSIFY:
        result[0] = DT_BOOL
    elif rule == RULE_COUNT:
        result[0] = DT_UINT8
    elif rule == RULE_MAGNITUDE and kind == KIND_COMPLEX:
        result[0] = DT_FLOAT32 if common == DT_COMPLEX64 else DT_FLOAT64
    return 0


cdef enum:
    HAS_LISTS = -2


cdef int common_dtype(str name, PyObject** values, int count, int rule) except -1:
    """The dtype code that the arguments promote to; HAS_LISTS if there are lists among them."""
    cdef int common = -1
    cdef int weakest = -1
    cdef int i, kind
    cdef bint is_condition
    for i in range(count):
        is_condition = rule == RULE_WHERE and i == 0
        if is_tensor(values[i]):
            kind = (<Tensor> values[i]).dtype_code
            if not is_condition:
                common = kind if common < 0 else promote_codes(common, kind)
        else:
            kind = number_kind(<object> values[i])
            if kind < 0:
                if type(<object> values[i]) in (list, tuple, range):
                    return HAS_LISTS
                got = type_name(<object> values[i])
                raise TypeError(f"{name}: argument {i + 1}: got {got}; expected "
                                "a Tensor or a number (asarray makes a Tensor of an array)")
            if not is_condition:
                weakest = max(weakest, kind)
    if common < 0:
        return weak_code(weakest)
    if weakest >= 0:
        common = promote_number(common, weakest)
        if rule == RULE_COMPARE and dtype_kind(common) in (KIND_INT, KIND_UINT):
            common = widen_for_numbers(common, tuple_of(values, count))
    return common


cdef int widen_for_numbers(int common, tuple arguments) except -1:
    """Return the dtype in which to compare integers with a number that does not fit theirs.

    int64 if both fit it; otherwise float64, and an infinity replaces the number.
    """
    low, high = INTEGER_LIMITS[common]
    for value in arguments:
        if type(value) is not Tensor and not low <= int(value) <= high:
            low, high = INTEGER_LIMITS[DT_INT64]
            is_between = common != DT_UINT64 and low <= int(value) <= high
            return DT_INT64 if is_between else DT_FLOAT64
    return common


cdef object number_for(object value, Tensor tensor, int compute, int rule):
    """Return the number to compute with: an infinity if no integer compared with it reaches it."""
    if (rule == RULE_COMPARE and dtype_kind(compute) == KIND_FLOAT
            and dtype_kind(tensor.dtype_code) < KIND_FLOAT and number_kind(value) == 1):
        return INFINITY if value > 0 else -INFINITY
    return value


# ---- the call

cdef Tensor elementwise_tensor(int op, str name, tuple arguments, object out, int rule):
    cdef PyObject* values[3]
    cdef int i, count = len(arguments)
    for i in range(count):
        values[i] = PyTuple_GET_ITEM(<PyObject*> arguments, i)
    return elementwise_of(op, name, values, count, out, rule)


cdef inline bint is_tensor(PyObject* value) noexcept:
    return type_of(value) == <PyTypeObject*> Tensor


cdef tuple without_lists(tuple arguments):
    """Return the arguments with lists of numbers as tensors beside those that are tensors."""
    return tuple(of_dotted_name("gputensor.tensor.interop.arrays.tensors")(arguments))


cdef tuple tuple_of(PyObject** values, int count):
    cdef int i
    return tuple([<object> values[i] for i in range(count)])


# The same with arguments that the caller holds: no Python object is made besides the result.
cdef Tensor elementwise_of(int op, str name, PyObject** values, int count, object out, int rule):
    cdef Operand[3] inputs
    cdef Operand target
    cdef int64_t[16] shape
    cdef PyObject* apart[3]
    cdef int ndim = 0
    cdef int compute = 0
    cdef int result_code = 0
    cdef int i, device
    cdef int common = common_dtype(name, values, count, rule)
    cdef Tensor first = None
    cdef Tensor a, result
    cdef list copies
    cdef bint is_run
    cdef uint64_t stream
    if common == HAS_LISTS:
        return elementwise_tensor(op, name, without_lists(tuple_of(values, count)), out, rule)
    for i in range(count):
        if is_tensor(values[i]):
            a = <Tensor> values[i]
            if first is None:
                first = a
            elif a.storage.device != first.storage.device:
                moved = on_one_device(name, tuple_of(values, count), None)
                return elementwise_tensor(op, name, moved, out, rule)
            ndim = broadcast_shape(shape, ndim, a, name)
    if first is None:
        raise TypeError(f"{name}: arguments: got numbers only; expected at least one Tensor")
    if dtype_kind(common) == KIND_COMPLEX and op in operators.ordered:
        return operators.order(name, op, tuple_of(values, count), out)
    choose_dtypes(op, name, common, rule, &compute, &result_code)
    elementwise_check(op, compute)
    for i in range(count):
        if not is_tensor(values[i]):
            fill_scalar(&inputs[i], number_for(<object> values[i], first, compute, rule),
                        DT_BOOL if rule == RULE_WHERE and i == 0 else compute)
            if (op == OP_POW and i == 1 and inputs[i].integer < 0
                    and dtype_kind(compute) == KIND_INT):
                raise ValueError(f"{name}: exponent: got {<object> values[i]}; expected 0 or "
                                 "more, because integers have no negative integer powers")
    device = first.storage.device
    stream = current_handle(device)
    if out is None:
        result = empty_on(stream, result_code, ndim, shape, device)
    else:
        if type(out) is Tensor and (<Tensor> out).storage.device != device:
            moved = on_one_device(name, tuple_of(values, count), out)
            return elementwise_tensor(op, name, moved, out, rule)
        result = checked_out(name, out, ndim, shape, result_code)
        copies = apart_from(result, values, count, apart)
        values = apart
    if result.size_ == 0:
        return result
    is_run = device >= 0 and are_one_run(result, values, count)
    work_begin()
    try:
        for i in range(count):
            if is_tensor(values[i]):
                a = <Tensor> values[i]
                if is_run:
                    run_operand(a, &inputs[i])
                else:
                    broadcast_operand(a, &inputs[i], ndim, shape)
                a.prepare_read(stream)
        if is_run:
            run_operand(result, &target)
        else:
            result.fill_operand(&target)
        result.prepare_write(stream)
        elementwise(op, device, stream, compute, &target, count, inputs)
    finally:
        work_end(device)
    return result


cdef bint are_one_run(Tensor result, PyObject** values, int count) noexcept:
    """Return whether all tensors have their elements one after the other, in the same order.

    Then a kernel needs no axes. (A host device keeps them, because it may record its calls.)
    """
    cdef int i
    if not result.is_c_contiguous:
        return False
    for i in range(count):
        if is_tensor(values[i]) and not (
                (<Tensor> values[i]).is_c_contiguous
                and (<Tensor> values[i]).size_ == result.size_):
            return False
    return True


cdef inline void run_operand(Tensor a, Operand* out) noexcept:
    out.ptr = a.ptr
    out.dtype = a.dtype_code
    out.ndim = 1
    out.is_scalar = 0
    out.shape[0] = a.size_
    out.strides[0] = 1


cdef Tensor checked_out(str name, object out, int ndim, const int64_t* shape, int code):
    """Return `out` if it can take the result; raise ValueError or TypeError otherwise."""
    cdef Tensor target
    cdef int i
    if type(out) is not Tensor:
        raise TypeError(f"{name}: out: got {type(out).__name__}; expected a Tensor")
    target = <Tensor> out
    if target.ndim_ != ndim or memcmp(target.shape_, shape, ndim * sizeof(int64_t)) != 0:
        raise ValueError(f"{name}: out: got shape {target.shape}; expected "
                         f"{tuple([shape[i] for i in range(ndim)])}, that of the result")
    if code != target.dtype_code and not promotion.is_same_kind(code, target.dtype_code):
        raise TypeError(f"{name}: out: got dtype {DTYPES[target.dtype_code].name}; expected one "
                        f"that can take a result of {DTYPES[code].name}")
    check_distinct(target, name)
    return target


cdef int check_distinct(Tensor target, str name) except -1:
    """Refuse to write to read-only memory, or to elements that share memory (stride 0)."""
    cdef int i
    if target.storage.device < closable:
        storage_check_open(target.storage)
        if is_tracing():
            current_tracer().check_write(target.storage.device, target.storage)
    if target.storage.is_readonly:
        raise ValueError(f"{name}: target: got read-only imported memory; expected memory that "
                         "may be written (copy it first, or see assume_writable of from_dlpack)")
    for i in range(target.ndim_):
        if target.strides_[i] == 0 and target.shape_[i] > 1 and target.size_ > 0:
            raise ValueError(f"{name}: target: got a broadcast tensor, whose elements share "
                             "memory; expected a copy of it")
    return 0


cdef list apart_from(Tensor target, PyObject** values, int count, PyObject** apart):
    """Fill `apart` with the arguments, or a copy of each that overlaps `target` otherwise.

    Return a list that holds the copies, or None.
    """
    cdef list copies = None
    cdef int i
    for i in range(count):
        apart[i] = values[i]
        if is_tensor(values[i]) and overlaps(target, <Tensor> values[i]):
            if copies is None:
                copies = []
            copies.append(copied(<Tensor> values[i], (<Tensor> values[i]).dtype_code))
            apart[i] = <PyObject*> copies[len(copies) - 1]
    return copies


cdef bint overlaps(Tensor target, Tensor source) noexcept:
    """Whether the two may share bytes without being the same elements in the same order."""
    cdef uint64_t first, last, source_first, source_last
    cdef int i
    cdef bint is_same = (source.ptr == target.ptr and source.ndim_ == target.ndim_
                         and dtype_itemsize(source.dtype_code)
                         == dtype_itemsize(target.dtype_code))
    if is_same:
        for i in range(source.ndim_):
            if source.shape_[i] != target.shape_[i] or (
                    source.strides_[i] != target.strides_[i] and source.shape_[i] != 1):
                is_same = False
    if is_same:
        return False
    tensor_span(target, &first, &last)
    tensor_span(source, &source_first, &source_last)
    return source_first < last and first < source_last


# ---- copies

cdef int copy_into(Tensor target, Tensor source) except -1:
    cdef int64_t[16] shape
    cdef int ndim
    if source.storage.device != target.storage.device:
        source = on_one_device("copy", (source,), target)[0]
    ndim = broadcast_shape(shape, 0, target, "copy")
    if broadcast_shape(shape, ndim, source, "copy") != target.ndim_ or not all(
            [shape[i] == target.shape_[i] for i in range(target.ndim_)]):
        raise ValueError(f"copy: source: got shape {source.shape}; expected one that broadcasts "
                         f"to {target.shape}")
    check_distinct(target, "copy")
    if target.size_ == 0:
        return 0
    if overlaps(target, source):
        source = copied(source, source.dtype_code)
    return copy_values(target, source)


cdef int copy_values(Tensor target, Tensor source) except -1:
    """Queue the copy of a source that fits its target and does not overlap it."""
    cdef int device = target.storage.device
    cdef uint64_t stream = current_handle(device)
    work_begin()
    try:
        queue_copy(target, source, device, stream)
    finally:
        work_end(device)
    return 0


cdef int queue_copy(Tensor target, Tensor source, int device, uint64_t stream) except -1:
    cdef Operand output, input
    cdef PyObject* value = <PyObject*> source
    source.prepare_read(stream)
    target.prepare_write(stream)
    if device >= 0 and are_one_run(target, &value, 1):
        run_operand(target, &output)
        run_operand(source, &input)
    else:
        target.fill_operand(&output)
        broadcast_operand(source, &input, target.ndim_, target.shape_)
    elementwise(OP_COPY, device, stream, target.dtype_code, &output, 1, &input)
    return 0


cdef int fill_with(Tensor target, object value) except -1:
    cdef Operand output, scalar
    cdef int kind = number_kind(value)
    cdef uint64_t stream
    if kind < 0:
        raise TypeError(f"fill: value: got {type(value).__name__}; expected a number")
    if kind == 3 and dtype_kind(target.dtype_code) != KIND_COMPLEX:
        raise TypeError("fill: value: got a complex number; expected one that dtype "
                        f"{DTYPES[target.dtype_code].name} can hold")
    fill_scalar(&scalar, value, target.dtype_code)
    check_distinct(target, "fill")
    if target.size_ == 0:
        return 0
    stream = current_handle(target.storage.device)
    work_begin()
    try:
        target.prepare_write(stream)
        target.fill_operand(&output)
        fill_kernel(target.storage.device, stream, &output, &scalar)
    finally:
        work_end(target.storage.device)
    return 0


cdef Tensor copied(Tensor source, int dtype):
    cdef Tensor result = empty_tensor(dtype, source.ndim_, source.shape_, source.storage.device)
    if result.size_:
        copy_values(result, source)
    return result


cdef Tensor contiguous(Tensor source):
    return source if source.is_c_contiguous else copied(source, source.dtype_code)
