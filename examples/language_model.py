"""A language model that writes text: int4 weights, a cache and sampling that stay on the device.

    python examples/language_model.py --prompt="The with statement"

The model, examples/models/language.safetensors, has Llama's form and 0.7 million weights;
examples/models/train_language.py trained it on the documentation that ships with Python. The first
run compiles the program, out/language.gtp, with int4 weights. Each later run loads it and then
needs only the loop in `stream` from this file. Options: see --help.

The program has three functions that share weights and state: `prefill` takes a prompt and `decode`
a token; both return the next token, chosen on the device, so that the device need not wait between
tokens. `score` returns the mean loss of a text.
"""

import argparse
import json
import pydoc_data.topics
import re
import sys
from pathlib import Path

import numpy as np

import gputensor as gt

WEIGHTS = Path(__file__).parent / "models" / "language.safetensors"
HEADS, KEPT, SIZE, HIDDEN, LENGTH = 4, 2, 32, 256, 160
BEST = 64  # the next token is one of the best 64

# ---- the model


def heads(x, count):
    """(n, count * SIZE) -> (count, n, SIZE), a view."""
    return gt.moveaxis(gt.reshape(x, (x.shape[0], count, SIZE)), 0, 1)


def joined(x):
    """(count, n, SIZE) -> (n, count * SIZE)."""
    return gt.reshape(gt.moveaxis(x, 0, 1), (x.shape[1], -1))


def forward(tokens, weights, state):
    """Return the features after each of `tokens`, int64 (n,), which follow those in the cache."""
    n, start = tokens.shape[0], state["length"]
    x, at = gt.take(weights["embed"], tokens, axis=0), start + gt.arange(n, dtype=gt.int32)
    for w, k, v in zip(weights["layers"], state["k"], state["v"], strict=True):
        rows = gt.linear(gt.rms_norm(x, w["norm1"]), w["qkv"])
        q, new_k, new_v = gt.split(rows, [HEADS * SIZE, (HEADS + KEPT) * SIZE], axis=1)
        k[:, at], v[:, at] = gt.rotary(heads(new_k, KEPT), at), heads(new_v, KEPT)
        q = gt.rotary(heads(q, HEADS), at)
        a = gt.scaled_dot_product_attention(q, k, v, is_causal=True, kv_length=start + n)
        x = gt.linear(joined(a), w["out"], residual=x)
        gate, up = gt.split(gt.linear(gt.rms_norm(x, w["norm2"]), w["gate_up"]), 2, axis=1)
        x = gt.linear(gt.silu(gate) * up, w["down"], residual=x)
    start += n
    return gt.rms_norm(x, weights["norm"])


def chosen(x, how, weights, state):
    """Choose the next token, int64 (1,), from x (1, width) and `how`: temperature, top_k, top_p.

    It is drawn from those of the BEST tokens that are among the first top_k and whose predecessors
    have less than top_p of the probability; temperature 0 takes the first one.
    """
    logits = gt.astype(gt.linear(x, weights["head"])[0], gt.float32)
    best, index = gt.topk(logits, BEST)
    scaled = best / gt.maximum(how[0], 1e-3)
    shares = gt.exp(scaled - gt.logsumexp(logits / gt.maximum(how[0], 1e-3)))
    before = gt.cumsum(shares) - shares
    rank = gt.arange(BEST, dtype=gt.float32)
    is_kept = (rank == 0) | ((rank < how[1]) & (before < how[2]) & (how[0] > 0))
    scaled = gt.where(is_kept, scaled, -gt.inf)
    return index[gt.random.categorical(state["random"], scaled, shape=(1,))]


def prefill(tokens, how, *, weights, state):
    return chosen(forward(tokens, weights, state)[-1:], how, weights, state)


def decode(token, how, *, weights, state):
    return chosen(forward(token, weights, state), how, weights, state)


def score(tokens, *, weights, state):
    """Return the mean loss of each token after those before it; the cache is empty afterwards."""
    state["length"][...] = 0
    logits = gt.linear(forward(tokens, weights, state)[:-1], weights["head"])
    loss = gt.cross_entropy(gt.astype(logits, gt.float32), tokens[1:])
    state["length"][...] = 0
    return loss


