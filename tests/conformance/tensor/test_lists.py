"""Nested lists of numbers, arrays and tensors: no value is narrowed, dtypes combine as in NumPy."""

import array

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import BFLOAT16, DTYPES, check_same, random_array

DEFAULT = [np.dtype(name) for name in ("bool", "int64", "float32", "complex64")]
NUMBERS = (bool, int, float, complex)
SMALL = {np.dtype(name) for name in ("bool", "int8", "uint8")}


def meet(dtypes):
    """NumPy's common dtype; bfloat16 holds 8-bit dtypes, and counts as float32 beside others."""
    known = [one for one in dtypes if one != BFLOAT16]
    if len(known) == len(dtypes):
        return np.result_type(*known)
    return BFLOAT16 if {*known} <= SMALL else np.result_type(*known, np.float32)


def common_dtype(dtypes, kinds):
    """The documented rule for the dtypes of arrays and the kinds of Python numbers beside them."""
    common = meet(dtypes)
    rank = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}[common.kind]
    weakest = max((NUMBERS.index(kind) for kind in kinds), default=0)
    return common if weakest <= rank else meet([common, DEFAULT[weakest]])


def random_part(rng, shape, dtypes, place, found):
    """A part of a list with the given shape; its exact values go to `found`."""
    dtype = dtypes[rng.integers(len(dtypes))]
    form = rng.integers(6)
    if shape and form < 3:
        parts = [random_part(rng, shape[1:], dtypes, place, found) for _ in range(shape[0])]
        return tuple(parts) if form == 0 else parts
    if not shape and form < 3:
        kind = NUMBERS[rng.integers(4)]
        value = kind(rng.integers(0, 2) if kind is bool else rng.integers(0, 50))
        found.append((kind, np.asarray(value)))
        return value
    values = random_array(rng, shape, dtype)
    found.append((dtype, values))
    if form == 3:
        return gt.asarray(values, device=place if rng.integers(2) else "host")
    if form == 4 and dtype.kind in "iuf" and len(shape) == 1 and shape[0] and dtype.itemsize > 2:
        return array.array(dtype.char, values.tolist())
    return values[()]  # a NumPy scalar if there is no axis


def list_program(rng, place):
    """One random list through asarray; its dtype and values against the rule."""
    dtypes = [DTYPES[i] for i in rng.integers(0, len(DTYPES), rng.integers(1, 4))]
    shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 4)))
    found = []
    parts = [random_part(rng, shape[1:], dtypes, place, found) for _ in range(shape[0])]
    strong = [kind for kind, _values in found if isinstance(kind, np.dtype)]
    kinds = {kind for kind, _values in found if not isinstance(kind, np.dtype)}
    if strong:
        expected = common_dtype(set(strong), kinds)
    else:
        expected = DEFAULT[max(NUMBERS.index(kind) for kind in kinds)]
    flat = np.concatenate([values.astype(expected).reshape(-1) for _kind, values in found])
    check_same(gt.asarray(parts, device=place), flat.reshape(shape), name=repr(parts))


def test_random_lists_keep_their_dtypes_and_values(place, rng):
    for _ in range(150):
        list_program(rng, place)


def test_list_of_arrays_scalars_or_tensors_is_not_narrowed(place):
    wide = np.array([1e300])
    for parts in (
        [wide],
        [np.float64(1e300)],
        [gt.asarray(wide, device=place)],
        [[np.float64(1e300)]],
        (wide, [2.5]),
    ):
        result = gt.asarray(parts, device=place)
        assert result.dtype == gt.float64
        assert result.numpy().flat[0] == 1e300
    assert gt.asarray([1.5, 2], device=place).dtype == gt.float32
    assert gt.asarray([1.5, 2j], device=place).dtype == gt.complex64
    assert gt.full(2, np.float64(1e300), device=place).tolist() == [1e300, 1e300]


def test_list_of_bfloat16_or_float8_tensors_keeps_its_dtype(place):
    for name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        x = gt.ones(2, dtype=name, device=place)
        result = gt.asarray([x, [2.0, 3]], device=place)
        assert result.dtype == x.dtype
        assert result.astype("float32").tolist() == [[1.0, 1.0], [2.0, 3.0]]
    mixed = gt.asarray([ml_dtypes.bfloat16(1), np.int64(2**40 + 1)], device=place)
    assert mixed.dtype == gt.float64
    assert mixed.tolist() == [1.0, 2.0**40 + 1]


