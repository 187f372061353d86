"""Functions of Python modules, which ``gputensor compile`` traces, with errors of one line.

The code of a module is the user's: whatever it raises when it is imported or traced becomes an
InputError that names the line.
"""

import functools
import importlib
import inspect
import os
import sys
import traceback
from contextlib import contextmanager

from gputensor.cli.input_error import InputError
from gputensor.cli.value_text import described
from gputensor.errors import Described, GpuTensorError, argument_error

__all__ = ["ModelFunction"]

LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class ModelFunction:
    """A function of a module; the current folder is searched first.

    Parameters
    ----------
    text : str
        ``package.module:function``.
    name : str, optional
        Its name in the program.
    """

    def __init__(self, text, name=None):
        module, _colon, attribute = text.partition(":")
        rule = "a function of a module"
        self.module, self.folder = None, os.getcwd()
        sys.path.insert(0, self.folder)
        try:
            with self.user_code():
                self.module = importlib.import_module(module)
            found = getattr(self.module, attribute)
        except (InputError, ImportError, AttributeError) as error:
            got = Described(f"{text} ({error})")
            raise argument_error(InputError, "MODEL", got, rule) from None
        finally:
            sys.path.remove(self.folder)
        if not callable(found):
            got = Described(f"{text}, which is {type(found).__name__}")
            raise argument_error(InputError, "MODEL", got, rule)
        self.name = name or getattr(found, "__name__", attribute)
        # Methods, partial functions and other callables have no name that can be set.
        self.function = functools.partial(found)
        self.function.__name__ = self.name  # type: ignore[attr-defined]
        self.weights = getattr(self.module, "weights", None)

    def check_shapes(self, names):
        """Raise InputError unless `names` are those of the arguments that need a shape."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return
        given = [one for one in parameters if one.name not in ("weights", "state")]
        if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in given):
            return
        for name in names:
            if name not in [one.name for one in given]:
                rule = f"one of {', '.join(one.name for one in given) or 'none'}"
                raise argument_error(InputError, "--input_shape", described(name), rule)
        for one in given:
            if one.default is one.empty and one.name not in names:
                got = Described(f"no shape of {one.name}")
                rule = f"the shape of each argument of {self.name}"
                raise argument_error(InputError, "--input_shape", got, rule)

    @contextmanager
    def user_code(self):
        """Make errors that code outside the library raises InputErrors with their line."""
        try:
            yield
        except (GpuTensorError, InputError, ImportError, OSError):
            raise
        except (Exception, SystemExit) as error:
            line, text = self.line_of(error), str(error)
            if not isinstance(error, (TypeError, ValueError)):
                text = f"{type(error).__name__}: {text}" if text else type(error).__name__
            raise InputError(f"{line}: {text}" if line else text) from None

    def line_of(self, error):
        """Return the user's line that raised an error, such as ``"model.py:31"``, or ""."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if self.is_own(frame.filename)]
        return f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""

    def is_own(self, path):
        """Whether a file lies beside the module, or in the current folder."""
        beside = os.path.dirname(getattr(self.module, "__file__", None) or "")
        folders = tuple(os.path.join(one, "") for one in (self.folder, beside) if one)
        # Compiled modules have relative paths.
        return path.startswith(folders) and not path.startswith(os.path.join(LIBRARY, ""))
