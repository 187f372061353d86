"""Softmax and its like: formulas along rows. Each is one kernel that reads its input once.

The axes that a function reduces over are the columns, all other axes the rows. Values are computed
in float32 (float64 for float64) and rounded once, to the dtype of the result. Work is queued on the
current stream and ordered like that of any operation.
"""

cdef dict formulas = {}     # (name in TREES, arguments...) -> RowFormula


cdef RowFormula kept_formula(tuple key):
    """The formula of a variant of a function; the key is a name in TREES and its arguments."""
    cdef object found = formulas.get(key)
    if found is None:
        found = formulas.setdefault(key, RowFormula(TREES[key[0]](*key[1:])))
    return <RowFormula>found


# The formulas without options, and those of norms with the epsilon that was used last, which are
# found without a key.
cdef enum:
    PLAIN_SOFTMAX = 0           # two: for results of 32 and 64 bits, and of 16 bits
    PLAIN_LOG_SOFTMAX = 2
    PLAIN_LOGSUMEXP = 4
    NORMS = 5                   # 16: by kind of norm, and which operands it has
    PLAIN_FORMULAS = 21

cdef list plain_formulas = [None] * PLAIN_FORMULAS
cdef double[21] epsilons


cdef int result_code(Tensor x, str name, object dtype) except -1:
    cdef int kind = dtype_kind(x.dtype_code)
    if kind == KIND_COMPLEX or kind == KIND_SMALL:
        raise TypeError(f"{name}: x: got {DTYPES[x.dtype_code].name}; expected bool, integers, or "
                        "floats of 16 bits or more")
    cdef int code = dtype_argument(dtype, x.dtype_code if kind == KIND_FLOAT else DT_FLOAT32)
    if dtype_kind(code) != KIND_FLOAT:
        raise TypeError(f"{name}: dtype: got {DTYPES[code].name}; expected a floating-point dtype")
    return code


# A mask of integers would be added to the scores, although 0 and 1 are surely meant as bool.
cdef Tensor mask_argument(str name, str argument, object given):
    cdef Tensor mask = tensor_argument(given, f"{name}: {argument}")
    if mask.dtype_code != DT_BOOL and dtype_kind(mask.dtype_code) != KIND_FLOAT:
        got = Described(DTYPES[mask.dtype_code].name)
        raise argument_error(TypeError, f"{name}: {argument}", got,
                             "bool or a floating-point dtype")
    return mask


# Runs the formula on tensors that broadcast to the shape of the first and that the caller holds.
# Returns its result, or a tuple of its results.
cdef object along_rows(str name, RowFormula formula, PyObject** tensors, int count, int mask,
                       int code, bint keepdims):
    cdef Operand[12] operands
    cdef Operand plain
    cdef Operand* operand
    cdef PyObject* every[12]
    cdef int64_t[16] shape
    cdef int64_t[16] kept_shape
    cdef Tensor x = <Tensor>tensors[0], one, first = None
    cdef list results = None
    cdef int ndim = x.ndim_, kept_ndim = 0, i, k
    cdef int device = x.storage.device
    cdef int total = count + formula.results
    cdef bint is_last = mask + (mask & -mask) == 1 << ndim      # columns are the last axes
    cdef uint64_t stream
    for i in range(ndim):
        shape[i] = x.shape_[i]
        if not mask >> i & 1 or keepdims:
            kept_shape[kept_ndim] = 1 if mask >> i & 1 else x.shape_[i]
            kept_ndim += 1
    every[0] = tensors[0]
    for k in range(1, count):
        every[k] = tensors[k]
        one = <Tensor>tensors[k]
        if one.storage.device != device:
            moved = on_one_device(name, tuple([<object>tensors[i] for i in range(count)]), None)
            for i in range(count):
                every[i] = <PyObject*>(<tuple>moved)[i]
            return along_rows(name, formula, every, count, mask, code, keepdims)
        if one.ndim_ > ndim or broadcast_shape(shape, ndim, one, name) != ndim or (
                not has_extents(x, 0, ndim, shape)):
            raise argument_error(ValueError, f"{name}: shape of an operand", one.shape,
                                 f"one that broadcasts to {x.shape}")
    for k in range(count, total):
        one = (empty_tensor(code, kept_ndim, kept_shape, device)
               if formula.row_results >> (k - count) & 1 else
               empty_tensor(code, ndim, shape, device))
        every[k] = <PyObject*>one
        if k == count:
            first = one
        else:
            results = [first] if results is None else results
            results.append(one)
    if x.size_:
        for k in range(total):
            one = <Tensor>every[k]
            operand = &operands[k] if is_last else &plain
            if k < count:
                broadcast_operand(one, operand, ndim, shape)
            elif formula.row_results >> (k - count) & 1:
                spread(one, operand, mask, ndim, shape, keepdims)
            else:
                one.fill_operand(operand)
            if not is_last:
                columns_last(operand, &operands[k], mask)
        stream = current_handle(device)
        work_begin()
        try:
            for k in range(total):
                if k < count:
                    (<Tensor>every[k]).prepare_read(stream)
                else:
                    (<Tensor>every[k]).prepare_write(stream)
            run_formula(formula, device, stream, operands, ndim - count_kept(mask, ndim))
        finally:
            work_end(device)
    return first if results is None else tuple(results)


