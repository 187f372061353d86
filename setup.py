"""Build logic only: every .pyx below gputensor/ becomes one C++17 extension.

libgputensor_program.so, which runs programs without Python, is built beside them from one source.

An in-place build also builds the extensions of the tests, the .pyx files below tests/support/,
which give tests access to the internals of rooms; a wheel never contains them.

A room is a package whose `__init__.pyx` includes the `.pxi` parts beside it: one module each. The
element-wise functions and the loops of the host device are further parts, generated here from the
table of operations.

No CUDA toolkit and no CUDA header is needed: the driver, cuBLAS and NVRTC are found at run time.
Project metadata lives in pyproject.toml. Setuptools and Cython rebuild modules that are older than
their sources, so `python setup.py build_ext --inplace` after an edit compiles one module.

Environment, for developers:
    GPUTENSOR_BUILD_ONLY   comma-separated packages or rooms to build (``blas,_alloc.core``), or
                           ``none``
    GPUTENSOR_BUILD_JOBS   compilers to run at once; default: the number of usable cores
    GPUTENSOR_BUILD_DEBUG  ``1``: no optimisation, debug symbols, and an allocator that checks its
                           accounting after each change (GPUTENSOR_CHECK)
    GPUTENSOR_SANITIZE     ``address`` or ``thread``: build the extensions with that sanitizer
    GPUTENSOR_COVERAGE     ``1``: count which lines of the allocator's sources run (gcov)
"""

import functools
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ROOT = Path(__file__).resolve().parent
ONLY = [name for name in os.environ.get("GPUTENSOR_BUILD_ONLY", "").split(",") if name]
JOBS = int(os.environ.get("GPUTENSOR_BUILD_JOBS", "0")) or len(os.sched_getaffinity(0))
DEBUG = os.environ.get("GPUTENSOR_BUILD_DEBUG", "0") == "1"
SANITIZER = os.environ.get("GPUTENSOR_SANITIZE", "")
COVERAGE = os.environ.get("GPUTENSOR_COVERAGE", "0") == "1"
GENERATED = Path("build/generated")
HEADERS = Path("build/headers")
LIBRARY = Path("gputensor/programs/c_library/src/library.cpp")
EXPORTS = LIBRARY.with_name("exports.map")


def choose_compiler():
    """Choose an installed C++ compiler if the one that Python was built with does not exist."""
    built_with = shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")
    if shutil.which(built_with[0]):
        return
    found = next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)
    if found is None:
        raise SystemExit("gputensor needs a C++17 compiler: none of c++, g++, clang++ was found")
    os.environ["CC"] = os.environ["CXX"] = found


# Rooms on the hot path of each call, compiled with -O2. The others mostly convert Python objects:
# -O2 would compile them half as long again and not make their calls faster.
HOT = (
    "_alloc.allocator",
    "_alloc.core",
    "_alloc.grow",
    "_alloc.history",
    "_alloc.order",
    "_alloc.pinned",
    "_arrays",
    "_driver.cuda",
    "_driver.host",
    "_kernels.faces",
    "_kernels.formulas",
    "_kernels.launch",
    "_kernels.loops",
    "blas.kernels",
    "blas.plan",
    "blas.product",
    "nn",
    "programs.c_library.src.library",
    "programs.session",
    "streams.order",
    "streams.queue",
    "tensor.core",
    "tensor.functions",
)


# What each module begins with, as Cython writes it, and the larger headers of the C++ library.
COMMON_HEADERS = """\
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
"""


def compile_args(name):
    # No contraction: random numbers of the host device equal those of a GPU, bit for bit, and loops
    # give the same bits with all sets of instructions. Loops that could trap are not vectorized.
    args = ["-std=c++17", "-fvisibility=hidden", "-pthread", "-Wno-unused-function"]
    args += ["-ffp-contract=off"] if name.endswith(("_kernels.faces", "_kernels.loops")) else []
    args += ["-fno-trapping-math"] if name.endswith("_kernels.loops") else []
    if DEBUG:
        args.append("-DGPUTENSOR_CHECK=1")
    if DEBUG or SANITIZER:
        args += ["-O1" if SANITIZER else "-O0", "-g", "-fno-omit-frame-pointer"]
    else:
        level = "-O2" if name.removeprefix("gputensor.") in HOT else "-O1"
        args += [level, "-g0", "-fno-semantic-interposition"]
    if SANITIZER:
        args.append(f"-fsanitize={SANITIZER}")
    if COVERAGE and name.startswith("gputensor._alloc."):
        args += ["--coverage", "-fprofile-update=atomic"]
    return args