def test_numbers_beside_arrays_are_weak_and_must_fit(place):
    one = np.int8(1)
    assert gt.asarray([one, 2], device=place).dtype == gt.int8
    assert gt.asarray([one, True], device=place).dtype == gt.int8
    assert gt.asarray([one, 2.5], device=place).dtype == gt.float32
    assert gt.asarray([np.int64(2**53 + 1), 2.5], device=place).dtype == gt.float64
    assert gt.asarray([np.float64(1), 2j], device=place).dtype == gt.complex128
    with pytest.raises(OverflowError, match="number: got 300; expected -128 to 127"):
        gt.asarray([one, 300], device=place)
    with pytest.raises(OverflowError, match="number: got 300; expected -128 to 127"):
        gt.asarray([np.array([300])], dtype="int8", device=place)
    exact = gt.asarray([[np.uint64(2**64 - 1)], [5]], dtype="uint64", device=place)
    assert exact.tolist() == [[2**64 - 1], [5]]


@pytest.mark.parametrize("part", ["a", None, slice(3), {1: 2}], ids=repr)
def test_part_that_is_no_number_is_named(place, part):
    with pytest.raises(TypeError, match=f"got a {type(part).__name__} in a sequence; expected num"):
        gt.asarray([np.float64(1), part], device=place)


def test_list_that_holds_itself_is_refused(place):
    loop = [1.0]
    loop.append(loop)
    with pytest.raises((ValueError, TypeError)):
        gt.asarray(loop, device=place)
    with pytest.raises((ValueError, TypeError, RecursionError)):
        gt.asarray([np.float64(1), loop], device=place)


def test_python_types_mean_the_dtypes_of_numpy(place):
    x = gt.ones(2, dtype="float32", device=place)
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128")):
        for dtype in (kind, kind.__name__):
            made = [
                gt.zeros(2, dtype=dtype, device=place),
                gt.empty(2, dtype=dtype, device=place),
                gt.full(2, 1, dtype=dtype, device=place),
                gt.ones_like(x, dtype=dtype),
                gt.eye(2, dtype=dtype, device=place),
                gt.asarray([1, 0], dtype=dtype, device=place),
                gt.asarray(x, dtype=dtype),
                x.astype(dtype),
                x.to(dtype=dtype),
                gt.sum(x, dtype=dtype),
            ]
            made += [gt.arange(2, dtype=dtype, device=place)] if kind in (int, float) else []
            assert {one.dtype.name for one in made} == {name}
            assert gt.result_type(dtype).name == name
            assert gt.isdtype(dtype, np.dtype(name))
    assert gt.finfo(float).bits == gt.finfo(complex).bits == 64
    assert gt.asarray(2.5, device=place).dtype == gt.float32  # a value, not a dtype
    assert (x.astype("int8") + 2.5).dtype == gt.float32


#: Element-wise functions of one and of two arguments, from tables and composed of others.
OF_ONE = "sin exp logical_not abs negative sqrt isnan deg2rad rint angle frac"
OF_TWO = "add subtract multiply maximum hypot copysign less equal arctan2 float_power heaviside"


@pytest.mark.parametrize("name", OF_ONE.split())
def test_functions_of_one_list_agree_with_numpy(where, rng, name):
    values = rng.uniform(0.5, 4, (2, 3)).tolist()
    function = np.modf if name == "frac" else getattr(np, name)
    want = function(np.asarray(values, np.float32))
    with gt.Device(where):
        got = getattr(gt, name)(values)
        assert got.device == gt.Device(where)
        np.testing.assert_allclose(got.numpy(), want[0] if name == "frac" else want, 2e-6)
        assert getattr(gt, name)(tuple(values)).dtype == got.dtype


@pytest.mark.parametrize("name", OF_TWO.split())
def test_functions_of_lists_agree_with_numpy(where, rng, name):
    # Floats of few bits, so that differences and remainders are exact.
    a, b = rng.integers(2, 17, (2, 3)) / 4, rng.integers(1, 4, 3)
    x = gt.asarray(a, device=where)
    function = getattr(gt, name)
    want = getattr(np, name)(a, b)
    for got in (function(x, b.tolist()), function(a.tolist(), gt.asarray(b, device=where))):
        assert got.device == x.device
        np.testing.assert_allclose(got.numpy(), want, 1e-5)
    with gt.Device(where):
        np.testing.assert_allclose(function(a.tolist(), b.tolist()).numpy(), want, 1e-5)


