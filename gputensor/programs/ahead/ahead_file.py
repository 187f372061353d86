"""Kernels and launch lists in a program's file, and the checks for untrusted files.

``kernel.N.sm_90`` and ``kernel.N.compute_90`` are cubins and PTX, ``launches.N`` the launch lists
of target N, one after another. The JSON under ``ahead`` names them, with their hashes. This module
checks numbers and addresses of launches as far as that is possible without a call; `DeviceLists`
checks them again when a call is bound. Device code cannot be checked.

``steps.N`` contains whole functions at the bound sizes, for callers without Python, and
``condition`` the number of the kernel that sets conditions. They follow from the functions, lists
and kernels, so they are made when a file is written and not read here.
"""

from __future__ import annotations

import hashlib
import json
import re

from gputensor._arrays.safetensors_file import Part
from gputensor._kernels.programs import condition
from gputensor.errors import Described, ProgramError, ProgramFileError, argument_error
from gputensor.programs import dims
from gputensor.programs.ahead.bindings import Ahead, bound_without_device
from gputensor.programs.ahead.code import FileImage, Kernel, Kernels, source_of
from gputensor.programs.ahead.launches import LaunchList
from gputensor.programs.ahead.packed import MOST_NBYTES, packed, unpacked
from gputensor.programs.ahead.sizes import launch_sizes
from gputensor.programs.ahead.steps import fixed_of, steps_of
from gputensor.programs.targets import Target
from gputensor.strict_json import shown

__all__ = ["described", "parts_of", "read_ahead"]

MOST_KERNELS = 1 << 16
MOST_TARGETS = 256
MOST_LISTS = 1 << 20
_HASH = re.compile("[0-9a-f]{64}")
_KEY = re.compile("[0-9a-f]{32}")
_IMAGE = re.compile("(sm|compute)_[0-9]{2,3}")
_ENTRY = re.compile("[A-Za-z_][A-Za-z0-9_]{0,255}")
_LIMITS = {"capability": 1000, "multiprocessors": 1 << 16, "shared_nbytes": 1 << 24}


def parts_of(data, is_packed=True):
    """Return the JSON of the Ahead of a ProgramData, or None, and the parts that it names.

    Parameters
    ----------
    data : ProgramData
    is_packed : bool, optional
        Whether to store zlib streams of entries that zlib makes smaller.
    """
    ahead = data.ahead
    if ahead is None:
        return None, []
    parts, kernels, targets, sizes = [], [], [], {}

    def add(name, content):
        stream = packed(content) if is_packed else None
        if stream is not None:
            sizes[name] = len(content)
        parts.append(_part(name, content if stream is None else stream))

    for number, kernel in enumerate(ahead.kernels.all):
        hashes = {}
        for name, image in kernel.images.items():
            add(f"kernel.{number}.{name}", image.data())
            hashes[name] = image.sha256
        kernels.append({"entry": kernel.entry, "source": kernel.source, "images": hashes})
    for number, (target, lists) in enumerate(ahead.lists.items()):
        content, places = b"", {}
        for key, launches in lists.items():
            made = launches.to_bytes()
            places[key] = [len(content), len(content) + len(made)]
            content += made
        add(f"launches.{number}", content)
        sha256 = hashlib.sha256(content).hexdigest()
        steps, content = _steps(data.functions, lists)
        add(f"steps.{number}", content)
        steps["sha256"] = hashlib.sha256(content).hexdigest()
        targets.append({**target._asdict(), "lists": places, "sha256": sha256, "steps": steps})
    found = {"kernels": kernels, "targets": targets, "description": described(data)}
    if sizes:
        found["packed"] = sizes
    setter = ahead.kernels.by_source.get(source_of(condition()))
    if setter is not None:
        found["condition"] = setter
    return found, parts


def _steps(functions, lists):
    """Return the JSON of all functions at the sizes with lists for a target, and their steps."""
    numbers = {id(launches): at for at, launches in enumerate(lists.values())}
    found, content, fixed = [], b"", {}
    for function in functions.values():
        for sizes in launch_sizes(function):
            try:
                binding = bound_without_device(function, sizes, lists)
            except (ArithmeticError, ValueError) as error:  # such as numbers beyond their dtypes
                raise ProgramError(f"{function.name}: {error}") from None
            if binding is None:
                continue
            made = steps_of(binding, lambda row: numbers[id(row.launches)])
            bound = {"function": function.name, "arena": binding.arena_nbytes}
            bound["inputs"], bound["outputs"] = binding.inputs, binding.outputs
            # Usually the same at all sizes, so it is stored once.
            bound["fixed"] = fixed.setdefault(tuple(fixed_of(binding)), len(fixed))
            bound["steps"] = [len(content), len(content) + len(made)]
            found.append(bound)
            content += made
    return {"fixed": list(fixed), "bindings": found}, content