def link_args():
    args = ["-pthread", "-ldl"]
    args += [f"-fsanitize={SANITIZER}"] if SANITIZER else ["--coverage" if COVERAGE else "-s"]
    return args


@functools.cache
def named_by(path):
    """Return the files that a source names: those it includes, and declarations it cimports."""
    text = path.read_text()
    found = [ROOT / name for name in re.findall(r'(?:#include|extern from) "(gputensor/.+)"', text)]
    for name in re.findall(r"^\s*from (gputensor[\w.]*) cimport", text, re.MULTILINE):
        module = ROOT.joinpath(*name.split("."))
        found += [module.with_suffix(".pxd"), module / "__init__.pxd"]
    return [one for one in found if one.exists()]


def sources_of(source):
    """Return all files from which an extension follows, the headers of headers included."""
    waiting = [p for s in ("*.h", "*.px[di]") for p in source.parent.rglob(s)] + [source]
    found = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += named_by(path)
    return sorted(str(path.relative_to(ROOT)) for path in found)


def extensions():
    for source in sorted((*ROOT.glob("gputensor/**/*.pyx"), *ROOT.glob("tests/support/**/*.pyx"))):
        parts = source.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        if ONLY and not any(f"{name}.".startswith(f"gputensor.{only}.") for only in ONLY):
            continue
        yield Extension(
            name,
            [str(source.relative_to(ROOT))],
            language="c++",
            include_dirs=["."],
            depends=sources_of(source),
            extra_compile_args=compile_args(name),
            extra_link_args=link_args(),
        )


def work_of(extension):
    """Estimate the time of a compiler: a room's own headers are denser than Cython's text."""
    own = (ROOT / extension.name.replace(".", "/")).glob("*.h")
    return os.path.getsize(extension.sources[0]) + 20 * sum(path.stat().st_size for path in own)


