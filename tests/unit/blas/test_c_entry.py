"""gputensor_mm_out, called on host memory as a compiled program calls it."""

import ctypes
import os
import re
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from gputensor.blas import foreign as c_entry

FORM = re.compile(r"\w+: got [^\n]+; expected [^\n]+$")

OK, INVALID = 0, 1


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


CODES = {"float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16), "float64": (2, 64)}
library = ctypes.CDLL(c_entry.library_path())
library.gputensor_mm_out.argtypes = [ctypes.POINTER(DLTensor)] * 3 + [ctypes.c_void_p]
library.gputensor_last_error.restype = ctypes.c_char_p


def dl(array, *, compact=False):
    """A DLTensor over an array; the array must outlive it."""
    code, bits = CODES[array.dtype.name]
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
    return DLTensor(
        data=array.ctypes.data,
        device=Device(1, 0),
        ndim=array.ndim,
        dtype=DataType(code, bits, 1),
        shape=shape,
        strides=None if compact else strides,
        byte_offset=0,
    )


def mm(out, a, b):
    tensors = [x if isinstance(x, DLTensor) else dl(x) for x in (out, a, b)]
    return library.gputensor_mm_out(*(ctypes.byref(t) for t in tensors), None)


def error():
    return library.gputensor_last_error().decode()


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
def test_products_of_any_unit_stride_layout(name):
    rng = np.random.default_rng()
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    for _ in range(20):
        m, k, n = (int(x) for x in rng.integers(1, 30, 3))
        arrays = []
        for rows, columns in ((m, n), (m, k), (k, n)):
            array = rng.standard_normal((rows, columns + 3)).astype(dtype)[:, :columns]
            if rng.random() < 0.5:
                array = rng.standard_normal((columns, rows + 1)).astype(dtype)[:, :rows].T
            arrays.append(array)
        out, a, b = arrays
        out[...] = np.nan
        assert mm(out, a, b) == OK, error()
        exact = a.astype(np.float64) @ b.astype(np.float64)
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        unit = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}[name]
        limit = ((k + 2) * 2.0**-24 + 1.01 * unit) * size + 1e-7
        assert np.all(np.abs(out.astype(np.float64) - exact) <= limit)


def test_null_strides_are_row_major():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = np.full((2, 2), np.nan, np.float32)
    assert mm(dl(out, compact=True), dl(a, compact=True), a.T) == OK
    np.testing.assert_array_equal(out, a @ a.T)


def test_empty_results_and_sums_of_no_terms():
    a = np.ones((0, 3), np.float32)
    assert mm(np.ones((0, 2), np.float32), a, np.ones((3, 2), np.float32)) == OK
    out = np.full((2, 2), np.nan, np.float32)
    assert mm(out, np.ones((2, 0), np.float32), np.ones((0, 2), np.float32)) == OK
    np.testing.assert_array_equal(out, np.zeros((2, 2)))


def test_every_breach_of_the_contract_is_named():
    ok = np.ones((2, 2), np.float32)
    other = np.ones((2, 2), np.float32)
    out = np.ones((2, 2), np.float32)
    cases = [
        ((out, np.ones((2, 3), np.float32), other), "shapes: got"),
        ((out, ok.astype(np.float16), other), "one element type"),
        ((out.astype(np.float64), ok.astype(np.float64), ok.astype(np.float64)), "element type"),
        (
            (out, np.ones((1, 2, 2), np.float32), other),
            "self: got another number of dim",
        ),
        ((ok, ok, other), "out: got memory that it shares"),
        ((np.broadcast_to(out[:1], (2, 2)), ok, other), "stride of 0 in out"),
        # NumPy accepts all of these, a GPU none.
        ((out[::-1], ok, other), "no unit stride"),
        ((out, np.ones((2, 4), np.float32)[:, ::2], other), "no unit stride"),
        ((out, ok, np.broadcast_to(other[:1], (2, 2))), "rows that overlap"),
    ]
    for arguments, text in cases:
        assert mm(*arguments) == INVALID
        assert text in error() and FORM.match(error())
    far = dl(ok)
    far.device = Device(2, 0)
    assert mm(out, far, other) == INVALID
    assert "one device" in error()
    far.device = Device(7, 0)
    assert mm(far, far, far) == INVALID and FORM.match(error())
    assert library.gputensor_mm_out(None, None, None, None) == INVALID
    assert "NULL" in error()
    assert mm(out, ok, other) == OK
    assert error() == ""


