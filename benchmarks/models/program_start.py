"""The time before a program's first call: tracing and loading.

    python benchmarks/models/program_start.py [--gigabytes 4]

Tracing is processor time for each of 1,000 calls, the best of several rounds, on the host device;
with a free dim it includes all samples and their merging. Then a program is loaded whose weights,
in the shapes of a language model, are in a separate file in the page cache. "map" is opening and
checking the program file, which reads no element. "load" is the whole of `load_program`; its rate
is compared with that of copies from pinned memory to a GPU, or between two arrays on a host device.
Host memory is the growth of the process's anonymous memory, without mapped files.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report  # noqa: E402
from gputensor.programs import file  # noqa: E402

CALLS = 1000
LAYER = ((4096, 4096), (4096, 4096), (14336, 4096), (4096, 14336))


def many(x):
    for _turn in range(CALLS):
        x = x + 1
    return x


def trace_rows(report, rounds=15):
    """Add the rows of tracing, without and with a free dim."""
    free = gt.Dim("n", 1, 64)
    for what, extent in (("trace, each call", 4), ("trace, each call, a free dim", free)):
        times = []
        for _round in range(rounds):
            began = time.process_time()
            gt.trace(many, gt.spec((extent,)), target="host")
            times.append(time.process_time() - began)
        report.add(what=what, us=round(min(times) / CALLS * 1e6, 2))


def write_weights(path, nbytes):
    """Write a safetensors file of bfloat16 matrices, whose elements are zeros in a sparse file."""
    header, place = {}, 0
    while place < nbytes:
        shape = LAYER[len(header) % len(LAYER)]
        size = 2 * shape[0] * shape[1]
        entry = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
        header[f"layers.{len(header)}"] = entry
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + place)
        # Weights with equal content would be a single weight on the device.
        for number, entry in enumerate(header.values()):
            out.seek(8 + len(text) + entry["data_offsets"][0])
            out.write(struct.pack("<Q", number))
    return place


def anonymous_memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


def copy_rate(device, nbytes=256 << 20):
    """Return the bytes a second of copies from pinned memory, or between arrays on the host."""
    if device == "host":
        source, target = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)

        def copy():
            target[:] = source
    else:
        # A captured copy from pinned memory is a single node of the graph.
        source = np.frombuffer(gt.memory.pinned_buffer(nbytes), np.uint8)
        graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(graph):
            _target = gt.asarray(source)

        def copy():
            graph.replay()
            gt.synchronize()

    times = []
    for _round in range(6):
        start = time.perf_counter()
        copy()
        times.append(time.perf_counter() - start)
    return nbytes / min(times)


def load_rows(report, path, nbytes, device):
    """Add the rows of mapping and loading, each the best of several."""
    mapping, loading = [], []
    for _round in range(3):
        before, start = anonymous_memory(), time.perf_counter()
        data = file.read(path)
        mapping.append((time.perf_counter() - start, anonymous_memory() - before))
        del data
        before, start = anonymous_memory(), time.perf_counter()
        with gt.load_program(path, device=device):
            seconds = time.perf_counter() - start
            loading.append((seconds, anonymous_memory() - before))
    rate = copy_rate(device)
    for what, found in (("map", mapping), ("load", loading)):
        seconds, grown = min(found)
        row = {"what": what, "bytes": nbytes, "s": round(seconds, 4), "host memory": grown}
        if what == "load":
            row |= {"GB/s": round(nbytes / seconds / 1e9, 2), "copy GB/s": round(rate / 1e9, 2)}
            row["ratio"] = round(nbytes / seconds / rate, 3)
        report.add(**row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=4.0)
    options = parser.parse_args()
    device = "cuda" if gt.is_available() else "host"
    report = Report(
        f"models/program_start_{device}", "Tracing, and loading a program with separate weights"
    )
    trace_rows(report)
    with tempfile.TemporaryDirectory() as folder:
        apart = os.path.join(folder, "w.safetensors")
        nbytes = write_weights(apart, int(options.gigabytes * 1e9))
        path = os.path.join(folder, "p.gtp")

        def model(x, *, weights):
            for w in weights["layers"]:
                x = x + w[0, :4]
            return x

        tree = gt.map_safetensors(apart)
        program = gt.compile(model, gt.spec((4,)), weights=tree, target=device)
        program.save(path, weights="w.safetensors")
        program.close()
        load_rows(report, path, nbytes, device)
    report.finish()


if __name__ == "__main__":
    main()
