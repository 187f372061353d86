"""Calls of the registry on tensors (convolution and pooling, whose arguments Python has checked),
norms with given statistics, and element-wise formulas."""


def queue_views(str name, tuple attributes, list writes, list reads):
    """Queue a call on views of tensors of one device, in stream order like any operation.

    A view is (tensor, shape, strides in elements, offset in bytes).
    """
    cdef int device = (<Tensor?>writes[0][0]).storage.device
    cdef uint64_t stream = current_handle(device)
    cdef Tensor one
    cdef list operands = []
    for tensor, shape, strides, offset in writes + reads:
        one = tensor
        operands.append(CallOperand(one.ptr + <uint64_t>offset, DTYPES[one.dtype_code].name, shape,
                                    strides))
    door = bound_row(name).door
    work_begin()
    try:
        for view in reads:
            one = view[0]
            one.prepare_read(stream)
        for view in writes:
            one = view[0]
            one.prepare_write(stream)
        door(device, stream, (*attributes, *operands))
    finally:
        work_end(device)


def on_device_of(str name, tuple tensors):
    """The tensors on one device, with None kept; ValueError if they cannot be brought together."""
    cdef Tensor first = tensors[0], one
    cdef bint is_one = True
    for given in tensors:
        if given is not None:
            one = given
            is_one = is_one and one.storage.device == first.storage.device
    if is_one:
        return tensors
    moved = iter(on_one_device(name, tuple([one for one in tensors if one is not None]), None))
    return tuple([None if one is None else next(moved) for one in tensors])


def current_precision():
    """The precision flags in force in this thread."""
    return precision_current()


