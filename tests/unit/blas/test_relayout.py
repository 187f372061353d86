"""The relayout program, run on the CPU: the same text, compiled as C++ with a model of the GPU's
launch around it. Elements beyond the source become zeros; bytes outside the target rows stay
unchanged."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from gputensor.blas.kernels.programs import relayout as relayout_program

MODEL = """
#include <cstdint>
#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(n)
struct Dim3 {{ unsigned x, y, z; }};
static Dim3 gridDim, blockDim, blockIdx, threadIdx;
struct uint4 {{ unsigned x, y, z, w; }};
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {{
    uint64_t both = (uint64_t)high << 32 | low;
    return (unsigned)(both >> (shift & 31));
}}
{source}
extern "C" void run(const Parameters* p, unsigned blocks, unsigned threads) {{
    gridDim = {{blocks, 1, 1}};
    blockDim = {{threads, 1, 1}};
    for (unsigned b = 0; b < blocks; ++b)
        for (unsigned t = 0; t < threads; ++t) {{
            blockIdx = {{b, 0, 0}};
            threadIdx = {{t, 0, 0}};
            kernel(*p);
        }}
}}
"""


class Piece(ctypes.Structure):
    _fields_ = [
        ("source", ctypes.c_uint64),
        ("target", ctypes.c_uint64),
        ("source_pitch", ctypes.c_int64),
        ("target_pitch", ctypes.c_int64),
        ("source_batch", ctypes.c_int64),
        ("target_batch", ctypes.c_int64),
        ("row_nbytes", ctypes.c_int64),
        ("source_nbytes", ctypes.c_int64),
        ("rows", ctypes.c_uint64),
        ("source_rows", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
    ]


class Parameters(ctypes.Structure):
    _fields_ = [
        ("pieces", Piece * 3),
        ("total", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("step", ctypes.c_uint32),
    ]


@pytest.fixture(scope="module")
def relayout(tmp_path_factory):
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("relayout")
    source = folder / "relayout.cpp"
    source.write_text(MODEL.format(source=relayout_program().text()))
    library = folder / "relayout.so"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True
    )
    return ctypes.CDLL(str(library)).run


def random_piece(rng, dtype):
    """One matrix batch in a source buffer, a target buffer, and the expected target."""
    item = np.dtype(dtype).itemsize
    batch, rows, length = (int(rng.integers(1, n)) for n in (4, 6, 40))
    # The target may be wider and longer than the source, or cut it off.
    sizes = [
        (rows, length),
        (max(1, rows + int(rng.integers(-2, 4))), max(1, length + int(rng.integers(-3, 12)))),
    ]
    if rng.random() < 0.3:
        sizes[1] = sizes[0]
    buffers, views = [], []
    for rows, length in sizes:
        pitch = length + int(rng.integers(0, 10))
        step = rows * pitch + int(rng.integers(0, 5))
        offset = int(rng.integers(0, 9))
        buffer = rng.integers(0, 256, (offset + batch * step + 16) * item, dtype=np.uint8)
        flat = buffer.view(dtype)
        view = np.lib.stride_tricks.as_strided(
            flat[offset:], (batch, rows, length), [s * item for s in (step, pitch, 1)]
        )
        buffers.append(buffer)
        views.append(view)
    source, target = views
    piece = Piece(
        source=source.ctypes.data,
        target=target.ctypes.data,
        source_pitch=source.strides[1],
        target_pitch=target.strides[1],
        source_batch=source.strides[0],
        target_batch=target.strides[0],
        row_nbytes=length * item,
        source_nbytes=source.shape[2] * item,
        rows=rows,
        source_rows=source.shape[1],
        blocks=-(-length * item // 16) + 1,
    )
    return piece, batch, source, target, buffers


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_matrices_of_any_alignment_arrive_and_nothing_else_changes(relayout, dtype):
    rng = np.random.default_rng()
    for _ in range(60):
        count = int(rng.integers(1, 4))
        parameters = Parameters(count=count, step=np.dtype(dtype).itemsize)
        kept = []
        for index in range(count):
            piece, batch, source, target, buffers = random_piece(rng, dtype)
            parameters.total += piece.blocks * piece.rows * batch
            piece.last = parameters.total
            parameters.pieces[index] = piece
            model = buffers[1].copy()
            start = target.ctypes.data - buffers[1].ctypes.data
            expected = np.zeros(target.shape, dtype)
            rows, length = (min(source.shape[i], target.shape[i]) for i in (1, 2))
            expected[:, :rows, :length] = source[:, :rows, :length]
            np.lib.stride_tricks.as_strided(
                model[start:].view(np.uint8),
                (*target.shape[:2], target.shape[2] * target.itemsize),
                (*target.strides[:2], 1),
            )[...] = expected.view(np.uint8).reshape(*target.shape[:2], -1)
            kept.append((buffers, model))
        relayout(ctypes.byref(parameters), 3, 32)
        for buffers, model in kept:
            np.testing.assert_array_equal(buffers[1], model)
