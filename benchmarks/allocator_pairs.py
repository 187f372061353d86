"""One free + one malloc through the C symbols, cache hits, on 1 to 16 threads.

    python benchmarks/allocator_pairs.py [--device host|cuda] [--threads 1,2,4,8,16] [--pairs N]

Sizes: 4 KiB; up to 32 sizes of 512 B to 1 MiB; up to 32 sizes of 1 to 64 MiB, each with one stream
for all threads and with a stream for each thread. Each figure is the median of several runs. Where
torch is installed with CUDA, its allocator runs the same loop in the same process, through its C++
API in an extension that is built when the program starts.
"""

import argparse
import ctypes
import statistics

import numpy as np
from native.build import load, own_functions
from torch_peer import torch_functions

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from report import Report


def loop():
    """Return the timed loop."""
    entry = load("pairs").time_pairs
    entry.restype = ctypes.c_double
    entry.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int64,
    ]
    return entry


def size_sets(rng):
    small = np.unique((2 ** rng.uniform(9, 20, 32)).astype(np.uint64) // 512 * 512)
    large = np.unique((2 ** rng.uniform(20, 26, 32)).astype(np.uint64) // 512 * 512 + 512)
    return {
        "4 KiB": np.array([4096], np.uint64),
        "512 B-1 MiB": np.maximum(small, 512),
        "1-64 MiB": large,
    }


def run(entry, functions, device, handles, sizes, live, pairs, repetitions):
    streams = (ctypes.c_void_p * len(handles))(*handles)
    times = [
        entry(
            functions[0],
            functions[1],
            device,
            streams,
            len(handles),
            sizes.ctypes.data,
            len(sizes),
            live,
            pairs,
        )
        for _ in range(repetitions)
    ]
    assert min(times) > 0, "a request failed"
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("host", "cuda"), default=None)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    device = options.device or ("cuda" if cuda_device_count() else "host")
    number = 0 if device == "cuda" else -1
    gt.empty(1, device=device)
    entry = loop()
    own, torch = own_functions(), torch_functions() if device == "cuda" else None
    report = Report("allocator_pairs", "ns for one free + one malloc, cache hits, mean of threads")
    for name, sizes in size_sets(np.random.default_rng(1)).items():
        for threads in map(int, options.threads.split(",")):
            streams = [gt.Stream(device=device) for _ in range(threads)]
            row = {"sizes": name, "threads": threads}
            live = 1 if len(sizes) == 1 else len(sizes)
            arguments = (sizes, live, options.pairs, options.repetitions)
            row["one stream"] = run(entry, own, number, [0] * threads, *arguments)
            handles = [stream.cuda_stream for stream in streams]
            row["a stream each"] = run(entry, own, number, handles, *arguments)
            if torch:
                # torch is a thousand times slower under contention, so fewer pairs are enough.
                fewer = (sizes, live, max(options.pairs // threads // 8, 2_000), 3)
                row["torch"] = run(entry, torch, number, [0] * threads, *fewer)
            report.add(**row)
            gt.memory.empty_cache()
    report.finish()


if __name__ == "__main__":
    main()
