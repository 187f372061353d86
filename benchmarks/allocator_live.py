"""One free + one malloc with 10 to 1,000,000 live blocks: does the time grow?

    python benchmarks/allocator_live.py [--repetitions 5]

Runs on a phantom host device, so that a million blocks need memory only for their records. The loop
cycles through the live blocks, frees one and allocates its size again, on one thread, through the C
symbols. It runs with thread caches and without them (`thread_cache:False`: every pair goes through
the pools under the device lock, with merge and split).
"""

import argparse
import ctypes
import statistics

import numpy as np
from native.build import load, own_functions

import gputensor as gt
from gputensor._driver.registry import close_host, open_host
from report import Report

LIVE = (10, 1_000, 100_000, 1_000_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    entry = load("pairs").time_pairs
    entry.restype = ctypes.c_double
    entry.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    entry.argtypes += [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    functions = own_functions()
    sizes = (np.arange(1, 17) * 512).astype(np.uint64)
    streams = (ctypes.c_void_p * 1)(0)
    report = Report("allocator_live", "ns for one free + one malloc, by live blocks")
    for cached in (True, False):
        gt.memory.set_allocator_settings(f"thread_cache:{cached}")
        for live in LIVE:
            device = open_host(capacity=2**42, phantom=True)
            pairs = max(200_000, live)
            arguments = (device, streams, 1, sizes.ctypes.data, len(sizes), live, pairs)
            times = [entry(*functions, *arguments) for _ in range(options.repetitions)]
            assert min(times) > 0, "a request failed"
            close_host(device)
            report.add(thread_cache=cached, live=live, ns=statistics.median(times))
    gt.memory.set_allocator_settings("thread_cache:True")
    report.finish()


if __name__ == "__main__":
    main()
