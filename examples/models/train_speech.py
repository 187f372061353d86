"""Trains the small Whisper of examples/speech.py and writes speech.safetensors.

It learns to recognize dialled numbers from their synthesised sounds (tones.py). The score is the
share of 500 new numbers for which every key is right. Needs torch and safetensors; takes about five
minutes on a processor core.

    python examples/models/train_speech.py
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tones import FRAMES, KEYS, MELS, MOST, log_mel, number, sound
from torch.nn import functional as F

SEED, SOUNDS, STEPS, BATCH, RATE = 3, 8000, 1500, 48, 2e-3
WIDTH, HEADS, HIDDEN, LAYERS = 48, 3, 96, 2
END, START, VOCABULARY, LENGTH = 0, 1, 16, MOST + 2
FILE = Path(__file__).with_name("speech.safetensors")


def new_weights():
    weights = {}

    def linear(name, *shape, gain=1.0):
        terms = int(np.prod(shape[1:]))
        weights[f"{name}.0"] = torch.randn(shape) * gain / terms**0.5
        weights[f"{name}.1"] = torch.zeros(shape[0])

    def norm(name):
        weights[f"{name}.0"], weights[f"{name}.1"] = torch.ones(WIDTH), torch.zeros(WIDTH)

    def layer(name, kinds):
        for kind in kinds:
            norm(f"{name}.{kind}.norm")
            for part in "qkv":
                linear(f"{name}.{kind}.{part}", WIDTH, WIDTH)
            linear(f"{name}.{kind}.out", WIDTH, WIDTH, gain=0.3)
        norm(f"{name}.norm")
        linear(f"{name}.up", HIDDEN, WIDTH)
        linear(f"{name}.down", WIDTH, HIDDEN, gain=0.3)

    linear("conv1", WIDTH, MELS, 3)
    linear("conv2", WIDTH, WIDTH, 3)
    for i in range(LAYERS):
        layer(f"encoder.{i}", ["self"])
        layer(f"decoder.{i}", ["self", "cross"])
    norm("norm")
    norm("last")
    weights["embed"] = torch.randn(VOCABULARY, WIDTH) / WIDTH**0.5
    weights["positions"] = torch.randn(LENGTH, WIDTH) / WIDTH**0.5
    return {name: torch.nn.Parameter(w) for name, w in weights.items()} | {"places": places()}


def places():
    """Return the sines of the encoder's positions (FRAMES / 2, WIDTH)."""
    speeds = torch.exp(-np.log(10000) * torch.arange(WIDTH // 2) / (WIDTH // 2 - 1))
    angles = torch.arange(FRAMES // 2)[:, None] * speeds
    return torch.cat([angles.sin(), angles.cos()], 1)


class Model:
    def __init__(self, weights):
        self.w = weights

    def linear(self, x, name):
        return F.linear(x, self.w[f"{name}.0"], self.w[f"{name}.1"])

    def norm(self, x, name):
        return F.layer_norm(x, (WIDTH,), self.w[f"{name}.0"], self.w[f"{name}.1"])

    def heads(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def attend(self, x, y, name, **how):
        q = self.heads(self.linear(self.norm(x, f"{name}.norm"), f"{name}.q"))
        k, v = (self.heads(self.linear(y, f"{name}.{part}")) for part in "kv")
        seen = F.scaled_dot_product_attention(q, k, v, **how).transpose(1, 2).flatten(2)
        return x + self.linear(seen, f"{name}.out")

    def mlp(self, x, name):
        h = F.gelu(self.linear(self.norm(x, f"{name}.norm"), f"{name}.up"))
        return x + self.linear(h, f"{name}.down")

    def encode(self, mel):
        w = self.w
        x = F.gelu(F.conv1d(mel, w["conv1.0"], w["conv1.1"], padding=1))
        x = F.gelu(F.conv1d(x, w["conv2.0"], w["conv2.1"], stride=2, padding=1))
        x = x.transpose(1, 2) + w["places"]
        for i in range(LAYERS):
            name = f"encoder.{i}"
            x = self.attend(x, self.norm(x, f"{name}.self.norm"), f"{name}.self")
            x = self.mlp(x, name)
        return self.norm(x, "norm")

    def decode(self, tokens, heard):
        x = self.w["embed"][tokens] + self.w["positions"][: tokens.shape[1]]
        for i in range(LAYERS):
            name = f"decoder.{i}"
            y = self.norm(x, f"{name}.self.norm")
            x = self.attend(x, y, f"{name}.self", is_causal=True)
            x = self.attend(x, heard, f"{name}.cross")
            x = self.mlp(x, name)
        return self.norm(x, "last") @ self.w["embed"].T


def examples(count, rng):
    """Return spectra (count, MELS, FRAMES) and tokens (count, LENGTH), with START and END."""
    mels, tokens = np.empty((count, MELS, FRAMES), np.float32), np.zeros((count, LENGTH), np.int64)
    for i in range(count):
        keys = number(rng)
        mels[i] = log_mel(sound(keys, rng))
        tokens[i, : len(keys) + 1] = [START, *(KEYS.index(key) + 2 for key in keys)]
    return torch.from_numpy(mels), torch.from_numpy(tokens)


def share_right(model, mels, tokens):
    """Return the share of numbers that the model recognizes without an error."""
    with torch.no_grad():
        heard, found = model.encode(mels), torch.full((len(mels), 1), START)
        for _step in range(LENGTH - 1):
            following = model.decode(found, heard)[:, -1].argmax(1, keepdim=True)
            following[(found == END).any(1)] = END
            found = torch.cat([found, following], 1)
    return (found == tokens).all(1).float().mean().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    mels, tokens = examples(SOUNDS, rng)
    test = examples(500, rng)
    weights = new_weights()
    model, trained = Model(weights), [w for w in weights.values() if w.requires_grad]
    print(sum(w.numel() for w in weights.values()), "weights", flush=True)
    optimizer = torch.optim.AdamW(trained, RATE, betas=(0.9, 0.98), weight_decay=0.01)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS, pct_start=0.1)
    for step in range(STEPS):
        chosen = torch.randint(SOUNDS, (BATCH,))
        heard = model.encode(mels[chosen])
        logits = model.decode(tokens[chosen, :-1], heard)
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[chosen, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        rates.step()
        if step % 100 == 0 or step == STEPS - 1:
            print(step, f"{loss:.3f} {share_right(model, *test):.3f}", flush=True)
    halves = {name: w.detach().bfloat16() for name, w in weights.items()}
    score = share_right(Model({name: w.float() for name, w in halves.items()}), *test)
    facts = {"script": Path(__file__).name, "seed": str(SEED), "score": f"{score:.4f}"}
    save_file(halves, FILE, facts | {"torch": torch.__version__})


if __name__ == "__main__":
    main()
