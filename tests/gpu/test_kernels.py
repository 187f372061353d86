"""The kernels on a real GPU against NumPy: every operation, dtype and layout; large arrays."""

import numpy as np
import pytest

from gputensor._arrays.element_types import CODE_OF, DTYPES
from gputensor._driver.registry import cuda_device_count
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from tests.support import device_array
from tests.support import kernel_checks as checks
from tests.support.device_array import DeviceArray

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")

DEVICE = 0
FEW = (0, 1, 3, 4, 9, 10, 11, 12, 13)


def _dtypes_of(row):
    return [code for code in checks.COMPUTED if DTYPES[code].kind in row.kinds]


@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_operation_agrees_with_numpy_for_every_dtype(row, rng):
    for code in _dtypes_of(row):
        checks.check_operation(DEVICE, row.name, code, rng)


@pytest.mark.parametrize("code", [1, 4, 9, 10, 11, 12, 13])
@pytest.mark.parametrize(("name", "scalars"), [("add", (1,)), ("sub", (0,)), ("mul", (1,))])
def test_scalar_operands_agree_with_numpy(name, scalars, code, rng):
    checks.check_operation(DEVICE, name, code, rng, scalars=scalars)
    checks.check_operation(DEVICE, name, code, rng, shape=(17,), scalars=scalars)


def test_where_and_clip_take_scalars(rng):
    for code in (3, 9, 11):
        checks.check_operation(DEVICE, "where", code, rng, scalars=(2,))
        checks.check_operation(DEVICE, "where", code, rng, scalars=(0,))
        checks.check_operation(DEVICE, "clip", code, rng, scalars=(1, 2))
        checks.check_operation(DEVICE, "pow", 11, rng, scalars=(1,))


@pytest.mark.parametrize("source", range(len(DTYPES)), ids=[row.name for row in DTYPES])
def test_every_cast_agrees_with_numpy(source, rng):
    for target in range(len(DTYPES)):
        checks.check_cast(DEVICE, source, target, rng)


@np.errstate(all="ignore")
@pytest.mark.parametrize("target", [9, 10, 15, 16], ids=["half", "bfloat16", "e4m3", "e5m2"])
def test_rounding_to_small_floats_agrees_bit_for_bit(target, rng):
    bits = rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint64).astype(np.uint32)
    values = np.concatenate(
        [
            bits.view(np.float32),
            np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32),
            rng.standard_normal(1 << 16).astype(np.float32),
        ]
    )
    dtype = DTYPES[target].numpy
    for source in (values, values.astype(np.float64)):
        expected = source.astype(dtype)
        out = checks.empty_like_shape(target, source.shape, DEVICE)
        array = DeviceArray.from_numpy(source, DEVICE)
        device_array.elementwise(0, target, out, [array])
        got = out.numpy()
        is_nan = np.isnan(expected.astype(np.float32))
        assert np.array_equal(np.isnan(got.astype(np.float32)), is_nan)
        assert got[~is_nan].tobytes() == expected[~is_nan].tobytes()


