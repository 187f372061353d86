"""The cost and the gain of tuning: 100 products within a minute, and exhaustive searches.

    python benchmarks/matmul_tuning.py               both
    python benchmarks/matmul_tuning.py --part quick  100 products by `gputensor blas tune`
    python benchmarks/matmul_tuning.py --part exhaustive

The quick part reports the wall time of the whole command, including its start. The exhaustive part
compares an untuned product (with measured algorithms) with the best algorithm found among all that
fit, in interleaved replays of graphs over rotating operands.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gputensor as gt
from gputensor import blas
from gputensor.blas.bench import ProductBench
from gputensor.blas.bench.tuner import tune
from gputensor.blas.plan import measured_algorithm, signature_of_shape
from gputensor.blas.tuning import measured_algorithms
from report import Report, require_gpu

PRODUCTS = 100
LARGE = [(size, size, size, "bf16", layout) for size in (4096, 8192) for layout in ("NN", "NT")]
BACKEND_LT = 0


def quick(result):
    rng = random.Random(3)
    lines = [
        f"{rng.choice((1, 8, 16, 100, 128, 500, 512, 1024, 2048))}x{rng.randrange(64, 8193, 8)}x"
        f"{rng.randrange(64, 8193, 8)} {rng.choice(('fp32', 'tf32', 'fp16', 'bf16'))} "
        f"{rng.choice(('NN', 'NT', 'TN'))}"
        for _ in range(PRODUCTS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        shapes, output = Path(folder, "shapes.txt"), Path(folder, "tuned.json")
        shapes.write_text("\n".join(lines) + "\n")
        command = [sys.executable, "-m", "gputensor.cli.main", "blas", "tune", "--quiet"]
        start = time.monotonic()
        subprocess.run(
            [*command, "--shapes", shapes, "--output", output], check=True, capture_output=True
        )
        seconds = time.monotonic() - start
        rows = json.loads(output.read_text())["results"]
    gain = statistics.geometric_mean(row["default_us"] / row["us"] for row in rows)
    result.add(what=f"tune {len(rows)} products", seconds=round(seconds, 1), gain=round(gain, 3))


def exhaustive(result, seconds):
    measured_algorithms.fill(0)
    for m, n, k, kind, layout in LARGE:
        signature = signature_of_shape(m, n, k, kind, layout)
        found = tune(signature, 0, seconds=seconds, is_exhaustive=True)
        bench = ProductBench(signature, 0, 128 << 20)
        known = measured_algorithm(signature, 0)
        algorithms = {
            "as it is": None if known is None else (0, BACKEND_LT, known),
            "best": found["algorithms"][0][1],
        }
        plans = {name: bench.plan(algorithm) for name, algorithm in algorithms.items()}
        for plan in plans.values():
            bench.once(plan)
        graphs = {name: bench.graph(plan, 4) for name, plan in plans.items()}
        times = {name: [] for name in algorithms}
        for turn in range(16):
            for name in sorted(graphs, reverse=turn % 2 == 1):
                times[name].append(bench.replay(graphs[name], 4))
        us = {name: 1e6 * statistics.median(values[2:]) for name, values in times.items()}
        for name in algorithms:
            bench.release(plans[name], graphs[name])
        result.add(
            what=f"{m}x{n}x{k} {kind} {layout}",
            us=round(us["as it is"], 1),
            **{"best us": round(us["best"], 1), "of best": round(us["best"] / us["as it is"], 3)},
            measured=found["measured"],
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["quick", "exhaustive"])
    parser.add_argument("--seconds", type=float, default=6.0, help="for each exhaustive search")
    arguments = parser.parse_args()
    require_gpu()
    result = Report("matmul_tuning", "Tuning: its cost, and the distance from the best algorithm")
    if arguments.part != "exhaustive":
        quick(result)
    if arguments.part != "quick":
        # The first product loads the library.
        gt.matmul(gt.ones((64, 64), device="cuda"), gt.ones((64, 64), device="cuda"))
        blas.clear_workspaces()
        exhaustive(result, arguments.seconds)
    result.finish()


if __name__ == "__main__":
    main()
