"""Numbers and lists of numbers where functions take tensors, as in ``sum([1, 2])`` and ``sum(3)``.

One rule for all functions that `spellings` and `named` return. A function refuses a value that is
no tensor before it writes anything. If the refused value is an argument of the call and a number,
a list, a tuple or a range, the call is made once more with a tensor in its place. So a call
without such arguments pays nothing, and functions do not look for them.
Tensors that a function writes to are not made: `written_argument` refuses them for good.
"""

cdef tuple ARRAY_LIKES = (bool, int, float, complex, list, tuple, range, np.generic)


def refusal(str text, object value):
    """Return the TypeError of a function that needs a tensor in place of `value`.

    >>> refusal("f: x: got int; expected a Tensor", 3).refused
    3
    """
    error = TypeError(text)
    error.refused = value
    return error


# Raises the exception that a call through a C pointer has set.
cdef int raise_set() except -1:
    return -1


cdef object call_with_array_like(object function, PyObject* const* values, Py_ssize_t count,
                                 PyObject* keywords):
    """Make the failed call again with a tensor for the refused argument, or raise its error."""
    cdef dict given = {}
    cdef list leading = [<object> values[i] for i in range(count)]
    cdef object refused
    cdef Py_ssize_t i
    if keywords is not NULL:
        for i in range(PyTuple_GET_SIZE(keywords)):
            given[<object> PyTuple_GET_ITEM(keywords, i)] = <object> values[count + i]
    try:
        raise_set()
    except TypeError as error:
        refused = getattr(error, "refused", error)
        if not isinstance(refused, ARRAY_LIKES) or not replaced(refused, leading, given):
            raise
    return function(*leading, **given)


cdef bint replaced(object refused, list leading, dict given) except -1:
    """Replace the first argument that is the refused value by a tensor."""
    cdef object make = of_dotted_name("gputensor.tensor.interop.arrays.array_like")
    cdef object name, value
    cdef Py_ssize_t i
    for i in range(len(leading)):
        if leading[i] is refused:
            leading[i] = make(refused, [*leading, *given.values()])
            return True
    for name, value in given.items():
        if value is refused:
            given[name] = make(refused, [*leading, *given.values()])
            return True
    return False
