"""Small models with many kinds of calls, to compile ahead of time."""

from dataclasses import dataclass, field

import numpy as np

import gputensor as gt

#: The beginning of a script for a process that has neither a kernel compiler nor a framework.
WITHOUT_COMPILER = """
import sys
import numpy as np
for name in ("cuda.bindings.nvrtc", "torch", "triton", "onnx"):
    sys.modules[name] = None
import gputensor as gt
from gputensor._kernels.launch import nvrtc
try:
    nvrtc.version()
except gt.errors.DeviceError:
    pass
else:
    sys.exit("there is a compiler")
"""


@dataclass
class Model:
    """A function with a free extent `n`, its specs and weights."""

    function: object
    specs: tuple
    weights: dict
    arguments: tuple  # of each input: (shape without n, dtype, end of integers)
    sizes: tuple = (3, 8, 16)
    state: dict = field(default_factory=dict)

    @property
    def name(self):
        return self.function.__name__

    def compile(self, target):
        return gt.compile(self.function, *self.specs, weights=self.weights, target=target)

    def arrays(self, rng, n):
        """Return new random inputs with n rows."""
        return [fresh(rng, (n, *rest), dtype, high) for rest, dtype, high in self.arguments]

    @staticmethod
    def results(found):
        return found if isinstance(found, tuple) else (found,)


def fresh(rng, shape, dtype, high):
    if np.dtype(dtype).kind == "i":
        return rng.integers(0, high, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def floats(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


ROWS = gt.Dim("n", 1, 32)


def network(rng):
    """Gather, products, norm, attention, softmax, reductions, element-wise operations."""

    def network(x, ids, *, weights):
        found = gt.take(weights["embed"], ids, axis=0)
        h = gt.linear(x, weights["w1"], weights["b1"], activation="relu") + found
        h = gt.layer_norm(h, weights["g"], weights["b"])
        q = gt.reshape(h, (1, 4, -1, 16))
        h = gt.reshape(gt.scaled_dot_product_attention(q, q, q), (-1, 64))
        h = gt.softmax(gt.linear(h, weights["w2"]))
        return h, gt.argmax(h, axis=-1), gt.sum(h), gt.exp(h) * 2 - 1

    weights = {
        "embed": floats(rng, 10, 64), "w1": floats(rng, 64, 24), "b1": floats(rng, 64),
        "g": floats(rng, 64), "b": floats(rng, 64), "w2": floats(rng, 7, 64),
    }  # fmt: skip
    specs = gt.spec((ROWS, 24)), gt.spec((ROWS,), gt.int64)
    return Model(network, specs, weights, (((24,), np.float32, 0), ((), np.int64, 10)))


def orders(rng):
    """Sorting, scans, scatter into a copy, strided views, two streams."""

    def orders(x, ids, *, weights):
        with gt.stream(gt.Stream()):
            side = gt.cumulative_sum(x, axis=0)
        values, order = gt.topk(x, 5)
        counted = gt.zeros((10,), dtype=gt.float32)
        counted[ids[:1]] = 1.0
        table = gt.sort(x[:, ::2], axis=-1)
        return side + weights["w"], values, order, counted, table, gt.mean(x, axis=0)

    specs = gt.spec((ROWS, 40)), gt.spec((ROWS,), gt.int64)
    weights = {"w": floats(rng, 40)}
    return Model(orders, specs, weights, (((40,), np.float32, 0), ((), np.int64, 10)))


def wide(rng):
    """Reductions in parts, and products of unaligned sizes, which need scratch memory."""

    def wide(x, *, weights):
        total = gt.sum(gt.reshape(x, (-1,)) * 2)
        product = x[:, :300].T @ x[:, :301]
        return total, gt.sum(x, axis=0), gt.linear(x[:, 1:34], weights["w"]), product

    specs = (gt.spec((ROWS, 3000)),)
    return Model(wide, specs, {"w": floats(rng, 5, 33)}, (((3000,), np.float32, 0),), (2, 17))


def loops(rng):
    """Loops of known length whose calls need scratch memory; a scan of rows."""

    def loops(x, *, weights):
        def turn(index, carry):
            a, b = carry
            return b * 0.5 + gt.sum(a), a + gt.asarray(index, dtype=gt.float32) * weights["w"]

        a, b = gt.fori_loop(0, 5, turn, (x, x * 2))
        last, rows = gt.scan(lambda c, row: (c * 0.5 + row, gt.exp(c)), weights["w"], a + b)
        return a, last, rows

    weights = {"w": floats(rng, 1000)}
    specs = (gt.spec((ROWS, 1000)),)
    return Model(loops, specs, weights, (((1000,), np.float32, 0),), (2, 5))


def classifier(rng):
    """Two small products of the first row, the second one in one kernel with its softmax."""

    def classifier(x, *, weights):
        h = gt.linear(x[:1], weights["w1"], weights["b1"], activation="relu")
        return gt.softmax(gt.linear(h, weights["w2"])), x * 2

    half = np.float16
    weights = {
        "w1": floats(rng, 528, 784, dtype=half) / 32, "b1": floats(rng, 528, dtype=half),
        "w2": floats(rng, 10, 528, dtype=half) / 16,
    }  # fmt: skip
    specs = (gt.spec((ROWS, 784), gt.float16),)
    return Model(classifier, specs, weights, (((784,), half, 0),))


MODELS = {
    "classifier": classifier, "loops": loops, "network": network, "orders": orders, "wide": wide,
}  # fmt: skip
