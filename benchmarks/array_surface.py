"""Common array operations beside torch and CuPy: selection, statistics, layouts, sorting, random.

All sides run in turn in one process; times are medians of rounds between two events around a run of
calls, on one stream. `ratio` is the better peer's time over ours. `share` is the rate at which we
move the bytes that have to be read and written, relative to a copy of as many bytes in the same
run. Rows of host time are medians of loops; the host device is compared with NumPy, and the first
calls are made in new processes, with an empty and with a full folder of kernels.

    python benchmarks/array_surface.py [--nbytes BYTES] [--count N] [--only TEXT]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, measure  # noqa: E402
from benchmarks.rows import interleaved  # noqa: E402
from gputensor._driver.registry import cuda_device_count  # noqa: E402

FIRST_CALL = """
import time
import gputensor as gt
x = gt.ones(1000, device="cuda")
x.numpy()
start = time.perf_counter()
(x * 3).numpy()
print(time.perf_counter() - start)
"""


def peer_cupy():
    """Return CuPy, or None."""
    try:
        import cupy
    except ImportError:
        return None
    return cupy


def choice_cases(torch, nbytes):
    """Yield (name, dtype, bytes moved, operands, our call, torch's call, CuPy's) of selections.

    The last is as in `cupy_call`, or False where CuPy is not compared.
    """
    for dtype in ("float32", "bfloat16"):
        kind = getattr(torch, dtype)
        x = torch.randn(nbytes // kind.itemsize, device="cuda").to(kind)
        mask = x > 0
        chosen = int(mask.sum())
        moved = x.nbytes + mask.nbytes + chosen * kind.itemsize
        yield "x[mask]", dtype, moved, (x, mask), lambda a, m: a[m], lambda a, m: a[m], True
        rows = x.view(-1, 1024)
        index = torch.randint(len(rows), (len(rows),), device="cuda")
        moved = 2 * x.nbytes + index.nbytes
        yield ("take of rows", dtype, moved, (rows, index), lambda a, i: gt.take(a, i, 0),
               lambda a, i: a[i], True)  # fmt: skip
        del x, rows, mask
    x = torch.randn(nbytes // 4, device="cuda")
    for share in (0.5, 0.01):
        mask = torch.rand(nbytes // 4, device="cuda") < share
        moved = mask.nbytes + int(mask.sum()) * 8
        yield (f"nonzero of a mask, {share:.0%}", "bool", moved, (mask,), lambda m: gt.nonzero(m),
               lambda m: torch.nonzero(m, as_tuple=True), True)  # fmt: skip
    count = 1 << 16
    for dtype in ("float32", "bfloat16"):
        source = x.to(getattr(torch, dtype)).view(-1, 256)
        target = torch.zeros(count, 256, device="cuda", dtype=source.dtype)
        index = torch.randint(count, (len(source),), device="cuda")
        yield ("index_add of rows", dtype, source.nbytes + 2 * target.nbytes + index.nbytes,
               (target, index, source), lambda t, i, s: gt.index_add(t, 0, i, s),
               lambda t, i, s: torch.index_add(t, 0, i, s), False)  # fmt: skip
    source, target = x[: nbytes // 16], torch.zeros(1 << 20, device="cuda")
    index = torch.randint(1 << 20, (source.numel(),), device="cuda")
    yield ("scatter_add", "float32", source.nbytes + index.nbytes, (target, index, source),
           lambda t, i, s: gt.scatter_add(t, 0, i, s),
           lambda t, i, s: torch.scatter_add(t, 0, i, s), False)  # fmt: skip


def statistic_cases(torch, nbytes):
    for dtype in ("float32", "bfloat16", "float16", "float64", "int32", "int64", "int8"):
        kind = getattr(torch, dtype)
        x = (torch.randn(nbytes // kind.itemsize, device="cuda") * 99).to(kind).view(-1, 4096)
        for name in ("var", "std", "argmax", "argmin"):
            if name in ("var", "std") and not kind.is_floating_point:
                continue
            for axis, word in ((1, "rows"), (0, "columns")):
                theirs = {"correction": 0} if name in ("var", "std") else {}
                yield (f"{name} of {word}", dtype, x.nbytes, (x,),
                       lambda a, n=name, i=axis: getattr(gt, n)(a, axis=i),
                       lambda a, n=name, i=axis, k=theirs: getattr(torch, n)(a, i, **k),
                       dtype != "bfloat16" and name)  # fmt: skip


def layout_cases(torch, nbytes):
    cut = gt.fuse(lambda x: gt.where(x > 0, x, 0))
    for dtype in ("float32", "bfloat16"):
        kind = getattr(torch, dtype)
        x = torch.randn(nbytes // kind.itemsize, device="cuda").to(kind).view(-1, 8192)
        row, column = x[0].clone(), x[:, :1].clone()
        cases = (
            ("copy of a transpose", 2, (x,), lambda a: a.T.contiguous(),
             lambda a: a.T.contiguous()),
            ("x[::2] + 1", 1.5, (x,), lambda a: a.reshape(-1)[::2] + 1,
             lambda a: a.view(-1)[::2] + 1),
            ("x + row", 2, (x, row), lambda a, b: a + b, lambda a, b: a + b),
            ("x + column", 2, (x, column), lambda a, b: a + b, lambda a, b: a + b),
            ("concat", 2, (x,), lambda a: gt.concat([a[:1000], a[1000:]]),
             lambda a: torch.cat([a[:1000], a[1000:]])),
            ("where(x > 0, x, 0), fused", 2, (x,), cut, lambda a: torch.where(a > 0, a, 0)),
        )  # fmt: skip
        for name, sweeps, given, ours, theirs in cases:
            yield name, dtype, int(sweeps * x.nbytes), given, ours, theirs, False


def order_cases(torch, count):
    x = torch.randn(count, device="cuda")
    whole = torch.randint(1 << 20, (count,), device="cuda", dtype=torch.int32)
    cases = (
        ("cumsum", 2, x, lambda t: gt.cumsum(t), lambda t: torch.cumsum(t, 0), "cumsum"),
        ("cumsum of rows", 2, x.view(-1, 4096), lambda t: gt.cumsum(t, 1),
         lambda t: torch.cumsum(t, 1), ""),
        ("sort", 2, x, lambda t: gt.sort(t), lambda t: torch.sort(t).values, "sort"),
        ("argsort", 3, x, lambda t: gt.argsort(t), lambda t: torch.argsort(t), "argsort"),
        ("sort of rows of 1,024", 2, x[: 1 << 20].view(1024, 1024), lambda t: gt.sort(t),
         lambda t: torch.sort(t).values, ""),
        ("sort of rows of 65,536", 2, x.view(-1, 65536), lambda t: gt.sort(t),
         lambda t: torch.sort(t).values, ""),
        ("unique", 1, whole, lambda t: gt.unique(t), lambda t: torch.unique(t), "unique"),
        ("top 64 of rows of 65,536", 1, x.view(-1, 65536), lambda t: gt.topk(t, 64),
         lambda t: torch.topk(t, 64), ""),
        ("histogram, 256 ranges", 1, x, lambda t: gt.histogram(t, 256, (-4, 4))[0],
         lambda t: torch.histc(t, 256, -4, 4), ""),
        ("bincount, 256", 1, whole % 256, lambda t: gt.bincount(t), lambda t: torch.bincount(t),
         "bincount"),
    )  # fmt: skip
    for name, sweeps, given, ours, theirs, other in cases:
        dtype = str(given.dtype).removeprefix("torch.")
        yield name, dtype, sweeps * given.nbytes, (given,), ours, theirs, other


def draw_cases(torch, count):
    rng = gt.random.generator(seed=1)
    for name, theirs in (("uniform", torch.rand), ("normal", torch.randn)):
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            kind = getattr(torch, dtype)
            yield (name, dtype, kind.itemsize * count, (),
                   lambda n=name, d=dtype: getattr(rng, n)(size=count, dtype=d),
                   lambda f=theirs, k=kind: f(count, device="cuda", dtype=k), False)  # fmt: skip
    yield ("integers", "int64", 8 * count, (), lambda: rng.integers(1000, size=count),
           lambda: torch.randint(1000, (count,), device="cuda"), False)  # fmt: skip
    yield ("permutation", "int64", 8 * count, (), lambda: rng.permutation(count),
           lambda: torch.randperm(count, device="cuda"), False)  # fmt: skip


def cupy_call(cupy, given, ours, other):
    """Return CuPy's call on the same arrays: `other` is its function's name, or True for one of
    nonzero, a mask and take, by the operands.
    """
    arrays = [cupy.from_dlpack(one) for one in given]
    if other is True:
        if len(arrays) == 1:
            return lambda: cupy.nonzero(arrays[0])
        if arrays[1].dtype == bool:
            return lambda: arrays[0][arrays[1]]
        return lambda: cupy.take(arrays[0], arrays[1], 0)
    function = getattr(cupy, other)
    if given[0].ndim == 2 and other in ("var", "std", "argmax", "argmin"):
        return None
    return lambda: function(*arrays)


def copy_rate(torch, nbytes):
    """Return the bytes that a copy reads and writes in a second."""
    x = torch.zeros(nbytes // 4, device="cuda")
    out = torch.zeros_like(x)
    return 2 * nbytes / interleaved({"copy": lambda: out.copy_(x)}, torch, rounds=5)["copy"]


def add_device_rows(report, arguments):
    import torch

    cupy = peer_cupy()
    rate = copy_rate(torch, arguments.nbytes)
    report.facts["copy_tb_s"] = round(rate / 1e12, 2)
    parts = (
        choice_cases(torch, arguments.nbytes), statistic_cases(torch, arguments.nbytes),
        layout_cases(torch, arguments.nbytes), order_cases(torch, arguments.count),
        draw_cases(torch, arguments.count),
    )  # fmt: skip
    for name, dtype, moved, given, ours, theirs, other in (row for part in parts for row in part):
        if arguments.only not in name:
            continue
        mine = [gt.from_dlpack(one) for one in given]
        calls = {
            "ours": lambda f=ours, a=mine: f(*a),
            "torch": lambda f=theirs, a=given: f(*a),
        }
        if cupy and other and dtype != "bfloat16":
            calls["cupy"] = cupy_call(cupy, given, ours, other)
        times = interleaved({side: call for side, call in calls.items() if call}, torch, rounds=5)
        peer = min(time for side, time in times.items() if side != "ours")
        report.add(
            what=name, dtype=dtype, us=round(times["ours"] * 1e6),
            torch_us=round(times["torch"] * 1e6),
            cupy_us=round(times["cupy"] * 1e6) if "cupy" in times else "",
            ratio=round(peer / times["ours"], 3), share=round(moved / times["ours"] / rate, 3),
        )  # fmt: skip
        print(*report.rows[-1].values(), flush=True)
    add_host_times(report, torch, arguments)


def add_host_times(report, torch, arguments):
    a, b = (torch.randn(64, 64, device="cuda") for _ in range(2))
    x, y = gt.from_dlpack(a), gt.from_dlpack(b)
    rng = gt.random.generator(seed=1)
    for name, ours, theirs in (
        ("a + b", lambda: x + y, lambda: a + b),
        ("sum", lambda: gt.sum(x), lambda: torch.sum(a)),
        ("view", lambda: x[1:3], lambda: a[1:3]),
        ("from_dlpack", lambda: gt.from_dlpack(a), lambda: torch.from_dlpack(x)),
        ("uniform", lambda: rng.uniform(size=4096), lambda: torch.rand(4096, device="cuda")),
    ):
        if arguments.only not in name:
            continue
        pair = [measure(call, setup=torch.cuda.synchronize) for call in (ours, theirs)]
        report.add(
            what=f"{name}: host time", dtype="float32", us=round(pair[0] / 1e3, 2),
            torch_us=round(pair[1] / 1e3, 2), ratio=round(pair[1] / pair[0], 3),
        )  # fmt: skip
    for word, seconds in first_calls():
        report.add(what=f"first call of an operation, {word}", dtype="float32",
                   us=round(seconds * 1e6))  # fmt: skip


def first_calls():
    """Yield the seconds of the first `x * 3` in a new process, without and with its kernel."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"GPUTENSOR_KERNEL_CACHE": folder}
        for word in ("cold cache", "warm disk cache"):
            done = subprocess.run([sys.executable, "-c", FIRST_CALL], env=environment,
                                  capture_output=True, text=True, check=True)  # fmt: skip
            yield word, float(done.stdout)


