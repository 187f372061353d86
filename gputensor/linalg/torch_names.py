"""Matrix functions at PyTorch's top level, with its arguments and results."""

from typing import NamedTuple

from gputensor.errors import argument_error
from gputensor.linalg import decompositions
from gputensor.linalg.solutions import inv, pinv, slogdet
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.manipulation import matrix_transpose, zeros

__all__ = ["inverse", "logdet", "pinverse", "svd"]


class SVD(NamedTuple):
    """The result of :func:`svd`."""

    U: Tensor
    S: Tensor
    V: Tensor


def pinverse(x, /, rcond=1e-15):
    """Return the pseudo-inverses, with PyTorch's default limit for singular values.

    >>> import gputensor as gt
    >>> pinverse(gt.asarray([[2.0]], device="host")).tolist()
    [[0.5]]
    """
    return pinv(x, rtol=rcond)


def inverse(input):
    """Return the inverses of square matrices, as ``linalg.inv``.

    >>> import gputensor as gt
    >>> inverse(gt.asarray([[2.0]], device="host")).tolist()
    [[0.5]]
    """
    return inv(input)


def logdet(input):
    """Return the logarithms of determinants: -inf for 0, and NaN for negative ones.

    >>> import gputensor as gt
    >>> logdet(gt.eye(2, device="host")).item()
    0.0
    """
    sign, logarithm = slogdet(input)
    if sign.dtype.kind == "c":
        return fn.add(fn.log(sign), logarithm)
    return fn.where(fn.less(sign, 0), float("nan"), logarithm)


def svd(input, some=True, compute_uv=True):
    """Return U, S and V with ``U @ diag(S) @ V.mH`` equal to the input: PyTorch's older function.

    Parameters
    ----------
    input : Tensor
        Matrices of any shape.
    some : bool
        U and V have as many columns as the shorter side; otherwise both are square.
    compute_uv : bool
        Whether U and V are computed; otherwise they are square and filled with zeros.

    >>> import gputensor as gt
    >>> svd(gt.asarray([[3.0, 0.0]], device="host")).V.shape
    (2, 1)
    """
    for name, value in (("some", some), ("compute_uv", compute_uv)):
        if not isinstance(value, bool):
            raise argument_error(TypeError, f"svd: {name}", value, "bool")
    if not compute_uv:
        s = decompositions.svdvals(tensor_argument(input, "svd"))
        u, v = (
            zeros((*input.shape[:-2], n, n), input.dtype, device=input.device)
            for n in input.shape[-2:]
        )
        return SVD(u, s, v)
    u, s, vh = decompositions.svd(input, full_matrices=not some)
    return SVD(u, s, matrix_transpose(fn.conj(vh) if vh.dtype.kind == "c" else vh))
