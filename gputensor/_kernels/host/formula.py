"""Formulas on the host device: each step is the NumPy function of its operation.

Rows are computed in parts that stay in a cache of the processor, all steps of a part one after the
other. The order of the steps is found once for each formula.
"""

import math

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.formula import FOLDS, OPERATIONS, formula
from gputensor._kernels.host.elementwise import cast, host_function

__all__ = ["run"]

_FUNCTIONS = {name: host_function(row) for name, row in {**OPERATIONS, **FOLDS}.items()}
_DTYPES = {row.name: row.numpy for row in DTYPES}
_TRUTHS = frozenset(
    name for name, row in OPERATIONS.items() if row.rule == "logical" or "float" not in row.kinds
)
#: Elements of a part; how many formulas are remembered.
PART, MOST = 1 << 18, 4096


class _Order:
    """The steps of a formula: heads, what else they name, and the places of their parts."""

    def __init__(self, trees):
        made = formula(trees)
        places = {node: place for place, node in enumerate(made.nodes)}
        self.steps = []
        for node in made.nodes:
            kind = "round to" if node[0] == "round" and len(node) == 3 else node[0]
            named = node[1] if kind in ("load", "number", "round to", "fold") else None
            self.steps.append((kind, named, [places[part] for part in made.parts(node)]))
        self.results = [places[tree] for tree in made.results]
        self.by_row = made.row_results()


#: id of the trees -> the trees, which keep the id, and their order.
_orders: dict[int, tuple[tuple, _Order]] = {}


def _order(trees):
    found = _orders.get(id(trees))
    if found is None:
        if len(_orders) >= MOST:
            _orders.clear()
        found = _orders[id(trees)] = trees, _Order(trees)
    return found[1]


def run(trees, row_ndim, *operands):
    """Compute the results of a formula.

    Parameters
    ----------
    trees : tuple
        The trees of the results, as :func:`gputensor._kernels.formula.formula` takes them.
    row_ndim : int
        The number of last axes that are the columns.
    *operands : numpy.ndarray
        The results, then the loads: views of one shape, except for results without columns.

    Examples
    --------
    >>> x, y = np.array([[1.0, 3.0]], np.float32), np.empty((1, 2), np.float32)
    >>> run((("sub", ("load", 0), ("fold", "mean", ("load", 0))),), 1, y, x)
    >>> y
    array([[-1.,  1.]], dtype=float32)
    """
    order, wide = _order(trees), np.dtype(np.float32)
    for x in operands:
        if x.dtype.char == "d":
            wide = np.dtype(np.float64)
    count = len(order.results)
    shape = operands[count].shape
    kept = shape[: len(shape) - row_ndim]
    columns = math.prod(shape[len(kept) :])
    loads = [x.reshape(*kept, columns) for x in operands[count:]]
    outs = operands[:count]
    rows = kept[-1] if kept else 1
    if math.prod(shape) <= PART or not kept:
        _part(order, wide, outs, loads, (0, rows), rows)
        return
    # Axes of one element in front would make one part of everything.
    first = next((axis for axis, extent in enumerate(kept) if extent > 1), len(kept) - 1)
    loads, outs = ([x[(0,) * first] for x in given] for given in (loads, outs))
    length, *others = kept[first:]
    each = max(1, PART // (math.prod(others) * columns))
    for begin in range(0, length, each):
        end = min(begin + each, length)
        parts = ([x[begin:end] for x in given] for given in (outs, loads))
        _part(order, wide, *parts, (0, rows) if others else (begin, end), rows)


def _part(order, wide, outs, loads, span, rows):
    """Compute some rows: those of numbers `span` of `rows`, if they have one axis."""
    *kept, columns = loads[0].shape
    values = []
    for head, named, places in order.steps:
        parts = [values[place] for place in places]
        if head == "load":
            x = loads[named]
            value = x if x.dtype is wide or x.dtype == bool else cast(x, wide)
        elif head == "number":
            value = np.array(float(named), wide)
        elif head == "fold":
            value = _fold(named, _real(parts[0], wide), (*kept, columns), wide)
        elif head == "row":
            value = np.arange(*span).astype(wide)[:, None]
        elif head == "column":
            value = np.arange(columns).astype(wide)
        elif head in ("columns", "rows"):
            value = np.array(columns if head == "columns" else rows, wide)
        elif head == "round to":
            value = cast(cast(_real(parts[0], wide), _DTYPES[named]), wide)
        elif head in _TRUTHS:
            value = _FUNCTIONS[head](*map(_truth, parts))
        else:
            is_choice = OPERATIONS[head].rule == "where"
            value = _FUNCTIONS[head](
                *[_truth(x) if is_choice and not k else _real(x, wide) for k, x in enumerate(parts)]
            )
        values.append(value if type(value) is np.ndarray else np.asarray(value))
    for place, out, is_row in zip(order.results, outs, order.by_row, strict=True):
        value, shape = values[place], (*kept, 1 if is_row else columns)
        if value.shape != shape:
            value = np.broadcast_to(value, shape)
        out[...] = cast(value.reshape(out.shape), out.dtype)


def _fold(name, x, shape, wide):
    """Fold the last axis, made contiguous so that NumPy sums pairwise."""
    if x.shape != shape:
        x = np.broadcast_to(x, shape)
    x = np.ascontiguousarray(x)
    result = _FUNCTIONS[name].reduce(x, axis=-1, keepdims=True, dtype=wide)
    return np.true_divide(result, wide.type(shape[-1])) if name == "mean" else result


def _real(x, wide):
    return x if x.dtype is wide else cast(x, wide)


def _truth(x):
    return x if x.dtype == bool else x != 0
