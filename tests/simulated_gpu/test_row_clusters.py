"""Rows that the blocks of a cluster share, fetched ahead, or read from a cache, on the CPU.

The simulated GPU has no clusters, and too little time for the many rows that are read from a cache.
So the kernel is compiled and run here by itself: the threads of all blocks of a cluster take turns.
"""

import ctypes

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels import row_program
from gputensor._kernels.formula import formula
from tests.support import kernel_compiler
from tests.support.row_checks import DTYPES, close
from tests.support.rows import row_variants

X, W, B = (("load", i) for i in range(3))
AWAY = ("sub", X, ("fold", "mean", X))
POWERS = ("exp", ("sub", X, ("fold", "max", X)))
SOFTMAX = ("mul", POWERS, ("div", ("number", 1.0), ("fold", "sum", POWERS)))
NORM = ("mul", AWAY, ("rsqrt", ("fold", "mean", ("mul", AWAY, AWAY))))
TREES = {
    "softmax": SOFTMAX,
    "layer_norm": ("add", ("mul", NORM, W), B),
    "rms_norm": ("mul", ("mul", X, ("rsqrt", ("fold", "mean", ("mul", X, X)))), W),
    "three levels": ("mul", SOFTMAX, ("fold", "max", ("mul", SOFTMAX, SOFTMAX))),
}
CODES = {"bfloat16": 10, "float32": 11, "float64": 12}


def exact(name, x, w, b):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    softmax = powers / powers.sum(axis=1, keepdims=True)
    away = x - x.mean(axis=1, keepdims=True)
    norm = away / np.sqrt((away * away).mean(axis=1, keepdims=True))
    rms = x / np.sqrt((x * x).mean(axis=1, keepdims=True)) * w
    return {"softmax": softmax, "rms_norm": rms, "layer_norm": norm * w + b,
            "three levels": softmax * (softmax**2).max(axis=1, keepdims=True)}[name]  # fmt: skip


def run(tmp_path, tree, given, out, clusters, **variant):
    """Run the kernel of a formula; operands of two axes have rows, others only columns."""
    operands, (rows, columns) = [*given, out], out.shape
    codes = tuple(CODES[one.dtype.name] for one in operands)
    fixed = row_program.FIXED if variant.get("fixed") else row_program.UNIT
    modes = tuple(row_program.UNIT if one.ndim == 2 else fixed for one in operands)
    program = row_program.program(formula([tree]), {
        **row_variants.PLAIN, "dtypes": codes, "modes": modes, "rows": 1, "kept_axes": 1,
        "is_double": 12 in codes, **variant,
    })  # fmt: skip
    image = tmp_path / "kernel.so"
    image.write_bytes(kernel_compiler.compile_source(program.text(), "")[8:])
    for library in kernel_compiler.LIBRARIES:
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(image))
    parameters = np.zeros(15 + 2 * 13, np.int64)  # RowParameters with an axis of columns, of rows
    parameters[12:15], parameters[15], parameters[28] = (rows, columns, 1), columns, rows
    for i, one in enumerate(operands):
        parameters[i], parameters[16 + i] = one.ctypes.data, 1
        parameters[29 + i] = columns if one.ndim == 2 else 0
    assert library.parameters_nbytes() == parameters.nbytes
    blocks, height = clusters * variant.get("cluster", 1), variant.get("rows", 1)
    sizes = [(ctypes.c_uint * 3)(blocks, 1, 1), (ctypes.c_uint * 3)(variant["lanes"], height, 1)]
    library.run(*sizes, parameters.ctypes.data_as(ctypes.c_void_p))


@pytest.mark.parametrize(
    ("name", "dtype", "cluster", "units", "ahead", "fixed", "missing"),
    [
        ("softmax", "bfloat16", 4, 2, 1, 0, 40),
        ("layer_norm", "float32", 2, 3, 1, 2, 0),
        ("layer_norm", "float32", 16, 1, 1, 1, 300),
        ("layer_norm", "float64", 4, 2, 0, 0, 12),
        ("three levels", "float32", 8, 1, 1, 0, 0),
    ],
)
def test_clusters(name, dtype, cluster, units, ahead, fixed, missing, rng, tmp_path):
    vector = 16 // DTYPES[dtype].itemsize
    columns = vector * (cluster * 64 * units - missing)
    rows, clusters = (7, 2) if ahead else (3, 3)  # ahead: clusters take a row after another one
    check(tmp_path, rng, name, dtype, (rows, columns), clusters, vector=vector, units=units,
          lanes=64, cluster=cluster, full=int(missing == 0), ahead=ahead, fixed=fixed)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype", "rows", "lanes", "units", "columns", "cached"),
    [
        ("softmax", "float32", 1, 64, 2, 2 * 64 * 2 * 4, 3),
        ("softmax", "bfloat16", 1, 32, 4, 32 * 4 * 8, 4),
        ("rms_norm", "float32", 1, 32, 8, 2 * 32 * 8 * 4, 1),
        ("rms_norm", "bfloat16", 1, 64, 2, 2 * 64 * 2 * 8, 2),
        ("layer_norm", "bfloat16", 1, 32, 4, 2 * 32 * 4 * 8, 1),
        ("rms_norm", "float32", 2, 32, 2, 32 * 2 * 4, 0),
        ("layer_norm", "float32", 4, 8, 9, 8 * 9 * 4, 0),  # weights of 8 units, and of one
        ("layer_norm", "bfloat16", 4, 8, 3, 8 * 3 * 8 - 8, 0),
        ("layer_norm", "float64", 2, 32, 4, 32 * 4 * 2, 0),
    ],
)
def test_blocks(name, dtype, rows, lanes, units, columns, cached, rng, tmp_path):
    """Rows that are read again from the first cache, and weights that are loaded together."""
    vector = 16 // DTYPES[dtype].itemsize
    full = int(columns % (vector * lanes * units) == 0)
    check(tmp_path, rng, name, dtype, (5, columns), (5 + rows - 1) // rows, vector=vector,
          units=units, lanes=lanes, rows=rows, cached=cached, loop=int(cached > 0),
          together=int(cached == 0), full=full)  # fmt: skip


def check(tmp_path, rng, name, dtype, shape, clusters, **variant):
    x = (rng.standard_normal(shape) * 2 + 1).astype(DTYPES[dtype])
    columns = shape[1]
    x[0, : columns // 3] = -50
    given = [x, *(rng.standard_normal(columns).astype(DTYPES[dtype]) for _ in range(2))]
    given = given[: {"layer_norm": 3, "rms_norm": 2}.get(name, 1)]
    out = np.full(x.shape, np.nan, DTYPES[dtype])
    run(tmp_path, TREES[name], given, out, clusters, **variant)
    wide = [one.astype(np.float64) for one in (*given, np.zeros(1), np.zeros(1))[:3]]
    want = exact(name, *wide)
    scale = 400 * (np.abs(want) + np.abs(wide[1]) + np.abs(wide[2]))
    close(name, gt.asarray(out, device="host"), want, dtype, scale)
