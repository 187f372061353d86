"""The pass that joins a product with the formula that only its result needs: Function to Function.

The call `formula_product` has two ways on a GPU, one kernel or two. Models choose two, and
`ahead/tune.py` measures both.
"""

from __future__ import annotations

from gputensor._kernels.formula import formula
from gputensor.programs import dims as forms
from gputensor.programs.attention.views import is_new
from gputensor.programs.few_rows.join import Site
from gputensor.programs.few_rows.products import MOST_ROWS, lies, operands_of
from gputensor.programs.few_rows.steps import holds, only_reader
from gputensor.programs.formulas.steps import steps_of
from gputensor.programs.function import Call, with_regions
from gputensor.programs.passes.clean import clean

__all__ = ["join_products"]

_FLOATS = ("float16", "bfloat16", "float32")
MOST_OTHERS = 3


def join_products(function, weights):
    """Return a function whose products of many rows include the map that reads their result.

    Parameters
    ----------
    function : Function
        Not modified.
    weights : dict
        The weights of the program by name.
    """
    function = with_regions(function, lambda one: join_products(one, weights))
    site = Site(function, weights)
    return clean(site.function(), weights) if site.run(_joined) else function


def _joined(site, place, call):
    """Return the calls that replace a product and the map after it, by place; or None."""
    given = operands_of(call)
    at = given and only_reader(site, call.writes[0].value)
    if at is None or given is None or not holds(site, given[:4], at):
        return None
    following, (rows, n, _k) = site.calls[at], given.sizes
    if following.stream != call.stream or not is_new(following) or rows in range(MOST_ROWS + 1):
        return None
    steps = steps_of(following, at)
    if steps is None or len(steps.trees) != 1 or not formula(steps.trees).is_map:
        return None
    found = _loads(steps, call.writes[0], rows, n)
    if found is None:
        return None
    is_paired, numbers, others = found
    columns = n // 2 if is_paired else n
    out = following.writes[0]._replace(shape=(rows, columns), strides=(columns, 1))
    attributes = {
        "trees": (_numbered(steps.trees[0], numbers),), "is_paired": is_paired,
        "precision": given.precision,
    }  # fmt: skip
    reads = (given.x, given.weight, given.scales, given.bias, *others)
    reads += (None,) * (MOST_OTHERS - len(others))
    made = Call("formula_product", attributes, (out,), reads, (None,), call.stream, following.line)
    return {place: (), at: (made,)}


def _loads(steps, product, rows, n):
    """Return whether the map takes pairs of columns, the new numbers of its loads, and the others.

    Returns None for a map that reads the product, or other operands, in another way.
    """
    out = steps.call.writes[0]
    mine = {one for one in steps.loads if one.value == product.value}
    others = [one for one in dict.fromkeys(steps.loads) if one not in mine]
    is_paired = len(mine) == 2
    columns = n // 2 if is_paired else n
    if out.dtype not in _FLOATS or len(others) > MOST_OTHERS or n % 2 * is_paired:
        return None
    # Both halves are of 16-bit floats.
    firsts = {0: 0, n: 1} if is_paired else {0: 0}
    numbers = {}
    for one in mine:
        flat = _flat(one, rows, columns)
        if flat is None or one.dtype != product.dtype or one.offset not in firsts:
            return None
        if not lies(flat, (rows, columns), (n, 1)):
            return None
        numbers[one] = firsts[one.offset]
    flats = [_flat(one, rows, columns) for one in others]
    fits = all(one is not None and one.dtype in _FLOATS for one in flats)
    if not fits or len(set(numbers.values())) != len(firsts) or out.shape[-1:] != (columns,):
        return None
    numbers.update((one, len(firsts) + i) for i, one in enumerate(others))
    return is_paired, [numbers[one] for one in steps.loads], flats


def _flat(operand, rows, columns):
    """Return an operand as a matrix of `rows` and `columns`, or None."""
    if operand.shape[-1:] != (columns,) or forms.mul(1, *operand.shape[:-1]) != rows:
        return None
    steps = zip(operand.shape[:-1], operand.strides[:-1], strict=True)
    lead = [(extent, step) for extent, step in steps if extent != 1]
    for (_, outer), (extent, inner) in zip(lead, lead[1:], strict=False):
        if outer != forms.mul(extent, inner):
            return None
    step = lead[-1][1] if lead else 0
    return operand._replace(shape=(rows, columns), strides=(step, operand.strides[-1]))


def _numbered(tree, numbers):
    """Return a tree with other numbers of its loads."""
    if tree[0] == "load":
        return ("load", numbers[tree[1]])
    return tuple(_numbered(one, numbers) if isinstance(one, tuple) else one for one in tree)
