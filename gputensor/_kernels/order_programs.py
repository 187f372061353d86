"""The programs of sorting, selection, search, counts, scans and choices by masks (cuda/orders/).

Element types are codes of ``element_types.py``. The files explain the names. A form and five
numbers of at most 12 bits identify a program; numbers that a form does not need are 0.
"""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.order_rules import SCANS
from gputensor._kernels.program import Program

__all__ = ["FORMS", "passes", "program"]

_FOLDER = "gputensor/_kernels/cuda/orders/"
_MOVED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex_t<double>"}
# dtype -> the lowest bit in which keys can differ, if it is not bit 0
_LOW_BITS = {"float16": 13, "bfloat16": 16}
_STEPS = ("COUNTS", "STARTS", "PASS")
_SCAN_FORMS = ("TOTALS", "PREFIXES", "COLUMN", "ROW", "ONE_PASS")
_COUNTS = ("VALUES", "EDGES", "EVEN_EDGES")
_RULES = ("TRUE", "FIRST", "FIRST_NAN", "BITS")


def _keys(dtype):
    element = DTYPES[dtype]
    return [("ELEMENT", element.cuda), ("KEY", "uint64" if element.itemsize == 8 else "uint32")]


def _sort(dtype, tile, is_order, *_):
    return "sort.cuh", [*_keys(dtype), ("TILE", tile), ("IS_ORDER", is_order)]


def _radix(dtype, step, is_order, is_first, is_wide):
    element = DTYPES[dtype]
    low = _LOW_BITS.get(element.name, 0)
    bits = 32 if low else 8 * element.itemsize
    defines = [*_keys(dtype), ("FORM", _STEPS[step]), ("PASSES", -(-(bits - low) // 8))]
    defines += [("LOW", low), ("IS_ORDER", is_order), ("IS_FIRST", is_first)]
    defines.append(("STATE", "uint64" if is_wide else "uint32"))
    defines += zip(("THREADS", "EACH"), radix_tile(dtype), strict=True)
    return "radix.cuh", defines


def _topk(dtype, slots, *_):
    bits = 64 if DTYPES[dtype].itemsize == 8 else 32
    return "topk.cuh", [*_keys(dtype), ("SLOTS", slots), ("KEY_BITS", bits)]


def _search(dtype, *_):
    return "search.cuh", _keys(dtype)


def _count(dtype, form, edge, slots, *_):
    """`slots` in units of 64."""
    defines = [("ELEMENT", DTYPES[dtype].cuda), ("EDGE", DTYPES[edge].cuda)]
    return "count.cuh", [*defines, ("FORM", _COUNTS[form]), ("SLOTS", slots * 64)]


def _identity(op, element):
    """The C++ text of an operation's result for no elements."""
    if op in ("sum", "prod"):
        return f"(int32){int(op == 'prod')}"
    is_lowest = op != "min"
    if element.kind == "float":
        return ("-" if is_lowest else "") + "__int_as_float(0x7f800000)"
    if element.kind == "bool":
        return f"(int32){int(not is_lowest)}"
    limits = np.iinfo(element.numpy)
    if is_lowest and element.itemsize == 8 and limits.min:
        return f"(int64)({limits.min + 1}LL - 1)"
    value = limits.min if is_lowest else limits.max
    return f"({element.cuda}){value}{'LL' if limits.min else 'ULL'}"


def _scan(dtype, form, out, op, *_):
    element = DTYPES[out]
    defines = [("FORM", _SCAN_FORMS[form]), ("INPUT", DTYPES[dtype].cuda)]
    defines += [("OUTPUT", element.cuda), ("ARITHMETIC", element.compute)]
    return "scan.cuh", [*defines, ("OP", op), ("IDENTITY", _identity(SCANS[op], element))]


def _mark(dtype, rule, *_):
    is_bytes = rule == 0 and DTYPES[dtype].kind in ("bool", "int", "uint")
    defines = [("RULE", _RULES[rule]), ("ELEMENT", DTYPES[dtype].cuda)]
    return "mark.cuh", [*defines, ("IS_BYTES", int(is_bytes and DTYPES[dtype].itemsize == 1))]


def _pick(itemsize, is_places, is_wide, rank, *_):
    defines = [("FORM", "PLACES" if is_places else "PICK"), ("ELEMENT", _MOVED[itemsize])]
    return "pick.cuh", [*defines, ("INDEX", "uint64" if is_wide else "uint32"), ("RANK", rank)]


def _add(dtype, index, is_grid, vector, is_wide):
    defines = [("ELEMENT", DTYPES[dtype].cuda), ("INDEX", DTYPES[index].cuda)]
    defines += [("IS_GRID", is_grid), ("VECTOR", vector)]
    return "add.cuh", [*defines, ("WIDE", "uint64" if is_wide else "uint32")]


def _seen(dtype, is_shared, *_):
    return "seen.cuh", [("ELEMENT", DTYPES[dtype].cuda), ("IS_SHARED", is_shared)]


#: In the order of the numbers in orders/launching.pxi.
FORMS = (_sort, _radix, _topk, _search, _count, _scan, _mark, _pick, _add, _seen)


def program(form, *numbers):
    """Return the program of a form and its five numbers.

    >>> ("KEY", "uint64") in program(0, 12, 64, 0, 0, 0).defines
    True
    >>> ("ARITHMETIC", "float") in program(5, 9, 3, 9, 0, 0).defines
    True
    """
    file, defines = FORMS[form](*numbers)
    return Program(_FOLDER + file, tuple(defines))


def radix_tile(dtype):
    """Return the number of threads of a block of radix.cuh, and the number of keys of each.

    >>> radix_tile(12)
    (256, 8)
    """
    return 256, 8 if DTYPES[dtype].itemsize == 8 else 16


def passes(dtype):
    """Return the number of digits of the keys of a dtype.

    >>> passes(11), passes(12), passes(0)
    (4, 8, 1)
    """
    return dict(_radix(dtype, 0, 0, 0, 0)[1])["PASSES"]
