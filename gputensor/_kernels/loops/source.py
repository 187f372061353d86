"""Source text of the loops: one for each row of operations.py that the host device compiles.

setup.py runs this before it builds, as tensor/functions/source.py.
"""

__all__ = ["LOOP", "loops_source"]

#: The host function of a row whose C++ expression of floats is compiled for the host device.
LOOP = "loop"
#: Operations that have a loop beside their host function, which takes other dtypes and layouts.
BESIDE = ("add", "sub", "mul", "div", "clip", "relu", "neg", "abs", "square")
#: Short expressions, which compilers turn into vector instructions.
VECTORS = (*BESIDE, "sigmoid", "silu", "gelu_tanh", "binary_fraction", "binary_exponent")
#: Operations whose loops take integers, too: those that wrap, as unsigned numbers; those that
#: compare, as they are.
WRAPPING = ("add", "sub", "mul", "neg", "and", "or", "xor", "not", "lshift")
COMPARING = ("maximum", "minimum", "clip", "rshift")
#: Operations of floats with loops of their own (divisions.h), in place of their expressions.
DIVIDING = {"floordiv": "FloorDivision", "mod": "Modulo"}
#: The loops of tests by rule: of which operands.
TESTS = {
    "compare": ("float", "double", "int32_t", "int64_t", None),
    "classify": ("float", "double", None, None, None),
    "logical": (None, None, None, None, "Truth"),
}
WORDS = ("uint32_t", "uint64_t", "uint32_t", "uint64_t", "uint8_t")


def loops_source(rows):
    """Return the declaration of the table of loops, to be included in the room's module."""
    looped = [row for row in rows if _is_looped(row)]
    has_own = ("where", *DIVIDING)
    text = [_expression(row) for row in looped if row.name not in has_own]
    text += ["static const LoopRow LOOPS[] = {"]
    for row in looped:
        facts = f'"{row.name}", {row.arity}, {int(row.rule in TESTS)}, {int(_has_ufunc(row))}'
        text.append(f"    {{{facts}, {{{', '.join(one or '0' for one in _loops(row))}}}}},")
    text += ["};"]
    lines = ["# Made from gputensor/_kernels/operations.py by setup.py.", "cdef extern from *:"]
    lines += [
        '    """',
        '#include "gputensor/_kernels/loops/divisions.h"',
        "namespace gputensor {",
        *text,
        "}",
        '    """',
    ]
    lines += ['    const LoopRow* LOOPS "gputensor::LOOPS"', ""]
    lines += ["cdef enum:", f"    LOOP_COUNT = {len(looped)}", ""]
    return "\n".join(lines)


def _is_looped(row):
    is_beside = row.name in (*BESIDE, *WRAPPING, *COMPARING, *DIVIDING, "where")
    return row.host == LOOP or row.rule in TESTS or is_beside


def _has_ufunc(row):
    return row.host.startswith("np.") and row.name not in ("where", *DIVIDING)


def _expression(row):
    kind = "bool" if row.rule == "logical" else "int" if row.rule == "bits" else "float"
    word = "TEST" if row.rule in TESTS else "EXPRESSION"
    return f"GPUTENSOR_{word}_{row.arity}({row.name}, {row.cuda[kind]})"


def _loops(row):
    """Return the loops of a row for each LoopType."""
    if row.name == "where":
        return [f"where_loop<{word}>" for word in WORDS]
    if row.name in DIVIDING:
        floats = [f"division_loop<{DIVIDING[row.name]}, {one}>" for one in ("float", "double")]
        return [*floats, None, None, None]
    vector = f"vector_loop_{row.arity}<Loop_{row.name}"
    if row.rule in TESTS:
        return [one and f"{vector}, {one}, bool>" for one in TESTS[row.rule]]
    loop = (
        vector if row.name in (*VECTORS, *WRAPPING, *COMPARING) else vector.removeprefix("vector_")
    )
    has_floats = row.host == LOOP or row.name in BESIDE
    types = ["float", "double"] if has_floats else [None, None]
    signed = ("int32_t", "int64_t")
    types += WORDS[:2] if row.name in WRAPPING else signed if row.name in COMPARING else [None] * 2
    return [*(one and f"{loop}, {one}>" for one in types), None]
