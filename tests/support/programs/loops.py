"""Hand-written programs with control flow, on vectors of 6 float32."""

from gputensor.programs.function import Number
from tests.support.programs.builder import Builder, dense, program_data

SHAPE = (6,)


def _inputs(region, *names):
    return [region.input(name, "float32", SHAPE) for name in names]


def while_program():
    """Return `run(x, y, limit)`: x += y until the largest element reaches the limit."""
    build = Builder("run")
    x, y = _inputs(build, "x", "y")
    limit = build.input("limit", "float32", ())
    test, body = build.region("condition"), build.region("body")
    for region in (test, body):
        _inputs(region, "x", "y")
        region.input("limit", "float32", ())
    largest = test.reduce("max", dense(0, SHAPE), (0,))
    test.output(test.elementwise("lt", largest, dense(2, ()), shape=()))
    body.output(body.elementwise("add", dense(0, SHAPE), dense(1, SHAPE)))
    out = build.value("temporary", "float32", SHAPE)
    regions = test.function, body.function
    build.call("while_loop", {}, [out], [x, y, limit], regions=regions)
    build.output(build.elementwise("mul", out, 1.0), out)
    return program_data(build)


def cond_program(rng):
    """Return (program, w) of `run(x)`: x + 1 if x[0] < 0 else x * w, with a weight w."""
    build = Builder("run")
    (x,) = _inputs(build, "x")
    w = rng.standard_normal(SHAPE).astype("float32")
    first = dense(x.value, (), "float32")
    test = build.value("temporary", "bool", ())
    attributes = {"op": "lt", "compute": "float32"}
    build.call("elementwise", attributes, [test], [first, Number(0.0, "float32")])
    yes, no = build.region("yes"), build.region("no")
    (inside,) = _inputs(yes, "x")
    yes.output(yes.elementwise("add", inside, 1.0))
    (inside,) = _inputs(no, "x")
    no.output(no.elementwise("mul", inside, no.weight("w", w)))
    build.weights.update(no.weights)
    out = build.value("temporary", "float32", SHAPE)
    build.call("cond", {}, [out], [test, x], regions=(yes.function, no.function))
    build.output(out)
    return program_data(build), w


def fori_program(lower, upper):
    """Return `run(x, y)`: (x, y) = (y, x + index * y), upper - lower times."""
    build = Builder("run")
    x, y = _inputs(build, "x", "y")
    body = build.region("body")
    index = body.input("index", "int64", ())
    a, b = _inputs(body, "x", "y")
    scaled = body.elementwise("mul", index, b, shape=SHAPE)
    body.output(body.elementwise("mul", b, 1.0), body.elementwise("add", a, scaled))
    outs = [build.value("temporary", "float32", SHAPE) for _ in range(2)]
    attributes = {"lower": lower, "upper": upper}
    build.call("fori_loop", attributes, outs, [x, y], regions=(body.function,))
    build.output(*outs)
    return program_data(build)


def scan_program(length, reverse):
    """Return `run(x, rows, y)`: x = x * y + row for each row; results are x, and x of each turn."""
    build = Builder("run")
    (x,) = _inputs(build, "x")
    rows = build.input("rows", "float32", (length, *SHAPE))
    (y,) = _inputs(build, "y")
    body = build.region("body")
    a, row, factor = _inputs(body, "x", "row", "y")
    total = body.elementwise("add", body.elementwise("mul", a, factor), row)
    body.output(total, body.elementwise("mul", total, 1.0))
    last = build.value("temporary", "float32", SHAPE)
    stacked = build.value("temporary", "float32", (length, *SHAPE))
    attributes = {"length": length, "reverse": reverse, "carry": 1}
    build.call("scan", attributes, [last, stacked], [x, rows, y], regions=(body.function,))
    build.output(last, stacked)
    return program_data(build)
