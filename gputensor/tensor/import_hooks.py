"""Runs a function right after the import of another library, which is never imported from here.

einops and Dask look up how to handle an array in tables of their own, which exist only once they
are imported. A finder that finds nothing waits for them; it costs a lookup for each import.
"""

import importlib.util
import sys

__all__ = ["HOOKS", "watch"]

#: A module of another library -> the module here whose `register` takes it.
HOOKS = {
    "einops._backends": "gputensor.tensor.einops_backend",
    "dask.array.backends": "gputensor.tensor.dask_chunks",
}


def registered(name):
    """Register tensors with an imported module."""
    importlib.import_module(HOOKS[name]).register(sys.modules[name])


class Watcher:
    """The finder: it hands the search on to the others, and registers after the import."""

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
    """Register with what is imported already, and wait for the others."""
    for name in HOOKS:
        if name in sys.modules:
            registered(name)
    if not any(type(one).__name__ == "Watcher" and one.__module__ == __name__
               for one in sys.meta_path):  # fmt: skip
        sys.meta_path.insert(0, Watcher())
