"""The printed form of a tensor: its values as NumPy prints them, its device and its dtype.

Only the printed values are copied to the host; the corners of a large tensor are first gathered on
the device.
"""

import contextlib

import numpy as np

from gputensor._arrays.dtypes import bfloat16
from gputensor.errors import Described, argument_error, int_argument
from gputensor.streams.order import tracer
from gputensor.tensor.core import device_number_of
from gputensor.tensor.transfer import numpy

__all__ = [
    "array_repr", "array_str", "format_number", "get_printoptions", "printoptions", "represent",
    "set_printoptions", "text",
]  # fmt: skip

# The options that were set; NumPy's options apply to the others. `edgeitems` (the number of values
# at each end of a shortened axis) and `threshold` (the number of elements from which axes are
# shortened) are always ours, because they decide which values are copied.
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
    """Return the parts of a large tensor that are printed: both edges of long axes, and one value.

    That value, in the middle of a shortened axis, represents the omitted ones; NumPy prints dots.
    """
    parts, edge = tensor, _chosen["edgeitems"]
    for axis, extent in enumerate(tensor.shape):
        if extent > 2 * edge + 1:
            index = [*range(edge + 1), *range(extent - edge, extent)]
            parts = parts[(slice(None),) * axis + (index,)]
    return numpy(parts)


def _few_digits(values):
    """Return bfloat16 values as float64: for each the number with the fewest digits that tell it.

    NumPy writes a float64 with no more digits than that. With a fixed number of digits, the values
    themselves are returned.
    """
    exact = values.astype(np.float32).astype(np.float64).reshape(-1)
    if (np.get_printoptions() | _chosen)["floatmode"] == "fixed":
        return exact.reshape(values.shape)
    found, is_open = exact.copy(), np.isfinite(exact)
    for digits in range(4):  # four digits tell all bfloat16 values apart
        shorter = np.array([float(f"{one:.{digits}e}") for one in exact[is_open]])
        with np.errstate(over="ignore"):
            is_same = shorter.astype(values.dtype).astype(np.float64) == exact[is_open]
        places = np.flatnonzero(is_open)[is_same]
        found[places], is_open[places] = shorter[is_same], False
    return found.reshape(values.shape)


def _values(tensor, **options):
    """Return the values as NumPy prints them; waits for them."""
    trace = tracer()
    if trace is not None and trace.number == device_number_of(tensor):
        trace.refuse_value("print")
    is_large = _is_large(tensor)
    values = _corners(tensor) if is_large else numpy(tensor)
    if tensor.dtype.kind not in "biufc":
        values = _few_digits(values) if tensor.dtype == bfloat16 else values.astype(np.float32)
    if not options and values.ndim == 0:
        return str(values[()])  # with all digits, as NumPy
    with np.printoptions(**_chosen | {"threshold": 0 if is_large else _chosen["threshold"]}):
        return np.array2string(values, **options)


def _is_large(tensor):
    return tensor.size > _chosen["threshold"]


def represent(tensor):
    """Return ``repr(tensor)``; waits for the values.

    >>> import gputensor as gt
    >>> gt.asarray([1, 2], device="host")
    tensor([1, 2], device='host', dtype=int64)
    """
    values = _values(tensor, separator=", ", prefix="tensor(")
    shape = f", shape={tensor.shape}" if _is_large(tensor) or tensor.size == 0 else ""
    return f"tensor({values}{shape}, device='{tensor.device}', dtype={tensor.dtype.name})"


def text(tensor):
    """Return ``str(tensor)``, the values as NumPy's ``str`` writes them; waits for them.

    >>> import gputensor as gt
    >>> print(gt.asarray([1, 2], device="host"))
    [1 2]
    """
    return _values(tensor)


def _options(options, name):
    """Return NumPy's options for its own names and for PyTorch's `profile` and `sci_mode`."""
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
    try:
        with np.printoptions(**found):  # NumPy checks them
            return found
    except (TypeError, ValueError) as error:
        got = Described(f"what NumPy refuses ({error})")
        raise argument_error(type(error), f"{name}: options", got, "those of NumPy") from None


def set_printoptions(precision=None, **options):
    """Set how tensors are printed; options that are not given keep their values.

    Parameters
    ----------
    precision : int, optional
        The number of digits of floats.
    threshold, edgeitems, linewidth, suppress, nanstr, infstr, sign, floatmode : optional
        NumPy's options: the number of elements that are printed in full, the number at each end of
        a longer axis, the width of a line, whether small numbers are printed without exponents, and
        others.
    profile, sci_mode : optional
        PyTorch's options: "default", "short" or "full"; whether numbers have exponents.

    Notes
    -----
    NumPy's own options apply to everything that was never set here.

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
    """Set how tensors are printed inside a ``with`` block; see :func:`set_printoptions`."""
    kept = dict(_chosen)
    _chosen.update(_options(options, "printoptions"))
    try:
        yield get_printoptions()
    finally:
        _chosen.clear()
        _chosen.update(kept)


def format_number(tensor, spec, /):
    """Return ``format(tensor, spec)``: with a spec, the only element as a Python number. Waits.

    >>> import gputensor as gt
    >>> f"{gt.asarray(1.5, device='host'):.3f}"
    '1.500'
    """
    if not spec:
        return str(tensor)
    if tensor.size != 1:
        got = Described(f"a tensor of shape {tensor.shape}")
        raise argument_error(TypeError, "format", got, f"one element to format as {spec!r}")
    try:
        return format(tensor.item(), spec)
    except TypeError:
        raise argument_error(TypeError, "format: spec", spec, "a str") from None
    except ValueError:
        kind = Described(f"{spec!r} for {tensor.dtype.name}")
        raise argument_error(ValueError, "format: spec", kind, "one of its kind") from None


def array_repr(x, /, max_line_width=None, precision=None, suppress_small=None):
    """Return ``repr(x)``; options that are not None replace those of ``get_printoptions``.

    >>> import gputensor as gt
    >>> array_repr(gt.ones(1, device="host"))
    "tensor([1.], device='host', dtype=float32)"
    """
    with _shown(max_line_width, precision, suppress_small):
        return repr(x)


def _shown(width, precision, suppress):
    for name, value in (("max_line_width", width), ("precision", precision)):
        if value is not None and not 0 <= int_argument(f"array_str: {name}", value) < 1 << 31:
            raise argument_error(ValueError, f"array_str: {name}", value, "0 or more")
    given = {"linewidth": width, "precision": precision, "suppress": suppress}
    return printoptions(**{name: value for name, value in given.items() if value is not None})


def array_str(x, /, max_line_width=None, precision=None, suppress_small=None):
    """Return ``str(x)``; options that are not None replace those of ``get_printoptions``.

    >>> import gputensor as gt
    >>> array_str(gt.ones(1, device="host")) == str(gt.ones(1, device="host"))
    True
    """
    with _shown(max_line_width, precision, suppress_small):
        return str(x)
