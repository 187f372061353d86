"""GPU time of products by graph replay, gputensor beside torch, in one run.

    python benchmarks/matmul_shapes.py                    friendly shapes and odd shapes
    python benchmarks/matmul_shapes.py --set odd          one set: friendly, odd, thin
    python benchmarks/matmul_shapes.py --padding all      fix the padding (auto, never, inputs, all)

Each product is captured into a graph that repeats it, over rotating operands so that caches are as
cold as they are between layers of a model; the two libraries take turns and the median of rounds is
kept. torch is measured with cuBLAS and with cuBLASLt, and its better one counts.
"""

import argparse
import importlib.util
import math
import statistics

import numpy as np

import gputensor as gt
from gputensor import blas
from gputensor.blas.pad import padding
from report import Report

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


def repeats(m, n, k, itemsize):
    """Copies of the operands that together exceed the cache, and at least a millisecond of work."""
    nbytes = (m * k + k * n + m * n) * itemsize
    copies = max(1, min(16, math.ceil(2 * L2_NBYTES / nbytes)))
    work = 2.0 * m * n * k
    return copies, max(copies, min(200, math.ceil(5e11 / work)))


class GpuTensor:
    """Products of gputensor in a graph."""

    name = "gputensor"

    def __init__(self, m, n, k, dtype, is_transposed):
        kind = getattr(gt, ELEMENT[dtype])
        self.precision = "tf32" if dtype == "tf32" else None
        copies, self.count = repeats(m, n, k, gt.empty(1, dtype=kind).nbytes)
        rng = np.random.default_rng(0)
        self.operands = []
        for _ in range(copies):
            a = gt.astype(gt.asarray(rng.standard_normal((m, k), np.float32), device="cuda"), kind)
            shape = (n, k) if is_transposed else (k, n)
            b = gt.astype(gt.asarray(rng.standard_normal(shape, np.float32), device="cuda"), kind)
            out = gt.empty((m, n), dtype=kind, device="cuda")
            self.operands.append((a, b.T if is_transposed else b, out))
        self.run()
        gt.synchronize()
        self.graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(self.graph):
            self.run()
        self.start, self.end = (gt.Event(enable_timing=True) for _ in range(2))

    def run(self):
        for index in range(self.count):
            a, b, out = self.operands[index % len(self.operands)]
            gt.matmul(a, b, out=out, precision=self.precision)

    def microseconds(self):
        self.start.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / self.count


class Torch:
    """The same by torch, with one of its two libraries."""

    def __init__(self, m, n, k, dtype, is_transposed, library):
        import torch

        self.torch, self.name = torch, f"torch {library}"
        torch.backends.cuda.preferred_blas_library(library)
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        kind = getattr(torch, ELEMENT[dtype])
        copies, self.count = repeats(m, n, k, torch.tensor([], dtype=kind).element_size())
        self.operands = []
        for _ in range(copies):
            a = torch.randn(m, k, device="cuda").to(kind)
            b = torch.randn((n, k) if is_transposed else (k, n), device="cuda").to(kind)
            out = torch.empty(m, n, dtype=kind, device="cuda")
            self.operands.append((a, b.T if is_transposed else b, out))
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            self.run()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.run()
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def run(self):
        for index in range(self.count):
            a, b, out = self.operands[index % len(self.operands)]
            self.torch.mm(a, b, out=out)

    def microseconds(self):
        self.start.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / self.count


def measured(contenders, rounds):
    """Interleaved rounds; the median of each contender in microseconds."""
    times = {contender.name: [] for contender in contenders}
    for contender in contenders:
        contender.microseconds()
    for _ in range(rounds):
        for contender in contenders:
            times[contender.name].append(contender.microseconds())
    return {name: statistics.median(values) for name, values in times.items()}


def measure_shape(m, n, k, dtype, is_transposed, has_torch, rounds):
    contenders = [GpuTensor(m, n, k, dtype, is_transposed)]
    if has_torch:
        contenders += [Torch(m, n, k, dtype, is_transposed, x) for x in ("cublas", "cublaslt")]
    times = measured(contenders, rounds)
    row = {
        "shape": f"{m}x{n}x{k}",
        "dtype": dtype,
        "layout": "NT" if is_transposed else "NN",
        "us": round(times["gputensor"], 2),
        "TFLOP/s": round(2e-6 * m * n * k / times["gputensor"], 1),
    }
    if has_torch:
        best = min(value for name, value in times.items() if name != "gputensor")
        row["torch us"] = round(best, 2)
        row["ratio"] = round(best / times["gputensor"], 3)
    return row


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=sorted(SETS), action="append")
    parser.add_argument("--dtype", action="append")
    parser.add_argument("--padding", default="auto", choices=["auto", "never", "inputs", "all"])
    parser.add_argument("--library", default="auto", choices=["auto", "cublas", "cublaslt"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--layouts", default="NN,NT")
    parser.add_argument("--name", default="matmul_shapes")
    arguments = parser.parse_args()
    padding(arguments.padding)
    blas.preferred_blas_library(arguments.library)
    has_torch = importlib.util.find_spec("torch") is not None
    result = Report(arguments.name, "GPU time of products by graph replay")
    for name in arguments.set or ("friendly", "odd"):
        rows = []
        for m, n, k in SETS[name]:
            for dtype in arguments.dtype or DTYPES[name]:
                if dtype == "fp32" and m * n * k > 6e11:
                    continue
                for layout in arguments.layouts.split(","):
                    rows.append(
                        measure_shape(m, n, k, dtype, layout == "NT", has_torch, arguments.rounds)
                    )
                    result.add(set=name, **rows[-1])
                    print(name, rows[-1], flush=True)
        if has_torch:
            mean = geometric_mean([row["ratio"] for row in rows])
            print(f"{name}: geometric mean of torch's time over ours {mean:.3f}")
    result.finish()


if __name__ == "__main__":
    main()
