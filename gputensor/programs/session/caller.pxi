"""Caller: direct calls of a Program. Each call borrows a free session."""


cdef class Caller:
    """The base of Program.

    Attributes
    ----------
    only_name : str or None
        The name of the only function, or None if there are several.
    has_state : bool
        Whether the program can be called only through a session.
    free : list of Session
        Sessions that are not in use.
    is_closed : bool
    """

    cdef public str only_name
    cdef public bint has_state
    cdef public list free
    cdef public bint is_closed

    def call(self, str name, tuple args, dict kwargs):
        """Call a function by its name, in a free session."""
        cdef Session session
        if self.has_state:
            raise argument_error(TypeError, name, Described("a call without a session"),
                                 "a call of session(), because the program has state")
        session = self.borrow()
        try:
            return session.call(name, args, kwargs)
        finally:
            if self.is_closed:
                session.close()
            else:
                self.free.append(session)

    def __call__(self, *args, **kwargs):
        return self.call(self.only(), args, kwargs)

    cdef str only(self):
        """Return the name of the only function; TypeError if there are several."""
        if self.only_name is None:
            raise argument_error(TypeError, "program", Described("a call of the program itself"),
                                 f"one of its functions: {', '.join(self.functions)}")
        return self.only_name

    cdef Session borrow(self):
        """Return a free session that last ran on the current stream, or any other, or a new one."""
        cdef Session session
        cdef Py_ssize_t i
        for i in range(len(self.free) - 1, -1, -1):
            session = <Session>self.free[i]
            if session.last_stream == current_handle(session.device):
                return self.free.pop(i)
        return self.free.pop() if self.free else self.session()
