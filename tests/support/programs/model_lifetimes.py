"""The lifetimes of a decoder whose norms, attention and products consist of many calls each.

Only the inputs of a plan are realistic: values, their bytes, and which call reads which. For some
of these sizes the first packing orders of a plan leave a gap, which its search has to close.
"""

from gputensor.programs.function import Argument, Call, Function, Operand, Value


class Model:
    """Adds one call after the other; each makes one value of float16."""

    def __init__(self, name):
        self.function = Function(name)
        self.made = 0

    def input(self, *shape):
        number = self._value("input", shape)
        operand = self._operand(number, shape)
        self.function.inputs.append(Argument(f"x{number}", operand))
        return number, shape

    def _value(self, kind, shape):
        size = 2
        for extent in shape:
            size *= extent
        self.function.values.append(Value(kind, size, f"v{len(self.function.values)}"))
        return len(self.function.values) - 1

    def _operand(self, number, shape):
        return Operand(number, "float16", tuple(shape), (1,) * len(shape))

    def op(self, shape, *reads):
        number = self._value("temporary", shape)
        self.function.values[number].name = ""
        call = Call(
            "elementwise", {}, (self._operand(number, shape),),
            tuple(self._operand(*read) for read in reads), (None,),
        )  # fmt: skip
        self.function.calls.append(call)
        return number, shape

    def end(self, *results):
        for index, (number, shape) in enumerate(results):
            self.function.outputs.append(Argument(str(index), self._operand(number, shape)))
        return self.function


def norm(model, x):
    rows, width = x[1]
    mean = model.op((rows, 1), x)
    centred = model.op((rows, width), x, mean)
    square = model.op((rows, width), centred, centred)
    variance = model.op((rows, 1), square)
    scale = model.op((rows, 1), variance)
    scaled = model.op((rows, width), centred, scale)
    return model.op((rows, width), scaled)


def decoder(rows, length, layers=8, width=1024, heads=16, few=4, inner=2816):
    """Return the function of `rows` tokens that attend to `length` tokens."""
    model = Model("decoder")
    tokens = model.input(rows, 4)
    x = model.op((rows, width), tokens)
    angles = model.op((rows, 64), tokens)
    for _layer in range(layers):
        y = norm(model, x)
        qkv = model.op((rows, width + 2 * few * 64), y)
        q = model.op((rows, width), qkv, angles)
        k = model.op((rows, few * 64), qkv, angles)
        model.op((rows, few * 64), k)
        scores = model.op((heads, rows, length), q, k)
        scores = model.op((heads, rows, length), scores)
        total = model.op((heads, rows, 1), scores)
        scores = model.op((heads, rows, length), scores, total)
        a = model.op((rows, width), scores, qkv)
        x = model.op((rows, width), a, x)
        y = norm(model, x)
        both = model.op((rows, 2 * inner), y)
        gate = model.op((rows, inner), both)
        h = model.op((rows, inner), gate, both)
        x = model.op((rows, width), h, x)
    last = norm(model, model.op((1, width), x))
    return model.end(model.op((1, 32000), last))
