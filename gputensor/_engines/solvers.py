"""Dense linear algebra: LAPACK through NumPy, cuSOLVER through CuPy. All take stacks of matrices.

Each is a call of the registry; engine_rules.py lists the values of its first attribute.
"""

from gputensor._engines import factors
from gputensor._engines.engine import Engine

__all__ = ["lu_solve", "matrix", "matrix_pair", "solve", "svd"]


def _triangle(what):
    """Split a value such as "eigh_l" into the function's name and a tuple of its UPLO argument."""
    name, _, triangle = what.partition("_")
    return name, (triangle.upper(),) if triangle in ("l", "u") else ()


@Engine.of_call
def matrix(module, what, out, x):
    if what == "svdvals":
        out[...] = module.linalg.svd(x, compute_uv=False)
        return
    name, triangle = _triangle(what)
    out[...] = getattr(module.linalg, name)(x, *triangle)


@Engine.of_call
def matrix_pair(module, what, first, second, x):
    if what[:2] == "qr":
        parts = module.linalg.qr(x, "complete" if what == "qr_complete" else "reduced")
    elif what == "cholesky_info":
        parts = factors.cholesky(module, x)
    elif what[:2] == "lu":
        made, pivots = factors.lu(module, x)
        parts = made, factors.rows(module, pivots, x.shape[-2]) if what == "lu_rows" else pivots
    else:
        name, triangle = _triangle(what)
        parts = getattr(module.linalg, name)(x, *triangle)
    first[...], second[...] = parts


@Engine.of_call
def solve(module, out, x1, x2):
    out[...] = module.linalg.solve(x1, x2)


@Engine.of_call
def lu_solve(module, side, out, a, pivots, b):
    out[...] = factors.lu_solve(module, side, a, pivots, b)


@Engine.of_call
def svd(module, full_matrices, u, s, vh, x):
    u[...], s[...], vh[...] = module.linalg.svd(x, full_matrices)
