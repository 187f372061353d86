"""Describes a drawing in words: an image encoder, a projector and a decoder of words.

    python examples/captions.py                                       random drawings
    python examples/captions.py "a small red circle in the middle"    a drawing of this text
    python examples/captions.py --image=drawing.npy                   float32 (3, 32, 32), 0 to 1

The image becomes 16 patches, which an encoder reads; a projector turns each into a token of the
decoder, which continues with words. examples/models/train_captions.py trained the 0.1 million
weights on drawings that examples/models/shapes.py makes. The terminal shows the image in blocks of
colour.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import gputensor as gt

sys.path.insert(0, str(Path(__file__).parent / "models"))
import shapes

WEIGHTS = Path(__file__).parent / "models" / "captions.safetensors"
HEADS, SIZE, PATCH = 3, 16, 8
SEEN, LENGTH = (shapes.EXTENT // PATCH) ** 2, 32
END = 0


def heads(x):
    """(n, HEADS * SIZE) -> (HEADS, n, SIZE), a view."""
    return gt.moveaxis(gt.reshape(x, (x.shape[0], HEADS, SIZE)), 0, 1)


def layer(x, w, attended):
    """Run a layer; `attended` is a function of its queries, keys and values."""
    q, k, v = gt.split(gt.linear(gt.rms_norm(x, w["norm1"]), w["qkv"]), 3, axis=1)
    a = attended(heads(q), heads(k), heads(v))
    joined = gt.reshape(gt.moveaxis(a, 0, 1), (x.shape[0], HEADS * SIZE))
    x = gt.linear(joined, w["out"], residual=x)
    h = gt.linear(gt.rms_norm(x, w["norm2"]), w["up"], activation="gelu")
    return gt.linear(h, w["down"], residual=x)


def encoded(image, weights):
    """Encode an image, (3, EXTENT, EXTENT) -> (SEEN, width)."""
    x = gt.conv2d(image[None], weights["patch"], stride=PATCH)[0]
    x = gt.reshape(x, (x.shape[0], SEEN)).T + weights["places"]
    for w in weights["encoder"]:
        x = layer(x, w, gt.scaled_dot_product_attention)
    return x


def decoded(x, weights, state):
    """Return the logits after tokens x (n, width) that follow those in the cache."""
    n, start = x.shape[0], state["length"]
    at = start + gt.arange(n, dtype=gt.int32)
    for w, keys, values in zip(weights["decoder"], state["k"], state["v"], strict=True):

        def attended(q, k, v, keys=keys, values=values):
            keys[:, at], values[:, at] = gt.rotary(k, at), v
            return gt.scaled_dot_product_attention(
                gt.rotary(q, at), keys, values, is_causal=True, kv_length=start + n
            )

        x = layer(x, w, attended)
    start += n
    return gt.linear(gt.rms_norm(x[-1:], weights["norm"]), weights["head"])[0]


def look(image, *, weights, state):
    """Return the first word about an image, int64 (1,), and its logits."""
    state["length"][...] = 0
    x = gt.linear(encoded(image, weights), weights["projector"][0], activation="gelu")
    logits = decoded(gt.linear(x, weights["projector"][1]), weights, state)
    return gt.argmax(logits, keepdims=True), logits


def tell(word, *, weights, state):
    """Return the word after `word`, both int64 (1,), and its logits."""
    logits = decoded(gt.take(weights["embed"], word, axis=0), weights, state)
    return gt.argmax(logits, keepdims=True), logits


def compiled(dtype=gt.bfloat16, target=None):
    """Return the program; its weights are stored as bfloat16 and used in `dtype`."""
    weights = gt.map_safetensors(WEIGHTS)
    if dtype != gt.bfloat16:
        weights = as_dtype(weights, dtype)
    cache = [gt.spec((HEADS, LENGTH, SIZE), dtype)] * len(weights["decoder"])
    state = {"k": cache, "v": cache, "length": gt.spec((1,), gt.int32)}
    functions = {
        "look": (look, gt.spec((3, shapes.EXTENT, shapes.EXTENT), dtype)),
        "tell": (tell, gt.spec((1,), gt.int64)),
    }
    return gt.compile(functions, weights=weights, state=state, target=target)


def as_dtype(tree, dtype):
    if isinstance(tree, dict):
        return {name: as_dtype(part, dtype) for name, part in tree.items()}
    if isinstance(tree, list):
        return [as_dtype(part, dtype) for part in tree]
    return np.asarray(tree).astype(dtype)


def caption(session, image):
    """Return a session's description of an image."""
    words, found = shapes.words(), []
    word, _logits = session.look(image)
    while (number := word.item()) != END and len(found) < LENGTH - SEEN:
        found.append(words[number])
        word, _logits = session.tell(word)
    return " ".join(found)


def shown(image):
    """Return an image as lines of coloured half blocks."""
    pixels = (255 * np.clip(image, 0, 1)).astype(int).transpose(1, 2, 0)
    lines = []
    for top, bottom in zip(pixels[::2], pixels[1::2], strict=True):
        cells = (
            "\x1b[38;2;{};{};{}m\x1b[48;2;{};{};{}m▀".format(*a, *b)
            for a, b in zip(top, bottom, strict=True)
        )
        lines.append("".join(cells) + "\x1b[0m")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", help="a caption to draw")
    parser.add_argument("--image", help="a .npy file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=4, help="number of random drawings")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with compiled() as program, program.session() as session:
        if options.image:
            images = [(options.image, np.load(options.image))]
        else:
            texts = [options.text] if options.text else [None] * options.count
            images = [(t, shapes.drawn(t, rng)) for t in (t or shapes.caption(rng) for t in texts)]
        for name, image in images:
            given = gt.asarray(np.float32(image), dtype=gt.bfloat16, device=program.device)
            if sys.stdout.isatty():
                print(shown(image))
            print(f"drawn: {name}\nsaid:  {caption(session, given)}")


if __name__ == "__main__":
    main()
