"""Threads that use every operation of one allocator at once; the program the sanitizers run.

    python tests/simulation/stress_threads.py [SECONDS]

Twelve native threads allocate and free through the C symbols (alloc_stress.cpp, compiled here with
the sanitizer that is loaded); four Python threads allocate, read statistics and snapshots, and
empty the cache. This runs on a phantom, on immediate devices (with tags in their memory, which
reveal a block with two holders), and on a deferred one. At the end the invariants must hold, the
statistics must be exact, and no memory may be left.
"""

import contextlib
import ctypes
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gputensor._alloc import (
    allocator as device_allocator,
)
from gputensor._alloc import (
    check as checker,
)
from gputensor._alloc import (
    foreign as raw_memory,
)
from gputensor._alloc import (
    observe as report,
)
from gputensor._alloc.observe.statistics_names import STATISTICS_KEYS
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError
from tests.support.driver_calls import Calls
from tests.support.models.allocator_shadow import MIB, c_symbols

NATIVE_THREADS = 12
STREAMS = 4
COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
DEVICES = {
    "phantom": dict(capacity=2048 * MIB, phantom=True),
    "immediate": dict(capacity=512 * MIB),
    "tight": dict(capacity=96 * MIB),
    "deferred": dict(capacity=512 * MIB, seed=5),
}


def native_library(folder):
    """Compile alloc_stress.cpp with the sanitizer of this process, if any, and load it."""
    loaded = os.environ.get("LD_PRELOAD", "")
    flags = [f"-fsanitize={name}" for name, library in
             (("thread", "libtsan"), ("address", "libasan")) if library in loaded]  # fmt: skip
    source = Path(__file__).with_name("alloc_stress.cpp")
    target = Path(folder) / "alloc_stress.so"
    command = [COMPILER, "-std=c++17", "-O1", "-g", "-shared", "-fPIC", "-pthread", *flags,
               "-o", str(target), str(source)]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run(command, check=True, env=environment)
    function = ctypes.CDLL(str(target)).alloc_stress
    function.restype = ctypes.c_uint64
    pointer, number = ctypes.c_void_p, ctypes.c_int
    function.argtypes = [pointer, pointer, pointer, number, pointer, number, ctypes.c_size_t,
                         number, number, number, ctypes.c_uint64, pointer, pointer]  # fmt: skip
    return function


class Stress:
    """One device under load. `errors` holds the exceptions of its Python threads."""

    def __init__(self, name, seconds):
        self.number = registry.open_host(**DEVICES[name])
        self.touch = name in ("immediate", "tight")
        self.seconds = seconds
        self.calls = Calls(self.number)
        made = [self.calls.make("stream_create", 0) for _ in range(STREAMS - 1)]
        self.streams = [0, *made]
        self.stop = threading.Event()
        self.errors = []
        self.pairs = self.refused = 0

    def guarded(self, body):
        try:
            rng = random.Random()
            while not self.stop.is_set():
                body(rng)
        except BaseException as error:
            self.errors.append(error)

    def allocate(self, rng):
        held = []
        for _ in range(rng.randrange(1, 20)):
            with contextlib.suppress(OutOfMemoryError):
                nbytes = rng.choice([700, 4096, 300_000, 2 * MIB, 9 * MIB])
                held.append(raw_memory.raw_alloc(self.number, nbytes, rng.choice(self.streams)))
        for ptr in held:
            if rng.random() < 0.3:
                raw_memory.raw_record_stream(ptr, rng.choice(self.streams))
            raw_memory.raw_delete(ptr)

    def read(self, rng):
        stats = dict(zip(STATISTICS_KEYS, report.all_values(self.number)[0], strict=True))
        for name in ("allocation", "allocated_bytes", "active_bytes", "requested_bytes"):
            current, peak = (stats[f"{name}.all.{field}"] for field in ("current", "peak"))
            assert 0 <= current <= peak, f"{name}: {current} now, {peak} at most"
        segments, blocks = report.collect_segments(self.number)
        assert segments["nbytes"].sum() == blocks["nbytes"].sum()
        assert report.reserved_nbytes(self.number) >= 0
        assert report.allocated_nbytes(self.number) >= 0
        time.sleep(0.001)

    def empty(self, rng):
        report.empty_cache(self.number)
        time.sleep(0.02)

    def native(self, function):
        library = c_symbols()
        addresses = [ctypes.cast(getattr(library, f"gputensor_{name}"), ctypes.c_void_p)
                     for name in ("malloc", "free", "record_stream")]  # fmt: skip
        streams = (ctypes.c_uint64 * STREAMS)(*self.streams)
        pairs, refused = ctypes.c_uint64(), ctypes.c_uint64()
        lost = function(*addresses, self.number, streams, STREAMS, 8 * MIB, self.touch,
                        NATIVE_THREADS, int(self.seconds * 1000), random.randrange(1 << 30),
                        ctypes.byref(pairs), ctypes.byref(refused))  # fmt: skip
        self.pairs, self.refused = pairs.value, refused.value
        assert lost == 0, f"{lost} blocks were overwritten while a thread held them"

    def run(self, function):
        raw_memory.raw_delete(raw_memory.raw_alloc(self.number, 512, 0))
        bodies = (self.allocate, self.allocate, self.read, self.empty)
        threads = [threading.Thread(target=self.guarded, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        try:
            self.native(function)
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        if self.errors:
            raise self.errors[0]
        assert self.pairs > 0, "the threads did not run"
        self.verify()

    def verify(self):
        faults = checker.check(self.number)
        assert not faults, faults
        report.empty_cache(self.number)
        stats = dict(zip(STATISTICS_KEYS, report.all_values(self.number)[0], strict=True))
        for name, value in stats.items():
            if name.endswith(".current"):
                assert value == 0, f"{name} is {value} at the end"
            if name.endswith(".allocated"):
                freed = stats[name.replace(".allocated", ".freed")]
                assert value == freed, f"{name} is {value}, freed {freed}"
        assert stats["allocation.all.allocated"] >= self.pairs
        device_allocator.close_allocator(self.number)
        for stream in self.streams[1:]:
            assert self.calls.stream_destroy(stream) == 0
        left = registry.leaks(self.number)
        assert not any(left.values()), left


def stress(name, seconds, function):
    """Run one device under load; return the counts of freed blocks and of refused requests."""
    load = Stress(name, seconds)
    try:
        load.run(function)
    finally:
        registry.close_host(load.number)
    return load.pairs, load.refused


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    if COMPILER is None:
        sys.exit("needs a C++ compiler on the path")
    with tempfile.TemporaryDirectory() as folder:
        function = native_library(folder)
        for name in DEVICES:
            pairs, refused = stress(name, seconds, function)
            print(f"{name}: {pairs} pairs, {refused} refused", flush=True)


if __name__ == "__main__":
    main()
