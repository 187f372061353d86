"""Norms: formulas along rows (rows.pxi)."""


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
    epsilon = _float_argument(f"{name}: eps", eps)
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
    return named["weight"], named.get("bias"), axis, eps


# The epsilon of an rms_norm without one: PyTorch's where its order of arguments is used.
cdef object default_epsilon(Tensor a, tuple given):
    if not given or not isinstance(given[0], (int, tuple, list)):
        return 1e-5
    return float(_finfo(DTYPES[result_code(a, "rms_norm", None)].numpy).eps)


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
        eps = 1e-5 if eps is None else eps
    return normed("layer_norm", a, axis, weight, bias, eps, residual)


def rms_norm(x, *parameters, weight=None, axis=-1, eps=None, residual=None):
    """Return x / sqrt(mean(x**2) + eps) * weight, with the mean along `axis`.

    Parameters are those of :func:`layer_norm` without bias. `eps` is 1e-5 by default; after the
    extents of the last axes, as in PyTorch, it is the distance from 1 to the next number of the
    result's dtype.

    >>> rms_norm(gt.asarray([[2.0, 2.0]], device="host"), eps=0.0).numpy()
    array([[1., 1.]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "rms_norm")
    if len(parameters) == 1 and weight is None and isinstance(parameters[0], Tensor):
        weight = parameters[0]
    elif 1 < len(parameters) < 4 and weight is None and are_last_extents(a, parameters[0]):
        axis, weight = last_axes(parameters[0]), parameters[1]
        eps = parameters[2] if len(parameters) > 2 else eps
    elif parameters:
        weight, _, axis, eps = norm_arguments(
            "rms_norm", a, parameters, {"weight": weight}, axis, eps)
    if eps is None:
        eps = default_epsilon(a, parameters)
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
    groups = plain_int(groups)
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
    epsilon = _float_argument("group_norm: eps", eps)
    formula = kept_formula(("norm", "layer_norm", epsilon, *numbers, 0))
    return along_rows_of("group_norm", formula, tensors, mask, result_code(a, "group_norm", None),
                         False).reshape(a.shape)
