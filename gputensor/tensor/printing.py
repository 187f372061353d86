"""How a tensor shows itself: its values as NumPy prints them, its device and its dtype.

Printing copies to the host only what it shows: of a large tensor the corners, which are gathered
on the device first.
"""

import contextlib

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.streams.order import tracer
from gputensor.tensor.core import device_number_of
from gputensor.tensor.transfer import numpy

__all__ = [
    "format_number", "get_printoptions", "printoptions", "represent", "set_printoptions",
]  # fmt: skip

# What users chose; NumPy's own choices hold for what is not here. Values at each end of an axis
# that is cut, and elements above which axes are cut, are ours: only what is shown is copied.
_chosen = {"edgeitems": 3, "threshold": 1000}
_OF_NUMPY = (
    "precision", "threshold", "edgeitems", "linewidth", "suppress", "nanstr", "infstr", "sign",
    "floatmode",
)  # fmt: skip
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": 1 << 62, "edgeitems": 3, "linewidth": 80},
}


def _corners(tensor):
    """The parts of a large tensor that are printed: of a long axis both edges and one value.

    The value in the middle of a cut axis stands for what is left out; NumPy replaces it by dots.
    """
    parts, edge = tensor, _chosen["edgeitems"]
    for axis, extent in enumerate(tensor.shape):
        if extent > 2 * edge + 1:
            index = [*range(edge + 1), *range(extent - edge, extent)]
            parts = parts[(slice(None),) * axis + (index,)]
    return numpy(parts)


def represent(tensor):
    """Return ``repr(tensor)``; waits for the values.

    >>> import gputensor as gt
    >>> gt.asarray([1, 2], device="host")
    tensor([1, 2], device='host', dtype=int64)
    """
    trace = tracer()
    if trace is not None and trace.number == device_number_of(tensor):
        trace.refuse_value("print")
    is_large = tensor.size > _chosen["threshold"]
    values = _corners(tensor) if is_large else numpy(tensor)
    kind = tensor.dtype.kind
    if kind not in "biufc" or tensor.dtype.itemsize == 2 and kind == "f":
        values = values.astype(np.float32)
    with np.printoptions(**_chosen | {"threshold": 0 if is_large else _chosen["threshold"]}):
        text = np.array2string(values, separator=", ", prefix="tensor(", formatter=None)
    shape = f", shape={tensor.shape}" if is_large or tensor.size == 0 else ""
    return f"tensor({text}{shape}, device='{tensor.device}', dtype={tensor.dtype.name})"


def _options(options, name):
    """NumPy's options of what is given: its own names, and PyTorch's `profile` and `sci_mode`."""
    found = {}
    profile = options.pop("profile", None)
    if profile is not None:
        if profile not in _PROFILES:
            raise argument_error(ValueError, f"{name}: profile", profile, ", ".join(_PROFILES))
        found |= _PROFILES[profile]
    is_scientific = options.pop("sci_mode", None)
    if is_scientific is not None:
        found["suppress"] = not is_scientific
    unknown = options.keys() - set(_OF_NUMPY)
    if unknown:
        got = Described(", ".join(sorted(unknown)))
        raise argument_error(TypeError, f"{name}: keywords", got, ", ".join(_OF_NUMPY))
    found |= {key: value for key, value in options.items() if value is not None}
    with np.printoptions(**found):  # NumPy checks them
        return found


def set_printoptions(precision=None, **options):
    """Choose how tensors are printed; what is not given stays.

    Parameters
    ----------
    precision : int, optional
        Digits of floats.
    threshold, edgeitems, linewidth, suppress, nanstr, infstr, sign, floatmode : optional
        NumPy's: how many elements are printed in full, how many at each end of a longer axis, the
        width of a line, whether small numbers are written without exponents, and others.
    profile, sci_mode : optional
        PyTorch's: "default", "short" or "full"; whether numbers have exponents.

    Notes
    -----
    NumPy's own options hold for what was never chosen here.

    >>> import gputensor as gt
    >>> with gt.printoptions(precision=2):
    ...     gt.asarray([3.14159], device="host")
    tensor([3.14], device='host', dtype=float32)
    """
    _chosen.update(_options({"precision": precision, **options}, "set_printoptions"))


def get_printoptions():
    """Return the options of :func:`set_printoptions` as a dict, with NumPy's names.

    >>> get_printoptions()["edgeitems"]
    3
    """
    known = np.get_printoptions()
    return {name: known[name] for name in _OF_NUMPY} | _chosen


@contextlib.contextmanager
def printoptions(**options):
    """Choose how tensors are printed inside a ``with`` block; see :func:`set_printoptions`."""
    kept = dict(_chosen)
    _chosen.update(_options(options, "printoptions"))
    try:
        yield get_printoptions()
    finally:
        _chosen.clear()
        _chosen.update(kept)


def format_number(tensor, spec, /):
    """Return ``format(tensor, spec)``: of one element as that of a Python number; waits for it.

    >>> import gputensor as gt
    >>> f"{gt.asarray(1.5, device='host'):.3f}"
    '1.500'
    """
    if not spec:
        return str(tensor)
    if tensor.size != 1:
        got = Described(f"a tensor of shape {tensor.shape}")
        raise argument_error(TypeError, "format", got, f"one element to show as {spec!r}")
    return format(tensor.item(), spec)
