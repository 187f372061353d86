"""Recognizes a dialled number from its sound, with a small Whisper: encoder, cache, decoder.

    python examples/speech.py                  random numbers, synthesised
    python examples/speech.py "555*0199"       this number, synthesised
    python examples/speech.py --wav=dial.wav   8,000 samples a second, 16 bits, one channel

The model has Whisper's form: a log-mel spectrum, two convolutions and an encoder that leaves its
keys and values in the state, where the decoder reads them. examples/models/train_speech.py trained
its 0.1 million weights on sounds that examples/models/tones.py makes.
"""

import argparse
import sys
import wave
from pathlib import Path

import numpy as np

import gputensor as gt

sys.path.insert(0, str(Path(__file__).parent / "models"))
import tones

WEIGHTS = Path(__file__).parent / "models" / "speech.safetensors"
HEADS, SIZE, END, START, LENGTH = 3, 16, 0, 1, tones.MOST + 2


def log_mel(samples):
    """Return the log-mel spectrum (MELS, FRAMES) of samples: power in MELS bands, in decades."""
    device = samples.device
    wide = gt.pad(samples, (0, tones.WINDOW - tones.HOP))
    starts = gt.arange(tones.FRAMES, device=device)[:, None] * tones.HOP
    frames = gt.take(wide, starts + gt.arange(tones.WINDOW, device=device)[None, :], axis=0)
    spectrum = gt.fft.rfft(frames * gt.asarray(tones.window(), device=device))
    power = gt.square(gt.real(spectrum)) + gt.square(gt.imag(spectrum))
    bands = gt.linear(gt.asarray(tones.mel_filters(), device=device), power)
    found = gt.log10(gt.maximum(bands, 1e-10))
    return (gt.maximum(found, gt.max(found) - 8) + 4) / 4


# ---- the model


def heads(x):
    """(n, HEADS * SIZE) -> (HEADS, n, SIZE), a view."""
    return gt.moveaxis(gt.reshape(x, (x.shape[0], HEADS, SIZE)), 0, 1)


def keys_values(x, w):
    return heads(gt.linear(x, *w["k"])), heads(gt.linear(x, *w["v"]))


def attend(x, w, k, v, **how):
    q = heads(gt.linear(gt.layer_norm(x, *w["norm"]), *w["q"]))
    a = gt.scaled_dot_product_attention(q, k, v, **how)
    joined = gt.reshape(gt.moveaxis(a, 0, 1), (x.shape[0], HEADS * SIZE))
    return gt.linear(joined, *w["out"], residual=x)


def mlp(x, w):
    h = gt.linear(gt.layer_norm(x, *w["norm"]), *w["up"], activation="gelu")
    return gt.linear(h, *w["down"], residual=x)


def encode(mel, *, weights, state):
    """Encode a spectrum (MELS, FRAMES): the decoder's keys and values go into the state."""
    x = gt.gelu(gt.conv1d(mel[None], *weights["conv1"], padding=1))
    x = gt.gelu(gt.conv1d(x, *weights["conv2"], stride=2, padding=1))[0].T + weights["places"]
    for w in weights["encoder"]:
        k, v = keys_values(gt.layer_norm(x, *w["self"]["norm"]), w["self"])
        x = mlp(attend(x, w["self"], k, v), w)
    x = gt.layer_norm(x, *weights["norm"])
    for w, k, v in zip(weights["decoder"], state["cross_k"], state["cross_v"], strict=True):
        k[...], v[...] = keys_values(x, w["cross"])
    state["length"][...] = 0


def decode(token, *, weights, state):
    """Return the token after `token`, both int64 (1,), and its logits."""
    at = state["length"]
    x = gt.take(weights["embed"], token, axis=0) + gt.take(weights["positions"], at, axis=0)
    for i, w in enumerate(weights["decoder"]):
        k, v = state["k"][i], state["v"][i]
        k[:, at], v[:, at] = keys_values(gt.layer_norm(x, *w["self"]["norm"]), w["self"])
        x = attend(x, w["self"], k, v, kv_length=at + 1)
        x = mlp(attend(x, w["cross"], state["cross_k"][i], state["cross_v"][i]), w)
    at += 1
    logits = gt.linear(gt.layer_norm(x, *weights["last"]), weights["embed"])[0]
    return gt.argmax(logits, keepdims=True), logits


def compiled(dtype=gt.bfloat16, target=None):
    """Return the program; its weights are stored as bfloat16 and used in `dtype`."""
    weights = gt.map_safetensors(WEIGHTS)
    if dtype != gt.bfloat16:
        weights = as_dtype(weights, dtype)
    layers = len(weights["decoder"])
    kept = gt.spec((HEADS, LENGTH, SIZE), dtype)
    heard = gt.spec((HEADS, tones.FRAMES // 2, SIZE), dtype)
    state = {name: [kept] * layers for name in ("k", "v")}
    state |= {name: [heard] * layers for name in ("cross_k", "cross_v")}
    state["length"] = gt.spec((1,), gt.int32)
    functions = {
        "encode": (encode, gt.spec((tones.MELS, tones.FRAMES), dtype)),
        "decode": (decode, gt.spec((1,), gt.int64)),
    }
    return gt.compile(functions, weights=weights, state=state, target=target)


def as_dtype(tree, dtype):
    if isinstance(tree, dict):
        return {name: as_dtype(part, dtype) for name, part in tree.items()}
    if isinstance(tree, list):
        return [as_dtype(part, dtype) for part in tree]
    return np.asarray(tree).astype(dtype)


def written(session, mel):
    """Return the keys that a session recognizes in a spectrum, as text."""
    session.encode(mel)
    text, token = "", gt.asarray([START], device=mel.device)
    while len(text) < LENGTH - 1:
        token, _logits = session.decode(token)
        number = token.item()
        if number < 2:
            break
        text += tones.KEYS[number - 2]
    return text


def samples_of(path):
    """Return the samples of a file, cut or padded to SECONDS."""
    with wave.open(path) as file:
        if (file.getframerate(), file.getsampwidth(), file.getnchannels()) != (tones.RATE, 2, 1):
            sys.exit(f"{path}: expected {tones.RATE} samples a second, 16 bits, one channel")
        found = np.frombuffer(file.readframes(tones.RATE * tones.SECONDS), "<i2")
    return np.pad(found / np.float32(2**15), (0, tones.RATE * tones.SECONDS - len(found)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("number", nargs="?", help=f"3 to {tones.MOST} of {tones.KEYS}")
    parser.add_argument("--wav", help="a file to listen to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=5, help="number of random numbers")
    options = parser.parse_args()
    rng, given = np.random.default_rng(options.seed), options.number
    if given is not None and (not 3 <= len(given) <= tones.MOST or set(given) - set(tones.KEYS)):
        sys.exit(f"the number must have 3 to {tones.MOST} of the keys {tones.KEYS}")
    with compiled() as program, program.session() as session:

        def heard(samples):
            mel = log_mel(gt.asarray(np.float32(samples), device=program.device))
            return written(session, gt.astype(mel, gt.bfloat16))

        if options.wav:
            print(heard(samples_of(options.wav)))
            return
        for number in [given] if given else [tones.number(rng) for _i in range(options.count)]:
            print(f"dialled {number}, heard {heard(tones.sound(number, rng))}")


if __name__ == "__main__":
    main()
