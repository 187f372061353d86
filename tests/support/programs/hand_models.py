"""Models written with the library's functions, for tests and measurements of programs.

Each is a `Model`: functions with their specs, weights and state, and the arguments of calls.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gputensor as gt


class Model(NamedTuple):
    """`functions` is the argument of compile; `calls` are (function, arguments), in order."""

    functions: dict
    weights: Any
    state: Any
    calls: list


def random_tensor(numbers, *shape, dtype="float32"):
    return gt.asarray(numbers.normal(size=shape) / shape[-1] ** 0.5, dtype=dtype)


def mlp(seed=0, dtype="float32"):
    """Return a perceptron with layers of 784, 64, 64 and 10 units, and any batch size."""
    numbers = np.random.default_rng(seed)

    def new(*shape):
        return random_tensor(numbers, *shape, dtype=dtype)

    weights = {
        "hidden": [(new(64, 784), new(64)), (new(64, 64), new(64))],
        "last": (new(10, 64), new(10)),
    }

    def model(x, *, weights):
        for w, b in weights["hidden"]:
            x = gt.linear(x, w, b, activation="relu")
        return gt.softmax(gt.linear(x, *weights["last"]), axis=-1)

    rows = gt.spec((gt.Dim("batch", 1, 1024), 784), dtype)
    calls = [("model", (new(batch, 784),)) for batch in (32, 1, 5)]
    return Model({"model": (model, rows)}, weights, None, calls)


def plate_step(u):
    new, c = gt.copy(u), u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    new[1:-1, 1:-1] = c + 0.2 * (around - 4 * c)
    return new


def plate(size=24):
    """Return heat diffusion on a plate until it settles, and the means of the first steps."""

    def relax(u, tolerance):
        def sweep(carry):
            new = gt.fori_loop(0, 10, lambda i, u: plate_step(u), carry[0])
            return new, gt.max(gt.abs(new - carry[0]))

        return gt.while_loop(lambda c: c[1] > tolerance, sweep, (u, gt.full((), gt.inf)))

    def means(u):
        return gt.scan(lambda u, _: (plate_step(u), gt.mean(u)), u, None, length=7)

    u = gt.zeros((size, size))
    u[0] = 1
    spec = gt.spec((size, size))
    functions = {"relax": (relax, spec, gt.spec(())), "means": (means, spec)}
    return Model(functions, None, None, [("relax", (u, gt.asarray(1e-2))), ("means", (u,))])


def encoder(seed=0, layers=3, width=64, dtype="float32"):
    """Return a sentence encoder like MiniLM: token embeddings, post-norm layers, masked mean."""
    numbers, heads = np.random.default_rng(seed), 4

    def new(*shape):
        return random_tensor(numbers, *shape, dtype=dtype)

    def norm():
        return gt.ones(width, dtype=dtype), gt.zeros(width, dtype=dtype)

    def dense(rows, columns):
        return new(rows, columns), new(rows)

    weights = {
        "tokens": new(50, width),
        "places": new(32, width),
        "norm": norm(),
        "layers": [
            {
                "qkv": dense(3 * width, width),
                "out": dense(width, width),
                "norm1": norm(),
                "up": dense(4 * width, width),
                "down": dense(width, 4 * width),
                "norm2": norm(),
            }
            for _layer in range(layers)
        ],
    }

    def model(tokens, mask, *, weights):
        batch, length = tokens.shape
        x = gt.take(weights["tokens"], tokens, axis=0) + weights["places"][:length]
        x = gt.layer_norm(x, *weights["norm"])
        seen = mask[:, None, None, :]
        for w in weights["layers"]:
            qkv = gt.reshape(gt.linear(x, *w["qkv"]), (batch, length, 3, heads, -1))
            q, k, v = gt.moveaxis(gt.moveaxis(qkv, 2, 0), 3, 2)
            a = gt.scaled_dot_product_attention(q, k, v, seen)
            a = gt.reshape(gt.moveaxis(a, 1, 2), (batch, length, width))
            x = gt.layer_norm(gt.linear(a, *w["out"], residual=x), *w["norm1"])
            h = gt.linear(x, *w["up"], activation="gelu")
            x = gt.layer_norm(gt.linear(h, *w["down"], residual=x), *w["norm2"])
        weight = gt.astype(mask, x.dtype)[:, :, None]
        return gt.sum(x * weight, axis=1) / gt.sum(weight, axis=1)

    batch, length = gt.Dim("batch", 1, 32), gt.Dim("length", 2, 32)
    specs = gt.spec((batch, length), gt.int64), gt.spec((batch, length), gt.bool)
    calls = []
    for rows, columns in ((2, 7), (5, 32)):
        tokens = gt.asarray(numbers.integers(0, 50, (rows, columns)))
        mask = gt.asarray(numbers.integers(0, 2, (rows, columns)) > 0)
        mask[:, 0] = True
        calls.append(("model", (tokens, mask)))
    return Model({"model": (model, *specs)}, weights, None, calls)


def llama(dtype="float32"):
    """Return examples/llama.py: a prompt, then tokens one by one."""
    path = Path(__file__).parents[3] / "examples" / "llama.py"
    spec = importlib.util.spec_from_file_location("examples_llama", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    prompt = gt.spec((gt.Dim("n", 2, example.LENGTH),), gt.int64)
    functions = {
        "prefill": (example.forward, prompt),
        "decode": (example.forward, gt.spec((1,), gt.int64)),
        "several": (example.several, gt.spec((1,), gt.int64)),
    }
    calls = [("prefill", (gt.asarray([3, 14, 15, 92, 65]),))]
    calls += [("decode", (gt.asarray([token]),)) for token in (35, 8, 97)]
    calls += [("prefill", (gt.asarray([9, 3]),)), ("decode", (gt.asarray([23]),))]
    calls += [("several", (gt.asarray([7]),))]
    return Model(functions, example.random_weights(dtype=dtype), example.state_specs(dtype), calls)


MODELS = {"mlp": mlp, "plate": plate, "encoder": encoder, "llama": llama}
