"""Attention of many queries, or of one as in decoding, beside torch's own kernel and its cuDNN.

All sides run in turn on the same random operands; times are medians of rounds between two events
around a graph of calls, so that no side waits for the host. The operations of the two products are
counted; with a causal mask, half of them. With --decode, the calls of a graph have different keys
and values, more than the cache holds; the share is that of the bytes of keys and values in a
second, relative to a copy's.

    python benchmarks/attention.py [--sizes N ...] [--dtypes NAME ...] [--decode]
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, require_gpu  # noqa: E402

CALLS, ROUNDS, HEADS = 5, 7, 16


def seconds_of(calls, torch):
    """Return the median time of each call; all calls run in turn."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            call()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def graph_of(calls, graphs):
    """Return the replay of a graph with the calls; `graphs` is gt.graphs or torch.cuda."""
    calls[0]()
    gt.synchronize()
    made = graphs.CUDAGraph()
    with graphs.graph(made):
        for call in calls:
            call()
    return made.replay


def copy_rate(torch):
    """Return the bytes that a copy reads and writes in a second."""
    x = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    y = torch.empty_like(x)
    return 2 * x.nbytes / seconds_of({"copy": lambda: y.copy_(x)}, torch)["copy"]


def decoding(report, torch, attention, batches, sizes):
    """Add rows of one query with 32 heads, 8 of keys and values of 128 elements."""
    rate = copy_rate(torch)
    for batch, keys in ((batch, keys) for batch in batches for keys in sizes):
        nbytes = 4096 * batch * keys
        count = max(1, min(64, (1 << 28) // nbytes))
        shape = (batch, 8, keys, 128)
        query = torch.randn((batch, 32, 1, 128), device="cuda", dtype=torch.bfloat16)
        given = [
            [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
            for _ in range(count)
        ]
        mine = [[gt.from_dlpack(one) for one in (query, *pair)] for pair in given]
        replays = {
            "ours": graph_of(
                [lambda one=one: gt.scaled_dot_product_attention(*one) for one in mine], gt.graphs
            )
        }
        for name in ("flash", "cudnn"):
            call = of_backend(name, attention)
            try:
                call(query, *given[0], enable_gqa=True)
                replays[name] = graph_of(
                    [
                        lambda one=(query, *pair), call=call: call(*one, enable_gqa=True)
                        for pair in given
                    ],
                    torch.cuda,
                )
            except RuntimeError as error:
                print(name, error)
        times = {name: time / count for name, time in seconds_of(replays, torch).items()}
        report.add(
            batch=batch, keys=keys, share=round(nbytes / times["ours"] / rate, 3),
            **{f"{name}_us": round(time * 1e6, 2) for name, time in times.items()},
            of_cudnn=round(times["cudnn"] / times["ours"], 2) if "cudnn" in times else "",
        )  # fmt: skip
        del given, mine, replays


def of_backend(name, attention):
    """Return torch's attention by one of its backends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call(*given, **how):
        with sdpa_kernel(getattr(SDPBackend, f"{name.upper()}_ATTENTION")):
            return attention(*given, **how)

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", help="keys")
    parser.add_argument("--dtypes", nargs="+", default=("bfloat16", "float16"))
    parser.add_argument("--decode", action="store_true", help="one query; --batches, --sizes")
    parser.add_argument("--batches", type=int, nargs="+", default=(1, 8, 64))
    arguments = parser.parse_args()
    require_gpu()
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    if arguments.decode:
        report = Report("attention_decode", "Attention of one query, 8 heads of keys and values")
        sizes = arguments.sizes or (1024, 8192, 65536)
        decoding(report, torch, scaled_dot_product_attention, arguments.batches, sizes)
        report.finish()
        return
    report = Report("attention", "Attention of many queries")
    for dtype in arguments.dtypes:
        for head in (64, 128):
            for keys in arguments.sizes or (1024, 2048, 4096, 8192, 16384):
                for is_causal in (False, True):
                    batch = max(1, 8192 // keys)
                    shape = (batch, HEADS, keys, head)
                    given = [
                        torch.randn(shape, device="cuda", dtype=getattr(torch, dtype))
                        for _ in range(3)
                    ]
                    mine = [gt.from_dlpack(one) for one in given]

                    def of_torch(name, given=given, is_causal=is_causal):
                        call = of_backend(name, scaled_dot_product_attention)
                        return call(*given, is_causal=is_causal)

                    calls = {
                        "ours": lambda mine=mine, is_causal=is_causal: (
                            gt.scaled_dot_product_attention(*mine, is_causal=is_causal)
                        ),
                        "flash": lambda f=of_torch: f("flash"),
                        "cudnn": lambda f=of_torch: f("cudnn"),
                    }
                    error = torch.from_dlpack(calls["ours"]()).float() - calls["flash"]().float()
                    replays = {
                        name: graph_of([call] * CALLS, gt.graphs if name == "ours" else torch.cuda)
                        for name, call in calls.items()
                    }
                    times = seconds_of(replays, torch)
                    times = {name: time / CALLS for name, time in times.items()}
                    rate = 4 * batch * HEADS * keys**2 * head / (1 + is_causal) / 1e12
                    report.add(
                        dtype=dtype, head=head, keys=keys, batch=batch,
                        mask="causal" if is_causal else "none",
                        **{f"{name}_tflops": round(rate / time) for name, time in times.items()},
                        of_flash=round(times["flash"] / times["ours"], 2),
                        of_cudnn=round(times["cudnn"] / times["ours"], 2),
                        error=f"{error.abs().max().item():.1e}",
                    )  # fmt: skip
                    del given, mine, calls, replays, error
    report.finish()


if __name__ == "__main__":
    main()
