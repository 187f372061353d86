"""Products with 4-bit and 8-bit weights and some rows of x, beside the same products in bfloat16.

GPU time is measured by graph replay over copies of the weights, whose int4 form together is four
times the cache, as the median of interleaved rounds. "over bf16" is the speed relative to gt.matmul
with plain weights.

    python benchmarks/quantized_rows.py [--rows N ...] [--name NAME]
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, require_gpu  # noqa: E402

SHAPES = ((8192, 8192), (4096, 4096), (1024, 8192), (28672, 8192))  # (n, k)
ROWS = (16, 17, 24, 32, 48, 64, 128, 512, 2048)
GROUP, CACHE_NBYTES, ROUNDS = 128, 256 << 20, 7


def graph_of(calls):
    for call in calls:
        call()
    gt.synchronize()
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        for call in calls:
            call()
    return graph.replay


def interleaved(sides):
    """Return median microseconds of a call of each side; a side is a list of calls."""
    replays = {name: graph_of(calls) for name, calls in sides.items()}
    times = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, replay in replays.items():
            start, end = (gt.Event(enable_timing=True) for _ in range(2))
            gt.synchronize()
            start.record()
            replay()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) * 1e3 / len(sides[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def calls_of(plain, quantized, x):
    """Return the sides of a product of x."""
    sides = {"bf16": [lambda w=w: gt.matmul(x, w.T) for w in plain]}
    for name, weights in quantized.items():
        sides[name] = [lambda q=q: gt.quantized_linear(x, *q) for q in weights]
    return sides


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--name", default="quantized_rows", help="of the result")
    arguments = parser.parse_args()
    require_gpu()
    report = Report(arguments.name, "Products with quantized weights and some rows, microseconds")
    how = {"dtype": gt.bfloat16, "device": "cuda"}
    for n, k in SHAPES:
        copies = -(-CACHE_NBYTES // (n * k // 2))
        plain = [gt.random.normal(0.0, 1.0, (n, k), **how) for _ in range(copies)]
        makers = {"int4": gt.quantize_int4, "int8": gt.quantize_int8}
        quantized = {name: [make(w, GROUP) for w in plain] for name, make in makers.items()}
        for rows in arguments.rows:
            x = gt.random.normal(0.0, 1.0, (rows, k), **how)
            times = interleaved(calls_of(plain, quantized, x))
            report.add(
                shape=f"{rows}x{n}x{k}",
                **{name: round(found, 1) for name, found in times.items()},
                **{f"{one} over bf16": round(times["bf16"] / times[one], 2) for one in makers},
            )
    report.finish()


if __name__ == "__main__":
    main()
