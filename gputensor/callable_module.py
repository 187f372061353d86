"""Modules that are functions too: ``gt.tensor([1])`` and ``gt.device("host")``.

The package of tensors and the module of devices have the names that users know from PyTorch for a
function and for a class. Both meanings hold.
"""

import sys
import types

__all__ = ["make_callable"]


class CallableModule(types.ModuleType):
    """A module with a function that stands behind its own call."""

    def __call__(self, *args, **kwargs):
        return self._called(*args, **kwargs)


def make_callable(module, function):
    """Let a loaded module, given by its name, be called as `function`.

    >>> make_callable("gputensor.callable_module", abs)
    >>> sys.modules["gputensor.callable_module"](-3)
    3
    """
    found = sys.modules[module]
    found.__class__ = CallableModule
    found._called = function
