"""Networks with random weights, tensor to tensor: ours beside torch's best time.

Networks of torchvision and transformers are imported by torch.export; the encoder of MiniLM's
shape, a perceptron and Whisper's decoder are written by hand in both libraries. Ours is compiled
without and with `tune`. Torch runs eagerly, as a CUDA graph, and compiled without autotuning (as a
graph too, so that it does not wait for the host); its images are channels last. The error is the
largest difference from torch in float32, relative to the largest element.

    python benchmarks/models/networks.py [--only NAME ...] [--warm] [--seconds N]

`--warm` fills the cache of torch's compiler and measures nothing.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gputensor as gt  # noqa: E402
from benchmarks.models.decode import host_seconds, seconds_of, torch_graph  # noqa: E402
from benchmarks.report import Report, require_gpu  # noqa: E402

torch = None


class Case(NamedTuple):
    """A network: torch's function, its inputs, and a function that makes our program."""

    function: object  # of tensors of torch
    inputs: tuple  # of torch, on the GPU
    program: object  # (options of gt.compile) -> (program, inputs of ours)
    wide: object  # () -> the result in float32


# ---- from torch


def exported(module, x):
    """Return the Case of a module, by torch.export."""
    images = x.ndim == 4
    with torch.no_grad():
        graph = torch.export.export(module, (x,))
    plain = x

    def program(**options):
        made = gt.from_exported(graph).compile(**{"target": "cuda", **options})
        return made, (gt.from_dlpack(plain),)

    if images:
        module = module.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    return Case(module, (x,), program, lambda: module.float()(x.float()))


def vision_module(name):
    """Return a network of torchvision for images, in float16 on the GPU."""
    import torchvision.models

    torch.manual_seed(0)
    module = getattr(torchvision.models, name)(weights=None).cuda()
    # Statistics of random images, because with those of new layers activations underflow.
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.momentum = None
    with torch.no_grad():
        module.train()(torch.randn(8, 3, 224, 224, device="cuda"))
    return module.eval().half()


def vision(name, batch):
    module = vision_module(name)
    return exported(module, torch.randn(batch, 3, 224, 224, device="cuda").half())


class First:
    """Makes a module that returns one attribute of another module's result."""

    def __new__(cls, model, name):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x):
                return getattr(self.model(x), name)

        return Module()


def vit(batch):
    import transformers

    torch.manual_seed(0)
    config = transformers.ViTConfig(num_labels=1000, attn_implementation="sdpa")
    module = First(transformers.ViTForImageClassification(config), "logits").eval().cuda()
    return exported(module.half(), torch.randn(batch, 3, 224, 224, device="cuda").half())


WIDTH, HEADS, LAYERS, HEARD = 768, 12, 12, 1500  # of Whisper small
TUNE_SECONDS = 10


def whisper_encoder(batch):
    import transformers

    torch.manual_seed(0)
    config = transformers.WhisperConfig(
        d_model=WIDTH, encoder_layers=LAYERS, encoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * WIDTH, decoder_layers=1, attn_implementation="sdpa",
    )  # fmt: skip
    whole = transformers.WhisperModel(config).get_encoder()
    module = First(whole, "last_hidden_state").eval().cuda().half()
    return exported(module, torch.randn(batch, 80, 2 * HEARD, device="cuda").half())


# ---- by hand


def shared(tree):
    """Return torch's tensors as ours, in the same memory."""
    if isinstance(tree, dict):
        return {name: shared(one) for name, one in tree.items()}
    return [shared(one) for one in tree] if isinstance(tree, list) else gt.from_dlpack(tree)


def widened(tree):
    if isinstance(tree, dict):
        return {name: widened(one) for name, one in tree.items()}
    return [widened(one) for one in tree] if isinstance(tree, list) else tree.float()


def by_hand(function, ours, weights, inputs):
    def program(**options):
        given = tuple(map(gt.from_dlpack, inputs))
        specs = [gt.spec(one.shape, one.dtype) for one in given]
        return gt.compile(ours, *specs, weights=shared(weights), **options), given

    floats = tuple(one.float() if one.is_floating_point() else one for one in inputs)
    return Case(
        lambda *x: function(*x, weights), inputs, program,
        lambda: function(*floats, widened(weights)),
    )  # fmt: skip


