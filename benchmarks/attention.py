"""Attention of many queries, beside torch's own kernel and its cuDNN.

All sides run in turn on the same random operands; times are medians of rounds between two events
around a run of calls. The operations of the two products are counted; with a causal mask, half of
them.

    python benchmarks/attention.py [--sizes N ...] [--dtypes NAME ...]
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
            for _ in range(CALLS):
                call()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / CALLS / 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=(1024, 2048, 4096, 8192, 16384))
    parser.add_argument("--dtypes", nargs="+", default=("bfloat16", "float16"))
    arguments = parser.parse_args()
    require_gpu()
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    report = Report("attention", "Attention of many queries")
    for dtype in arguments.dtypes:
        for head in (64, 128):
            for keys in arguments.sizes:
                for is_causal in (False, True):
                    batch = max(1, 8192 // keys)
                    shape = (batch, HEADS, keys, head)
                    given = [
                        torch.randn(shape, device="cuda", dtype=getattr(torch, dtype))
                        for _ in range(3)
                    ]
                    mine = [gt.from_dlpack(one) for one in given]

                    def of_torch(backend, given=given, is_causal=is_causal):
                        with sdpa_kernel(backend):
                            return scaled_dot_product_attention(*given, is_causal=is_causal)

                    calls = {
                        "ours": lambda mine=mine, is_causal=is_causal: (
                            gt.scaled_dot_product_attention(*mine, is_causal=is_causal)
                        ),
                        "flash": lambda f=of_torch: f(SDPBackend.FLASH_ATTENTION),
                        "cudnn": lambda f=of_torch: f(SDPBackend.CUDNN_ATTENTION),
                    }
                    error = torch.from_dlpack(calls["ours"]()).float() - calls["flash"]().float()
                    times = seconds_of(calls, torch)
                    rate = 4 * batch * HEADS * keys**2 * head / (1 + is_causal) / 1e12
                    report.add(
                        dtype=dtype, head=head, keys=keys, batch=batch,
                        mask="causal" if is_causal else "none",
                        **{f"{name}_tflops": round(rate / time) for name, time in times.items()},
                        of_flash=round(times["flash"] / times["ours"], 2),
                        of_cudnn=round(times["cudnn"] / times["ours"], 2),
                        error=f"{error.abs().max().item():.1e}",
                    )  # fmt: skip
                    del given, mine, calls, error
    report.finish()


if __name__ == "__main__":
    main()
