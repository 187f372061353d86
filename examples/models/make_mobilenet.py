"""Writes an ONNX file of MobileNet v2's form with random weights, as an exporter would.

    python examples/models/make_mobilenet.py mobilenetv2.onnx --width=1.0 --size=224

For the trained network, export it instead (docs/examples/vision.md). The form is that of Sandler
and others, MobileNetV2, 2018, table 2; normalisation is folded into the convolutions.
"""

import argparse

import numpy as np
import onnx
from onnx import helper, numpy_helper

SEED = 11
#: expansion, channels, blocks, stride of the first one
STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


class Network:
    """Nodes and initializers, with names in the form of PyTorch's exporter."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        limits = (numpy_helper.from_array(np.float32(v), n) for v, n in ((0, "low"), (6, "high")))
        self.nodes, self.arrays = [], list(limits)

    def weight(self, name, *shape, scale):
        array = self.rng.standard_normal(shape, np.float32) * np.float32(scale)
        self.arrays.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def convolution(self, x, channels, kernel=1, stride=1, groups=1, is_clipped=True):
        """Add a convolution; `channels` are those of x and of the result."""
        name = f"features.{len(self.arrays)}"
        terms = channels[0] // groups * kernel * kernel
        scale = (2 / terms) ** 0.5 if is_clipped else terms**-0.5
        w = self.weight(
            f"{name}.weight", channels[1], channels[0] // groups, kernel, kernel, scale=scale
        )
        b = self.weight(f"{name}.bias", channels[1], scale=0.1)
        around = (kernel - 1) // 2
        y = self.node(
            "Conv", [x, w, b], kernel_shape=[kernel] * 2, strides=[stride] * 2,
            pads=[around] * 4, group=groups, dilations=[1, 1],
        )  # fmt: skip
        return self.node("Clip", [y, "low", "high"]) if is_clipped else y

    def block(self, x, channels, stride, expansion):
        """Add a block: a 1x1 convolution to more channels, 3x3 for each channel, 1x1 to fewer."""
        wide = channels[0] * expansion
        y = self.convolution(x, (channels[0], wide)) if expansion > 1 else x
        y = self.convolution(y, (wide, wide), 3, stride, groups=wide)
        y = self.convolution(y, (wide, channels[1]), is_clipped=False)
        return self.node("Add", [x, y]) if stride == 1 and channels[0] == channels[1] else y


def mobilenet(width=1.0, size=224, classes=1000, seed=SEED):
    """Return the model, with a free batch size."""

    def of_width(channels):
        return max(8, round(channels * width / 8) * 8)

    net, before = Network(seed), of_width(32)
    x = net.convolution("image", (3, before), 3, 2)
    for expansion, channels, blocks, stride in STAGES:
        for i in range(blocks):
            after = of_width(channels)
            x = net.block(x, (before, after), stride if i == 0 else 1, expansion)
            before = after
    last = of_width(1280) if width > 1 else 1280
    x = net.convolution(x, (before, last))
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x])], axis=1)
    w = net.weight("classifier.weight", classes, last, scale=last**-0.5)
    b = net.weight("classifier.bias", classes, scale=0.1)
    net.nodes.append(helper.make_node("Gemm", [x, w, b], ["scores"], name="gemm", transB=1))
    kind = onnx.TensorProto.FLOAT
    image = helper.make_tensor_value_info("image", kind, ["batch", 3, size, size])
    scores = helper.make_tensor_value_info("scores", kind, ["batch", classes])
    graph = helper.make_graph(net.nodes, "mobilenet", [image], [scores], net.arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=224)
    options = parser.parse_args()
    onnx.save(mobilenet(options.width, options.size), options.file)


if __name__ == "__main__":
    main()
