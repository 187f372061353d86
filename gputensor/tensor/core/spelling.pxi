"""Functions that also accept another library's keywords: PyTorch's ``dim=`` for ``axis=``.

`spellings` decorates a function whose keywords have other names. `named` adds the names that
another library's parameters have by their position, such as NumPy's ``a`` for the array, and its
options, such as ``order=``. A call without such a keyword is passed on to the function unchanged,
after one comparison for each of its keywords and without an additional frame.
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
    bint is_interned "gputensor_is_interned"(PyObject* text)
    void make_callable "gputensor_make_callable"(type kind, Py_ssize_t offset)
    vectorcallfunc PyVectorcall_Function(object function)
    object PyObject_Vectorcall(object function, PyObject* const* values, size_t count,
                               PyObject* keywords)
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    bint is_exactly_int "PyLong_CheckExact"(PyObject* value)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* values)
    PyObject* PyTuple_GET_ITEM(PyObject* values, Py_ssize_t i)
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


cdef object spelled_call(object self, PyObject* const* values, size_t count, PyObject* keywords):
    cdef Spelled known = <Spelled> self
    cdef PyObject* keyword
    cdef object name
    cdef Py_ssize_t i
    if known.takes_sizes and PyVectorcall_NARGS(count) > 1 and is_exactly_int(values[1]):
        return call_with_shape(known, values, PyVectorcall_NARGS(count), keywords)
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
        given[name] = <object> values[count + i]
    for name in own[count:code.co_posonlyargcount]:
        if name not in given:
            break
        leading.append(given.pop(name))
    for word, value in chosen.items():
        called = functools.partial(of_dotted_name(spelled.options[word]), value, called)
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
    return spelled.function(tuple([<object> values[i] for i in range(count)]), **given)


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
    return result


def named(function, names, options=None, /):
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
