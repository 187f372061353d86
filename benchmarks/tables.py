"""Write the tables of docs/performance.md from benchmarks/results/*.json.

    python benchmarks/tables.py            rewrite the part of the page between its two marks
    python benchmarks/tables.py --check    exit with 1 when the page says something else

`make bench` ends with this, so the page never says what no file holds.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

__all__ = ["page_with_tables", "render"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
START, END = "<!-- tables: made by benchmarks/tables.py -->", "<!-- end of tables -->"

#: Results in the order of the page: file, heading, what to know to read the table.
SECTIONS = [
    (
        "allocator_traces",
        "Recorded traces",
        "The yardstick is 20 MiB pages without reuse; `ratio` "
        "is modelled driver time over the yardstick's, the last columns are wall time on the GPU.",
    ),
    (
        "allocator_traces_two_gpus",
        "Recorded traces, in a machine with two GPUs",
        "The same on one of two GPUs of a machine.",
    ),
    ("allocator_pairs", "One free and one malloc in C, ns", "Cache hits, by threads."),
    ("allocator_live", "The same with live blocks, ns", ""),
    ("allocator_python_cuda", "From Python, on the GPU, ns", ""),
    ("allocator_python_host", "From Python, on the host device, ns", ""),
    (
        "against_checkout_cuda",
        "Calls: host time before and after, on the GPU, ns",
        "`other` is the checkout before programs were added (27880e7).",
    ),
    (
        "against_checkout_host",
        "The same on the host device, ns",
        "`other` is the checkout before the library was divided into rooms (9cba6f9).",
    ),
    ("import_time", "Import, s", ""),
    (
        "programs",
        "Programs, microseconds",
        "`host us` is the host's time of a call on an idle GPU, `us` that of many in a row; the "
        "ratios are to torch's CUDA graph, which copies its inputs first.",
    ),
    (
        "models/program_start_cuda",
        "Programs: tracing, and loading weights",
        "Weights lie in a mapped file, in the page cache; `ratio` is to copies from pinned memory.",
    ),
    (
        "models/arenas",
        "Programs: arenas, bytes",
        "Planned, not allocated. `lower bound` is the most that lives during one call, `sum` that "
        "of all temporaries; `each` rounds as eager work does, `once` has joined calls. `ratio` is "
        "the largest at the size of the row and both ends of a free dim.",
    ),
    (
        "decode",
        "Language models of Llama's shapes, random weights",
        "`share` is weights and cache, read once, over the time, by the rate of a copy in the same "
        "run; `host us` is the host's time of a token on an idle GPU.",
    ),
    (
        "networks",
        "Networks of images, texts and sounds, milliseconds",
        "Random weights, both sides in turn on the same GPU; `ratio` is our time over that of the "
        "best of torch's ways: eager, as a CUDA graph, compiled and as a graph. MobileNet's "
        "error is 1: with the statistics of new layers activations underflow in float16, on both "
        "sides; since then the benchmark takes those of random images.",
    ),
    (
        "convolution",
        "Convolutions of ResNet-50 and MobileNet v2",
        "Both sides in CUDA graphs, channels last; `ratio` is torch's time (cuDNN) over ours. The "
        "rows `all` are all convolutions of the network.",
    ),
    (
        "array_surface",
        "Choices, statistics, layouts, orders and draws",
        "Operands of 1 GiB, orders and draws of 2^26 elements. `ratio` is the better peer's time "
        "over ours, `share` the bytes that have to be moved by the rate of a copy in the same run.",
    ),
    (
        "product_sweep",
        "Products of random shapes, dtypes and layouts",
        "The slowest of 300 against torch's better library, by graph replay.",
    ),
    (
        "attention",
        "Attention of many queries",
        "TFLOP/s, beside torch's flash attention and its cuDNN on the same operands in turn.",
    ),
    (
        "rows",
        "Softmax and norms along rows",
        "Shares are of the rate of a copy of as many bytes in the same run; the last rows are the "
        "host's time for a call on a 64 x 64 tensor.",
    ),
    (
        "rows_wide",
        "The same for wide rows, measured later",
        "Rows of more than 32,768 elements are cut among the blocks of a cluster.",
    ),
    (
        "quantized_rows",
        "Products with quantized weights and some rows of x, µs",
        "Groups of 128. `over bf16` is the time of the same product with plain weights over ours.",
    ),
    ("matmul_host_time", "Host time of a product, ns", ""),
    (
        "matmul_shapes",
        "Products, GPU time by graph replay",
        "`ratio` is the time of torch's better "
        "library over ours, both on the same operands in turns.",
    ),
    (
        "matmul_shapes_tuned",
        "Friendly products, tuned",
        "With `--set friendly --tuned`; `tuned ratio` is torch's time over that after tuning.",
    ),
    (
        "matmul_tuning",
        "Tuning",
        "`gain` is the first choice's time over the tuned one's; `of best` "
        "the best algorithm's time over that of the product as it is.",
    ),
    (
        "known_ways",
        "cuBLASLt's algorithms against its first choice",
        "Products of the grid that gain; the last row is the geometric mean over all of it.",
    ),
    ("known_ways_near", "Measured algorithms lent to other numbers of rows", ""),
    ("small_m", "Few rows, and quantized weights", ""),
    ("kernels", "Kernels, TB/s of bytes read and written", ""),
]


#: Results of programs in the folder of models.
MODELS = ("decode", "networks")
#: Longer tables are cut to this many rows; the file has them all.
MOST_ROWS = 120
ROWS_OF_LONG = 12


def cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def summary(rows):
    """Geometric means of the ratios by set, where rows have both."""
    lines = []
    for name in dict.fromkeys(row.get("set") for row in rows):
        for key, what in (("ratio", ""), ("tuned ratio", " tuned")):
            ratios = [row[key] for row in rows if row.get("set") == name and row.get(key)]
            if name is None or not ratios:
                continue
            lines.append(
                f"{name}{what}: geometric mean {statistics.geometric_mean(ratios):.3f}, "
                f"least {min(ratios):.3f}, {len(ratios)} products"
            )
    return lines


def program(name):
    """The program that wrote the result `name`."""
    for suffix in ("_cuda", "_host", "_tuned", "_two_gpus", "_wide"):
        name = name.removesuffix(suffix)
    return f"models/{name}" if name in MODELS else name


def place(machine):
    """The machine of a result in a line."""
    device = machine.get("device") or {}
    packages = machine.get("packages", {})
    wanted = [name for name in ("torch", "numpy") if packages.get(name)]
    words = [str(device.get("name") or machine.get("processor"))]
    words += [f"driver {device['driver']}"] if device.get("driver") else []
    words += [f"{name} {packages[name]}" for name in wanted]
    return ", ".join(words)


def render(results=RESULTS):
    """Return the tables as Markdown."""
    parts = []
    for name, heading, note in SECTIONS:
        path = results / f"{name}.json"
        if not path.exists():
            continue
        content = json.loads(path.read_text())
        rows = content["rows"]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        lines = [
            f"### {heading}",
            "",
            f"`benchmarks/{program(name)}.py` on "
            f"{place(content['machine'])}, {content['measured'][:10]}. {note}".rstrip(),
            "",
        ]
        lines += [f"- {line}" for line in summary(rows)]
        lines += [""] if summary(rows) else []
        lines.append("| " + " | ".join(columns) + " |")
        lines.append("|" + "---|" * len(columns))
        sums = [row for row in rows if row.get("layer") == "all"]
        if len(rows) > MOST_ROWS and sums:
            lines[2] += f" The sums of {len(rows) - len(sums)} rows; the file has them all."
            rows = sums
        if len(rows) > MOST_ROWS:
            lines[2] += f" The first {ROWS_OF_LONG} rows of {len(rows)}, and the last."
            rows = [*rows[:ROWS_OF_LONG], rows[-1]]
        for row in rows:
            values = [row.get(key) for key in columns]
            values = [None if isinstance(x, float) and math.isnan(x) else x for x in values]
            lines.append("| " + " | ".join(map(cell, values)) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def page_with_tables(text, tables):
    """Return the page with what stands between the marks replaced."""
    before, _, rest = text.partition(START)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page lacks the marks {START} and {END}")
    return f"{before}{START}\n\n{tables}\n{END}{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()
    text = PAGE.read_text()
    new = page_with_tables(text, render())
    if arguments.check:
        sys.exit(0 if new == text else f"{PAGE.name} is not what the results say: run this program")
    PAGE.write_text(new)


if __name__ == "__main__":
    main()
