"""Recorded traces of real models: memory reserved, modelled driver time, and speed.

    python benchmarks/allocator_traces.py [--device host|cuda] [--repetitions 5]
    python benchmarks/allocator_traces.py --variants [--settings page_reuse:False]
    python benchmarks/allocator_traces.py --page-sizes | --threads

Utilization (peak requested / peak reserved) and modelled driver seconds come from the simulator (a
phantom host device, the same code and decisions as on a GPU); the yardstick is 20 MiB pages without
reuse (pages_without_reuse.py). With a GPU, the events also run for real: through the C symbols of
this library and through torch with expandable segments, in one process, each side first in every
other pass. Every pass starts with both caches empty, so that it pays for its driver calls, and
after a pause: the driver clears released memory in the background (14 GiB took some 25 ms), and a
call that gives access to a page meanwhile was seen to wait up to 1 ms for it. Without the pause the
next side would pay for the memory that the other side released.

With `--variants` the simulator also runs programs like the recorded ones (traces/variants.py) and
prints means; `--settings` are allocator settings to compare with. `--page-sizes` runs the same
programs at several `page_size_mb` and prints the MiB that each reserves, and how much more a page
size needs, at worst, than a larger one. `--threads` runs them on 1, 2 and 8 threads that take
turns, and prints how much more they reserve than the pools alone (`thread_cache:False`). No result
file is written then.
"""

import argparse
import ctypes
import os
import statistics
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

from native.build import load, own_functions  # noqa: E402
from pages_without_reuse import baseline, handles_for  # noqa: E402
from torch_peer import torch_functions  # noqa: E402
from traces.variants import variants  # noqa: E402

import gputensor as gt  # noqa: E402
from gputensor._alloc.replay import replay_trace  # noqa: E402
from gputensor._alloc.replay.trace_file import Trace, read_trace  # noqa: E402
from gputensor._driver.registry import (  # noqa: E402
    close_host,
    cuda_device_count,  # noqa: E402
    open_host,
)
from report import Report  # noqa: E402

TRACES = Path(__file__).parent / "traces"
PAGE_SIZES = (2, 4, 8, 16, 20, 40)
MOST = 1.01  # what a page size may reserve, in proportion to a larger one
THREADS = (1, 2, 8)
TURN = 70  # events of one thread before it is the next one's turn
PAUSE = 0.3  # seconds for the driver to clear released memory


def simulate(trace, thread=None):
    device = open_host(capacity=2**40, phantom=True)
    thread = trace.thread if thread is None else thread
    try:
        return replay_trace(trace.op, trace.id, trace.size, trace.stream, device, thread)
    finally:
        close_host(device)


def time_trace(entry, functions, device, trace, handles):
    """Return the seconds for the events of a trace."""
    streams = (ctypes.c_void_p * len(handles))(*handles)
    arrays = [a.ctypes.data for a in (trace.op, trace.id, trace.size, trace.stream)]
    ids = int(trace.id.max()) + 1 if len(trace.id) else 0
    seconds = entry(*functions, device, streams, *arrays, len(trace.op), ids)
    assert seconds >= 0, "a request failed"
    return seconds


def real_times(entry, device, trace, repetitions):
    """Return microseconds for each event, for this library and for torch if it is there."""
    number = 0 if device == "cuda" else -1
    own, torch_peer = own_functions(), torch_functions() if device == "cuda" else None
    keep = []

    def new_stream():
        keep.append(gt.Stream(device=device))
        return keep[-1].cuda_stream

    handles = handles_for(trace, new_stream)
    sides = {"ours": (own, handles, lambda: gt.memory.empty_cache())}
    if torch_peer:
        import torch

        torch_handles = handles_for(trace, lambda: torch.cuda.Stream().cuda_stream)
        sides["torch"] = (torch_peer, torch_handles, torch.cuda.empty_cache)
    times = {side: [] for side in sides}
    order = list(sides)
    for _ in range(repetitions):
        for side in order:
            for _, _, clear in sides.values():
                clear()
            time.sleep(PAUSE)
            functions, side_handles, _ = sides[side]
            seconds = time_trace(entry, functions, number, trace, side_handles)
            times[side].append(seconds / trace.events * 1e6)
        order.reverse()
    return {side: statistics.median(found) for side, found in times.items()}


def simulated_row(name, trace):
    """Return the figures of the simulator and the yardstick for a trace."""
    found = simulate(trace)
    yard_utilization, yard_seconds = baseline(trace)
    return {
        "trace": name,
        "utilization": round(found["peak_requested_bytes"] / found["peak_reserved_bytes"], 5),
        "yardstick": round(yard_utilization, 4),
        "driver ms": found["modelled_driver_seconds"] * 1e3,
        "yardstick ms": yard_seconds * 1e3,
        "ratio": found["modelled_driver_seconds"] / yard_seconds,
        "us/event simulated": found["ns_per_event"] / 1e3,
    }


