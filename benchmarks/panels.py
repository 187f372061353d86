"""Small products of 16-bit floats whose panels are in shared memory at once, beside the libraries.

    python benchmarks/panels.py               products of encoders, with what is around them
    python benchmarks/panels.py --sweep 30    also 30 random shapes, and each shape of a block
    python benchmarks/panels.py --long        products of many rows by few terms

GPU time of a call is that of a replayed graph over its calls, each of which waits for the one
before; weights rotate among eight, as in the layers of a network. `ours` is the block that the
model chooses, `best` the fastest one, `library` what a program makes without our kernel: the
product, a norm before it, and an activation behind it where no library has it.
"""

import argparse
import statistics
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, require_gpu  # noqa: E402
from gputensor._kernels import calls  # noqa: E402
from gputensor._kernels.launch import CallOperand  # noqa: E402
from gputensor.blas.backends import panel_wins  # noqa: E402
from tests.support import internals  # noqa: E402

TILES = [(64, 64), (32, 64), (32, 32), (16, 32)]
ENCODERS = [
    (128, 1152, 384), (128, 384, 384), (128, 1536, 384), (128, 384, 1536), (64, 384, 384),
    (64, 1536, 384), (64, 384, 1536), (197, 384, 384), (32, 768, 768), (128, 768, 768),
    (128, 2304, 768), (8, 768, 3072), (16, 2048, 2048), (256, 512, 512), (512, 384, 384),
]  # fmt: skip
# Products of many rows, whose weights a block may hold.
LONG = [
    (4096, 1152, 384), (4096, 384, 384), (4096, 1536, 384), (1024, 1536, 384), (16384, 1536, 384),
    (4096, 2048, 512), (4096, 3072, 768), (6304, 3072, 768), (6304, 2304, 768), (8192, 512, 128),
    (2048, 1024, 256), (65536, 256, 64), (4096, 1024, 1024), (100000, 128, 128),
]  # fmt: skip
HELD = (192, 128, 96, 64)
COUNT, LAYERS, ROUNDS = 48, 8, 9


def operand(tensor):
    return None if tensor is None else CallOperand(tensor.data_ptr(), "bfloat16", tensor.shape)


class Case:
    """Operands of one product, and its calls by our kernel and by a library."""

    def __init__(self, m, n, k, has_norm, activation):
        rng = np.random.default_rng()
        self.activation, self.has_norm = activation, has_norm

        def drawn(*shape):
            values = rng.standard_normal(shape, np.float32) * shape[-1] ** -0.5
            return gt.asarray(values, device="cuda", dtype=gt.bfloat16)

        self.x, self.y, self.rows = drawn(m, k), drawn(m, n), drawn(m, k)
        self.weights = [drawn(n, k) for _ in range(LAYERS)]
        self.gain, self.shift, self.bias = drawn(k), drawn(k), drawn(n)

    def ours(self, number):
        w = self.weights[number % LAYERS]
        stream = gt.current_stream("cuda").cuda_stream
        if self.has_norm:
            given = (1e-5, True, self.activation, True, 0)
            tensors = (self.y, self.rows, self.x, w, self.gain, self.shift, self.bias, None)
            name = "normed_product"
        else:
            given = (0.0, False, self.activation, False, True, 0)
            tensors = (self.y, self.x, w, None, None, None, self.bias, None)
            name = "fused_product"
        calls.make(name, 0, stream, (*given, *map(operand, tensors)))

    def library(self, number):
        x = gt.layer_norm(self.x, self.gain, self.shift) if self.has_norm else self.x
        w = self.weights[number % LAYERS]
        gt.linear(x, w, self.bias, activation=self.activation, out=self.y)


class Graph:
    def __init__(self, call):
        call(0)
        gt.synchronize()
        self.graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(self.graph):
            for number in range(COUNT):
                call(number)
        self.start, self.end = (gt.Event(enable_timing=True) for _ in range(2))

    def microseconds(self):
        self.start.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / COUNT


def measured(graphs):
    """Return the median microseconds of each graph, from interleaved rounds."""
    times = {name: [] for name in graphs}
    for number in range(ROUNDS + 1):
        for name, graph in graphs.items():
            spent = graph.microseconds()
            times[name] += [spent] if number else []
    return {name: statistics.median(spent) for name, spent in times.items()}


def forms(case):
    """Return graphs of our kernel by the shape of a block."""
    found = {}
    for rows, columns in TILES:
        internals.panel_configure(rows=rows, columns=columns)
        if panel_of(case):
            found[f"{rows}x{columns}"] = Graph(case.ours)
    for columns in HELD:
        internals.panel_configure(held=columns)
        if not case.has_norm and held_of(case):
            found[f"held {columns}"] = Graph(case.ours)
    internals.panel_configure()
    return found


def held_of(case):
    """Return the columns of a block that holds its weights, and its modelled time; or None."""
    return internals.held_columns(*case.x.shape, case.y.shape[1])


def panel_of(case):
    """Return the rows and columns of a block, or None if its panels do not fit."""
    return internals.panel_shape(*case.x.shape, case.y.shape[1], is_normed=case.has_norm)


def measure(report, sizes, has_norm, activation, is_sweep):
    case = Case(*sizes, has_norm, activation)
    held = None if has_norm else held_of(case)
    if not panel_of(case) and not held:
        return
    graphs = {"ours": Graph(case.ours), "library": Graph(case.library)}
    chosen = panel_of(case) or ("none",)
    if is_sweep:
        graphs |= forms(case)
    found = measured(graphs)
    ours, library = found.pop("ours"), found.pop("library")
    late = activation in ("gelu", "silu")
    report.add(
        shape="x".join(map(str, sizes)), norm=has_norm, activation=activation or "",
        block="x".join(map(str, chosen)), held=held[0] if held else 0,
        us=ours, library_us=library, ratio=library / ours,
        wins=panel_wins(*sizes, is_normed=has_norm, is_late=late),
        **({"best": min(found, key=found.get), "best us": min(found.values())} if found else {}),
    )  # fmt: skip
    if found:
        report.facts[f"{sizes} {has_norm} {activation}"] = found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", type=int, default=0, metavar="COUNT", help="random shapes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="only products of many rows")
    arguments = parser.parse_args()
    require_gpu()
    name = "products/held" if arguments.long else "panels"
    title = "Products of many rows by few terms" if arguments.long else "Small products in programs"
    report = Report(name, f"{title}, bfloat16")
    rng = np.random.default_rng(arguments.seed)
    shapes = [] if arguments.long else list(ENCODERS)
    for _ in range(arguments.sweep):
        m = int(2 ** rng.uniform(1, 9.5))
        shapes.append((m, *(8 * int(2 ** rng.uniform(2, 8.2)) for _ in range(2))))
    for sizes in shapes + LONG:
        for has_norm, activation in ((False, None), (True, None), (False, "gelu")):
            if sizes in ENCODERS[:6] or (not has_norm and (activation is None or sizes in LONG)):
                measure(report, sizes, has_norm, activation, bool(arguments.sweep))
    report.finish()


if __name__ == "__main__":
    main()
