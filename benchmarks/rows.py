"""Softmax and norms along rows: share of the copy rate, and host time, beside torch.

Both sides run in turn in one process; times are medians of rounds between two events around a run
of calls. The share is the rate of bytes read and written relative to a copy of as many bytes in the
same run. Two functions have several steps: a chain of eight element-wise steps, and softmax with a
scale, a mask of bool and a cast between float32 and bfloat16. The last rows have the host's time
for one call on a 64 x 64 tensor, attention among them.

    python benchmarks/rows.py [--nbytes BYTES] [--widths N ...] [--compile [N ...]]
                              [--host]
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, measure, require_gpu  # noqa: E402
from gputensor import nn  # noqa: E402

WIDTHS = (128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144)
DTYPES = ("float32", "bfloat16")
CALLS = 10
HOST_ROUNDS = 7


def round_of(call, torch):
    """Return the seconds of one call, from a run of calls between two events."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(CALLS):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / CALLS / 1e3


def interleaved(calls, torch, rounds=5):
    """Return the median time of each call; all calls run in turn."""
    for call in calls.values():
        call()
        call()
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(round_of(call, torch))
    return {name: statistics.median(found) for name, found in times.items()}


def functions(torch, width, is_compiled):
    """Return, by name, our function of a tensor and weights, torch's, and torch's compiled."""
    from torch.nn import functional

    def rms(x, w, b):
        return functional.rms_norm(x, (width,), w, 1e-5)

    def layer(x, w, b):
        return functional.layer_norm(x, (width,), w, b, 1e-5)

    theirs = {
        "softmax": lambda x, w, b: functional.softmax(x, -1),
        "log_softmax": lambda x, w, b: functional.log_softmax(x, -1),
        "layer_norm": layer,
        "rms_norm": rms,
    }
    ours = {
        "softmax": lambda x, w, b: nn.softmax(x),
        "log_softmax": lambda x, w, b: nn.log_softmax(x),
        "layer_norm": nn.layer_norm,
        "rms_norm": lambda x, w, b: nn.rms_norm(x, w),
    }
    compiled = {}
    if is_compiled:
        torch.compiler.reset()  # else the limit of recompilations of one function is soon reached
        compiled = {name: torch.compile(call, dynamic=False) for name, call in theirs.items()}
    return {name: (ours[name], theirs[name], compiled.get(name)) for name in ours}


@gt.fuse
def chain(x):
    return gt.exp(-gt.abs(gt.maximum(x * 1.5 + 0.25, -0.5) * 0.75 - 0.125))


def chain_of_torch(x, torch):
    return torch.exp(-torch.abs(torch.clamp(x * 1.5 + 0.25, min=-0.5) * 0.75 - 0.125))


