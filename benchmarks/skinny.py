"""Skinny products, bound by the memory of the weights: our kernel beside torch, in one run.

    python benchmarks/skinny.py                      1 to 16 rows x 8192 x 8192, every type
    python benchmarks/skinny.py --sweep              also block shapes, except for fp32
    python benchmarks/skinny.py --random 20 --sweep  random shapes; --steady: as in programs
    python benchmarks/skinny.py --shape 4x28672x8192

GPU time is measured by graph replay over copies of the operands that together are four times the
cache, as the median of interleaved rounds. "of limit" is the time that the bytes of the product
take at the rate of a copy in the same run (read and written bytes counted), over the measured time.
Rows with quantized weights also show the same product in bf16 by gt.matmul and by torch, from the
same rounds; "over bf16" is the speed relative to the quickest of these.
"""

import argparse
import importlib.util
import itertools
import math
import statistics
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, require_gpu  # noqa: E402
from gputensor._arrays.element_types import CODE_OF  # noqa: E402
from gputensor.blas.host import int4_layout  # noqa: E402
from gputensor.blas.kernels.programs import INT4, INT8, PLAIN  # noqa: E402
from tests.support import internals  # noqa: E402

SHAPES = [(m, 8192, 8192) for m in (1, 2, 4, 8, 16)] + [(1, 4096, 4096), (1, 1024, 8192)]
FORMS = {"plain": PLAIN, "int8": INT8, "int4": INT4}
NAMES = {"fp32": gt.float32, "fp16": gt.float16, "bf16": gt.bfloat16}
CASES = [
    ("bf16", "plain", 0),
    ("fp16", "plain", 0),
    ("fp32", "plain", 0),
    ("bf16", "int8", 128),
    ("bf16", "int8", 0),
    ("bf16", "int4", 128),
    ("bf16", "int4", 32),
    ("fp16", "int4", 128),
]
LIBRARIES = ("gt.matmul", "torch cublas", "torch cublaslt")
CACHE_NBYTES = 64 << 20
MIN_CALLS = 64


class Graph:
    """Calls captured once, over rotating operands, and replayed between two events."""

    def __init__(self, name, calls, library):
        self.name = name
        self.calls = calls  # keeps the operands alive, which replays read and write
        copies = len(calls)
        self.count = copies * math.ceil(MIN_CALLS / copies)
        calls[0]()
        library.synchronize()
        self.replay, self.start, self.end = library.capture(
            lambda: [calls[i % copies]() for i in range(self.count)]
        )

    def microseconds(self):
        self.start.record()
        self.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / self.count


