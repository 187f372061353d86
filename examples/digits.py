"""Reads handwriting by nearest neighbours in four precisions, on the digits of scikit-learn.

The 1,797 digits of the UCI set (8x8 pixels) are split in two with a fixed seed. Each test digit
gets the label of the training digit at the least squared distance, |a|^2 - 2 a.b + |b|^2, computed
with the library's own product, sums, broadcasting and argmin; NumPy holds the labels and does no
arithmetic on pixels. It runs on the device of GPUTENSOR_DEVICE, or on the GPU if there is one, or
on the host device. It prints accuracy and time for each precision and a summary of the memory, and
writes the allocator's snapshot, with its history, to out/digits_snapshot.pickle.

    python examples/digits.py
"""

import sys
import time
from pathlib import Path

import numpy as np

import gputensor as gt

SEED = 20
TEST_SHARE = 0.5
REPETITIONS = 5
SNAPSHOT = Path("out") / "digits_snapshot.pickle"

# The printed name, the dtype of the pixels, and whether float32 products may use TF32.
PRECISIONS = (
    ("fp32", "float32", False),
    ("TF32", "float32", True),
    ("bf16", "bfloat16", False),
    ("fp16", "float16", False),
)


def load_digits():
    """Return training pixels and labels, then test pixels and labels; pixels are in [0, 1]."""
    try:
        from sklearn.datasets import load_digits as load_bundled
    except ImportError:
        sys.exit("digits.py needs scikit-learn for its bundled digits: pip install scikit-learn")
    pixels, labels = load_bundled(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(labels))
    test, train = np.split(order, [int(TEST_SHARE * len(labels))])
    pixels = (pixels / 16).astype(np.float32)
    return pixels[train], labels[train], pixels[test], labels[test]


def nearest(train, train_norms, test):
    """Return for each row of `test` the index of the nearest row of `train`, on the device.

    The norm of the test row is the same for every candidate, so it is left out.
    """
    products = gt.matmul(test, train.T)
    distances = train_norms - gt.astype(products, gt.float32) * 2
    return gt.argmin(distances, axis=1)


def classify(dtype, allow_tf32, train, test):
    """Return the indices of the neighbours as NumPy, and the best time in seconds."""
    with gt.blas.precision(allow_tf32=allow_tf32):
        train = gt.astype(gt.asarray(train), dtype)
        test = gt.astype(gt.asarray(test), dtype)
        exact = gt.astype(train, gt.float32)
        train_norms = gt.sum(exact * exact, axis=1)
        seconds = []
        for _ in range(REPETITIONS + 1):
            gt.synchronize()
            start = time.perf_counter()
            neighbours = nearest(train, train_norms, test)
            gt.synchronize()
            seconds.append(time.perf_counter() - start)
    # The first round builds kernels and plans.
    return neighbours.numpy(), min(seconds[1:])


def main():
    train, train_labels, test, test_labels = load_digits()
    gt.memory.record_memory_history()
    device = gt.empty(0).device
    print(f"{len(train)} digits to learn from, {len(test)} to read, on {device}")
    print(f"{'precision':<10} {'accuracy':>9} {'time':>10}")
    for name, dtype, allow_tf32 in PRECISIONS:
        neighbours, seconds = classify(getattr(gt, dtype), allow_tf32, train, test)
        accuracy = float(np.mean(train_labels[neighbours] == test_labels))
        print(f"{name:<10} {accuracy:>9.4f} {seconds * 1e3:>7.2f} ms")
    print()
    print(gt.memory.memory_summary())
    SNAPSHOT.parent.mkdir(exist_ok=True)
    gt.memory.dump_snapshot(str(SNAPSHOT))
    print(f"memory snapshot: {SNAPSHOT}")


if __name__ == "__main__":
    main()
