"""A Llama-shaped model of random sizes whose decoding consists of products of few rows."""

import ml_dtypes
import numpy as np

import gputensor as gt

__all__ = ["UNIT", "DecodeModel", "calls_of"]

TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
TYPES["float32"] = np.dtype(np.float32)
UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


class DecodeModel:
    """Layers with a cache. `form` is plain, int8 or int4:G; a call processes `rows` tokens.

    The function takes a matrix instead of tokens and returns the whole result of the last layer.
    With `has_pairs`, one call rotates queries and keys together.
    """

    def __init__(self, rng, form, dtype, rows, width=None, attends=True):
        self.rng, self.form, self.dtype, self.rows = rng, form, dtype, rows
        self.attends = attends
        self.width = width or 128 * int(rng.integers(1, 3))
        self.kept = int(rng.integers(1, 3))
        self.heads = self.kept * int(rng.integers(1, 4))
        self.size = int(rng.choice([32, 64]))
        while self.heads * self.size % 128:  # whole groups
            self.heads += self.kept
        self.hidden = 128 * int(rng.integers(1, 3)) if width is None else 32 * 9
        self.has_pairs, self.length = bool(rng.integers(2)), 40
        self.has_bias = bool(rng.integers(2))
        self.activation = str(rng.choice(["silu", "gelu", "relu"]))
        self.layers = 2 if width is None else 1
        self.arrays = self.random()

    def random(self):
        columns = (self.heads + 2 * self.kept) * self.size
        shapes = {
            "qkv": (columns, self.width), "out": (self.width, self.heads * self.size),
            "gate_up": (2 * self.hidden, self.width), "down": (self.width, self.hidden),
        }  # fmt: skip
        layers = []
        for _ in range(self.layers):
            layer = {name: self.normal(*shape) / shape[1] ** 0.5 for name, shape in shapes.items()}
            layer |= {name: 1 + self.normal(self.width) / 4 for name in ("norm1", "norm2")}
            if self.has_bias:
                layer["bias"] = self.normal(columns)
            layers.append({name: one.astype(TYPES[self.dtype]) for name, one in layer.items()})
        return layers

    def normal(self, *shape):
        return self.rng.standard_normal(shape)

    def inputs(self):
        return (self.normal(self.rows, self.width) * 3).astype(TYPES[self.dtype])

    def weights(self, device, dtype=None):
        """Return the weights as tensors on a device, with another dtype for a reference."""
        return [
            {name: gt.asarray(one.astype(dtype or one.dtype), device=device)
             for name, one in layer.items()}
            for layer in self.arrays
        ]  # fmt: skip

    def function(self, x, *, weights, state):
        n, start = x.shape[0], state["length"]
        at = start + gt.arange(n, dtype=gt.int32)
        activation = getattr(gt, self.activation)

        def heads(rows, first, count):
            columns = rows[:, first * self.size : (first + count) * self.size]
            return gt.moveaxis(gt.reshape(columns, (n, count, self.size)), 0, 1)

        for w, k, v in zip(weights, state["k"], state["v"], strict=True):
            rows = gt.linear(gt.rms_norm(x, w["norm1"]), w["qkv"], w.get("bias"))
            if self.has_pairs:
                rotated = gt.rotary(heads(rows, 0, self.heads + self.kept), at)
                q, new = rotated[: self.heads], rotated[self.heads :]
            else:
                q = gt.rotary(heads(rows, 0, self.heads), at)
                new = gt.rotary(heads(rows, self.heads, self.kept), at)
            k[:, at], v[:, at] = new, heads(rows, self.heads + self.kept, self.kept)
            if self.attends:
                a = gt.scaled_dot_product_attention(q, k, v, is_causal=True, kv_length=start + n)
            else:  # the simulated GPU has no tensor cores for attention
                of_head = [gt.sum(one, axis=1, keepdims=True) for one in (k, v)]
                a = q + gt.repeat(of_head[0] + of_head[1], self.heads // self.kept, axis=0) / 8
            a = gt.reshape(gt.moveaxis(a, 0, 1), (n, -1))
            x = gt.linear(a, w["out"], residual=x)
            gate, up = gt.split(gt.linear(gt.rms_norm(x, w["norm2"]), w["gate_up"]), 2, axis=1)
            x = gt.linear(activation(gate) * up, w["down"], residual=x)
        start += n
        return x

    def state(self, device, dtype=None):
        shape = (self.kept, self.length, self.size)
        caches = {name: [gt.zeros(shape, dtype=dtype or TYPES[self.dtype], device=device)
                         for _ in range(self.layers)] for name in "kv"}  # fmt: skip
        return caches | {"length": gt.zeros(1, dtype=gt.int32, device=device)}

    def program(self, device, **how):
        """Return the compiled program, with quantized weights if the form requires them."""
        specs = gt.spec((self.rows, self.width), TYPES[self.dtype])
        cache = [gt.spec((self.kept, self.length, self.size), TYPES[self.dtype])] * self.layers
        state = {"k": cache, "v": cache, "length": gt.spec((1,), gt.int32)}
        if self.form != "plain":
            how |= {"quantize": {"*": self.form}}
        return gt.compile(self.function, specs, weights=self.weights(device), state=state,
                          target=device, **how)  # fmt: skip

    def eager(self, device, inputs, dtype=None):
        """Return the results of eager calls with one input after the other."""
        weights, state = self.weights(device, dtype), self.state(device, dtype)
        with gt.device(device):
            given = [gt.asarray(x.astype(dtype or x.dtype), device=device) for x in inputs]
            return [self.function(x, weights=weights, state=state).numpy() for x in given]


def calls_of(model):
    """Return the number of calls by name, without those that are made once for all layers."""
    (function,) = model.program("host").data.functions.values()
    names = [call.name for call in function.calls if call.name != "elementwise"]
    return {name: names.count(name) for name in dict.fromkeys(names)}