def compiled(quantize=None, target=None, seen=()):
    """Return the program; `quantize` is a scheme of docs/quantized.md, for all layers.

    `seen` are texts to calibrate the quantization, each at most LENGTH token numbers.
    """
    weights = gt.map_safetensors(WEIGHTS)
    del weights["tokens"]
    cache = [gt.spec((KEPT, LENGTH, SIZE), gt.bfloat16)] * len(weights["layers"])
    state = {"k": cache, "v": cache, "length": gt.spec((1,), gt.int32)}
    prompt, how = gt.spec((gt.Dim("n", 2, LENGTH),), gt.int64), gt.spec((3,), gt.float32)
    functions = {
        "prefill": (prefill, prompt, how),
        "decode": (decode, gt.spec((1,), gt.int64), how),
        "score": (score, prompt),
    }
    state["random"] = gt.random.spec()
    how = {"target": target, "quantize": {"layers.*": quantize} if quantize else None}
    if quantize and len(seen):
        how["calibrate"] = {"score": [(numbers,) for numbers in seen]}
    return gt.compile(functions, weights=weights, state=state, **how)


def documentation(count):
    """Return `count` texts of LENGTH tokens, spread over the texts of the training."""
    texts = [pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics)]
    whole = "\n\n".join(text for i, text in enumerate(texts) if i % 20 != 3)
    size = len(whole) // max(1, count)
    parts = (whole[i * size : i * size + 10 * LENGTH] for i in range(count))
    return [Tokens().numbers(part)[:LENGTH] for part in parts]


# ---- text and tokens


class Tokens:
    """The model's tokens: text to numbers, and back."""

    pieces = re.compile(r" ?[A-Za-z]+|[^A-Za-z\s]|\s+")

    def __init__(self, path=WEIGHTS):
        self.texts = json.loads(bytes(gt.map_safetensors(path)["tokens"]))
        self.ranks = {text: number for number, text in enumerate(self.texts)}

    def numbers(self, text):
        """Return the numbers of a text: pairs are joined in the order of the training."""
        found = []
        for piece in self.pieces.findall(text):
            parts = [char for char in piece if char in self.ranks]
            while len(parts) > 1:
                pairs = [a + b for a, b in zip(parts, parts[1:], strict=False)]
                rank, at = min((self.ranks.get(p, len(self.ranks)), i) for i, p in enumerate(pairs))
                if rank == len(self.ranks):
                    break
                parts[at : at + 2] = [pairs[at]]
            found += [self.ranks[part] for part in parts]
        return np.array(found, np.int64)

    def text(self, numbers):
        return "".join(self.texts[number] for number in numbers)


def stream(session, prompt, count, how):
    """Yield `count` token numbers after those of the prompt, int64 on the host.

    A step is queued before the token of the previous one is read, so the device does not wait for
    the host. When the cache is full, the second half of its tokens becomes the prompt.
    """
    device = session.state["length"].device
    how = gt.asarray(how, dtype=gt.float32, device=device)
    held = list(prompt[-LENGTH + 1 :])
    while count:
        session.state["length"][...] = 0
        token = session.prefill(gt.asarray(np.array(held, np.int64), device=device), how)
        room = min(count, LENGTH - len(held))
        for left in reversed(range(room)):
            following = session.decode(token, how) if left else None
            held.append(token.item())
            yield held[-1]
            token = following
        count -= room
        held = held[-LENGTH // 2 :]


def loss_of(program, numbers):
    """Return the mean loss of numbers, in windows of the cache's length."""
    windows = [numbers[i : i + LENGTH] for i in range(0, len(numbers) - LENGTH + 1, LENGTH)]
    with program.session() as session:
        found = [session.score(gt.asarray(one, device=program.device)) for one in windows]
        return float(np.mean([loss.item() for loss in found]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--prompt", default="The with statement")
    parser.add_argument("--tokens", type=int, default=120)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--top_k", type=int, default=40)
    parser.add_argument("--top_p", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quantize", default="int4:128", help="a scheme, or none")
    parser.add_argument("--calibrate", type=int, default=0, help="number of texts for calibration")
    parser.add_argument("--program", type=Path, default=Path("out/language.gtp"))
    options = parser.parse_args()
    if not options.program.exists():
        options.program.parent.mkdir(parents=True, exist_ok=True)
        scheme = None if options.quantize == "none" else options.quantize
        with compiled(scheme, seen=documentation(options.calibrate)) as made:
            made.save(options.program)
    tokens = Tokens()
    prompt = tokens.numbers(options.prompt)
    if len(prompt) < 2:
        sys.exit("the prompt must have at least two tokens")
    how = (options.temperature, options.top_k, options.top_p)
    with gt.load_program(options.program) as program, program.session() as session:
        session.state["random"][...] = gt.random.generator(seed=options.seed)
        print(options.prompt, end="", flush=True)
        for number in stream(session, prompt, options.tokens, how):
            print(tokens.text([number]), end="", flush=True)
        print()


if __name__ == "__main__":
    main()
