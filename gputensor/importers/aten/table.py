"""The table of ATen operators that torch.export writes: a function of tensors for each name.

Functions take PyTorch's arguments in PyTorch's order. The overloads of a name share one function.
An in-place form, whose name ends in `_`, writes the result of the plain form.
"""

from gputensor.importers.public_functions import gt

__all__ = ["MAKERS", "aten", "axes_of", "dtype_of", "find", "operands"]

_TABLE: dict = {}
#: Functions that take the device as a keyword argument.
MAKERS: set = set()


def aten(names, *, makes=False):
    """Register a function for one or more names, separated by spaces.

    With `makes`, the function takes the device of its result.
    """

    def register(function):
        for name in names.split():
            _TABLE[name] = function
        if makes:
            MAKERS.add(function)
        return function

    return register


def find(name):
    """Return the function for an ATen name, or None."""
    for prefix in ("special_", "_unsafe_", ""):
        plain = name.removeprefix(prefix)
        found = _TABLE.get(plain) or _TABLE.get(plain.removesuffix("_copy"))
        if found is not None:
            return found
    plain = _TABLE.get(name[:-1]) if name.endswith("_") and not name.endswith("__") else None
    if plain is None:
        return None

    def in_place(x, *args, **kwargs):
        x[...] = plain(x, *args, **kwargs)
        return x

    return in_place


def dtype_of(dtype):
    """Return the library's name for a torch dtype, which prints as `torch.float16`."""
    name = str(dtype).rpartition(".")[2]
    return {"bool": "bool", "float8_e4m3fn": "float8_e4m3"}.get(name, name)


def axes_of(dims):
    """Return PyTorch's `dim` as an axis, a tuple of axes, or None for all axes."""
    if isinstance(dims, (list, tuple)):
        return tuple(dims) or None
    return dims


def operands(values):
    """Return the operands of an element-wise call in PyTorch's common dtype.

    There a tensor without axes does not widen the dtype of one with axes, unless it is of a
    higher kind: int next to bool, float next to int, complex next to float.
    """
    tensors = [one for one in values if isinstance(one, gt.Tensor)]
    wide = [one.dtype for one in tensors if one.ndim]
    if not wide or len(wide) == len(tensors):
        return values
    dtype = gt.result_type(*wide)
    return [
        one.astype(dtype, copy=False)
        if isinstance(one, gt.Tensor) and not one.ndim and _rank(one.dtype) <= _rank(dtype)
        else one
        for one in values
    ]


def _rank(dtype):
    kinds = "bool", "integral", "real floating", "complex floating"
    return next(i for i, kind in enumerate(kinds) if gt.isdtype(dtype, kind))
