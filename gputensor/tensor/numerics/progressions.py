"""Geometric progressions: `geomspace`, between its ends, and `logspace`, between exponents.

Values are computed in float64 or complex128 and rounded once.
"""

import numpy as np

from gputensor._arrays.dtypes import complex128, float32, float64
from gputensor._arrays.promotion import result_type
from gputensor.errors import argument_error
from gputensor.streams.queue import Device
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import expand_dims, linspace

__all__ = ["geomspace", "logspace"]


def _operands(name, values, device):
    """Return named values as tensors of float64 or complex128, and the dtype of their results."""
    for title, one in values.items():
        if not isinstance(one, (Tensor, list, tuple, np.generic, int, float, complex)):
            raise argument_error(TypeError, f"{name}: {title}", one, "a number or a Tensor")
    numbers = (bool, int, float, complex, np.generic)
    tensors = [one for one in values.values() if isinstance(one, Tensor)]
    device = device if device is not None else tensors[0].device if tensors else Device()
    made = [one if isinstance(one, (Tensor, *numbers)) else asarray(one, device=device)
            for one in values.values()]  # fmt: skip
    common = result_type(*made, 1.0)
    wide = complex128 if common.kind == "c" else float64
    # Converting numbers and lists directly keeps their digits.
    return [astype(one, wide, copy=False) if isinstance(one, Tensor)
            else asarray(one, wide, device=device) for one in values.values()], common  # fmt: skip


def logspace(start, stop, num=50, endpoint=True, base=10.0, *, dtype=None, device=None):
    """Return `num` values from ``base**start`` to ``base**stop`` with a constant ratio.

    Parameters
    ----------
    start, stop, base : number, list or Tensor
        Several of them are broadcast; the values are along a new first axis.
    num : int
        The number of values, 0 or more.
    endpoint : bool
        Whether the last value is ``base**stop``.
    dtype : dtype, optional
        Default: float32, for complex numbers complex64; that of the tensors.

    >>> logspace(0, 2, 3, device="host").tolist()
    [1.0, 10.0, 100.0]
    >>> logspace(0, 2, 3, base=[2, 3], device="host").tolist()
    [[1.0, 1.0], [2.0, 3.0], [4.0, 9.0]]
    """
    if all(type(one) in (int, float) for one in (start, stop, base)):
        powers = linspace(start, stop, num, endpoint, dtype=float64, device=device)
        return astype(fn.pow(float(base), powers), float32 if dtype is None else dtype, copy=False)
    given = {"start": start, "stop": stop, "base": base}
    (start, stop, base), common = _operands("logspace", given, device)
    ndim = len(np.broadcast_shapes(start.shape, stop.shape, base.shape))
    start, stop, base = (_with_ndim(one, ndim) for one in (start, stop, base))
    powers = linspace(start, stop, num, endpoint, device=device)
    values = fn.pow(expand_dims(base, axis=0), powers)
    return astype(values, common if dtype is None else dtype, copy=False)


def _have_ratio(library, first, last, is_complex):
    """Return whether progressions between the ends exist; `library` computes with them."""
    is_zero = library.logical_or(library.equal(first, 0), library.equal(last, 0))
    if not is_complex:
        is_other_sign = library.not_equal(library.less(first, 0), library.less(last, 0))
        is_zero = library.logical_or(is_zero, is_other_sign)
    return not is_zero.any()


def _with_ndim(x, ndim):
    return x.reshape((1,) * (ndim - x.ndim) + x.shape)


def geomspace(start, stop, num=50, endpoint=True, *, dtype=None, device=None):
    """Return `num` values from `start` to `stop` with a constant ratio.

    Between complex numbers they lie on a logarithmic spiral, which takes the shorter way around 0.

    Parameters
    ----------
    start, stop : number, list or Tensor
        Not 0; real ones have the same sign. Between several the values are along a new first axis.
    num : int
        The number of values, 0 or more.
    endpoint : bool
        Whether the last value is `stop`.
    dtype : dtype, optional
        Default: float32, for complex numbers complex64; that of the tensors.

    Raises
    ------
    ValueError
        If an end is 0, or if the signs of real ends differ. (Of tensors, this waits.)

    >>> geomspace(1, 8, 4, device="host").tolist()
    [1.0, 2.0, 4.0, 8.0]
    >>> geomspace(-1, -100, 3, device="host").tolist()
    [-1.0, -10.0, -100.0]
    >>> geomspace(1, -1, 3, dtype=complex, device="host").round(6).tolist()
    [(1+0j), 1j, (-1+0j)]
    """
    given = {"start": start, "stop": stop}
    ends, common = _operands("geomspace", given, device)
    if dtype is not None:
        dtype = np.dtype(dtype)
    if dtype is not None and dtype.kind == "c" and common.kind != "c":
        ends = [astype(one, complex128) for one in ends]
    first, last = ends
    # Turned so that it starts on the positive real axis, the progression has no negative parts.
    turn = fn.sign(first)
    is_complex = turn.dtype.kind == "c"
    if any(isinstance(one, Tensor) for one in (start, stop)):
        are_right = _have_ratio(fn, first, last, is_complex)
    else:  # a traced or captured call does not wait
        are_right = _have_ratio(np, *map(np.asarray, (start, stop)), is_complex)
    if not are_right:
        rule = "ends that are not 0, and real ones of the same sign"
        raise argument_error(ValueError, "geomspace: start, stop", (start, stop), rule)
    if is_complex:
        spiral = linspace(fn.log(fn.abs(first)), fn.log(fn.divide(last, turn)), num, endpoint)
        values = fn.multiply(fn.exp(spiral), turn)
    else:
        lines = linspace(fn.log2(fn.abs(first)), fn.log2(fn.abs(last)), num, endpoint)
        values = fn.multiply(fn.pow(2.0, lines), turn)
    if num:
        values[0] = first
    if num > 1 and endpoint:
        values[-1] = last
    if dtype is not None and dtype.kind in "iu":  # a power that is a hair below its integer
        nearest = fn.round(values)
        is_near = fn.abs(values - nearest) <= fn.abs(values) * 1e-14
        values = fn.where(is_near, nearest, values)
    return astype(values, common if dtype is None else dtype, copy=False)
