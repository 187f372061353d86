"""``gputensor c_library``: says how C programs link the library that runs programs."""

import os
import shlex

__all__ = ["compiler_flags", "folder", "register"]


def register(subparsers):
    """Add ``c_library`` to the command line."""
    parser = subparsers.add_parser(
        "c_library",
        help="show how to link libgputensor_program.so",
        description="Prints the folder of libgputensor_program.so, of its files for CMake "
        "(-Dgputensor_program_DIR=FOLDER) and for pkg-config (PKG_CONFIG_PATH=FOLDER); or the "
        "requested flags.",
        allow_abbrev=False,
    )
    parser.add_argument("--cflags", action="store_true", help="print flags that find the header")
    parser.add_argument("--libs", action="store_true", help="print flags that link the library")
    parser.set_defaults(run=run)


def run(options):
    """Print the requested facts. Returns the exit code."""
    flags = compiler_flags(options.cflags, options.libs)
    print(shlex.join(flags) if options.cflags or options.libs else folder())
    return 0


def folder():
    """Return the folder of the library."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "programs", "c_library")


def compiler_flags(with_header=True, with_library=True):
    """Return the flags for a compiler, as a list.

    >>> compiler_flags()[-1]
    '-lgputensor_program'
    """
    found = []
    if with_header:
        found.append(f"-I{os.path.join(os.path.dirname(folder()), 'c_entry')}")
    if with_library:
        found += [f"-L{folder()}", f"-Wl,-rpath,{folder()}", "-lgputensor_program"]
    return found
