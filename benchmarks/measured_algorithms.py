"""Measure cuBLASLt's algorithms over a grid of common sizes; keep those that beat its first choice.

    python benchmarks/measured_algorithms.py             measure, print, write benchmarks/results/
    python benchmarks/measured_algorithms.py --write     also write measured_algorithms.json
    python benchmarks/measured_algorithms.py --near      try the algorithms for other row counts

The sizes are those of the weights of common models, with 1 to 8192 rows. Sections of other devices
and library series in the file stay.
"""

import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path

import gputensor as gt
from gputensor import blas
from gputensor._driver.registry import device_info
from gputensor.blas.bench import ProductBench
from gputensor.blas.bench.tuner import tune
from gputensor.blas.libraries import library_versions
from gputensor.blas.plan import FIELDS, signature_of_shape
from gputensor.blas.plan import KINDS as KINDS_BY_NAME
from gputensor.blas.tuning import measured_algorithms
from report import Report, require_gpu

ROWS = (1, 16, 128, 1024, 2048, 4096, 8192)
WEIGHTS = (  # columns of the result, terms
    (1024, 1024),
    (4096, 4096),
    (8192, 8192),
    (4096, 14336),
    (14336, 4096),
    (4096, 11008),
    (11008, 4096),
    (28672, 8192),
    (8192, 28672),
)
KINDS = ("bf16", "fp16", "tf32", "fp32")
#: Exact fp32 is bound by arithmetic: large products gain nothing and take long to measure.
LARGEST_FP32 = 6e10
#: Gains below this are noise between two runs. The limit is higher for long products, whose clocks
#: vary with the power that they draw. Each gain that the tuner finds is measured once more.
LEAST_GAIN = 1.015
LEAST_GAIN_LONG = 1.02
LONG_US = 100
BACKEND_LT = 0


def grid():
    """Return the products, long and short ones mixed, so that clocks are as in real use."""
    found = [
        (m, n, k, kind, layout)
        for kind in KINDS
        for n, k in WEIGHTS
        for m in ROWS
        for layout in ("NN", "NT")
        if kind != "fp32" or m * n * k <= LARGEST_FP32
    ]
    random.Random(1).shuffle(found)
    return found


def row_of(signature, config):
    fields = dict(zip(FIELDS, signature, strict=True))
    return [*(fields[name] for name in measured_algorithms.KEY), list(config)]


def write(rows):
    """Replace this device's section of the file."""
    device = device_info(0)["name"]
    library = library_versions()["cublasLt"] // 10000
    sections = [
        section
        for section in json.loads(measured_algorithms.FILE.read_text())["sections"]
        if (section["device"], section["library"]) != (device, library)
    ]
    sections.append({"device": device, "library": library, "rows": sorted(rows)})
    text = ", ".join(
        f'{{"device": {json.dumps(one["device"])}, "library": {one["library"]}, "rows": [\n'
        + ",\n".join(json.dumps(row, separators=(",", ":")) for row in one["rows"])
        + "\n]}"
        for one in sections
    )
    Path(measured_algorithms.FILE).write_text(f'{{"sections": [{text}]}}\n')


def near(result):
    """Add the time of the library's first choice over a row's algorithm, for other row counts."""
    names = {value: name for name, value in KINDS_BY_NAME.items()}
    library = library_versions().get("cublasLt", 0)
    found = measured_algorithms.read_rows(
        measured_algorithms.FILE.read_text(), device_info(0)["name"], library
    )
    keys = random.Random(2).sample(sorted(found), min(40, len(found)))
    for factor in (0.78, 0.93, 1.08, 1.2):
        ratios = []
        for key in keys:
            named = dict(zip(measured_algorithms.KEY, key, strict=True))
            if named["n"] < 16:
                continue
            rows = max(8, int(named["n"] * factor) // 8 * 8)
            kind = names[named["type_a"], named["compute"]]
            layout = "NT" if named["op_a"] else "NN"
            signature = signature_of_shape(rows, named["m"], named["k"], kind, layout)
            ratios.append(first_choice_over(signature, (0, BACKEND_LT, found[key])))
        result.add(
            what=f"{factor} of the rows",
            products=len(ratios),
            **{"geometric mean": round(statistics.geometric_mean(ratios), 3)},
            least=round(min(ratios), 3),
            most=round(max(ratios), 3),
        )


def first_choice_over(signature, way, repeats=8, rounds=9):
    """Return the time of the library's first choice over an algorithm's, in interleaved rounds."""
    bench = ProductBench(signature, 0, 128 << 20)
    plans = [bench.plan(None), bench.plan(way)]
    for plan in plans:
        bench.once(plan)
    graphs = [bench.graph(plan, repeats) for plan in plans]
    times = [[], []]
    for turn in range(rounds + 1):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side].append(bench.replay(graphs[side], repeats))
    for plan, graph in zip(plans, graphs, strict=True):
        bench.release(plan, graph)
    first, ours = (statistics.median(side[1:]) for side in times)
    return first / ours


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.25, help="budget of one product")
    parser.add_argument("--write", action="store_true", help="write measured_algorithms.json")
    parser.add_argument(
        "--near", action="store_true", help="measure lending to near shapes instead"
    )
    arguments = parser.parse_args()
    require_gpu()
    # The first product loads the library.
    gt.matmul(gt.ones((64, 64), device="cuda"), gt.ones((64, 64), device="cuda"))
    blas.clear_workspaces()
    if arguments.near:
        result = Report(
            "measured_algorithms_near", "Measured algorithms lent to other numbers of rows"
        )
        near(result)
        result.finish()
        return
    result = Report("measured_algorithms", "cuBLASLt's algorithms against its first choice")
    start = time.monotonic()
    gains, rows = [], []
    for m, n, k, kind, layout in grid():
        signature = signature_of_shape(m, n, k, kind, layout)
        measured = tune(signature, 0, seconds=arguments.seconds)
        gain = measured["default_us"] / measured["us"]
        gains.append(gain)
        pad, _, config = measured["choice"]
        least = LEAST_GAIN_LONG if measured["default_us"] > LONG_US else LEAST_GAIN
        is_better = gain >= least and config is not None and not pad
        if is_better and first_choice_over(signature, (0, BACKEND_LT, config)) >= least:
            rows.append(row_of(signature, config))
            result.add(
                shape=f"{m}x{n}x{k}",
                dtype=kind,
                layout=layout,
                us=round(measured["us"], 2),
                **{"first choice us": round(measured["default_us"], 2), "gain": round(gain, 3)},
            )
    mean = statistics.geometric_mean(gains)
    result.add(shape="all", dtype=f"{len(gains)} products", layout="", us=None, gain=round(mean, 4))
    print(f"{len(gains)} products in {time.monotonic() - start:.0f} s", file=sys.stderr)
    result.finish()
    if arguments.write:
        write(rows)


if __name__ == "__main__":
    main()
