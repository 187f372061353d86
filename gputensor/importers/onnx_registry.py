"""The table of ONNX operators: a function for each, and for each version that changed it.

A function takes the inputs of a node in order, and its attributes as keyword parameters. An omitted
attribute has the default of the operator's schema in the `onnx` package, otherwise the default in
the function's signature, otherwise None.
"""

import inspect
from dataclasses import dataclass
from typing import Any

__all__ = ["EXPANDED", "Operator", "find", "operator", "registered"]

_TABLE: dict = {}
#: Operators that are run by the standard's definition as a function of other operators.
EXPANDED: set = set()


@dataclass(frozen=True)
class Operator:
    """One row of the table.

    Attributes
    ----------
    function : callable
        Takes the inputs in order and the attributes by name; returns the output, or a tuple of
        several. `NotImplemented` requests the function by which the standard defines the operator.
    since : int
        The first version of the operator set in which the operator has this meaning.
    known : frozenset of int
        The inputs that are passed as NumPy arrays; -1 stands for all.
    folds : bool
        Whether the function accepts NumPy arrays. Otherwise all inputs that are not in `known` are
        passed as tensors.
    parameters : dict
        Attribute names, with the default for those without one in the schema.
    has_context : bool
        Whether the function takes `context` (onnx_graph.Context).
    """

    function: Any
    since: int
    known: frozenset
    folds: bool
    parameters: dict
    has_context: bool


def operator(name, since=1, *, domain="", known=(), folds=False):
    """Register a function for an operator; `name` may be several names, separated by spaces."""

    def register(function):
        parameters = {
            p.name: None if p.default is p.empty else p.default
            for p in inspect.signature(function).parameters.values()
            if p.kind == p.KEYWORD_ONLY
        }
        has_context = parameters.pop("context", parameters) is not parameters
        row = Operator(function, since, frozenset(known), folds, parameters, has_context)
        for one in name.split():
            _TABLE.setdefault((domain, one), {})[since] = row
        return function

    return register


def find(domain, name, version):
    """Return the row for an operator in a version of its operator set, or None."""
    rows = _TABLE.get((domain, name), {})
    since = max((since for since in rows if since <= version), default=None)
    return None if since is None else rows[since]


def registered():
    """Return the names of all operators with a row, by domain."""
    return sorted(_TABLE)
