"""Trees: nested dicts, lists, tuples, named tuples and dataclasses of leaves.

Trees are flattened to leaves and a structure, and rebuilt from these. A structure is plain data and
can be stored in a file. No class is looked up for a file: named tuples and dataclasses of another
process become named tuples with the same name and fields, which have the attributes of both.
"""

from __future__ import annotations

import dataclasses
import functools
import keyword
import math
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, NamedTuple

from gputensor.errors import Described, argument_error
from gputensor.programs.sampling.extents import Extent

__all__ = [
    "Structure", "flatten", "from_json", "kept", "matched", "paths", "to_json", "unflatten",
]  # fmt: skip

MAX_DEPTH = 64
#: Types of values that a tree may contain in addition to leaves; the structure stores them.
_PLAIN = (type(None), bool, int, float, str)
_KEYS = "at most 1024 printable characters or an int within ±2**62"
_SEQUENCES = ("list", "tuple")
_RECORDS = ("namedtuple", "dataclass")


class Structure(NamedTuple):
    """One node of a tree.

    `kind` is "leaf", "plain" (a Python value, stored here), "dict", "list", "tuple", "namedtuple"
    or "dataclass". Equal structures have equal kinds, keys in the same order, names and plain
    values.
    """

    kind: str
    keys: tuple = ()  # of a dict; the field names of a named tuple or dataclass
    parts: tuple = ()
    name: str = ""  # of the class
    value: Any = None  # of a plain node
    make: Any = None  # the class, in the process that flattened the tree

    def __eq__(self, other):
        if not isinstance(other, Structure):
            return NotImplemented
        same = type(self.value) is type(other.value) and repr(self.value) == repr(other.value)
        return same and self[:4] == other[:4]

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((*self[:4], repr(self.value)))


LEAF = Structure("leaf")


def flatten(tree, is_leaf, path=""):
    """Return ([(path, leaf), ...], structure) of a tree.

    Parameters
    ----------
    tree : object
        Leaves, dicts with keys of str or int, lists, tuples, named tuples, dataclasses, and None,
        bool, int, float and str, which the structure stores.
    is_leaf : callable
        Tells whether an object is a leaf.
    path : str
        The path of the tree itself.

    Examples
    --------
    >>> flatten({"layers": [{"q": 1j}]}, lambda part: type(part) is complex)[0]
    [('layers.0.q', 1j)]
    """
    leaves = []
    structure = _flatten(tree, is_leaf, path, leaves, 0)
    paths = [path for path, _leaf in leaves]
    if len(set(paths)) != len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        got = Described(f"two leaves {twice!r}")
        raise argument_error(ValueError, path or "tree", got, "keys that give distinct paths")
    return leaves, structure


def _flatten(tree, is_leaf, path, leaves, depth):
    if is_leaf(tree):
        leaves.append((path, tree))
        return LEAF
    if type(tree) in _PLAIN:
        return Structure("plain", value=tree)
    if type(tree) is Extent:
        return Structure("plain", value=int(tree))
    if depth == MAX_DEPTH:
        got = Described("more nested levels")
        raise argument_error(ValueError, path or "tree", got, f"at most {MAX_DEPTH} levels")
    kind, items = _items(tree, path)
    parts = tuple(
        _flatten(part, is_leaf, joined(path, key), leaves, depth + 1) for key, part in items
    )
    if kind in _SEQUENCES:
        return Structure(kind, (), parts)
    keys = tuple(key for key, _part in items)
    if kind == "dict":
        return Structure(kind, keys, parts)
    return Structure(kind, keys, parts, type(tree).__name__, None, type(tree))


def _items(tree, path):
    """Return (kind, [(key, part), ...]) of a container."""
    if isinstance(tree, Mapping):
        for key in tree:
            if type(key) not in (str, int):
                raise argument_error(TypeError, joined(path, "key"), key, "a str or an int")
            if not _is_key(key):
                got = Described(ascii(key)[:80])
                raise argument_error(ValueError, joined(path, "key"), got, _KEYS)
        return "dict", list(tree.items())
    if isinstance(tree, list):
        return "list", list(enumerate(tree))
    if isinstance(tree, tuple):
        fields = getattr(tree, "_fields", None)
        if fields is None:
            return "tuple", list(enumerate(tree))
        return "namedtuple", list(zip(fields, tree, strict=True))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = dataclasses.fields(tree)
        return "dataclass", [(field.name, getattr(tree, field.name)) for field in fields]
    rule = "a tensor, dict, list, tuple, named tuple, dataclass, or None, bool, int, float or str"
    raise argument_error(TypeError, path or "tree", tree, rule)


