"""Programs beside torch's CUDA graphs: ``python benchmarks/programs.py``.

Host time is measured in short bursts of calls on an idle GPU, the time of a call over many calls in
a row, up to the end of their work. Both sides alternate. "New addresses" gives other inputs in each
call: a program updates nodes of its graph, torch copies into the inputs of its graph. The kernels
of the first two parts are kept separate by `rounding="each"`; otherwise they would be one formula.
"""

import importlib.util
import statistics
import sys
import time

import numpy as np

import gputensor as gt
from report import Report, require_gpu

ROUNDS, BURST, ROW = 15, 4, 40
LENGTH = 100
WIDE = (4096, 4096)
HIDDEN, HEADS, UP, LAYERS = 384, 12, 1536, 6


def turns(calls, syncs):
    """Return medians of (host microseconds, microseconds) of one call for each side."""
    host, whole = {name: [] for name in calls}, {name: [] for name in calls}
    for name, call in calls.items():
        for _ in range(3):
            call()
        syncs[name]()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            for times, count, until_done in ((host, BURST, False), (whole, ROW, True)):
                syncs[name]()
                start = time.perf_counter_ns()
                for _ in range(count):
                    call()
                if until_done:
                    syncs[name]()
                times[name].append((time.perf_counter_ns() - start) / count / 1000)
                syncs[name]()
    return {name: (statistics.median(host[name]), statistics.median(whole[name])) for name in calls}


def add(report, what, found):
    for side, (host, whole) in found.items():
        row = {"what": what, "side": side, "host us": round(host, 2), "us": round(whole, 2)}
        if side != "torch" and "torch" in found:
            row["host ratio"] = round(host / found["torch"][0], 3)
            row["ratio"] = round(whole / found["torch"][1], 3)
        report.add(**row)


