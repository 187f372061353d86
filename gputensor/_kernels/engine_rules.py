"""The rules of calls that other libraries compute: dense linear algebra and Fourier transforms.

Operands may have any layout; matrices are in the last two axes, and the other axes are stacks.
"""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.call_rules import ATTRIBUTE_TYPES, MAX_NDIM, is_extent, refuse

__all__ = ["ENGINE_RULES", "MATRIX", "MATRIX_PAIR", "NORMS", "SIDES", "TRANSFORMS"]

#: Functions of a matrix with one result, then with two; ``_l``, ``_u``: the triangle to read.
MATRIX = ("cholesky", "det", "eigvals", "eigvalsh_l", "eigvalsh_u", "inv", "svdvals")
MATRIX_PAIR = (
    "cholesky_info", "eig", "eigh_l", "eigh_u", "lu", "lu_rows", "qr", "qr_complete", "slogdet",
)  # fmt: skip
#: The form of the factored matrix in the system that is solved.
SIDES = ("plain", "transposed", "adjoint")
TRANSFORMS = (
    "fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn",
)  # fmt: skip
NORMS = ("backward", "ortho", "forward")
_FROM_REAL, _TO_REAL = ("rfft", "rfftn", "ihfft"), ("irfft", "irfftn", "hfft")
_KINDS = {row.name: row.kind for row in DTYPES}
_REAL = {"float32": "float32", "float64": "float64", "complex64": "float32",
         "complex128": "float64"}  # fmt: skip
_COMPLEX = {"float32": "complex64", "float64": "complex128"}


def _word_of(words):
    return (lambda value: type(value) is str and value in words, f"one of {', '.join(words)}")


def _are_places(value):
    if not isinstance(value, (tuple, list)) or len(value) > MAX_NDIM:
        return False
    return all(is_extent(n, MAX_NDIM) for n in value) and len(set(value)) == len(value)


ATTRIBUTE_TYPES["matrix"] = _word_of(MATRIX)
ATTRIBUTE_TYPES["matrix_pair"] = _word_of(MATRIX_PAIR)
ATTRIBUTE_TYPES["side"] = _word_of(SIDES)
ATTRIBUTE_TYPES["transform"] = _word_of(TRANSFORMS)
ATTRIBUTE_TYPES["norm"] = _word_of(NORMS)
ATTRIBUTE_TYPES["places"] = (_are_places, "different axes, in any order")


def _need(holds, name, what, value, rule):
    if not holds:
        refuse(f"{name}: {what}", value, rule)


def _matrices(name, x, is_square=True):
    _need(x.dtype in _REAL, name, "dtype", x.dtype, "float32, float64 or complex of these")
    fits = len(x.shape) >= 2 and 0 not in x.shape
    fits = fits and (not is_square or x.shape[-1] == x.shape[-2])
    _need(fits, name, "x.shape", x.shape, "square matrices" if is_square else "matrices")
    return x.shape[:-2], x.shape[-2], x.shape[-1], _REAL[x.dtype]


def _wanted(name, what, given, dtype, shape):
    _need(given == (dtype, shape), name, what, tuple(given), (dtype, shape))


def _matrix(name, attributes, writes, reads):
    (what,), (out,), (x,) = attributes, writes, reads
    batch, rows, columns, real = _matrices(name, x, what != "svdvals")
    if what in ("cholesky", "inv"):
        _wanted(name, "out", out, x.dtype, x.shape)
    elif what == "det":
        _wanted(name, "out", out, x.dtype, batch)
    elif what == "eigvals":
        _wanted(name, "out", out, _COMPLEX[real], (*batch, rows))
    else:
        _wanted(name, "out", out, real, (*batch, min(rows, columns)))


def _matrix_pair(name, attributes, writes, reads):
    (what,), (first, second), (x,) = attributes, writes, reads
    is_qr = what[:2] == "qr"
    batch, rows, columns, real = _matrices(name, x, not is_qr and what[:2] != "lu")
    if what[:2] == "lu":
        _wanted(name, "first", first, x.dtype, x.shape)
        count = rows if what == "lu_rows" else min(rows, columns)
        _wanted(name, "second", second, "int32", (*batch, count))
    elif is_qr:
        inner = rows if what == "qr_complete" else min(rows, columns)
        _wanted(name, "first", first, x.dtype, (*batch, rows, inner))
        _wanted(name, "second", second, x.dtype, (*batch, inner, columns))
    elif what == "cholesky_info":
        _wanted(name, "first", first, x.dtype, x.shape)
        _wanted(name, "second", second, "int32", batch)
    elif what == "slogdet":
        _wanted(name, "first", first, x.dtype, batch)
        _wanted(name, "second", second, real, batch)
    else:
        dtypes = (_COMPLEX[real],) * 2 if what == "eig" else (real, x.dtype)
        _wanted(name, "first", first, dtypes[0], (*batch, rows))
        _wanted(name, "second", second, dtypes[1], x.shape)


def _svd(name, attributes, writes, reads):
    (is_full,), (u, s, vh), (x,) = attributes, writes, reads
    batch, rows, columns, real = _matrices(name, x, False)
    inner = min(rows, columns)
    left, right = (rows, columns) if is_full else (inner, inner)
    _wanted(name, "u", u, x.dtype, (*batch, rows, left))
    _wanted(name, "s", s, real, (*batch, inner))
    _wanted(name, "vh", vh, x.dtype, (*batch, right, columns))


def _solve(name, _attributes, writes, reads):
    (out,), (a, b) = writes, reads
    batch, rows, _columns, _real = _matrices(name, a)
    fits = b.dtype == a.dtype and len(b.shape) == len(a.shape) and 0 not in b.shape
    fits = fits and b.shape[:-1] == (*batch, rows)
    _need(fits, name, "b", tuple(b), f"{a.dtype} of {rows} rows, with the stacks of a")
    _wanted(name, "out", out, b.dtype, b.shape)


def _lu_solve(name, _attributes, writes, reads):
    (out,), (a, pivots, b) = writes, reads
    batch, rows, _columns, _real = _matrices(name, a)
    _need(tuple(pivots) == ("int32", (*batch, rows)), name, "pivots", tuple(pivots),
          ("int32", (*batch, rows)))  # fmt: skip
    _solve(name, (), (out,), (a, b))


def _transform(name, attributes, writes, reads):
    (what, lengths, axes, _norm), (out,), (x,) = attributes, writes, reads
    _need(x.dtype in _REAL, name, "dtype", x.dtype, "float32, float64 or complex of these")
    real, is_real = _REAL[x.dtype], _KINDS[x.dtype] == "float"
    _need(is_real or what not in _FROM_REAL, name, "dtype", x.dtype, f"a real dtype for {what}")
    count = len(axes)
    fits = count >= 1 and len(lengths) == count and min(lengths) >= 1
    fits = fits and (count == 1 or what[-1] == "n")
    _need(fits, name, "lengths", tuple(lengths), f"1 or more for each of {count} axes")
    _need(max(axes) < len(x.shape), name, "axes", tuple(axes), f"axes of {x.shape}")
    _need(0 not in x.shape, name, "x.shape", x.shape, "elements")
    shape = list(x.shape)
    for axis, n in zip(axes, lengths, strict=True):
        shape[axis] = n
    if what in _FROM_REAL:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    _wanted(name, "out", out, real if what in _TO_REAL else _COMPLEX[real], tuple(shape))


#: The rules by the names of calls.
ENGINE_RULES = {
    "matrix": _matrix,
    "matrix_pair": _matrix_pair,
    "svd": _svd,
    "solve": _solve,
    "lu_solve": _lu_solve,
    "transform": _transform,
}
