"""Source text of the loops: one for each row of operations.py that the host device compiles.

setup.py runs this before it builds, as tensor/functions/source.py.
"""

__all__ = ["LOOP", "loops_source"]

#: The host function of a row whose C++ expression of floats is compiled for the host device.
LOOP = "loop"
#: Operations that have a loop beside their host function, which takes other dtypes and layouts.
BESIDE = ("add", "sub", "mul", "div", "clip", "relu")
#: Short expressions, which compilers turn into vector instructions.
VECTORS = (*BESIDE, "sigmoid", "silu", "gelu_tanh")


def loops_source(rows):
    """Return the declaration of the table of loops, to be included in the room's module."""
    looped = [row for row in rows if row.host == LOOP or row.name in BESIDE]
    text = [f"GPUTENSOR_EXPRESSION_{row.arity}({row.name}, {row.cuda['float']})" for row in looped]
    text += ["static const LoopRow LOOPS[] = {"]
    for row in looped:
        loop = "vector_loop" if row.name in VECTORS else "loop"
        text.append(f"    GPUTENSOR_ROW({row.name}, {row.arity}, {loop}),")
    text += ["};"]
    lines = ["# Made from gputensor/_kernels/operations.py by setup.py.", "cdef extern from *:"]
    lines += ['    """', "namespace gputensor {", *text, "}", '    """']
    lines += ['    const LoopRow* LOOPS "gputensor::LOOPS"', ""]
    lines += ["cdef enum:", f"    LOOP_COUNT = {len(looped)}", ""]
    return "\n".join(lines)
