"""Formulas along rows: trees of element-wise steps and folds that become one kernel.

A formula reads operands that share rows and columns, and gives results with the same rows, with or
without columns. Its trees are nested tuples:

``("load", i)``
    The element of operand `i`; for a bool operand it is a truth value.
``("number", value)``, ``("column",)``, ``("row",)``
    A constant, where the texts "inf", "-inf" and "nan" are allowed; the number of the column; the
    number of the row along the axis before the columns, 0 if there is no such axis.
``("columns",)``, ``("rows",)``
    The number of columns; the number of rows along that axis.
``(operation, x, ...)``
    A row of ``operations.ELEMENTWISE`` by name: ``("exp", x)``, ``("where", c, a, b)``.
``("rough_exp", x)``
    e to the power x for a result of 16 bits; its relative error is at most x * 2^-24 + 2^-22, and
    it is 0 below 2^-126.
``("round", dtype, x)``
    The value rounded to `dtype`; without one, ``round`` is the operation that rounds to integers.
``("fold", reduction, x)``
    A sum, mean, maximum, minimum or product along the row, the same for all its columns.

Values are float32, or float64 where an operand or result is float64; they are rounded once, when
they are stored. On a host device `host/formula.py` computes the same steps with NumPy.
"""

import functools

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.operations import BY_HAND, ELEMENTWISE, REDUCTIONS, operation
from gputensor.errors import Described, argument_error

__all__ = ["FOLDS", "MAX_LOADS", "MAX_RESULTS", "Formula", "formula"]

# Limits, so that a tree from a file cannot exhaust the stack, the compiler or a block's memory.
MAX_LOADS, MAX_RESULTS = 8, 4
MAX_DEPTH = 64  # of a tree
MAX_WRITTEN = 1024  # steps of all trees, repetitions counted
MAX_STEPS = 128  # distinct steps
# A step of its own, so that formulas that round between steps keep the bits of `exp`.
_ROUGH = ("rough_exp", 1, "float", {"f": "rough_exp(a)"}, "np.exp", "roughly e**x.", BY_HAND)
OPERATIONS = {row.name: row for row in ELEMENTWISE if {"float", "bool"} & row.kinds} | {
    "rough_exp": operation(len(ELEMENTWISE), _ROUGH)
}
FOLDS = {row.name: row for row in REDUCTIONS if row.name in ("sum", "prod", "max", "min", "mean")}
_NAMES = {row.name for row in DTYPES if row.kind in ("float", "small")}


def _checked(tree, count, depth=0):
    """Return a tree as tuples; raise ValueError if it is invalid. `count` counts the steps."""
    count[0] += 1
    if depth > MAX_DEPTH:
        raise _fault(f"steps nested more than {MAX_DEPTH} deep", f"at most {MAX_DEPTH}")
    if count[0] > MAX_WRITTEN:
        raise _fault(f"more than {MAX_WRITTEN} steps", f"at most {MAX_WRITTEN}")
    if not isinstance(tree, (tuple, list)) or not tree or not isinstance(tree[0], str):
        raise _fault(f"a {type(tree).__name__}", "a step such as ('exp', x)")
    head, *rest = tree
    parts, known = (), True
    if head == "load":
        known = len(rest) == 1 and type(rest[0]) is int and 0 <= rest[0] < MAX_LOADS
    elif head == "number":
        known = len(rest) == 1 and (
            type(rest[0]) in (int, float, bool) or rest[0] in ("inf", "-inf", "nan")
        )
        known = known and (type(rest[0]) is not int or abs(rest[0]) < 1 << 64)
    elif head in ("column", "columns", "row", "rows"):
        known = not rest
    elif head == "fold" or head == "round" and len(rest) == 2:
        names = _NAMES if head == "round" else FOLDS
        known = len(rest) == 2 and isinstance(rest[0], str) and rest[0] in names
        parts = rest[1:] if known else ()
    else:
        known = head in OPERATIONS and len(rest) == OPERATIONS[head].arity
        parts = rest if known else ()
    if not known:
        raise _fault(f"step {head[:40]!r} with {len(rest)} parts", "a step of formula.py")
    before = rest[: len(rest) - len(parts)]
    return (head, *before, *(_checked(part, count, depth + 1) for part in parts))


def _fault(value, rule):
    return argument_error(ValueError, "formula", Described(value), rule)


class Formula:
    """One formula: its results, the number of operands that it loads, and its steps in order.

    Parameters
    ----------
    results : tuple of trees, checked

    Attributes
    ----------
    results : tuple of trees
    loads : int
        Number of operands.
    nodes : list of trees
        Every distinct step, each after those that it needs.
    level : dict
        For each step, the number of successive folds that it depends on.
    by_column : dict
        Whether a step differs from column to column.
    """

    def __init__(self, results):
        self.results = results
        self.nodes, self.level, self.by_column, self.truth = [], {}, {}, {}
        for tree in self.results:
            self._visit(tree)
        self.loads = 1 + max([node[1] for node in self.nodes if node[0] == "load"], default=-1)
        if len(self.nodes) > MAX_STEPS:
            raise _fault(f"{len(self.nodes)} distinct steps", f"at most {MAX_STEPS}")
        if not self.loads:
            raise _fault("no operand", "at least one ('load', i)")
        self.has_row = ("row",) in self.level
        # Each element is computed alone: no folds, no places, no results without columns.
        places = {"fold", "row", "rows", "column", "columns"}
        self.is_map = not places & {node[0] for node in self.nodes} and all(
            self.by_column[tree] for tree in results
        )
        self.folds = [node for node in self.nodes if node[0] == "fold"]

    def _visit(self, node):
        if node in self.level:
            return
        parts = self.parts(node)
        for part in parts:
            self._visit(part)
        head = node[0]
        self.level[node] = max([self.level[part] for part in parts], default=0) + (head == "fold")
        self.by_column[node] = head in ("load", "column") or (
            head != "fold" and any(self.by_column[part] for part in parts)
        )
        row = OPERATIONS.get(head)
        self.truth[node] = row is not None and (row.gives_bool or row.rule == "logical")
        self.nodes.append(node)

    def is_truth(self, node, dtypes):
        """Whether a step is a truth value, for operands of these dtypes."""
        return dtypes[node[1]] == 0 if node[0] == "load" else self.truth[node]

    @staticmethod
    def parts(node):
        """The steps that a step needs, as trees."""
        if node[0] in ("load", "number", "column", "columns", "row", "rows"):
            return ()
        return node[2:] if isinstance(node[1], str) else node[1:]

    def row_results(self):
        """Which results have no columns."""
        return tuple(not self.by_column[tree] for tree in self.results)


@functools.lru_cache(maxsize=1024)
def _formula(results):
    return Formula(results)


def formula(results):
    """Return the formula of some trees; equal trees give the same object.

    >>> x = ("load", 0)
    >>> softmax = formula([("div", x, ("fold", "sum", x))])
    >>> softmax.loads, softmax.row_results()
    (1, (False,))
    """
    if not isinstance(results, (tuple, list)) or not 1 <= len(results) <= MAX_RESULTS:
        raise _fault(f"a {type(results).__name__}", f"1 to {MAX_RESULTS} trees")
    count = [0]
    return _formula(tuple(_checked(tree, count) for tree in results))