cdef object along_rows_of(str name, RowFormula formula, list tensors, int mask, int code,
                          bint keepdims):
    cdef PyObject* values[12]
    cdef int k
    for k in range(len(tensors)):
        values[k] = <PyObject*><Tensor?>tensors[k]
    return along_rows(name, formula, values, <int>len(tensors), mask, code, keepdims)


cdef inline bint has_extents(Tensor x, int first, int count, const int64_t* extents) noexcept:
    cdef int i
    for i in range(count):
        if x.shape_[first + i] != extents[i]:
            return False
    return True


cdef inline int count_kept(int mask, int ndim) noexcept:
    cdef int i, kept = 0
    for i in range(ndim):
        kept += not mask >> i & 1
    return kept


cdef void columns_last(const Operand* plain, Operand* out, int mask) noexcept:
    """The operand with the axes of the mask moved after the others."""
    cdef int i, j = 0, turn
    out[0] = plain[0]
    for turn in range(2):
        for i in range(plain.ndim):
            if (mask >> i & 1) == turn:
                out.shape[j], out.strides[j] = plain.shape[i], plain.strides[i]
                j += 1


cdef void spread(Tensor result, Operand* out, int mask, int ndim, const int64_t* shape,
                 bint keepdims) noexcept:
    """A result without columns as an operand with extent 1 along them."""
    cdef int i, j = 0
    result.fill_operand(out)
    out.ndim = ndim
    for i in range(ndim):
        out.shape[i] = shape[i]
        if mask >> i & 1:
            out.shape[i], out.strides[i] = 1, 0
            j += keepdims
        else:
            out.strides[i] = result.strides_[j]
            j += 1


cdef Tensor beside(Tensor x, object parameter, int mask, str name, str argument):
    """A weight or bias, or a view of it, that broadcasts to x; its axes are those of the mask."""
    cdef Tensor weight = tensor_argument(parameter, name)
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int i, j = 0, first = x.ndim_ - weight.ndim_
    if first >= 0 and mask == (1 << x.ndim_) - (1 << first) and (
            has_extents(x, first, weight.ndim_, weight.shape_)):
        return weight
    wanted = tuple([x.shape_[i] for i in range(x.ndim_) if mask >> i & 1])
    if weight.shape != wanted:
        raise argument_error(ValueError, f"{name}: shape of {argument}", weight.shape,
                             f"{wanted}, the extents of x along its axes")
    for i in range(x.ndim_):
        shape[i], strides[i] = 1, 0
        if mask >> i & 1:
            shape[i], strides[i] = weight.shape_[j], weight.strides_[j]
            j += 1
    return tensor_over(weight.storage, weight.ptr, weight.dtype_code, x.ndim_, shape, strides)


# ---- softmax

cdef object X = ("load", 0)


def _number(value):
    value = float(value)
    return ("number", value if np.isfinite(value) else str(value))


def _softmax_trees(scale, mask, power):
    x = X if scale == 1.0 else ("mul", X, _number(scale))
    if mask == "bool":
        x = ("where", ("load", 1), x, _number(-np.inf))
    elif mask == "float":
        x = ("add", x, ("load", 1))
    if mask is None:
        largest = ("fold", "max", x)
        powers = (power, ("sub", x, largest))
        return [("mul", powers, ("div", _number(1), ("fold", "sum", powers)))]
    return _masked_softmax(x, power)


def _masked_softmax(x, power):
    """Like the plain formula, but a row in which everything is masked gives 0 instead of NaN."""
    largest = ("fold", "max", x)
    shift = ("where", ("eq", largest, _number(-np.inf)), _number(0), largest)
    powers = (power, ("sub", x, shift))
    total = ("fold", "sum", powers)
    return [("mul", powers, ("div", _number(1), ("where", ("eq", total, _number(0)), _number(1),
                                                 total)))]


