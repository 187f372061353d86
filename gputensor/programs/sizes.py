"""Sizes of a call: the function that was traced for them, and the sizes of its dims.

With `at`, a function is traced once for each combination of listed sizes. The resulting functions
have the same name and the same arguments, but different `Function.at`; the shapes of a call select
one.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from gputensor.errors import Described, argument_error
from gputensor.programs import dims, tree

__all__ = ["at_sizes", "choose", "difference", "key_of", "match_sizes", "variants_of"]

MOST_VARIANTS = 256


def key_of(name, at):
    """Return the key of a function in a program: its name, and the sizes that it was traced at.

    >>> key_of("decode", {}), key_of("decode", {"n": 16, "m": 2})
    ('decode', 'decode@n=16,m=2')
    """
    listed = ",".join(f"{dim}={size}" for dim, size in at.items())
    return f"{name}@{listed}" if at else name


def variants_of(functions):
    """Return {name: the functions with that name, in order}."""
    found = {}
    for function in functions.values():
        found.setdefault(function.name, []).append(function)
    return found


# ---- listing


def at_sizes(source, at, is_spec):
    """Return the sources of a function at all combinations of the sizes that `at` has for its dims.

    Parameters
    ----------
    source : Source
    at : dict
        Maps names of dims to lists of sizes.
    is_spec : callable
        Tells whether a part of the arguments is a spec.
    """
    specs, structure = tree.flatten(source.arguments, is_spec)
    known = {dim.name: dim for _path, one in specs for dim in one.dims()}
    listed = {
        name: _listed(name, sizes, known[name]) for name, sizes in at.items() if name in known
    }
    count = 1
    for sizes in listed.values():
        count *= len(sizes)
    if count > MOST_VARIANTS:
        got = Described(f"{count} combinations of sizes")
        raise argument_error(ValueError, "at", got, f"at most {MOST_VARIANTS}")
    found = []
    for sizes in itertools.product(*listed.values()):
        fixed = dict(zip(listed, sizes, strict=True))
        leaves = [replace(one, shape=_fixed(one.shape, fixed)) for _path, one in specs]
        arguments = tree.unflatten(structure, leaves)
        found.append(replace(source, arguments=arguments, at=fixed))
    return found


def _listed(name, sizes, dim):
    where = f"at[{name!r}]"
    if not isinstance(sizes, (list, tuple)) or not sizes:
        raise argument_error(TypeError, where, sizes, "a list of sizes")
    for size in sizes:
        if type(size) is not int or not _is_in(dim, size):
            raise argument_error(ValueError, where, size, _range(dim))
    if len(set(sizes)) != len(sizes):
        raise argument_error(ValueError, where, sizes, "each size once")
    return sizes


def _fixed(shape, sizes):
    return tuple(
        sizes.get(extent.name, extent) if isinstance(extent, dims.Dim) else extent
        for extent in shape
    )


def difference(first, other):
    """Return (name, got, rule) of a difference between two variants beyond sizes, or None."""
    if list(first.at) != list(other.at):
        return "at", list(other.at), list(first.at)
    if set(first.at) & set(other.dims):
        return "at", list(other.at), "no dims of the function"
    for name in ("inputs", "outputs"):
        found, wanted = (
            [(one.path, one.operand.dtype, len(one.operand.shape)) for one in getattr(f, name)]
            for f in (other, first)
        )
        if name == "outputs":  # ranks may depend on sizes
            found, wanted = ([part[:2] for part in parts] for parts in (found, wanted))
        if found != wanted:
            return name, Described("different ones"), f"those at {_shown(first.at)}"
    for name in ("tree", "result"):
        if getattr(first, name) != getattr(other, name):
            return name, Described("another structure"), f"that at {_shown(first.at)}"
    return None


def _shown(at):
    return ", ".join(f"{dim}={size}" for dim, size in at.items()) or "no sizes"


# ---- selection


def choose(functions, shapes):
    """Return the variant that accepts these shapes of inputs, and the sizes of its dims.

    Raises
    ------
    ValueError
        If no variant accepts an extent; the message names the input and the dim.
    """
    left = functions
    if len(functions) > 1:
        for number, shape in enumerate(shapes):
            for axis, extent in enumerate(shape):
                left = _taking(left, number, axis, extent)
    return left[0], match_sizes(left[0], shapes)


def _taking(functions, number, axis, extent):
    """Return the functions that accept an extent; `match_sizes` checks extents that `at` lacks."""
    argument = functions[0].inputs[number]
    if axis >= len(argument.operand.shape):
        return functions
    wanted = [function.inputs[number].operand.shape[axis] for function in functions]
    pairs = zip(functions, wanted, strict=True)
    found = [one for one, size in pairs if type(size) is not int or size == extent]
    if found or len(set(wanted)) == 1:
        return found or functions
    rule = f"one of {', '.join(map(str, dict.fromkeys(wanted)))}"
    for name in functions[0].at:
        if [function.at[name] for function in functions] == wanted:
            rule = f"{name}, {rule}"
    raise argument_error(ValueError, f"{argument.path}.shape[{axis}]", extent, rule)


def match_sizes(function, shapes):
    """Return the sizes of a function's dims for the shapes of its inputs.

    Raises
    ------
    ValueError
        If the function does not accept an extent; the message names the input and the dim.
    """
    sizes, others = {}, []
    for argument, shape in zip(function.inputs, shapes, strict=True):
        wanted = argument.operand.shape
        if len(shape) != len(wanted):
            rule = f"{len(wanted)} dimensions"
            raise argument_error(ValueError, f"{argument.path}.shape", tuple(shape), rule)
        for axis, (extent, integer) in enumerate(zip(shape, wanted, strict=True)):
            where = f"{argument.path}.shape[{axis}]"
            is_dim = type(integer) is tuple and integer[0] == "dim"
            if is_dim and integer[1] not in sizes:
                dim = function.dims[integer[1]]
                if not _is_in(dim, extent):
                    raise argument_error(ValueError, where, extent, _range(dim))
                sizes[dim.name] = extent
            else:
                others.append((where, extent, integer))
    for name in function.dims:
        if name not in sizes:
            got = Described("no input with this dim")
            raise argument_error(ValueError, name, got, "an input with the dim as an extent")
    for where, extent, integer in others:
        if extent != dims.evaluate(integer, sizes):
            rule = dims.text(integer)
            if type(integer) is tuple:
                rule += f" = {dims.evaluate(integer, sizes)}"
            raise argument_error(ValueError, where, extent, rule)
    return sizes


def _is_in(dim, extent):
    return dim.least <= extent <= dim.most and extent % dim.multiple == 0


def _range(dim):
    step = f", a multiple of {dim.multiple}" if dim.multiple > 1 else ""
    return f"{dim.name}, {dim.least} to {dim.most}{step}"
