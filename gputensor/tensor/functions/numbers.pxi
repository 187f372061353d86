"""Element-wise functions of numbers only: NumPy's scalars, computed without a device."""

ufunc_methods = None    # set by find_ufunc_methods_with
layouts = None          # set by find_layouts_with
UFUNC_OPTIONS = ("out", "where", "dtype", "order", "casting")
NUMPY_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "pow": "power",
}


cpdef object of_numbers(str name, tuple arguments, dict keywords={}):
    """Return NumPy's scalar; None if it has no such function or an argument is not a number."""
    cdef object function = getattr(np, NUMPY_NAMES.get(name, name), None)
    if function is None or not arguments:
        return None
    for value in arguments:
        if number_kind(value) < 0:
            return None
    try:
        with np.errstate(all="ignore"):     # tensors do not warn of values either
            result = function(*arguments, **keywords)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None
    return result[()] if isinstance(result, np.ndarray) else result


cdef object of_other(int op, str name, tuple arguments, object out, int rule):
    """Return NumPy's scalar if a call has numbers only; otherwise the tensor, or raise."""
    cdef object result
    if out is None:
        if rule == RULE_FLOAT and type(arguments[0]) in (bool, int):
            arguments = (float(arguments[0]), *arguments[1:])
        result = of_numbers(name, arguments)
        if result is not None:
            return result
    return elementwise_tensor(op, name, arguments, out, rule)


cdef object scaled(str name, object x, object factor):
    if type(x) is Tensor:
        return elementwise_tensor(OP_MUL, name, (x, factor), None, RULE_SAME)
    return of_other(OP_MUL, name, (x, factor), None, RULE_SAME)


cdef bint is_unusual(object order, object casting, object dtype):
    """Whether NumPy's options ask for more than a row-major result and the usual conversions."""
    if order is not None and order != "C":
        return True
    return casting is not None and (casting != "same_kind" or dtype is not None)


cdef object laid_out(object function, tuple arguments, object out, object mask, object dtype,
                     object order, object casting):
    return layouts()(function, arguments, out, mask, dtype, order, casting)


cpdef object merged(object result, object out, object mask):
    """Return a result where a mask is true, and elsewhere `out`, which is overwritten, or 0."""
    if out is None:
        return where(mask, result, 0)
    return where(mask, result, out, out=out)


cdef object in_dtype(object function, tuple arguments, object out, object mask, object dtype,
                     int rule):
    """Compute a function of arguments converted to a dtype, which must be that of the result."""
    cdef str name = function.__name__
    cdef int code = dtype_argument(dtype, 0), kind = dtype_kind(code)
    cdef Tensor one
    cdef list inputs = []
    kinds = [type(value) for value in arguments]
    if list in kinds or tuple in kinds:
        arguments = without_lists(arguments)
    if Tensor not in [type(value) for value in arguments]:
        arguments = tuple([DTYPES[code].numpy.type(value) for value in arguments])
    for value in arguments:
        if type(value) is Tensor and rule not in (RULE_COMPARE, RULE_CLASSIFY, RULE_LOGICAL):
            one = value
            if dtype_kind(one.dtype_code) == KIND_COMPLEX and kind != KIND_COMPLEX:
                raise argument_error(TypeError, f"{name}: dtype", Described(DTYPES[code].name),
                                     "a complex dtype, as that of an argument")
            value = value if one.dtype_code == code else copied(one, code)
        inputs.append(value)
    result = function(*inputs)
    if result.dtype != DTYPES[code].numpy:
        raise argument_error(TypeError, f"{name}: dtype", Described(DTYPES[code].name),
                             f"one in which it has a result; here it is {result.dtype}")
    if out is None and mask is True:
        return result
    return merged(result, out, mask)


def add_ufunc_methods(function, name):
    """Give a function the counts of NumPy's ufunc of its name; one of two tensors, the methods."""
    ufunc = getattr(np, NUMPY_NAMES.get(name, name), None)
    if not isinstance(ufunc, np.ufunc):
        return
    for fact in ("identity", "nargs", "nin", "nout"):
        setattr(function, fact, getattr(ufunc, fact))
    if ufunc.nin == 2 and ufunc.signature is None:
        for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
            setattr(function, method, functools.partial(ufunc_method, name, method))


