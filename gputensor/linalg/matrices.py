"""Arguments that are stacks of matrices, in the dtype that solvers compute in."""

from numpy.linalg import LinAlgError

from gputensor._arrays.dtypes import complex64, float32, float64, is_float8
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import empty

__all__ = ["compute_dtype", "matrices", "new", "real_dtype", "rounded", "square"]


def compute_dtype(dtype):
    """Return the dtype in which LAPACK computes for tensors of `dtype`."""
    is_wide = dtype.kind == "c" or dtype.itemsize >= 4 and dtype.kind == "f"
    return dtype if is_wide else float32


def real_dtype(dtype):
    """Return the dtype of the parts of a complex dtype; a real dtype itself."""
    if dtype.kind != "c":
        return dtype
    return float32 if dtype == complex64 else float64


def matrices(x, name, argument="x"):
    """Return `x`, which must have at least two axes, in the dtype to compute in."""
    if tensor_argument(x, name).ndim < 2:
        got = Described(f"{x.ndim} dimensions")
        raise argument_error(LinAlgError, f"{name}: {argument}", got, "2 or more")
    if is_float8(x.dtype):
        rule = "a dtype with arithmetic; convert it with astype"
        raise argument_error(TypeError, f"{name}: {argument}", Described(x.dtype.name), rule)
    return astype(x, compute_dtype(x.dtype), copy=False)


def square(x, name, argument="x"):
    """Return `x`, whose matrices must be square, in the dtype to compute in."""
    x = matrices(x, name, argument)
    if x.shape[-1] != x.shape[-2]:
        got = Described(f"shape {x.shape}")
        raise argument_error(LinAlgError, f"{name}: {argument}", got, "square matrices")
    return x


def new(x, shape, dtype=None):
    """Return an empty tensor on the device of `x`, in the dtype of `x` unless given."""
    return empty(shape, x.dtype if dtype is None else dtype, device=x.device)


def rounded(result, x):
    """Return a result in the dtype of the argument `x` if that is a 16-bit float."""
    narrow = x.dtype.itemsize == 2 and x.dtype.kind in "fV"
    return astype(result, x.dtype, copy=False) if narrow else result
