"""The C symbols in a process that has not imported the library yet."""

import subprocess
import sys

from gputensor import memory


def test_the_c_library_gives_no_memory_before_the_import_and_does_not_crash():
    code = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
assert "gputensor" not in sys.modules
library.gputensor_malloc.restype = ctypes.c_void_p
ask = lambda: library.gputensor_malloc(ctypes.c_size_t(64), -1, None)
free = lambda ptr: library.gputensor_free(ctypes.c_void_p(ptr), ctypes.c_size_t(64), -1, None)
record = lambda ptr: library.gputensor_record_stream(ctypes.c_void_p(ptr), None)
library.gputensor_free.restype = None
print(ask(), free(4096), record(4096))
import gputensor.memory
ptr = ask()
print(gputensor.memory.memory_allocated("host"), record(ptr))
free(ptr)
print(gputensor.memory.memory_allocated("host"))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, memory.c_library()],
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None", "None", "3", "512", "0", "0"]
