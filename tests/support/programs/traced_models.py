"""Models as functions of tensors, traced at their real sizes without allocating memory."""

import gputensor as gt
from gputensor.programs.compile import trace

HALF = gt.bfloat16


def heads(x, count):
    return gt.moveaxis(gt.reshape(x, (x.shape[0], count, -1)), 0, 1)


def joined(x):
    return gt.reshape(gt.moveaxis(x, 0, 1), (x.shape[1], -1))


def linear_of(inner, outer):
    return gt.spec((outer, inner), HALF)


def mlp(x, *, weights):
    for w in weights["hidden"]:
        x = gt.maximum(gt.linear(x, w), 0)
    return gt.softmax(gt.linear(x, weights["last"]))


def heat(u):
    for _step in range(10):
        new, c = gt.copy(u), u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new[1:-1, 1:-1] = c + 0.2 * (around - 4 * c)
        u = new
    return u


def attend(x, w, count, memory=None):
    memory = x if memory is None else memory
    q, k, v = (gt.linear(y, w[name]) for y, name in ((x, "q"), (memory, "k"), (memory, "v")))
    a = gt.scaled_dot_product_attention(heads(q, count), heads(k, count), heads(v, count))
    return gt.linear(joined(a), w["o"])


def plain_attend(x, w, count):
    """Attention by products and a softmax, as exporters write it."""
    q, k, v = (heads(gt.linear(x, w[name]), count) for name in "qkv")
    scores = q @ gt.moveaxis(k, 1, 2) * (1 / 8)
    return gt.linear(joined(gt.softmax(scores) @ v), w["o"])


def feed(x, w):
    return gt.linear(gt.gelu(gt.linear(x, w["up"])), w["down"])


def encoder(x, *, weights):
    for w in weights:
        x = gt.layer_norm(x + plain_attend(x, w, 12))
        x = gt.layer_norm(x + feed(x, w))
    return gt.mean(x, axis=0)


def vision(x, *, weights):
    for w in weights:
        x = x + attend(gt.layer_norm(x), w, 16)
        x = x + feed(gt.layer_norm(x), w)
    return x[0]


def decoder(x, memory, *, weights):
    for w in weights:
        x = x + plain_attend(gt.layer_norm(x), w, 8)
        x = x + attend(gt.layer_norm(x), w, 8, memory)
        x = x + feed(gt.layer_norm(x), w)
    return x


def block_of(width, inner):
    return {
        **{name: linear_of(width, width) for name in "qkvo"},
        "up": linear_of(width, inner),
        "down": linear_of(inner, width),
    }


H, KV, D, F, LENGTH = 32, 8, 128, 14336, 4096


def llama(tokens, *, weights, state):
    n, start = tokens.shape[0], state["length"]
    x, at = gt.take(weights["embed"], tokens, axis=0), start + gt.arange(n, dtype=gt.int32)
    for w, k, v in zip(weights["layers"], state["k"], state["v"], strict=True):
        qkv = heads(gt.linear(gt.rms_norm(x, w["norm1"]), w["qkv"]), H + 2 * KV)
        k[:, at], v[:, at] = qkv[H : H + KV], qkv[H + KV :]
        a = gt.scaled_dot_product_attention(qkv[:H], k, v)
        x = x + gt.linear(joined(a), w["out"])
        gate, up = gt.split(gt.linear(gt.rms_norm(x, w["norm2"]), w["gate_up"]), 2, axis=1)
        x = x + gt.linear(gt.silu(gate) * up, w["down"])
    start += n
    return gt.linear(gt.rms_norm(x[-1:], weights["norm"]), weights["head"])


