"""Products with a norm before and further steps after them, composed of single calls.

This is their definition on a host device, and how a GPU computes them where one kernel cannot do
everything. A *maker* allocates memory and makes calls: on NumPy arrays here, on operands in
`blas/product/fused.pxi`.
"""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.calls import bound_row

__all__ = [
    "epilogue_trees", "finished", "fused", "norm_trees", "normed", "normed_product", "rotary",
    "row_product",
]  # fmt: skip

_NUMPY = {row.name: row.numpy for row in DTYPES}
_X = ("load", 0)
# The low and the high elements of heads, of low, high, cosines and sines.
_ROTATED = (
    ("sub", ("mul", _X, ("load", 2)), ("mul", ("load", 1), ("load", 3))),
    ("add", ("mul", ("load", 1), ("load", 2)), ("mul", _X, ("load", 3))),
)


def norm_trees(epsilon, is_centered=False, has_shift=False):
    """Return the trees of `gt.rms_norm` or, if centered, of `gt.layer_norm`.

    >>> norm_trees(1e-5, has_shift=True)[0][0]
    'add'
    """
    x = ("sub", _X, ("fold", "mean", _X)) if is_centered else _X
    mean = ("fold", "mean", ("mul", x, x))
    factor = ("rsqrt", ("add", mean, ("number", epsilon)))
    tree = ("mul", ("mul", x, factor), ("load", 1))
    return (("add", tree, ("load", 2)) if has_shift else tree,)


def epilogue_trees(alpha, beta, activation, *present):
    """Return the trees of activation(alpha * product + beta * addend + bias) + residual.

    Parameters
    ----------
    alpha, beta : number
    activation : str or None
    *present : bool
        Whether there is an addend, a bias, a residual.

    Returns
    -------
    trees : tuple
        Load 0 is the product.
    used : list of int
        The numbers, in `present`, of the operands that are the further loads.

    Examples
    --------
    >>> epilogue_trees(1, 0, "silu", False, True, False)
    ((('silu', ('add', ('load', 0), ('load', 1))),), [1])
    """
    used, tree = [], _X if alpha == 1 else ("mul", _X, ("number", alpha))
    for number, is_present in enumerate(present):
        if number == 2 and activation is not None:
            tree = (activation, tree)
        if is_present:
            used.append(number)
            load = ("load", len(used))
            is_scaled = number == 0 and beta != 1
            tree = ("add", tree, ("mul", load, ("number", beta)) if is_scaled else load)
    return ((tree if tree != _X else ("copy", _X)),), used


class _Arrays:
    """The maker for NumPy arrays."""

    @staticmethod
    def new(dtype, shape):
        return np.empty(shape, _NUMPY[dtype])

    @staticmethod
    def part(x, shape, strides, first=0):
        """Return a view of a row-major array from element `first` on."""
        return np.lib.stride_tricks.as_strided(
            x.reshape(-1)[first:], shape, [step * x.itemsize for step in strides]
        )

    @staticmethod
    def turned(x):
        """Return a transposed view of a matrix."""
        return x.T

    @staticmethod
    def call(name, *arguments):
        bound_row(name).run(*arguments)

    @staticmethod
    def dtype(x):
        return next(name for name, dtype in _NUMPY.items() if dtype == x.dtype)


def normed(maker, epsilon, x, gain, is_centered=False, shift=None, *, out=None):
    """Return a matrix of the normalized rows of x, a new one unless `out` is given."""
    m, k = x.shape
    out = maker.new(maker.dtype(x), (m, k)) if out is None else out
    vectors = [maker.part(one, (m, k), (0, 1)) for one in (gain, shift) if one is not None]
    maker.call("formula", norm_trees(epsilon, is_centered, shift is not None), 1, out, x, *vectors)
    return out


def _plain(maker, precision, out, given, addend=None, activation=None):
    """Write activation(x @ (weight * scales).T + bias + addend)."""
    x, weight, scales, bias = given
    if scales is None:
        right = maker.turned(weight)
        beta = 0 if addend is None else 1
        numbers = (1, beta, activation, False, False, precision)
        maker.call("product", *numbers, out, x, right, addend, bias, None, None)
        return
    trees, used = epilogue_trees(1, 1, activation, addend is not None, False, False)
    is_whole = trees == (("copy", _X),)
    target = out if is_whole else maker.new(maker.dtype(out), out.shape)
    maker.call("quantized_product", precision, target, x, weight, scales, bias)
    if not is_whole:
        maker.call("formula", trees, 2, out, target, *(addend for _ in used))


def _finish(maker, activation, product, out):
    """Write activation(first half) * second half of the columns of a product."""
    m, n = out.shape
    halves = [maker.part(product, (m, n), (2 * n, 1), first) for first in (0, n)]
    gate = _X if activation is None else (activation, _X)
    maker.call("formula", (("mul", gate, ("load", 1)),), 2, out, *halves)