class Ours:
    """Operands and calls of our library."""

    synchronize = staticmethod(gt.synchronize)

    @staticmethod
    def capture(function):
        graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(graph):
            function()
        return graph.replay, *(gt.Event(enable_timing=True) for _ in range(2))

    @staticmethod
    def random(shape, dtype):
        # A million values, repeated, because drawing all would take longer than the measurement.
        values = np.random.default_rng().standard_normal(1 << 20, np.float32)
        return gt.asarray(np.resize(values, shape), device="cuda").astype(dtype)

    @classmethod
    def weights(cls, form, n, k, dtype, group):
        """Return weights, scales or None, pitch and bytes."""
        rng = np.random.default_rng()
        if form == "plain":
            w = cls.random((n, k), dtype)
            return w, None, k, w.nbytes
        scales = cls.random((k // group if group else 1, n), dtype)
        if form == "int8":
            w = gt.asarray(rng.integers(-128, 128, (n, k), dtype=np.int8), device="cuda")
            return w, scales, k, w.nbytes + scales.nbytes
        shape = int4_layout.packed_shape(n, k)
        w = gt.asarray(rng.integers(0, 256, shape, dtype=np.uint8), device="cuda")
        return w, scales, shape[1], w.nbytes + scales.nbytes

    @classmethod
    def calls(cls, m, n, k, kind, form, group, *, steady=False):
        """Return one call for each copy of the operands, and the bytes of one copy."""
        dtype = NAMES[kind]
        code = CODE_OF[dtype]
        calls = []
        first, scales, pitch, weight_nbytes = cls.weights(form, n, k, dtype, group)
        x = cls.random((m, k), dtype)
        nbytes = weight_nbytes + m * (n + k) * dtype.itemsize
        while not calls or len(calls) * nbytes < 4 * CACHE_NBYTES:
            w, y = first.copy(), gt.empty((m, n), dtype=dtype, device="cuda")

            def call(w=w, scales=scales, x=x, y=y, pitch=pitch):
                addresses = (x.data_ptr(), w.data_ptr(), y.data_ptr())
                addresses += (scales.data_ptr() if scales is not None else 0, 0, 0)
                stream = gt.current_stream("cuda").cuda_stream
                types, sizes, pitches = (code, code), (m, n, k), (k, pitch, n, n)
                if not internals.skinny_run(
                    0, stream, FORMS[form], types, sizes, addresses, pitches, group=group,
                    is_steady=steady,
                ):  # fmt: skip
                    raise ValueError(f"the kernel does not fit {form} {m}x{n}x{k}")

            calls.append(call)
        return calls, nbytes

    @staticmethod
    def library_calls(m, n, k, kind):
        """Return calls of the same product by gt.matmul, which chooses the backend."""
        dtype = NAMES[kind]
        calls, nbytes = [], (m * k + n * k + m * n) * dtype.itemsize
        x, first = Ours.random((m, k), dtype), Ours.random((n, k), dtype)
        while not calls or len(calls) * nbytes < 4 * CACHE_NBYTES:
            y = gt.empty((m, n), dtype=dtype, device="cuda")
            w = first.copy().T
            calls.append(lambda x=x, w=w, y=y: gt.matmul(x, w, out=y))
        return calls


class Torch:
    """Operands and calls of torch."""

    def __init__(self, library):
        import torch

        self.torch, self.library = torch, library
        self.synchronize = torch.cuda.synchronize
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

    def capture(self, function):
        torch = self.torch
        torch.backends.cuda.preferred_blas_library(self.library)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
        return graph.replay, *(torch.cuda.Event(enable_timing=True) for _ in range(2))

    def calls(self, m, n, k, kind):
        torch = self.torch
        torch.backends.cuda.preferred_blas_library(self.library)
        dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[kind]
        calls, nbytes = [], (m * k + n * k + m * n) * dtype.itemsize
        while not calls or len(calls) * nbytes < 4 * CACHE_NBYTES:
            x, y = (torch.randn(s, device="cuda").to(dtype) for s in ((m, k), (m, n)))
            w = torch.randn((n, k), device="cuda").to(dtype).T
            calls.append(lambda x=x, w=w, y=y: torch.mm(x, w, out=y))
        return calls


def measured(graphs, rounds):
    """Return the median microseconds of each graph, from interleaved rounds."""
    times = [[] for _ in graphs]
    for graph in graphs:
        graph.microseconds()
    for _ in range(rounds):
        for graph, values in zip(graphs, times, strict=True):
            values.append(graph.microseconds())
    return [statistics.median(values) for values in times]


def copy_graph():
    """Return a graph of copies of 512 MiB by a kernel, quicker than the driver's, and its bytes."""
    source, target = (gt.ones(128 << 20, dtype=gt.float32, device="cuda") for _ in range(2))
    return Graph("copy", [lambda: gt.negative(source, out=target)], Ours), 2 * source.nbytes


def sweep(calls, rounds):
    """Return microseconds by shape of block: tiles, warps along features and k, and splits."""
    found = {}
    warps = ((1, 16), (2, 8), (3, 5), (4, 4), (5, 3), (7, 2), (1, 8), (2, 4), (4, 2))
    for tiles, (row_warps, k_warps), splits in itertools.product((1, 2), warps, (1, 2)):
        parts = (tiles, row_warps, k_warps, splits)
        names = ("tiles", "row_warps", "k_warps", "splits")
        internals.skinny_mma_configure(**dict(zip(names, parts, strict=True)))
        try:
            found[parts] = measured([Graph("sweep", calls, Ours)], rounds)[0]
        except ValueError:  # no room in shared memory
            continue
    internals.skinny_mma_configure()
    return sorted(found.items(), key=lambda item: item[1])


def library_graphs(m, n, k, kind):
    """Return graphs of the product with plain weights by gt.matmul and both libraries of torch."""
    graphs = [Graph("gt.matmul", Ours.library_calls(m, n, k, kind), Ours)]
    if importlib.util.find_spec("torch") is not None:
        for library in ("cublas", "cublaslt"):
            peer = Torch(library)
            graphs.append(Graph(f"torch {library}", peer.calls(m, n, k, kind), peer))
    return graphs


def measure_case(report, copy, copy_nbytes, shape, case, arguments):
    m, n, k = shape
    kind, form, group = case
    calls, nbytes = Ours.calls(m, n, k, kind, form, group, steady=arguments.steady)
    peer_kind = kind if form == "plain" else "bf16"
    graphs = [copy, Graph("ours", calls, Ours)]
    if not arguments.random:
        graphs += library_graphs(m, n, k, peer_kind)
    names = [graph.name for graph in graphs]
    times = dict(zip(names, measured(graphs, arguments.rounds), strict=True))
    rate = copy_nbytes / times["copy"] * 1e-6
    row = {
        "shape": f"{m}x{n}x{k}",
        "dtype": kind,
        "weights": form if group == 0 else f"{form} g{group}",
        "us": round(times["ours"], 2),
        "MB": round(nbytes * 1e-6, 2),
        "TB/s": round(nbytes / times["ours"] * 1e-6, 3),
        "copy TB/s": round(rate, 3),
        "of limit": round(nbytes / rate * 1e-6 / times["ours"], 3),
    }
    peers = {name: times[name] for name in LIBRARIES if name in times}
    prefix = "" if form == "plain" else "bf16 "
    row |= {f"{prefix}{name} us": round(us, 2) for name, us in peers.items()}
    if form != "plain" and peers:
        row["over bf16"] = round(min(peers.values()) / times["ours"], 2)
    report.add(**row)
    print(row, flush=True)
    if arguments.sweep and kind != "fp32":
        ranking = sweep(calls, 3)
        for (tiles, row_warps, k_warps, splits), us in ranking[:6]:
            print(f"    tiles {tiles} warps {row_warps} x {k_warps} splits {splits}: {us:.2f} us")
        report.rows[-1]["best block"] = list(ranking[0][0])
        report.rows[-1]["best us"] = round(ranking[0][1], 2)
        report.rows[-1]["over best"] = round(times["ours"] / ranking[0][1], 3)


def random_pairs(arguments):
    """Return random shapes with a form of weights each, of .2 to 60 MB."""
    rng = np.random.default_rng(arguments.seed)
    pairs = []
    while len(pairs) < arguments.random:
        kind, form, group = case = CASES[(0, 3, 5)[rng.integers(3)]]
        m = int(rng.choice((1, 1, 2, 3, 4, 6, 8, 11, 16)))
        n, k = 16 * int(2 ** rng.uniform(3, 10.5)), 128 * int(2 ** rng.uniform(2, 6.8))
        if 2e5 < n * k * {"int4": 0.5, "int8": 1, "plain": 2}[form] < 6e7:
            pairs.append(((m, n, k), case))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", action="append", help="MxNxK")
    parser.add_argument("--case", action="append", type=int, help="numbers of CASES")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--random", type=int, default=0, metavar="COUNT", help="random shapes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steady", action="store_true", help="nothing writes the weights")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--name", default="skinny")
    arguments = parser.parse_args()
    require_gpu()
    shapes = [tuple(map(int, text.split("x"))) for text in arguments.shape or ()] or SHAPES
    report = Report(arguments.name, "GPU time of skinny products by graph replay")
    copy, copy_nbytes = copy_graph()
    pairs = [(s, CASES[i]) for s in shapes for i in arguments.case or range(len(CASES))]
    for shape, case in random_pairs(arguments) if arguments.random else pairs:
        measure_case(report, copy, copy_nbytes, shape, case, arguments)
    over = [row["over best"] for row in report.rows if "over best" in row]
    if over:
        print(f"our shape over the best: mean {statistics.mean(over):.3f}, worst {max(over)}")
    report.finish()


if __name__ == "__main__":
    main()
