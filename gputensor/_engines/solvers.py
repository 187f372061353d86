"""Dense linear algebra: LAPACK by NumPy, cuSOLVER by CuPy. All take stacks of matrices."""

from gputensor._engines.engine import Engine

__all__ = [
    "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "qr", "slogdet", "solve", "svd",
    "svdvals",
]  # fmt: skip


@Engine
def cholesky(module, out, x):
    out[...] = module.linalg.cholesky(x)


@Engine
def det(module, out, x):
    out[...] = module.linalg.det(x)


@Engine
def eig(module, values, vectors, x):
    values[...], vectors[...] = module.linalg.eig(x)


@Engine
def eigvals(module, out, x):
    out[...] = module.linalg.eigvals(x)


@Engine
def eigh(module, triangle, values, vectors, x):
    values[...], vectors[...] = module.linalg.eigh(x, triangle)


@Engine
def eigvalsh(module, triangle, out, x):
    out[...] = module.linalg.eigvalsh(x, triangle)


@Engine
def inv(module, out, x):
    out[...] = module.linalg.inv(x)


@Engine
def qr(module, mode, q, r, x):
    q[...], r[...] = module.linalg.qr(x, mode)


@Engine
def slogdet(module, sign, logarithm, x):
    sign[...], logarithm[...] = module.linalg.slogdet(x)


@Engine
def solve(module, out, x1, x2):
    out[...] = module.linalg.solve(x1, x2)


@Engine
def svd(module, full_matrices, u, s, vh, x):
    u[...], s[...], vh[...] = module.linalg.svd(x, full_matrices)


@Engine
def svdvals(module, out, x):
    out[...] = module.linalg.svd(x, compute_uv=False)