def _rotate(maker, product, results, angles, places):
    """Write the rotated queries to `out`; scatter the rotated keys and the values to `places`."""
    out, keys, values = results
    heads, m, size = out.shape
    kept, half = keys.shape[0], size // 2
    row = (heads + 2 * kept) * size
    rotated_keys = maker.new(maker.dtype(out), (kept, m, size))
    for target, count, first in ((out, heads, 0), (rotated_keys, kept, heads)):
        shape, lie = (count, m, half), (size, row, 1)
        loads = [maker.part(product, shape, lie, first * size + at) for at in (0, half)]
        loads += [maker.part(one, shape, (0, half, 1)) for one in angles]
        halves = [maker.part(target, shape, (m * size, size, 1), at) for at in (0, half)]
        maker.call("formula", _ROTATED, 3, *halves, *loads)
    passed = maker.part(product, (kept, m, size), (size, row, 1), (heads + kept) * size)
    maker.call("scatter", 1, keys, rotated_keys, places)
    maker.call("scatter", 1, values, passed, places)


def fused(*arguments, maker=_Arrays):
    """The row `fused_product`.

    >>> x, w, y = np.ones((1, 2), "f4"), np.ones((2, 2), "f4"), np.empty((1, 1), "f4")
    >>> fused(0.0, False, "relu", True, False, 0, y, x, w, None, None, None, None, None)
    >>> float(y[0, 0])
    4.0
    """
    epsilon, is_centered, activation, is_gated, _steady, precision, out, *reads = arguments
    x, weight, scales, gain, shift, bias, addend = reads
    if gain is not None:
        x = normed(maker, epsilon, x, gain, is_centered, shift)
    given = (x, weight, scales, bias)
    if not is_gated:
        _plain(maker, precision, out, given, addend, activation)
        return
    m, n = out.shape
    product = maker.new(maker.dtype(out), (m, 2 * n))
    _plain(maker, precision, product, given)
    _finish(maker, activation, product, out)


def normed_product(*arguments, maker=_Arrays):
    """The row `normed_product`.

    >>> x, w, y, r = (np.ones(shape, "f4") for shape in ((1, 2), (1, 2), (1, 1), (1, 2)))
    >>> normed_product(1.0, True, None, False, 0, y, r, x, w, np.ones(2, "f4"), r[0] * 3, y, None)
    >>> float(y[0, 0]), r.tolist()
    (7.0, [[3.0, 3.0]])
    """
    epsilon, is_centered, activation, _steady, precision, out, rows, *reads = arguments
    x, weight, gain, shift, bias, addend = reads
    normed(maker, epsilon, x, gain, is_centered, shift, out=rows)
    _plain(maker, precision, out, (rows, weight, None, bias), addend, activation)


def finished(trees, is_paired, precision, out, x, *operands, maker=_Arrays):
    """The row `formula_product`: the product, then the formula.

    >>> x, w, y = np.ones((1, 2), "f4"), np.ones((2, 2), "f4"), np.empty((1, 1), "f4")
    >>> finished((("mul", ("load", 0), ("load", 1)),), True, 0, y, x, w, None, None)
    >>> float(y[0, 0])
    4.0
    """
    (m, n), (weight, scales, bias, *others) = out.shape, operands
    columns = 2 * n if is_paired else n
    product = maker.new(maker.dtype(x), (m, columns))
    _plain(maker, precision, product, (x, weight, scales, bias))
    firsts = (0, n) if is_paired else (0,)
    loads = [maker.part(product, (m, n), (columns, 1), first) for first in firsts]
    maker.call("formula", trees, 2, out, *loads, *(one for one in others if one is not None))


def row_product(trees, _steady, precision, out, x, *operands, maker=_Arrays):
    """The row `row_product`: the product, then the formula of its rows.

    >>> x, w, y = np.ones((1, 2), "f4"), np.array([[1, 1], [0, 1]], "f4"), np.empty((1, 2), "f4")
    >>> row_product((("sub", ("load", 0), ("fold", "max", ("load", 0))),), True, 0, y, x, w, None)
    >>> y.tolist()
    [[0.0, -1.0]]
    """
    weight, bias = operands
    product = maker.new(maker.dtype(x), out.shape)
    _plain(maker, precision, product, (x, weight, None, bias))
    maker.call("formula", trees, 1, out, product)


def rotary(*arguments, maker=_Arrays):
    """The row `rotary_product`."""
    epsilon, _steady, precision, *results, x, weight, scales, gain, bias = arguments[:-3]
    cosines, sines, places = arguments[-3:]
    if gain is not None:
        x = normed(maker, epsilon, x, gain)
    (heads, m, size), kept = results[0].shape, results[1].shape[0]
    product = maker.new(maker.dtype(x), (m, (heads + 2 * kept) * size))
    _plain(maker, precision, product, (x, weight, scales, bias))
    _rotate(maker, product, results, (cosines, sines), places)
