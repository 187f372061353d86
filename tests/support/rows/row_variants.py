"""Variants of row formulas, for kernel_variants.py."""

import itertools

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels import row_program
from gputensor._kernels.formula import formula

CODES = (9, 10, 11, 12)
BITS = (0, 1)
#: A part of each variant of a row formula, and ways to read rows.
PLAIN = {"rows": 4, "lanes": 64, "across": 0, "cluster": 1, "loop": 0, "cached": 0, "map": 0,
         "together": 0, "ahead": 0, "fixed": 0, "column_axes": 1}  # fmt: skip
FORMS = ({}, {"loop": 1}, {"across": 1}, {"across": 1, "loop": 1},
         {"cluster": 4, "lanes": 1024, "rows": 1},
         {"cluster": 16, "lanes": 512, "rows": 1, "ahead": 1})  # fmt: skip
CACHED = ({"together": 1}, {"loop": 1, "rows": 1, "cached": 2},
          {"loop": 1, "rows": 1, "cached": 10})  # fmt: skip


def maps():
    """A chain of steps on three operands with two results."""
    x, y = ("load", 0), ("add", ("mul", ("load", 0), ("load", 1)), ("load", 2))
    made = formula([("tanh", y), ("where", ("gt", x, ("number", 0)), x, y)])
    for code, is_unit, kept, units in itertools.product(CODES, BITS, (0, 2), (1, 4)):
        mode = row_program.UNIT if is_unit else row_program.STRIDED
        yield row_program.program(made, PLAIN | {
            "dtypes": (code,) * 5, "modes": (mode, row_program.CONSTANT, mode, mode, mode),
            "vector": 2 if is_unit else 1, "units": units, "map": 1,
            "full": int(units == 1), "kept_axes": kept, "is_double": code == 12,
        })  # fmt: skip


def rows(*forms):
    """A softmax, and a norm with a weight, by each of the forms that suits a layout."""
    x, mean = ("load", 0), ("fold", "mean", ("load", 0))
    powers = ("exp", ("sub", x, ("fold", "max", x)))
    away = ("sub", x, mean)
    norm = ("mul", ("mul", away, ("rsqrt", ("fold", "mean", ("mul", away, away)))), ("load", 1))
    trees = [[("div", powers, ("fold", "sum", powers))], [norm, mean]]
    for form, made, code, (columns, kept), is_full in itertools.product(
        forms, map(formula, trees), CODES, ((1, 1), (2, 3)), BITS
    ):
        form = PLAIN | form
        count = made.loads + len(made.results)
        is_unit = columns == 1 and not form["across"]
        if not is_unit and (form["ahead"] or form["cached"]):
            continue
        modes = [row_program.UNIT if is_unit else row_program.STRIDED] * count
        modes[-1] = row_program.CONSTANT if made.row_results()[-1] else modes[-1]
        yield row_program.program(made, form | {
            "dtypes": (code,) * count, "modes": modes,
            "vector": 16 // DTYPES[code].itemsize if is_unit else 1, "units": 4,
            "full": int(is_full and (form["cached"] or not form["loop"])),
            "column_axes": columns, "kept_axes": kept, "is_double": code == 12,
        })  # fmt: skip
