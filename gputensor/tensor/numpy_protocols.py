"""NumPy's functions on tensors, such as ``np.add(t, t)`` and ``np.concatenate([t, t])``.

A function of NumPy calls the function of this library with the same name, on the device of its
tensors; if there is none, it raises. Nothing is copied implicitly: tensors are copied to the host
only by ``np.asarray(t)`` or ``t.numpy()``, and arrays beside tensors raise, as with operators.
Element-wise functions take ``dtype`` and ``casting`` as NumPy does; arguments that choose a layout
(``order``, ``subok``) have no meaning here and are accepted.
"""

import importlib

import numpy as np

from gputensor._arrays.dtypes import complex128, float64
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, may_share, tensor_argument
from gputensor.tensor.functions import NUMPY_NAMES, merged
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import PLAIN, beside
from gputensor.tensor.manipulation.joining import stack
from gputensor.tensor.numerics.group_reductions import extremes_at, joined_at
from gputensor.tensor.numerics.ufunc_folds import (
    FOLDED,
    accumulated,
    folded,
    in_turn,
    reduced_at,
)

__all__ = ["array_function", "array_ufunc", "ufunc_method"]

COPY = "np.asarray(t) copies a tensor to the host, gt.asarray(a) an array to the device"
#: Names of ufuncs that differ from those of this library's functions.
UFUNCS = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "power": "pow",
    "right_shift": "bitwise_right_shift", "true_divide": "divide", "mod": "remainder",
    "rint": "round",
}  # fmt: skip
#: Ufunc -> the function that its method `reduce` calls.
REDUCE = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "fmax": "nanmax",
    "fmin": "nanmin", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
ACCUMULATE = {
    "add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin",
}  # fmt: skip
#: The ufuncs whose order of evaluation does not matter.
ASSOCIATIVE = FOLDED | {"add", "multiply", "maximum", "minimum"}
#: Keywords without a meaning here, and their accepted values (None: any).
IGNORED = {
    "order": ("K", "A", "C", None),
    "subok": None,
    "like": None,
    "casting": ("same_kind", "unsafe"),
    "where": (True,),
    "overwrite_input": None,
}
#: Functions that take every `order`.
ORDERED = ("copy", "empty_like", "full_like", "ones_like", "ravel", "reshape", "zeros_like")
#: Functions that take every `casting`.
CAST = ("concatenate", "copyto", "hstack", "stack", "vstack")
#: Functions that take a tensor only by ``like=x``; their result is on its device.
CREATION = frozenset(
    "arange array asanyarray asarray ascontiguousarray asfortranarray empty eye full identity "
    "linspace ones zeros".split()
)  # fmt: skip
QUANTILES = ("quantile", "percentile", "nanquantile", "nanpercentile")
FILES = ("save", "savez", "savez_compressed", "savetxt")
#: Functions whose results are not tensors.
FACTS = {
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "iscomplexobj": lambda x: x.dtype.kind == "c",
    "isrealobj": lambda x: x.dtype.kind != "c",
    "array_repr": lambda arr, *rest, **options: _library("numpy").array_repr(arr, *rest, **options),
    "array_str": lambda a, *given, **options: _library("numpy").array_str(a, *given, **options),
    "array2string": lambda a, *_, **options: _library("numpy").array2string(a, **options),
    "may_share_memory": lambda a, b, max_work=None: _shared(a, b),
    "shares_memory": lambda a, b, max_work=None: _shared(a, b),
}