def joined(report, torch, nbytes, width=4096):
    """Add rows of functions with several steps."""
    for dtype, other in (DTYPES, DTYPES[::-1]):
        kind, result = getattr(torch, dtype), getattr(torch, other)
        x = torch.randn((nbytes // (width * kind.itemsize), width), device="cuda", dtype=kind)
        y, mask = torch.empty_like(x), torch.rand(x.shape, device="cuda") < 0.9
        mine, seen = gt.from_dlpack(x), gt.from_dlpack(mask)
        calls = {
            "copy": lambda y=y, x=x: y.copy_(x),
            "chain": lambda mine=mine: chain(mine),
            "torch_chain": lambda x=x: chain_of_torch(x, torch),
            "scaled_softmax": lambda mine=mine, seen=seen, other=other: nn.softmax(
                mine, scale=0.125, mask=seen, dtype=other
            ),
            "torch_scaled_softmax": lambda x=x, mask=mask, result=result: torch.softmax(
                (x * 0.125).masked_fill(~mask, -torch.inf), -1
            ).to(result),
        }
        times = interleaved(calls, torch)
        parts = {"chain": 1, "scaled_softmax": (kind.itemsize + 1 + result.itemsize) / 2}
        parts["scaled_softmax"] /= kind.itemsize
        for name, part in parts.items():
            report.add(
                function=name, dtype=dtype, width=width,
                share=round(part * times["copy"] / times[name], 3),
                torch_share=round(part * times["copy"] / times[f"torch_{name}"], 3),
                copy_tb_s=round(2 * x.nbytes / times["copy"] / 1e12, 2),
            )  # fmt: skip
        del x, y, mask, mine, seen, calls


def host_times(report, torch):
    """Add the host's time for one call on 64 x 64 elements."""
    from torch.nn import functional

    small, w = torch.randn(64, 64, device="cuda"), torch.ones(64, device="cuda")
    query = torch.randn(1, 1, 64, 64, device="cuda", dtype=torch.bfloat16)
    rows = functions(torch, 64, False).items()
    cases = [(name, ours, theirs, (small, w, w)) for name, (ours, theirs, _) in rows]
    attention = gt.scaled_dot_product_attention, functional.scaled_dot_product_attention
    cases.append(("attention", *attention, (query, query, query)))
    for name, ours, theirs, given in cases:
        own = [gt.from_dlpack(one) for one in given]
        sides = (lambda f=ours, a=own: f(*a)), (lambda f=theirs, a=given: f(*a))
        times = [
            [measure(side, 1, setup=torch.cuda.synchronize) for side in sides]
            for _ in range(HOST_ROUNDS + 1)
        ]
        # The first round is left out: it finds the machine as the bandwidths left it.
        pair = [statistics.median(side) for side in zip(*times[1:], strict=True)]
        report.add(
            function=name,
            dtype=str(given[0].dtype).removeprefix("torch."),
            width=64,
            host_ns=round(pair[0]),
            torch_host_ns=round(pair[1]),
            host_ratio=round(pair[0] / pair[1], 3),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nbytes", type=int, default=1 << 30, help="bytes of the input")
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--host", action="store_true", help="only the host's time")
    parser.add_argument(
        "--compile", type=int, nargs="*", metavar="N", help="also torch.compile, at these widths"
    )
    arguments = parser.parse_args()
    compiled_widths = arguments.widths if arguments.compile == [] else arguments.compile or ()
    require_gpu()
    import torch

    report = Report("rows_host" if arguments.host else "rows", "Softmax and norms along rows")
    for dtype in () if arguments.host else DTYPES:
        kind = getattr(torch, dtype)
        for width in arguments.widths:
            rows = arguments.nbytes // (width * kind.itemsize)
            x = torch.randn((rows, width), device="cuda", dtype=kind)
            w, b = (torch.randn(width, device="cuda", dtype=kind) for _ in range(2))
            mine = [gt.from_dlpack(t) for t in (x, w, b)]
            y = torch.empty_like(x)
            found = functions(torch, width, width in compiled_widths)
            for name, (ours, theirs, compiled) in found.items():
                calls = {
                    "copy": lambda y=y, x=x: y.copy_(x),
                    "ours": lambda f=ours, a=mine: f(*a),
                    "torch": lambda f=theirs, a=(x, w, b): f(*a),
                }
                if compiled:
                    calls["compile"] = lambda f=compiled, a=(x, w, b): f(*a)
                times = interleaved(calls, torch)
                report.add(
                    function=name, dtype=dtype, width=width,
                    share=round(times["copy"] / times["ours"], 3),
                    torch_share=round(times["copy"] / times["torch"], 3),
                    compile_share=round(times["copy"] / times["compile"], 3) if compiled else "",
                    copy_tb_s=round(2 * x.nbytes / times["copy"] / 1e12, 2),
                )  # fmt: skip
            del x, y, mine
    if not arguments.host:
        joined(report, torch, arguments.nbytes)
    host_times(report, torch)
    report.finish()


if __name__ == "__main__":
    main()
