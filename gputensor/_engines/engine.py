"""One algorithm of another library, as work that a stream of any device can run.

The function of an engine takes the module (NumPy or CuPy), the attributes, the arrays that it
writes and those that it reads. Both modules have the same names, so one function serves both. It
writes its results into existing arrays, whose shapes and dtypes the caller knows beforehand.
"""

import functools

import numpy as np

__all__ = ["Engine"]


class Engine:
    """A function of (module, *attributes, *written arrays, *read arrays).

    Attributes
    ----------
    name : str
    function : callable
    run : callable
        The function bound to NumPy; ``host_call`` queues it on a host device.
    is_call : bool
        Whether it is a call of the registry (_kernels/calls.py), which traces record.
    """

    __slots__ = ("function", "is_call", "name", "run")

    def __init__(self, function, is_call=False):
        self.name = function.__name__
        self.function = function
        self.run = functools.partial(function, np)
        self.is_call = is_call

    @classmethod
    def of_call(cls, function):
        """Return the engine of the registry's call with the function's name; a decorator."""
        return cls(function, True)

    def title(self, attributes):
        """Return the public function's name for messages; some calls serve several functions.

        >>> Engine.of_call(lambda module, what, out, x: None).title(("eigh_l",))
        'eigh'
        """
        is_word = self.is_call and attributes and isinstance(attributes[0], str)
        return attributes[0].partition("_")[0] if is_word else self.name

    def __repr__(self):
        return f"<engine {self.name}>"