def drawn(dtype, *shape):
    return (torch.randn(shape, device="cuda") * shape[-1] ** -0.5).to(dtype)


def perceptron(batch):
    def function(x, weights):
        x = torch.relu(torch.nn.functional.linear(x, weights["a"], weights["b"]))
        return torch.softmax(torch.nn.functional.linear(x, weights["c"], weights["d"]), -1)

    def ours(x, *, weights):
        x = gt.linear(x, weights["a"], weights["b"], activation="relu")
        return gt.softmax(gt.linear(x, weights["c"], weights["d"]))

    half = torch.float16
    weights = {"a": drawn(half, 512, 784), "b": drawn(half, 512), "c": drawn(half, 10, 512)}
    weights["d"] = drawn(half, 10)
    return by_hand(function, ours, weights, (drawn(half, batch, 784),))


def encoder(batch, length):
    import programs

    torch.manual_seed(0)
    size, up = programs.HIDDEN, programs.UP
    shapes = {"qkv": (size, 3 * size), "out": (size, size), "up": (up, size), "down": (size, up)}
    weights = [
        {name: drawn(torch.bfloat16, *shape) for name, shape in shapes.items()}
        | {f"norm{i}": torch.ones(size, device="cuda", dtype=torch.bfloat16) for i in (1, 2)}
        for _ in range(programs.LAYERS)
    ]
    x = torch.randn(batch, length, size, device="cuda").bfloat16()
    return by_hand(programs.torch_encoder, programs.encoder, weights, (x,))


def whisper_decoder(batch):
    """Return the Case of one step, with 64 cached tokens and the sound's keys and values."""
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

    held, size = 64, WIDTH // HEADS
    half = torch.float16

    def layer():
        made = {name: drawn(half, WIDTH, WIDTH) for name in ("out", "cross", "cross_out")}
        made |= {"qkv": drawn(half, 3 * WIDTH, WIDTH), "up": drawn(half, 4 * WIDTH, WIDTH)}
        made["down"] = drawn(half, WIDTH, 4 * WIDTH)
        made |= {f"norm{i}": torch.ones(WIDTH, device="cuda", dtype=half) for i in range(3)}
        made |= {f"cross_{x}": drawn(half, HEADS, HEARD, size) for x in "kv"}
        return made | {f"held_{x}": drawn(half, HEADS, held, size) for x in "kv"}

    weights = {"layers": [layer() for _ in range(LAYERS)], "head": drawn(half, 51865, WIDTH)}
    weights["norm"] = torch.ones(WIDTH, device="cuda", dtype=half)

    def function(x, weights):
        for w in weights["layers"]:
            rows = linear(layer_norm(x, (WIDTH,), w["norm0"]), w["qkv"])
            q, k, v = rows.view(batch, 3, HEADS, 1, size).unbind(1)
            k = torch.cat([w["held_k"].expand(batch, -1, -1, -1), k], 2)
            v = torch.cat([w["held_v"].expand(batch, -1, -1, -1), v], 2)
            a = scaled_dot_product_attention(q, k, v).reshape(batch, WIDTH)
            x = x + linear(a, w["out"])
            q = linear(layer_norm(x, (WIDTH,), w["norm1"]), w["cross"])
            keys, values = (w[f"cross_{i}"].expand(batch, -1, -1, -1) for i in "kv")
            a = scaled_dot_product_attention(q.view(batch, HEADS, 1, size), keys, values)
            x = x + linear(a.reshape(batch, WIDTH), w["cross_out"])
            h = gelu(linear(layer_norm(x, (WIDTH,), w["norm2"]), w["up"]))
            x = x + linear(h, w["down"])
        return linear(layer_norm(x, (WIDTH,), weights["norm"]), weights["head"])

    def ours(x, *, weights):
        def spread(part):
            return gt.broadcast_to(part, (batch, *part.shape))

        for w in weights["layers"]:
            rows = gt.linear(gt.layer_norm(x, w["norm0"]), w["qkv"])
            q, k, v = (rows[:, i * WIDTH : (i + 1) * WIDTH] for i in range(3))
            q, k, v = (gt.reshape(one, (batch, HEADS, 1, size)) for one in (q, k, v))
            k, v = gt.concat([spread(w["held_k"]), k], 2), gt.concat([spread(w["held_v"]), v], 2)
            a = gt.reshape(gt.scaled_dot_product_attention(q, k, v), (batch, WIDTH))
            x = gt.linear(a, w["out"], residual=x)
            q = gt.reshape(gt.linear(gt.layer_norm(x, w["norm1"]), w["cross"]), q.shape)
            a = gt.scaled_dot_product_attention(q, spread(w["cross_k"]), spread(w["cross_v"]))
            x = gt.linear(gt.reshape(a, (batch, WIDTH)), w["cross_out"], residual=x)
            h = gt.linear(gt.layer_norm(x, w["norm2"]), w["up"], activation="gelu")
            x = gt.linear(h, w["down"], residual=x)
        return gt.linear(gt.layer_norm(x, weights["norm"]), weights["head"])

    return by_hand(function, ours, weights, (drawn(half, batch, WIDTH),))


