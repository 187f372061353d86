"""GPU time of products by graph replay, gputensor beside torch, in one run.

    python benchmarks/matmul_shapes.py                    friendly shapes and odd shapes
    python benchmarks/matmul_shapes.py --set odd          one set: friendly, odd, thin
    python benchmarks/matmul_shapes.py --padding all      fix the padding (auto, never, inputs, all)

Each product is captured into a graph that repeats it, over rotating operands so that caches are as
cold as they are between layers of a model; the two libraries alternate, and the median of rounds is
reported. torch is measured with cuBLAS and with cuBLASLt, and the better one counts.
"""

import argparse
import importlib.util
import math
import random
import statistics

import numpy as np

import gputensor as gt
from gputensor import blas
from gputensor.blas.kernels import padding
from report import Report, require_gpu

FRIENDLY = [
    (1024, 1024, 1024),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16, 8192, 8192),
    (1, 8192, 8192),
    (128, 4096, 14336),
    (2048, 4096, 11008),
    (8192, 28672, 8192),
]
ODD = [
    (4095, 4097, 4099),
    (8191, 8191, 8191),
    (4096, 4096, 4097),
    (2047, 50257, 768),
    (333, 777, 1555),
    (1023, 1025, 1027),
    (2049, 2047, 8191),
]
THIN = [(m, 8192, 8192) for m in (1, 2, 4, 8, 16)]
SETS = {"friendly": FRIENDLY, "odd": ODD, "thin": THIN}
DTYPES = {
    "friendly": ("fp32", "tf32", "fp16", "bf16"),
    "odd": ("tf32", "bf16"),
    "thin": ("fp32", "bf16"),
}
ELEMENT = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}
L2_NBYTES = 64 << 20


#: Multiply-adds that an H200 does in a second, roughly; they only decide the length of runs.
RATES = {"fp32": 5e13, "tf32": 3.5e14, "fp16": 7e14, "bf16": 7e14}
RUN_SECONDS = 4e-3


def repeats(m, n, k, itemsize, dtype):
    """Return the copies of the operands that together exceed the cache, and the products of a run.

    The place of a matrix in memory changes the time by some 2 %, so there are a few copies, of
    results too. A GPU at its power limit changes its clocks every few milliseconds, by several
    percent. Many runs of that length in random order spread this evenly; few long ones do not.
    """
    nbytes = (m * k + k * n + m * n) * itemsize
    copies = max(4, min(16, math.ceil(2 * L2_NBYTES / nbytes)))
    seconds = 2.0 * m * n * k / RATES[dtype]
    return copies, max(copies, min(200, math.ceil(RUN_SECONDS / seconds)))


class Operands:
    """Copies of one product's operands, which all contenders share; each has its own results."""

    def __init__(self, m, n, k, dtype, is_transposed, torch):
        self.m, self.n, self.dtype = m, n, dtype
        self.kind = getattr(gt, ELEMENT[dtype])
        copies, self.count = repeats(m, n, k, gt.empty(1, dtype=self.kind).nbytes, dtype)
        shape = (n, k) if is_transposed else (k, n)
        self.pairs = []
        self.torch_pairs = []
        rng = np.random.default_rng(0)
        for _ in range(copies):
            if torch is None:
                a = rng.standard_normal((m, k), np.float32)
                b = rng.standard_normal(shape, np.float32)
                a, b = (gt.astype(gt.asarray(x, device="cuda"), self.kind) for x in (a, b))
            else:
                kind = getattr(torch, ELEMENT[dtype])
                ta, tb = (torch.randn(x, device="cuda").to(kind) for x in ((m, k), shape))
                self.torch_pairs.append((ta, tb.T if is_transposed else tb))
                torch.cuda.synchronize()
                a, b = gt.from_dlpack(ta), gt.from_dlpack(tb)
            self.pairs.append((a, b.T if is_transposed else b))


class GpuTensor:
    """Products of gputensor in a graph."""

    def __init__(self, operands, library="auto", is_tuned=False):
        self.name = "gputensor" + (" tuned" if is_tuned else "")
        self.name += "" if library == "auto" else f" {library}"
        self.precision = "tf32" if operands.dtype == "tf32" else None
        self.count = operands.count
        self.operands = [
            (a, b, gt.empty((operands.m, operands.n), dtype=operands.kind, device="cuda"))
            for a, b in operands.pairs
        ]
        blas.preferred_blas_library(library)
        if is_tuned:
            blas.tunable.enable()
            blas.tunable.tuning_enable()
        self.run(1)
        blas.tunable.tuning_enable(False)
        gt.synchronize()
        self.graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(self.graph):
            self.run(self.count)
        blas.tunable.enable(False)
        blas.preferred_blas_library("auto")
        self.start, self.end = (gt.Event(enable_timing=True) for _ in range(2))

    def run(self, count):
        for index in range(count):
            a, b, out = self.operands[index % len(self.operands)]
            gt.matmul(a, b, out=out, precision=self.precision)

    def microseconds(self):
        self.start.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / self.count


