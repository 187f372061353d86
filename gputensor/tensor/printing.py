"""How a tensor shows itself: its values as NumPy prints them, its device and its dtype.

Printing copies to the host only what it shows: of a large tensor the corners, which are gathered
on the device first.
"""

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.streams.order import tracer
from gputensor.tensor.core import device_number_of
from gputensor.tensor.transfer import numpy

__all__ = ["format_number", "represent"]

EDGE = 3  # values shown at each end of an axis that is cut
THRESHOLD = 1000  # elements above which axes are cut


def _corners(tensor):
    """The parts of a large tensor that are printed, as an array with 2 * EDGE + 1 per long axis.

    The value in the middle of a cut axis stands for what is left out; NumPy replaces it by dots.
    """
    parts = tensor
    for axis, extent in enumerate(tensor.shape):
        if extent > 2 * EDGE + 1:
            index = [*range(EDGE + 1), *range(extent - EDGE, extent)]
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
    is_large = tensor.size > THRESHOLD
    values = _corners(tensor) if is_large else numpy(tensor)
    kind = tensor.dtype.kind
    if kind not in "biufc" or tensor.dtype.itemsize == 2 and kind == "f":
        values = values.astype(np.float32)
    text = np.array2string(
        values,
        separator=", ",
        prefix="tensor(",
        threshold=0 if is_large else THRESHOLD,
        edgeitems=EDGE,
        formatter=None,
    )
    shape = f", shape={tensor.shape}" if is_large or tensor.size == 0 else ""
    return f"tensor({text}{shape}, device='{tensor.device}', dtype={tensor.dtype.name})"


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
