"""Functions with the lifetimes of models: sizes and readers of their activations, layer by layer.

Only what a plan sees is real here: values, their bytes, and which call reads which.
"""

from gputensor.programs.function import Argument, Call, Function, Operand, Value


class Model:
    """Adds one call after the other; each makes one value of so many elements of 2 bytes."""

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

    def into(self, shape, base, *reads):
        """A write into a part of a value: its next version."""
        number = base[0]
        self.function.values.append(Value("temporary", self.function.values[number].nbytes))
        self.function.values[-1].base = number
        made = len(self.function.values) - 1
        call = Call(
            "elementwise", {}, (self._operand(made, shape),),
            tuple(self._operand(*read) for read in reads), (number,),
        )  # fmt: skip
        self.function.calls.append(call)
        return made, base[1]

    def end(self, *results):
        for index, (number, shape) in enumerate(results):
            self.function.outputs.append(Argument(str(index), self._operand(number, shape)))
        return self.function


def mlp(batch=1024):
    model = Model("mlp")
    x = model.input(batch, 784)
    for width in (2048, 1024, 512, 512, 128):
        x = model.op((batch, width), x)
        x = model.op((batch, width), x)
    return model.end(model.op((batch, 10), x))


def heat():
    model = Model("heat")
    u = model.input(1024, 1024)
    for _step in range(20):
        new = model.op((1024, 1024), u)
        inner = (1022, 1022)
        a = model.op(inner, u, u)
        a = model.op(inner, a, u)
        a = model.op(inner, a, u)
        c = model.op(inner, u)
        a = model.op(inner, a, c)
        a = model.op(inner, a)
        u = model.into(inner, new, u, a)
    return model.end(model.op((1024, 1024), u))


def norm(model, x):
    rows, width = x[1]
    mean = model.op((rows, 1), x)
    centred = model.op((rows, width), x, mean)
    square = model.op((rows, width), centred, centred)
    variance = model.op((rows, 1), square)
    scale = model.op((rows, 1), variance)
    scaled = model.op((rows, width), centred, scale)
    return model.op((rows, width), scaled)


def attention(model, x, heads, width, memory=None):
    rows = x[1][0]
    memory = memory or x
    q, k, v = (model.op((y[1][0], width), y) for y in (x, memory, memory))
    keys = memory[1][0]
    scores = model.op((heads, rows, keys), q, k)
    scores = model.op((heads, rows, keys), scores)
    largest = model.op((heads, rows, 1), scores)
    powers = model.op((heads, rows, keys), scores, largest)
    total = model.op((heads, rows, 1), powers)
    shares = model.op((heads, rows, keys), powers, total)
    joined = model.op((rows, width), model.op((rows, width), shares, v))
    return model.op((rows, width), joined)


def encoder(name="minilm", rows=512, width=384, layers=6, heads=12, inner=1536):
    model = Model(name)
    tokens = model.input(rows, 1)
    x = model.op((rows, width), tokens)
    x = norm(model, x)
    for _layer in range(layers):
        a = attention(model, x, heads, width)
        x = norm(model, model.op((rows, width), a, x))
        h = model.op((rows, inner), x)
        h = model.op((rows, inner), h, model.op((rows, inner), h))
        x = norm(model, model.op((rows, width), model.op((rows, width), h), x))
    return model.end(model.op((1, width), x))


def llama(name, rows, length, layers=8, width=1024, heads=16, few=4, inner=2816):
    model = Model(name)
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


def resnet():
    model = Model("resnet50")
    x = model.input(3, 224, 224)
    x = model.op((64, 112, 112), x)
    x = model.op((64, 112, 112), x)
    x = model.op((64, 56, 56), x)
    side, width = 56, 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            first = stage > 0 and block == 0
            large, side = side, side // 2 if first else side
            short = x
            if block == 0:
                short = model.op((4 * width, side, side), model.op((4 * width, side, side), x))
            y = model.op((width, large, large), model.op((width, large, large), x))
            y = model.op((width, side, side), model.op((width, side, side), y))
            y = model.op((4 * width, side, side), y)
            y = model.op((4 * width, side, side), y)
            y = model.op((4 * width, side, side), y, short)
            x = model.op((4 * width, side, side), y)
        width *= 2
    x = model.op((width * 2,), x)
    return model.end(model.op((1000,), x))