def batch_norm(x, running_mean, running_var, weight=None, bias=None, *further, training=False,
               momentum=0.1, eps=1e-5):
    """Return (x - mean) / sqrt(variance + eps) * weight + bias, for each channel.

    Parameters
    ----------
    x : Tensor
        Shape (n, channels, ...).
    running_mean, running_var : Tensor or None
        The mean and the variance: one element for each channel. None only with `training`.
    weight, bias : Tensor, optional
        One element for each channel.
    *further
        `training`, `momentum` and `eps`, in PyTorch's order.
    training : bool
        Take mean and variance of each channel of x, and move the running ones, if given, towards
        them in place: ``running += momentum * (new - running)``, with the variance of n - 1.
    momentum : float
    eps : float

    Raises
    ------
    TypeError
        If running_mean or running_var is None without `training`.
    ValueError
        For shapes that do not fit, and for `training` with one value for each channel.

    >>> one = gt.ones(1, device="host")
    >>> batch_norm(gt.asarray([[3.0]], device="host"), one, one, eps=0.0).numpy()
    array([[2.]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "batch_norm")
    cdef int mask = 2, i
    if a.ndim_ < 2:
        raise argument_error(ValueError, "batch_norm: shape of x", a.shape,
                             "at least two axes, the second of channels")
    if len(further) > 3:
        raise argument_error(TypeError, "batch_norm: arguments",
                             Described(f"{4 + len(further)} after x"), "at most 7")
    training, momentum, eps = further + (training, momentum, eps)[len(further):]
    epsilon = _float_argument("batch_norm: eps", eps)
    share = _float_argument("batch_norm: momentum", momentum)
    result_code(a, "batch_norm", None)
    names = ("running_mean", "running_var", "weight", "bias")
    parameters = (running_mean, running_var, weight, bias)
    moved = None
    if flag_argument(training, "batch_norm", "training"):
        for argument, parameter in zip(names, parameters, strict=True):
            if parameter is not None:
                beside(a, parameter, 2, "batch_norm", argument)
        mean, variance, moved = batch_moments(a, running_mean, running_var, share)
        parameters = (mean, variance, weight, bias)
    tensors, numbers = [a], []
    for argument, parameter in zip(names, parameters, strict=True):
        numbers.append(0 if parameter is None else len(tensors))
        if parameter is not None:
            tensors.append(beside(a, parameter, 2, "batch_norm", argument))
    if 0 in numbers[:2]:
        raise argument_error(TypeError, f"batch_norm: {names[numbers.index(0)]}", None, "a Tensor")
    if a.strides_[1] != 1 and a.ndim_ > 2:
        mask = 0
        for i in range(2, a.ndim_):
            mask |= 1 << i
    formula = kept_formula(("batch_norm", epsilon, *numbers))
    result = along_rows_of("batch_norm", formula, tensors, mask,
                           result_code(a, "batch_norm", None), False)
    for target, value in moved or ():
        target[...] = value
    return result


cdef tuple batch_moments(Tensor x, object running_mean, object running_var, double momentum):
    """Mean and variance of each channel, and pairs of a running tensor and its coming value."""
    cdef tuple axes = (0, *range(2, x.ndim_))
    cdef int64_t count = x.size_ // max(x.shape_[1], 1)
    if count < 2:
        raise argument_error(ValueError, "batch_norm: shape of x", x.shape,
                             "two or more values for each channel when training")
    values = x if x.dtype.itemsize >= 4 and x.dtype.kind == "f" else x.astype("float32")
    mean, variance = values.mean(axes), values.var(axes)
    moved = []
    for running, new in ((running_mean, mean), (running_var, variance * (count / (count - 1.0)))):
        if running is not None:
            moved.append((running, running + momentum * (new - running)))
    return mean, variance, moved


def _batch_norm_trees(eps, mean, variance, weight, bias):
    result = ("mul", ("sub", X, ("load", mean)),
              ("rsqrt", ("add", ("load", variance), _number(eps))))
    if weight:
        result = ("mul", result, ("load", weight))
    return [("add", result, ("load", bias)) if bias else result]


def instance_norm(x, *parameters, running_mean=None, running_var=None, weight=None, bias=None,
                  use_input_stats=True, momentum=0.1, eps=1e-5):
    """Return the :func:`layer_norm` of each channel of each sample, over all further axes.

    Parameters
    ----------
    x : Tensor
        Shape (n, channels, ...), with at least three axes.
    *parameters
        Weight and bias; three or more are in PyTorch's order, that of the keywords.
    running_mean, running_var : Tensor, optional
        One element for each channel: moved in place towards the mean over all samples of what x
        has, as in :func:`batch_norm`.
    weight, bias : Tensor, optional
        One element for each channel.
    use_input_stats : bool
        If false, the result is the :func:`batch_norm` with the running mean and variance.
    momentum : float
    eps : float

    >>> instance_norm(gt.asarray([[[1.0, 3.0]]], device="host"), eps=0.0).numpy()
    array([[[-1.,  1.]]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "instance_norm")
    cdef list named = [running_mean, running_var, weight, bias, use_input_stats, momentum, eps]
    if a.ndim_ < 3:
        raise argument_error(ValueError, "instance_norm: shape of x", a.shape,
                             "at least three axes, the second of channels")
    if len(parameters) > 7:
        raise argument_error(TypeError, "instance_norm: arguments",
                             Described(f"{len(parameters)} after x"), "at most 7")
    for i, value in enumerate(parameters, 0 if len(parameters) > 2 else 2):
        if i < 4 and named[i] is not None:
            label = ("running_mean", "running_var", "weight", "bias")[i]
            raise argument_error(TypeError, f"instance_norm: {label}", Described("two values"),
                                 "one")
        named[i] = value
    mean, variance, weight, bias, use_input_stats, momentum, eps = named
    share = _float_argument("instance_norm: momentum", momentum)
    if not flag_argument(use_input_stats, "instance_norm", "use_input_stats"):
        return batch_norm(a, mean, variance, weight, bias, eps=eps)
    moved = moved_of_samples(a, mean, variance, share)
    result = group_norm(a, max(1, a.shape_[1]), weight, bias, eps=eps)
    for target, coming in moved:
        target[...] = coming
    return result


cdef list moved_of_samples(Tensor x, object running_mean, object running_var, double momentum):
    """Pairs of a running tensor of instance_norm and its coming value."""
    if running_mean is None and running_var is None:
        return []
    if x.size_ < 2 * x.shape_[0] * x.shape_[1] or x.size_ == 0:
        raise argument_error(ValueError, "instance_norm: shape of x", x.shape,
                             "two or more values for each channel of a sample")
    axes = tuple(range(2, x.ndim_))
    values = x if x.dtype.itemsize >= 4 and x.dtype.kind == "f" else x.astype("float32")
    moved = []
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is not None:
            beside(x, running, 2, "instance_norm", name)
            new = values.mean(axes) if running is running_mean else values.var(axes, ddof=1)
            moved.append((running, running + momentum * (new.mean(0) - running)))
    return moved


# ---- activations

def activated(str name, tuple trees, tuple tensors):
    """Compute an element-wise formula of tensors that broadcast to the first, in one kernel.

    `trees` contains one tree. The result has the dtype of the first tensor, or float32 if that is
    bool or integer.
    """
    cdef Tensor x = tensor_argument(tensors[0], name)
    cdef list operands = [tensor_argument(one, name) for one in tensors]
    return along_rows_of(name, kept_formula(("steps", trees)), operands, (1 << x.ndim_) - 1,
                         result_code(x, name, None), True)


TREES["batch_norm"] = _batch_norm_trees
TREES["steps"] = lambda trees: [*trees]
