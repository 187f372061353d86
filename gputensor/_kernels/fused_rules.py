"""The rules of products with a norm before them or further steps after them."""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.call_rules import RULES, Spec, refuse, shown
from gputensor._kernels.formula import formula

__all__ = ["FUSED_RULES"]

_KINDS = {row.name: row.kind for row in DTYPES}
_FLOATS = ("float16", "bfloat16", "float32")


def _need(holds, name, what, value, rule):
    if not holds:
        refuse(f"{name}: {what}", value, rule)


def _few_rows(name, n, epsilon, reads):
    """Check the operands of a product with `n` columns and the norm before it."""
    x, weight, scales, gain, bias = reads
    _need(type(epsilon) in (int, float), name, "epsilon", shown(epsilon), "a real number")
    fits = len(x.shape) == 2 and x.shape[1] > 0 and x.dtype in _FLOATS
    _need(fits, name, "x", tuple(x), "a matrix of float32 or a 16-bit float")
    m, k = x.shape
    if scales is None:
        _need(weight == (x.dtype, (n, k)), name, "weight", tuple(weight), (x.dtype, (n, k)))
    else:
        fits = len(scales.shape) == 2 and scales.shape[1] == n
        _need(fits, name, "scales.shape", scales.shape, f"(groups, {n})")
        given = x, weight, scales, None
        RULES["quantized_product"](name, (), (Spec(x.dtype, (m, n)),), given)
    for one, extent in ((gain, k), (bias, n)):
        wanted = (x.dtype, (extent,))
        _need(one in (None, wanted), name, "vector", one and tuple(one), wanted)


def _fused_product(name, attributes, writes, reads):
    (epsilon, is_centered, _activation, is_gated, _steady, _precision) = attributes
    (out,), (*given, shift, bias, addend) = writes, reads
    x, gain = given[0], given[3]
    _need(len(out.shape) == 2, name, "out.shape", out.shape, "two extents")
    _few_rows(name, out.shape[1] * (2 if is_gated else 1), epsilon, (*given, bias))
    wanted = (x.dtype, (x.shape[0], out.shape[1]))
    _need(out == wanted, name, "out", tuple(out), wanted)
    _need(gain is not None or not is_centered, name, "is_centered", is_centered, "a gain")
    fits = shift is None or shift == gain
    _need(fits, name, "shift", shift and tuple(shift), "that of gain")
    fits = addend is None or (addend == out and not is_gated)
    _need(fits, name, "addend", addend and tuple(addend), "that of out, and no gate")


def _normed_product(name, attributes, writes, reads):
    epsilon, is_centered, activation, is_steady, precision = attributes
    (out, normed), (x, weight, *vectors) = writes, reads
    given = (epsilon, is_centered, activation, False, is_steady, precision)
    _fused_product(name, given, (out,), (x, weight, None, *vectors))
    _need(normed == x, name, "normed", tuple(normed), "that of x")


def _formula_product(name, attributes, writes, reads):
    (trees, is_paired, _precision), (out,), (*given, first, second, third) = (
        attributes, writes, reads)  # fmt: skip
    made, others = formula(trees), (first, second, third)
    fits = made.is_map and len(made.results) == 1
    _need(fits, name, "trees", shown(trees), "one tree without folds and places")
    _need(len(out.shape) == 2, name, "out.shape", out.shape, "two extents")
    _few_rows(name, out.shape[1] * (2 if is_paired else 1), 0, (*given[:3], None, given[3]))
    fits = out.shape[0] == given[0].shape[0] and out.dtype in _FLOATS
    _need(fits, name, "out", tuple(out), f"{given[0].shape[0]} rows of floats")
    count = made.loads - (2 if is_paired else 1)
    fits = all((one is not None) == (i < count) for i, one in enumerate(others))
    _need(fits and 0 <= count <= 3, name, "operands", shown(others), f"{count} for the loads")
    for one in others[:count]:
        fits = one.shape == out.shape and _KINDS[one.dtype] != "complex"
        _need(fits, name, "operand", tuple(one), f"real numbers of shape {out.shape}")


def _row_product(name, attributes, writes, reads):
    (trees, _steady, _precision), (out,), (x, weight, bias) = attributes, writes, reads
    made = formula(trees)
    fits = made.loads == 1 and made.row_results() == (False,)
    _need(fits, name, "trees", shown(trees), "one tree with columns, of load 0 alone")
    fits = len(out.shape) == 2 and 0 not in out.shape and out.dtype in _FLOATS
    _need(fits, name, "out", tuple(out), "two extents above 0, of floats")
    _few_rows(name, out.shape[1], 0, (x, weight, None, None, bias))
    _need(x.shape[0] == out.shape[0], name, "out.shape", out.shape, f"{x.shape[0]} rows")


def _rotary_product(name, attributes, writes, reads):
    epsilon, _steady, _precision = attributes
    (out, keys, values), (*given, cosines, sines, places) = writes, reads
    x = given[0]
    for one in (out, keys, values):
        fits = len(one.shape) == 3 and 0 not in one.shape and one.dtype == x.dtype
        _need(fits, name, "heads", tuple(one), f"three extents of {x.dtype}")
    heads, m, size = out.shape
    fits = size % 2 == 0 and keys.shape[2] == size and keys == values
    _need(fits, name, "keys and values", tuple(keys), f"alike, heads of {size}")
    _few_rows(name, (heads + 2 * keys.shape[0]) * size, epsilon, given)
    _need(x.shape[0] == m, name, "out.shape", out.shape, f"{x.shape[0]} rows")
    for one in (cosines, sines):
        wanted = ("float32", (m, size // 2))
        _need(one == wanted, name, "cosines and sines", tuple(one), wanted)
    fits = _KINDS[places.dtype] in ("int", "uint") and places.shape == (m,)
    _need(fits, name, "places", tuple(places), f"integers of shape {(m,)}")


FUSED_RULES = {
    "formula_product": _formula_product,
    "fused_product": _fused_product,
    "normed_product": _normed_product,
    "rotary_product": _rotary_product,
    "row_product": _row_product,
}
