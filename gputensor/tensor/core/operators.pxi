"""What the operators of Tensor call.

Element-wise operators are calls of call.pxi, without the function of the same name: its parsing of
arguments takes as long as the check of their shapes. The others call functions that are built on
the type, which tensor/operators.py passes to `bind_operators`.
"""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_dict
    void PyType_Modified(PyTypeObject* type)
    PyTypeObject* type_of "Py_TYPE"(PyObject* value)


cdef class Operators:
    """The functions behind the operators of Tensor, one slot each."""

    cdef public object matmul, getitem, setitem, numpy, to_device
    cdef public object represent, text, dlpack, dlpack_device, array_interface, namespace
    cdef public object transpose, matrix_transpose, reduce, copy
    cdef public object matmul_in_place, divmod, any
    cdef public object order            # element-wise calls of complex numbers by their order
    cdef public frozenset ordered       # the codes of such calls


cdef Operators operators = Operators()
operators.ordered = frozenset([row.code for row in ELEMENTWISE if row.public_name in (
    "less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "clip")])


def bind_operators(**functions):
    """Set the functions of the operators. Called once, by tensor/operators.py."""
    for name, function in functions.items():
        setattr(operators, name, function)


def bind_methods(dict functions):
    """Turn functions whose first argument is a Tensor into methods of Tensor."""
    (<dict> (<PyTypeObject*> Tensor).tp_dict).update(functions)
    PyType_Modified(<PyTypeObject*> Tensor)


cdef class Operator:
    """An operator whose function is element-wise, with its row in the table of operations."""

    cdef int op
    cdef int rule
    cdef str name


cdef Operator operator_of(str name):
    cdef Operator made = Operator()
    row = next(row for row in ELEMENTWISE if row.public_name == name)
    made.op, made.rule, made.name = row.code, RULE_NAMES.index(row.rule), name
    return made


cdef list RULE_NAMES = list(RULES)      # in the order of the codes
cdef Operator ABS = operator_of("abs")
cdef Operator ADD = operator_of("add")
cdef Operator BITWISE_AND = operator_of("bitwise_and")
cdef Operator BITWISE_INVERT = operator_of("bitwise_invert")
cdef Operator BITWISE_LEFT_SHIFT = operator_of("bitwise_left_shift")
cdef Operator BITWISE_OR = operator_of("bitwise_or")
cdef Operator BITWISE_RIGHT_SHIFT = operator_of("bitwise_right_shift")
cdef Operator BITWISE_XOR = operator_of("bitwise_xor")
cdef Operator DIVIDE = operator_of("divide")
cdef Operator EQUAL = operator_of("equal")
cdef Operator FLOOR_DIVIDE = operator_of("floor_divide")
cdef Operator GREATER = operator_of("greater")
cdef Operator GREATER_EQUAL = operator_of("greater_equal")
cdef Operator LESS = operator_of("less")
cdef Operator LESS_EQUAL = operator_of("less_equal")
cdef Operator MULTIPLY = operator_of("multiply")
cdef Operator NEGATIVE = operator_of("negative")
cdef Operator NOT_EQUAL = operator_of("not_equal")
cdef Operator POSITIVE = operator_of("positive")
cdef Operator POW = operator_of("pow")
cdef Operator REMAINDER = operator_of("remainder")
cdef Operator SUBTRACT = operator_of("subtract")


cdef inline Tensor of_two(Operator given, object x1, object x2, object out):
    cdef PyObject* values[2]
    values[0], values[1] = <PyObject*> x1, <PyObject*> x2
    return elementwise_of(given.op, given.name, values, 2, out, given.rule)


cdef inline Tensor of_one(Operator given, object x):
    cdef PyObject* value = <PyObject*> x
    return elementwise_of(given.op, given.name, &value, 1, None, given.rule)