class Torch:
    """Products of torch in a graph, with one of its two libraries."""

    def __init__(self, operands, torch, library):
        self.torch, self.name = torch, f"torch {library}"
        torch.backends.cuda.preferred_blas_library(library)
        torch.backends.cuda.matmul.allow_tf32 = operands.dtype == "tf32"
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        kind = getattr(torch, ELEMENT[operands.dtype])
        self.count = operands.count
        self.operands = [
            (a, b, torch.empty(operands.m, operands.n, dtype=kind, device="cuda"))
            for a, b in operands.torch_pairs
        ]
        # torch.cuda.graph would also collect garbage and give all free memory back, each time.
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(torch.cuda.Stream()):
            self.run(1)
            torch.cuda.synchronize()
            self.graph.capture_begin()
            self.run(self.count)
            self.graph.capture_end()
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def run(self, count):
        for index in range(count):
            a, b, out = self.operands[index % len(self.operands)]
            self.torch.mm(a, b, out=out)

    def microseconds(self):
        self.start.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / self.count


def measured(contenders, rounds):
    """Return the median microseconds of each contender, in rounds of different random order."""
    times = {contender.name: [] for contender in contenders}
    order = random.Random(0)
    for contender in contenders:
        contender.microseconds()
    for _ in range(rounds):
        for contender in order.sample(contenders, len(contenders)):
            times[contender.name].append(contender.microseconds())
    return {name: statistics.median(values) for name, values in times.items()}


def measure_shape(m, n, k, dtype, is_transposed, torch, arguments):
    operands = Operands(m, n, k, dtype, is_transposed, torch)
    contenders = [GpuTensor(operands)]
    if arguments.libraries:
        contenders += [GpuTensor(operands, library) for library in ("cublas", "cublaslt")]
    if arguments.tuned:
        contenders.append(GpuTensor(operands, is_tuned=True))
    if torch is not None:
        contenders += [Torch(operands, torch, library) for library in ("cublas", "cublaslt")]
    times = measured(contenders, arguments.rounds)
    row = {
        "shape": f"{m}x{n}x{k}",
        "dtype": dtype,
        "layout": "NT" if is_transposed else "NN",
        "us": round(times["gputensor"], 2),
        "TFLOP/s": round(2e-6 * m * n * k / times["gputensor"], 1),
    }
    for name, value in times.items():
        if name != "gputensor":
            row[f"{name} us"] = round(value, 2)
    if torch is not None:
        best = min(value for name, value in times.items() if name.startswith("torch"))
        row["ratio"] = round(best / times["gputensor"], 3)
        if arguments.tuned:
            row["tuned ratio"] = round(best / times["gputensor tuned"], 3)
    return row


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=sorted(SETS), action="append")
    parser.add_argument("--dtype", action="append")
    parser.add_argument("--padding", default="auto", choices=["auto", "never", "inputs", "all"])
    parser.add_argument("--libraries", action="store_true", help="also each library by itself")
    parser.add_argument("--tuned", action="store_true", help="also after tuning (tunable)")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--layouts", default="NN,NT")
    parser.add_argument("--name", default="matmul_shapes")
    arguments = parser.parse_args()
    require_gpu()
    padding(arguments.padding)
    torch = None
    if importlib.util.find_spec("torch") is not None:
        import torch
    result = Report(arguments.name, "GPU time of products by graph replay")
    for name in arguments.set or ("friendly", "odd"):
        rows = []
        for m, n, k in SETS[name]:
            for dtype in arguments.dtype or DTYPES[name]:
                if dtype == "fp32" and m * n * k > 6e11:
                    continue
                for layout in arguments.layouts.split(","):
                    rows.append(measure_shape(m, n, k, dtype, layout == "NT", torch, arguments))
                    result.add(set=name, **rows[-1])
                    print(name, rows[-1], flush=True)
        for key in ("ratio", "tuned ratio"):
            if key in rows[0]:
                values = [row[key] for row in rows]
                print(
                    f"{name}: torch's time over ours, {key}: geometric mean "
                    f"{geometric_mean(values):.3f}, least {min(values):.3f}"
                )
    result.finish()


if __name__ == "__main__":
    main()
