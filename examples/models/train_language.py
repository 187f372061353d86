"""Trains the small language model of examples/language_model.py and writes language.safetensors.

It learns from the English texts that ship with Python: the topics of `help()` and the docstrings of
the standard library. Each twentieth topic is reserved for the score, the mean loss of a token in
nats, which is stored in the file with the seed. Needs torch (on a CPU) and safetensors; takes about
half an hour.

    python examples/models/train_language.py
"""

import ast
import collections
import json
import platform
import pydoc_data.topics
import re
import sysconfig
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

SEED, STEPS, BATCH, LENGTH, RATE, DROPPED = 7, 2000, 24, 160, 4e-3, 0.1
WIDTH, LAYERS, HEADS, KEPT, SIZE, HIDDEN, VOCABULARY = 128, 4, 4, 2, 32, 256, 512
FILE = Path(__file__).with_name("language.safetensors")
#: Pairs are joined within such pieces: a word with the space before it, a sign, white space.
PIECES = re.compile(r" ?[A-Za-z]+|[^A-Za-z\s]|\s+")
PLAIN = str.maketrans("“”‘’…–—", "\"\"''.--")


def plain(text):
    """Return a text in ASCII."""
    return text.translate(PLAIN).encode("ascii", "ignore").decode()


def topics():
    """Return the topics to learn from, and those for the score."""
    texts = [plain(pydoc_data.topics.topics[name]) for name in sorted(pydoc_data.topics.topics)]
    return [t for i, t in enumerate(texts) if i % 20 != 3], texts[3::20]


def docstrings():
    """Return the docstrings of the modules of the standard library."""
    found = []
    folder = Path(sysconfig.get_path("stdlib"))
    for path in sorted(folder.rglob("*.py")):
        if set(path.relative_to(folder).parts) & {"test", "tests", "site-packages", "lib2to3"}:
            continue
        tree = ast.parse(path.read_text("utf-8", "replace"))
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        found += [plain(ast.get_docstring(node) or "") for node in nodes]
    return [text for text in found if len(text) > 60]


def byte_pairs(texts):
    """Return the tokens as strings: characters, then repeatedly the most frequent pair."""
    counts = collections.Counter(piece for text in texts for piece in PIECES.findall(text))
    tokens = ["\n", *map(chr, range(32, 127))]
    words = {piece: list(piece) for piece in counts}
    while len(tokens) < VOCABULARY:
        pairs = collections.Counter()
        for piece, parts in words.items():
            for pair in zip(parts, parts[1:], strict=False):
                pairs[pair] += counts[piece]
        first, second = max(pairs, key=lambda pair: (pairs[pair], pair))
        tokens.append(first + second)
        for parts in words.values():
            i = 0
            while i < len(parts) - 1:
                if parts[i] == first and parts[i + 1] == second:
                    parts[i : i + 2] = [first + second]
                i += 1
    return tokens


def encode(text, ranks, known):
    """Return the numbers of a text's tokens; pairs are joined in the order of their learning."""
    numbers = []
    for piece in PIECES.findall(text):
        if piece not in known:
            parts = [char for char in piece if char in ranks]
            while len(parts) > 1:
                joined = [ranks.get(a + b, len(ranks)) for a, b in zip(parts, parts[1:])]  # noqa: B905
                best = min(range(len(joined)), key=joined.__getitem__)
                if joined[best] == len(ranks):
                    break
                parts[best : best + 2] = [parts[best] + parts[best + 1]]
            known[piece] = [ranks[part] for part in parts]
        numbers += known[piece]
    return numbers


def new_weights():
    def new(*shape, gain=1.0):
        return torch.nn.Parameter(torch.randn(shape) * gain / shape[-1] ** 0.5)

    weights = {"embed": new(VOCABULARY, WIDTH), "norm": torch.nn.Parameter(torch.ones(WIDTH))}
    weights["head"] = new(VOCABULARY, WIDTH, gain=0.3)
    for i in range(LAYERS):
        weights |= {
            f"layers.{i}.norm1": torch.nn.Parameter(torch.ones(WIDTH)),
            f"layers.{i}.norm2": torch.nn.Parameter(torch.ones(WIDTH)),
            f"layers.{i}.qkv": new((HEADS + 2 * KEPT) * SIZE, WIDTH),
            f"layers.{i}.out": new(WIDTH, HEADS * SIZE, gain=0.3),
            f"layers.{i}.gate_up": new(2 * HIDDEN, WIDTH),
            f"layers.{i}.down": new(WIDTH, HIDDEN, gain=0.3),
        }
    return weights


