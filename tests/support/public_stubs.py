"""The stubs that are made from tables: of the package, and of the methods of Tensor.

``python -m tests.support.public_stubs`` writes them, formatted by ruff; a test compares them with
the tables.
"""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import gputensor as gt
from gputensor.tensor import methods

ROOT = Path(gt.__file__).parent
PACKAGE = ROOT / "__init__.pyi"
METHODS = ROOT / "tensor" / "methods.pyi"
CONSTANTS = """
e: builtins.float
inf: builtins.float
nan: builtins.float
pi: builtins.float
newaxis: None
channels_last: builtins.str
channels_last_3d: builtins.str
contiguous_format: builtins.str
preserve_format: builtins.str
__array_api_version__: str
__version__: str

def __array_namespace_info__() -> object: ...
"""
#: Results of functions with spellings that are not one tensor: the type says which parts they have.
RESULTS = {
    **dict.fromkeys("array_split chunk split".split(), "list[Tensor]"),
    **dict.fromkeys("std_mean var_mean".split(), "tuple[Tensor, Tensor]"),
    "unstack": "tuple[Tensor, ...]",
    # Tuples with names, or a tensor or a tuple by their arguments.
    **dict.fromkeys(
        "cummax cummin gradient kthvalue median mode nanmedian qr slogdet sort svd topk "
        "unique".split(),
        "Any",
    ),
}
TABLES = """
ALIASES: dict[str, str]
BOUND: dict[ModuleType, list[str]]
COPIED_BACK: str
IN_PLACE: str
LATE: dict[str, str]

def table() -> dict[str, Any]: ...
"""


def _imports(places):
    """Yield ``from module import name as name``; `places` maps names to (module, name there)."""
    by_module = {}
    for name, (module, there) in places.items():
        by_module.setdefault(module, []).append(f"{there} as {name}")
    for module, parts in sorted(by_module.items()):
        yield f"from {module} import ({', '.join(sorted(parts))})"


def _is_spelled(module, name):
    """Whether `spellings` of an untyped module wraps the function: a stub has to name its words."""
    is_typed = Path(importlib.import_module(module).__file__).with_name("__init__.pyi").exists()
    return getattr(_found(module, name), "spellings", None) and not (
        is_typed and hasattr(importlib.import_module(module), "__path__")
    )


def _definition(module, name, as_name, first=None):
    """A ``def`` of a function and of the keywords that stand for its own."""
    shown = inspect.signature(_found(module, name))
    words = getattr(_found(module, name), "spellings", {}).values()
    is_optional = False
    parts = []
    for one in shown.parameters.values():
        name = one.name
        is_optional |= one.default is not one.empty or name in words
        is_one = one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        default = ... if is_optional and is_one else one.empty
        kind = Any if name != first else one.empty
        parts.append(one.replace(annotation=kind, default=default))
    text = str(shown.replace(parameters=parts)).replace("typing.Any", "Any")
    text = text.replace("Ellipsis", "...")
    return f"def {as_name}{text} -> {RESULTS.get(as_name, 'Tensor')}: ..."


def package_stub():
    """Return the text of gputensor/__init__.pyi."""
    places = {}
    for module, names in (gt._NAMES | gt._LATE).items():
        places |= {name: (module, name) for name in names.split()}
    places["tensor"] = ("gputensor.tensor.interop.arrays", "tensor")
    places |= {name: ("gputensor", name) for name in gt._MODULES}
    spelled = [f"{name} = {full}" for name, full in gt._SPELLINGS.items() if full in places]
    modules = set(gt._MODULES)
    worded = {name: place for name, place in places.items() if name not in modules
              and _is_spelled(*place)}  # fmt: skip
    places = {name: place for name, place in places.items() if name not in worded}
    lines = ["# Made by tests/support/public_stubs.py.", "import builtins"]
    lines += ["from typing import Any", ""]
    lines += [*_imports(places), "", CONSTANTS]
    lines += [_definition(*place, name) for name, place in sorted(worded.items())]
    return "\n".join([*lines, *sorted(spelled), ""])


def _found(module, name):
    return getattr(importlib.import_module(module), name)


def _is_made(module, name):
    """Whether a function made the method, so that no ``def`` has its name."""
    code = getattr(_found(module, name), "__code__", None)
    return code is not None and code.co_name == "method"


def method_stub():
    """Return the text of gputensor/tensor/methods.pyi."""
    homes = {name: room.__name__ for room, names in methods.BOUND.items() for name in names}
    homes |= {name: module for module, names in methods.LATE.items() for name in names.split()}
    places = {name: (module, name) for name, module in homes.items()}
    places["sort"] = places.pop("sort_in_place")  # the method sorts the tensor itself
    places["partition"] = places.pop("partition_in_place")
    for name, full in methods.CONDITION_FIRST.items():
        places[name] = ("gputensor.tensor.manipulation.picking", full)
    for name, full in methods.ALIASES.items():
        if full in homes:
            places[name] = (homes[full], full)
    properties = [name for name, place in places.items() if isinstance(_found(*place), property)]
    named = {place[0] for name, place in places.items()
             if name not in properties and not _is_spelled(*place)}  # fmt: skip
    aliases = {}
    for module in sorted(named):
        *_, parent, last = module.split(".")
        is_taken = f"_{last}" in aliases.values()
        aliases[module] = f"_{parent}_{last}" if is_taken else f"_{last}"
    lines = ["# Made by tests/support/public_stubs.py.", "from types import ModuleType"]
    lines += ["from typing import Any", ""]
    for module, alias in aliases.items():
        parent, _, last = module.rpartition(".")
        lines.append(f"from {parent} import {last} as {alias}")
    lines += ["from gputensor.tensor.core import Tensor", TABLES, "class Methods:"]
    for name, (module, there) in sorted(places.items()):
        if name in properties:
            lines += ["    @property", f"    def {name}(self) -> Any: ..."]
        elif _is_spelled(module, there):
            lines.append(f"    {_definition(module, there, name, 'x')}")
        elif _is_made(module, there):
            lines.append(f"    def {name}(self) -> Tensor: ...")
        else:
            lines.append(f"    {name} = {aliases[module]}.{there}")
    for name, one in sorted(gt._METHODS.items()):  # of rooms above, which the stub may not import
        first = next(iter(inspect.signature(_found(one.module, one.name)).parameters))
        lines.append(f"    {_definition(one.module, one.name, name, first)}")
    for name in sorted([*methods.IN_PLACE.split(), *methods.COPIED_BACK.split()]):
        lines.append(f"    def {name}_(self, *arguments: Any, **keywords: Any) -> Tensor: ...")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PACKAGE.write_text(package_stub())
    METHODS.write_text(method_stub())
    for command in (["check", "--fix-only"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "-q", PACKAGE, METHODS], check=True)
