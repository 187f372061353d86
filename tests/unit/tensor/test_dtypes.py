"""Dtypes, their limits and their promotion follow the rules that promotion.py states."""

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays import promotion
from gputensor._arrays.dtypes import dtype_code
from gputensor._arrays.element_types import DTYPES

CODES = [row.code for row in DTYPES if row.kind != "small"]


def common(a, b):
    try:
        return promotion.promote(a, b)
    except TypeError:
        return None


def test_promotion_is_commutative_and_idempotent():
    for a in CODES:
        assert common(a, a) == a
        for b in CODES:
            assert common(a, b) == common(b, a)


def test_promotion_is_associative_where_it_is_defined():
    """The hard cases are float16 + bfloat16 + complex, and uint64 + signed."""
    for a in CODES:
        for b in CODES:
            for c in CODES:
                left = common(a, b) if common(a, b) is None else common(common(a, b), c)
                right = common(b, c) if common(b, c) is None else common(a, common(b, c))
                if left is not None and right is not None:
                    assert left == right, [DTYPES[i].name for i in (a, b, c)]


def test_promotion_within_a_kind_is_numpys():
    for a in DTYPES:
        for b in DTYPES:
            kinds = a.kind, b.kind
            if kinds[0] == kinds[1] and a.numpy.kind != "V" and b.numpy.kind != "V":
                expected = np.result_type(a.numpy, b.numpy)
                assert DTYPES[promotion.promote(a.code, b.code)].numpy == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("int64", "float16"), "float16"),
        (("int8", "bfloat16"), "bfloat16"),
        (("float16", "bfloat16"), "float32"),
        (("bfloat16", "float32"), "float32"),
        (("float64", "complex64"), "complex128"),
        (("int64", "complex64"), "complex64"),
        (("uint8", "int8"), "int16"),
        (("uint32", "int32"), "int64"),
        (("bool", "uint64"), "uint64"),
        (("bool", True), "bool"),
        (("bool", 1), "int64"),
        (("int8", 1.5), "float32"),
        (("float16", 1j), "complex64"),
        (("float64", 1j), "complex128"),
        ((1, 2.5), "float32"),
        (("int8", "int16", "float16", 3), "float16"),
    ],
)
def test_result_type(arguments, expected):
    assert gt.result_type(*arguments).name == expected


def test_types_without_a_common_dtype_are_refused():
    for pair in [("uint64", "int8"), ("float8_e4m3", "float32"), ("float8_e4m3", "float8_e5m2")]:
        with pytest.raises(TypeError, match="have no common dtype"):
            gt.result_type(*pair)
    with pytest.raises(ValueError, match="at least one"):
        gt.result_type()


def test_table_for_c_is_the_function():
    for a in range(len(DTYPES)):
        for b in range(len(DTYPES)):
            entry = promotion.TABLE[a * len(DTYPES) + b]
            assert (None if entry == promotion.NONE else entry) == common(a, b)


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_every_spelling_names_the_dtype(row):
    for spelling in (row.name, row.numpy, row.numpy.type):
        assert dtype_code(spelling) == row.code
    assert getattr(gt, row.name) == row.numpy


PYTHON_TYPES = [(float, "float64"), ("float", "float64"), (complex, "complex128"), (int, "int64")]
PYTHON_TYPES += [(bool, "bool"), ("<f4", "float32")]


def test_python_types_and_aliases():
    for spelling, name in PYTHON_TYPES:
        assert DTYPES[dtype_code(spelling)].name == name
    assert gt.bool is gt.bool_


@pytest.mark.parametrize("wrong", ["float7", object, "O", [1], 3.5, "S3", "datetime64[s]"])
def test_unknown_dtype_is_refused_with_the_allowed_names(wrong):
    with pytest.raises(
        TypeError, match=r"dtype: got .*; expected bool, int8, int16, int32, int64, uint8, uint16"
    ):
        dtype_code(wrong)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_finfo_is_the_dtypes_own(name):
    facts, expected = gt.finfo(name), ml_dtypes.finfo(getattr(gt, name))
    for field in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(facts, field) == float(getattr(expected, field))
    assert facts.dtype == expected.dtype


def test_iinfo_and_kinds():
    assert (gt.iinfo("int8").min, gt.iinfo("uint64").max, gt.iinfo(gt.int16).bits) == (
        -128,
        2**64 - 1,
        16,
    )
    with pytest.raises(TypeError, match="type: got float32; expected an integer dtype"):
        gt.iinfo("float32")
    with pytest.raises(TypeError, match="type: got int8; expected a floating-point dtype"):
        gt.finfo("int8")
    assert gt.isdtype(gt.bfloat16, "real floating")
    assert gt.isdtype("uint8", ("bool", "integral"))
    assert not gt.isdtype("complex64", "real floating")
    assert gt.isdtype("int8", gt.int8)
    with pytest.raises(
        ValueError, match="kind: got 'whole'; expected 'bool', 'signed integer', 'unsigned integer'"
    ):
        gt.isdtype("int8", "whole")
    assert gt.can_cast("float16", "bfloat16") is False
    assert gt.can_cast("bool", "int8") is True


def test_numpy_scalars_are_weak_in_result_type_as_in_operations():
    x = gt.ones(2, dtype="float16", device="host")
    for number in (np.float64(1), np.int64(1), np.bool_(True), np.complex128(1), np.uint8(1)):
        assert gt.result_type(x, number) == (x + number).dtype
        assert gt.result_type("int8", number) == gt.result_type("int8", number.item())


def test_none_is_not_a_dtype():
    for call in (gt.result_type, lambda none: gt.isdtype(none, "real floating")):
        with pytest.raises(
            TypeError,
            match="dtype: got None; expected bool, int8, int16, int32, int64, uint8, uint16",
        ):
            call(None)


@pytest.mark.parametrize("wrong", [None, "x", 3, 2.5, [1], {1}], ids=repr)
def test_limits_of_what_is_no_dtype_name_the_function(wrong):
    for call, kind in ((gt.finfo, "a floating-point dtype"), (gt.iinfo, "an integer dtype")):
        name = type(wrong).__name__
        rule = f"{call.__name__}: type: got ({name}|.*); expected {kind}, or a tensor of one"
        with pytest.raises(TypeError, match=rule):
            call(wrong)
