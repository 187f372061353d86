"""The cost of the allocator from Python: empty and drop, statistics, snapshots, history.

    python benchmarks/allocator_python.py [--device host|cuda]

`numpy.empty` is measured in the same process, and with a GPU also `torch.empty` where torch is
installed. Times are medians of loops in nanoseconds.
"""

import argparse
import statistics
import time

import numpy as np

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from report import Report, measure


def torch_module():
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def fill_history(device, entries):
    gt.memory.record_memory_history(max_entries=entries)
    for _ in range(entries // 3 + 1):
        gt.empty(256, dtype="uint8", device=device)


def history_ns(rounds=7):
    """Return the time that recording adds to an allocation and its free, a median of rounds."""
    added = []
    for _ in range(rounds):
        plain = measure(lambda: gt.empty(256, dtype="uint8"), repetitions=3)
        gt.memory.record_memory_history("all", stacks="python", max_entries=100_000)
        added.append(measure(lambda: gt.empty(256, dtype="uint8"), repetitions=3) - plain)
        gt.memory.record_memory_history(None)
    return statistics.median(added)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("host", "cuda"), default=None)
    options = parser.parse_args()
    device = options.device or ("cuda" if cuda_device_count() else "host")
    torch = torch_module() if device == "cuda" else None
    report = Report(f"allocator_python_{device}", "nanoseconds, from Python")

    def add(what, ours, peer=None, peer_name=""):
        ns = measure(ours)
        row = {"what": what, "ns": ns}
        if peer is not None:
            peer_ns = measure(peer)
            row |= {"peer": peer_name, "peer ns": peer_ns, "ratio": ns / peer_ns}
        report.add(**row)
        return ns

    with gt.Device(device):
        keep = gt.empty(1)
        for nbytes in (256, 512 << 10, 4 << 20):
            add(
                f"empty({nbytes}, uint8) and drop",
                lambda n=nbytes: gt.empty(n, dtype="uint8"),
                lambda n=nbytes: np.empty(n, dtype="uint8"),
                "numpy",
            )
            if torch:
                add(
                    f"empty({nbytes}, uint8) and drop",
                    lambda n=nbytes: gt.empty(n, dtype="uint8"),
                    lambda n=nbytes: torch.empty(n, dtype=torch.uint8, device="cuda"),
                    "torch",
                )
        torch_memory = torch.cuda if torch else None
        add(
            "memory_allocated()",
            gt.memory.memory_allocated,
            torch_memory and torch_memory.memory_allocated,
            "torch",
        )
        add(
            "memory_stats()",
            gt.memory.memory_stats,
            torch_memory and torch_memory.memory_stats,
            "torch",
        )
        report.add(what="history with Python stacks, an allocation and its free", ns=history_ns())
        fill_history(device, 100_000)
        started = time.perf_counter_ns()
        taken = gt.memory.snapshot()
        elapsed = time.perf_counter_ns() - started
        entries = sum(map(len, taken["device_traces"]))
        report.add(what=f"snapshot() with {entries} history entries", ns=float(elapsed))
        gt.memory.record_memory_history(None)
        del keep
    report.finish()


if __name__ == "__main__":
    main()