def find_ufunc_methods_with(find):
    """Set the function that computes methods of ufuncs; called once, by the package."""
    global ufunc_methods
    ufunc_methods = find


def find_layouts_with(find):
    """Set the function that provides ``order`` and ``casting``; called once, by the package."""
    global layouts
    layouts = find


def ufunc_method(name, method, /, *inputs, **keywords):
    return ufunc_methods()(name, method, *inputs, **keywords)


cdef object with_options(object function, tuple arguments, dict keywords, bint has_several):
    """Compute a composed function with the options of NumPy's ufuncs, such as `out`."""
    cdef str name = function.__name__
    cdef object out = keywords.pop("out", None)
    cdef object mask = keywords.pop("where", True)
    cdef object dtype = keywords.pop("dtype", None)
    cdef object order = keywords.pop("order", None)
    cdef object casting = keywords.pop("casting", None)
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if (order is not None or casting is not None) and is_unusual(order, casting, dtype):
        if keywords:
            function = functools.wraps(function)(functools.partial(function, **keywords))
        return laid_out(function, arguments, out, mask, dtype, order, casting)
    if dtype is not None and has_several:
        arguments = tuple([copied(one, dtype_argument(dtype, 0)) if type(one) is Tensor else one
                           for one in arguments])
        dtype = None
    if dtype is not None and not keywords:
        result = in_dtype(function, arguments, None, True, dtype, RULE_SAME)
    else:
        result = function(*arguments, **keywords)
    if not isinstance(result, tuple):
        return written(name, result, out, mask)
    outs = (None,) * len(result) if out is None else out
    if not isinstance(outs, tuple) or len(outs) != len(result):
        raise argument_error(TypeError, f"{name}: out", out, f"a tuple of {len(result)} tensors")
    found = [written(name, one, to, mask) for one, to in zip(result, outs)]
    return tuple(found)


cdef object written(str name, object result, object out, object mask):
    """Return `out` with the result in it where the mask is true; without `out` a new tensor."""
    if out is None:
        return result if mask is True else merged(result, None, mask)
    written_argument(out, name)
    if type(result) is not Tensor:          # of numbers only
        result = positive(out, dtype=out.dtype) * 0 + result
    if mask is not True:
        return merged(result, out, mask)
    copy_into(out_argument(out, result, result.shape, result.dtype, name), result)
    return out


def numbers_too(function):
    """Let a composed element-wise function take lists, and return NumPy's scalar for numbers.

    If NumPy has a ufunc of its name, it also takes ``out``, which may follow the operands,
    ``where``, ``dtype``, ``order`` and ``casting``, as the functions of the table of operations do.

    >>> numbers_too(lambda x: x)(2.0)    # NumPy has no such function
    2.0
    """
    name = function.__name__
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    operands = getattr(code, "co_posonlyargcount", 0)
    ufunc = getattr(np, "rint" if name == "round" else name, None)
    results = ufunc.nout if isinstance(ufunc, np.ufunc) else 0
    own = frozenset(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if code else ())
    options = frozenset(UFUNC_OPTIONS) if results else frozenset()
    further = options - own

    @functools.wraps(function)
    def call(*arguments, **keywords):
        if "out" in further and len(arguments) == operands + results:
            keywords["out"] = arguments[operands:]
            arguments = arguments[:operands]
        if keywords and not further.isdisjoint(keywords):
            if "out" in own and len(arguments) == operands + 1:
                keywords["out"] = arguments[operands]
                arguments = arguments[:operands]
            return with_options(call, arguments, keywords, results > 1)
        if arguments and type(arguments[0]) is not Tensor and not [
                value for value in keywords.values() if type(value) not in (bool, int, float)]:
            result = of_numbers(name, arguments, keywords)
            if result is not None:
                return result
        for i, value in enumerate(arguments[:operands], 1):
            if type(value) is not Tensor and number_kind(value) < 0:
                if type(value) in (list, tuple):
                    given = without_lists(arguments[:operands])
                    return call(*given, *arguments[operands:], **keywords)
                raise argument_error(
                    TypeError, f"{name}: argument {i}", Described(type_name(value)),
                    "a Tensor or a number (asarray makes a Tensor of an array)")
        return function(*arguments, **keywords)

    add_ufunc_methods(call, name)
    return call
