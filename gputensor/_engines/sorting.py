"""Sorting: sorted values, the positions that sort, and places of values in sorted ones."""

from gputensor._engines.engine import Engine

__all__ = ["argsort", "searchsorted", "sort"]


@Engine
def sort(module, axis, descending, out, x):
    result = module.sort(x, axis=axis)
    out[...] = module.flip(result, axis) if descending else result


@Engine
def argsort(module, axis, descending, out, x):
    """Equal elements keep their order, in descending order too."""
    if not descending:
        out[...] = module.argsort(x, axis=axis, kind="stable")
        return
    positions = module.argsort(module.flip(x, axis), axis=axis, kind="stable")
    out[...] = x.shape[axis] - 1 - module.flip(positions, axis)


@Engine
def searchsorted(module, side, out, x, values):
    out[...] = module.searchsorted(x, values, side=side)
