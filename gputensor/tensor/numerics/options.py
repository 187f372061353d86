"""Options of NumPy and PyTorch, such as ``order=``, ``out=``, ``mode=`` and ``inplace=``.

``parameter_names.OPTIONS`` says which functions have them. Each function here is called with the
value of the option, the function without that option, and the call's other arguments. Options
without a meaning for tensors, such as ``subok``, are checked where a value would promise something.
"""

import warnings

import numpy as np

from gputensor._arrays.dtypes import code_of, int32
from gputensor._arrays.element_types import DTYPES
from gputensor.errors import Described, argument_error, has_elements, list_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, tensor_argument, written_argument
from gputensor.tensor.interop import asarray, ascontiguous, astype
from gputensor.tensor.manipulation import arange, full, moveaxis, permute_dims, reshape
from gputensor.tensor.manipulation.axes import memory_axes
from gputensor.tensor.manipulation.castings import check_castings
from gputensor.tensor.numerics.group_reductions import scatter_reduce
from gputensor.tensor.writing import scatter_add

__all__ = [
    "along_axis_of_first", "along_axis_of_result", "along_axis_of_second", "along_new_axis",
    "as_open_grid", "by_casting", "castable", "converted_by", "copied_to", "drawn_to", "in_dtype",
    "in_given_order", "in_index_order", "in_int32", "in_memory_format", "in_memory_order",
    "in_place", "in_product_order", "of_all_operands_in", "of_matrices_along", "of_operands_in",
    "on_device_of", "on_either_side", "only_pivoted", "over_last_extents", "scattered",
    "unused", "with_indices", "with_spacing", "within_extent", "without_fields",
    "without_gradient",
]  # fmt: skip


def _inner(function):
    while hasattr(function, "func"):  # a provider of another option, its value and the function
        function = function.args[1]
    return function


def _name(function):
    return _inner(function).__name__


def unused(value, function, /, *arguments, **keywords):
    """Call the function: the option has no meaning for tensors."""
    return function(*arguments, **keywords)


def in_memory_order(order, function, /, *arguments, **keywords):
    """``order=``: a new tensor is row-major, for "F" a transposed view of row-major memory.

    With "A" and "K" it has the order of the first argument, if that is a tensor of its shape:
    "A" for "F" if the argument has only this order, and "K" the same order of axes in memory.

    >>> import gputensor as gt
    >>> gt.zeros((2, 3), order="F", device="host").strides
    (4, 8)
    >>> x = gt.zeros((2, 3), device="host").T
    >>> gt.copy(x).strides, gt.copy(x, order="K").strides
    ((8, 4), (4, 12))
    """
    known = order.upper() if isinstance(order, str) else order
    if known not in ("C", "F", "A", "K", None):
        raise argument_error(ValueError, f"{_name(function)}: order", order, "C, F, A or K")
    result = function(*arguments, **keywords)
    if known not in ("F", "A", "K") or result.ndim < 2:
        return result
    axes = list(reversed(range(result.ndim)))
    if known != "F":
        like = arguments[0] if arguments else None
        if not isinstance(like, Tensor) or like.shape != result.shape:
            return result
        if known == "K":
            axes = memory_axes(like)
        elif like.is_contiguous or not permute_dims(like, axes).is_contiguous:
            return result
    moved = ascontiguous(permute_dims(result, axes))
    return permute_dims(moved, sorted(range(len(axes)), key=axes.__getitem__))


def in_product_order(order, function, /, *arguments, **keywords):
    """``order=`` of products, whose results are row-major with "K" and "A", too."""
    known = order.upper() if isinstance(order, str) else order
    known = "C" if known in ("K", "A") else known
    return in_memory_order(known, function, *arguments, **keywords)


