"""Write the tables of docs/performance.md from benchmarks/results/*.json.

    python benchmarks/tables.py            rewrite the part of the page between its two marks
    python benchmarks/tables.py --check    exit with 1 if the page differs from the results

`make bench` runs it at the end, so each figure of the page is in a file.
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

#: Results in the order of the page: file, heading, and a note that explains the table.
SECTIONS = [
    (
        "allocator_traces",
        "Recorded traces",
        "The yardstick uses 20 MiB pages without reuse. `ratio` is our modelled driver time over "
        "the yardstick's; the last columns are wall times on the GPU.",
    ),
    (
        "allocator_traces_two_gpus",
        "Recorded traces, in a machine with two GPUs",
        "The same traces on one of the two GPUs of a machine.",
    ),
    (
        "models/allocator_threads",
        "A GPT of varying lengths, trained by torch in three processes",
        "torch's autograd frees on a second thread. Each process has its own allocator; their "
        "runs of 40 steps alternate.",
    ),
    (
        "allocator_pairs",
        "One free and one malloc in C, ns",
        "Cache hits, by the number of threads.",
    ),
    ("allocator_live", "The same with live blocks, ns", ""),
    ("allocator_python_cuda", "From Python, on the GPU, ns", ""),
    ("allocator_python_host", "From Python, on the host device, ns", ""),
    (
        "against_checkout_cuda",
        "Calls: host time before and after, on the GPU, ns",
        "`other` is the commit before programs were added (27880e7).",
    ),
    (
        "against_checkout_host",
        "The same on the host device, ns",
        "`other` is the commit before the library was divided into rooms (9cba6f9).",
    ),
    ("import_time", "Import, s", ""),
    (
        "programs",
        "Programs, microseconds",
        "`host us` is the host time of a call on an idle GPU, `us` the time of a call among many "
        "in a row. The ratios are to torch's CUDA graph, which copies its inputs first.",
    ),
    (
        "models/program_start_cuda",
        "Programs: tracing, and loading weights",
        "Weights are in a mapped file in the page cache; `ratio` is to copies from pinned memory.",
    ),
    (
        "models/first_result",
        "The first result of a network in a new process, beside torch's package",
        "From the import on: CUDA starts, the file is loaded, one input runs, the result comes to "
        "the host. `ratio` is to torch's ahead-of-time package, loaded without its test of the "
        "C++ compiler.",
    ),
    (
        "models/arenas",
        "Programs: arenas, bytes",
        "Planned, not allocated. `lower bound` is the largest sum of live temporaries during one "
        "call, `sum` the sum of all temporaries. `each` rounds every result as eager work does, "
        "`once` is with joined calls. `ratio` is the largest over the size of the row and both "
        "ends of a free dim.",
    ),
    (
        "models/decode",
        "Language models of Llama's shapes, random weights",
        "`share` is the rate at which weights and cache are read, once each, over the rate of a "
        "copy in the same run. `host us` is the host time of a token on an idle GPU.",
    ),
    (
        "models/networks",
        "Networks for images, texts and sounds, milliseconds",
        "Random weights, both sides alternating on the same GPU. `ratio` is our time over torch's "
        "best time (eager, as a CUDA graph, compiled and as a graph), `tuned ratio` that of a "
        "program compiled with `tune`. Torch captures ViT's attention as plain products in "
        "float32, which is why its graph is slower than its eager run.",
    ),
    (
        "models/networks_panels",
        "Some networks again, milliseconds",
        'By `benchmarks/models/networks.py --only "encoder 1x128" ...`, after products that are '
        "small, or have few terms, got kernels with the norms and activations around them.",
    ),
    (
        "convolution",
        "Convolutions of ResNet-50 and MobileNet v2",
        "Both sides in CUDA graphs, channels last. `ratio` is torch's time (cuDNN) over ours; rows "
        "`all` are sums over all convolutions of the network.",
    ),
    (
        "products/depthwise",
        "Depthwise convolutions of MobileNet v2",
        "By `benchmarks/convolution.py --depthwise`, a later run than the table. `share` is a "
        "copy's time for the same bytes over ours.",
    ),
    (
        "array_surface",
        "Selection, statistics, layouts, sorting and random numbers",
        "Operands of 1 GiB; 2^26 elements for sorting and random numbers. `ratio` is the better "
        "peer's time over ours, `share` the rate at which the necessary bytes are moved over the "
        "rate of a copy in the same run.",
    ),
    (
        "product_sweep",
        "Products of random shapes, dtypes and layouts",
        "The slowest products of the sweep, against torch's better library, by graph replay.",
    ),
    (
        "products/narrow",
        "Products of 9 to 64 rows or columns",
        "With `--narrow --seed 3 --count 110`: the slowest of random ones.",
    ),
    (
        "attention",
        "Attention of many queries",
        "TFLOP/s, by graphs; torch's flash attention and cuDNN alternate with ours on the same "
        "operands.",
    ),
    (
        "attention_decode",
        "Attention of one query",
        "32 heads of queries, 8 of keys and values of 128 elements, bfloat16. `share` is the rate "
        "at which keys and values are read, once each, over the rate of a copy in the same run.",
    ),
    (
        "rows",
        "Softmax and norms along rows",
        "Shares are of the rate of a copy of as many bytes in the same run. The last rows are the "
        "host time of a call on a 64 x 64 tensor.",
    ),
    (
        "quantized_rows",
        "Products with quantized weights and some rows of x, µs",
        "Groups of 128. `over bf16` is the time of the product with bf16 weights over ours.",
    ),
    ("matmul_host_time", "Host time of a product, ns", ""),
    (
        "matmul_shapes",
        "Products, GPU time by graph replay",
        "`ratio` is the time of torch's better library over ours; both alternate on the same "
        "operands.",
    ),
    (
        "matmul_shapes_tuned",
        "Friendly products, tuned",
        "With `--set friendly --tuned`; `tuned ratio` is torch's time over ours after tuning.",
    ),
    (
        "matmul_tuning",
        "Tuning",
        "`gain` is the time of the first choice over that of the tuned algorithm; `of best` is the "
        "best algorithm's time over the time without tuning.",
    ),
    (
        "measured_algorithms",
        "cuBLASLt's algorithms against its first choice",
        "Products of the grid that gain; the last row is the geometric mean over the whole grid.",
    ),
    ("measured_algorithms_near", "Measured algorithms used for other numbers of rows", ""),
    ("skinny", "Few rows, and quantized weights", ""),
    (
        "products/skinny",
        "One row, by shapes of blocks from a model of random products",
        "By `benchmarks/skinny.py --shape 1x8192x8192 ...`, a later run than the table above.",
    ),
    (
        "panels",
        "Small products in programs, bfloat16, us",
        "`library` is the product with a kernel for the norm before it and one for an activation "
        "that no library applies. `wins` is the choice of compiled programs.",
    ),
    (
        "products/held",
        "Products of many rows by few terms, bfloat16, us",
        "By `benchmarks/panels.py --long --sweep 1`, with blocks that hold their weights, before "
        "eager products used them. Later changes to their copies and results are measured in "
        "networks only. `library` as above.",
    ),
    ("kernels", "Kernels, TB/s of bytes read and written", ""),
]


#: Longer tables show fewer rows; the file has all of them.
MOST_ROWS = 120
ROWS_OF_LONG = 12


def cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def summary(rows):
    """Return lines with the geometric mean of the ratios of each set, for rows with a set."""
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


#: The programs of results in a folder, which several of them share.
PROGRAMS = {
    "products/depthwise": "convolution",
    "products/held": "panels",
    "products/narrow": "product_sweep",
    "products/skinny": "skinny",
}


def program(name):
    """Return the program that wrote the result `name`."""
    if name in PROGRAMS:
        return PROGRAMS[name]
    for suffix in ("_cuda", "_host", "_tuned", "_two_gpus", "_decode"):
        name = name.removesuffix(suffix)
    return name


def place(machine):
    """Return a line that describes the machine of a result."""
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
            lines[2] += f" Only sums are shown; the file has all {len(rows) - len(sums)} rows."
            rows = sums
        if len(rows) > MOST_ROWS:
            lines[2] += f" Shown are the first {ROWS_OF_LONG} rows of {len(rows)}, and the last."
            rows = [*rows[:ROWS_OF_LONG], rows[-1]]
        for row in rows:
            values = [row.get(key) for key in columns]
            values = [None if isinstance(x, float) and math.isnan(x) else x for x in values]
            lines.append("| " + " | ".join(map(cell, values)) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def page_with_tables(text, tables):
    """Return the page with the text between the marks replaced."""
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
