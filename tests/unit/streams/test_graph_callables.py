"""make_graphed_callables on tensors."""

import numpy as np
import pytest

import gputensor as gt
from gputensor import graphs


@pytest.fixture
def device(device):
    """The device, current during the test."""
    with gt.Device(device):
        yield device


def test_graphed_callable_gives_what_the_callable_gives(device):
    def function(a, b):
        return a * 2 + b, gt.sum(a @ b, axis=0)

    rng = np.random.default_rng()
    sample = rng.random((4, 4), np.float32)
    graphed = graphs.make_graphed_callables(function, (gt.asarray(sample), gt.asarray(sample)))
    for _ in range(4):
        a, b = rng.random((2, 4, 4), np.float32)
        first, second = graphed(gt.asarray(a), gt.asarray(b))
        np.testing.assert_allclose(first.numpy(), a * 2 + b, rtol=1e-5)
        np.testing.assert_allclose(second.numpy(), (a.astype(float) @ b).sum(0), rtol=1e-4)


def test_several_callables_share_a_pool_and_chain(device):
    rng = np.random.default_rng()
    sample = gt.asarray(rng.random(8, np.float32))
    first, second = graphs.make_graphed_callables(
        (lambda a: a + 1, lambda a: a * a), ((sample,), (sample,))
    )
    assert first.graph.pool() == second.graph.pool()
    for _ in range(4):
        a = rng.random(8, np.float32)
        got = second(first(gt.asarray(a)))
        np.testing.assert_allclose(got.numpy(), (a + 1) ** 2, rtol=1e-5)


def test_arguments_may_be_nested(device):
    pool = graphs.graph_pool_handle()
    rng = np.random.default_rng()
    sample = gt.asarray(rng.random(8, np.float32))

    def function(inputs, pair):
        return inputs["x"] * 2 + pair[1]

    samples = {"x": sample}, (sample, sample)
    graphed = graphs.make_graphed_callables(function, samples, 1, True, pool)
    assert graphed.graph.pool() == pool
    for _ in range(3):
        x, y = rng.random((2, 8), np.float32)
        got = graphed({"x": gt.asarray(x)}, (sample, gt.asarray(y)))
        np.testing.assert_allclose(got.numpy(), x * 2.0 + y, rtol=1e-6)
    with pytest.raises(ValueError, match=r"^argument 0\.x: got shape \(3,\); expected \(8,\)"):
        graphed({"x": gt.zeros(3)}, (sample, sample))
    with pytest.raises(ValueError, match="^arguments: got other containers; expected those, as in"):
        graphed({"y": sample}, (sample, sample))


def test_arguments_unlike_the_sample_are_named(device):
    sample = gt.zeros((2, 3))
    graphed = graphs.make_graphed_callables(lambda a: a + 1, (sample,))
    with pytest.raises(ValueError, match="^arguments: got 2; expected 1, as in the captured call$"):
        graphed(sample, sample)
    with pytest.raises(ValueError, match=r"^argument 0: got shape \(3, 2\); expected \(2, 3\)"):
        graphed(gt.zeros((3, 2)))
    with pytest.raises(ValueError, match="^argument 0: got dtype int32; expected float32"):
        graphed(gt.zeros((2, 3), dtype="int32"))
    with pytest.raises(ValueError, match="^sample_args: got 1 entries; expected one for each"):
        graphs.make_graphed_callables((lambda a: a, lambda a: a), ((sample,),))
    with pytest.raises(TypeError, match="^sample_args: got int; expected tensors only$"):
        graphs.make_graphed_callables(lambda a: a, (3,))


def test_wrong_arguments_are_named(device):
    x, make = gt.zeros(3), graphs.make_graphed_callables
    for error, pattern, arguments in (
        (TypeError, "sample_args: got Tensor; expected a tuple", (abs, x)),
        (TypeError, "sample_args: got ndarray; expected tensors only", (abs, (np.zeros(3),))),
        (TypeError, "callables: got int; expected a callable", (3, (x,))),
        (TypeError, "callables: got int; expected a function", ((abs, 3), ((x,), (x,)))),
        (TypeError, "num_warmup_iters: got str; expected an int", (abs, (x,), "3")),
        (ValueError, "num_warmup_iters: got -1; expected 0 or more", (abs, (x,), -1)),
    ):
        with pytest.raises(error, match=f"^{pattern}"):
            make(*arguments)
    assert make(lambda a: a + 1, [x], 0)(x).tolist() == [1, 1, 1]
