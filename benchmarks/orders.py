"""Random numbers, scans, sorting, selection and counts, beside torch and CuPy.

All sides run in turn in one process; times are medians of rounds between two events around a run of
calls, on one stream. The ratio is the better peer's time by ours. CuPy is a peer where it is
installed, and long sorts are then its own; ``--own`` has our kernels sort all rows.

    python benchmarks/orders.py [--count N] [--own]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, measure, require_gpu  # noqa: E402
from benchmarks.rows import interleaved  # noqa: E402
from gputensor.tensor import sorting  # noqa: E402


def peer_cupy():
    """CuPy, or None."""
    try:
        import cupy
    except ImportError:
        return None
    return cupy


def random_cases(torch, cupy, count):
    """(name, dtype, bytes written, calls by side)."""
    rng = gt.random.generator(seed=1)
    for name, theirs, other in (
        ("uniform", torch.rand, "random"),
        ("normal", torch.randn, "standard_normal"),
    ):
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            kind, ours = getattr(torch, dtype), getattr(rng, name)
            calls = {
                "ours": lambda f=ours, d=dtype: f(size=count, dtype=getattr(gt, d)),
                "torch": lambda f=theirs, k=kind: f(count, device="cuda", dtype=k),
            }
            if cupy and dtype in ("float32", "float64"):
                calls["cupy"] = lambda n=other, d=dtype: getattr(cupy.random.default_rng(1), n)(
                    count, dtype=d
                )
            yield name, dtype, count * kind.itemsize, calls
    calls = {
        "ours": lambda: rng.integers(1000, size=count),
        "torch": lambda: torch.randint(1000, (count,), device="cuda"),
    }
    yield "integers", "int64", count * 8, calls
    calls = {"ours": lambda: rng.permutation(count), "torch": lambda: torch.randperm(
        count, device="cuda")}  # fmt: skip
    yield "permutation", "int64", count * 8, calls


def order_cases(torch, cupy, count):
    x = torch.randn(count, device="cuda")
    whole = torch.randint(1 << 20, (count,), device="cuda", dtype=torch.int32)
    wide, square = x.view(-1, 65536), x[: 1 << 20].view(1024, 1024)
    columns = x.view(-1, 4096)
    table = [
        ("cumsum", x, lambda t: gt.cumsum(t), lambda t: torch.cumsum(t, 0), "cumsum"),
        ("cumsum of rows", columns, lambda t: gt.cumsum(t, 1), lambda t: torch.cumsum(t, 1), ""),
        ("cumsum of columns", columns, lambda t: gt.cumsum(t, 0), lambda t: torch.cumsum(t, 0), ""),
        ("sort", x, lambda t: gt.sort(t), lambda t: torch.sort(t).values, "sort"),
        ("argsort", x, lambda t: gt.argsort(t), lambda t: torch.argsort(t), "argsort"),
        ("sort of 1,024 rows", square, lambda t: gt.sort(t), lambda t: torch.sort(t).values, ""),
        ("top 64 of rows", wide, lambda t: gt.topk(t, 64), lambda t: torch.topk(t, 64), ""),
        ("top 64 of all", x, lambda t: gt.topk(t, 64), lambda t: torch.topk(t, 64), ""),
        ("unique", whole, lambda t: gt.unique(t), lambda t: torch.unique(t), "unique"),
        ("histogram", x, lambda t: gt.histogram(t, 256, (-4, 4))[0],
         lambda t: torch.histc(t, 256, -4, 4), ""),
        ("bincount", whole % 256, lambda t: gt.bincount(t), lambda t: torch.bincount(t),
         "bincount"),
    ]  # fmt: skip
    for name, given, ours, theirs, other in table:
        mine = gt.from_dlpack(given)
        calls = {"ours": lambda f=ours, t=mine: f(t), "torch": lambda f=theirs, t=given: f(t)}
        if cupy and other:
            array, function = cupy.from_dlpack(given), getattr(cupy, other)
            calls["cupy"] = lambda f=function, t=array: f(t)
        yield name, str(given.dtype).removeprefix("torch."), given.nbytes, calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1 << 26, help="elements")
    parser.add_argument("--own", action="store_true", help="sort all rows by our kernels")
    arguments = parser.parse_args()
    require_gpu()
    import torch

    cupy = peer_cupy()
    if arguments.own:
        sorting.is_installed = lambda: False
    report = Report("orders", "Random numbers, scans, sorting, selection and counts")
    for cases in (random_cases, order_cases):
        for name, dtype, nbytes, calls in cases(torch, cupy, arguments.count):
            times = interleaved(calls, torch, rounds=5)
            peer = min(time for side, time in times.items() if side != "ours")
            report.add(
                what=name, dtype=dtype, us=round(times["ours"] * 1e6),
                torch_us=round(times["torch"] * 1e6),
                cupy_us=round(times["cupy"] * 1e6) if "cupy" in times else "",
                ratio=round(peer / times["ours"], 3),
                tb_s=round(nbytes / times["ours"] / 1e12, 2),
            )  # fmt: skip
    rng, small = gt.random.generator(seed=1), torch.randn(64, 64, device="cuda")
    mine = gt.from_dlpack(small)
    for name, ours, theirs in (
        ("uniform", lambda: rng.uniform(size=4096), lambda: torch.rand(4096, device="cuda")),
        ("cumsum", lambda: gt.cumsum(mine, 1), lambda: torch.cumsum(small, 1)),
        ("topk", lambda: gt.topk(mine, 5), lambda: torch.topk(small, 5)),
        ("sort", lambda: gt.sort(mine), lambda: torch.sort(small)),
    ):
        pair = [measure(call, setup=torch.cuda.synchronize) for call in (ours, theirs)]
        report.add(
            what=f"{name}: host time", dtype="float32", host_ns=round(pair[0]),
            torch_host_ns=round(pair[1]), ratio=round(pair[1] / pair[0], 3),
        )  # fmt: skip
    report.finish()


if __name__ == "__main__":
    main()
