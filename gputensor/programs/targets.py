"""Targets: the GPUs that a program can be compiled for, by any of their names.

A target is an architecture with the facts by which kernels are selected. The name of a product
stands for its facts; the name of an architecture stands for those of its first product in the
table.
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from gputensor._driver.registry import device_facts_of
from gputensor.errors import Described, argument_error

__all__ = ["TARGETS", "Target", "listed", "parse"]


class Target(NamedTuple):
    """A GPU to compile for.

    Attributes
    ----------
    capability : int
        Ten times the compute capability.
    multiprocessors, shared_nbytes : int
        The number of multiprocessors, and the shared memory of each.
    has_ptx : bool
        Whether PTX is included, which newer GPUs can run.
    """

    capability: int
    multiprocessors: int
    shared_nbytes: int
    has_ptx: bool = False

    @property
    def architecture(self):
        """The name of the architecture, such as ``"sm_90"``."""
        return f"sm_{self.capability}"

    @property
    def facts(self):
        """The result of `device_facts_of` for such a device."""
        return self.capability, self.multiprocessors, self.shared_nbytes

    def __str__(self):
        return f"{self.architecture}{'+ptx' if self.has_ptx else ''}"


# Capability, shared memory of a multiprocessor in KiB, other names of the architecture, and
# products with their multiprocessors (of the largest product in a family).
_ROWS = (
    (60, 64, "pascal", "p100:56"),
    (61, 96, "", "p40:30 p4:20 gtx10xx:28"),
    (70, 96, "volta", "v100:80"),
    (72, 96, "", "xavier:8"),
    (75, 64, "turing", "t4:40 rtx20xx:68 gtx16xx:24"),
    (80, 164, "ampere", "a100:108 a30:56"),
    (86, 100, "", "a40:84 a10:72 rtx30xx:82"),
    (87, 164, "", "orin:16"),
    (89, 100, "ada", "l40s:142 l40:142 l4:58 rtx40xx:128"),
    (90, 228, "sm_90a hopper", "h200:132 h100:132 h800:132 gh200:132"),
    (100, 228, "sm_100a blackwell", "b200:148 gb200:148"),
    (103, 228, "", "b300:148 gb300:148"),
    (110, 228, "sm_101", "thor:20"),
    (120, 100, "", "rtx50xx:170 rtxpro6000:188"),
    (121, 100, "", "gb10:48 dgxspark:48"),
)  # fmt: skip
NATIVE = "native"
_WITHOUT_GPU = "sm_80+ptx"


def _table():
    found = {}
    for capability, kib, names, products in _ROWS:
        for part in products.split():
            name, count = part.split(":")
            made = Target(capability, int(count), kib << 10)
            found.setdefault(f"sm_{capability}", made)
            found[name] = made
        for name in names.split():
            found[name] = found[f"sm_{capability}"]
    return found


#: Name -> Target; names are in lower case, without punctuation except the ``_`` in sm_90.
TARGETS = _table()
_SERIES = re.compile(r"((?:gtx|rtx)(?:10|16|20|30|40|50))[0-9]{2}(?:ti|super|tisuper|d)?")


def _plain(name):
    """Return a name in the form of the table; rtx4090 becomes rtx40xx."""
    plain = re.sub(r"[\s\-_.]", "", name.lower())
    plain = re.sub(r"^(nvidia|geforce|tesla|jetson)+", "", plain)
    plain = re.sub(r"^sm([0-9]+a?)$", r"sm_\1", plain)
    series = _SERIES.fullmatch(plain)
    return f"{series[1]}xx" if series else plain


def _one(text, device):
    name, plus, rest = text.partition("+")
    if plus and rest.strip().lower() != "ptx":
        raise argument_error(ValueError, "target", text, "NAME or NAME+ptx")
    plain = _plain(name)
    if plain == NATIVE:
        if device is None or device < 0:
            return parse(_WITHOUT_GPU)[0]
        found = Target(*device_facts_of(device))
    elif plain in TARGETS:
        found = TARGETS[plain]
    else:
        near = difflib.get_close_matches(plain, TARGETS, 3, 0.6)
        rule = " or ".join(near) if near else "a name from gputensor compile --list_targets"
        raise argument_error(ValueError, "target", Described(repr(text[:80])), rule)
    return found._replace(has_ptx=bool(plus))


def parse(text, device=None):
    """Return the distinct Targets of a text, or of a sequence of texts, in order.

    Parameters
    ----------
    text : str or sequence of str
        Names separated by commas, in any case; spaces and dashes are ignored. ``native`` is
        `device`, or ``sm_80+ptx`` if that is not a GPU.
    device : int, optional
        The number of a device.

    Examples
    --------
    >>> [str(target) for target in parse("A100, Hopper+PTX")]
    ['sm_80', 'sm_90+ptx']
    >>> parse("GeForce RTX 4090") == parse("sm_89")
    False
    >>> parse("voltage")
    Traceback (most recent call last):
    ...
    ValueError: target: got 'voltage'; expected volta
    """
    parts = [text] if isinstance(text, str) else text
    parts = list(parts) if isinstance(parts, (list, tuple)) else []
    if not parts or not all(isinstance(part, str) for part in parts):
        raise argument_error(TypeError, "target", text, "names of GPUs")
    names = [name.strip() for part in parts for name in part.split(",")]
    return list(dict.fromkeys(_one(name, device) for name in names))


def listed():
    """Return the lines of ``--list_targets``: an architecture and its names."""
    found = {}
    for name, target in TARGETS.items():
        names = found.setdefault(target.architecture, [])
        if name != target.architecture:
            names.append(name)
    return [f"{architecture}: {' '.join(names)}" for architecture, names in found.items()]
