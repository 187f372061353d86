"""Runs in a process whose driver library is fake_gpu.cpp: `__cuda_array_interface__`, DLPack.

Started by test_foreign_simulated_gpu.py with the number of programs; prints "ok" at the end.
"""

import sys

import numpy as np

from tests.interop import foreign_fuzz
from tests.support import kernel_compiler

if __name__ == "__main__":
    kernel_compiler.install()
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    foreign_fuzz.run("interface", int(sys.argv[1]), seed)
    print("ok")
