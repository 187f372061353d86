"""The convolutions of ResNet-50 and MobileNet v2, beside torch with cuDNN.

Each convolution, channels last, is captured ten times in a CUDA graph; the graphs of both sides are
replayed in turn, and times are medians. `count` is how often a network has the convolution, and
the last row of a network and batch is the sum over all convolutions. For depthwise convolutions
`share` is the rate of bytes read and written relative to a copy of as many bytes in the same run;
for the others it is left out. The largest error is against torch in float32 at batch 1. With
`--dtypes float32` both sides may use TF32.

    python benchmarks/convolution.py [--batches N ...] [--dtypes NAME ...] [--networks NAME ...]
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, require_gpu  # noqa: E402

CALLS, ROUNDS = 10, 9


def resnet_50():
    """Yield (channels, outputs, extent of x, kernel, stride, groups) of each convolution."""
    yield 3, 64, 224, 7, 2, 1
    channels, extent = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            yield channels, inner, extent, 1, 1, 1
            yield inner, inner, extent, 3, stride, 1
            if not block:
                yield channels, 4 * inner, extent, 1, stride, 1
            extent //= stride
            yield inner, 4 * inner, extent, 1, 1, 1
            channels = 4 * inner


def mobilenet_v2():
    """Yield the same for MobileNet v2."""
    yield 3, 32, 224, 3, 2, 1
    channels, extent = 32, 112
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
              (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for factor, outputs, count, first in blocks:
        for number in range(count):
            stride, wide = 1 if number else first, channels * factor
            if factor > 1:
                yield channels, wide, extent, 1, 1, 1
            yield wide, wide, extent, 3, stride, wide
            extent //= stride
            yield wide, outputs, extent, 1, 1, 1
            channels = outputs
    yield channels, 1280, extent, 1, 1, 1


NETWORKS = {"resnet_50": resnet_50, "mobilenet_v2": mobilenet_v2}


def layers(network):
    """Return the different convolutions of a network, and how often it has each."""
    found = {}
    for layer in NETWORKS[network]():
        found[layer] = found.get(layer, 0) + 1
    return found


def graph_of(call):
    """Return the replay of a graph with `CALLS` calls."""
    call()
    call()
    gt.synchronize()
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        for _ in range(CALLS):
            call()
    return graph.replay


def torch_graph_of(call, torch):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    return graph.replay


def interleaved(replays):
    """Return median seconds of one call of each graph; the graphs run in turn."""
    times = {name: [] for name in replays}
    for replay in replays.values():
        replay()
    for _ in range(ROUNDS):
        for name, replay in replays.items():
            start, end = (gt.Event(enable_timing=True) for _ in range(2))
            gt.synchronize()
            start.record()
            replay()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) / CALLS / 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def operands(layer, batch, dtype):
    """Return x with channels last, as (batch, channels, height, width), and weights likewise."""
    channels, outputs, extent, kernel, _stride, groups = layer
    scale = (kernel * kernel * channels // groups) ** -0.5
    how = {"dtype": getattr(gt, dtype), "device": "cuda"}
    x = gt.random.normal(0.0, 1.0, (batch, extent, extent, channels), **how)
    w = gt.random.normal(0.0, scale, (outputs, kernel, kernel, channels // groups), **how)
    return [gt.moveaxis(one, -1, 1) for one in (x, w)]


def run_layer(layer, batch, dtype, torch):
    """Return the times of a layer and its row of the table."""
    channels, outputs, extent, kernel, stride, groups = layer
    x, w = operands(layer, batch, dtype)
    how = {"stride": stride, "padding": kernel // 2, "groups": groups}
    with gt.blas.precision(allow_tf32=True):
        result = gt.conv2d(x, w, **how)
        replays = {"ours": graph_of(lambda: gt.conv2d(x, w, **how))}
    copied = gt.empty((x.size + result.size) // 2, dtype=x.dtype, device="cuda")
    other = gt.empty_like(copied)

    def copy():
        other[...] = copied

    if groups > 1:
        replays["copy"] = graph_of(copy)
    error = ""
    if torch is not None:
        theirs = [torch.from_dlpack(one) for one in (x, w)]
        torch.backends.cudnn.allow_tf32 = True
        replays["torch"] = torch_graph_of(
            lambda: torch.nn.functional.conv2d(*theirs, **how), torch
        )  # fmt: skip
        torch.backends.cudnn.allow_tf32 = False
        if batch == 1:
            want = torch.nn.functional.conv2d(*(one.float() for one in theirs), **how)
            error = (torch.from_dlpack(result).float() - want).abs().max().item()
    times = interleaved(replays)
    flops = 2 * result.size * kernel * kernel * channels // groups
    return times, {
        "layer": f"{channels}->{outputs} {kernel}x{kernel}/{stride} at {extent}"
        + (" depthwise" if groups > 1 else ""),
        "us": round(times["ours"] * 1e6, 1),
        "tflops": round(flops / times["ours"] / 1e12, 1),
        "torch_us": round(times["torch"] * 1e6, 1) if torch else "",
        "ratio": round(times["torch"] / times["ours"], 3) if torch else "",
        "share": round(times["copy"] / times["ours"], 3) if groups > 1 else "",
        "error": f"{error:.1e}" if error != "" else "",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=(1, 32, 256))
    parser.add_argument("--dtypes", nargs="+", default=("bfloat16", "float16"))
    parser.add_argument("--networks", nargs="+", default=tuple(NETWORKS), choices=NETWORKS)
    parser.add_argument("--depthwise", action="store_true", help="only those, by ours and a copy")
    arguments = parser.parse_args()
    require_gpu()
    try:
        import torch

        torch.backends.cudnn.benchmark = True
    except ImportError:
        torch = None
    if arguments.depthwise:
        report = Report("products/depthwise", "Depthwise convolutions of MobileNet v2")
        for dtype in arguments.dtypes:
            for batch in arguments.batches:
                for layer in layers("mobilenet_v2"):
                    if layer[5] > 1:
                        _times, row = run_layer(layer, batch, dtype, None)
                        report.add(dtype=dtype, batch=batch, **row)
        return report.finish()
    report = Report("convolution", "Convolutions of ResNet-50 and MobileNet v2")
    for network in arguments.networks:
        for dtype in arguments.dtypes:
            for batch in arguments.batches:
                run_network(report, network, dtype, batch, torch)
    return report.finish()


def run_network(report, network, dtype, batch, torch):
    """Add the rows of one network, and their sum."""
    ours = theirs = 0.0
    facts = {"network": network, "dtype": dtype, "batch": batch}
    for layer, count in layers(network).items():
        times, row = run_layer(layer, batch, dtype, torch)
        ours += count * times["ours"]
        theirs += count * times.get("torch", 0.0)
        report.add(**facts, count=count, **row)
    report.add(
        **facts, count=sum(layers(network).values()), layer="all", us=round(ours * 1e6, 1),
        torch_us=round(theirs * 1e6, 1) if torch else "",
        ratio=round(theirs / ours, 3) if torch else "",
    )  # fmt: skip


if __name__ == "__main__":
    main()
