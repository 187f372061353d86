"""Values on the command line: the grammar, printing that can be read again, and one-line errors."""

import numpy as np
import pytest

from gputensor._arrays.element_types import DTYPES
from gputensor.cli.input_error import InputError
from gputensor.cli.value_text import TYPES, Reader, Writer, text_of, type_of
from tests.support.tensor_arrays import random_array

NUMPY = {row.name: row.numpy for row in DTYPES}


def read(text, dtype="float32", shape=()):
    return Reader("--input").value(text, dtype, shape)


def same(found, expected):
    """The same dtype, shape and bits, except that all NaNs are equal."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "fcV":
        with np.errstate(invalid="ignore"):  # signalling NaNs
            both = [a.astype(np.complex128, order="C").reshape(-1) for a in (found, expected)]
        found, expected = (a.view(np.float64) for a in both)
        np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found),
                                      np.signbit(expected) & ~np.isnan(expected))  # fmt: skip
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("3.5", "float32", 3.5),
        ("-2", "int8", -2),
        ("f16=0.5", "float16", 0.5),
        ("2x2xi32=1 2 3 4", "int32", [[1, 2], [3, 4]]),
        ("2x2xi32=[1 2][3 4]", "int32", [[1, 2], [3, 4]]),
        ("2x2xi32=[[1, 2], [3, 4]]", "int32", [[1, 2], [3, 4]]),
        ("2x3xf32=7", "float32", [[7] * 3] * 2),
        ("3xsi16=1 -2 0x7fff", "int16", [1, -2, 32767]),
        ("1xui64=18446744073709551615", "uint64", [2**64 - 1]),
        ("3xi1=0 1 true", "bool", [False, True, True]),
        ("3xf64=nan -inf 1e-300", "float64", [np.nan, -np.inf, 1e-300]),
        ("2xcf64=1+2j -3j", "complex64", [1 + 2j, complex(0, -3)]),
        ("2xf8E4M3FN=448 -0.5", "float8_e4m3", [448, -0.5]),
        ("0x3xbf16=", "bfloat16", np.empty((0, 3))),
    ],
)
def test_text_is_read(text, dtype, expected):
    expected = np.array(expected, NUMPY[dtype])
    same(read(text, dtype, expected.shape), expected)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "got ''; expected a number"),
        ("much", "got 'much'; expected a number"),
        ("2xf33=1 2", "expected one of the types i1, i8"),
        ("2xf32=1 2 3", "expected 1 or 2 elements"),
        ("2xf32=", "expected 1 or 2 elements"),
        ("2xf32=1 x", "elements of f32, which 'x' is not"),
        ("2xf32=1 1e39", "elements of f32, which '1e39' is not"),
        ("2xf32=1_0 1", "elements of f32, which '1_0' is not"),
        ("2xf32=[1 2", "brackets in pairs, at most 1 deep"),
        ("2xf32=]1 2[", "brackets in pairs"),
        ("2xf32=[[1] 2]", "brackets in pairs, at most 1 deep"),
        ("3xf32=0", "got '3xf32=0': 3xf32; expected 2xf32"),
        ("2x1xf32=0", ": 2x1xf32; expected 2xf32"),
        ("2xi32=0", ": 2xi32; expected 2xf32"),
        ("9999999999999999999xf32=0", ": 9999999999999999999xf32; expected 2xf32"),
        ("2xf32=@no-such.bin", "expected a file that can be read: No such file"),
        ("@no-such.npy", "expected a file that can be read: No such file"),
        ("2xf32=@/dev/zero", "expected a regular file"),
        ("@\0.npy", "null"),
        ("5", ": f32; expected 2xf32"),
        ("2xf32=" + "9" * 500, "elements of f32, which '999"),
    ],
)
def test_fault_is_one_line_that_says_what_is_expected(text, wanted):
    with pytest.raises(InputError) as caught:
        read(text, "float32", (2,))
    message = str(caught.value)
    assert message.startswith("--input: got ") and wanted in message
    assert "\n" not in message and len(message) < 300


def test_integer_out_of_range_is_refused():
    for bits in (8, 16, 32, 64):
        assert read(f"i{bits}={-(2 ** (bits - 1))}", f"int{bits}") == -(2 ** (bits - 1))
        for text in (f"i{bits}={2 ** (bits - 1)}", f"i{bits}=1.5", "ui8=-1"):
            with pytest.raises(InputError, match="is not$|expected"):
                read(text, f"int{bits}")


@pytest.mark.parametrize("dtype", sorted(set(TYPES.values())))
def test_printed_values_can_be_read_again(dtype, rng):
    for _ in range(20):
        shape = tuple(rng.integers(0, 5, rng.integers(0, 5)))
        array = random_array(rng, shape, NUMPY[dtype])
        if array.dtype.kind in "fV" and array.size:
            array.flat[0] = rng.choice([np.nan, -0.0, float(array.flat[0])])
        text = text_of(array, most=10**6)
        assert text.startswith(type_of(dtype, shape) + "=")
        same(read(text, dtype, shape), array)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_every_small_float_is_printed_so_that_it_can_be_read_again(dtype):
    itemsize = NUMPY[dtype].itemsize
    array = np.arange(256**itemsize, dtype=f"u{itemsize}").view(NUMPY[dtype])
    same(read(text_of(array, 10**6), dtype, array.shape), array)


def test_long_array_ends_in_dots():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert text_of(array, 6) == "3x4xi32=[0 1 2 3][4 5 ...][...]"
    assert text_of(array, 12) == "3x4xi32=[0 1 2 3][4 5 6 7][8 9 10 11]"
    assert text_of(array[0], 0) == "4xi32=..."


@pytest.mark.parametrize("dtype", sorted(set(TYPES.values())))
def test_files_hold_what_was_written(dtype, tmp_path, rng):
    arrays = [random_array(rng, (3, 4), NUMPY[dtype]) for _ in range(3)]
    writer, path = Writer(10), tmp_path / "a"
    for text, array in zip(("@", "+", "+"), arrays, strict=True):
        writer.write(f"{text}{path}.npy", 0, array)
        writer.write(f"{text}{path}.bin", 0, array)
    reader = Reader("--input")
    for array in arrays:
        same(reader.value(f"+{path}.npy", dtype, (3, 4)), array)
    same(reader.value(f"@{path}.npy", dtype, (3, 4)), arrays[0])
    raw = np.fromfile(f"{path}.bin", np.uint8)
    np.testing.assert_array_equal(raw, np.stack(arrays).view(np.uint8).reshape(-1))
    writer.write(f"@{path}.bin", 0, arrays[1])
    same(reader.value(f"{type_of(dtype, (3, 4))}=@{path}.bin", dtype, (3, 4)), arrays[1])


def test_array_in_column_order_and_in_other_byte_order_is_read(tmp_path, rng):
    array = random_array(rng, (3, 4), "float32")
    for stored in (np.asfortranarray(array), array.astype(">f4")):
        np.save(tmp_path / "a.npy", stored)
        same(read(f"@{tmp_path}/a.npy", "float32", (3, 4)), array)


def test_file_that_is_too_short_or_too_long_is_refused(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(9))
    for shape in ("2", "3"):
        with pytest.raises(InputError, match="expected a file of"):
            read(f"{shape}xf32=@{tmp_path}/a.bin", "float32", (int(shape),))
    (tmp_path / "a.bin").write_bytes(b"\2\0")
    with pytest.raises(InputError, match="0 or 1"):
        read(f"2xi1=@{tmp_path}/a.bin", "bool", (2,))


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "((((" * 500,
        "\0",
    ],
)
def test_hostile_array_file_is_one_line(tmp_path, header):
    data = header.ljust(117).encode()
    content = b"\x93NUMPY\1\0" + (len(data) + 1).to_bytes(2, "little") + data + b"\n" + bytes(8)
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(InputError, match="expected the array of a NumPy file") as caught:
        read(f"@{tmp_path}/a.npy", "float32", (1,))
    assert len(str(caught.value)) < 1000


def test_list_file_has_one_value_a_line(tmp_path):
    (tmp_path / "l.txt").write_text("# inputs\n3.5\n\n  2xi32=1 2  \n")
    texts = Reader("--input").texts(["1", f"@{tmp_path}/l.txt", "2"])
    assert texts == ["1", "3.5", "2xi32=1 2", "2"]
    (tmp_path / "l.txt").write_text("1\n" * 20_000)
    with pytest.raises(InputError, match="at most 10000 values"):
        Reader("--input").texts([f"@{tmp_path}/l.txt"])


def test_dynamic_extent_takes_sizes_in_its_range():
    want = (range(2, 9, 2), 3)
    assert read("4x3xf32=1", "float32", want).shape == (4, 3)
    with pytest.raises(InputError, match="5x3xf32; expected .x3xf32"):
        read("5x3xf32=1", "float32", want)


@pytest.mark.parametrize("text", ["x", "@", "@a", "@a.txt", "+", "a.npy", "@a.npz"])
def test_malformed_output_is_refused(text):
    with pytest.raises(InputError, match="--output: got '.*'; expected an empty text, -, or"):
        Writer(1).check(text)


def test_printed_output_names_the_result(capsys):
    writer = Writer(3)
    for text in ("", "-"):
        writer.check(text)
        writer.write(text, 1, np.float16([[0.5, 1, 2, 4]]))
    assert capsys.readouterr().out == "result[1]: 1x4xf16=[0.5 1 2 ...]\n"


ALPHABET = ["2x", "3x", "x", "i32", "f32", "f16", "bf16", "i1", "cf64", "f8E5M2", "ui8", "=", "[",
            "]", "[[", " ", ",", "1", "-2.5", "1e9", "nan", "inf", "0x1f", "@", "+", ".npy", ".bin",
            ".txt", "j", "\0", "\n", "é", "..."]  # fmt: skip


@pytest.mark.slow
def test_random_texts_are_read_or_refused_in_one_line(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read_count = 0
    for _ in range(20_000):
        text = "".join(rng.choice(ALPHABET, rng.integers(1, 9)))
        dtype = str(rng.choice(sorted(set(TYPES.values()))))
        shape = tuple(rng.choice([2, 3], rng.integers(0, 3)))
        reader = Reader("--input")
        try:
            array = reader.value(text, dtype, shape)
        except InputError as error:
            assert "\n" not in str(error) and str(error).startswith("--input: got ")
        else:
            assert (array.dtype, array.shape) == (NUMPY[dtype], shape)
            same(read(text_of(array), dtype, shape), array)
            read_count += 1
    assert read_count > 20