def in_memory_format(memory_format, function, /, *arguments, **keywords):
    """``memory_format=``: with "channels_last" channels follow each other in memory.

    The shape stays that of PyTorch, with channels on axis 1. PyTorch's own constants count, too.

    >>> import gputensor as gt
    >>> x = gt.ones((1, 2, 3, 3), device="host")
    >>> x.contiguous(memory_format=gt.channels_last).strides
    (72, 4, 24, 8)
    """
    word = str(memory_format).rpartition(".")[2]
    ndim = {"channels_last": 4, "channels_last_3d": 5}.get(word)
    if ndim is None and word not in ("contiguous_format", "preserve_format"):
        rule = "channels_last, channels_last_3d, contiguous_format or preserve_format"
        raise argument_error(ValueError, f"{_name(function)}: memory_format", memory_format, rule)
    is_view = _name(function) == "ascontiguous" and ndim
    result = arguments[0] if is_view else function(*arguments, **keywords)
    if word == "contiguous_format":
        return ascontiguous(result)
    if ndim is None:
        return result
    if tensor_argument(result, _name(function)).ndim != ndim:
        got = Described(f"{result.ndim} dimensions")
        raise argument_error(ValueError, f"{_name(function)}: x", got, f"{ndim} for {word}")
    behind = permute_dims(result, (0, *range(2, ndim), 1))
    if behind.is_contiguous:
        return result
    return permute_dims(ascontiguous(behind), (0, ndim - 1, *range(1, ndim - 1)))


def without_fields(order, function, /, *arguments, **keywords):
    """``order=`` of a sort, which names the fields of records: tensors have none."""
    if order is not None:
        rule = "None: tensors have no fields"
        raise argument_error(ValueError, f"{_name(function)}: order", order, rule)
    return function(*arguments, **keywords)


def in_index_order(order, function, /, index, shape, **keywords):
    """``order=`` of flat indices: "F" counts along the first axis first.

    >>> import gputensor as gt
    >>> rows, columns = gt.unravel_index(gt.asarray([4], device="host"), (2, 3), order="F")
    >>> rows.tolist(), columns.tolist()
    ([0], [2])
    """
    if order not in ("C", "F"):
        raise argument_error(ValueError, f"{_name(function)}: order", order, "C or F")
    if order == "C":
        return function(index, shape, **keywords)
    if _name(function) == "unravel_index":
        return tuple(reversed(function(index, tuple(reversed(shape)), **keywords)))
    return function(tuple(reversed(index)), tuple(reversed(shape)), **keywords)


def on_device_of(like, function, /, *arguments, **keywords):
    """``like=``: the result is on the device of that tensor."""
    if like is not None:
        keywords.setdefault("device", tensor_argument(like, _name(function)).device)
    return function(*arguments, **keywords)


def by_casting(casting, function, /, *arguments, **keywords):
    """``casting=``: the conversions allowed to the dtype of the result, or of what `copyto` writes.

    >>> import gputensor as gt
    >>> x, y = gt.ones(2, device="host"), gt.zeros(2, "float64", device="host")
    >>> gt.concat([x, y], casting="safe").dtype
    dtype('float64')
    """
    name = _name(function)
    is_flat = isinstance(arguments[0], (str, Tensor))
    given, others = (arguments, ()) if is_flat else (arguments[0], arguments[1:])
    given = [one for one in given if isinstance(one, Tensor)] if has_elements(given) else []
    if name == "copyto":
        check_castings(name, casting, given[1:], given[0].dtype)
        return function(given[0], *_real_parts(arguments[1:], given[0].dtype), **keywords)
    # Checked first where there is one, as nothing may be written before an error.
    out = next((one for one in (keywords.get("out"), *others) if isinstance(one, Tensor)), None)
    if out is not None:
        check_castings(name, casting, given, out.dtype)
    target = keywords.get("dtype") if out is None else out.dtype
    if casting == "unsafe" and target is not None and not is_flat:
        arguments = (_real_parts(arguments[0], target), *others)
    result = function(*arguments, **keywords)
    check_castings(name, casting, given, result.dtype)
    return result


def _real_parts(arrays, target):
    """Return arrays without imaginary parts that `target` cannot hold; warns, as NumPy does."""
    are_complex = [isinstance(one, complex) or getattr(one, "dtype", int32).kind == "c"
                   for one in arrays]  # fmt: skip
    if not any(are_complex) or DTYPES[code_of(target)].kind in ("bool", "complex"):
        return arrays
    text = "casting from complex to real numbers drops their imaginary parts"
    warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=3)
    return [one.real if is_complex else one
            for one, is_complex in zip(arrays, are_complex, strict=True)]  # fmt: skip