@np.errstate(all="ignore")
@pytest.mark.parametrize("source", [9, 10, 15, 16], ids=["half", "bfloat16", "e4m3", "e5m2"])
def test_small_floats_widen_bit_for_bit(source):
    dtype = DTYPES[source].numpy
    codes = np.arange(1 << (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
    values = codes.view(dtype)
    out = checks.empty_like_shape(11, values.shape, DEVICE)
    device_array.elementwise(0, 11, out, [DeviceArray.from_numpy(values, DEVICE)])
    np.testing.assert_array_equal(out.numpy(), values.astype(np.float32))


@pytest.mark.parametrize("code", [1, 9, 11, 12], ids=["int8", "float16", "float32", "float64"])
def test_every_pair_of_layouts_agrees_with_numpy(code, rng):
    shapes = [(33,), (8, 64), (31, 17), (4, 6, 10), (2, 3, 1, 5, 4), ()]
    for shape, kinds in checks.layout_cases(shapes):
        checks.check_layouts(DEVICE, code, rng, shape, kinds)


def test_random_layouts_and_ranks_agree_with_numpy(rng):
    for _ in range(60):
        ndim = int(rng.integers(1, 7))
        shape = tuple(int(n) for n in rng.integers(1, 9, ndim))
        kinds = [str(kind) for kind in rng.choice(checks.LAYOUTS, 2)]
        offset = int(rng.choice([0, 4, 8, 12]))
        checks.check_layouts(DEVICE, 11, rng, shape, kinds, offset=offset)


@pytest.mark.parametrize("step", [-4, -3, -2, -1, 2, 3, 4, 5])
@pytest.mark.parametrize("code", [0, 1, 5, 9, 10, 11])
def test_elements_a_few_apart_agree_with_numpy(code, step, rng):
    for other in (None, 1, 2, -3):
        rows, columns = (
            int(rng.integers(1, 40)),
            int(rng.choice([1, 2, 4, 8])) * int(rng.integers(1, 99)),
        )
        steps = (step,) if other is None else (step, other)
        checks.check_spaced(DEVICE, code, rng, (rows, columns), steps)
    checks.check_spaced(DEVICE, code, rng, ((1 << 20) + int(rng.integers(9999)),), (step,))


@pytest.mark.parametrize("edge", [128, 256])
@pytest.mark.parametrize("code", [1, 5, 6, 9, 10, 7, 11])
def test_transpositions_in_chunks_move_every_bit(code, edge, rng):
    for _ in range(3):
        checks.check_turned(DEVICE, code, rng, edge)
    if edge == 256:  # enough tiles for a whole GPU
        lanes = 16 // DTYPES[code].itemsize
        rows, columns = (int(count) * lanes for count in rng.integers(800, 900, 2))
        checks.check_copy(DEVICE, code, rng, (rows, columns), (1, 0))


@pytest.mark.parametrize("offset", [2, 4, 6, 8, 10, 14])
def test_misaligned_pointers_agree_with_numpy(offset, rng):
    for shape in [(1,), (7,), (8,), (1000,), (1025,)]:
        checks.check_layouts(DEVICE, 9, rng, shape, ("contiguous", "contiguous"), offset=offset)


@pytest.mark.parametrize("code", [1, 9, 11, 12, 14])
def test_transposed_copies_move_every_bit(code, rng):
    cases = [
        ((64, 64), (1, 0)),
        ((33, 257), (1, 0)),
        ((16, 1000), (1, 0)),
        ((5, 40, 70), (0, 2, 1)),
    ]
    cases += [((40, 5, 70), (2, 1, 0)), ((3, 20, 4, 50), (3, 0, 2, 1)), ((15, 17), (1, 0))]
    for shape, order in cases:
        checks.check_copy(DEVICE, code, rng, shape, order)


@pytest.mark.parametrize("row", REDUCTIONS, ids=lambda row: row.name)
def test_reduction_agrees_with_numpy(row, rng):
    plain = [((1000,), (0,)), ((37, 53), (0,)), ((37, 53), (1,)), ((37, 53), (0, 1)), ((), ())]
    plain += [((3, 5, 7), (0, 2)), ((2, 3, 4, 5), (1, 3)), ((1, 1), (0,)), ((6, 5), ())]
    for code in FEW:
        for shape, axes in plain:
            checks.check_reduction(DEVICE, row.name, code, rng, lambda x: x, shape, axes)
    views = [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[:, ::-1]]
    for view_of in views:
        for axes in [(0,), (1,), (0, 1)]:
            checks.check_reduction(DEVICE, row.name, 11, rng, view_of, (24, 36), axes)


@pytest.mark.parametrize("code", [1, 3, 5, 9, 10, 11, 12])
@pytest.mark.parametrize("name", ["sum", "max", "argmax", "argmin", "mean", "var", "all"])
def test_reduction_in_parts_agrees_with_numpy(name, code, rng):
    cases = [((1 << 20,), (0,)), ((1000003,), (0,)), ((3, 100003), (1,)), ((100003, 3), (0,))]
    cases += [((5, 4096, 33), (1,)), ((5, 4096, 33), (0, 1)), ((5, 4096, 33), (0, 2))]
    cases += [((300000, 4), (1,)), ((4, 300000), (0,)), ((2048, 2048), (1,)), ((2048, 2048), (0,))]
    cases += [((17408, 1023), (0,))] if (name, code) == ("var", 11) else []
    for shape, axes in cases:
        checks.check_reduction(DEVICE, name, code, rng, lambda x: x, shape, axes)


@pytest.mark.parametrize("code", [1, 9])
def test_arguments_of_lines_of_more_units_than_a_key_counts(code, rng):
    """Lines that overlap in memory, since a thread has many units only where lines are many."""
    itemsize = DTYPES[code].itemsize
    vector = 16 // itemsize
    length, lines = 4096 * 32 * vector + 3 * vector, 1 << 14
    values = np.zeros(length + vector * lines, DTYPES[code].numpy)
    values[rng.integers(0, values.size, 20)] = 1
    values[[5, length - 1]] = 2, 1
    array = DeviceArray.from_numpy(values, DEVICE)
    out = checks.empty_like_shape(4, (lines,), DEVICE)
    device_array.reduce(4, code, out, array.view(code, (lines, length), (vector, 1)), (1,))
    expected = [int(np.argmax(values[n : n + length])) for n in range(0, vector * 40, vector)]
    assert out.numpy()[:40].tolist() == expected
    # Columns begin next to each other, and their elements are a vector apart.
    columns, length = 512 * 32 * vector, 4096 * 8 + 5
    values = np.zeros(columns + vector * length, DTYPES[code].numpy)
    values[rng.integers(0, values.size, 2000)] = 1
    array = DeviceArray.from_numpy(values, DEVICE)
    out = checks.empty_like_shape(4, (columns,), DEVICE)
    device_array.reduce(4, code, out, array.view(code, (length, columns), (vector, 1)), (0,))
    found = out.numpy()
    for column in (0, 7, vector + 3, columns // 2, columns - 1):
        line = values[column : column + vector * length : vector]
        assert found[column] == np.argmax(line), column


def test_the_same_reduction_gives_the_same_bits(rng):
    values = rng.standard_normal(3_000_001).astype(np.float32)
    array = DeviceArray.from_numpy(values, DEVICE)
    results = set()
    for _ in range(20):
        out = checks.empty_like_shape(11, (), DEVICE)
        device_array.reduce(0, 11, out, array, (0,))
        results.add(out.numpy().tobytes())
    assert len(results) == 1


def test_empty_reductions_give_their_identity():
    array = checks.empty_like_shape(11, (3, 0), DEVICE)
    for op, expected in [(0, 0.0), (1, 1.0), (8, np.nan)]:
        out = checks.empty_like_shape(11, (3,), DEVICE)
        device_array.reduce(op, 11, out, array, (1,))
        np.testing.assert_array_equal(out.numpy(), np.full(3, expected, np.float32))


@pytest.mark.parametrize("code", [1, 9, 11, 12, 14])
def test_gather_and_scatter_agree_with_numpy(code, rng):
    checks.check_gather(DEVICE, code, rng, (50,), 0, [(20,)])
    checks.check_gather(DEVICE, code, rng, (9, 50, 33), 1, [(4, 6)], index_code=3)
    checks.check_gather(DEVICE, code, rng, (9, 11, 8), 0, [(5, 1), (1, 7)])
    checks.check_gather(DEVICE, code, rng, (6, 7, 8, 9), 1, [(3,), (3,), (2, 1)])
    checks.check_gather(DEVICE, code, rng, (70, 16), 0, [(40,)], index_code=5)


def test_index_out_of_range_reads_inside_and_writes_nothing():
    source = np.arange(5, dtype=np.float32)
    index = DeviceArray.from_numpy(np.array([7, -9, 2]), DEVICE)
    out = checks.empty_like_shape(11, (3,), DEVICE)
    device_array.gather(out, DeviceArray.from_numpy(source, DEVICE), 0, [index])
    np.testing.assert_array_equal(out.numpy(), [4, 0, 2])
    target = DeviceArray.from_numpy(source, DEVICE)
    values = DeviceArray.from_numpy(np.array([10, 20, 30], np.float32), DEVICE)
    device_array.scatter(target, 0, [index], values)
    np.testing.assert_array_equal(target.numpy(), [0, 1, 30, 3, 4])


@pytest.mark.parametrize("code", range(len(DTYPES)), ids=[row.name for row in DTYPES])
def test_fill_and_arange_agree_with_numpy(code):
    for value in (0, 1, 3.75) if DTYPES[code].kind not in ("bool", "int", "uint") else (0, 1, 3):
        for shape, strides in [((33,), (1,)), ((5, 7), (16, 2))]:
            out = checks.empty_like_shape(code, (128,), DEVICE).view(code, shape, strides)
            device_array.fill(out, value)
            wanted = np.full(shape, value).astype(DTYPES[code].numpy)
            assert out.numpy().tobytes() == wanted.tobytes()
    if DTYPES[code].kind in ("int", "uint", "float"):
        checks.check_arange(DEVICE, code, 25, 3.0, 2.0)


def test_arrays_past_two_to_the_31_elements():
    count = (1 << 31) + 4099
    try:
        x = checks.empty_like_shape(1, (count,), DEVICE)
        out = checks.empty_like_shape(1, (count,), DEVICE)
    except MemoryError:
        pytest.skip("needs 4 GiB of free device memory")
    device_array.fill(x, 1)
    device_array.elementwise(4, 1, out, [x, 2])
    ends = [out.view(1, (64,), (1,), start).numpy() for start in (0, 1 << 30, count - 64)]
    assert all(np.all(end == 3) for end in ends)
    total = checks.empty_like_shape(4, (), DEVICE)
    device_array.reduce(0, 4, total, out, (0,))
    assert int(total.numpy()) == 3 * count
    device_array.fill(x.view(1, (1,), (1,), count - 1), 5)
    where = checks.empty_like_shape(4, (), DEVICE)
    device_array.reduce(4, 1, where, x, (0,))
    assert int(where.numpy()) == count - 1
    # Two strided axes: the call is cut into pieces with 32-bit offsets.
    rows = count // 3
    two = x.view(1, (rows, 2), (3, 1))
    device_array.elementwise(4, 1, out.view(1, (rows, 2), (3, 1)), [two, two])
    tail = out.view(1, (2, 3), (3, 1), 3 * (rows - 2)).numpy()
    np.testing.assert_array_equal(tail, [[2, 2, 3], [2, 2, 3]])


def test_known_call_compiles_nothing(rng):
    a = DeviceArray.from_numpy(rng.standard_normal((64, 64)).astype(np.float32), DEVICE)
    out = checks.empty_like_shape(CODE_OF[np.dtype(np.float32)], (64, 64), DEVICE)
    device_array.elementwise(4, 11, out, [a, a])
    from gputensor._kernels.launch import nvrtc

    compile_source, nvrtc.compile_source = nvrtc.compile_source, None
    try:
        device_array.elementwise(4, 11, out, [a, a])
    finally:
        nvrtc.compile_source = compile_source
    np.testing.assert_array_equal(out.numpy(), 2 * a.numpy())
