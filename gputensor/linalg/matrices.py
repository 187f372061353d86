"""Arguments that are stacks of matrices, in the dtype that solvers compute in."""

from gputensor._arrays.dtypes import complex64, float32, float64
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import empty

__all__ = ["compute_dtype", "matrices", "new", "real_dtype", "rounded", "square"]


def compute_dtype(dtype):
    """The dtype that LAPACK computes in for tensors of `dtype`."""
    is_wide = dtype.kind == "c" or dtype.itemsize >= 4 and dtype.kind == "f"
    return dtype if is_wide else float32


def real_dtype(dtype):
    """The dtype of the parts of a complex dtype; a real dtype itself."""
    if dtype.kind != "c":
        return dtype
    return float32 if dtype == complex64 else float64


def matrices(x, name, argument="x"):
    """`x`, which has two axes at least, in the dtype to compute in."""
    if tensor_argument(x, name).ndim < 2:
        got = Described(f"{x.ndim} dimensions")
        raise argument_error(ValueError, f"{name}: {argument}", got, "2 or more")
    if x.dtype.name.startswith("float8"):
        raise argument_error(TypeError, f"{name}: {argument}", Described(x.dtype.name), "a dtype "
                             "to compute in; convert it with astype")  # fmt: skip
    return astype(x, compute_dtype(x.dtype), copy=False)


def square(x, name, argument="x"):
    """`x`, whose matrices have as many rows as columns, in the dtype to compute in."""
    x = matrices(x, name, argument)
    if x.shape[-1] != x.shape[-2]:
        got = Described(f"shape {x.shape}")
        raise argument_error(ValueError, f"{name}: {argument}", got, "square matrices")
    return x


def new(x, shape, dtype=None):
    """New memory on the device of `x`, in its dtype unless given."""
    return empty(shape, x.dtype if dtype is None else dtype, device=x.device)


def rounded(result, x):
    """A result in the dtype that the argument `x` asks for: 16-bit floats stay so."""
    narrow = x.dtype.itemsize == 2 and x.dtype.kind in "fV"
    return astype(result, x.dtype, copy=False) if narrow else result
