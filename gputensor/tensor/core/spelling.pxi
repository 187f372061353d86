"""Functions that also accept another library's keywords: PyTorch's ``dim=`` for ``axis=``.

`spellings` decorates a function whose keywords have other names. `named` adds the names that
another library's parameters have by their position, such as NumPy's ``a`` for the array, and its
options, such as ``order=``. A call without such a keyword is passed on to the function unchanged,
after one comparison for each of its keywords and without an additional frame.

The arguments of such a function whose defaults are True, False or a word are checked first: an
array there is an error that names the argument, before anything is written. So is an array for a
parameter of `_NUMBERS`. A value that is True, False, None or a str costs two comparisons.
"""

cdef extern from *:
    """
    #define gputensor_is_interned(text) (PyUnicode_CHECK_INTERNED(text) != 0)

    static void gputensor_make_callable(PyTypeObject* type, Py_ssize_t offset) {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
        PyType_Modified(type);
    }
    """
    ctypedef object (*vectorcallfunc)(object, PyObject* const*, size_t, PyObject*)
    # The same function: NULL, with an exception set, if it raises.
    ctypedef PyObject* (*uncheckedfunc "vectorcallfunc")(
        object, PyObject* const*, size_t, PyObject*) noexcept
    bint is_interned "gputensor_is_interned"(PyObject* text)
    void make_callable "gputensor_make_callable"(type kind, Py_ssize_t offset)
    vectorcallfunc PyVectorcall_Function(object function)
    object PyObject_Vectorcall(object function, PyObject* const* values, size_t count,
                               PyObject* keywords)
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    bint is_exactly_int "PyLong_CheckExact"(PyObject* value)
    object returned "(PyObject*)"(PyObject* result)     # takes over the reference
    Py_ssize_t PyTuple_GET_SIZE(PyObject* values)
    PyObject* PyTuple_GET_ITEM(PyObject* values, Py_ssize_t i)
    bint PyErr_ExceptionMatches(object kind)
    object PyMethod_New(object function, object instance)


@cython.final
cdef class Spelled:
    """A function with alternative names for some of its keywords; made by `spellings`."""

    cdef vectorcallfunc entry       # the entry of calls: spelled_call
    cdef vectorcallfunc inner       # the function's own entry
    cdef object function
    cdef object theirs              # the function for calls with another library's keyword
    cdef dict words                 # their keyword -> ours
    cdef dict places                # another library's name of a parameter -> its position
    cdef dict options               # another library's option -> the function that provides it
    cdef tuple names                # their keywords, those names and the options
    cdef bint takes_sizes           # several ints in front are one shape
    cdef Py_ssize_t own_count       # the parameters by position, if options may follow them
    cdef Py_ssize_t first_option    # the position of the first of these options
    cdef tuple placed               # the options in the order of their positions
    cdef tuple checked              # names of parameters that take no arrays
    cdef tuple rules                # what each of them takes: one of the three below
    cdef tuple checked_places       # their positions; NO_PLACE for keywords
    cdef Py_ssize_t first_checked   # the lowest of these positions
    cdef object __weakref__

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __getattr__(self, name):
        return getattr(self.function, name)

    def __repr__(self):
        return repr(self.function)

    def __reduce__(self):
        return self.function.__qualname__

    @property
    def __doc__(self):
        return self.function.__doc__

    @property
    def __module__(self):
        return self.function.__module__

    @property
    def __wrapped__(self):
        return self.function

    @property
    def __signature__(self):
        import inspect     # imported only if a signature is inspected

        own = inspect.signature(self.function)
        kind = inspect.Parameter.KEYWORD_ONLY
        others = [inspect.Parameter(name, kind, default=None) for name in self.words]
        return own.replace(parameters=[*own.parameters.values(), *others])

    @property
    def spellings(self):
        """Other libraries' keywords, and the keywords that they mean."""
        return dict(self.words)

    @property
    def positions(self):
        """Other libraries' names of parameters, and the positions of these."""
        return dict(self.places)

    @property
    def further(self):
        """Other libraries' options, and the names of the functions that provide them."""
        return dict(self.options)


cdef enum:
    NO_PLACE = 1 << 20

