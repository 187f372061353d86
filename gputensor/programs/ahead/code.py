"""The kernels of a program: compiled by NVRTC for targets, and loaded on devices.

A kernel is identified by its source. Its images come from NVRTC when a program is compiled, and
from the program's file later. Without an image for a device, NVRTC compiles one there if it can.
"""

from __future__ import annotations

import functools
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gputensor._driver.registry import device_facts_of
from gputensor._kernels.launch import images
from gputensor.errors import (
    Described,
    DeviceError,
    GpuTensorError,
    ProgramFileError,
    argument_error,
)  # fmt: skip
from gputensor.programs.ahead.launches import allow_shared, load_function
from gputensor.programs.ahead.packed import unpacked
from gputensor.programs.ahead.watcher import Watcher

__all__ = ["DeviceCode", "FileImage", "Image", "Kernel", "Kernels", "images_made"]


#: Called after each image with the number compiled so far, and the total number.
images_made = Watcher("images")


class Image:
    """A cubin, or PTX that ends with a zero byte; `sha256` is computed."""

    def __init__(self, content):
        self.content = content
        self.sha256 = hashlib.sha256(content).hexdigest()

    @property
    def nbytes(self):
        """The size in bytes."""
        return len(self.content)

    def data(self):
        """Return the bytes."""
        return bytes(self.content)


class FileImage:
    """An image in an entry of a file, which `data` checks; `sha256` is the declared hash.

    Parameters
    ----------
    name : str
        The name of the entry: ``kernel.N.sm_90``, ``kernel.N.compute_90``.
    content : bytes-like
        The bytes in the file.
    sha256 : str
    packed_nbytes : int or None
        The decompressed size if the entry is a zlib stream.
    """

    def __init__(self, name, content, sha256, packed_nbytes):
        self.name = name
        self.content = content
        self.sha256 = sha256
        self.packed_nbytes = packed_nbytes

    @property
    def nbytes(self):
        """The declared size in bytes."""
        return len(self.content) if self.packed_nbytes is None else self.packed_nbytes

    def data(self):
        """Return the bytes; ProgramFileError if they do not have the declared size and hash."""
        found = unpacked(self.name, self.content, self.packed_nbytes)
        if hashlib.sha256(found).hexdigest() != self.sha256:
            raise ProgramFileError(f"{self.name}: got other bytes; expected those of its SHA-256")
        is_ptx = self.name.rpartition(".")[2].startswith("compute")
        if not found or (is_ptx and found[-1]):
            got = Described(f"{len(found)} bytes")
            rule = "device code (PTX must end with a zero byte)"
            raise argument_error(ProgramFileError, self.name, got, rule)
        return found


@dataclass
class Kernel:
    """One kernel; `program` is None for a kernel from a file."""

    entry: str
    source: str  # SHA-256 of text and options
    program: Any = None
    images: dict = field(default_factory=dict)  # "sm_90" or "compute_90" -> Image or FileImage


@functools.lru_cache(maxsize=4096)
def source_of(program):
    """Return the hash that identifies a kernel: of its entry point, options and text."""
    text = repr((program.entry, program.options, program.text()))
    return hashlib.sha256(text.encode()).hexdigest()


class Kernels:
    """All kernels of a program, in order; launch lists refer to them by number."""

    def __init__(self, kernels=()):
        self.all = list(kernels)
        self.by_source = {kernel.source: number for number, kernel in enumerate(self.all)}
        self.by_program = {}

    def __len__(self):
        return len(self.all)

    def find(self, program):
        """Return the number of a program's kernel, or None if there is none."""
        number = self.by_program.get(program)
        return self.by_source.get(source_of(program)) if number is None else number

    def number_of(self, program):
        """Return the number of a program's kernel; a new kernel is added."""
        number = self.by_program.get(program)
        if number is None:
            source = source_of(program)
            number = self.by_source.get(source)
            if number is None:
                number = self.by_source[source] = len(self.all)
                self.all.append(Kernel(program.entry, source))
            self.all[number].program = program
            self.by_program[program] = number
        return number

    def compile(self, wanted):
        """Compile missing images.

        Parameters
        ----------
        wanted : iterable of (int, str)
            Numbers of kernels, with ``"sm_90"`` or ``"compute_90"``.
        """
        missing = [
            (self.all[number], target)
            for number, target in dict.fromkeys(wanted)
            if target not in self.all[number].images
        ]

        def make(one):
            kernel, target = one
            return Image(images.image_of(kernel.program, target))

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            # In the order of `wanted`, so that files are reproducible.
            made = zip(missing, pool.map(make, missing), strict=True)
            for done, ((kernel, target), image) in enumerate(made, 1):
                kernel.images[target] = image
                images_made(done, len(missing))


def image_for(kernel, capability):
    """Return the image of a kernel that a device of this capability runs, or None.

    A cubin runs on its own capability and on later minor versions of the same generation; PTX on
    all later ones.
    """
    best = None
    for name, image in kernel.images.items():
        form, number = name.split("_")
        number = int(number)
        is_cubin = form == "sm"
        if number > capability or (is_cubin and number // 10 != capability // 10):
            continue
        rank = (is_cubin, number)
        if best is None or rank > best[0]:
            best = rank, image
    return None if best is None else best[1]


class DeviceCode:
    """The kernels of a program on one device, each loaded at its first use."""

    def __init__(self, kernels, device):
        self.kernels = kernels
        self.device = device
        self.capability = device_facts_of(device)[0]
        self.loaded = {}  # number -> (handle, allowed dynamic shared memory)

    def function(self, number, shared_nbytes):
        """Return the handle of a kernel that may use this much dynamic shared memory."""
        handle, allowed = self.loaded.get(number) or (self._load(number), 0)
        if shared_nbytes > allowed:
            allow_shared(self.device, handle, shared_nbytes)
        self.loaded[number] = handle, max(allowed, shared_nbytes)
        return handle

    def compile(self, numbers):
        """Compile kernels together, as far as possible; those that fail raise when first used."""

        def make(number):
            with suppress(GpuTensorError):
                self._compiled(self.kernels.all[number])

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(make, sorted(n for n in numbers if not self.has_image(n))))

    def has_image(self, number):
        """Whether the program has an image of a kernel for the device."""
        return image_for(self.kernels.all[number], self.capability) is not None

    def has_program(self, program):
        """Whether the kernel of a program is available without a compiler."""
        number = self.kernels.find(program)
        return number is not None and self.has_image(number)

    def _load(self, number):
        kernel = self.kernels.all[number]
        image = image_for(kernel, self.capability)
        if image is None:
            image = self._compiled(kernel)
        return load_function(self.device, image.sha256, image.data(), kernel.entry)

    def _compiled(self, kernel):
        if kernel.program is None:
            names = ", ".join(kernel.images) or "none"
            got = Described(f"a kernel for {names}")
            rule = f"a kernel for sm_{self.capability}"
            raise argument_error(DeviceError, "program", got, rule)
        name = f"sm_{self.capability}"
        kernel.images[name] = Image(images.image_of(kernel.program, name))
        return kernel.images[name]