def _shared(a, b):
    """Whether two tensors, or an array and a tensor, may share memory."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return may_share(a, b)
    if not all(isinstance(one, np.ndarray) or str(one.device) == "host" for one in (a, b)):
        return False
    arrays = (one if isinstance(one, np.ndarray) else np.from_dlpack(one) for one in (a, b))
    return np.may_share_memory(*arrays)


def _library(part):
    name = {"numpy.linalg": "gputensor.linalg", "numpy.fft": "gputensor.fft"}.get(part)
    return importlib.import_module(name or "gputensor")


def _arguments_checked(name, values):
    for value in values:
        if isinstance(value, np.ndarray) and value.ndim:
            rule = f"tensors and numbers, on one device; {COPY}"
            raise argument_error(TypeError, f"np.{name}: argument", Described("an array"), rule)


def _keywords(name, given):
    """Return the keywords that have a meaning here; ValueError for a value that is not accepted."""
    kept = {}
    for key, value in given.items():
        is_option = name in {"order": ORDERED, "casting": CAST}.get(key, ())
        if key not in IGNORED or isinstance(value, Tensor) or is_option:
            kept[key] = value
        elif IGNORED[key] is not None and value not in IGNORED[key] and value is not np._NoValue:
            rule = f"none: tensors have no {key}; {COPY}"
            raise argument_error(ValueError, f"np.{name}: {key}", value, rule)
    return kept


def _no_counterpart(name):
    return argument_error(
        TypeError, f"np.{name}", Described("a Tensor"), f"arrays: gputensor has no {name}; {COPY}"
    )


def _at(name, target, indices, *values):
    """``np.add.at`` and others: combine with the elements at `indices`, which may repeat."""
    gt = _library("numpy")
    if name not in ASSOCIATIVE and name not in ("subtract", "divide"):
        raise _no_counterpart(f"{name}.at")
    tensor_argument(target, f"{name}.at")
    is_plain = type(indices) is Tensor and indices.dtype.kind in "iu" and target.ndim == 1
    if is_plain and name in ("add", "subtract"):
        places = indices
    else:
        places = gt.reshape(gt.arange(target.size, device=target.device), target.shape)[indices]
    (added,) = values
    added = gt.broadcast_to(astype(beside(added, target), target.dtype, copy=False), places.shape)
    x, places, added = (gt.reshape(one, -1) for one in (target, places, added))
    if x.dtype.kind == "b":
        name = {"add": "logical_or", "multiply": "logical_and"}.get(name, name)
    if name in ("maximum", "minimum"):
        found = extremes_at(x, places, added, name == "minimum")
    elif name in ("add", "subtract"):
        found = gt.index_add(x, 0, places, added if name == "add" else gt.subtract(0, added))
    elif name == "divide":
        # Products of narrow values have room in the widest dtype of their kind.
        wide = {"f": float64, "V": float64, "c": complex128}.get(x.dtype.kind, x.dtype)
        given, added = astype(x, wide, copy=False), astype(added, wide, copy=False)
        found = gt.divide(given, joined_at(gt.multiply, gt.ones_like(given), places, added))
        found = found if wide is x.dtype else astype(found, x.dtype, copy=False)
    else:
        found = joined_at(getattr(gt, UFUNCS.get(name, name)), x, places, added)
    if not np.can_cast(found.dtype, target.dtype, "same_kind"):
        got = Described(target.dtype.name)
        raise argument_error(TypeError, f"{name}.at: x", got, f"a dtype that holds {found.dtype}")
    target[...] = gt.reshape(found, target.shape)


def array_ufunc(x, ufunc, method, *inputs, **keywords):
    """Compute ``ufunc.method(*inputs)`` by the function of the same name; see the module.

    >>> import numpy as np
    >>> import gputensor as gt
    >>> np.add(gt.ones(2, device="host"), 1)
    tensor([2., 2.], device='host', dtype=float32)
    """
    name = ufunc.__name__
    # NumPy passes its scalars as arrays without axes in comparisons.
    inputs = [one[()] if type(one) is np.ndarray and one.ndim == 0 else one for one in inputs]
    # The second of these holds indices, which may be an array, as in ``x[indices]``.
    _arguments_checked(name, inputs[:1] if method in ("at", "reduceat") else inputs)
    casting = keywords.pop("casting", None) if method == "__call__" else None
    keywords = _keywords(name, keywords)
    gt = _library("numpy")
    dtype = keywords.pop("dtype", None)
    out = keywords.pop("out", None)
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if isinstance(out, np.ndarray):
        raise argument_error(TypeError, f"np.{name}: out", out, f"a Tensor; {COPY}")
    if method == "__call__":
        function = getattr(gt, UFUNCS.get(name, name), None)
        if function is None:
            raise _no_counterpart(name)
        if dtype is not None:
            keywords["dtype"] = dtype
        if dtype is not None or casting is not None:
            keywords["casting"] = casting or "same_kind"
        mask = keywords.pop("where", None)
        if mask is not None:
            return merged(function(*inputs, **keywords), out, mask)
        return function(*inputs, **keywords, **({} if out is None else {"out": out}))
    if method == "at":
        return _at(name, *inputs)
    if method == "outer":
        like = next((one for one in inputs if isinstance(one, Tensor)), None)
        if like is None and all(isinstance(one, PLAIN) for one in inputs):
            inputs = [asarray(one) for one in inputs]
            like = inputs[0]
        first, second = (beside(one, tensor_argument(like, f"{name}.outer")) for one in inputs)
        return array_ufunc(x, ufunc, "__call__", first.reshape((*first.shape, *[1] * second.ndim)),
                           second)  # fmt: skip
    options = keywords | {"dtype": dtype, "out": out}
    return _reduced(name, method, inputs, options)


def _reduced(name, method, inputs, options):
    """Compute ``reduce``, ``accumulate`` or ``reduceat`` of a ufunc."""
    gt = _library("numpy")
    array, *rest = inputs
    if isinstance(array, (list, tuple)):  # np.maximum.reduce([a, b, c])
        array = stack(array) if any(isinstance(one, Tensor) for one in array) else asarray(array)
    tensor_argument(array, f"{name}.{method}")
    places = ("indices",) if method == "reduceat" else ()
    given = zip((*places, "axis", "dtype", "out", "keepdims"), rest, strict=False)
    options = {"axis": 0, **dict(given), **options}
    kept = {key: value for key, value in options.items() if value is not None or key == "axis"}
    table = {"reduce": REDUCE, "accumulate": ACCUMULATE}.get(method, {})
    if name in table and not (name.startswith("logical") and "initial" in kept):
        if name not in ("add", "multiply") and "dtype" in kept:
            array = astype(array, kept.pop("dtype"), copy=False)
        result = getattr(gt, table[name])(array, **kept)
        return result.values if table[name] in ("cummax", "cummin") else result
    if name not in ASSOCIATIVE:
        if method == "reduceat" or "equal" in name or name in ("less", "greater"):
            raise _no_counterpart(f"{name}.{method}")
        return in_turn(name, method, getattr(gt, UFUNCS.get(name, name)), array, **kept)
    fold = {"reduce": folded, "accumulate": accumulated, "reduceat": reduced_at}[method]
    return fold(name, getattr(gt, UFUNCS.get(name, name)), array, **kept)


def ufunc_method(name, method, *inputs, **keywords):
    """Compute ``gt.NAME.method(*inputs)``, like the method of NumPy's ufunc.

    >>> import gputensor as gt
    >>> x = gt.zeros(3, device="host")
    >>> gt.add.at(x, gt.asarray([0, 0, 2], device="host"), 1)
    >>> x.tolist(), gt.multiply.outer(x, x)[0].tolist()
    ([2.0, 0.0, 1.0], [4.0, 0.0, 2.0])
    """
    ufunc = getattr(np, NUMPY_NAMES.get(name, name))
    return array_ufunc(None, ufunc, method, *inputs, **keywords)


def array_function(x, function, types, arguments, keywords):
    """Compute a function of NumPy by this library's function of that name; see the module.

    >>> import numpy as np
    >>> import gputensor as gt
    >>> np.concatenate([gt.zeros(1, device="host"), gt.ones(1, device="host")])
    tensor([0., 1.], device='host', dtype=float32)
    """
    if not all(issubclass(one, (Tensor, np.ndarray)) for one in types):
        return NotImplemented  # the other library may handle tensors
    name = function.__name__
    values = [*arguments, *keywords.values()]
    values += [one for value in values if isinstance(value, (list, tuple)) for one in value]
    if name not in CREATION and not name.endswith("_memory"):  # np.may_share_memory(array, x)
        # The host reads the fractions of a quantile, so they may be an array.
        _arguments_checked(name, values[:1] if name in QUANTILES else values)
    keywords = _keywords(name, keywords)
    if name in FACTS:
        return FACTS[name](*arguments, **keywords)
    if name == "size":
        axis = keywords.get("axis", arguments[1] if len(arguments) > 1 else None)
        return arguments[0].size if axis is None else arguments[0].shape[axis]
    if name in CREATION:  # np.zeros(3, like=x), np.asarray([1, 2], like=x)
        keywords.pop("copy", None)
        ndmin = keywords.pop("ndmin", 0)
        name = "asarray" if name in ("array", "asanyarray") else name
        keywords["device"] = x.device
        if ndmin:
            made = _library("numpy").asarray(*arguments, **keywords)
            return made.reshape((1,) * (ndmin - made.ndim) + made.shape)
    elif name.endswith("_like"):
        name, arguments, keywords = _made_like(name, arguments, keywords)
    elif function.__module__ == "numpy.fft":
        last = ("s", "axes", "norm") if name.endswith(("n", "2")) else ("n", "axis", "norm")
        keywords |= dict(zip(last, arguments[1:], strict=False))
        arguments = arguments[:1]
    dtype = keywords.pop("dtype", None) if name == "einsum" else None
    found = getattr(_library(function.__module__), UFUNCS.get(name, name), None)
    if name in FILES:
        rule = f"arrays; gputensor.{name} takes tensors; {COPY}"
        raise argument_error(TypeError, f"np.{name}", Described("a Tensor"), rule)
    if found is None:
        raise _no_counterpart(name)
    if not arguments and keywords:  # NumPy's names of first arguments are positional here
        first = next(iter(keywords))
        arguments = (keywords.pop(first),)
    result = found(*arguments, **keywords)
    return result if dtype is None else astype(result, dtype, copy=False)


def _made_like(name, arguments, keywords):
    """Turn ``zeros_like(x, ..., shape=S)`` into ``zeros(S, ...)`` on the device of x."""
    shape = keywords.pop("shape", None)
    if shape is None:
        return name, arguments, keywords
    like, *rest = arguments
    name = name[: -len("_like")]
    has_dtype = len(rest) > (1 if name == "full" else 0)
    keywords |= {"device": like.device}
    if not has_dtype:
        keywords["dtype"] = keywords.get("dtype") or like.dtype
    return name, (shape, *rest), keywords
