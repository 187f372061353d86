"""The product that prepare describes to a library, computed by a NumPy model of the library.

The model knows only the column-major contract of product.pxd: sizes, leading dimensions, strides
and offsets into one buffer for each operand. Its result must equal matmul's.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.internals import prepared

FLOAT64 = 12
ITEM = 8
FIELDS = ("count", "a", "b", "c", "d")


def random_view(rng, shape, *, allow_copy=False, is_out=False):
    """A float64 view with random axis order, padding, reversal and offset, and its buffer."""
    ndim = len(shape)
    order = list(rng.permutation(ndim)) if rng.random() < 0.5 else list(range(ndim))
    if ndim >= 2 and not allow_copy:
        # Keep one of the two matrix axes innermost, so that a library can take the view.
        inner = int(rng.integers(ndim - 2, ndim))
        order = [axis for axis in order if axis != inner] + [inner]
    strides = [0] * ndim
    step = 1 if not (allow_copy and rng.random() < 0.3) else 2
    for position, axis in enumerate(reversed(order)):
        strides[axis] = step
        step *= max(shape[axis], 1)
        if position >= 0 and rng.random() < 0.3:
            step += int(rng.integers(0, 4))
    for axis in range(ndim - 2):
        if not is_out and rng.random() < 0.2:
            strides[axis] = 0
    offset = int(rng.integers(0, 5))
    size = offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n > 0)
    buffer = rng.standard_normal(max(size, 1))
    view = np.lib.stride_tricks.as_strided(
        buffer[offset:], shape, [s * ITEM for s in strides], writeable=True
    )
    return buffer, offset, view


def described(offset, view):
    strides = tuple(s // ITEM for s in view.strides)
    return (offset * ITEM, FLOAT64, view.shape, strides)


def column_major(buffer, start, rows, columns, ld):
    return np.lib.stride_tricks.as_strided(buffer[start:], (rows, columns), (ITEM, ld * ITEM))


def run_library(product, buffer_a, buffer_b, buffer_d):
    """Carry out a product as the library would."""
    left, right = (buffer_b, buffer_a) if product["is_swapped"] else (buffer_a, buffer_b)
    m, n, k = product["m"], product["n"], product["k"]
    starts = {name: product[name] // ITEM for name in "abd"}
    assert product["ldd"] >= max(1, m)
    outer = [dict(zip(FIELDS, dim, strict=True)) for dim in product["outer"]]
    for index in itertools.product(*(range(dim["count"]) for dim in outer)):
        for item in range(product["batch"]):
            at = {
                name: starts[name]
                + item * product["stride_" + name]
                + sum(i * dim[name] for i, dim in zip(index, outer, strict=True))
                for name in "abd"
            }
            rows, columns = (m, k) if product["op_a"] == 0 else (k, m)
            assert product["lda"] >= max(1, rows)
            a = column_major(left, at["a"], rows, columns, product["lda"])
            a = a if product["op_a"] == 0 else a.T
            rows, columns = (k, n) if product["op_b"] == 0 else (n, k)
            assert product["ldb"] >= max(1, rows)
            b = column_major(right, at["b"], rows, columns, product["ldb"])
            b = b if product["op_b"] == 0 else b.T
            column_major(buffer_d, at["d"], m, n, product["ldd"])[...] = a @ b


def random_shapes(rng):
    m, k, n = (int(rng.choice([1, 1, 2, 3, 5, 7])) for _ in range(3))
    batch = [int(rng.choice([1, 2, 3])) for _ in range(int(rng.integers(0, 4)))]
    kind = rng.random()
    if kind < 0.15:
        return (k,), (*batch, k, n)
    if kind < 0.3:
        return (*batch, m, k), (k,)
    cut_a, cut_b = int(rng.integers(0, len(batch) + 1)), int(rng.integers(0, len(batch) + 1))
    if batch and rng.random() < 0.5:
        cut_a = 0
    shape_a = [d if rng.random() < 0.7 else 1 for d in batch[cut_a:]]
    shape_b = [d if rng.random() < 0.7 else 1 for d in batch[cut_b:]]
    return (*shape_a, m, k), (*shape_b, k, n)


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_described_product_is_matmul_for_any_views(seed):
    rng = np.random.default_rng(seed)
    shape_a, shape_b = random_shapes(rng)
    buffer_a, offset_a, a = random_view(rng, shape_a)
    buffer_b, offset_b, b = random_view(rng, shape_b)
    expected = np.matmul(a, b)
    buffer_d, offset_d, d = random_view(rng, expected.shape, is_out=True)
    product = prepared(described(offset_a, a), described(offset_b, b), described(offset_d, d))
    if "copies" in product:
        # Only a view without a usable unit stride asks for a copy.
        for name, view in (("a", a), ("b", b), ("out", d)):
            if name in product["copies"]:
                assert not is_library_layout(view, name, shape_a, shape_b)
        return
    buffer_d[...] = np.nan
    run_library(product, buffer_a, buffer_b, buffer_d)
    np.testing.assert_allclose(d, expected, rtol=1e-12, atol=1e-12)
    written = np.isfinite(buffer_d)
    assert written.sum() == d.size, "the product wrote outside its result"


def is_library_layout(view, name, shape_a, shape_b):
    """Whether the last two axes are row- or column-major; a vector needs positive strides."""
    if view.ndim < 2 or (name == "out" and (len(shape_a) == 1 or len(shape_b) == 1)):
        return all(s >= ITEM for s, n in zip(view.strides, view.shape, strict=True) if n > 1)
    (rows, columns), (down, right) = view.shape[-2:], view.strides[-2:]
    if rows == 1 or columns == 1:
        return (right if rows == 1 else down) >= ITEM
    is_row = right == ITEM and down >= columns * ITEM
    is_column = down == ITEM and right >= rows * ITEM
    return is_row or is_column


def one(shape, strides, address=0):
    return (address, FLOAT64, shape, strides)


@pytest.mark.parametrize(
    ("strides", "name"),
    [
        ((6, 2), "no unit stride"),
        ((0, 1), "repeated rows"),
        ((-3, 1), "reversed rows"),
        ((2, 1), "overlapping rows"),
    ],
)
def test_a_view_without_a_library_layout_asks_for_a_copy(strides, name):
    product = prepared(one((4, 3), strides), one((3, 2), (2, 1)), one((4, 2), (2, 1)))
    assert product == {"copies": ["a"]}, name


def test_a_transposed_result_needs_no_swap():
    product = prepared(one((4, 3), (3, 1)), one((3, 2), (2, 1)), one((4, 2), (1, 4)))
    assert (product["is_swapped"], product["m"], product["n"], product["ldd"]) == (0, 4, 2, 4)


def test_dimensions_of_one_element_may_have_any_stride():
    for stride in (0, 1, 5, -7, 10**12):
        product = prepared(
            one((1, 3), (stride, 1)), one((3, 1), (1, stride)), one((1, 1), (stride, stride))
        )
        assert "copies" not in product
        assert min(product["lda"], product["ldb"], product["ldd"]) >= 1


def test_a_batch_that_shares_b_becomes_rows():
    product = prepared(one((5, 4, 3), (12, 3, 1)), one((3, 2), (2, 1)), one((5, 4, 2), (8, 2, 1)))
    assert (product["batch"], product["n"], product["outer"]) == (1, 20, [])


def test_the_longest_batch_dimension_goes_to_the_library():
    product = prepared(
        one((2, 7, 4, 3), (0, 12, 3, 1)),
        one((2, 7, 3, 2), (6, 0, 2, 1)),
        one((2, 7, 4, 2), (56, 8, 2, 1)),
    )
    assert product["batch"] == 7
    assert [dim[0] for dim in product["outer"]] == [2]


def test_an_addend_in_the_order_of_the_result_is_passed_unchanged():
    product = prepared(
        one((4, 3), (3, 1)), one((3, 2), (2, 1)), one((4, 2), (2, 1)), one((4, 2), (10, 1), 64)
    )
    assert (product["ldc"], product["ldd"], product["c"]) == (10, 2, 64)


def test_an_addend_in_another_order_is_copied():
    product = prepared(
        one((4, 3), (3, 1)), one((3, 2), (2, 1)), one((4, 2), (2, 1)), one((4, 2), (1, 4))
    )
    assert product == {"copies": ["addend"]}


@pytest.mark.parametrize(
    ("a", "b", "out", "status"),
    [
        (one((), ()), one((3,), (1,)), one((), ()), 1),
        (one((2, 3), (3, 1)), one((4, 2), (2, 1)), one((2, 2), (2, 1)), 2),
        (one((2, 2, 3), (6, 3, 1)), one((3, 3, 2), (6, 2, 1)), one((3, 2, 2), (4, 2, 1)), 3),
        (one((2, 3), (3, 1)), one((3, 2), (2, 1)), one((2, 3), (3, 1)), 5),
        (one((2, 3), (3, 1)), one((3, 2), (2, 1)), one((2, 2), (0, 1)), 6),
    ],
)
def test_shapes_that_do_not_fit_give_a_status(a, b, out, status):
    assert prepared(a, b, out) == {"status": status}
