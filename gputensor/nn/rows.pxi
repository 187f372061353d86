"""Softmax and norms: formulas along rows. Each is one kernel that reads its input once.

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
        For other dtypes of x, and a `dtype` that is not floating-point.
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
        mask = tensor_argument(mask, "softmax: mask")
        tensors[1] = <PyObject*>mask
        kind = "bool" if (<Tensor>tensors[1]).dtype_code == DT_BOOL else "float"
    cdef int code = result_code(a, "softmax", dtype)
    cdef int place = PLAIN_SOFTMAX + dtype_is_half(code)
    cdef bint is_plain = kind is None and scale == 1
    cdef object formula = plain_formulas[place] if is_plain else None
    if formula is None:
        power = "rough_exp" if dtype_is_half(code) else "exp"
        formula = kept_formula(("softmax", float(scale), kind, power))
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
def logsumexp(x, axis=-1, *, keepdims=False):
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


# ---- norms

def _norm_trees(kind, eps, weight, bias, residual):
    """`weight`, `bias` and `residual` are the indices of their operands, or 0 if absent."""
    x = ("add", X, ("load", residual)) if residual else X
    away = ("sub", x, ("fold", "mean", x)) if kind == "layer_norm" else x
    spread = ("fold", "mean", ("mul", away, away))
    result = ("mul", away, ("rsqrt", ("add", spread, _number(eps))))
    if weight:
        result = ("mul", result, ("load", weight))
    if bias:
        result = ("add", result, ("load", bias))
    return [result, x] if residual else [result]


cdef object normed(str name, Tensor a, object axis, object weight, object bias, object eps,
                   object residual):
    """One kernel for a norm."""
    cdef int mask = axes_mask(axis, a.ndim_, name), of_weight = 0, of_bias = 0, of_added = 0
    cdef int count = 1, place = NORMS + 8 * (name == "layer_norm")
    cdef double epsilon
    cdef PyObject* tensors[4]
    cdef Tensor added
    tensors[0] = <PyObject*>a
    if weight is not None:
        weight = beside(a, weight, mask, name, "weight")
        tensors[count], of_weight = <PyObject*>weight, count
        count += 1
    if bias is not None:
        bias = beside(a, bias, mask, name, "bias")
        tensors[count], of_bias = <PyObject*>bias, count
        count += 1
    if residual is not None:
        added = tensor_argument(residual, name)
        if added.shape != a.shape:
            raise argument_error(ValueError, f"{name}: shape of residual", added.shape,
                                 f"{a.shape}")
        tensors[count], of_added = <PyObject*>added, count
        count += 1
    epsilon = float(eps)
    place += 4 * (of_weight > 0) + 2 * (of_bias > 0) + (of_added > 0)
    if plain_formulas[place] is None or epsilons[place] != epsilon:
        plain_formulas[place] = kept_formula(
            ("norm", name, epsilon, of_weight, of_bias, of_added))
        epsilons[place] = epsilon
    return along_rows(name, <RowFormula>plain_formulas[place], tensors, count, mask,
                      result_code(a, name, None), False)


cdef bint are_last_extents(Tensor a, object given):
    """Whether `given`, in a call that is not traced, is an int or ints: the last extents of a."""
    cdef Py_ssize_t i, count
    if is_tracing():
        return False
    if type(given) is int:
        return a.ndim_ > 0 and given == a.shape_[a.ndim_ - 1]
    if type(given) is not tuple:
        return False
    count = len(<tuple>given)
    if count == 0 or count > a.ndim_:
        return False
    for i in range(count):
        if type((<tuple>given)[i]) is not int or (<tuple>given)[i] != a.shape_[
                a.ndim_ - count + i]:
            return False
    return True


cdef object last_axes(object extents):
    if type(extents) is int or len(extents) == 1:
        return -1
    return tuple(range(-len(extents), 0))


cdef dict TREES = {"softmax": _softmax_trees, "log_softmax": _log_softmax_trees,
                   "logsumexp": _logsumexp_trees, "norm": _norm_trees}


# The weight, bias, axis and epsilon of a norm whose arguments after x are positional: in our order,
# or in PyTorch's, which begins with the extents of the last axes.
cdef tuple norm_arguments(str name, Tensor a, tuple given, dict named, object axis, object eps):
    cdef list names = list(named), accepted = names
    cdef int came = len(given)
    if given and isinstance(given[0], (int, tuple, list)):
        shape = (given[0],) if isinstance(given[0], int) else tuple(given[0])
        if not shape or a.shape[-len(shape):] != shape:
            raise argument_error(ValueError, f"{name}: normalized_shape", shape,
                                 f"the last extents of x, whose shape is {a.shape}")
        axis = tuple(range(-len(shape), 0))
        names.append("eps")
        accepted = ["normalized_shape", *names]
        given = given[1:]
    if came > len(accepted):
        raise argument_error(TypeError, f"{name}: arguments", Described(f"{came} after x"),
                             f"at most {len(accepted)}: {', '.join(accepted)}")
    for label, value in zip(names, given):
        if label == "eps":
            eps = value
        elif named[label] is None:
            named[label] = value
        else:
            raise argument_error(TypeError, f"{name}: {label}", Described("two values"), "one")
    return named["weight"], named.get("bias"), axis, 1e-5 if eps is None else eps


def layer_norm(x, *parameters, weight=None, bias=None, axis=-1, eps=1e-5, residual=None):
    """Return (x - mean) / sqrt(variance + eps) * weight + bias, mean and variance along `axis`.

    Parameters
    ----------
    x : Tensor
        Bool, integers, or floats of 16 bits or more.
    *parameters
        Weight and bias; or, as in PyTorch, the extents of the last axes in place of `axis`, then
        weight, bias and eps.
    weight, bias : Tensor, optional
        Their shape is the extents of x along `axis`.
    axis : int or tuple of int
    eps : float
    residual : Tensor, optional
        Added to x first; its shape is that of x. The result is then a pair: the norm and the sum.

    Returns
    -------
    Tensor or (Tensor, Tensor)
        Of the dtype of x; float32 for bool and integers.

    Raises
    ------
    TypeError
        For other dtypes of x, too many arguments, and one that is given twice.
    ValueError
        For shapes that do not fit.

    >>> layer_norm(gt.asarray([[1.0, 3.0]], device="host"), eps=0.0).numpy()
    array([[-1.,  1.]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "layer_norm")
    if len(parameters) == 2 and weight is None and bias is None and (
            isinstance(parameters[0], Tensor)):
        weight, bias = parameters[0], parameters[1]
    elif 1 < len(parameters) < 5 and weight is None and bias is None and (
            are_last_extents(a, parameters[0])):
        axis, weight = last_axes(parameters[0]), parameters[1]
        bias = parameters[2] if len(parameters) > 2 else None
        eps = parameters[3] if len(parameters) > 3 else eps
        eps = 1e-5 if eps is None else eps
    elif parameters:
        weight, bias, axis, eps = norm_arguments(
            "layer_norm", a, parameters, {"weight": weight, "bias": bias}, axis, eps)
    return normed("layer_norm", a, axis, weight, bias, eps, residual)


def rms_norm(x, *parameters, weight=None, axis=-1, eps=1e-5, residual=None):
    """Return x / sqrt(mean(x**2) + eps) * weight, with the mean along `axis`.

    Parameters are those of :func:`layer_norm` without bias.

    >>> rms_norm(gt.asarray([[2.0, 2.0]], device="host"), eps=0.0).numpy()
    array([[1., 1.]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "rms_norm")
    if len(parameters) == 1 and weight is None and isinstance(parameters[0], Tensor):
        weight = parameters[0]
    elif 1 < len(parameters) < 4 and weight is None and are_last_extents(a, parameters[0]):
        axis, weight = last_axes(parameters[0]), parameters[1]
        eps = parameters[2] if len(parameters) > 2 else eps
        eps = 1e-5 if eps is None else eps
    elif parameters:
        weight, _, axis, eps = norm_arguments(
            "rms_norm", a, parameters, {"weight": weight}, axis, eps)
    return normed("rms_norm", a, axis, weight, None, eps, residual)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    """Return the :func:`layer_norm` of each group of channels; channels are axis 1 of x.

    Parameters
    ----------
    x : Tensor
        Shape (n, channels, ...).
    groups : int
        The number of groups, a divisor of the number of channels.
    weight, bias : Tensor, optional
        One element for each channel.
    eps : float

    >>> group_norm(gt.asarray([[1.0, 3.0, 5.0, 5.0]], device="host"), 2, eps=0.0).numpy()[0, :2]
    array([-1.,  1.], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "group_norm")
    cdef int mask = 0, i
    if a.ndim_ < 2:
        raise argument_error(ValueError, "group_norm: shape of x", a.shape,
                             "at least two axes, the second of channels")
    if not isinstance(groups, int) or groups < 1 or a.shape_[1] % groups:
        raise argument_error(ValueError, "group_norm: groups", groups,
                             f"a divisor of the {a.shape_[1]} channels")
    inner = a.shape[1] // groups
    apart = a.reshape((a.shape[0], groups, inner, *a.shape[2:]))
    tensors, numbers = [apart], []
    for argument, parameter in (("weight", weight), ("bias", bias)):
        numbers.append(0 if parameter is None else len(tensors))
        if parameter is not None:
            one = beside(a, parameter, 2, "group_norm", argument)
            tensors.append(one.reshape((1, groups, inner) + (1,) * (a.ndim_ - 2)))
    for i in range(2, (<Tensor>apart).ndim_):
        mask |= 1 << i
    formula = kept_formula(("norm", "layer_norm", float(eps), *numbers, 0))
    return along_rows_of("group_norm", formula, tensors, mask, result_code(a, "group_norm", None),
                         False).reshape(a.shape)
