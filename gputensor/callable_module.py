"""Modules that can be called like functions: ``gt.tensor([1])`` and ``gt.device("host")``.

PyTorch has a function `tensor` and a class `device`; here these names are also a package and a
module. Calling such a module does what PyTorch's function or class does.
"""

import sys
import types

__all__ = ["make_callable"]


class CallableModule(types.ModuleType):
    """A module whose call runs a function."""

    def __call__(self, *args, **kwargs):
        return self._called(*args, **kwargs)


def make_callable(module, function):
    """Make a loaded module, given by its name, callable as `function`.

    >>> make_callable("gputensor.callable_module", abs)
    >>> sys.modules["gputensor.callable_module"](-3)
    3
    """
    found = sys.modules[module]
    found.__class__ = CallableModule
    found._called = function
