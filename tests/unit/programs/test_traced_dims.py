"""Functions traced at several sizes: integers that follow from the dims, and those that do not."""

import numpy as np
import pytest

import gputensor as gt
from gputensor.errors import TraceError
from tests.support.programs.traced import both, traced

F32 = gt.float32


def refused(match, function, *specs):
    with pytest.raises(TraceError, match=match) as caught:
        traced(function, *specs)
    assert caught.value.line.startswith("test_traced_dims.py:")


def test_integers_are_explained_by_the_dims():
    def model(x):
        n = x.shape[0]
        y = gt.concat([x, x[: n // 2]])
        y[::2] += gt.arange(y[::2].shape[0], dtype=F32)[:, None]
        return gt.reshape(y, (-1,)), gt.sum(y[1:-1], axis=0) / (n - 1)

    for n in (4, 9, 64):
        both(model, gt.ones((n, 3), device="host"), dims={"n": (4, 64)})


def test_an_integer_that_nothing_explains_is_refused_with_its_line():
    def model(x):
        return x[: int(x.shape[0] ** 0.5)] + 1

    refused(
        r"got|is .* at n=2 and .* at n=1000; fix the dim", model, gt.spec((gt.Dim("n", 2, 1000),))
    )


def test_a_branch_on_a_size_is_refused():
    def model(x):
        return x + 1 if x.shape[0] < 20 else x * 2 - 1

    refused("at n=2 and", model, gt.spec((gt.Dim("n", 1, 100),)))


def test_a_constant_made_from_a_size_is_refused():
    def model(x):
        return x + gt.asarray(np.arange(x.shape[0], dtype=np.float32))

    refused("made outside of the trace from a size|at n=2", model, gt.spec((gt.Dim("n", 1, 100),)))


def test_several_dims_and_numbers_made_of_them():
    def model(x, y):
        n, m = x.shape[0], y.shape[0]
        both_ways = gt.matmul(x, y.T) / (n * m)
        return gt.reshape(both_ways, (-1,))[: n + m], gt.full((n, 2), m) * 0.5

    free = gt.spec((gt.Dim("n", 2, 20), 6)), gt.spec((gt.Dim("m", 2, 30), 6))
    program = gt.compile(model, *free, target="host")
    for n, m in ((3, 4), (20, 9), (2, 30)):
        x, y = gt.ones((n, 6), device="host"), gt.ones((m, 6), device="host")
        made, wanted = program(x, y), model(x, y)
        assert [one.tolist() for one in made] == [one.tolist() for one in wanted]


def test_writes_and_results_that_cover_everything_at_some_size():
    def model(x):
        rows = gt.zeros((20, 3))
        rows[: x.shape[0]] = x  # all of it where n is 20
        return rows, (x * 2)[:4], gt.cond(gt.sum(x) > 0, lambda r: (r + 1)[:20], lambda r: r, rows)

    for n in (4, 7, 20):
        both(model, gt.ones((n, 3), device="host"), dims={"n": (4, 20)})
