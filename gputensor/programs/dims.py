"""Dims and integers of the form: arithmetic, evaluation, text.

An integer of the form is an int or an expression of dims. `samples.py` finds them from traces.
Arithmetic keeps one normal form: a sum of products of dims and floor divisions, terms of higher
degree first, the constant last. So two integers that are equal as polynomials are equal tuples.
Integers from a file are never normalised: expanding a hostile product could take any amount of
memory. This module does not depend on calls or values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from gputensor.errors import Described, argument_error

__all__ = [
    "LIMIT",
    "Dim",
    "add",
    "divided",
    "ends",
    "evaluate",
    "floordiv",
    "is_expression",
    "mul",
    "names",
    "row_major",
    "simplify",
    "text",
]

#: Integers of the form and all intermediate results are within ±LIMIT.
LIMIT = 2**62
_MAX_TERMS = 1000


@dataclass(frozen=True)
class Dim:
    """A free extent: any multiple of `multiple` from `least` to `most`.

    Parameters
    ----------
    name : str
        A Python identifier. Within one function, equal names stand for the same extent.
    least, most : int
        The range, both ends included, within 1 to 2**40.
    multiple : int
        The extent is always divisible by this.

    Raises
    ------
    TypeError, ValueError
        For arguments of another type or range, and a range without a multiple.

    Examples
    --------
    >>> Dim("batch", 1, 1024)
    Dim(name='batch', least=1, most=1024, multiple=1)
    """

    name: str
    least: int
    most: int
    multiple: int = 1

    def __post_init__(self):
        if not isinstance(self.name, str):
            raise argument_error(TypeError, "name", self.name, "a str")
        if not (self.name.isidentifier() and self.name.isascii() and len(self.name) <= 64):
            rule = "a Python identifier of at most 64 ASCII characters"
            raise argument_error(ValueError, "name", self.name[:80], rule)
        for name in ("least", "most", "multiple"):
            value = getattr(self, name)
            if type(value) is not int:
                raise argument_error(TypeError, name, value, "an int")
            if not 1 <= value <= 2**40:
                raise argument_error(ValueError, name, value, "1 to 2**40")
        if self.least > self.most:
            raise argument_error(ValueError, "most", self.most, f"at least {self.least}")
        if self.low > self.high:
            rule = f"a number with a multiple between {self.least} and {self.most}"
            raise argument_error(ValueError, "multiple", self.multiple, rule)

    @property
    def low(self):
        """The smallest size: a multiple not below `least`."""
        return -(-self.least // self.multiple) * self.multiple

    @property
    def high(self):
        """The largest size: a multiple not above `most`."""
        return self.most // self.multiple * self.multiple

    def check(self, size):
        """Raise `ValueError` unless the dim can have this size."""
        if not self.least <= size <= self.most or size % self.multiple:
            step = f", a multiple of {self.multiple}" if self.multiple > 1 else ""
            raise argument_error(ValueError, self.name, size, f"{self.least} to {self.most}{step}")


def ends(dims):
    """Return the sizes with every dim at its low end, and with every dim at its high end."""
    low = {dim.name: dim.low for dim in dims}
    high = {dim.name: dim.high for dim in dims}
    return [low] if low == high else [low, high]


def is_expression(value):
    """Whether a value is an expression of dims: an integer of the form that is not an int.

    Formulas (_kernels/formula.py) look alike, but end in loads and numbers, not in dims and ints.
    """
    if type(value) is not tuple or not value:
        return False
    if value[0] == "dim":
        return len(value) == 2 and type(value[1]) is str
    return (
        value[0] in ("add", "mul", "floordiv")
        and len(value) == 3
        and all(type(part) is int or is_expression(part) for part in value[1:])
    )


def evaluate(integer, sizes):
    """Return the value of an integer of the form for these sizes (name -> int).

    >>> evaluate(("add", ("mul", 2, ("dim", "n")), 1), {"n": 5})
    11
    """
    if type(integer) is int:
        return integer
    head = integer[0]
    if head == "dim":
        return sizes[integer[1]]
    left, right = evaluate(integer[1], sizes), evaluate(integer[2], sizes)
    if head == "add":
        result = left + right
    elif head == "mul":
        result = left * right
    else:
        result = left // right
    if not -LIMIT <= result <= LIMIT:
        raise argument_error(ValueError, text(integer)[:80], sizes, "a result within ±2**62")
    return result


def names(integer, found=None):
    """Return the set of the names of dims in an integer of the form."""
    found = set() if found is None else found
    if type(integer) is tuple:
        if integer[0] == "dim":
            found.add(integer[1])
        else:
            names(integer[1], found)
            names(integer[2], found)
    return found


# A polynomial is a dict, sorted tuple of atoms -> factor; an atom is a dim or a floor division.
def _polynomial(integer):
    if type(integer) is int:
        return {(): integer} if integer else {}
    head = integer[0]
    if head == "dim":
        return {(integer,): 1}
    left = _polynomial(integer[1])
    if head == "floordiv":
        return _divided(left, integer[2])
    right = _polynomial(integer[2])
    return _sum(left, right) if head == "add" else _product(left, right)


def _sum(left, right):
    total = dict(left)
    for atoms, factor in right.items():
        total[atoms] = total.get(atoms, 0) + factor
    return {atoms: factor for atoms, factor in total.items() if factor}


def _product(left, right):
    total = {}
    for atoms, factor in left.items():
        for others, other in right.items():
            key = tuple(sorted(atoms + others, key=repr))
            total[key] = total.get(key, 0) + factor * other
    if len(total) > _MAX_TERMS:
        got = Described(f"a product of {len(total)} terms")
        raise argument_error(ValueError, "integer", got, f"at most {_MAX_TERMS}")
    return {atoms: factor for atoms, factor in total.items() if factor}


def _divided(over, divisor):
    """Return a polynomial divided by an int, with the quotient of each coefficient moved out."""
    whole = {atoms: factor // divisor for atoms, factor in over.items() if factor // divisor}
    rest = {atoms: factor % divisor for atoms, factor in over.items() if factor % divisor}
    if not any(rest):  # at most a constant below the divisor
        return whole
    atoms = next(atoms for atoms in rest if atoms)
    if rest[atoms] == 1 and len(atoms) == 1 and atoms[0][0] == "floordiv" and len(rest) < 3:
        _head, inner, by = atoms[0]  # (x//b + k)//c is (x + k*b)//(b*c)
        if () in rest or len(rest) == 1:
            inner = _sum(_polynomial(inner), {(): rest[()] * by} if () in rest else {})
            return _sum(whole, _divided(inner, by * divisor))
    return _sum(whole, {(("floordiv", _expression(rest), divisor),): 1})


def _expression(polynomial):
    """The normal form of a polynomial."""
    total = None
    for atoms in sorted(polynomial, key=lambda atoms: (-len(atoms), repr(atoms))):
        term = None
        for atom in atoms:
            term = atom if term is None else ("mul", term, atom)
        factor = polynomial[atoms]
        if term is None:
            term = factor
        elif factor != 1:
            term = ("mul", factor, term)
        total = term if total is None else ("add", total, term)
    return 0 if total is None else total


def simplify(integer):
    """Return the normal form of an integer made by tracing."""
    return integer if type(integer) is int else _expression(_polynomial(integer))


def add(*terms):
    """Return the sum of integers of the form."""
    if all(type(term) is int for term in terms):
        return sum(terms)
    total = {}
    for term in terms:
        total = _sum(total, _polynomial(term))
    return _expression(total)


def mul(*factors):
    """Return the product of integers of the form.

    >>> text(mul(4, add(("dim", "n"), 1), ("dim", "m")))
    '4*m*n + 4*m'
    """
    if all(type(factor) is int for factor in factors):
        return prod(factors)
    total = {(): 1}
    for factor in factors:
        total = _product(total, _polynomial(factor))
    return _expression(total)


def floordiv(integer, divisor):
    """Return an integer of the form divided by a positive int, rounded down."""
    if type(integer) is int:
        return integer // divisor
    return _expression(_divided(_polynomial(integer), divisor))


def divided(integer, divisor):
    """Return an integer of the form divided by an int, or None if there is a remainder."""
    polynomial = _polynomial(integer)
    if any(factor % divisor for factor in polynomial.values()):
        return None
    return _expression({atoms: factor // divisor for atoms, factor in polynomial.items()})


def row_major(shape):
    """Return the strides, in elements, of a contiguous array.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step = mul(step, extent)
    return tuple(reversed(strides))


def text(integer):
    """Return the text of an integer of the form.

    >>> text(("floordiv", ("add", ("dim", "n"), -1), 2))
    '(n - 1)//2'
    """
    if type(integer) is int:
        return str(integer)
    head, left = integer[0], integer[1]
    if head == "dim":
        return left
    right = integer[2]
    if head == "add":
        if type(right) is int and right < 0:
            return f"{text(left)} - {-right}"
        if type(right) is tuple and right[0] == "mul" and type(right[1]) is int and right[1] < 0:
            return f"{text(left)} - {text(('mul', -right[1], right[2]))}"
        second = text(right)
        return f"{text(left)} + ({second})" if second[0] == "-" else f"{text(left)} + {second}"
    if head == "mul" and left in (1, -1):
        return "-"[left:] + _factor(right)
    if head == "mul":
        return f"{_factor(left)}*{_factor(right)}"
    over = f"({text(left)})" if type(left) is tuple and left[0] == "add" else text(left)
    return f"{over}//{_factor(right)}"


def _factor(integer):
    whole = type(integer) is int or integer[0] in ("dim", "mul")
    return text(integer) if whole else f"({text(integer)})"
