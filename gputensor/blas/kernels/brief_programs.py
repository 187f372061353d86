"""The programs of brief products: the definitions before `brief.cuh`."""

import math

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels import row_program
from gputensor.blas.kernels.programs import program_of

__all__ = ["brief", "brief_row_wins", "brief_wins", "fits"]

_CUDA = {row.name: row.cuda for row in DTYPES}
_CODES = {row.name: row.code for row in DTYPES}
# The kernel computes float32 too, but no GPU has measured where it is faster there.
_NBYTES = {"float16": 2, "bfloat16": 2}
# Rows, and the most bytes of weights. In 16-bit floats on an H200 the kernels of before are faster
# from 2048 x 2048 on (two rows), 2304 x 768 (four) and 512 x 784 (eight); for one row, 4096 x 1024
# takes 3.5 us, 3.9 before.
_MOST_WEIGHTS = ((1, 8 << 20), (2, 4 << 20), (4, 2 << 20), (8, 1 << 19))
_MOST_ROW = 8192  # bytes
# A block reads all weights for one row.
_MOST_WHOLE_ROWS, _MOST_COLUMNS, _MOST_ROW_WEIGHTS = 16, 256, 1 << 16  # bytes
_PARTS = ("FUNCTIONS", "TYPES", "DECLARE", "BODY", "RESULT_DECLARE", "RESULT_STEPS", "RESULT_STORE")


def brief_wins(m, n, k, dtype):
    """Return whether this kernel is the fastest for m rows by weights [n, k].

    >>> brief_wins(1, 512, 784, "float16"), brief_wins(1, 8192, 8192, "float16")
    (True, False)
    """
    most = next((most for rows, most in _MOST_WEIGHTS if m <= rows), 0)
    return k > 0 and n * _row_nbytes(k, dtype) <= most and _row_nbytes(k, dtype) <= _MOST_ROW


def brief_row_wins(m, n, k, dtype):
    """Return whether one kernel is faster than two for such a product and a formula of its rows.

    >>> brief_row_wins(1, 10, 512, "float16"), brief_row_wins(1, 1000, 512, "float16")
    (True, False)
    """
    is_small = m <= _MOST_WHOLE_ROWS and n <= _MOST_COLUMNS
    return k > 0 and is_small and n * _row_nbytes(k, dtype) <= _MOST_ROW_WEIGHTS


def _row_nbytes(k, dtype):
    """Return the bytes of a row; infinitely many if no kernel here takes them."""
    nbytes = k * _NBYTES.get(dtype, math.inf)
    return math.inf if nbytes % 16 else nbytes


def fits(formula):
    """Return whether the kernel can compute a formula of the rows of a product.

    It has one result with columns, and reads the product alone; what folds do not read is not there
    when a result is computed.

    Examples
    --------
    >>> from gputensor._kernels.formula import formula
    >>> x = ("load", 0)
    >>> fits(formula([("sub", x, ("fold", "max", x))])), fits(formula([("fold", "max", x)]))
    (True, False)
    """
    places = {"row", "rows"} & {node[0] for node in formula.nodes}
    is_one = formula.loads == 1 and formula.row_results() == (False,)
    return is_one and bool(formula.folds) and not places and row_program.folded_loads(formula) == 1


def _map_text(formula, out):
    names = ("x0", "x1")[: formula.loads]
    codes = (_CODES["float32"],) * formula.loads
    functions, steps, result = row_program.point(formula, codes, names)
    return (
        f"typedef {_CUDA[out]} R0; {functions} __device__ __forceinline__ C finished(C x0, C x1) "
        f"{{ {steps} return {result}; }}"
    )


def _row_parts(formula, out, units):
    variant = {
        "dtypes": (_CODES["float32"], _CODES[out]), "modes": (row_program.UNIT,) * 2, "vector": 1,
        "units": units, "lanes": 32, "rows": 1, "across": 0, "cluster": 1, "loop": 0, "cached": 0,
        "together": 0, "map": 0, "full": 0, "ahead": 0, "fixed": 0, "column_axes": 1,
        "kept_axes": 1, "is_double": False,
    }  # fmt: skip
    known = dict(row_program.program(formula, variant).defines)
    return {name: known[name] for name in _PARTS}


def brief(name, out, formula, *, rows=1, warps=4, together=1, pieces=1, units=0, steady=False):
    """Return the program of brief products for one shape of block.

    Parameters
    ----------
    name, out : str
        Element types of the operands, a 16-bit float or ``"float32"``, and of the result.
    formula : Formula
        Of the product, load 0. With `units`, one that `fits`; else a map, whose load 1, if there
        is one, is the addend.
    rows : int
        Rows of a block, at most 8; 1 with `units`.
    warps, together : int
        A block has `warps` * `together` features at a time.
    pieces : int
        A lane reads `pieces` times 16 bytes of each feature at a time.
    units : int
        Columns of a row for each lane, where a block has whole rows; else 0.
    steady : bool
        Whether weights may be read before earlier work has ended.

    Examples
    --------
    >>> from gputensor._kernels.formula import formula
    >>> made = brief("float16", "float16", formula([("silu", ("load", 0))]), pieces=3)
    >>> ("PIECES", 3) in made.defines, ("HAS_ADDEND", 0) in made.defines
    (True, True)
    """
    defines = {
        "INPUT": _CUDA[name], "ROWS": rows, "WARPS": warps, "TOGETHER": together,
        "PIECES": pieces, "STEADY": int(steady), "WHOLE": int(units > 0),
    }  # fmt: skip
    if units:
        defines |= {"UNITS": units, **_row_parts(formula, out, units)}
    else:
        defines |= {"HAS_ADDEND": int(formula.loads > 1), "FINISH": _map_text(formula, out)}
    return program_of("brief/brief.cuh", defines)
