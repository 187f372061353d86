"""Programs of CUDA C++: a file of kernel text, the definitions before it, and its requirements.

The text is in ``.cuh`` files below ``gputensor/`` and is read at a program's first use, so an
import reads none. `Program.text` puts the definitions at the front and replaces includes by the
files' texts. NVRTC could take the headers as arguments instead; but an expanded text is one string,
which the disk cache hashes as a whole, so that every edit of a header counts, and which tests pass
to another compiler. ``#line`` keeps the names and lines of the files in a compiler's messages.
"""

import functools
import os
import re
from typing import NamedTuple

__all__ = ["Program", "read_text"]

_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
#: Long texts that only the programs compile whose definitions name them: part -> its macros.
_NEEDS = {
    "bessel::": ("NEEDS_BESSEL",),
    "digits::": ("NEEDS_DIGITS",),
    "gammas::": ("NEEDS_NORMAL", "NEEDS_GAMMAS"),
    "integrals::": ("NEEDS_NORMAL", "NEEDS_GAMMAS", "NEEDS_INTEGRALS"),
    "normal::": ("NEEDS_NORMAL",),
}
_INCLUDE = re.compile(r'#include "(gputensor/[^"]+)"')


@functools.cache
def read_text(path):
    """Return the text of a file of the library, by its path, which begins with ``gputensor/``."""
    with open(os.path.join(_ROOT, path), encoding="utf-8") as file:
        return file.read()


def _expand(path, seen):
    """Yield the lines of a file, with includes replaced by the files' lines, each file once."""
    seen.add(path)
    yield f'#line 1 "{path}"'
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line == "#pragma once":
            yield ""
        elif include := _INCLUDE.fullmatch(line):
            if include[1] not in seen:
                yield from _expand(include[1], seen)
            yield f'#line {number + 1} "{path}"'
        else:
            yield line


class Program(NamedTuple):
    """One variant of a kernel.

    Attributes
    ----------
    path : str
        The path of its text, which begins with ``gputensor/``.
    defines : tuple of (str, object)
        The definitions before the text, which lists those that it needs.
    minimum : int
        The least compute capability, times ten, that the text needs: 80 for 8.0; 0 if the compiler
        decides.
    architecture : str
        ``"sm_90a"`` when the program has instructions of one generation only; otherwise empty.
    entry : str
        The name of the kernel.
    """

    path: str
    defines: tuple = ()
    minimum: int = 0
    architecture: str = ""
    entry: str = "kernel"

    @property
    def options(self):
        """Options of the compiler."""
        return (f"--gpu-architecture={self.architecture}",) if self.architecture else ()

    def text(self):
        """Return the whole text, as the compiler takes it.

        Examples
        --------
        >>> program = Program("gputensor/_kernels/cuda/arange.cuh", (("OUTPUT", "int32"),))
        >>> program.text().splitlines()[1]
        '#define OUTPUT int32'
        """
        texts = [value for _, value in self.defines if isinstance(value, str)]
        needs = [
            macro
            for part, macros in _NEEDS.items() if any(part in one for one in texts)
            for macro in macros
        ]  # fmt: skip
        head = [("GPUTENSOR_KERNEL", 1), *((macro, 1) for macro in dict.fromkeys(needs))]
        head += self.defines
        lines = [f"#define {name} {value}" for name, value in head]
        return "\n".join([*lines, *_expand(self.path, set()), ""])
