"""Source text of the loops: one for each row of operations.py that the host device compiles.

setup.py runs this before it builds, as tensor/functions/source.py.
"""

__all__ = ["LOOP", "loops_source"]

#: The host function of a row whose C++ expression of floats is compiled for the host device.
LOOP = "loop"
#: Operations of NumPy that have a loop as well, for short arrays.
SHORT = ("add", "sub", "mul", "div")


def loops_source(rows):
    """Return the declaration of the table of loops, to be included in the room's module."""
    looped = [row for row in rows if row.host == LOOP or row.name in SHORT]
    text = [f"GPUTENSOR_LOOP_{row.arity}({row.name}, {row.cuda['float']})" for row in looped]
    text += ["static const LoopRow LOOPS[] = {"]
    text += [f"    GPUTENSOR_ROW_{row.arity}({row.name})," for row in looped]
    text += ["};"]
    lines = ["# Made from gputensor/_kernels/operations.py by setup.py.", "cdef extern from *:"]
    lines += ['    """', "namespace gputensor {", *text, "}", '    """']
    lines += ['    const LoopRow* LOOPS "gputensor::LOOPS"', ""]
    lines += ["cdef enum:", f"    LOOP_COUNT = {len(looped)}", ""]
    return "\n".join(lines)