def rms_norm(x, weight):
    return F.rms_norm(x, (WIDTH,), weight, 1e-5)


def rotary(x):
    """Rotate the pair (j, j + SIZE / 2) of position t by t * 10000**(-2 j / SIZE)."""
    speeds = 10000 ** (-torch.arange(0, SIZE, 2) / SIZE)
    angles = torch.arange(x.shape[-2])[:, None] * speeds
    low, high = x.chunk(2, -1)
    sin, cos = angles.sin(), angles.cos()
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def forward(tokens, w, dropped=0.0):
    """Return the logits (batch, length, vocabulary) of tokens (batch, length)."""
    x = w["embed"][tokens]
    for i in range(LAYERS):
        part = {name: w[f"layers.{i}.{name}"] for name in ("qkv", "out", "gate_up", "down")}
        rows = rms_norm(x, w[f"layers.{i}.norm1"]) @ part["qkv"].T
        rows = rows.unflatten(-1, (HEADS + 2 * KEPT, SIZE)).transpose(1, 2)
        q, k, v = rows.split([HEADS, KEPT, KEPT], 1)
        q, k, v = rotary(q), *(one.repeat_interleave(HEADS // KEPT, 1) for one in (rotary(k), v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(seen.transpose(1, 2).flatten(-2) @ part["out"].T, dropped)
        gate, up = (rms_norm(x, w[f"layers.{i}.norm2"]) @ part["gate_up"].T).chunk(2, -1)
        x = x + F.dropout((F.silu(gate) * up) @ part["down"].T, dropped)
    return rms_norm(x, w["norm"]) @ w["head"].T


def loss_of(rows, w, dropped=0.0):
    logits = forward(rows[:, :-1], w, dropped)
    return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


def main():
    torch.manual_seed(SEED)
    learned, kept = topics()
    texts = [*learned * 2, *docstrings()]
    tokens = byte_pairs(texts)
    ranks, known = {token: i for i, token in enumerate(tokens)}, {}
    data = torch.tensor(encode("\n\n".join(texts), ranks, known))
    test = torch.tensor(encode("\n\n".join(kept), ranks, known))
    test = test[: len(test) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
    weights = new_weights()
    print(f"{len(data)} tokens, {sum(w.numel() for w in weights.values())} weights", flush=True)
    matrices = [w for w in weights.values() if w.ndim == 2]
    vectors = [w for w in weights.values() if w.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, RATE, betas=(0.9, 0.97))
    steps = torch.arange(STEPS)
    warm = torch.clamp((steps + 1) / 100, max=1)
    rates = (RATE * warm * (0.5 + 0.5 * torch.cos(steps / STEPS * torch.pi))).tolist()
    for step, rate in enumerate(rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        starts = torch.randint(len(data) - LENGTH - 1, (BATCH, 1))
        loss = loss_of(data[starts + torch.arange(LENGTH + 1)], weights, DROPPED)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == STEPS - 1:
            with torch.no_grad():
                print(step, f"{loss:.3f} {loss_of(test, weights):.3f}", flush=True)
    halves = {name: w.detach().bfloat16() for name, w in weights.items()}
    with torch.no_grad():
        score = loss_of(test, {name: w.float() for name, w in halves.items()})
    halves["tokens"] = torch.tensor(list(json.dumps(tokens).encode()), dtype=torch.uint8)
    facts = {"script": Path(__file__).name, "seed": str(SEED), "score": f"{score:.4f}"}
    facts |= {"python": platform.python_version(), "torch": torch.__version__}
    save_file(halves, FILE, facts)


if __name__ == "__main__":
    main()
