"""Every example in the docstrings of the tensor package is true."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import gputensor as gt
import gputensor.tensor

PREFIX = "gputensor.tensor."
MODULES = sorted(
    module.name.removeprefix(PREFIX)
    for module in pkgutil.walk_packages(gputensor.tensor.__path__, PREFIX)
)


def examples(module):
    """(name, docstring) of the module, its functions and its classes."""
    yield module.__name__, module.__doc__
    for name, value in sorted(vars(module).items()):
        if getattr(value, "__module__", None) == module.__name__ and callable(value):
            yield name, value.__doc__
            if isinstance(value, type):
                for method, body in vars(value).items():
                    if getattr(body, "__module__", module.__name__) == module.__name__:
                        yield f"{name}.{method}", getattr(body, "__doc__", None)


@pytest.mark.parametrize("name", [*MODULES, ""])
def test_examples_are_true(name):
    module = importlib.import_module(PREFIX + name) if name else gt
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    with gt.Device("host"):
        for title, text in examples(module):
            if isinstance(text, str) and ">>>" in text:
                names = {**vars(module), "gt": gt, "np": np}
                report = []
                runner.run(
                    parser.get_doctest(text, names, title, module.__file__, 0), out=report.append
                )
                assert not report, "".join(report)
