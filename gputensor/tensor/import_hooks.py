"""Runs a function right after the program imports another library; never imports it itself.

einops and Dask look up array types in tables of their own, which exist only after their import. A
finder that finds nothing itself watches for these imports; it costs one lookup for each import.
Where a version of a library has other tables, its import succeeds all the same, with a warning.
"""

import importlib.util
import sys
import warnings

__all__ = ["HOOKS", "watch"]

#: A module of another library -> our module whose `register` is called with it.
HOOKS = {
    "einops._backends": "gputensor.tensor.einops_backend",
    "dask.array.backends": "gputensor.tensor.dask_chunks",
}


def registered(name):
    """Register tensors with an imported module."""
    register = importlib.import_module(HOOKS[name]).register
    try:
        register(sys.modules[name])
    except Exception as error:
        library = name.partition(".")[0]
        version = getattr(sys.modules.get(library), "__version__", "of unknown version")
        text = f"{library} {version} will not recognise tensors: {type(error).__name__}: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class Watcher:
    """The finder: it delegates the search to the other finders, and registers after the import."""

    def __init__(self):
        self.busy = False

    def find_spec(self, name, path=None, target=None):
        if self.busy or name not in HOOKS:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            run = spec.loader.exec_module

            def run_and_register(module):
                run(module)
                registered(name)

            spec.loader.exec_module = run_and_register
        return spec


def watch():
    """Register with libraries that are already imported, and watch for the others."""
    for name in HOOKS:
        if name in sys.modules:
            registered(name)
    if not any(type(one).__name__ == "Watcher" and one.__module__ == __name__
               for one in sys.meta_path):  # fmt: skip
        sys.meta_path.insert(0, Watcher())