@pytest.mark.parametrize("number", [-1, -2, -40, 32, 40, 1_000_000, 2**31 - 48, -(2**31)])
def test_an_impossible_device_is_named(number):
    tensors = [dl(np.ones((2, 2), np.float32)) for _ in range(3)]
    for tensor in tensors:
        tensor.device = Device(2, number)
    assert mm(*tensors) == INVALID
    assert error() == f"device: got {number}; expected the number of a CUDA device"


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("device", [Device(1, 0), Device(2, 0)], ids=["host", "cuda"])
@pytest.mark.parametrize("which", range(3))
def test_a_bad_address_of_elements_is_named(name, device, which):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    arrays = [np.ones((2, 2), dtype) for _ in range(3)]
    tensors = [dl(array) for array in arrays]
    for tensor in tensors:
        tensor.device = device
    tensors[which].byte_offset = dtype.itemsize // 2
    assert mm(*tensors) == INVALID
    name = ("out", "self", "mat2")[which]
    assert error() == f"{name}: got an odd address; expected a multiple of the element's size"
    tensors[which].data = None
    tensors[which].byte_offset = 0
    assert mm(*tensors) == INVALID
    assert error().startswith(f"{name}: got the data NULL; expected ")
    tensors[which].shape = None
    assert mm(*tensors) == INVALID and FORM.match(error())


def test_an_empty_tensor_needs_no_address():
    out = np.full((2, 2), np.nan, np.float32)
    left, right = dl(np.ones((2, 0), np.float32)), dl(np.ones((0, 2), np.float32))
    left.data = right.data = None
    assert mm(out, left, right) == OK, error()
    np.testing.assert_array_equal(out, np.zeros((2, 2)))


def test_adjacent_views_of_one_buffer_do_not_overlap():
    buffer = np.ones((4, 12), np.float32)
    a, b, out = buffer[:, :4], np.eye(4, dtype=np.float32), buffer[:, 8:]
    out[...] = np.nan
    assert mm(out, a, b) == OK, error()
    np.testing.assert_array_equal(out, a)
    assert mm(buffer[:, 2:6], a, b) == INVALID


def test_threads_get_exact_results_and_their_own_errors():
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for turn in range(200):
            a = rng.integers(-8, 9, (5, 6)).astype(np.float32)
            b = rng.integers(-8, 9, (6, 4)).astype(np.float32)
            out = np.full((5, 4), np.nan, np.float32)
            if mm(out, a, b) != OK or not np.array_equal(out, a @ b):
                failures.append((seed, turn))
            if turn % 10 == seed % 10 and (mm(out, a, a) != INVALID or "shapes" not in error()):
                failures.append((seed, turn, "error"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_product_before_the_import_is_an_error_and_no_crash():
    code = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.gputensor_last_error.restype = ctypes.c_char_p
assert "gputensor" not in sys.modules
print(library.gputensor_mm_out(None, None, None, None), library.gputensor_last_error().decode())
import gputensor.blas.foreign
print(library.gputensor_mm_out(None, None, None, None))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, c_entry.library_path()],
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("3 ") and "has not been imported" in first
    assert second == "1"


CALLER = """
#include <stdint.h>
extern "C" int gputensor_mm_out(void* out, const void* self, const void* mat2, void* stream);
extern "C" int model(void* out, const void* x, const void* w) {
    return gputensor_mm_out(out, x, w, nullptr);
}
"""


@pytest.mark.parametrize("is_linked", [True, False])
def test_a_compiled_library_calls_the_product(is_linked, tmp_path, rng):
    """Linked to the extension, or with a symbol that the process provides."""
    (tmp_path / "model.cpp").write_text(CALLER)
    path = c_entry.library_path()
    link = [path, f"-Wl,-rpath,{os.path.dirname(path)}"] if is_linked else []
    command = ["c++", "-shared", "-fPIC", "model.cpp", "-o", "model.so", *link]
    subprocess.run(command, check=True, cwd=tmp_path)
    if not is_linked:
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    model = ctypes.CDLL(str(tmp_path / "model.so")).model
    x, w = rng.standard_normal((3, 5), np.float32), rng.standard_normal((5, 2), np.float32)
    out = np.full((3, 2), np.nan, np.float32)
    assert model(*(ctypes.byref(dl(one)) for one in (out, x, w))) == OK, error()
    np.testing.assert_allclose(out, x @ w, rtol=1e-4, atol=1e-5)