def castable(casting, function, /, from_, to):
    """``casting=`` of `can_cast`, where "safe" means this library's promotion."""
    if casting == "safe":
        return function(from_, to)
    return np.can_cast(getattr(from_, "dtype", from_), to, casting)


def converted_by(casting, function, /, x, dtype, *arguments, **keywords):
    """``casting=`` of `astype`, where "safe" means this library's promotion.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").astype("float64", casting="safe").dtype
    dtype('float64')
    """
    given = [x] if isinstance(x, Tensor) else []
    check_castings(_name(function), casting, given, dtype if given else "float32")
    return function(x, dtype, *arguments, **keywords)


def of_all_operands_in(dtype, function, /, *arguments, **keywords):
    """``dtype=`` of a sum of products: the dtype to which its operands are converted."""
    if dtype is not None:
        arguments = [astype(one, dtype, copy=False) if isinstance(one, Tensor) else one
                     for one in arguments]  # fmt: skip
    return function(*arguments, **keywords)


def in_given_order(assume_unique, function, /, x1, x2):
    """``assume_unique=`` of `setdiff1d`: the values stay in the order of `x1`.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([3, 2, 1], device="host"), gt.asarray([2], device="host")
    >>> gt.setdiff1d(x, y, assume_unique=True).tolist()
    [3, 1]
    """
    if not assume_unique or not isinstance(x1, Tensor):
        return function(x1, x2)
    x1 = reshape(x1, -1)
    found = function(x1, x2)
    return x1[fn.any(fn.equal(reshape(x1, (-1, 1)), found), axis=1)]


def with_indices(return_indices, function, /, x1, x2):
    """``return_indices=`` of `intersect1d`: also the first index of each value in both."""
    found = function(x1, x2)
    if not return_indices:
        return found
    places = []
    for one in (x1, x2):
        one = one if isinstance(one, Tensor) else asarray(one, device=found.device)
        hits = fn.equal(reshape(found, (-1, 1)), reshape(one, (1, -1)))
        places.append(fn.argmax(hits, 1) if found.size else arange(0, device=found.device))
    return found, *places


def copied_to(out, function, /, *arguments, **keywords):
    """``out=`` of functions that make their result themselves.

    >>> import gputensor as gt
    >>> y = gt.empty(2, device="host")
    >>> gt.take(gt.asarray([5.0, 6.0, 7.0], device="host"), [2, 0], out=y) is y, y.tolist()
    (True, [7.0, 5.0])
    """
    result = function(*arguments, **keywords)
    if out is None:
        return result
    written_argument(out, _name(function))
    name = f"{_name(function)}: out"
    if out.shape != result.shape:
        raise argument_error(ValueError, name, out.shape, f"shape {result.shape}")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        rule = f"a dtype to which {result.dtype.name} converts"
        raise argument_error(TypeError, name, Described(out.dtype.name), rule)
    out[...] = result
    return out


def drawn_to(out, function, /, *arguments, **keywords):
    """``out=`` of random numbers: by default they have its shape, dtype and device.

    >>> import gputensor as gt
    >>> x = gt.zeros(3, device="host")
    >>> gt.random.random(out=x) is x, bool((x > 0).all())
    (True, True)
    """
    if out is None:
        return function(*arguments, **keywords)
    written_argument(out, _name(function))
    name = f"{_name(function)}: out"
    place = _inner(function).__code__.co_varnames.index("size")
    size = keywords.get("size") if len(arguments) <= place else arguments[place]
    if size is None:
        keywords["size"], arguments = out.shape, arguments[:place]
    elif out.shape != (tuple(size) if hasattr(size, "__iter__") else (size,)):
        raise argument_error(ValueError, name, out.shape, f"shape {size}, the size")
    keywords.setdefault("dtype", out.dtype)
    if keywords.get("generator") is None:
        keywords.setdefault("device", out.device)
    out[...] = function(*arguments, **keywords)
    return out


