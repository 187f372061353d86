"""Products of random shapes, dtypes and layouts beside torch's better library, by graph replay.

    python benchmarks/product_sweep.py [--count 300] [--seed 1 21] [--rounds 5] [--seconds S]
                                       [--few-rows | --narrow]

Extents are log-uniform from 1 to 16,384, half of them multiples of 8 or 64; a product has at most
2^38 multiplications and 1 GiB. Random shapes ensure that special cases for listed shapes do not
help. The reported rows are the slowest relative to torch; `geometric_mean` is over all products
of a seed.
`floor us` is the time for the product's bytes at the rate of a copy, or for its multiplications at
the peak of an H200, whichever is longer; `beyond_floor` counts the products of 20 us or more that
take over 1.3 times as long, all of them and those that torch computes faster.
With `--few-rows`, all have 1 to 8 rows, or columns, by weights that lie along the others; with
`--narrow`, 9 to 64 rows or columns and 512 to 16,384 of the others and terms.
"""

import argparse
import math
import random
import time

from matmul_shapes import ELEMENT, GpuTensor, Operands, Torch, measured

import gputensor as gt
from report import Report, require_gpu

MOST_WORK, MOST_BYTES = 1 << 38, 1 << 30
LAYOUTS = ("NN", "NT", "TN", "TT")
WORST = 30
COPY_RATE = 4.2e12  # bytes per second
PEAK = {"fp32": 67e12, "tf32": 495e12, "fp16": 989e12, "bf16": 989e12}  # of dense products, H200
LEAST_US, BEYOND = 20, 1.3  # a shorter product has a launch and a first wait that count


class Turned(Operands):
    """Operands of which the first may be transposed too."""

    def __init__(self, case, torch):
        m, n, k, dtype, layout = case
        super().__init__(m, n, k, dtype, layout[1] == "T", torch)
        if layout[0] == "T":
            self.torch_pairs = [(a.T.contiguous().T, b) for a, b in self.torch_pairs]
            torch.cuda.synchronize()
            self.pairs = [
                (gt.from_dlpack(a.T).T, mine)
                for (a, _), (_, mine) in zip(self.torch_pairs, self.pairs, strict=True)
            ]


def drawn(rng):
    """Draw one product: m, n, k, dtype, layout."""
    while True:
        extents = []
        for _ in range(3):
            extent = round(2 ** rng.uniform(0, 14))
            multiple = rng.choice((1, 1, 8, 64))
            extents.append(max(1, extent // multiple * multiple))
        m, n, k = extents
        dtype = rng.choice(tuple(ELEMENT))
        nbytes = 4 * (m * k + k * n + m * n)
        if m * n * k <= MOST_WORK and nbytes <= MOST_BYTES:
            return m, n, k, dtype, rng.choice(LAYOUTS)


def drawn_of_few_rows(rng):
    """Draw one product of 1 to 8 rows by (k, n) weights, or the transpose of one."""
    while True:
        wide = 8 * max(8, round(2 ** rng.uniform(6, 14) / 8))
        k = round(2 ** rng.uniform(6, 14))
        few = rng.choice((1, 1, 2, 3, 4, 5, 6, 7, 8))
        dtype = rng.choice(("fp32", "fp16", "bf16", "tf32"))
        if wide * k > 1 << 27:
            continue
        if rng.random() < 0.6:
            return few, wide, k, dtype, "NN"
        return wide, few, k, dtype, "TN" if rng.random() < 0.5 else "TT"


def rounded_down(extent, multiple, least):
    return max(least, extent // multiple * multiple)


def drawn_narrow(rng):
    """Draw one product with 9 to 64 rows or columns."""
    while True:
        narrow = rounded_down(round(2 ** rng.uniform(3.1, 6)), rng.choice((1, 1, 4, 8)), 9)
        wide = rounded_down(round(2 ** rng.uniform(9, 14)), rng.choice((1, 8, 64)), 512)
        k = rounded_down(round(2 ** rng.uniform(9, 14)), rng.choice((1, 8, 64, 64)), 512)
        dtype = rng.choice(tuple(ELEMENT))
        if not 1 << 21 <= wide * k <= MOST_BYTES >> 2:
            continue
        m, n = (wide, narrow) if rng.random() < 0.6 else (narrow, wide)
        return m, n, k, dtype, rng.choice(LAYOUTS)


def floor_us(m, n, k, dtype, operands):
    """Return the least time of a product in microseconds, by its bytes and multiplications."""
    itemsize = operands.torch_pairs[0][0].element_size()
    nbytes = itemsize * (m * k + k * n + m * n)
    return 1e6 * max(nbytes / COPY_RATE, 2 * m * n * k / PEAK[dtype])


KINDS = (
    ("product_sweep", "Products of random shapes", drawn),
    ("product_sweep_few_rows", "Products of few rows", drawn_of_few_rows),
    ("products/narrow", "Products of 9 to 64 rows or columns", drawn_narrow),
)


def swept(draw, seed, arguments, deadline, torch):
    """Measure the products of a seed; return their rows."""
    rng = random.Random(seed)
    rows = []
    for _ in range(arguments.count):
        if time.monotonic() > deadline:
            break
        case = draw(rng)
        operands = Turned(case, torch)
        contenders = [GpuTensor(operands)]
        contenders += [Torch(operands, torch, library) for library in ("cublas", "cublaslt")]
        times = measured(contenders, arguments.rounds)
        ours = times.pop("gputensor")
        m, n, k, dtype, layout = case
        rows.append({
            "shape": f"{m}x{n}x{k}", "dtype": dtype, "layout": layout, "us": round(ours, 2),
            "torch us": round(min(times.values()), 2),
            "ratio": round(min(times.values()) / ours, 3),
            "floor us": round(floor_us(m, n, k, dtype, operands), 2),
        })  # fmt: skip
        del operands, contenders
    return rows


def facts_of(rows):
    """Return what is true of all rows together."""
    ratios = [row["ratio"] for row in rows]
    beyond = [r for r in rows if r["us"] >= LEAST_US and r["us"] > BEYOND * r["floor us"]]
    return {
        "count": len(rows),
        "geometric_mean": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3),
        "beyond_floor": {"all": len(beyond), "torch_faster": sum(r["ratio"] < 1 for r in beyond)},
        "below": {str(limit): sum(one < limit for one in ratios) for limit in (0.9, 0.98, 1.0)},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="products of a seed")
    parser.add_argument("--seed", type=int, nargs="+", default=(1, 21))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no product after")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--few-rows", action="store_true", help="products of 1 to 8 rows")
    kinds.add_argument("--narrow", action="store_true", help="9 to 64 rows or columns")
    arguments = parser.parse_args()
    name, title, draw = KINDS[arguments.few_rows + 2 * arguments.narrow]
    require_gpu()
    import torch

    report = Report(name, title)
    rows = []
    deadline = time.monotonic() + arguments.seconds
    for seed in arguments.seed:
        found = swept(draw, seed, arguments, deadline, torch)
        if found:
            report.facts[f"seed {seed}"] = facts = facts_of(found)
            report.add(shape=f"all {len(found)}, seed {seed}", ratio=facts["geometric_mean"])
        rows += found
    rows.sort(key=lambda row: row["ratio"])
    for row in rows[:WORST]:
        report.add(**row)
    report.finish()
    print(*report.facts.items(), sep="\n")


if __name__ == "__main__":
    main()
