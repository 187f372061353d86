"""Comparisons for tests: those of ``numpy.testing``, ``cupy.testing`` and ``torch.testing``.

Each copies its tensors to the host and waits. The messages of a failure are NumPy's.

>>> import gputensor as gt
>>> x = gt.asarray([1.0, 2.0], device="host")
>>> gt.testing.assert_allclose(x, [1.0, 2.0])
"""

import functools

import numpy as np
from numpy.testing import assert_no_warnings, assert_raises, assert_raises_regex, assert_warns

from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor

__all__ = [
    "assert_allclose", "assert_almost_equal", "assert_array_almost_equal",
    "assert_array_almost_equal_nulp", "assert_array_equal", "assert_array_less",
    "assert_array_list_equal", "assert_array_max_ulp", "assert_close", "assert_equal",
    "assert_no_warnings", "assert_raises", "assert_raises_regex", "assert_warns",
]  # fmt: skip

# The tolerances of torch.testing.assert_close: relative, absolute.
TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def _on_host(value):
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, (list, tuple)):
        return type(value)(_on_host(one) for one in value)
    return value


def _of_numpy(name):
    function = getattr(np.testing, name)

    @functools.wraps(function)
    def checked(*arguments, **options):
        __tracebackhide__ = True
        return function(*(_on_host(one) for one in arguments), **options)

    checked.__module__ = __name__
    checked.__doc__ = f"Compare as ``numpy.testing.{name}``, with its arguments."
    return checked


assert_allclose = _of_numpy("assert_allclose")
assert_almost_equal = _of_numpy("assert_almost_equal")
assert_array_almost_equal = _of_numpy("assert_array_almost_equal")
assert_array_almost_equal_nulp = _of_numpy("assert_array_almost_equal_nulp")
assert_array_equal = _of_numpy("assert_array_equal")
assert_array_less = _of_numpy("assert_array_less")
assert_array_max_ulp = _of_numpy("assert_array_max_ulp")
assert_equal = _of_numpy("assert_equal")


def assert_array_list_equal(xlist, ylist, err_msg="", verbose=True):
    """Compare two lists of tensors or arrays, one pair after the other.

    >>> assert_array_list_equal([[1, 2]], [[1, 2]])
    """
    __tracebackhide__ = True
    if len(xlist) != len(ylist):
        raise AssertionError(f"{err_msg}{len(xlist)} and {len(ylist)} tensors")
    for one, other in zip(xlist, ylist, strict=True):
        assert_array_equal(one, other, err_msg=err_msg, verbose=verbose)


def assert_close(
    actual, expected, *, rtol=None, atol=None, equal_nan=False, check_device=True,
    check_dtype=True, check_stride=False, msg=None,
):  # fmt: skip
    """Compare as PyTorch's function: shapes, dtypes, devices, and values up to a tolerance.

    Parameters
    ----------
    actual, expected : Tensor, number, or sequence of these
    rtol, atol : float, optional
        Give both or neither; by default they depend on the dtype, as in PyTorch: 1.3e-6 and 1e-5
        for float32, 0 for integers.
    equal_nan, check_device, check_dtype, check_stride : bool
    msg : str, optional
        The message of a failure.

    >>> import gputensor as gt
    >>> assert_close(gt.ones(2, device="host"), gt.ones(2, device="host") + 1e-7)
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        got = Described("one of them")
        raise argument_error(ValueError, "assert_close: rtol, atol", got, "both or neither")
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            raise AssertionError(msg or f"{len(actual)} and {len(expected)} elements")
        for one, other in zip(actual, expected, strict=True):
            assert_close(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg,
                         check_device=check_device, check_dtype=check_dtype,
                         check_stride=check_stride)  # fmt: skip
        return
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        for is_checked, fact in (
            (True, "shape"), (check_dtype, "dtype"), (check_device, "device"),
            (check_stride, "strides"),
        ):  # fmt: skip
            one, other = getattr(actual, fact), getattr(expected, fact)
            if is_checked and one != other:
                raise AssertionError(msg or f"{fact}: {one} and {other} are not equal")
    one, other = (np.asarray(_on_host(value)) for value in (actual, expected))
    if one.shape != other.shape:
        raise AssertionError(msg or f"shape: {one.shape} and {other.shape} are not equal")
    if rtol is None:
        pairs = [TOLERANCES.get(value.dtype.name, (0, 0)) for value in (one, other)]
        rtol, atol = (max(pair) for pair in zip(*pairs, strict=True))
    if one.dtype.name == "bfloat16" or other.dtype.name == "bfloat16":
        one, other = one.astype(np.float32), other.astype(np.float32)
    np.testing.assert_allclose(one, other, rtol, atol, equal_nan=equal_nan, err_msg=msg or "")


def __dir__():
    return sorted(__all__)
