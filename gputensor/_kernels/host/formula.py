"""Formulas on the host device: each step is the NumPy function of its operation."""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.formula import FOLDS, OPERATIONS, formula
from gputensor._kernels.host.elementwise import cast, host_function

__all__ = ["run"]

_FUNCTIONS = {name: host_function(row) for name, row in {**OPERATIONS, **FOLDS}.items()}
_DTYPES = {row.name: row.numpy for row in DTYPES}


def _fold(name, x, shape, wide):
    """Fold the last axis, made contiguous so that NumPy sums pairwise."""
    x = np.ascontiguousarray(np.broadcast_to(x, shape))
    result = _FUNCTIONS[name].reduce(x, axis=-1, keepdims=True, dtype=wide)
    return np.true_divide(result, wide.type(shape[-1])) if name == "mean" else result


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
    made, values = formula(trees), {}
    results, loads = operands[: len(made.results)], operands[len(made.results) :]
    wide = np.dtype(np.float64 if np.dtype(np.float64) in [x.dtype for x in operands] else "f4")
    whole = loads[0].shape
    kept = whole[: len(whole) - row_ndim]
    columns = int(np.prod(whole[len(kept) :], dtype=np.int64))
    shape = (*kept, columns)
    for node in made.nodes:
        head = node[0]
        parts = [values[part] for part in made.parts(node)]
        if head == "load":
            x = loads[node[1]].reshape(shape)
            value = x if x.dtype == bool else cast(x, wide)
        elif head == "number":
            value = wide.type(float(node[1]))
        elif head == "row":
            value = np.arange(kept[-1] if kept else 1).astype(wide)[:, None]
        elif head in ("columns", "rows"):
            value = wide.type(columns if head == "columns" else (kept or (1,))[-1])
        elif head == "column":
            value = np.arange(columns).astype(wide)
        elif head == "round" and len(node) == 3:
            value = cast(cast(_real(parts[0], wide), _DTYPES[node[1]]), wide)
        elif head == "fold":
            value = _fold(node[1], _real(parts[0], wide), shape, wide)
        else:
            value = _FUNCTIONS[head](*_arguments(OPERATIONS[head], parts, wide))
        values[node] = value
    for tree, out, is_row in zip(made.results, results, made.row_results(), strict=True):
        value = np.broadcast_to(values[tree], (*kept, 1 if is_row else columns))
        out[...] = cast(value.reshape(out.shape), out.dtype)


def _real(x, wide):
    return x.astype(wide) if x.dtype == bool else x


def _arguments(row, parts, wide):
    """The parts as the operation takes them: truth values or numbers."""
    if row.rule == "logical" or "float" not in row.kinds:
        return [x if x.dtype == bool else x != 0 for x in parts]
    found = [np.asarray(_real(x, wide), wide) for x in parts]
    if row.rule == "where":
        found[0] = parts[0] if parts[0].dtype == bool else parts[0] != 0
    return found
