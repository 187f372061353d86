"""Pages of docs/ made from tables: ``python -m tests.project.reference_pages`` writes them.

A test compares the files with the pages made here.
"""

import importlib
import inspect
import re
import textwrap
from pathlib import Path

import gputensor as gt
from gputensor._driver.environment import DESCRIPTIONS
from tests.project import peer_names
from tests.project.peer_differences import DIFFERENCES

__all__ = ["PAGES", "page"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTE = "<!-- Made by tests/project/reference_pages.py. -->"
MODULES = (
    "linalg",
    "fft",
    "random",
    "nn",
    "memory",
    "graphs",
    "device",
    "sharing",
    "blas",
    "backends",
    "cuda",
    "cublas",
    "polynomial.polynomial",
    "programs",
    "testing",
)
FROM = {
    "from-numpy.md": ("NumPy", peer_names.NUMPY),
    "from-cupy.md": (
        "CuPy",
        [
            *peer_names.NUMPY,
            *peer_names.CUPY,
            *(f"special.{name}" for name in peer_names.CUPY_SPECIAL),
        ],
    ),
    "from-pytorch.md": ("PyTorch", [*peer_names.TORCH, *peer_names.FUNCTIONAL]),
}


def find(name):
    """Return the public object of a dotted name, or None."""
    place = gt
    for part in name.split("."):
        if part not in dir(place):
            return None
        place = getattr(place, part)
    return place


def words(names):
    """Return lines of the names in code font."""
    text = " ".join(f"`{name}`" for name in names)
    return textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)


def spelled_lines():
    """Yield lines that list the functions for each of PyTorch's keywords."""
    by_words = {}
    for place, prefix in ((gt, ""), (gt.linalg, "linalg."), (gt.fft, "fft.")):
        for name in sorted(dir(place)):
            thing = getattr(place, name)
            if prefix and getattr(gt, name, None) is thing:
                continue
            pairs = (f"`{theirs}`" + f" for `{ours}`" * (theirs != ours)
                     for theirs, ours in getattr(thing, "spellings", {}).items())  # fmt: skip
            by_words.setdefault(", ".join(pairs), []).append(f"`{prefix}{name}`")
    for pairs, found in sorted(by_words.items()):
        if pairs:
            text = f"- {pairs}: {' '.join(found)}"
            yield from textwrap.wrap(text, 118, subsequent_indent="  ", break_on_hyphens=False)


def peer_page(title, names):
    """Return the page for users of another library."""
    there = [name for name in names if find(name) is not None]
    missing = [name for name in names if find(name) is None]
    lines = [f"# Coming from {title}", "", NOTE, ""]
    lines += ["Functions have the same names, and arguments the same positions, where possible;"]
    lines += ["see also [tensors](tensors.md) and the [reference](reference.md).", ""]
    lines += ["## What differs", ""]
    lines += [f"| {title} | here | what to know |", "|---|---|---|"]
    for theirs, ours, remark in DIFFERENCES[title]:
        lines.append(f"| {theirs} | {ours or 'not available'} | {remark} |")
    if title == "PyTorch":
        lines += ["", "## Keywords of PyTorch that functions accept", "", *spelled_lines()]
    lines += ["", f"## Under the same name ({len(there)})", "", *words(there)]
    lines += ["", f"## Not available ({len(missing)})", "", *words(missing), ""]
    return "\n".join(lines)


def first_sentence(thing):
    text = inspect.getdoc(thing) or ""
    name = getattr(thing, "__name__", "")
    if text.startswith(f"{name}("):  # Cython adds the signature
        text = text.partition("\n")[2].strip()
    text = " ".join(text.split("\n\n")[0].split())
    text = re.sub(r":\w+:`([^`]*)`", r"`\1`", text).replace("|", "\\|")
    return re.split(r"(?<=[.;])\s", text)[0].rstrip(".;") + "."


def signature(thing):
    try:
        text = str(inspect.signature(inspect.unwrap(thing)))
    except (TypeError, ValueError):
        return "(…)"
    text = re.sub(r"<[^>]*>", "…", text)
    text = re.sub(r": [^,)=]+(?= = |,|\)|$)", "", text).split(" -> ")[0].replace(" = ", "=")
    return text.replace("|", "\\|") if len(text) < 70 else "(…)"