def mobilenet():
    model = Model("mobilenet")
    x = model.op((32, 112, 112), model.input(3, 224, 224))
    side, width = 112, 32
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
             (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
    for factor, out, count, stride in table:
        for block in range(count):
            step = stride if block == 0 else 1
            y = model.op((width * factor, side, side), x)
            y = model.op((width * factor, side, side), y)
            side //= step
            y = model.op((width * factor, side, side), y)
            y = model.op((width * factor, side, side), y)
            y = model.op((out, side, side), y)
            x = model.op((out, side, side), y, x) if step == 1 and width == out else y
            width = out
    x = model.op((1280, 7, 7), x)
    return model.end(model.op((1000,), model.op((1280,), x)))


def unet():
    model = Model("unet")
    x = model.op((64, 512, 512), model.input(3, 512, 512))
    skips, side, width = [], 512, 64
    for _level in range(4):
        x = model.op((width, side, side), model.op((width, side, side), x))
        skips.append(x)
        side //= 2
        x = model.op((width, side, side), x)
        width *= 2
        x = model.op((width, side, side), x)
    for skip in reversed(skips):
        side, width = side * 2, width // 2
        x = model.op((width, side, side), x)
        both = model.op((2 * width, side, side))
        both = model.into((width, side, side), both, skip)
        both = model.into((width, side, side), both, x)
        x = model.op((width, side, side), both)
        x = model.op((width, side, side), x)
    return model.end(model.op((2, 512, 512), x))


def densenet():
    model = Model("densenet")
    x = model.op((64, 56, 56), model.op((64, 112, 112), model.input(3, 224, 224)))
    side = 56
    for layers in (6, 12, 24, 16):
        parts = [x]
        for _layer in range(layers):
            width = sum(part[1][0] for part in parts)
            joined = model.op((width, side, side), *parts)
            y = model.op((width, side, side), joined)
            y = model.op((128, side, side), y)
            parts.append(model.op((32, side, side), model.op((128, side, side), y)))
        width = sum(part[1][0] for part in parts)
        x = model.op((width // 2, side, side), model.op((width, side, side), *parts))
        side //= 2
        x = model.op((width // 2, side, side), x)
    return model.end(model.op((1000,), x))


def whisper():
    model = Model("whisper")
    mel = model.input(80, 3000)
    x = model.op((3000, 512), model.op((3000, 512), mel))
    x = model.op((1500, 512), model.op((1500, 512), x))
    x = model.op((1500, 512), x)
    for _layer in range(6):
        a = attention(model, norm(model, x), 8, 512)
        x = model.op((1500, 512), a, x)
        h = model.op((1500, 2048), model.op((1500, 2048), norm(model, x)))
        x = model.op((1500, 512), h, x)
    memory = norm(model, x)
    y = model.op((64, 512), mel)
    for _layer in range(6):
        y = model.op((64, 512), attention(model, norm(model, y), 8, 512), y)
        y = model.op((64, 512), attention(model, norm(model, y), 8, 512, memory), y)
        h = model.op((64, 2048), model.op((64, 2048), norm(model, y)))
        y = model.op((64, 512), h, y)
    return model.end(model.op((64, 51865), norm(model, y)))


def recurrent(steps=40, batch=64, width=700):
    model = Model("lstm")
    xs = model.input(steps, batch, 300)
    state, cell = model.op((batch, width)), model.op((batch, width))
    results = []
    for _step in range(steps):
        x = model.op((batch, 300), xs)
        gates = model.op((batch, 4 * width), model.op((batch, 4 * width), x), state)
        parts = [model.op((batch, width), gates) for _part in range(4)]
        cell = model.op((batch, width), model.op((batch, width), parts[0], cell), *parts[1:3])
        state = model.op((batch, width), parts[3], cell)
        results.append(state)
    return model.end(model.op((steps, batch, width), *results))


def models():
    """Ten functions."""
    return [
        mlp(), heat(), encoder(), llama("decode", 1, 1024), llama("prefill", 300, 300), resnet(),
        mobilenet(), unet(), densenet(), whisper(), recurrent(),
    ]  # fmt: skip