CASES = {
    "mobilenet_v2 1": lambda: vision("mobilenet_v2", 1),
    "mobilenet_v2 32": lambda: vision("mobilenet_v2", 32),
    "resnet50 1": lambda: vision("resnet50", 1),
    "resnet50 32": lambda: vision("resnet50", 32),
    "perceptron 1": lambda: perceptron(1),
    "encoder 1x128": lambda: encoder(1, 128),
    "encoder 32x128": lambda: encoder(32, 128),
    "encoder 8x512": lambda: encoder(8, 512),
    "vit_b_16 1": lambda: vit(1),
    "vit_b_16 32": lambda: vit(32),
    "whisper encoder 1": lambda: whisper_encoder(1),
    "whisper step 1": lambda: whisper_decoder(1),
}


# ---- measuring


def captured(call):
    return torch_graph(call, torch).replay


def sides_of(case):
    """Return torch's calls by name."""
    compiled = torch.compile(case.function, dynamic=False)

    def eager():
        with torch.no_grad():
            return case.function(*case.inputs)

    found = {"eager": eager, "graph": captured(eager)}
    found["compile"] = captured(lambda: compiled(*case.inputs))
    return found


def measure(report, name):
    case = CASES[name]()
    program, given = case.program()
    tuned, _ = case.program(target=["native"], tune=TUNE_SECONDS)
    sides = sides_of(case)
    calls = {"ours": lambda: program(*given), "tuned": lambda: tuned(*given), **sides}
    eager = seconds_of({"eager": sides["eager"]}, count=5, rounds=3)["eager"]
    del calls["eager"]
    count = max(4, min(100, int(0.02 / eager)))
    found = {"eager": eager} | seconds_of(calls, count=count)
    best = min(seconds for side, seconds in found.items() if side not in ("ours", "tuned"))
    host = host_seconds(lambda: program(*given))
    ours = torch.from_dlpack(program(*given)).float()
    with torch.no_grad():
        wide = case.wide()
    error = (ours - wide).abs().max() / wide.abs().max()
    (facts,) = [one["sizes"][0] for one in program.report().values()]
    report.add(
        network=name, **{f"{side} ms": seconds * 1e3 for side, seconds in found.items()},
        ratio=found["ours"] / best, **{"tuned ratio": found["tuned"] / best},
        **{"host us": host * 1e6}, error=f"{error.item():.1e}",
    )  # fmt: skip
    report.facts[name] = facts.get("graph")
    print(json.dumps(report.rows[-1]), flush=True)


def main():
    global torch
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(CASES), help="names of networks")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--name", default="models/networks", help="name of the result")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="start no network after this time"
    )
    arguments = parser.parse_args()
    require_gpu()
    import torch

    report = Report(arguments.name, "Networks, tensor to tensor")
    begun = time.monotonic()
    for name in arguments.only:
        start = time.monotonic()
        if start - begun > arguments.seconds:
            break
        try:
            if arguments.warm:
                case = CASES[name]()
                with torch.no_grad():
                    torch.compile(case.function, dynamic=False)(*case.inputs)
            else:
                measure(report, name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}"[:400], flush=True)
            report.facts[f"{name} failed"] = type(error).__name__
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    if not arguments.warm:
        report.finish()


if __name__ == "__main__":
    main()