def llama_of(layers):
    layer = {
        "norm1": gt.spec((H * D,), HALF), "qkv": linear_of(H * D, (H + 2 * KV) * D),
        "out": linear_of(H * D, H * D), "norm2": gt.spec((H * D,), HALF),
        "gate_up": linear_of(H * D, 2 * F), "down": linear_of(F, H * D),
    }  # fmt: skip
    embed = gt.spec((32000, H * D), HALF)
    norm = gt.spec((H * D,), HALF)
    weights = {"embed": embed, "layers": [layer] * layers, "norm": norm, "head": embed}
    cache = [gt.spec((KV, LENGTH, D), HALF)] * layers
    return weights, {"k": cache, "v": cache, "length": gt.spec((1,), gt.int32)}


def dense(x, *, weights):
    """Apply layers that each read all earlier results."""
    parts = [x]
    for w in weights:
        parts.append(gt.maximum(gt.linear(gt.concat(parts, axis=1), w), 0))
    return gt.concat(parts, axis=1)


def recurrent(xs, *, weights):
    def cell(carry, x):
        h, c = carry
        i, f, g, o = gt.split(gt.linear(x, weights["x"]) + gt.linear(h, weights["h"]), 4, axis=1)
        c = gt.sigmoid(f) * c + gt.sigmoid(i) * gt.tanh(g)
        h = gt.sigmoid(o) * gt.tanh(c)
        return (h, c), h

    zero = gt.zeros((xs.shape[1], 512), dtype=HALF)
    return gt.scan(cell, (zero, zero), xs)


def conjugate_gradients(a, b):
    def step(_index, carry):
        x, r, p, rr = carry
        q = a @ p
        alpha = rr / gt.sum(p * q)
        x, r = x + alpha * p, r - alpha * q
        new = gt.sum(r * r)
        return x, r, r + new / rr * p, new

    return gt.fori_loop(0, 50, step, (gt.zeros_like(b), b, b, gt.sum(b * b)))[0]


def pyramid(x):
    """Halve the image four times and enlarge it again, adding the images of the way down."""
    skips = []
    for _level in range(4):
        x = gt.tanh(x) * 0.5 + x
        skips.append(x)
        x = (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2]) / 4
    for skip in reversed(skips):
        wide = gt.empty(skip.shape, dtype=x.dtype)
        for row in (0, 1):
            for column in (0, 1):
                wide[row::2, column::2] = x
        x = gt.tanh(wide + skip)
    return x


def traced_models():
    """Return (name, Function, sizes) for each function of ten models."""
    n = gt.Dim("n", 2, 1024)
    layers, state = llama_of(4)
    tall = {"x": linear_of(300, 2048), "h": linear_of(512, 2048)}
    rows = [
        ("mlp", mlp, [gt.spec((n, 784), HALF)], {"n": 500},
         {"hidden": [linear_of(784, 2048), linear_of(2048, 512)], "last": linear_of(512, 10)}),
        ("heat", heat, [gt.spec((1024, 1024))], {}, None),
        ("encoder", encoder, [gt.spec((n, 384), HALF)], {"n": 128}, [block_of(384, 1536)] * 6),
        ("vision", vision, [gt.spec((197, 1024), HALF)], {}, [block_of(1024, 4096)] * 6),
        ("decoder", decoder, [gt.spec((64, 512), HALF), gt.spec((1500, 512), HALF)], {},
         [block_of(512, 2048)] * 4),
        ("prefill", llama, [gt.spec((n,), gt.int64)], {"n": 700}, layers),
        ("decode", llama, [gt.spec((1,), gt.int64)], {}, layers),
        ("dense", dense, [gt.spec((n, 256), HALF)], {"n": 96},
         [linear_of(256 + 64 * i, 64) for i in range(12)]),
        ("recurrent", recurrent, [gt.spec((40, 64, 300), HALF)], {}, tall),
        ("gradients", conjugate_gradients, [gt.spec((2048, 2048)), gt.spec((2048,))], {}, None),
        ("pyramid", pyramid, [gt.spec((2048, 1536))], {}, None),
    ]  # fmt: skip
    found = []
    for name, function, specs, sizes, weights in rows:
        held = {"state": state} if function is llama else {}
        found.append((name, trace(function, *specs, weights=weights, target="host", **held), sizes))
    return found
