"""The `gputensor` command: builds the argument parser and calls one module for each command.

Every other module of this package except NOT_COMMANDS is one command. Its
``register(subparsers)`` adds its parser and sets ``run``: a function of the parsed arguments that
returns the exit code. Modules import the rest of the library inside ``run``, so
``gputensor --help`` and argument errors open no device.

`-` and `_` are equivalent in the names of options. ``--flagfile=FILE`` is replaced by the options
in a file, one per line; `#` begins a comment.

Exit codes: 0 success; 1 a well-formed request that failed; 2 bad arguments or bad input. An error
is one line on standard error that begins with the command's name.
"""

import argparse
import importlib
import os
import pkgutil
import sys

import gputensor.cli as commands
from gputensor.cli.input_error import InputError
from gputensor.errors import GpuTensorError, argument_error

__all__ = ["build_parser", "main"]

NOT_COMMANDS = ("main", "input_error", "value_text", "compile_results", "python_function")
MOST_FLAG_FILES = 64


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments in one line, like all other errors, instead of printing its usage."""

    def error(self, message):
        raise InputError(f"{message}; see {self.prog} --help")


def build_parser():
    """Return the parser of the whole command, with every module of this package registered.

    >>> sorted(build_parser().parse_args(["devices", "--json"]).__dict__)
    ['command', 'json', 'run']
    """
    parser = Parser(
        prog="gputensor", description="A GPU tensor library: devices, memory and tuning."
    )
    version = sys.modules["gputensor"].__version__
    parser.add_argument("--version", action="version", version=f"gputensor {version}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in sorted(module.name for module in pkgutil.iter_modules(commands.__path__)):
        if module not in NOT_COMMANDS:
            importlib.import_module(f"gputensor.cli.{module}").register(subparsers)
    return parser


def main(arguments=None):
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        The words after the command's name; those of the process by default.

    >>> import contextlib, io
    >>> with contextlib.redirect_stderr(io.StringIO()) as errors:
    ...     main(["memory", "replay", "no-such-trace.npz"])
    2
    >>> print(errors.getvalue().strip())
    gputensor: no-such-trace.npz: no such file
    """
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = build_parser().parse_args(plain_words(words))
    except InputError as error:
        return fail(error, 2)
    if arguments is None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names may be any bytes
    try:
        code = options.run(options)
        flush_output()  # here, where errors can still be reported
        return code
    except InputError as error:
        return fail(error, 2)
    except GpuTensorError as error:
        return fail(error, 1)
    except KeyboardInterrupt:
        drop_output()
        return fail("interrupted", 130)  # as shells report a process that SIGINT ended
    except BrokenPipeError:
        # The process that reads the output has ended, so an error message would be noise.
        drop_output()
        return 1
    except OSError as error:
        drop_output()
        return fail(error, 1)


def plain_words(words):
    """Return the words with underscores in option names, and flag files replaced by their options.

    >>> plain_words(["run", "--list-devices", "--input=--a-b", "-"])
    ['run', '--list_devices', '--input=--a-b', '-']
    """
    found, left, files = [], list(reversed(words)), 0
    while left:
        word = left.pop()
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            found.append(word)
        elif name == "--flagfile":
            files += 1
            if files > MOST_FLAG_FILES:
                raise argument_error(InputError, name, value, f"at most {MOST_FLAG_FILES} files")
            left += reversed(flag_lines(value))
        else:
            found.append("--" + name[2:].replace("-", "_") + equals + value)
    return found


def flag_lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, ValueError) as error:
        rule = f"a file of options: {getattr(error, 'strerror', None) or error}"
        raise argument_error(InputError, "--flagfile", path, rule) from None
    return [line for line in lines if line and not line.startswith("#")]


def flush_output():
    if sys.stdout is not None:
        sys.stdout.flush()


def drop_output():
    """Discard output that cannot be written: the interpreter would try again when it exits."""
    try:
        flush_output()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(error, code):
    print(f"gputensor: {' '.join(str(error).split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
