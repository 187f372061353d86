"""Reads handwriting with an ONNX model, only with commands: compile, inspect, run.

The model, examples/models/digits.onnx, is a convolutional network of 25 kB that
examples/models/train_digits.py trained on half of scikit-learn's digits. This example compiles it
to a program file, as `gputensor compile` does, runs it on the other half, as `gputensor run` does,
and prints the share of digits that are right. It prints each command, so that you can also type it.

    python examples/digits_onnx.py
"""

import os
import shlex
import sys
from pathlib import Path

import numpy as np

import gputensor as gt
from gputensor.cli.main import main as gputensor

MODEL = Path(__file__).parent / "models" / "digits.onnx"
SPLIT_SEED = 20
SHADES = " .:-=+*#%@"


def test_digits():
    """Return images and labels that the network was not trained on, and its recorded score."""
    try:
        import onnx
        from sklearn.datasets import load_digits
    except ImportError as error:
        sys.exit(
            f"digits_onnx.py needs scikit-learn and onnx: pip install 'gputensor[test]' ({error})"
        )
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    test = order[: len(labels) // 2]
    facts = {one.key: one.value for one in onnx.load(MODEL).metadata_props}
    images = (pixels[test] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    return images, labels[test], float(facts["score"])


def command(*words):
    """Print a command and run it."""
    print("$ gputensor " + shlex.join(words))
    code = gputensor(list(words))
    if code:
        sys.exit(code)


def show(image, text):
    """Print an image in ten shades, with a line beside it."""
    rows = ["".join(SHADES[int(9 * value)] * 2 for value in row) for row in image[0]]
    rows[3] += f"   {text}"
    print("\n".join(rows))


def main():
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    images, labels, promised = test_digits()
    np.save(folder / "images.npy", images)
    model, program = os.path.relpath(MODEL), str(folder / "digits.gtp")
    command("compile", model, "-o", program, "--dim=batch=1:1024", "--function=read")
    command("inspect", program, "--output=plan")
    command(
        "run", f"--module={program}", "--function=read", f"--input=@{folder / 'images.npy'}",
        f"--output=@{folder / 'digits.npy'}", f"--output=@{folder / 'probability.npy'}",
    )  # fmt: skip
    digits, sure = np.load(folder / "digits.npy"), np.load(folder / "probability.npy")
    for i in (int(sure.max(1).argmax()), int(sure.max(1).argmin())):
        show(images[i], f"read as {digits[i]} ({sure[i].max():.0%}), is a {labels[i]}")
    right = float((digits == labels).mean())
    print(f"{right:.2%} of {len(labels)} digits are right; {promised:.2%} when it was trained")

    # The same from Python, node by node, which gives access to any part of the model.
    found = gt.load_onnx(MODEL).run(gt.asarray(images[:100]))
    if not (found.digit == gt.asarray(digits[:100])).all() or abs(right - promised) > 0.005:
        sys.exit("the results differ from those of the training")


if __name__ == "__main__":
    main()
