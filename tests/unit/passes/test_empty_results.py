"""Programs whose intermediate results have no elements, at some sizes of a model."""

import pytest

import gputensor as gt


@pytest.mark.parametrize("k", [0, 3])
def test_products_without_elements_are_no_calls(k):
    """Models cut everything away at some sizes; eager products of nothing work too."""

    def function(x, *, weights):
        nothing = gt.matmul(x, gt.zeros((k, 0), dtype="float32", device=x.device))
        none = gt.linear(x[:0], weights["w"], gt.ones(4, dtype="float32", device=x.device))
        return gt.concat([nothing, x + 1], axis=1), none

    weights = {"w": gt.ones((4, k), device="host")}
    x = gt.ones((2, k), device="host")
    with gt.compile(function, gt.spec((2, k), "float32"), weights=weights) as program:
        found, none = program(x)
    assert found.tolist() == [[2.0] * k] * 2 and none.shape == (0, 4)
    wanted, _none = function(x, weights=weights)
    assert found.tolist() == wanted.tolist()


def test_rows_without_elements_are_gathered():
    """Only the check of the indices remains of it."""
    where = gt.asarray([3, 1], device="host")
    x = gt.zeros((5, 0), device="host")
    with gt.compile(lambda x, i: x[i], x, where) as program:
        assert program(x, where).shape == (2, 0)
        with pytest.raises(IndexError):
            program(x, where + 2)
