"""A small hand-written function: a write to a row of a cache, a region, dims, a number."""

from gputensor.programs.dims import Dim, mul
from gputensor.programs.function import (
    Argument,
    Call,
    Function,
    Number,
    Operand,
    ProgramData,
    Value,
    Weight,
)

N = ("dim", "n")
PRODUCT = {
    "alpha": 1.0, "beta": 0.0, "activation": None, "conj_a": False, "conj_b": False, "precision": 0,
}  # fmt: skip


def dense(value, shape, dtype="float32", offset=0):
    """Return a whole value as a row-major array."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step = mul(step, extent)
    return Operand(value, dtype, tuple(shape), tuple(reversed(strides)), offset)


def example_program():
    """Return `decode(x: f32[n,4])` with one cache as state, and a loop of n turns."""
    body = Function("body")
    body.values = [
        Value("input", 8, "index"),
        Value("input", mul(16, N), "carry"),
        Value("temporary", mul(16, N)),
    ]
    body.inputs = [
        Argument("index", dense(0, (), "int64")),
        Argument("carry", dense(1, (N, 4))),
    ]
    body.calls = [
        Call(
            "elementwise",
            {"op": "mul", "compute": "float32"},
            (dense(2, (N, 4)),),
            (dense(1, (N, 4)), Number(0.5, "float32")),
            (None,),
            line="model.py:9",
        )
    ]
    body.outputs = [Argument("0", dense(2, (N, 4)))]

    function = Function("decode", dims={"n": Dim("n", 1, 64)})
    function.values = [
        Value("input", mul(16, N), "x"),
        Value("weight", 64, "w"),
        Value("state", 4096, "cache"),
        Value("temporary", mul(16, N)),
        Value("state", 4096, base=2),
        Value("temporary", mul(16, N)),
    ]
    function.inputs = [Argument("x", dense(0, (N, 4)))]
    row = Operand(4, "float32", (N, 4), (4, 1), 256)
    turned = Operand(1, "float32", (4, 4), (1, 4))
    function.calls = [
        Call(
            "product",
            dict(PRODUCT),
            (dense(3, (N, 4)),),
            (dense(0, (N, 4)), turned, None, None, None, None),
            (None,),
            line="model.py:7",
        ),
        Call(
            "elementwise",
            {"op": "copy", "compute": "float32"},
            (row,),
            (dense(3, (N, 4)),),
            (2,),
            1,
            "model.py:8",
        ),
        Call(
            "fori_loop",
            {"lower": 0, "upper": N},
            (dense(5, (N, 4)),),
            (dense(3, (N, 4)),),
            (None,),
            0,
            "model.py:9",
            (body,),
        ),
    ]
    function.states = {"cache": (2, 4)}
    function.outputs = [Argument("0", dense(5, (N, 4)))]
    return ProgramData(
        {"decode": function},
        {"w": Weight("w", "float32", (4, 4))},
        {"cache": ("float32", (256, 4))},
    )
