"""Bandwidth of element-wise, layout and reduction kernels, beside torch when it is installed.

The bandwidth is bytes read plus bytes written over the time between two events around a run of
launches, the median of several runs. Inputs are larger than the GPU's caches. On the host device
the program runs small sizes to show that it works; its figures have no meaning there.

    python benchmarks/kernels.py [--nbytes BYTES] [--device cuda|host]
"""

import argparse
import itertools
import math
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, measure  # noqa: E402
from gputensor._arrays.element_types import DTYPES  # noqa: E402
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS  # noqa: E402
from tests.support import device_array as kernels  # noqa: E402
from tests.support.device_array import DeviceArray  # noqa: E402

OPS = {row.name: row.code for row in ELEMENTWISE}
REDS = {row.name: row.code for row in REDUCTIONS}
CODES = {row.name: row.code for row in DTYPES}
FLOATS = ("float32", "float16", "bfloat16")
LAUNCHES = 10


def array(device, dtype, shape):
    """Return a C-ordered array of ones."""
    code = CODES[dtype]
    memory = DeviceArray.empty(math.prod(shape) * DTYPES[code].itemsize, device)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    made = memory.view(code, shape, strides)
    kernels.fill(made, 1.0)
    return made


def milliseconds(launch, event, synchronize):
    """Return the median time of one launch, by events around runs of `LAUNCHES`."""
    launch()
    times = []
    for _ in range(7):
        start, end = event(), event()
        start.record()
        for _ in range(LAUNCHES):
            launch()
        end.record()
        synchronize()
        times.append(start.elapsed_time(end) / LAUNCHES)
    return statistics.median(times)


