"""One algorithm of another library, as work that a stream of any device can run.

The function of an engine takes the module (NumPy or CuPy), the attributes, the arrays that it
writes and those that it reads. Both modules have the same names, so one function serves both. It
writes its results into arrays that are there, whose shapes and dtypes the caller knows beforehand.
"""

import functools

import numpy as np

__all__ = ["Engine"]


class Engine:
    """A function of (module, *attributes, *written arrays, *read arrays).

    Attributes
    ----------
    name : str
        The public function's, for messages.
    function : callable
    run : callable
        The function with NumPy: what ``host_call`` queues on a host device.
    """

    __slots__ = ("function", "name", "run")

    def __init__(self, function):
        self.name = function.__name__
        self.function = function
        self.run = functools.partial(function, np)

    def __repr__(self):
        return f"<engine {self.name}>"
