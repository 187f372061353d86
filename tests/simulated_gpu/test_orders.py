"""Sorting, selection, search, counts and scans launch by launch: tiles, merges, digits, chunks."""

import pytest

from tests.conformance.tensor import test_orders as orders

pytestmark = pytest.mark.orders("deferred")


def row_of(name):
    return next(row for row in orders.SUMMED if row.name == name)


def test_sorts_and_selections(rng):
    orders.check_sort(rng, 0, row_of("float32"), (3, 2100))
    orders.check_sort(rng, 0, row_of("int64"), (40, 2))
    orders.check_search(rng, 0, row_of("bfloat16"))


def test_counts(rng):
    for length in (256, 5000):
        orders.check_count(rng, 0, length)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("float32", (9000,)), ("float16", (2, 300, 5)), ("complex128", (3, 130)), ("bool", (5000,))],
)
def test_scans(rng, name, shape):
    orders.check_scan(rng, 0, row_of(name), shape)