def elementwise_cases(device, nbytes, dtype):
    """Yield (name, bytes moved, launch) of element-wise and layout kernels."""
    code = CODES[dtype]
    size = DTYPES[code].itemsize
    run = kernels.elementwise
    x, out = array(device, dtype, (nbytes // size,)), array(device, dtype, (nbytes // size,))
    yield f"copy {dtype}", 2 * nbytes, lambda: run(OPS["copy"], code, out, [x])
    yield f"x + 1 {dtype}", 2 * nbytes, lambda: run(OPS["add"], code, out, [x, 1.0])
    yield f"x + y {dtype}", 3 * nbytes, lambda: run(OPS["add"], code, out, [x, out])
    yield f"gelu {dtype}", 2 * nbytes, lambda: run(OPS["gelu"], code, out, [x])
    side = math.isqrt(nbytes // size) // 64 * 64
    square = x.view(code, (side, side), (side, 1))
    target = out.view(code, (side, side), (side, 1))
    turned = x.view(code, (side, side), (1, side))
    row = x.view(code, (side, side), (0, 1))
    moved = 2 * side * side * size
    yield f"x + row {dtype}", moved, lambda: run(OPS["add"], code, target, [square, row])
    yield f"copy of x.T {dtype}", moved, lambda: run(OPS["copy"], code, target, [turned])
    other = CODES["float16" if dtype == "float32" else "float32"]
    count = min(nbytes // size, nbytes // DTYPES[other].itemsize)
    part, cast = x.view(code, (count,), (1,)), out.view(other, (count,), (1,))
    moved = count * (size + DTYPES[other].itemsize)
    name = f"{dtype} to {DTYPES[other].name}"
    yield name, moved, lambda: run(OPS["copy"], other, cast, [part])


def reduction_cases(device, nbytes, dtype):
    """Yield (name, bytes read, launch) of reductions."""
    code = CODES[dtype]
    size = DTYPES[code].itemsize
    run = kernels.reduce
    side = math.isqrt(nbytes // size) // 64 * 64
    rows = side * side // 256
    x = array(device, dtype, (side, side))
    whole, line = array(device, dtype, ()), array(device, dtype, (side,))
    index = array(device, "int64", (side,))
    thin = x.view(code, (rows, 256), (256, 1))
    column, narrow = array(device, dtype, (rows,)), array(device, dtype, (256,))
    moved = side * side * size
    add = REDS["sum"]
    yield f"sum {dtype}", moved, lambda: run(add, code, whole, x, (0, 1))
    yield f"sum of rows {dtype}", moved, lambda: run(add, code, line, x, (1,))
    yield f"sum of columns {dtype}", moved, lambda: run(add, code, line, x, (0,))
    yield f"sum of short rows {dtype}", moved, lambda: run(add, code, column, thin, (1,))
    yield f"sum of 256 columns {dtype}", moved, lambda: run(add, code, narrow, thin, (0,))
    yield f"argmax of rows {dtype}", moved, lambda: run(REDS["argmax"], code, index, x, (1,))


def torch_times(torch, nbytes, dtype):
    """Return torch's milliseconds for the cases that it has, under the same names."""
    kind = getattr(torch, dtype)
    x = torch.ones(nbytes // kind.itemsize, dtype=kind, device="cuda")
    out = torch.ones_like(x)
    side = math.isqrt(x.numel()) // 64 * 64
    square = x[: side * side].view(side, side)
    target = out[: side * side].view(side, side)
    thin = square.view(-1, 256)
    launches = {
        "copy": lambda: out.copy_(x),
        "x + 1": lambda: torch.add(x, 1.0, out=out),
        "x + y": lambda: torch.add(x, out, out=out),
        "gelu": lambda: torch.nn.functional.gelu(x),
        "x + row": lambda: torch.add(square, square[0], out=target),
        "copy of x.T": lambda: target.copy_(square.T),
        "sum": lambda: torch.sum(square),
        "sum of rows": lambda: torch.sum(square, 1),
        "sum of columns": lambda: torch.sum(square, 0),
        "sum of short rows": lambda: torch.sum(thin, 1),
        "sum of 256 columns": lambda: torch.sum(thin, 0),
        "argmax of rows": lambda: torch.argmax(square, 1),
    }

    def event():
        return torch.cuda.Event(enable_timing=True)

    return {
        f"{name} {dtype}": milliseconds(launch, event, torch.cuda.synchronize)
        for name, launch in launches.items()
    }


def all_torch_times(nbytes):
    """Return the times of every dtype; empty when torch is not installed."""
    try:
        import torch
    except ImportError:
        return {}
    times = {}
    for dtype in FLOATS:
        times |= torch_times(torch, nbytes, dtype)
        torch.cuda.empty_cache()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nbytes", type=int, default=None, help="bytes of one array")
    parser.add_argument("--device", choices=["cuda", "host"], default=None)
    options = parser.parse_args()
    is_cuda = options.device != "host" and gt.device_count() > 0
    device = 0 if is_cuda else -1
    nbytes = options.nbytes or (1 << 30 if is_cuda else 1 << 20)

    def event():
        return gt.Event(enable_timing=True)

    def synchronize():
        kernels.synchronize(device)

    peers = all_torch_times(nbytes) if is_cuda else {}
    report = Report("kernels", "Kernels, TB/s of bytes read and written")
    with gt.stream(gt.default_stream("cuda" if is_cuda else "host")):
        for cases, dtype in itertools.product((elementwise_cases, reduction_cases), FLOATS):
            for name, moved, launch in cases(device, nbytes, dtype):
                spent = milliseconds(launch, event, synchronize)
                peer = peers.get(name)
                report.add(
                    kernel=name,
                    us=spent * 1e3,
                    tb_per_s=moved / spent / 1e9 if spent else None,
                    torch_tb_per_s=moved / peer / 1e9 if peer else None,
                )
    small, out = array(device, "float32", (64, 64)), array(device, "float32", (64, 64))
    add = OPS["add"]
    call = measure(lambda: kernels.elementwise(add, 11, out, [small, small]))
    report.add(kernel="host time of one 64x64 add", us=call / 1e3)
    report.finish()


if __name__ == "__main__":
    main()
