"""NumPy's ``casting=`` and ``order=`` of element-wise functions, for all but their usual values.

The rules of conversions are NumPy's, except that "safe" means this library's promotion, in which
an integer may become a float of any width.
"""

import numpy as np

from gputensor._arrays.dtypes import code_of
from gputensor._arrays.promotion import can_cast, is_same_kind
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, written_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import tensors
from gputensor.tensor.manipulation import permute_dims, reshape
from gputensor.tensor.manipulation.axes import memory_axes

__all__ = ["CASTINGS", "allows", "check_castings", "laid_out"]

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def allows(casting, source, target):
    """Return whether a rule of conversions lets a dtype become another one.

    >>> allows("safe", "int64", "float32"), allows("same_kind", "float32", "int64")
    (True, False)
    """
    if casting == "safe":
        return can_cast(source, target)
    source, target = code_of(source), code_of(target)
    if casting in ("no", "equiv"):
        return source == target
    return casting == "unsafe" or is_same_kind(source, target)


def check_castings(name, casting, sources, target):
    """Check a rule of conversions: ValueError for an unknown one, TypeError if it is broken."""
    if casting not in CASTINGS:
        raise argument_error(ValueError, f"{name}: casting", casting, ", ".join(CASTINGS))
    for one in sources:
        if not allows(casting, one.dtype, target):
            rule = f"{np.dtype(target).name}, or one that becomes it by casting={casting!r}"
            raise argument_error(TypeError, f"{name}: dtype", Described(one.dtype.name), rule)


def _axes(order, given, ndim):
    """Return the axes of a result in the order of its memory; None: row-major."""
    axes = list(reversed(range(ndim)))
    full = [one for one in given if one.ndim == ndim]
    if ndim < 2 or order in (None, "C"):
        return None
    if order == "A":
        is_turned = all(permute_dims(one, axes).is_contiguous for one in full)
        return axes if is_turned and not all(one.is_contiguous for one in full) else None
    if order == "K":
        axes = memory_axes(full[0])
        return None if axes == sorted(axes) else axes
    return axes


def _called(function, arguments, options, axes):
    """Call the function with the axes of its operands in another order, and turn it back."""
    if axes is None:
        return function(*arguments, **options)

    def turned(one):
        if not isinstance(one, Tensor):
            return one
        return permute_dims(reshape(one, (1,) * (len(axes) - one.ndim) + one.shape), axes)

    options = {key: turned(value) for key, value in options.items()}
    results = function(*map(turned, arguments), **options)
    back = sorted(range(len(axes)), key=axes.__getitem__)
    if isinstance(results, tuple):
        return tuple(permute_dims(one, back) for one in results)
    return permute_dims(results, back)


def _check_written(name, result, out, casting):
    written_argument(out, name)
    if out.shape != result.shape:
        raise argument_error(ValueError, f"{name}: out", out.shape, f"shape {result.shape}")
    if not allows(casting, result.dtype, out.dtype):
        rule = f"one that {result.dtype.name} becomes by casting={casting!r}"
        raise argument_error(TypeError, f"{name}: dtype of out", Described(out.dtype.name), rule)


def _written(result, out, mask):
    value = astype(result, out.dtype, copy=False)
    out[...] = value if mask is True else fn.where(mask, value, out)
    return out


def laid_out(function, arguments, out, mask, dtype, order, casting):
    """Call an element-wise function with ``order`` and ``casting``.

    >>> import gputensor as gt
    >>> x = gt.ones((2, 3), device="host")
    >>> gt.add(x, 1, order="F").strides
    (4, 8)
    """
    name = function.__name__
    known = order.upper() if isinstance(order, str) else order
    if known not in ("C", "F", "A", "K", None):
        raise argument_error(ValueError, f"{name}: order", order, "C, F, A or K")
    if any(isinstance(one, (list, tuple)) for one in arguments):
        arguments = tuple(tensors(arguments))
    given = [one for one in arguments if isinstance(one, Tensor)]
    options = {} if dtype is None else {"dtype": dtype}
    if casting is not None:
        target = dtype if dtype is not None and np.dtype(dtype).kind != "b" else None
        if target is None and given and casting in ("no", "equiv"):
            target = given[0].dtype
        check_castings(name, casting, given if target is not None else (), target)
    if not given or (out is not None and casting in (None, "same_kind")):
        return function(*arguments, out=out, where=mask, **options)
    if out is None and mask is not True:
        options["where"] = mask
    masks = [mask] if isinstance(mask, Tensor) else []
    ndim = max(one.ndim for one in (*given, *masks))
    axes = _axes(known, given, ndim) if out is None else None
    found = _called(function, arguments, options, axes)
    results = found if isinstance(found, tuple) else (found,)
    if casting in ("no", "equiv") and given[0].dtype.kind in "biu":
        check_castings(
            name,
            casting,
            given[:1],
            next((one.dtype for one in results if one.dtype.kind in "fV"), given[0].dtype),
        )
    if out is None:
        return found
    outs = out if isinstance(out, tuple) else (out,)
    if len(outs) != len(results):
        raise argument_error(TypeError, f"{name}: out", out, f"{len(results)} tensors")
    pairs = list(zip(results, outs, strict=True))
    for one, to in pairs:
        if to is not None:
            _check_written(name, one, to, casting)
    made = [one if to is None else _written(one, to, mask) for one, to in pairs]
    return tuple(made) if isinstance(found, tuple) else made[0]
