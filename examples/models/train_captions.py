"""Trains the vision-language model of examples/captions.py and writes captions.safetensors.

It learns to describe images that shapes.py draws. The score is the share of 500 new images for
which every word is right. Needs torch and safetensors; takes some minutes on a processor core.

    python examples/models/train_captions.py
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from shapes import EXTENT, caption, drawn, words
from torch.nn import functional as F

SEED, IMAGES, STEPS, BATCH, RATE = 5, 30000, 4000, 64, 2e-3
PATCH, WIDTH, HEADS, HIDDEN, LAYERS = 8, 48, 3, 96, 2
SEEN, SAID, VOCABULARY = (EXTENT // PATCH) ** 2, 9, 32  # patches; words including the end
FILE = Path(__file__).with_name("captions.safetensors")


def new_weights():
    weights = {}

    def matrix(name, *shape, gain=1.0):
        weights[name] = torch.randn(shape) * gain / int(np.prod(shape[1:])) ** 0.5

    def layer(name):
        weights[f"{name}.norm1"], weights[f"{name}.norm2"] = torch.ones(2, WIDTH)
        matrix(f"{name}.qkv", 3 * WIDTH, WIDTH)
        matrix(f"{name}.out", WIDTH, WIDTH, gain=0.3)
        matrix(f"{name}.up", HIDDEN, WIDTH)
        matrix(f"{name}.down", WIDTH, HIDDEN, gain=0.3)

    matrix("patch", WIDTH, 3, PATCH, PATCH)
    matrix("places", SEEN, WIDTH)
    for i in range(LAYERS):
        layer(f"encoder.{i}")
        layer(f"decoder.{i}")
    matrix("projector.0", HIDDEN, WIDTH)
    matrix("projector.1", WIDTH, HIDDEN)
    matrix("embed", VOCABULARY, WIDTH)
    matrix("head", VOCABULARY, WIDTH, gain=0.3)
    weights["norm"] = torch.ones(WIDTH)
    return {name: torch.nn.Parameter(w.clone()) for name, w in weights.items()}


def rotary(x):
    """Rotate the pair (j, j + half) of position t by t * 10000**(-j / half)."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * 10000 ** (-torch.arange(half) / half)
    low, high = x.chunk(2, -1)
    sin, cos = angles.sin(), angles.cos()
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def norm(x, weight):
    return F.rms_norm(x, (WIDTH,), weight, 1e-5)


def layer(x, w, name, turned=lambda x: x, **how):
    rows = norm(x, w[f"{name}.norm1"]) @ w[f"{name}.qkv"].T
    q, k, v = rows.unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    seen = F.scaled_dot_product_attention(turned(q), turned(k), v, **how)
    x = x + seen.transpose(1, 2).flatten(2) @ w[f"{name}.out"].T
    return x + F.gelu(norm(x, w[f"{name}.norm2"]) @ w[f"{name}.up"].T) @ w[f"{name}.down"].T


def forward(images, tokens, w):
    """Return logits after the image and after each token: (batch, 1 + tokens, VOCABULARY)."""
    x = F.conv2d(images, w["patch"], stride=PATCH).flatten(2).transpose(1, 2) + w["places"]
    for i in range(LAYERS):
        x = layer(x, w, f"encoder.{i}")
    x = F.gelu(x @ w["projector.0"].T) @ w["projector.1"].T
    x = torch.cat([x, w["embed"][tokens]], 1)
    for i in range(LAYERS):
        x = layer(x, w, f"decoder.{i}", rotary, is_causal=True)
    return norm(x[:, SEEN - 1 :], w["norm"]) @ w["head"].T


def examples(count, rng):
    """Return images, and the numbers of their captions' words, followed by zeros."""
    ranks = {word: i for i, word in enumerate(words())}
    texts = [caption(rng) for _i in range(count)]
    images = np.stack([drawn(text, rng) for text in texts])
    tokens = np.zeros((count, SAID), np.int64)
    for row, text in zip(tokens, texts, strict=True):
        row[: len(text.split())] = [ranks[word] for word in text.split()]
    return torch.from_numpy(images), torch.from_numpy(tokens)


def share_right(w, images, tokens):
    with torch.no_grad():
        found = tokens[:, :0]
        for _step in range(SAID):
            following = forward(images, found, w)[:, -1].argmax(1, keepdim=True)
            found = torch.cat([found, following], 1)
    ended = torch.cumsum(found == 0, 1) > 0
    return (found.masked_fill(ended, 0) == tokens).all(1).float().mean().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    images, tokens = examples(IMAGES, rng)
    test = examples(500, rng)
    weights = new_weights()
    trained = list(weights.values())
    print(sum(w.numel() for w in trained), "weights", flush=True)
    optimizer = torch.optim.AdamW(trained, RATE, betas=(0.9, 0.98), weight_decay=0.01)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS, pct_start=0.1)
    for step in range(STEPS):
        chosen = torch.randint(IMAGES, (BATCH,))
        logits = forward(images[chosen], tokens[chosen, :-1], weights)
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[chosen].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        rates.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(step, f"{loss:.3f} {share_right(weights, *test):.3f}", flush=True)
    halves = {name: w.detach().bfloat16() for name, w in weights.items()}
    score = share_right({name: w.float() for name, w in halves.items()}, *test)
    facts = {"script": Path(__file__).name, "seed": str(SEED), "score": f"{score:.4f}"}
    save_file(halves, FILE, facts | {"torch": torch.__version__})


if __name__ == "__main__":
    main()