def rows(place, names, prefix=""):
    """Yield the lines of a table of functions and classes with their first sentences."""
    yield "| function | what it does |"
    yield "|---|---|"
    for name in sorted(names, key=lambda one: (one.lower(), one)):
        thing = getattr(place, name)
        if callable(thing) and not inspect.ismodule(thing):
            yield f"| `{prefix}{name}{signature(thing)}` | {first_sentence(thing)} |"


# The modules whose functions are on the second page: numerics, activations and losses.
FURTHER = ("gputensor.tensor.numerics.", "gputensor.nn.activations",
           "gputensor.nn.distances", "gputensor.nn.losses",
           "gputensor.nn.margins", "gputensor.nn.alignments", "gputensor.nn.bags",
           "gputensor.nn.labels", "gputensor.nn.unpooling", "gputensor.linalg.torch_names",
           "gputensor.tensor.order_statistics",
           "gputensor.random.dropout", "gputensor.random.in_place", "numpy")  # fmt: skip


def main_names(are_further=False):
    """Return the functions of the package; with `are_further`, those of the second page."""
    spelled = set(gt._SPELLINGS)
    names = [name for name in gt.__all__ if name not in spelled and name not in gt._MODULES
             and not name.startswith("_") and name != "tensor"]  # fmt: skip
    return [name for name in names if gt._PLACES.get(name, "").startswith(FURTHER) == are_further]


def reference_page():
    """Return the page of the package's functions."""
    lines = ["# Reference: functions of `gputensor`", "", NOTE, ""]
    lines += ["`help(gt.sum)` shows parameters, errors and an example that runs. Functions of the"]
    lines += [
        "modules are in [reference-modules.md](reference-modules.md), further names of NumPy and"
    ]
    lines += [
        "PyTorch in [reference-numerics.md](reference-numerics.md). Many functions are methods"
    ]
    lines += ["of `Tensor` too: `x.sum(0)`.", "", *rows(gt, main_names()), ""]
    other = [f"`{name}` = `{full}`" for name, full in sorted(gt._SPELLINGS.items())]
    lines += ["## Other spellings", "", *textwrap.wrap(", ".join(other), 118), ""]
    return "\n".join(lines)


def numerics_page():
    """Return the page of the functions of NumPy and PyTorch beyond the array API standard."""
    lines = ["# Reference: further functions of `gputensor`", "", NOTE, ""]
    lines += ["Functions of NumPy and PyTorch beyond the array API standard, composed of other"]
    lines += ["functions; see also [reference.md](reference.md) and, for Bessel functions and the"]
    lines += ["relatives of the gamma function, [reference-special.md](reference-special.md).", ""]
    return "\n".join([*lines, *rows(gt, main_names(are_further=True)), ""])


def modules_page():
    """Return the page of the public functions of the modules."""
    lines = ["# Reference: functions of the modules", "", NOTE, ""]
    for name in MODULES:
        module = importlib.import_module(f"gputensor.{name}")
        listed = getattr(module, "__all__", None) or [one for one in dir(module) if one[0] != "_"]
        lines += [f"## `gputensor.{name}`", "", *rows(module, listed, f"{name}."), ""]
    return "\n".join(lines)


def special_page():
    """Return the page of the special functions."""
    lines = ["# Reference: special functions", "", NOTE, ""]
    lines += ["Functions of `gputensor.special`, under the names of `torch.special` and"]
    lines += ["`cupyx.scipy.special`; see also [reference.md](reference.md).", ""]
    special = importlib.import_module("gputensor.special")
    return "\n".join([*lines, *rows(special, special.__all__, "special."), ""])


def environment_page():
    """Return the page of the environment variables."""
    lines = ["# Environment variables", "", NOTE, ""]
    lines += ["An unknown variable whose name begins with `GPUTENSOR_` causes one warning, which"]
    lines += ["suggests the nearest known name. A switch is on if it is `1`, and off if it is `0`"]
    lines += ["or unset.", ""]
    lines += ["| variable | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in DESCRIPTIONS.items()]
    return "\n".join([*lines, ""])


PAGES = {
    **{file: (peer_page, title, names) for file, (title, names) in FROM.items()},
    "reference.md": (reference_page,),
    "reference-numerics.md": (numerics_page,),
    "reference-modules.md": (modules_page,),
    "reference-special.md": (special_page,),
    "environment.md": (environment_page,),
}


def page(file):
    """Return the text of a page."""
    make, *arguments = PAGES[file]
    return make(*arguments)


if __name__ == "__main__":
    for file in PAGES:
        (DOCS / file).write_text(page(file))
