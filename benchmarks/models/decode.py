"""Language models of Llama's shapes with random weights: tokens and prompts, in microseconds.

A token reads all weights and the cache once. `share` is the rate of these bytes relative to a copy
in the same run (bytes read and written); the figure of a prompt is the operations of its products
over the time. Integers of int8 and int4 are random too, because times do not depend on their
values. The peers are a CUDA graph of the same model in torch, written for one length of the cache,
and, on request, torch's compiler, also in a graph. With
`--joined`, programs are timed in turn that differ in the steps of `programs/few_rows/join.py`.

    python benchmarks/models/decode.py [--models NAME ...] [--forms NAME ...] [--peers NAME ...]
        [--joined none residuals,gates all ...]
"""

import argparse
import contextlib
import functools
import json
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gputensor as gt  # noqa: E402
from benchmarks.report import Report, require_gpu  # noqa: E402
from gputensor.programs.few_rows import join  # noqa: E402

HELD, LENGTH, PROMPT = 1024, 2304, 2048
ROUNDS, CALLS, COPIED = 5, 16, 1 << 29


class Shape(NamedTuple):
    layers: int
    width: int
    heads: int
    kept: int
    size: int
    hidden: int
    vocabulary: int


SHAPES = {
    "llama-8b": Shape(32, 4096, 32, 8, 128, 14336, 128256),
    "llama-1b": Shape(16, 2048, 32, 8, 64, 8192, 128256),
    "tiny": Shape(2, 128, 4, 2, 32, 256, 512),
}


# ---- the model


@gt.fuse
def gated(gate, up):
    return gt.silu(gate) * up


def layers_of(shape):
    """Return the functions `prefill` and `decode` of a model, which return the best next token."""

    def heads(x, count):
        return gt.moveaxis(gt.reshape(x, (x.shape[0], count, shape.size)), 0, 1)

    def times(x, w, **how):
        """Multiply by plain weights, or by (integers, scales)."""
        if isinstance(w, tuple):
            residual = how.get("residual")
            y = gt.quantized_linear(x, *w)
            return y if residual is None else y + residual
        return gt.linear(x, w, **how)

    def forward(tokens, *, weights, state):
        n, start = tokens.shape[0], state["length"]
        x, at = gt.take(weights["embed"], tokens, axis=0), start + gt.arange(n, dtype=gt.int32)
        turned, count = shape.heads + shape.kept, start + n
        for w, k, v in zip(weights["layers"], state["k"], state["v"], strict=True):
            rows = times(gt.rms_norm(x, w["norm1"]), w["qkv"])
            qk = gt.rotary(heads(rows[:, : turned * shape.size], turned), at)
            k[:, at], v[:, at] = (
                qk[shape.heads :],
                heads(rows[:, turned * shape.size :], shape.kept),
            )
            a = gt.scaled_dot_product_attention(
                qk[: shape.heads], k, v, is_causal=True, kv_length=count
            )
            x = times(gt.reshape(gt.moveaxis(a, 0, 1), (n, -1)), w["out"], residual=x)
            gate, up = gt.split(times(gt.rms_norm(x, w["norm2"]), w["gate_up"]), 2, axis=1)
            x = times(gated(gate, up), w["down"], residual=x)
        start += n
        return gt.argmax(gt.linear(gt.rms_norm(x[-1:], weights["norm"]), weights["head"]), axis=-1)

    def forward_step(tokens, *, weights, state):
        return forward(tokens, weights=weights, state=state)

    return forward, forward_step


def matrices(shape):
    """Return (outputs, terms) of the matrices of a layer, by name."""
    rows = (shape.heads + 2 * shape.kept) * shape.size
    return {
        "qkv": (rows, shape.width),
        "out": (shape.width, shape.heads * shape.size),
        "gate_up": (2 * shape.hidden, shape.width),
        "down": (shape.width, shape.hidden),
    }


def normal(rng, rows, columns):
    return rng.normal(0, columns**-0.5, (rows, columns)).astype(gt.bfloat16)