# What checked parameters take. Flags take ints and None too, which the functions may refuse.
_FLAG, _WORD, _NUMBER = "True or False", "a str", "a number"
# Parameters with a default of True or False that take other values, too.
_OPEN = frozenset(("where", "cov", "optimize", "replacement"))
# Parameters with a default of None that are words.
_WORDS = frozenset(("kind", "activation", "rounding_mode", "data_format", "UPLO"))
# Parameters with a default of None that are flags.
_FLAGS = frozenset(("keepdim", "largest", "unit_diagonal", "upper"))
# Parameters that are numbers if their default is an int or None.
_NUMBERS = frozenset((
    "alpha", "beta", "count", "edge_order", "group_size", "initial", "lbnd", "max", "min", "ord",
    "tol", "trans",
))


cdef object rule_of(str name, object default):
    """Return what a parameter takes, or None if it is not checked."""
    if isinstance(default, bool):
        return None if name in _OPEN else _FLAG
    if default is None and name in _FLAGS:
        return _FLAG
    if isinstance(default, str) or default is None and name in _WORDS:
        return _WORD
    is_number = name in _NUMBERS and (type(default) is int
                                      or default is None and name not in ("min", "max"))
    return _NUMBER if is_number or name == "p" and default in (1, 2) else None


def checked_parameters(function):
    """Return name, position and rule of the parameters of a function that take no arrays.

    >>> def ask(x, kind="quick", *, is_new=False): ...
    >>> checked_parameters(ask)
    [('kind', 1, 'a str'), ('is_new', 1048576, 'True or False')]
    """
    if isinstance(function, Spelled):
        return []
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if not isinstance(function, types.FunctionType):   # compiled functions check their flags
        return []
    names = function.__code__.co_varnames[:function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    given = [(name, len(names) - len(defaults) + i, default)
             for i, (name, default) in enumerate(zip(names[len(names) - len(defaults):], defaults))]
    given += [(name, NO_PLACE, default)
              for name, default in (function.__kwdefaults__ or {}).items()]
    found = [(name, place, rule_of(name, default)) for name, place, default in given]
    return [one for one in found if one[2] is not None]


cdef int value_check(Spelled known, Py_ssize_t i, object name, object value) except -1:
    cdef object rule
    cdef bint is_wrong
    if value is True or value is False or value is None or type(value) is str and (
            known.rules[i] is _WORD):
        return 0
    rule = known.rules[i]
    if rule is _FLAG:
        is_wrong = not isinstance(value, (int, np.bool_, np.integer))
    else:
        is_wrong = isinstance(value, (Tensor, np.ndarray)) and value.ndim > 0
    if is_wrong:
        got = Described("an array") if isinstance(value, np.ndarray) else value
        raise argument_error(TypeError, f"{known.function.__name__}: {name}", got, rule)
    return 0


cdef int arguments_check(Spelled known, PyObject* const* values, Py_ssize_t count,
                         PyObject* keywords) except -1:
    cdef PyObject* keyword
    cdef Py_ssize_t i, j
    if count > known.first_checked:
        for j in range(len(known.checked)):
            if <Py_ssize_t> known.checked_places[j] < count:
                value_check(known, j, known.checked[j],
                            <object> values[<Py_ssize_t> known.checked_places[j]])
    if keywords is NULL:
        return 0
    for i in range(PyTuple_GET_SIZE(keywords)):
        keyword = PyTuple_GET_ITEM(keywords, i)
        for j in range(len(known.checked)):
            if keyword is <PyObject*> known.checked[j] or (
                    not is_interned(keyword) and <object> keyword == known.checked[j]):
                value_check(known, j, known.checked[j], <object> values[count + i])
    return 0


cdef object spelled_call(object self, PyObject* const* values, size_t count, PyObject* keywords):
    cdef PyObject* result = (<uncheckedfunc> tensors_call)(self, values, count, keywords)
    if result is NULL and PyErr_ExceptionMatches(TypeError):
        return call_with_array_like(self, values, PyVectorcall_NARGS(count), keywords)
    return returned(result)     # or raises what is set


# A call whose arguments are tensors.
cdef object tensors_call(object self, PyObject* const* values, size_t count, PyObject* keywords):
    cdef Spelled known = <Spelled> self
    cdef PyObject* keyword
    cdef object name
    cdef Py_ssize_t i
    if known.takes_sizes and PyVectorcall_NARGS(count) > 1 and is_exactly_int(values[1]):
        return call_with_shape(known, values, PyVectorcall_NARGS(count), keywords)
    if PyVectorcall_NARGS(count) > known.own_count:
        if has_placed_options(known, values, PyVectorcall_NARGS(count)):
            return call_with_options(known, values, PyVectorcall_NARGS(count), keywords)
    if known.checked:
        arguments_check(known, values, PyVectorcall_NARGS(count), keywords)
    if keywords is not NULL:
        for i in range(PyTuple_GET_SIZE(keywords)):
            keyword = PyTuple_GET_ITEM(keywords, i)
            for name in known.names:
                if keyword is <PyObject*> name:
                    return respelled_call(known, values, PyVectorcall_NARGS(count),
                                          <tuple> keywords)
            if not is_interned(keyword) and <object> keyword in known.names:
                return respelled_call(known, values, PyVectorcall_NARGS(count),
                                      <tuple> keywords)
    return known.inner(known.function, values, count, keywords)


cdef object respelled_call(Spelled spelled, PyObject* const* values, Py_ssize_t count,
                           tuple keywords):
    cdef object called = spelled.function
    cdef dict given = {}
    cdef dict chosen = {}
    cdef list leading = [<object> values[i] for i in range(count)]
    cdef object code, word, name
    cdef tuple own
    cdef Py_ssize_t i
    if not spelled.words.keys().isdisjoint(keywords):
        called = other_function(spelled)
    code = getattr(called, "__wrapped__", called).__code__
    own = code.co_varnames
    for i in range(len(keywords)):
        word = keywords[i]
        if word in spelled.options:
            chosen[word] = <object> values[count + i]
            continue
        name = spelled.words.get(word, word)
        if word in spelled.places:
            name = own[spelled.places[word]]
        if name in given or name in own[:count] and word is not name:
            got = Described("the argument under two names")
            raise argument_error(TypeError, f"{spelled.function.__name__}: {name}", got,
                                 f"one of {name} and {spelled_as(spelled, own, name)}")
        if word is not name and name in spelled.checked:
            value_check(spelled, spelled.checked.index(name), word,
                        <object> values[count + i])
        given[name] = <object> values[count + i]
    for name in own[count:code.co_posonlyargcount]:
        if name not in given:
            break
        leading.append(given.pop(name))
    for word, provider in spelled.options.items():  # each is around those above it in the table
        if word in chosen:
            called = functools.partial(of_dotted_name(provider), chosen[word], called)
    return called(*leading, **given)


# The function for calls with one of the words.
cdef object other_function(Spelled spelled):
    if isinstance(spelled.theirs, str):
        spelled.theirs = of_dotted_name(spelled.theirs)
    return spelled.theirs


cdef object of_dotted_name(str name):
    module, _, name_there = name.rpartition(".")
    return getattr(importlib.import_module(module), name_there)


cdef object call_with_shape(Spelled spelled, PyObject* const* values, Py_ssize_t count,
                            PyObject* keywords):
    cdef dict given = {}
    cdef Py_ssize_t i
    if keywords is not NULL:
        for i in range(len(<tuple> keywords)):
            given[(<tuple> keywords)[i]] = <object> values[count + i]
    return spelled(tuple([<object> values[i] for i in range(count)]), **given)


cdef bint has_placed_options(Spelled spelled, PyObject* const* values, Py_ssize_t count):
    """Whether arguments behind the parameters may be options.

    An ``order`` must be a word, and ``inplace`` True or False.
    """
    if count - spelled.first_option > len(spelled.placed):
        return False
    if spelled.placed[0] == "inplace":
        return isinstance(<object> values[spelled.first_option], bool)
    return spelled.placed[0] != "order" or isinstance(<object> values[spelled.first_option],
                                                      (str, type(None)))


cdef object call_with_options(Spelled spelled, PyObject* const* values, Py_ssize_t count,
                              PyObject* keywords):
    """Call with options by position as keywords; None is the same as no argument."""
    cdef dict given = {}
    cdef Py_ssize_t i
    cdef object word
    for i in range(spelled.first_option, count):
        given[spelled.placed[i - spelled.first_option]] = <object> values[i]
    if keywords is not NULL:
        for i in range(len(<tuple> keywords)):
            word = (<tuple> keywords)[i]
            if word in given:
                raise argument_error(TypeError, f"{spelled.function.__name__}: {word}",
                                     Described("the argument twice"), "it once")
            given[word] = <object> values[count + i]
    given = {name: value for name, value in given.items()
             if value is not None or name not in spelled.placed}
    return spelled(*[<object> values[i] for i in range(spelled.first_option)], **given)


cdef str spelled_as(Spelled spelled, tuple own, str name):
    return ", ".join([word for word, ours in spelled.words.items() if ours == name]
                     + [word for word, i in spelled.places.items() if own[i] == name != word])


def spellings(theirs=None, /, **words):
    """Return a decorator that accepts the keywords `words` as names for other keywords.

    Parameters
    ----------
    theirs : callable or str, optional
        The function for calls with such keywords, which receives this library's keywords, for when
        the other library's function returns something else. Default: the decorated function. A
        dotted name is imported at the first such call.

    >>> @spellings(dim="axis")
    ... def ask(x, axis=None):
    ...     return x, axis
    >>> ask(1, dim=2), ask(1, axis=2)
    ((1, 2), (1, 2))
    >>> ask(1, 2, dim=2)
    Traceback (most recent call last):
        ...
    TypeError: ask: axis: got the argument under two names; expected one of axis and dim
    """
    return lambda function: spelled(function, theirs, words)


cdef Spelled spelled(object function, object theirs, dict words):
    cdef Spelled result = Spelled.__new__(Spelled)
    result.entry = spelled_call
    result.function = function
    result.inner = PyVectorcall_Function(function)
    if result.inner is NULL:    # a compiled function of any arguments has none
        result.inner = PyObject_Vectorcall
    result.theirs = function if theirs is None else theirs
    result.words = words
    result.places = {}
    result.options = {}
    result.names = tuple([sys.intern(word) for word in words])
    checked = checked_parameters(function)
    result.checked = tuple([sys.intern(name) for name, _, _ in checked])
    result.rules = tuple([rule for _, _, rule in checked])
    result.checked_places = tuple([place for _, place, _ in checked])
    result.own_count = NO_PLACE
    result.first_checked = min(result.checked_places, default=NO_PLACE)
    return result


def named(function, names, options=None, placed="", /):
    """Return the function, which then also accepts keywords for parameters at given positions.

    Parameters
    ----------
    function : callable
        One that `spellings` returned is changed and returned.
    names : str
        The names of the parameters in order: ``_`` for none, ``|`` between several for one.
    options : dict of str, optional
        Further keywords, and the dotted names of the functions that provide them: these are called
        with the value, the function, and the other arguments.
    placed : str, optional
        Options and keywords that may also follow the parameters by position. A number in front is
        the position of the first, if some take the place of parameters in calls with more.

    >>> def ask(x, k, /, axis=None):
    ...     return x, k, axis
    >>> named(ask, "a|input kth")(kth=2, a=1), named(ask, "_ kth")(1, kth=2)
    ((1, 2, None), (1, 2, None))
    """
    cdef Spelled result
    result = function if isinstance(function, Spelled) else spelled(function, None, {})
    for i, several in enumerate(names.split()):
        result.places |= {word: i for word in several.split("|") if word != "_"}
    result.options |= options or {}
    if placed:
        result.own_count = result.first_option = function.__code__.co_argcount
        first, *others = placed.split()
        if first.isdecimal():
            result.first_option = int(first)
        result.placed = tuple(others if first.isdecimal() else [first, *others])
        if result.placed[0] == "inplace":   # before `out`, which is no bool
            result.own_count = result.first_option
    words = [*result.words, *result.places, *result.options]
    result.names = tuple([sys.intern(word) for word in words])
    return result


def sized(function):
    """Decorate a function of a shape: it takes the extents one by one too, and as ``size=``.

    >>> gt.zeros(2, 3, device="host").shape, gt.ones(size=(2,), device="host").shape
    ((2, 3), (2,))
    """
    cdef Spelled result = spelled(function, None, {"size": "shape"})
    result.takes_sizes = True
    return result


cdef void spelled_prepare(Spelled example):
    make_callable(Spelled, <char*> &example.entry - <char*> <PyObject*> example)


spelled_prepare(Spelled.__new__(Spelled))
