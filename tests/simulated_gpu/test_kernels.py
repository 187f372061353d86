"""The CUDA executor launch by launch: layouts, keys, parameter structs and kernel text.

Properties that only a GPU has (its arithmetic, memory coalescing, speed) are tested in tests/gpu.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from gputensor._kernels import programs
from gputensor._kernels.launch import loaded_programs
from gputensor.errors import DeviceError
from tests.support import device_array, kernel_compiler, refused_calls
from tests.support import kernel_checks as checks
from tests.support.device_array import DeviceArray

DEVICE = 0


def test_elementwise(rng):
    ops = [("add", 9), ("where", 11), ("floordiv", 1), ("pow", 13), ("gelu", 10), ("igammac", 12)]
    for name, code in ops:
        checks.check_operation(DEVICE, name, code, rng)
    checks.check_operation(DEVICE, "sub", 9, rng, scalars=(1,))
    for source, target in [(11, 9), (12, 15), (9, 16), (13, 0), (15, 5)]:
        checks.check_cast(DEVICE, source, target, rng)


def test_layouts(rng):
    kinds = [("contiguous", "broadcast"), ("padded", "padded"), ("reversed", "sliced")]
    kinds += [("transposed", "transposed"), ("sliced", "contiguous")]
    for pair in kinds:
        for shape in [(8, 64), (3, 5, 7)]:
            checks.check_layouts(DEVICE, 11, rng, shape, pair)
    for offset in (4, 8):
        checks.check_layouts(DEVICE, 11, rng, (70,), ("contiguous",) * 2, offset=offset)
    checks.check_copy(DEVICE, 9, rng, (70, 130), (1, 0))
    checks.check_copy(DEVICE, 11, rng, (3, 40, 5, 33), (3, 0, 2, 1))


def test_steps(rng):
    """Elements a few apart, also backwards, in vectors and with single elements at the end."""
    for code, steps in [(9, (2,)), (10, (2, 1)), (1, (3,)), (9, (-1, 4)), (5, (-2,))]:
        rows, columns = int(rng.integers(1, 5)), 8 * int(rng.integers(1, 9))
        checks.check_spaced(DEVICE, code, rng, (rows, columns), steps)
    checks.check_spaced(DEVICE, 9, rng, ((1 << 20) + int(rng.integers(1, 99)),), (2,))


@pytest.mark.process(FAKE_CUDA_MULTIPROCESSORS="1")
def test_transpositions_in_chunks(rng):
    for code, edge in [(1, 128), (9, 128), (11, 128), (int(rng.choice([1, 9, 11])), 256)]:
        checks.check_turned(DEVICE, code, rng, edge)
        used = {("IN_CHUNKS", 1), ("COLUMNS", edge // DTYPES[code].itemsize)}
        assert any(used <= set(program.defines) for program in loaded_programs(DEVICE))


def test_reductions(rng):
    cases = [("sum", (9000,), (0,)), ("max", (37, 53), (0,)), ("argmin", (37, 53), (0, 1))]
    cases += [
        ("sum", (9000, 3), (0,)),
        ("mean", (3, 9001), (1,)),
        ("var", (3, 9001), (1,)),
        ("var", (9000, 3), (0,)),
        ("argmax", (3, 40000), (1,)),
    ]
    cases += [("sum", (5, 64, 6), (0, 2)), ("prod", (700, 4), (1,)), ("any", (64, 64), (1,))]
    for name, shape, axes in cases:
        checks.check_reduction(DEVICE, name, 11, rng, lambda x: x, shape, axes)
    checks.check_reduction(DEVICE, "sum", 9, rng, lambda x: x.T, (64, 80), (0,))
    checks.check_reduction(DEVICE, "max", 3, rng, lambda x: x[::-1, ::2], (24, 36), (1,))


def test_the_first_extreme_or_nan_has_the_position(rng):
    for dtype, values in (("float32", [np.nan, -0.0, 0.0, -np.inf]), ("int8", [-127, -128])):
        for shape in ((3, 9001), (700, 24)):
            a = rng.choice(np.array(values, dtype), shape)
            a[rng.random(shape) < 0.9] = values[-1]
            x = gt.asarray(a, device=DEVICE)
            for axis in (0, 1):
                for name in ("argmax", "argmin"):
                    got = getattr(gt, name)(x, axis=axis).numpy()
                    np.testing.assert_array_equal(got, getattr(np, name)(a, axis), (dtype, shape))


def hard_values(kind):
    """A few values of a dtype, so that equal ones are frequent."""
    if np.dtype(kind).kind in "iu":
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        return np.array([least, least + 1, least // 2, most // 2, most - 1, most], kind)
    if np.dtype(kind).kind == "b":
        return np.array([False, True])
    denormals = np.array([1, 0x8001], np.uint16).view(kind)
    return np.append(np.array([-np.inf, -2, -0.0, 0.0, 1, np.inf], kind), denormals)


SHORT = ("bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16")


@pytest.mark.parametrize("name", SHORT)
def test_arguments_of_short_elements(name, rng):
    """Rows and columns by vectors of each width, with a tail, and in parts."""
    kind = next(row.numpy for row in DTYPES if row.name == name)
    for rows, columns in [(3, 9016), (9001, 3), (700, 32), (500, 8), (70, 36), (5, 1002), (33, 5)]:
        some = rng.choice(hard_values(kind), rng.integers(1, 4))
        a = rng.choice(some, (rows, columns))
        a[rng.random(a.shape) < 0.9] = some[-1]
        if a.dtype.itemsize == 2 and name.endswith("float16") and rng.random() < 0.6:
            nans = np.array([0x7FFF, 0xFFC1], np.uint16).view(kind)
            a[rng.random(a.shape) < 0.001] = nans[0]
            a[rng.random(a.shape) < 0.001] = nans[1]
        x = gt.asarray(a, device=DEVICE)
        for axis in (0, 1, None):
            for function in ("argmax", "argmin"):
                got = getattr(gt, function)(x, axis=axis).numpy()
                expected = getattr(np, function)(a.astype(np.float32), axis)
                np.testing.assert_array_equal(got, expected, (function, axis, a.shape, some))


def test_variance_of_equal_and_large_values(rng):
    """Equal values have none; distances of large ones do not overflow."""
    for name in ("float16", "bfloat16", "float32", "float64"):
        kind = next(row.numpy for row in DTYPES if row.name == name)
        for shape in ((3, 9016), (700, 24), (41, 7)):
            most = 3e38 if name != "float16" else 6e4
            a = np.full(shape, rng.choice([most, -most, 1 / 3, 7e-5]), kind)
            x = gt.asarray(a, device=DEVICE)
            for axis in (0, 1, None):
                assert not gt.var(x, axis=axis).numpy().any(), (name, shape, axis)
            # Far from 0, next to each other.
            a = (1000 + 4 * rng.integers(0, 2, shape)).astype(kind)
            got = gt.var(gt.asarray(a, device=DEVICE), axis=1).numpy().astype(np.float64)
            expected = a.astype(np.float64).var(1)
            unit = 2.0 ** {"float16": -10, "bfloat16": -7}.get(name, -13)
            np.testing.assert_allclose(got, expected, unit, 1e-30, err_msg=str((name, shape)))


def test_indices(rng):
    checks.check_gather(DEVICE, 11, rng, (9, 50, 33), 1, [(4, 6)], index_code=3)
    checks.check_gather(DEVICE, 11, rng, (6, 7, 8, 9), 1, [(3,), (3,), (2, 1)])
    checks.check_arange(DEVICE, 9, 25, 3.0, 2.0)
    checks.check_arange(DEVICE, 2, 25, 3.0, -2.0)
    out = checks.empty_like_shape(10, (5, 7), DEVICE)
    for value in (0, 3.75):
        device_array.fill(out, value)
        assert np.all(out.numpy().astype(np.float64) == value)


@pytest.mark.parametrize("least", [1, 128, 129, 256, 385])
def test_last_elements_of_a_gather(rng, least):
    """Threads of the last block have all of their elements, some or none."""
    count = least + int(rng.integers(0, 127 if least % 2 else 1))
    source = rng.standard_normal((11, 13), dtype=np.float32)
    index = [rng.integers(-n, n, count) for n in source.shape]
    given = [DeviceArray.from_numpy(one, DEVICE) for one in (source, *index)]
    flat = given[0].view(11, (source.size,), (1,))
    for whole, indices, expected in [(given[0], given[1:], source[tuple(index)]),
                                     (flat, given[1:2], source.ravel()[index[0]])]:  # fmt: skip
        room = checks.empty_like_shape(11, (count + 600,), DEVICE)
        before = room.numpy()
        device_array.gather(room.view(11, (count,), (1,)), whole, 0, indices)
        after = room.numpy()
        assert after.tobytes() == expected.tobytes() + before[count:].tobytes()


ADD = """
import sys
import numpy as np
from tests.support import device_array
from tests.support.device_array import DeviceArray
from tests.support import kernel_checks as checks
from tests.support import kernel_compiler, refused_calls
kernel_compiler.install()
for _ in range(2):
    values = np.random.default_rng().standard_normal((64, 64)).astype(np.float32)
    a = DeviceArray.from_numpy(values, 0)
    out = checks.empty_like_shape(11, (64, 64), 0)
    if sys.argv[1] == "known":
        kernel_compiler.nvrtc.compile_source = None
    device_array.elementwise(4, 11, out, [a, a])
    np.testing.assert_array_equal(out.numpy(), 2 * values)
    kernel_compiler.nvrtc.compile_source = None
