"""Linear algebra: the array API standard's ``linalg``, and the further functions of NumPy's.

The last two axes of a tensor are matrices, the others a stack of them. LAPACK computes on the host
device, and cuSOLVER, through CuPy, on CUDA devices, in the dtype of the tensor; bool, integers and
16-bit floats are computed in float32, and results for 16-bit floats are rounded to that dtype.
:func:`inv` and :func:`solve` of a singular matrix, and :func:`cholesky` of one that is not positive
definite, raise ``numpy.linalg.LinAlgError``.

>>> import gputensor as gt
>>> a = gt.asarray([[2.0, 0.0], [0.0, 4.0]], device="host")
>>> solve(a, gt.asarray([2.0, 2.0], device="host")).tolist()
[1.0, 0.5]
"""

import sys

from numpy.linalg import LinAlgError

from gputensor.linalg.decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from gputensor.linalg.factors import lu, lu_factor, lu_solve
from gputensor.linalg.infos import cholesky_ex, inv_ex, lu_factor_ex, solve_ex
from gputensor.linalg.norms import cond, matrix_norm, norm, vector_norm
from gputensor.linalg.powers import (
    diagonal,
    matrix_exp,
    matrix_power,
    multi_dot,
    trace,
    vander,
)
from gputensor.linalg.solutions import (
    det,
    inv,
    lstsq,
    matrix_rank,
    pinv,
    slogdet,
    solve,
    tensorinv,
    tensorsolve,
)
from gputensor.linalg.triangles import cholesky_solve, solve_triangular
from gputensor.tensor.manipulation import matrix_transpose
from gputensor.tensor.parameter_names import LINALG, LINALG_OPTIONS, given_names
from gputensor.tensor.products import matmul, vecdot
from gputensor.tensor.products.einsum import tensordot
from gputensor.tensor.products.outer import cross, outer

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cholesky_solve", "cond", "cross", "det", "diagonal",
    "eig", "eigh", "eigvals", "eigvalsh", "inv", "inv_ex", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power",
    "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve",
    "solve_ex", "solve_triangular", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve",
    "trace", "vander", "vecdot", "vector_norm",
]  # fmt: skip

given_names(sys.modules[__name__], LINALG, LINALG_OPTIONS)


def __dir__():
    return sorted(__all__)
