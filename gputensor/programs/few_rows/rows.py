"""Small products that compute the formula of their rows, such as the softmax of a classifier."""

from __future__ import annotations

from dataclasses import replace

from gputensor._kernels.formula import formula
from gputensor.blas.kernels import brief_programs
from gputensor.programs import dims as forms
from gputensor.programs.few_rows.products import BRIEF, is_new, lies, operands_of
from gputensor.programs.few_rows.steps import holds, only_reader
from gputensor.programs.function import Call, Operand

__all__ = ["rowed"]


def rowed(site, place, call):
    """Return a product with the formula that alone reads its result, row by row.

    One block has a row at once, so the weights have to be small.
    """
    found = _product(call)
    at = None if found is None else only_reader(site, call.writes[0].value)
    if at is None:
        return None
    operands, activation, is_steady, precision = found
    following = site.calls[at]
    trees = _trees(following, call, operands, activation)
    if trees is None or following.stream != call.stream or not holds(site, operands, at):
        return None
    out = following.writes[0]
    n = operands[1].shape[0]
    out = out._replace(shape=(operands[0].shape[0], n), strides=(n, 1))
    attributes = {"trees": trees, "is_steady": is_steady, "precision": precision}
    given = (attributes, (out,), operands, (None,), call.stream, following.line)
    return {place: (), at: (Call("row_product", *given),)}


def _product(call):
    """Return (x, weight, bias), the activation, is_steady and the precision of a small product."""
    if call.name == "fused_product":
        x, weight, scales, gain, shift, bias, addend = call.reads
        held = call.attributes
        if any(one is not None for one in (scales, gain, shift, addend)) or held["is_gated"]:
            return None
        found = (x, weight, bias), held["activation"], held["is_steady"], held["precision"]
    elif call.name == "product":
        activation = call.attributes["activation"]
        plain = replace(call, attributes={**call.attributes, "activation": None})
        given = operands_of(plain, dtypes=BRIEF)
        if given is None:
            return None
        found = (given.x, given.weight, given.bias), activation, False, given.precision
    else:
        return None
    x, weight = found[0][:2]
    extents = (*x.shape, *weight.shape)
    if not is_new(call) or any(type(extent) is not int for extent in extents):
        return None
    fits = lies(weight, weight.shape, (weight.shape[1], 1)) and x.shape[0] > 0
    fits = fits and brief_programs.brief_row_wins(x.shape[0], *weight.shape, x.dtype)
    return found if fits else None


def _trees(following, call, operands, activation):
    """Return the trees of a formula of the rows of a product, or None if it reads anything else."""
    if following.name != "formula" or not is_new(following) or len(following.reads) != 1:
        return None
    if not isinstance(following.reads[0], Operand):
        return None
    trees, row_ndim = following.attributes["trees"], following.attributes["row_ndim"]
    product, (read,) = call.writes[0], following.reads
    n = operands[1].shape[0]
    is_same = read.value == product.value and read.offset == 0 and read.dtype == product.dtype
    shape = (*read.shape[:-1], n)
    fits = is_same and row_ndim == 1 and read.shape == shape
    for one in (read, following.writes[0]):
        fits = fits and lies(one, shape, forms.row_major(shape))
    if not fits or len(trees) != 1 or not brief_programs.fits(formula(trees)):
        return None
    return tuple(_activated(tree, activation) for tree in trees)


def _activated(tree, activation):
    """Return a tree whose loads are of the activated product."""
    if activation is None or not isinstance(tree, tuple):
        return tree
    if tree == ("load", 0):
        return (activation, tree)
    return tuple(_activated(one, activation) for one in tree)