def joined(path, key):
    """Return the path of a part.

    >>> joined("layers.0", "q")
    'layers.0.q'
    """
    return f"{path}.{key}" if path else str(key)


def unflatten(structure, leaves):
    """Return the tree of this structure with these leaves, in the order of `flatten`."""
    leaves = iter(leaves)
    tree = _unflatten(structure, leaves)
    if next(leaves, leaves) is not leaves:
        got = Described("more leaves than the structure has")
        raise argument_error(ValueError, "leaves", got, "one for each leaf of the structure")
    return tree


def _unflatten(structure, leaves):
    kind = structure.kind
    if kind == "leaf":
        leaf = next(leaves, leaves)
        if leaf is leaves:
            got = Described("fewer leaves than the structure has")
            raise argument_error(ValueError, "leaves", got, "one for each leaf of the structure")
        return leaf
    if kind == "plain":
        return structure.value
    parts = [_unflatten(part, leaves) for part in structure.parts]
    if kind == "list":
        return parts
    if kind == "tuple":
        return tuple(parts)
    if kind == "dict":
        return dict(zip(structure.keys, parts, strict=True))
    make = structure.make or _stand_in(structure.name, structure.keys)
    if hasattr(make, "_make"):
        return make._make(parts)
    made = object.__new__(make)  # __init__ might take other arguments
    for name, part in zip(structure.keys, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def matched(structure, tree, is_leaf, path=""):
    """Return the leaves of a tree in the order of a structure that was made from another tree.

    Lists match tuples, and named tuples match dataclasses with the same fields; keys of dicts may
    be in any order; plain values must be equal.
    """
    leaves = []
    _match(structure, tree, is_leaf, path, leaves)
    return leaves


def _match(structure, tree, is_leaf, path, leaves):
    kind, where = structure.kind, path or "tree"
    if kind == "leaf":
        if not is_leaf(tree):
            raise argument_error(TypeError, where, tree, "a tensor")
        leaves.append(tree)
        return
    if kind == "plain":
        if type(tree) is not type(structure.value) or repr(tree) != repr(structure.value):
            raise argument_error(ValueError, where, tree, repr(structure.value))
        return
    found, items = ("leaf", ()) if is_leaf(tree) or type(tree) in _PLAIN else _items(tree, where)
    group = next(group for group in (_SEQUENCES, _RECORDS, ("dict",)) if kind in group)
    if found not in group:
        raise argument_error(TypeError, where, tree, f"a {kind}")
    parts = dict(items)
    keys = structure.keys or tuple(range(len(structure.parts)))
    if parts.keys() != set(keys):
        got = Described(
            f"the keys {shown(parts)}" if group != _SEQUENCES else f"{len(parts)} parts"
        )
        rule = shown(keys) if group != _SEQUENCES else str(len(keys))
        raise argument_error(ValueError, where, got, rule)
    for key, part in zip(keys, structure.parts, strict=True):
        _match(part, parts[key], is_leaf, joined(path, key), leaves)


def shown(keys):
    """Return the first few keys as text, for a message."""
    keys = [str(key) for key in keys]
    return ", ".join(keys[:8]) + (", …" if len(keys) > 8 else "")


def paths(structure, path=""):
    """Return the paths of the leaves of a structure."""
    if structure.kind == "leaf":
        return [path]
    keys = structure.keys or range(len(structure.parts))
    found = []
    for key, part in zip(keys, structure.parts, strict=True):
        found += paths(part, joined(path, key))
    return found


def to_json(structure):
    """Return a structure as plain JSON: "leaf", or an object with one key that names its kind."""
    kind = structure.kind
    if kind == "leaf":
        return "leaf"
    if kind == "plain":
        value = structure.value
        strange = type(value) is float and not math.isfinite(value)
        return {"float": repr(value)} if strange else {"plain": value}
    parts = [to_json(part) for part in structure.parts]
    if kind in _SEQUENCES:
        return {kind: parts}
    pairs = [[key, part] for key, part in zip(structure.keys, parts, strict=True)]
    return {kind: pairs} if kind == "dict" else {kind: pairs, "name": structure.name}


def from_json(data, path="tree"):
    """Return the structure of plain JSON, which may come from an untrusted file.

    Raises `ValueError` with the path of a fault.
    """
    return _read(data, path, 0)


def _read(data, path, depth):
    if data == "leaf":
        return LEAF
    if depth > MAX_DEPTH:
        got = Described("more nested levels")
        raise argument_error(ValueError, path, got, f"at most {MAX_DEPTH} levels")
    kinds = ("plain", "float", *_SEQUENCES, "dict", *_RECORDS)
    kind = next((kind for kind in kinds if type(data) is dict and kind in data), None)
    if kind is None:
        got = Described(type(data).__name__)
        raise argument_error(ValueError, path, got, '"leaf" or an object that names a kind of tree')
    held = data[kind]
    path = f"{path}.{kind}"
    if kind == "plain":
        if type(held) not in _PLAIN:
            got = Described(type(held).__name__)
            raise argument_error(ValueError, path, got, "null, a bool, a number or a string")
        return Structure("plain", value=held)
    if kind == "float":
        if held not in ("inf", "-inf", "nan"):
            got = Described(type(held).__name__)
            raise argument_error(ValueError, path, got, '"inf", "-inf" or "nan"')
        return Structure("plain", value=float(held))
    if type(held) is not list:
        raise argument_error(ValueError, path, Described(type(held).__name__), "a list")
    if kind in _SEQUENCES:
        parts = (_read(part, f"{path}[{i}]", depth + 1) for i, part in enumerate(held))
        return Structure(kind, (), tuple(parts))
    keys, parts = [], []
    for i, pair in enumerate(held):
        if type(pair) is not list or len(pair) != 2:
            got = Described(type(pair).__name__)
            raise argument_error(ValueError, f"{path}[{i}]", got, "a list of a key and a tree")
        if not _is_key(pair[0]):
            got = Described(ascii(pair[0])[:80])
            raise argument_error(ValueError, f"{path}[{i}][0]", got, _KEYS)
        keys.append(pair[0])
        parts.append(_read(pair[1], f"{path}[{i}][1]", depth + 1))
    if len(set(keys)) != len(keys):
        raise argument_error(ValueError, path, Described("a key twice"), "each key once")
    if kind == "dict":
        return Structure(kind, tuple(keys), tuple(parts))
    name = data.get("name")
    for word in (name, *keys):
        if not _is_name(word):
            got = Described(ascii(word)[:80])
            raise argument_error(ValueError, path, got, "identifiers without a leading underscore")
    return Structure(kind, tuple(keys), tuple(parts), name)


def _is_key(key):
    if type(key) is int:
        return -(2**62) <= key <= 2**62
    return type(key) is str and len(key) <= 1024 and key.isprintable()


def _is_name(word):
    whole = type(word) is str and len(word) <= 128 and word.isascii() and word.isidentifier()
    return whole and not word.startswith("_") and not keyword.iskeyword(word)


@functools.lru_cache(maxsize=256)
def _stand_in(name, fields):
    """Return a named tuple in place of a class that this process may not have."""
    return namedtuple(name, fields, module=__name__)


def _refuse_change(self, *_arguments, **_named):
    got = Described("a change of its keys or of several values")
    raise argument_error(TypeError, "state", got, "writes to its tensors: state[key][...] = value")


class _KeptDict(dict):
    """A dict whose values may be written to but not replaced. Its copies are plain dicts."""

    def __setitem__(self, key, value):
        _check_kept(key, value, self.get(key))

    def __reduce__(self):
        return dict, (dict(self),)

    __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse_change


class _KeptList(list):
    """A list whose values may be written to but not replaced. Its copies are plain lists."""

    def __setitem__(self, key, value):
        _check_kept(key, value, self[key])

    def __reduce__(self):
        return list, (list(self),)

    __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = _refuse_change
    pop = remove = reverse = sort = _refuse_change


def _check_kept(key, value, old):
    if value is not old:  # the same object follows state["sum"] += x
        rule = f"a write to the tensor: state[{key!r}][...] = value"
        got = Described("another value in its place")
        raise argument_error(TypeError, f"state[{key!r}]", got, rule)


def kept(tree):
    """Return a tree whose dicts and lists refuse to replace their values.

    >>> kept({"a": [1]})["a"][0] = 2
    Traceback (most recent call last):
    ...
    TypeError: state[0]: got another value in its place; expected a write to the tensor: \
state[0][...] = value
    """
    if type(tree) is dict:
        return _KeptDict({key: kept(part) for key, part in tree.items()})
    if type(tree) in (list, tuple):
        return (_KeptList if type(tree) is list else tuple)(map(kept, tree))
    return tree
