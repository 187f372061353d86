"""The C example as a process: runs a program without Python."""

import subprocess
from pathlib import Path

import numpy as np

from gputensor.cli.c_library import compiler_flags

ROOT = Path(__file__).resolve().parents[3]


class CProgramProcess:
    """examples/c/run_program.c, compiled against the library beside the package.

    Parameters
    ----------
    compiler : str
    folder : Path
        For the executable and the files of tensors.
    environment : dict
        Of its processes.
    """

    def __init__(self, compiler, folder, environment):
        # The fake driver calls Python's functions for the GIL; without Python, this defines them.
        preloaded = folder / "no_python.so"
        fake = ROOT / "tests/support/fakes/no_python.c"
        subprocess.run([compiler, "-shared", "-fPIC", fake, "-o", preloaded], check=True)
        self.folder = folder
        self.environment = {**environment, "LD_PRELOAD": str(preloaded)}
        self.executable = folder / "run_program"
        command = [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
        source = ROOT / "examples/c/run_program.c"
        flags = compiler_flags()
        subprocess.run([*command, source, *flags, "-o", self.executable], check=True)

    def start(self, *arguments, **variables):
        """Run the executable; return the completed process."""
        return subprocess.run(
            [self.executable, *map(str, arguments)], env={**self.environment, **variables},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def arguments(self, arrays, kind):
        found = []
        for number, array in enumerate(arrays):
            path = self.folder / f"{kind}{number}.bin"
            if kind == "in":
                path.write_bytes(np.ascontiguousarray(array).tobytes())
            else:
                path.unlink(missing_ok=True)
            found.append("x".join([*map(str, array.shape), array.dtype.name]) + f"={path}")
        return found

    def process(self, path, name, arrays, like, variables):
        inputs, outputs = self.arguments(arrays, "in"), self.arguments(like, "out")
        return self.start(path, name, *inputs, "--", *outputs, **variables)

    def run(self, path, name, arrays, like, **variables):
        """Run a function on arrays; return results with the shapes and dtypes of `like`."""
        done = self.process(path, name, arrays, like, variables)
        assert done.returncode == 0, done.stderr
        self.told = done.stderr
        return [
            np.fromfile(self.folder / f"out{number}.bin", one.dtype).reshape(one.shape)
            for number, one in enumerate(like)
        ]

    def fails(self, path, name, arrays, like, **variables):
        """Run a function that must fail; return its message."""
        done = self.process(path, name, arrays, like, variables)
        assert done.returncode == 1, (done.returncode, done.stderr)
        return done.stderr

    def describe(self, path):
        """Return the program's description of its functions."""
        return self.start(path).stdout
