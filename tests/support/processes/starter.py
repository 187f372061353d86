"""Starts processes that have imported some packages already.

Each is forked from one process that has imported them and done nothing else. A test that needs a
process of its own would spend most of its time on these imports.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

# Reads requests from its standard input, and writes how the child of each has ended.
PROGRAM = """
import gc, importlib, json, os, sys, types
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.collect()
gc.freeze()  # so that a child's garbage collector does not look through what is imported
for line in sys.stdin:
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
text, arguments, environment, folder, output = json.loads(line)
os.environ.clear()
os.environ.update(environment)
os.chdir(folder)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(os.open(output, os.O_WRONLY), 1)
os.dup2(1, 2)
sys.argv[1:] = arguments
main = sys.modules["__main__"] = types.ModuleType("__main__")
exec(compile(text, "<string>", "exec"), vars(main))
"""


class Starter:
    """Runs Python text in children of a process that has imported `modules`.

    The process starts with the first child. NumPy starts no threads in it.

    Parameters
    ----------
    modules : iterable of str
        Modules that all children may share. Those that are not installed are left out.
    options : iterable of str
        Options of the interpreter.
    environment : dict, optional
        The variables with which the process starts. A child has its own, but the dynamic linker
        reads these.
    """

    def __init__(self, modules, options=(), environment=None):
        installed = [name for name in modules if importlib.util.find_spec(name.split(".")[0])]
        self.command = [sys.executable, *options, "-c", PROGRAM, *installed]
        self.environment = {**(environment or os.environ), "OPENBLAS_NUM_THREADS": "1"}
        self.process = None

    def _start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=self.environment, start_new_session=True,
        )  # fmt: skip

    def run(self, text, *arguments, environment, folder):
        """Run a program in a folder; return its exit status, as subprocess does, and its output."""
        if self.process is None:
            self._start()
        with scratch_file() as path:
            request = json.dumps([text, arguments, environment, str(folder), str(path)])
            try:
                print(request, file=self.process.stdin, flush=True)
                status = int(self.process.stdout.readline())
            except BaseException:  # such as that of a time limit: the child still runs
                os.killpg(self.process.pid, signal.SIGKILL)
                self.close()
                raise
            return status, path.read_text(errors="replace")

    def close(self):
        """End the process."""
        if self.process is not None:
            self.process.communicate()
            self.process = None


@contextlib.contextmanager
def scratch_file():
    """Yield an empty file that is deleted afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports"
        path.touch()
        yield path
