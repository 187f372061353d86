"""Trains the small convolutional network of examples/digits_onnx.py and writes digits.onnx.

The network is trained with NumPy alone on half of scikit-learn's 1,797 digits, with a fixed seed,
and its score on the other half is written to the file. The split is that of examples/digits.py.

    python examples/models/train_digits.py
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits

SEED, SPLIT_SEED = 4, 20
EPOCHS, BATCH, RATE = 60, 32, 2e-3
FILE = Path(__file__).with_name("digits.onnx")


def split_digits():
    """Return training images (n, 1, 8, 8) in [0, 1] and labels, then those of the test."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(labels))
    test, train = np.split(order, [len(labels) // 2])
    images = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    return images[train], labels[train], images[test], labels[test]


def patches(x):
    """Return the 3x3 neighbourhood of each pixel: (n, height, width, channels * 9)."""
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    found = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    return found.transpose(0, 2, 3, 1, 4, 5).reshape(*found.shape[:1], *x.shape[2:], -1)


class Convolution:
    """A 3x3 convolution with padding, ReLU, and 2x2 max pooling."""

    def __init__(self, inputs, outputs, rng):
        self.w = rng.standard_normal((outputs, inputs * 9)) * np.sqrt(2 / (inputs * 9))
        self.b = np.zeros(outputs)

    def forward(self, x):
        self.shape, self.rows = x.shape, patches(x)
        y = np.maximum(self.rows @ self.w.T + self.b, 0)
        n, h, w, c = y.shape
        blocks = y.reshape(n, h // 2, 2, w // 2, 2, c)
        best = blocks.max((2, 4))
        self.kept = (blocks == best[:, :, None, :, None]) & (best > 0)[:, :, None, :, None]
        return best.transpose(0, 3, 1, 2)

    def backward(self, slope):
        slope = slope.transpose(0, 2, 3, 1)[:, :, None, :, None] * self.kept
        n, h, _two, w, _also, c = slope.shape
        slope = slope.reshape(n, 2 * h, 2 * w, c)
        flat = slope.reshape(-1, c)
        self.slopes = [flat.T @ self.rows.reshape(len(flat), -1), flat.sum(0)]
        spread = (slope @ self.w).reshape(n, 2 * h, 2 * w, self.shape[1], 3, 3)
        wide = np.zeros((n, self.shape[1], 2 * h + 2, 2 * w + 2))
        for i, j in np.ndindex(3, 3):
            wide[:, :, i : i + 2 * h, j : j + 2 * w] += spread[..., i, j].transpose(0, 3, 1, 2)
        return wide[:, :, 1:-1, 1:-1]


class Dense:
    """A dense layer: one row of scores for each image."""

    def __init__(self, inputs, outputs, rng):
        self.w = rng.standard_normal((outputs, inputs)) * np.sqrt(1 / inputs)
        self.b = np.zeros(outputs)

    def forward(self, x):
        self.x, self.shape = x.reshape(len(x), -1), x.shape
        return self.x @ self.w.T + self.b

    def backward(self, slope):
        self.slopes = [slope.T @ self.x, slope.sum(0)]
        return (slope @ self.w).reshape(self.shape)


def train(images, labels):
    """Train and return the layers."""
    rng = np.random.default_rng(SEED)
    layers = [Convolution(1, 16, rng), Convolution(16, 32, rng), Dense(128, 10, rng)]
    moments = [[(np.zeros_like(p), np.zeros_like(p)) for p in (one.w, one.b)] for one in layers]
    step = 0
    for epoch in range(EPOCHS):
        rate = RATE * (1 - epoch / EPOCHS)
        for places in np.array_split(rng.permutation(len(labels)), len(labels) // BATCH):
            step += 1
            x = images[places]
            shift = rng.integers(-1, 2, 2)  # also trains on digits moved by a pixel
            x = np.roll(x, shift, (2, 3)).astype(np.float64)
            for layer in layers:
                x = layer.forward(x)
            slope = np.exp(x - x.max(1, keepdims=True))
            slope /= slope.sum(1, keepdims=True)
            slope[np.arange(len(places)), labels[places]] -= 1
            slope /= len(places)
            for layer in layers[::-1]:
                slope = layer.backward(slope)
            for layer, pairs in zip(layers, moments, strict=True):
                for weight, change, pair in zip(
                    (layer.w, layer.b), layer.slopes, pairs, strict=True
                ):
                    adam(weight, change, pair, rate, step)
    return layers


def adam(weight, slope, pair, rate, step):
    """Do one step of Adam with weight decay, in place."""
    first, second = pair
    first += 0.1 * (slope - first)
    second += 0.001 * (slope**2 - second)
    scaled = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    weight -= rate * (scaled + 1e-3 * weight)


def score(layers, images, labels):
    x = images.astype(np.float64)
    for layer in layers:
        x = layer.forward(x)
    return float((x.argmax(1) == labels).mean())


def model_of(layers, facts):
    """Return the ONNX model, as an exporter would write it."""
    first, second, last = layers
    weights = {
        "conv1.weight": first.w.reshape(-1, 1, 3, 3), "conv1.bias": first.b,
        "conv2.weight": second.w.reshape(-1, 16, 3, 3), "conv2.bias": second.b,
        "dense.weight": last.w, "dense.bias": last.b,
    }  # fmt: skip
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    halves = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["a"], **window),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], **halves),
        helper.make_node("Conv", ["c", "conv2.weight", "conv2.bias"], ["d"], **window),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["f"], **halves),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["g", "dense.weight", "dense.bias"], ["h"], transB=1),
        helper.make_node("Softmax", ["h"], ["probability"], axis=-1),
        helper.make_node("ArgMax", ["probability"], ["digit"], axis=-1, keepdims=0),
    ]
    value, kinds = helper.make_tensor_value_info, onnx.TensorProto
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    graph = helper.make_graph(
        nodes, "read", [value("image", kinds.FLOAT, ["batch", 1, 8, 8])],
        [value("digit", kinds.INT64, ["batch"]), value("probability", kinds.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(made, facts)
    return made


def main():
    train_images, train_labels, test_images, test_labels = split_digits()
    layers = train(train_images, train_labels)
    right = score(layers, test_images, test_labels)
    facts = {"seed": str(SEED), "score": f"{right:.4f}", "script": Path(__file__).name}
    onnx.save(model_of(layers, facts), FILE)
    print(f"{FILE.name}: {right:.2%} of {len(test_labels)} digits, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