def scattered(reduce, function, /, x, axis, index, source):
    """``reduce=`` of `scatter`: "add" or "multiply" elements in place of writing them.

    >>> import gputensor as gt
    >>> x, index = gt.ones(2, device="host"), gt.asarray([0, 0], device="host")
    >>> gt.scatter(x, 0, index, 3, reduce="add").tolist()
    [7.0, 1.0]
    """
    if reduce is None:
        return function(x, axis, index, source)
    if reduce not in ("add", "multiply"):
        raise argument_error(ValueError, "scatter: reduce", reduce, "'add', 'multiply' or None")
    if not isinstance(source, Tensor):
        shape = tensor_argument(index, "scatter").shape
        source = full(shape, source, tensor_argument(x, "scatter").dtype, device=x.device)
    if reduce == "add":
        return scatter_add(x, axis, index, source)
    return scatter_reduce(x, axis, index, source, "prod")


def in_int32(is_narrow, function, /, *arguments, **keywords):
    """``out_int32=`` of positions: int32 in place of int64."""
    found = function(*arguments, **keywords)
    return astype(found, int32) if is_narrow else found


def in_place(is_in_place, function, /, x, *arguments, **keywords):
    """``inplace=`` of activations: the result is written to `x`, which is returned.

    >>> import gputensor as gt
    >>> x = gt.asarray([-1.0, 2.0], device="host")
    >>> gt.leaky_relu(x, 0.5, inplace=True) is x, x.tolist()
    (True, [-0.5, 2.0])
    """
    result = function(x, *arguments, **keywords)
    if not is_in_place:
        return result
    written_argument(x, _name(function))
    if not np.can_cast(result.dtype, x.dtype, "same_kind"):
        got, rule = Described(x.dtype.name), f"a dtype that holds {result.dtype.name}"
        raise argument_error(TypeError, f"{_name(function)}: dtype of x", got, rule)
    x[...] = result
    return x


def without_gradient(requires_grad, function, /, *arguments, **keywords):
    """``requires_grad=`` of new tensors: False, as there is no automatic differentiation."""
    if requires_grad:
        rule = "False: there is no automatic differentiation"
        raise argument_error(ValueError, f"{_name(function)}: requires_grad", requires_grad, rule)
    return function(*arguments, **keywords)


def over_last_extents(shape, function, /, x, **keywords):
    """``normalized_shape=`` of norms: the extents of the last axes."""
    return function(x, shape, **keywords)


def with_spacing(spacing, function, /, x, **keywords):
    """``spacing=`` of `gradient`: one value for all axes, or a list of one for each."""
    return function(x, *(spacing if isinstance(spacing, (list, tuple)) else (spacing,)), **keywords)


def of_matrices_along(axes, function, /, x, *arguments, keepdims=False, **keywords):
    """``dim=`` of `matrix_norm`: the axes of rows and columns."""
    found = function(moveaxis(x, tuple(axes), (-2, -1)), *arguments, keepdims=keepdims, **keywords)
    return moveaxis(found, (-2, -1), tuple(axes)) if keepdims else found


def on_either_side(is_left, function, /, x1, x2):
    """``left=`` of `solve`: with False it solves ``x @ x1 == x2``.

    >>> import gputensor as gt
    >>> a, b = (gt.asarray(one, device="host") for one in ([[1.0, 1], [0, 1]], [[1.0, 2]]))
    >>> gt.linalg.solve(a, b, left=False).tolist()
    [[1.0, 1.0]]
    """
    if is_left:
        return function(x1, x2)
    return function(x1.mT, x2) if x2.ndim == 1 else function(x1.mT, x2.mT).mT


def only_pivoted(is_pivoted, function, /, *arguments, **keywords):
    """``pivot=`` of factors: True."""
    if not is_pivoted:
        raise argument_error(ValueError, f"{_name(function)}: pivot", is_pivoted, "True")
    return function(*arguments, **keywords)


def in_dtype(dtype, function, /, x, *arguments, **keywords):
    """``dtype=`` of a covariance: the dtype that it is computed and returned in."""
    if dtype is None:
        return function(x, *arguments, **keywords)
    return astype(function(astype(x, dtype, copy=False), *arguments, **keywords), dtype, copy=False)


def of_operands_in(dtype, function, /, x1, x2, **keywords):
    """``dtype=`` of a product: the dtype to which its operands are converted.

    >>> import gputensor as gt
    >>> x = gt.asarray([200], "uint8", device="host")
    >>> gt.matmul(x, x, dtype="int32").item()
    40000
    """
    if dtype is not None:
        x1, x2 = (astype(one, dtype, copy=False) if isinstance(one, Tensor) else one
                  for one in (x1, x2))  # fmt: skip
    return function(x1, x2, **keywords)


