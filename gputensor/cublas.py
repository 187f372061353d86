"""The product of ``cupy.cublas``, for programs that use it."""

from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, written_argument
from gputensor.tensor.functions import conj
from gputensor.tensor.products import addmm, matmul

__all__ = ["gemm"]

_FORMS = {"N": "N", "T": "T", "H": "H", "C": "H", 0: "N", 1: "T", 2: "H"}


def gemm(transa, transb, a, b, out=None, alpha=1.0, beta=0.0):  # noqa: PLR0917
    """Return ``alpha * op(a) @ op(b) + beta * out``, written to `out` if it is given.

    Parameters
    ----------
    transa, transb : {"N", "T", "H"} or {0, 1, 2}
        Use the matrix as it is, its transpose, or its adjoint.
    a, b : Tensor
        Two axes each.
    out : Tensor, optional
        Default: a new tensor; then `beta` is ignored.
    alpha, beta : number

    >>> import gputensor as gt
    >>> a = gt.asarray([[1.0, 2.0]], device="host")
    >>> gemm("T", "N", a, a, alpha=2.0).tolist()
    [[2.0, 4.0], [4.0, 8.0]]
    """
    left, right = (
        _turned(*one) for one in ((transa, a, "transa", "a"), (transb, b, "transb", "b"))
    )
    if left.shape[1] != right.shape[0]:
        got = Described(f"shapes {left.shape} and {right.shape} as they are multiplied")
        raise argument_error(ValueError, "gemm: a, b", got, "as many columns as rows")
    if out is None:
        result = matmul(left, right)
        return result if isinstance(alpha, (int, float)) and alpha == 1 else result * alpha
    written_argument(out, "gemm")
    return addmm(out, left, right, beta=beta, alpha=alpha, out=out)


def _turned(form, x, form_name, name):
    if isinstance(form, bool) or not isinstance(form, (str, int)) or form not in _FORMS:
        raise argument_error(ValueError, f"gemm: {form_name}", form, "'N', 'T', 'H', 0, 1 or 2")
    if not isinstance(x, Tensor) or x.ndim != 2:
        got = Described(f"{x.ndim} dimensions") if isinstance(x, Tensor) else x
        raise argument_error(TypeError, f"gemm: {name}", got, "a Tensor of 2 dimensions")
    form = _FORMS[form]
    if form == "H" and x.dtype.kind == "c":
        x = conj(x)
    return x if form == "N" else x.T


def __dir__():
    return sorted(__all__)
