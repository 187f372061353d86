"""Weights as int8 or int4 with scales, made once by NumPy on the host, for `quantized_linear`.

Quantization is symmetric and rounds to nearest: a group of ``group_size`` neighbouring terms of a
feature shares one scale, its largest magnitude divided by 127 (int8) or 7 (int4).
"""

import operator

import numpy as np

from gputensor._arrays.dtypes import bfloat16, float16, float32
from gputensor.blas.host import int4_layout
from gputensor.blas.host.group_scales import in_groups
from gputensor.tensor.core import Tensor, refusal
from gputensor.tensor.interop import asarray

__all__ = ["pack_int4", "quantize_int4", "quantize_int8", "unpack_int4"]

_GROUP_SIZES = (32, 64, 128)


def _quantize(weight, group_size, largest, name):
    """Return integers ``[n, k]`` and scales ``[groups, n]``, as arrays."""
    if not isinstance(weight, Tensor):
        text = f"{name}: weight: got {type(weight).__name__}; expected a Tensor"
        raise refusal(text, weight)
    if weight.dtype not in (float16, bfloat16, float32):
        raise TypeError(
            f"{name}: weight: got {weight.dtype}; expected float16, bfloat16 or float32"
        )
    if weight.ndim != 2 or weight.shape[1] == 0:
        raise ValueError(f"{name}: weight: got shape {weight.shape}; expected (n, k) with k > 0")
    n, k = weight.shape
    if group_size is None:
        group_size = k
    elif group_size not in _GROUP_SIZES or k % group_size:
        raise ValueError(
            f"{name}: group_size: got {group_size}; expected None (all {k} terms) or one of "
            f"{_GROUP_SIZES} that divides them"
        )
    values = weight.numpy().astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"{name}: weight: got NaN or infinities; expected finite elements")
    found = in_groups(values, group_size, largest, dtype=weight.dtype)
    return found.integers, found.scales


def quantize_int8(weight, group_size=None):
    """Return weights as int8, and their scales.

    Parameters
    ----------
    weight : Tensor
        Of shape ``(n, k)``: float16, bfloat16 or float32.
    group_size : {None, 32, 64, 128}
        The number of neighbouring terms that share a scale; default: all.

    Returns
    -------
    (Tensor, Tensor)
        int8 of shape ``(n, k)``, and scales of shape ``(k // group_size, n)`` and the type of
        `weight`, on its device.

    Raises
    ------
    ValueError
        The shape or the group size is not allowed, or an element is not finite.
    TypeError
        `weight` is not a floating-point tensor of 16 or 32 bits.

    Examples
    --------
    >>> import gputensor as gt
    >>> w, scales = gt.quantize_int8(gt.asarray([[1.27, -0.5]], device="host"))
    >>> w.numpy(), scales.shape
    (array([[127, -50]], dtype=int8), (1, 1))
    """
    integers, scales = _quantize(weight, group_size, 127, "quantize_int8")
    return tuple(asarray(array, device=weight.device) for array in (integers, scales))


def quantize_int4(weight, group_size=None):
    """Return weights as packed int4, and their scales.

    Parameters
    ----------
    weight, group_size
        As in :func:`quantize_int8`.

    Returns
    -------
    (Tensor, Tensor)
        The integers packed by :func:`pack_int4`, and the scales.

    Examples
    --------
    >>> import gputensor as gt
    >>> w, scales = gt.quantize_int4(gt.ones((16, 128), device="host"), group_size=64)
    >>> w.shape, scales.shape
    ((1, 2, 512), (2, 16))
    """
    integers, scales = _quantize(weight, group_size, 7, "quantize_int4")
    packed = int4_layout.pack(integers)
    return tuple(asarray(array, device=weight.device) for array in (packed, scales))


def pack_int4(values):
    """Return integers from -8 to 7, packed into the layout that :func:`quantized_linear` reads.

    Parameters
    ----------
    values : Tensor
        int8 of shape ``(n, k)``.

    Returns
    -------
    Tensor
        uint8 of shape ``(ceil(n / 16), ceil(k / 64), 512)``, on the device of `values`.

    Raises
    ------
    ValueError
        A value does not fit 4 bits, or the shape does not have two dimensions.
    TypeError
        `values` is not an int8 tensor.

    Examples
    --------
    >>> import gputensor as gt
    >>> values = gt.asarray([[-8, 7, 3]], dtype=gt.int8, device="host")
    >>> gt.unpack_int4(gt.pack_int4(values), (1, 3)).numpy()
    array([[-8,  7,  3]], dtype=int8)
    """
    if not isinstance(values, Tensor) or values.dtype != np.int8:
        raise TypeError(
            f"pack_int4: values: got {getattr(values, 'dtype', type(values).__name__)}; expected "
            "an int8 Tensor"
        )
    if values.ndim != 2:
        raise ValueError(f"pack_int4: values: got shape {values.shape}; expected (n, k)")
    array = values.numpy()
    if array.size and (array.min() < -8 or array.max() > 7):
        raise ValueError(
            f"pack_int4: values: got {array.min()} to {array.max()}; expected -8 to 7, the range "
            "of 4 bits"
        )
    return asarray(int4_layout.pack(array), device=values.device)


def unpack_int4(packed, shape):
    """Return the int8 values ``(n, k)`` that :func:`pack_int4` packed.

    Parameters
    ----------
    packed : Tensor
        A result of :func:`pack_int4`.
    shape : (int, int)
        n and k; the packed form is padded to whole tiles.

    Raises
    ------
    ValueError
        `packed` is not the packed form of that shape.
    """
    try:
        n, k = (operator.index(extent) for extent in shape)
    except (TypeError, ValueError):
        raise TypeError(f"unpack_int4: shape: got {shape!r}; expected two ints, n and k") from None
    if not isinstance(packed, Tensor) or packed.dtype != np.uint8:
        raise TypeError(
            f"unpack_int4: packed: got {getattr(packed, 'dtype', type(packed).__name__)}; "
            "expected a uint8 Tensor"
        )
    if packed.shape != int4_layout.packed_shape(n, k):
        raise ValueError(
            f"unpack_int4: packed: got shape {packed.shape}; expected "
            f"{int4_layout.packed_shape(n, k)} for {n} features of {k} terms"
        )
    return asarray(int4_layout.unpack(packed.numpy(), n, k), device=packed.device)