class BuildRooms(build_ext):
    """Puts the module of a room where Python looks for a package: room/__init__.SUFFIX.

    An extension named `room.__init__` would be put there without this class, but then Cython uses
    this name for the module, in the names of its types and in its imports.
    """

    def finalize_options(self):
        super().finalize_options()
        # The longest first, so that no compiler works alone at the end.
        self.extensions.sort(key=work_of, reverse=True)
        if not self.inplace:
            self.extensions = [one for one in self.extensions if one.name.startswith("gputensor.")]

    def run(self):
        if not self.inplace:
            self.drop_leftovers()
        with ThreadPoolExecutor(1) as beside:
            with_library = not ONLY or any(
                f"gputensor.{only}." in "gputensor.programs.c_library." for only in ONLY
            )
            library = beside.submit(self.build_library) if with_library else None
            super().run()
        if library:
            self.copy_library(library.result())

    def build_extensions(self):
        self.precompile_headers()
        super().build_extensions()

    def precompile_headers(self):
        """Compile the headers that all modules include once, not again for each module.

        GCC includes a header from its compiled form if that was made with the same options, and
        from its text otherwise. Other compilers work as before, and so does a build that counts
        lines, which would count those of headers.
        """
        compiler = getattr(self.compiler, "compiler_so_cxx", self.compiler.compiler_so)
        about = subprocess.run([compiler[0], "--version"], capture_output=True, text=True).stdout
        if COVERAGE or "Free Software Foundation" not in about:
            return
        stale = {}
        for one in filter(self.is_stale, self.extensions):
            stale.setdefault(tuple(one.extra_compile_args), []).append(one)
        includes = [f"-I{folder}" for folder in self.compiler.include_dirs]
        for number, (args, modules) in enumerate(stale.items()):
            if len(modules) < 4:
                continue  # the compiled form takes as long as two modules without it
            header = HEADERS / f"options{number}.h"
            header.parent.mkdir(parents=True, exist_ok=True)
            header.write_text(COMMON_HEADERS)
            command = [*compiler, *includes, *args, "-x", "c++-header", str(header)]
            self.spawn([*command, "-o", f"{header}.gch"])
            for one in modules:
                one.extra_compile_args = [*args, "-include", str(header)]

    def is_stale(self, extension):
        path = self.get_ext_fullpath(extension.name)
        return self.force or newer_group([*extension.sources, *extension.depends], path)

    def build_library(self):
        """Build libgputensor_program.so if it is older than its sources; return its path."""
        target = Path(self.build_lib) / LIBRARY.parents[1] / "libgputensor_program.so"
        sources = ["setup.py", str(EXPORTS), *sources_of(ROOT / LIBRARY)]
        if self.force or newer_group(sources, str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            name = ".".join(LIBRARY.with_suffix("").parts)
            compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
            command = [*shlex.split(compiler), "-shared", "-fPIC", "-I.", *compile_args(name)]
            exports = f"-Wl,--version-script={EXPORTS}"
            self.spawn([*command, str(LIBRARY), "-o", str(target), exports, *link_args()])
        return target

    def copy_library(self, built):
        if self.inplace:
            self.copy_file(str(built), str(ROOT / LIBRARY.parents[1] / built.name))

    def drop_leftovers(self):
        """Remove the results of earlier builds whose sources are gone, and extensions of tests.

        A wheel contains everything below `build_lib`.
        """
        for built in Path(self.build_lib).rglob("*.*"):
            name = built.relative_to(self.build_lib)
            source = ROOT / name
            if name.suffix == ".so":
                source = source.with_name(name.name.split(".")[0] + ".pyx")
            if built.is_file() and not (name.parts[0] == "gputensor" and source.exists()):
                built.unlink()

    def get_ext_filename(self, fullname):
        filename = Path(super().get_ext_filename(fullname))
        if not (ROOT / "/".join(fullname.split(".")) / "__init__.pyx").exists():
            return str(filename)
        name, suffix = filename.name.split(".", 1)
        return str(filename.with_name(name) / f"__init__.{suffix}")

    def get_ext_fullpath(self, ext_name):
        return os.path.join(self.build_lib, self.get_ext_filename(self.get_ext_fullname(ext_name)))

    def copy_extensions_to_source(self):
        for extension in self.extensions:
            filename = self.get_ext_filename(extension.name)
            self.copy_file(os.path.join(self.build_lib, filename), str(ROOT / filename))


def write_functions():
    """Write the parts and the stub made from the table of operations if they have changed."""
    table = runpy.run_path("gputensor/_kernels/operations.py")
    source = runpy.run_path("gputensor/tensor/functions/source.py")
    loops = runpy.run_path("gputensor/_kernels/loops/source.py")
    rows = table["ELEMENTWISE"]
    stub = Path("gputensor/tensor/functions/elementwise_functions.pyi")
    for path, text in (
        (GENERATED / "elementwise_functions.pxi", source["cython_source"](rows, table["RULES"])),
        (GENERATED / "host_loops.pxi", loops["loops_source"](rows)),
        (stub, source["stub_source"](rows)),
    ):
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def main():
    os.chdir(ROOT)
    write_functions()
    modules = list(extensions())
    if modules:
        choose_compiler()
    setup(
        cmdclass={"build_ext": BuildRooms},
        ext_modules=cythonize(
            modules,
            build_dir="build/cython",
            include_path=[str(GENERATED)],
            emit_linenums=COVERAGE,
            nthreads=JOBS if JOBS > 1 and len(modules) > 1 else 0,
            compiler_directives={
                "language_level": 3,
                "boundscheck": False,
                "wraparound": False,
                "cdivision": True,
                "initializedcheck": False,
                "embedsignature": True,
            },
        ),
        options={"build_ext": {"parallel": JOBS}},
    )


# The guard matters: cythonize's worker processes may import this file again.
if __name__ == "__main__":
    main()