def groups():
    """Return the recorded traces and their variants, each as pairs of a name and a trace."""
    traces = {path.stem: read_trace(path) for path in sorted(TRACES.glob("*.npz"))}
    changed = ((name, Trace(*columns)) for name, *columns in variants(traces))
    return {"recorded": traces.items(), "variants": changed}


def compare(settings):
    """Print a row for each recorded trace and each variant, and the means of both groups."""
    gt.memory.set_allocator_settings(settings)
    for group, members in groups().items():
        report = Report(group, group)
        for name, trace in members:
            report.add(**simulated_row(name, trace))
        means = [
            statistics.mean(row[key] for row in report.rows) for key in ("utilization", "ratio")
        ]
        print(report.table())
        print(f"{group}: mean utilization {means[0]:.4f}, mean ratio {means[1]:.3f}\n")


def compare_page_sizes():
    """Print what each program reserves at each page size, and how often smaller pages need more."""
    for group, members in groups().items():
        report = Report(group, group)
        shares = {size: [] for size in PAGE_SIZES}
        ratios = []
        for name, trace in members:
            reserved = {}
            for size in PAGE_SIZES:
                gt.memory.set_allocator_settings(f"page_size_mb:{size}")
                found = simulate(trace)
                reserved[size] = found["peak_reserved_bytes"]
                shares[size].append(found["peak_requested_bytes"] / reserved[size])
            ratios.append(max(
                reserved[small] / reserved[large]
                for small in PAGE_SIZES for large in PAGE_SIZES if small < large
            ))  # fmt: skip
            columns = {f"{size} MiB": nbytes >> 20 for size, nbytes in reserved.items()}
            report.add(program=name, **columns, **{"worst %": round(100 * (ratios[-1] - 1), 2)})
        report.rows.sort(key=lambda row: -row["worst %"])
        print(report.table())
        means = ", ".join(f"{size} MiB {statistics.mean(shares[size]):.4f}" for size in PAGE_SIZES)
        over = sum(ratio > MOST for ratio in ratios)
        print(f"{group}: {over} of {len(ratios)} programs need over 1 % more at a smaller size")
        print(f"{group}: mean utilization {means}\n")


def compare_threads(settings):
    """Print by how much thread caches change the reserved bytes of each program."""
    for group, members in groups().items():
        report = Report(group, group)
        changes = []
        for name, trace in members:
            gt.memory.set_allocator_settings(f"{settings},thread_cache:False".lstrip(","))
            alone = simulate(trace)["peak_reserved_bytes"]
            gt.memory.set_allocator_settings("thread_cache:True")
            turns = np.arange(trace.events) // TURN
            found = {n: simulate(trace, np.int16(turns % n)) for n in THREADS}
            row = {n: 100 * (found[n]["peak_reserved_bytes"] / alone - 1) for n in THREADS}
            changes += row.values()
            columns = {f"{n} threads: %": round(change, 2) for n, change in row.items()}
            report.add(program=name, **{"pools alone, MiB": alone >> 20}, **columns)
        print(report.table())
        over, under = sum(c > 1 for c in changes), sum(c < -1 for c in changes)
        print(
            f"{group}: mean {statistics.mean(changes):+.3f} %, deviation"
            f" {statistics.pstdev(changes):.2f}, from {min(changes):+.2f} to {max(changes):+.2f};"
            f" {over} of {len(changes)} above +1 %, {under} below -1 %\n"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("host", "cuda"), default=None)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--variants", action="store_true", help="simulate programs like these")
    parser.add_argument("--settings", default="", help="with --variants or --threads")
    parser.add_argument("--page-sizes", action="store_true", help="compare page sizes")
    parser.add_argument("--threads", action="store_true", help="compare with the pools alone")
    options = parser.parse_args()
    if options.variants:
        return compare(options.settings)
    if options.page_sizes:
        return compare_page_sizes()
    if options.threads:
        return compare_threads(options.settings)
    device = options.device or ("cuda" if cuda_device_count() else "host")
    gt.empty(1, device=device)
    entry = load("events").time_events
    entry.restype = ctypes.c_double
    entry.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int] + [ctypes.c_void_p] * 5
    entry.argtypes += [ctypes.c_int64] * 2
    report = Report("allocator_traces", "recorded traces: peak requested / peak reserved, and time")
    ratios = []
    for path in sorted(TRACES.glob("*.npz")):
        trace = read_trace(path)
        row = simulated_row(path.stem, trace)
        ratios.append(row["utilization"])
        if device == "cuda":
            times = real_times(entry, device, trace, options.repetitions)
            row["us/event H200" if "H200" in gt.device.get_device_name() else "us/event"] = times[
                "ours"
            ]
            if "torch" in times:
                row["torch expandable"] = times["torch"]
                row["ours/torch"] = times["ours"] / times["torch"]
        report.add(**row)
    report.facts = {"mean_utilization": statistics.mean(ratios)}
    report.finish()
    print(f"mean utilization {statistics.mean(ratios):.4f}")


if __name__ == "__main__":
    main()