def described(data):
    """Return the inputs and outputs of a program's functions as JSON text."""
    functions = {}
    for function in data.functions.values():
        functions.setdefault(
            function.name,
            {
                kind: [_argument(one) for one in given]
                for kind, given in (("inputs", function.inputs), ("outputs", function.outputs))
            },
        )
    return json.dumps({"functions": functions})


def _argument(one):
    shape = [extent if type(extent) is int else dims.text(extent) for extent in one.operand.shape]
    return {"name": one.path, "dtype": one.operand.dtype, "shape": shape}


def _part(name, content):
    return Part(name, "U8", (len(content),), len(content), lambda: [content])


def read_ahead(given, file):
    """Return the Ahead of an open file from its JSON, which may be missing.

    Raises
    ------
    ProgramFileError
        If the JSON is invalid, or does not match the entries of the file.
    """
    if given is None:
        return None
    _check(isinstance(given, dict), "ahead", given, "kernels and targets")
    kernels = given.get("kernels")
    targets = given.get("targets")
    _check(_is_list(kernels, MOST_KERNELS), "ahead.kernels", kernels, f"at most {MOST_KERNELS}")
    _check(_is_list(targets, MOST_TARGETS), "ahead.targets", targets, f"at most {MOST_TARGETS}")
    sizes = given.get("packed", {})
    _check(isinstance(sizes, dict), "ahead.packed", sizes, "sizes of entries")
    for name, nbytes in sizes.items():
        is_size = type(nbytes) is int and 0 < nbytes <= MOST_NBYTES
        _check(is_size, f"ahead.packed.{shown(name)}", nbytes, f"1 to {MOST_NBYTES}")
    found = Ahead(Kernels(_kernel(file, sizes, *one) for one in enumerate(kernels)))
    for number, target in enumerate(targets):
        made, lists = _target(file, sizes, number, target, len(kernels))
        found.lists[made] = lists
    return found


def _is_list(value, most):
    return isinstance(value, list) and len(value) <= most


def _check(is_right, where, got, rule):
    if not is_right:
        raise argument_error(ProgramFileError, where, Described(shown(got)), rule)


def _is_text(value, pattern):
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _content(file, name):
    entry = file.entries.get(name)
    _check(entry is not None and entry.type == "U8", name, entry, "an entry of U8")
    return file.data(name)


def _kernel(file, sizes, number, given):
    where = f"ahead.kernels[{number}]"
    _check(isinstance(given, dict), where, given, "a kernel")
    entry, source, images = (given.get(name) for name in ("entry", "source", "images"))
    _check(_is_text(entry, _ENTRY), f"{where}.entry", entry, "the name of a function")
    _check(_is_text(source, _HASH), f"{where}.source", source, "64 hex digits")
    _check(isinstance(images, dict), f"{where}.images", images, "hashes by architecture")
    made = Kernel(entry, source)
    for name, sha256 in images.items():
        _check(_is_text(name, _IMAGE), f"{where}.images", name, "sm_N or compute_N")
        _check(_is_text(sha256, _HASH), f"{where}.images", sha256, "64 hex digits")
        part = f"kernel.{number}.{name}"
        made.images[name] = FileImage(part, _content(file, part), sha256, sizes.get(part))
    return made


def _target(file, sizes, number, given, kernel_count):
    where = f"ahead.targets[{number}]"
    _check(isinstance(given, dict), where, given, "a target")
    for name, most in _LIMITS.items():
        value = given.get(name)
        _check(type(value) is int and 0 < value <= most, f"{where}.{name}", value, f"1 to {most}")
    has_ptx = given.get("has_ptx", False)
    _check(type(has_ptx) is bool, f"{where}.has_ptx", has_ptx, "true or false")
    places = given.get("lists")
    is_table = isinstance(places, dict) and len(places) <= MOST_LISTS
    _check(is_table, f"{where}.lists", places, f"at most {MOST_LISTS}")
    part = f"launches.{number}"
    content = unpacked(part, _content(file, part), sizes.get(part))
    found = hashlib.sha256(content).hexdigest()
    _check(found == given.get("sha256"), part, found, "the SHA-256 of the program")
    lists = {}
    for key, place in places.items():
        _check(_is_text(key, _KEY), f"{where}.lists", key, "32 hex digits")
        is_pair = isinstance(place, list) and [type(part) for part in place] == [int, int]
        is_inside = is_pair and 0 <= place[0] <= place[1] <= len(content)
        _check(is_inside, f"{where}.lists.{key}", place, f"bytes of {len(content)}")
        made = LaunchList.from_bytes(content[place[0] : place[1]])
        is_sound = made is not None and made.check(kernel_count, None)
        _check(is_sound, part, key, "launches with numbers valid for a GPU")
        lists[key] = made
    return Target(*(given[name] for name in _LIMITS), has_ptx), lists