def torch_graph(function, *inputs):
    """Return a CUDA graph of torch over inputs whose addresses stay."""
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            function(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph.result = function(*inputs)
    return graph


# ---- 100 kernels


def chain(x):
    total = x * 2
    for _ in range(LENGTH - 1):
        total = total + x
    return total


def many_kernels(report, sides):
    x = gt.ones((64, 64))
    program = gt.compile(chain, gt.spec(x.shape, x.dtype), rounding="each")
    calls = {"program": lambda: program(x)}
    eager = gt.graphs.CUDAGraph()
    gt.synchronize()
    with gt.graphs.graph(eager):
        chain(x)
    calls["CUDAGraph"] = eager.replay
    if "torch" in sides:
        import torch

        given = torch.ones(64, 64, device="cuda")
        calls["torch"] = torch_graph(chain, given).replay
        # One kernel, since it joins the steps; its host time is that of a compiled call.
        overhead = torch.compile(chain, mode="reduce-overhead")
        calls["reduce-overhead"] = lambda: overhead(given)
    found = turns(calls, sides_of(calls, sides))
    add(report, f"{LENGTH} kernels", found)
    if "reduce-overhead" in found:
        ratio = found["program"][0] / found["reduce-overhead"][0]
        report.facts["host_ratio_to_reduce_overhead"] = round(ratio, 3)
    report.facts["graph"] = program.report()["chain"]["sizes"][0]["graph"]


# ---- new addresses


def ends(a, b, c, d):
    """Read each large input once, and run 97 small kernels after that."""
    total = a[:64, :64] + b[-64:, :64] * c[:64, -64:] - d[-64:, -64:]
    for _ in range(LENGTH - 3):
        total = total + 1
    return total


def new_addresses(report, sides):
    groups = [[gt.ones(WIDE) for _ in range(4)] for _ in range(2)]
    program = gt.compile(ends, *[gt.spec(WIDE, gt.float32)] * 4, rounding="each")
    turn = iter(range(1 << 60))
    calls = {"program": lambda: program(*groups[next(turn) % 2])}
    if "torch" in sides:
        import torch

        static = [torch.ones(WIDE, device="cuda") for _ in range(4)]
        theirs = [[torch.ones(WIDE, device="cuda") for _ in range(4)] for _ in range(2)]
        graph = torch_graph(ends, *static)

        def copied():
            for kept, given in zip(static, theirs[next(turn) % 2], strict=True):
                kept.copy_(given)
            graph.replay()

        calls["torch"] = copied
    found = turns(calls, sides_of(calls, sides))
    add(report, f"{LENGTH} kernels, 4 inputs of 64 MiB elsewhere", found)


# ---- an encoder


def encoder_weights(rng):
    def matrix(rows, columns):
        return (rng.standard_normal((rows, columns)) / HIDDEN**0.5).astype(np.float32)

    return [
        {
            "qkv": matrix(HIDDEN, 3 * HIDDEN), "out": matrix(HIDDEN, HIDDEN),
            "up": matrix(UP, HIDDEN), "down": matrix(HIDDEN, UP),
            "norm1": np.ones(HIDDEN, np.float32), "norm2": np.ones(HIDDEN, np.float32),
        }
        for _ in range(LAYERS)
    ]  # fmt: skip


def encoder(x, *, weights):
    batch, length, _ = x.shape
    for w in weights:
        qkv = gt.reshape(x @ w["qkv"], (batch, length, 3, HEADS, HIDDEN // HEADS))
        q, k, v = (gt.moveaxis(qkv[:, :, i], 2, 1) for i in range(3))
        heads = gt.moveaxis(gt.scaled_dot_product_attention(q, k, v), 1, 2)
        x = gt.layer_norm(gt.linear(gt.reshape(heads, x.shape), w["out"], residual=x), w["norm1"])
        up = gt.linear(x, w["up"], activation="gelu")
        x = gt.layer_norm(gt.linear(up, w["down"], residual=x), w["norm2"])
    return x


def torch_encoder(x, weights):
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

    batch, length, _ = x.shape
    for w in weights:
        qkv = (x @ w["qkv"]).reshape(batch, length, 3, HEADS, HIDDEN // HEADS)
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
        heads = scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = layer_norm(linear(heads, w["out"]) + x, (HIDDEN,), w["norm1"])
        x = layer_norm(linear(gelu(linear(x, w["up"])), w["down"]) + x, (HIDDEN,), w["norm2"])
    return x


def encoders(report, sides):
    rng = np.random.default_rng(1)
    weights = encoder_weights(rng)
    for batch, length in ((1, 128), (32, 128)):
        array = rng.standard_normal((batch, length, HIDDEN)).astype(np.float32)
        ours = [{k: gt.asarray(v, dtype=gt.bfloat16) for k, v in w.items()} for w in weights]
        x = gt.asarray(array, dtype=gt.bfloat16)
        program = gt.compile(encoder, gt.spec(x.shape, x.dtype), weights=ours)
        calls = {"program": lambda p=program, x=x: p(x)}
        if "torch" in sides:
            import torch

            kind = {"device": "cuda", "dtype": torch.bfloat16}
            theirs = [{k: torch.tensor(v, **kind) for k, v in w.items()} for w in weights]
            graph = torch_graph(
                lambda x, w=theirs: torch_encoder(x, w), torch.tensor(array, **kind)
            )
            calls["torch"] = graph.replay
            graph.replay()
            error = program(x).astype(gt.float32).numpy() - graph.result.float().cpu().numpy()
            report.facts[f"largest difference, {batch}x{length}"] = float(abs(error).max())
        found = turns(calls, sides_of(calls, sides))
        add(report, f"encoder, bf16, {batch}x{length}", found)
        report.facts[f"encoder {batch}x{length}"] = program.report()["encoder"]["sizes"][0]


def sides_of(calls, sides):
    """Return the function with which each side waits for the GPU."""
    theirs = ("torch", "reduce-overhead")
    return {name: sides["torch" if name in theirs else "gputensor"] for name in calls}


def main():
    require_gpu()
    sides = {"gputensor": gt.synchronize}
    if importlib.util.find_spec("torch") is not None:
        import torch

        sides["torch"] = torch.cuda.synchronize
    report = Report("programs", "Programs beside torch's CUDA graphs")
    parts = {"kernels": many_kernels, "addresses": new_addresses, "encoder": encoders}
    for name in sys.argv[1:] or parts:
        parts[name](report, sides)
    report.finish()


if __name__ == "__main__":
    main()