"""


@pytest.mark.orders("at-once")
def test_known_kernel_is_compiled_once_and_found_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTENSOR_KERNEL_CACHE", str(tmp_path))
    names = []
    for state in ("new", "known"):
        subprocess.run([sys.executable, "-c", ADD, state], check=True)
        names.append(sorted(path.name for path in tmp_path.iterdir()))
    assert names[0] == names[1] != []


@pytest.mark.orders("at-once")
@pytest.mark.process
def test_forks():
    """A forked child has no kernels of its parent; the parent keeps them."""
    out = checks.empty_like_shape(11, (5,), DEVICE)
    device_array.elementwise(4, 11, out, [out, out])
    before = loaded_programs(DEVICE)
    assert [program.path.rsplit("/", 1)[1] for program in before] == ["elementwise.cuh"]
    pid = os.fork()
    if pid == 0:
        os._exit(len(loaded_programs(DEVICE)))
    assert os.waitpid(pid, 0)[1] == 0
    assert loaded_programs(DEVICE) == before


@pytest.mark.orders("at-once")
@pytest.mark.process
def test_a_missing_capability_is_refused(monkeypatch):
    """A device below a program's compute capability is refused before any compilation."""
    monkeypatch.setattr(kernel_compiler.nvrtc, "compile_source", None)
    original = programs.elementwise
    monkeypatch.setattr(
        programs, "elementwise", lambda *facts: original(*facts)._replace(minimum=999)
    )
    out = checks.empty_like_shape(11, (5,), DEVICE)
    with pytest.raises(
        DeviceError, match=r"elementwise.cuh needs compute capability 99.9; device 0 has"
    ):
        device_array.elementwise(4, 11, out, [out, out])


def test_refusals(rng):
    """Whichever call is refused while kernels load, no module is left and the next call works."""
    values = rng.standard_normal((37, 53)).astype(np.float32)
    a = DeviceArray.from_numpy(values, DEVICE)
    out = checks.empty_like_shape(11, (37, 53), DEVICE)

    def request():
        device_array.elementwise(4, 11, out, [a, a])
        np.testing.assert_array_equal(out.numpy(), 2 * values)
        checks.check_reduction(DEVICE, "max", 11, rng, lambda x: x, (37, 53), (1,))

    seen = refused_calls.sweep(request)
    assert {"module_load", "module_function", "kernel_launch"} <= seen, seen
