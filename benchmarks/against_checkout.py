"""Host time of calls in this checkout against another one: ratios of interleaved rounds.

    python benchmarks/against_checkout.py OTHER [--device host|cuda] [--rounds 15]

OTHER is a built checkout. Each checkout runs in a separate process; their rounds alternate, so that
a machine whose speed drifts slows both. A ratio below 1 means that this checkout is faster. Calls
queue their work and return; the queue is drained between rounds.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
SIZE = 64


def calls(device):
    """Return the measured calls, by name, and a function that drains the queue."""
    import gputensor as gt

    a, b, out = (gt.ones((SIZE, SIZE), dtype=gt.float32, device=device) for _ in range(3))
    view = gt.ones((SIZE, SIZE, 4), device=device)
    trace = HERE / "benchmarks" / "traces" / "gpt2_train.npz"
    found = {
        "empty": lambda: gt.empty(256, dtype=gt.uint8, device=device),
        "a + b": lambda: a + b,
        "add(out=)": lambda: gt.add(a, b, out=out),
        "exp": lambda: gt.exp(a),
        "sum": lambda: gt.sum(a, axis=0),
        "matmul(out=)": lambda: gt.matmul(a, b, out=out),
        "a @ b": lambda: a @ b,
        "x[1][2:]": lambda: view[1:, 2],
        "from_dlpack": lambda: gt.from_dlpack(a),
        "x[...] = 0": lambda: out.__setitem__(..., 0),
        "replay of gpt2_train": lambda: replayed(trace),
    }
    return found, lambda: gt.synchronize(device)


def replayed(path):
    """Replay a trace on a phantom device, to measure the allocator's own host time."""
    from gputensor._driver import registry

    try:
        from gputensor._alloc.replay import replay_trace
        from gputensor._alloc.replay.trace_file import read_trace
    except ImportError:  # an older layout
        from gputensor._alloc.replay import replay_trace
        from gputensor._alloc.trace_file import read_trace
    trace = read_trace(path)
    device = registry.open_host(capacity=80 << 30, phantom=True)
    try:
        replay_trace(trace.op, trace.id, trace.size, trace.stream, device)
    finally:
        registry.close_host(device)


def worker(device):
    """Answer each line `NAME` of standard input with the nanoseconds of one call."""
    found, drain = calls(device)
    print("|".join(found), flush=True)
    repetitions = {}
    for line in sys.stdin:
        name = line.rstrip("\n")
        call = found[name]
        if name not in repetitions:
            for _ in range(3):
                call()
            drain()
            start = time.perf_counter_ns()
            call()
            once = max(200, time.perf_counter_ns() - start)
            repetitions[name] = max(1, min(5000, 20_000_000 // once))
            drain()
        count = repetitions[name]
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        elapsed = time.perf_counter_ns() - start
        drain()
        print(elapsed / count, flush=True)


def started(checkout, device):
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.Popen(
        [sys.executable, __file__, str(checkout), "--worker", "--device", device],
        env=environment,
        cwd=checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("--device", default="host", choices=["host", "cuda"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    if options.worker:
        return worker(options.device)
    from report import Report

    processes = [started(HERE, options.device), started(options.other.resolve(), options.device)]
    names = [process.stdout.readline().rstrip("\n").split("|") for process in processes]
    shared = [name for name in names[0] if name in names[1]]
    report = Report(f"against_checkout_{options.device}", "Host time against another checkout, ns")
    for name in shared:
        times = [[], []]
        for number in range(options.rounds + 1):
            for process, found in zip(processes, times, strict=True):
                print(name, file=process.stdin, flush=True)
                value = float(process.stdout.readline())
                if number:  # the first round warms up
                    found.append(value)
        ratios = [a / b for a, b in zip(*times, strict=True)]
        report.add(
            call=name,
            this=round(statistics.median(times[0])),
            other=round(statistics.median(times[1])),
            ratio=round(statistics.median(ratios), 3),
        )
    report.finish()
    for process in processes:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
