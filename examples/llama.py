"""A small language model with a cache that is written in place, as a program in one file.

    python examples/llama.py llama.gtp        trace it with random weights, save it and run it
    python examples/llama.py llama.gtp run    run the file in a process without the model

The program has three functions that share weights and state: `prefill` takes a prompt of any
length, `decode` one token; `several` makes the next AT_ONCE tokens, which on a GPU is one graph and
one launch. The state, which is the cache and its length, stays on the device.
"""

import sys

import numpy as np

import gputensor as gt

HEADS, KEPT, SIZE, HIDDEN, VOCABULARY, LENGTH, LAYERS = 4, 2, 16, 96, 100, 64, 2
AT_ONCE = 4
WIDTH = HEADS * SIZE


def heads(x, count):
    """(n, count * SIZE) -> (count, n, SIZE), a view."""
    return gt.moveaxis(gt.reshape(x, (x.shape[0], count, SIZE)), 0, 1)


def joined(x):
    """(count, n, SIZE) -> (n, count * SIZE)."""
    return gt.reshape(gt.moveaxis(x, 0, 1), (x.shape[1], -1))


def forward(tokens, *, weights, state):
    """Return the next token, int64 (1,), after `tokens`, int64 (n,), and those in the cache."""
    n, start = tokens.shape[0], state["length"]
    x = gt.take(weights["embed"], tokens, axis=0)
    at = start + gt.arange(n, dtype=gt.int32)
    for w, k, v in zip(weights["layers"], state["k"], state["v"], strict=True):
        rows = gt.rms_norm(x, w["norm1"])
        q = gt.rotary(heads(gt.linear(rows, w["q"]), HEADS), at)
        k[:, at] = gt.rotary(heads(gt.linear(rows, w["k"]), KEPT), at)
        v[:, at] = heads(gt.linear(rows, w["v"]), KEPT)
        # The last of n queries is at the last of start + n keys.
        keys = gt.arange(LENGTH, dtype=gt.int32)
        mask = keys[None, :] <= at[:, None]
        attended = gt.scaled_dot_product_attention(q, k, v, mask)
        x = gt.linear(joined(attended), w["out"], residual=x)
        rows = gt.rms_norm(x, w["norm2"])
        gate = gt.silu(gt.linear(rows, w["gate"])) * gt.linear(rows, w["up"])
        x = gt.linear(gate, w["down"], residual=x)
    start += n
    logits = gt.linear(gt.rms_norm(x[-1:], weights["norm"]), weights["head"])
    return gt.argmax(logits, axis=-1)


def several(token, *, weights, state):
    """Return the next AT_ONCE tokens, int64 (AT_ONCE,); tracing unrolls the loop."""
    tokens = [token]
    for _ in range(AT_ONCE):
        tokens.append(forward(tokens[-1], weights=weights, state=state))
    return gt.concat(tokens[1:])


def random_weights(seed=0, dtype=gt.float32):
    """Return weights of the model's shapes, on the current device."""
    numbers = np.random.default_rng(seed)

    def new(*shape):
        return gt.asarray(numbers.normal(size=shape) / shape[-1] ** 0.5, dtype=dtype)

    def layer():
        return {
            "norm1": gt.ones(WIDTH, dtype=dtype),
            "norm2": gt.ones(WIDTH, dtype=dtype),
            "q": new(WIDTH, WIDTH),
            "k": new(KEPT * SIZE, WIDTH),
            "v": new(KEPT * SIZE, WIDTH),
            "out": new(WIDTH, WIDTH),
            "gate": new(HIDDEN, WIDTH),
            "up": new(HIDDEN, WIDTH),
            "down": new(WIDTH, HIDDEN),
        }

    return {
        "embed": new(VOCABULARY, WIDTH),
        "layers": [layer() for _layer in range(LAYERS)],
        "norm": gt.ones(WIDTH, dtype=dtype),
        "head": new(VOCABULARY, WIDTH),
    }


def state_specs(dtype=gt.float32):
    cache = [gt.spec((KEPT, LENGTH, SIZE), dtype)] * LAYERS
    return {"k": cache, "v": cache, "length": gt.spec((1,), gt.int32)}


def compiled(weights, target=None):
    prompt = gt.spec((gt.Dim("n", 2, LENGTH),), gt.int64)
    token = gt.spec((1,), gt.int64)
    functions = {"prefill": (forward, prompt), "decode": (forward, token)}
    functions["several"] = (several, token)
    return gt.compile(functions, weights=weights, state=state_specs(), target=target)


def generate(session, prompt, count):
    """Return `count` tokens after the prompt; the host does not wait between them."""
    tokens = session.prefill(prompt)
    while len(tokens) < count:
        following = session.several if count - len(tokens) >= AT_ONCE else session.decode
        tokens = gt.concat([tokens, following(tokens[-1:])])
    return tokens.tolist()


def main(path, what="compile"):
    if what == "compile":
        program = compiled(random_weights())
        program.save(path)
    else:
        program = gt.load_program(path)
    with program.session() as session:
        print(generate(session, gt.asarray([3, 14, 15, 92]), 12))


if __name__ == "__main__":
    main(*sys.argv[1:])