def quantized(rng, form, rows, columns):
    """Return random integers, and scales of about the size of those of real weights."""
    groups = columns // 128 if form == "int4" else 1
    scales = gt.full((groups, rows), 0.1 * columns**-0.5, dtype=gt.bfloat16)
    if form == "int8":
        whole = rng.integers(-127, 128, (rows, columns), dtype=gt.int8)
        return whole, scales * (1 / 8)
    tiles = (-(-rows // 16), -(-columns // 64), 512)
    return rng.integers(0, 256, tiles, dtype=gt.uint8), scales


def random_weights(shape, form, layers):
    rng = gt.random.generator(seed=1)

    def layer():
        made = {
            name: normal(rng, *sizes) if form == "bf16" else quantized(rng, form, *sizes)
            for name, sizes in matrices(shape).items()
        }
        ones = gt.ones(shape.width, dtype=gt.bfloat16)
        return made | {"norm1": ones, "norm2": gt.copy(ones)}

    return {
        "embed": normal(rng, shape.vocabulary, shape.width),
        "layers": [layer() for _ in range(layers)],
        "norm": gt.ones(shape.width, dtype=gt.bfloat16),
        "head": normal(rng, shape.vocabulary, shape.width),
    }


def nbytes(tree):
    if isinstance(tree, dict):
        return sum(map(nbytes, tree.values()))
    return sum(map(nbytes, tree)) if isinstance(tree, (list, tuple)) else tree.nbytes


@contextlib.contextmanager
def steps_of(joined):
    """Restrict the pass to comma-separated steps, `all` or `none`, within a `with` block."""
    kept = dict(join.STEPS)
    names = {"all": list(kept), "none": []}.get(joined, joined.split(","))
    if unknown := set(names) - set(kept):
        raise SystemExit(f"--joined: got {sorted(unknown)}; expected {', '.join(kept)}")
    for name in set(kept) - set(names):
        del join.STEPS[name]
    try:
        yield
    finally:
        join.STEPS.clear()
        join.STEPS.update(kept)


def compiled(shape, weights, prompt, length):
    prefill, decode = layers_of(shape)
    cache = [gt.spec((shape.kept, length, shape.size), gt.bfloat16)] * len(weights["layers"])
    return gt.compile(
        {
            "prefill": (prefill, gt.spec((prompt,), gt.int64)),
            "decode": (decode, gt.spec((1,), gt.int64)),
        },
        weights=weights,
        state={"k": cache, "v": cache, "length": gt.spec((1,), gt.int32)},
    )


# ---- the same in torch


def torch_tree(tree, torch):
    if isinstance(tree, dict):
        return {name: torch_tree(one, torch) for name, one in tree.items()}
    if isinstance(tree, list):
        return [torch_tree(one, torch) for one in tree]
    return torch.from_dlpack(tree)


def torch_model(shape, weights, torch, start):
    """Return a function of tokens whose cache always holds `start` tokens."""
    from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

    def turned(x, sin, cos):
        low, high = x.chunk(2, -1)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)

    def forward(tokens, caches):
        n, half = tokens.shape[0], shape.size // 2
        x, at = weights["embed"][tokens], torch.arange(start, start + n, device="cuda")
        speeds = 10000 ** (-torch.arange(half, device="cuda") / half)
        angles = at[:, None] * speeds
        sin, cos = angles.sin().bfloat16(), angles.cos().bfloat16()
        turned_heads = shape.heads + shape.kept
        for w, (k, v) in zip(weights["layers"], caches, strict=True):
            rows = linear(rms_norm(x, (shape.width,), w["norm1"], 1e-5), w["qkv"])
            rows = rows.view(n, -1, shape.size).transpose(0, 1)
            qk = turned(rows[:turned_heads], sin, cos)
            k[:, start : start + n] = qk[shape.heads :]
            v[:, start : start + n] = rows[turned_heads:]
            a = scaled_dot_product_attention(
                qk[None, : shape.heads], k[None, :, : start + n], v[None, :, : start + n],
                is_causal=n > 1, enable_gqa=True,
            )  # fmt: skip
            x = x + linear(a[0].transpose(0, 1).reshape(n, -1), w["out"])
            rows = rms_norm(x, (shape.width,), w["norm2"], 1e-5)
            gate, up = linear(rows, w["gate_up"]).chunk(2, -1)
            x = x + linear(silu(gate) * up, w["down"])
        x = rms_norm(x[-1:], (shape.width,), weights["norm"], 1e-5)
        return linear(x, weights["head"]).argmax(-1)

    return forward


def torch_graph(function, torch):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        graph.result = function()
    return graph


def torch_sides(shape, weights, arguments, torch):
    """Return graphs by name, for one token and for a prompt."""
    theirs = torch_tree(weights, torch)
    count = len(theirs["layers"])
    caches = [
        [torch.zeros(shape.kept, LENGTH, shape.size, device="cuda", dtype=torch.bfloat16)
         for _ in "kv"] for _ in range(count)
    ]  # fmt: skip
    found = {}
    for what, start, n in (("token", arguments.held, 1), ("prompt", 0, arguments.prompt)):
        model = torch_model(shape, theirs, torch, start)
        tokens = torch.ones(n, device="cuda", dtype=torch.int64)
        forms = {"graph": model}
        if "compile" in arguments.peers:
            forms["compile"] = torch.compile(model, dynamic=False)
        for name, form in forms.items():
            if name in arguments.peers:
                graph = torch_graph(lambda form=form, x=tokens: form(x, caches), torch)
                found[f"{name} {what}"] = graph
    return found


# ---- times


def copy_rate():
    """Return the bytes that a copy of 2 GiB reads and writes in a second."""
    source = gt.ones(COPIED)
    target = gt.empty_like(source)
    return 2 * source.nbytes / seconds_of({"copy": lambda: target.__setitem__(..., source)})["copy"]


def seconds_of(calls, count=CALLS, rounds=ROUNDS):
    """Return median seconds of a call of each side; runs of calls alternate."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            synchronize()
            start = time.perf_counter_ns()
            for _ in range(count):
                call()
            synchronize()
            times[name].append((time.perf_counter_ns() - start) / count / 1e9)
    return {name: statistics.median(found) for name, found in times.items()}


def host_seconds(call, rounds=15):
    """Return the median seconds that the host needs to queue one call on an idle GPU."""
    times = []
    for _ in range(rounds):
        synchronize()
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e9)
    synchronize()
    return statistics.median(times)


def synchronize():
    """Wait for all work on the GPU, from either library."""
    gt.synchronize()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.synchronize()


class Asked(NamedTuple):
    peers: tuple
    held: int
    prompt: int
    joined: tuple


def measure(report, name, form, layers, rate, asked):
    shape = SHAPES[name]
    weights = random_weights(shape, form, layers)
    programs = {}
    for joined in asked.joined:
        with steps_of(joined):
            programs[joined] = compiled(shape, weights, asked.prompt, max(LENGTH, asked.prompt))
    program = programs[asked.joined[-1]]
    session = program.session()
    state = session.state["length"]
    tokens = gt.ones(asked.prompt, dtype=gt.int64)
    token = session.prefill(tokens)

    def decode():
        nonlocal token
        token = session.decode(token)

    def prompt():
        state[...] = 0
        session.prefill(tokens)

    graphs = {}
    if form == "bf16" and asked.peers:
        import torch

        graphs = torch_sides(shape, weights, asked, torch)
    state[...] = asked.held
    calls = {"ours": decode} | {
        key: graph.replay for key, graph in graphs.items() if key.endswith("token")
    }
    others = {}
    for joined in asked.joined[:-1]:
        others[joined] = programs[joined].session()
        others[joined].state["length"][...] = asked.held
        calls[f"ours:{joined}"] = functools.partial(others[joined].decode, tokens[:1])
    found = seconds_of(calls)
    cache = 2 * layers * shape.kept * shape.size * asked.held * 2
    read = nbytes(weights) - weights["embed"].nbytes + cache
    row = {"model": name, "layers": layers, "form": form}
    for side, seconds in found.items():
        extra = {"host us": host_seconds(decode) * 1e6} if side == "ours" else {}
        report.add(
            **row, what="token", side=side.split()[0], us=seconds * 1e6, **extra,
            share=read / seconds / rate,
        )  # fmt: skip
    if form == "bf16":
        calls = {"ours": prompt} | {
            key: graph.replay for key, graph in graphs.items() if key.endswith("prompt")
        }
        found = seconds_of(calls, count=3)
        products = sum(rows * columns for rows, columns in matrices(shape).values()) * layers
        pairs = asked.prompt * (asked.prompt + 1) / 2
        operations = 2 * asked.prompt * products + 2 * shape.vocabulary * shape.width
        operations += 4 * pairs * shape.heads * shape.size * layers
        for side, seconds in found.items():
            report.add(
                **row, what=f"prompt of {asked.prompt}", side=side.split()[0], us=seconds * 1e6,
                tflops=operations / seconds / 1e12,
            )  # fmt: skip
    for joined, one in programs.items():
        graph = one.report()["decode"]["sizes"][-1]
        report.facts[f"graph of {name} {form} joined {joined}"] = graph
    for one in (session, *others.values(), *programs.values()):
        one.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=("llama-8b", "llama-1b"))
    parser.add_argument("--forms", nargs="+", default=("bf16", "int8", "int4"))
    parser.add_argument(
        "--layers", type=int, nargs="+", help="layer counts to measure; default: all layers"
    )
    parser.add_argument(
        "--peers", nargs="*", default=("graph",), help="peers to measure: graph, compile"
    )
    parser.add_argument(
        "--joined",
        nargs="+",
        default=("all",),
        help="comma-separated steps; the last program is compared with the peers and has a prompt",
    )
    parser.add_argument("--held", type=int, default=HELD)
    parser.add_argument("--prompt", type=int, default=PROMPT)
    parser.add_argument("--name", default="models/decode", help="name of the result")
    arguments = parser.parse_args()
    require_gpu()
    report = Report(arguments.name, "Language models with random weights")
    rate = copy_rate()
    report.facts["copy rate"] = rate
    joined = tuple(arguments.joined)
    asked = Asked(tuple(arguments.peers), arguments.held, arguments.prompt, joined)
    for name in arguments.models:
        for form in arguments.forms:
            for layers in arguments.layers or [SHAPES[name].layers]:
                measure(report, name, form, layers, rate, asked)
                print(json.dumps(report.rows[-1]), flush=True)
                gt.memory.empty_cache()
    report.finish()


if __name__ == "__main__":
    main()