def test_operators_take_lists_beside_tensors(where, rng):
    a, b = rng.integers(1, 9, (2, 3)), rng.integers(1, 9, 3)
    x = gt.asarray(a, device=where)
    for got, want in (
        (x + b.tolist(), a + b), (b.tolist() - x, b - a), (x * tuple(b.tolist()), a * b),
        (x // b.tolist(), a // b), (x == b.tolist(), a == b), (x < b.tolist(), a < b),
    ):  # fmt: skip
        check_same(got, want)
    x += b.tolist()
    check_same(x, a + b)


def test_lists_with_options_of_functions(where):
    with gt.Device(where):
        assert gt.add([1, 2], [3, 4], dtype="float64").dtype == gt.float64
        assert gt.add([1, 2], [3, 4], where=gt.asarray([True, False])).tolist() == [4, 0]
        out = gt.zeros(2, dtype="int64")
        assert gt.add([1, 2], [3, 4], out=out) is out
        assert out.tolist() == [4, 6]
        assert gt.where([True, False], [1, 2], 0).tolist() == [1, 0]
        assert gt.clip([1, 5], 2, 3).tolist() == [2, 3]
    for call in (lambda: gt.sin([1, "a"]), lambda: gt.add(gt.ones(2, device=where), [[1], [2, 3]])):
        with pytest.raises((TypeError, ValueError), match=r"asarray: obj: got .+; expected "):
            call()


def test_atleast_functions_take_numbers_and_lists(where):
    with gt.Device(where):
        for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
            for value in (3, 2.5, np.float64(1), [1, 2], [[1], [2]]):
                got, want = getattr(gt, name)(value), getattr(np, name)(value)
                assert got.shape == want.shape
                assert got.tolist() == want.tolist()
        one, other = gt.atleast_1d(3, [1, 2])
        assert one.tolist() == [3]
        assert other.tolist() == [1, 2]
    with pytest.raises(TypeError, match="atleast_2d: argument: got str; expected a Tensor"):
        gt.atleast_2d("a")


#: Calls of functions of lists only, and of lists beside a tensor, of either library.
OF_LISTS = {
    "reduce": lambda xp, x: xp.add.reduce([1, 2, 3]),
    "accumulate": lambda xp, x: xp.maximum.accumulate([1, 3, 2]),
    "outer": lambda xp, x: xp.subtract.outer([1, 2], [3, 4]),
    "outer of a number": lambda xp, x: xp.multiply.outer(2, [1, 2]),
    "reduceat": lambda xp, x: xp.add.reduceat([1, 2, 3], [0, 1]),
    "concatenate": lambda xp, x: xp.concatenate([[1, 2], [3]]),
    "stack": lambda xp, x: xp.stack([[1, 2], [3, 4]]),
    "vstack": lambda xp, x: xp.vstack(([1, 2], [3, 4])),
    "hstack": lambda xp, x: xp.hstack(([1], [2, 3])),
    "column_stack": lambda xp, x: xp.column_stack(([1, 2], [3, 4])),
    "append": lambda xp, x: xp.append([1], [2, 3]),
    "insert": lambda xp, x: xp.insert([1, 2], 1, 5),
    "delete": lambda xp, x: xp.delete([1, 2, 3], 1),
    "block": lambda xp, x: xp.block([[1, 2], [3, 4]]),
    "block beside": lambda xp, x: xp.block([x[0], 7]),
    "matmul": lambda xp, x: xp.matmul([[1, 2]], [[3], [4]]),
    "@": lambda xp, x: x @ [1, 2, 3],
    "reflected @": lambda xp, x: [1, 2] @ x,
    "einsum": lambda xp, x: xp.einsum("ij,j", x, [1, 2, 3]),
    "where": lambda xp, x: xp.where([True, False, True])[0],
    "compress": lambda xp, x: xp.compress([True, False], [1, 2]),
    "extract": lambda xp, x: xp.extract([True, False], [1, 2]),
    "lexsort": lambda xp, x: xp.lexsort(([1, 2, 0], [1, 0, 1])),
    "apply_along_axis": lambda xp, x: xp.apply_along_axis(lambda v: v.sum(), 0, [[1, 2], [3, 4]]),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum([1, 2, 3]),
    "isreal": lambda xp, x: xp.isreal([1.0, 2j]),
    "partition": lambda xp, x: xp.partition([3, 1, 2], 1)[1],
    "where=": lambda xp, x: xp.sum(x, axis=1, where=[[True, False, True]]),
    "max where=": lambda xp, x: xp.max([[1, 9]], where=[True, False], initial=0),
    "choose": lambda xp, x: xp.choose([1, 0, 1], [[1, 2, 3], [4, 5, 6]]),
    "cov": lambda xp, x: xp.cov([1, 2, 4], [3, 1, 0]),
    "full_like": lambda xp, x: xp.full_like(x, [1, 2, 3]),
    "inner": lambda xp, x: xp.inner(x, 7),
    "repeat": lambda xp, x: xp.repeat(3, 4),
    "insert a column": lambda xp, x: xp.insert(x, 1, [7, 8], axis=1),
    "insert columns": lambda xp, x: xp.insert(x, 1, [[7], [8]], axis=1),
    "insert rows": lambda xp, x: xp.insert(x, 1, [[7, 8, 9], [1, 2, 3]], axis=0),
    "average": lambda xp, x: xp.average(x, axis=(1, 0), weights=[[1, 2], [3, 4], [5, 6]]),
    "geomspace": lambda xp, x: xp.geomspace(-1000.0, -1.0, num=4) + 0 * x[0, 0],
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_calls_with_lists_agree_with_numpy(where, rng, name):
    a = rng.integers(1, 9, (2, 3))
    want = OF_LISTS[name](np, a)
    with gt.Device(where):
        got = OF_LISTS[name](gt, gt.asarray(a))
        assert got.device == gt.Device(where)
    np.testing.assert_allclose(got.numpy(), want, 1e-6)


def test_numbers_only_give_numpys_numbers():
    for got, want in (
        (gt.angle(1 + 1j, deg=True), np.angle(1 + 1j, deg=True)),
        (gt.ravel_multi_index((3, 1, 4, 1), (6, 7, 8, 9)), 1621),
        (gt.deg2rad(180.0), np.pi),
    ):
        assert isinstance(got, np.generic)
        assert got == want
    out = gt.zeros((), dtype="float64", device="host")
    assert gt.deg2rad(180.0, out=out) is out
    assert out.item() == np.pi
    with pytest.raises(IndexError, match="ravel_multi_index: positions: got 6; expected -6 to 5"):
        gt.ravel_multi_index((6, 0), (6, 7))


def test_lists_of_ints_beside_uint64_are_uint64(where, rng):
    a = rng.integers(1 << 62, 1 << 63, 3).astype("uint64") * np.uint64(2)
    x = gt.asarray(a, device=where)
    ints = [3, 1, 2]
    b = np.asarray(ints, "uint64")
    for got, want in (
        (x + ints, a + b), (gt.maximum(ints, x), np.maximum(a, b)), (x @ ints, a @ b),
        (gt.where(x > 1, x, ints), a), (gt.union1d(x, ints), np.union1d(a, b)),
        (gt.isin(x, [*ints]), np.isin(a, b)), (gt.polyval([1, 2], x), np.polyval(b[[1, 2]], a)),
        (gt.searchsorted(gt.sort(x), ints), np.searchsorted(np.sort(a), b)),
        (gt.digitize(x // 2**62, [2, 3]), np.digitize(a // np.uint64(2**62), [2, 3])),
        (gt.histogram(x // 2**62, [2, 3, 4])[0], np.histogram(a // np.uint64(2**62), [2, 3, 4])[0]),
    ):  # fmt: skip
        assert got.dtype == want.dtype and got.tolist() == want.tolist()
    with pytest.raises(OverflowError, match="number: got -1; expected 0 to 18446744073709551615"):
        x + [1, 2, -1]
    with pytest.raises(TypeError, match="got uint64 and int64, which have no common dtype"):
        x + gt.asarray(ints, device=where)


def test_lists_keep_their_digits_beside_any_float64(where, rng):
    a, b = rng.normal(size=(2, 3))
    mask = rng.random(3) < 0.5
    x, c, ints = (gt.asarray(one, device=where) for one in (a, mask, mask.astype(int)))
    listed = b.tolist()
    for got, want in (
        (gt.where(c, x, listed), np.where(mask, a, b)),
        (gt.where(c, listed, x), np.where(mask, b, a)),
        (gt.select([c], [listed], x), np.select([mask], [b], a)),
        (gt.select([c], [x], listed), np.select([mask], [a], b)),
        (gt.choose(ints, (listed, x)), np.choose(mask.astype(int), (b, a))),
        (gt.interp(listed, [-9, 9], x[:2]), np.interp(b, [-9, 9], a[:2])),
        (gt.clip(ints, listed, x.max()), np.clip(mask.astype(int), b, a.max())),
        (gt.matvec(gt.stack([x, x]), listed), np.matvec(np.stack([a, a]), b)),
        (gt.addcmul(x, listed, listed, value=2), a + 2 * b * b),
        (gt.xlogy(abs(x), np.exp(b).tolist()), abs(a) * np.log(np.exp(b))),
        (gt.special.xlog1py(x, abs(b).tolist()), a * np.log1p(abs(b))),
        (gt.kl_div(x, np.exp(b).tolist(), "none"), np.exp(b) * (b - a)),
        (gt.linspace(x, listed, 4), np.linspace(a, b, 4)),
        (gt.geomspace(abs(x), abs(b).tolist(), 3), np.geomspace(abs(a), abs(b), 3)),
    ):
        assert got.dtype == gt.float64
        np.testing.assert_allclose(got.numpy(), want, 1e-12)
    found = gt.ravel_multi_index((ints, 1, [0, 2, 1]), (2, 2, 3))
    assert (
        found.tolist() == np.ravel_multi_index((mask.astype(int), 1, [0, 2, 1]), (2, 2, 3)).tolist()
    )