def add_numpy_rows(report, arguments):
    """Add the rows of the host device beside NumPy."""
    rng = np.random.default_rng(1)
    small, square = rng.normal(size=(64, 64)), rng.normal(size=(4096, 4096))
    a, x = gt.asarray(small, device="host"), gt.asarray(square, device="host")
    draw = gt.random.generator(1, "host")
    for name, ours, theirs in (
        ("a + b, 64 x 64", lambda: a + a, lambda: small + small),
        ("sum over axis 0", lambda: gt.sum(x, axis=0), lambda: square.sum(axis=0)),
        ("var over axis 0", lambda: gt.var(x, axis=0), lambda: square.var(axis=0)),
        ("zeros, 4096 x 4096", lambda: gt.zeros((4096, 4096), device="host"),
         lambda: np.zeros((4096, 4096), np.float32)),
        ("uniform, 4096", lambda: draw.uniform(size=4096), lambda: rng.random(4096, np.float32)),
    ):  # fmt: skip
        if arguments.only not in name:
            continue
        pair = [measure(call) for call in (ours, theirs)]
        report.add(
            what=f"{name}, host device", dtype="float64", us=round(pair[0] / 1e3, 2),
            numpy_us=round(pair[1] / 1e3, 2), ratio=round(pair[1] / pair[0], 3),
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nbytes", type=int, default=1 << 30, help="bytes of an operand")
    parser.add_argument("--count", type=int, default=1 << 26, help="elements to sort and to draw")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    arguments = parser.parse_args()
    report = Report("array_surface", "What users of arrays do most")
    if cuda_device_count():
        add_device_rows(report, arguments)
    add_numpy_rows(report, arguments)
    report.finish()


if __name__ == "__main__":
    main()