@_spellings(dim="axis")
def softmax(x, axis=-1, *, scale=1.0, mask=None, dtype=None):
    """Return exp(scale * x) divided by its sum along `axis`.

    Parameters
    ----------
    x : Tensor
        Bool, integers, or floats of 16 bits or more.
    axis : int or tuple of int
    scale : float
        A factor of x.
    mask : Tensor, optional
        Broadcasts to x. A bool mask is True for elements that take part; the others give 0. A
        floating-point mask is added to scale * x. A row in which no element takes part is 0.
    dtype : dtype, optional
        The dtype of the result: by default that of x, or float32 for bool and integers.

    Raises
    ------
    TypeError
        For other dtypes of x, a mask of integers, and a `dtype` that is not floating-point.
    ValueError
        For an axis that x does not have, and a mask that does not broadcast to x.

    >>> softmax(gt.asarray([[0.0, 0.0]], device="host")).numpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "softmax")
    cdef PyObject* tensors[2]
    tensors[0] = <PyObject*>a
    kind = None
    if mask is not None:
        mask = mask_argument("softmax", "mask", mask)
        tensors[1] = <PyObject*>mask
        kind = "bool" if (<Tensor>tensors[1]).dtype_code == DT_BOOL else "float"
    cdef int code = result_code(a, "softmax", dtype)
    cdef int place = PLAIN_SOFTMAX + dtype_is_half(code)
    cdef double factor = scale if type(scale) is float else _float_argument("softmax: scale", scale)
    cdef bint is_plain = kind is None and factor == 1
    cdef object formula = plain_formulas[place] if is_plain else None
    if formula is None:
        power = "rough_exp" if dtype_is_half(code) else "exp"
        formula = kept_formula(("softmax", factor, kind, power))
        if is_plain:
            plain_formulas[place] = formula
    return along_rows("softmax", <RowFormula>formula, tensors, 1 if kind is None else 2,
                      axes_mask(axis, a.ndim_, "softmax"), code, False)


def _log_softmax_trees(power):
    away = ("sub", X, ("fold", "max", X))
    return [("sub", away, ("log", ("fold", "sum", (power, away))))]


def _logsumexp_trees():
    # An infinite maximum is itself the result; subtracting it would give NaN.
    largest = ("fold", "max", X)
    shift = ("where", ("isfinite", largest), largest, _number(0))
    return [("add", ("log", ("fold", "sum", ("exp", ("sub", X, shift)))), shift)]


@_spellings(dim="axis")
def log_softmax(x, axis=-1, *, dtype=None):
    """Return the logarithm of :func:`softmax`, accurate even where the softmax underflows.

    >>> log_softmax(gt.asarray([[0.0, 0.0]], device="host")).numpy()
    array([[-0.6931472, -0.6931472]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "log_softmax")
    cdef PyObject* value = <PyObject*>a
    cdef int code = result_code(a, "log_softmax", dtype)
    cdef int place = PLAIN_LOG_SOFTMAX + dtype_is_half(code)
    if plain_formulas[place] is None:
        power = "rough_exp" if dtype_is_half(code) else "exp"
        plain_formulas[place] = kept_formula(("log_softmax", power))
    return along_rows("log_softmax", <RowFormula>plain_formulas[place], &value, 1,
                      axes_mask(axis, a.ndim_, "log_softmax"), code, False)


@_spellings(dim="axis", keepdim="keepdims")
def logsumexp(x, axis=-1, keepdims=False):
    """Return the logarithm of the sum of exp(x) along `axis`; -inf for a sum of no elements.

    >>> logsumexp(gt.asarray([0.0, 0.0], device="host")).item()
    0.6931471824645996
    """
    cdef Tensor a = tensor_argument(x, "logsumexp")
    cdef PyObject* value = <PyObject*>a
    if plain_formulas[PLAIN_LOGSUMEXP] is None:
        plain_formulas[PLAIN_LOGSUMEXP] = kept_formula(("logsumexp",))
    result = along_rows("logsumexp", <RowFormula>plain_formulas[PLAIN_LOGSUMEXP], &value, 1,
                        axes_mask(axis, a.ndim_, "logsumexp"),
                        result_code(a, "logsumexp", None),
                        flag_argument(keepdims, "logsumexp", "keepdims"))
    if a.size_ == 0 and (<Tensor>result).size_:
        fill_with(result, -np.inf)
    return result