def _moved_in(mode, index, extent, name):
    if mode == "clip":
        return fn.clip(index, 0, extent - 1)
    if mode == "wrap":
        return fn.remainder(index, extent)
    if mode != "raise":
        raise argument_error(ValueError, f"{name}: mode", mode, "raise, wrap or clip")
    return index


def within_extent(mode, function, /, *arguments, **keywords):
    """``mode=`` of indices out of range: "raise", "wrap" or "clip".

    >>> import gputensor as gt
    >>> x = gt.asarray([5, 6, 7], device="host")
    >>> gt.take(x, [-1, 3], mode="wrap").tolist(), gt.take(x, [-1, 3], mode="clip").tolist()
    ([7, 5], [5, 7])
    """
    name = _name(function)
    first, second, *rest = arguments
    if name == "choose":
        moved = _moved_in(mode, tensor_argument(first, name), len(second), name)
        return function(moved, second, *rest, **keywords)
    if name == "ravel_multi_index":
        positions = list_argument(f"{name}: positions", first)
        extents = list_argument(f"{name}: shape", second)
        modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
        if not len(modes) == len(positions) == len(extents):
            return function(positions, extents, *rest, **keywords)  # names the mistake
        first = next((one for one in positions if isinstance(one, Tensor)), None)
        positions = [asarray(one, device=None if first is None else first.device)
                     if isinstance(one, (list, tuple, int, np.integer))
                     else tensor_argument(one, name) for one in positions]  # fmt: skip
        moved = [_moved_in(one, index, extent, name)
                 for one, index, extent in zip(modes, positions, extents, strict=True)]  # fmt: skip
        return function(moved, extents, *rest, **keywords)
    axis = keywords.get("axis", rest[0] if name == "take" and rest else None)
    if axis is not None:
        axis = axis_argument(axis, tensor_argument(first, name).ndim or 1, name)
    extent = tensor_argument(first, name).size if axis is None else (first.shape or (1,))[axis]
    if not isinstance(second, Tensor):
        second = asarray(second, device=first.device)
        second = second if second.size else astype(second, int)
    return function(first, _moved_in(mode, second, extent, name), *rest, **keywords)


def as_open_grid(sparse, function, /, dimensions, *arguments, **keywords):
    """``sparse=`` of `indices`: a tuple of vectors along their axes, which make up the grid."""
    if not sparse:
        return function(dimensions, *arguments, **keywords)
    lines = []
    for axis, extent in enumerate(dimensions):
        line = function((extent,), *arguments, **keywords)
        shape = [1] * len(dimensions)
        shape[axis] = extent
        lines.append(reshape(line, tuple(shape)))
    return tuple(lines)


def along_new_axis(axis, function, /, *arguments, **keywords):
    """``axis=`` of evenly spaced values between tensors: the position of the new axis."""
    result = function(*arguments, **keywords)
    if isinstance(result, tuple):
        return moveaxis(result[0], 0, axis), result[1]
    return moveaxis(result, 0, axis)


def along_axis_of_first(axis, function, /, x1, *arguments, **keywords):
    """``axisa=`` of a cross product: the vectors of `x1` are along that axis, without `axis`."""
    if keywords.get("axis") is not None:
        return function(x1, *arguments, **keywords)
    return function(moveaxis(x1, axis, -1), *arguments, **keywords)


def along_axis_of_second(axis, function, /, x1, x2, **keywords):
    """``axisb=`` of a cross product: the vectors of `x2` are along that axis, without `axis`."""
    if keywords.get("axis") is not None:
        return function(x1, x2, **keywords)
    return function(x1, moveaxis(x2, axis, -1), **keywords)


def along_axis_of_result(axis, function, /, *arguments, **keywords):
    """``axisc=`` of a cross product: those of the result are along that axis, without `axis`."""
    if keywords.get("axis") is not None:
        return function(*arguments, **keywords)
    return moveaxis(function(*arguments, **keywords), -1, axis)
