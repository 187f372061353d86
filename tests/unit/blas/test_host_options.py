"""Product calls on a host device carry the precision flags in force."""

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor._kernels import calls

TF32, DETERMINISTIC = 1, 32


@pytest.fixture
def seen(monkeypatch):
    """The attributes of each product that runs, by name."""
    found = []
    for row in calls.CALLS.values():
        if "precision" in row.attributes:
            monkeypatch.setattr(row, "run", spied(row, found))
    return found


def spied(row, found):
    run = row.run

    def spy(*arguments):
        found.append(dict(zip(row.attributes, row.split(arguments)[0], strict=True)))
        return run(*arguments)

    return spy


def ones(*shape, dtype="float32"):
    return gt.ones(shape, dtype=dtype, device="host")


CALLS = {
    "matmul": lambda: gt.matmul(ones(3, 4), ones(4, 5)),
    "linear": lambda: gt.linear(ones(3, 4), ones(5, 4), ones(5), activation="relu"),
    "addmm": lambda: gt.addmm(ones(3, 5), ones(3, 4), ones(4, 5), beta=2),
    "grouped": lambda: gt.grouped_matmul([ones(3, 4)], [ones(4, 5)]),
    "scaled": lambda: gt.scaled_matmul(
        ones(3, 16, dtype=gt.float8_e4m3), ones(16, 3, dtype=gt.float8_e4m3), None, None
    ),
    "quantized": lambda: gt.quantized_linear(ones(3, 32), *gt.quantize_int8(ones(5, 32))),
}


@pytest.mark.parametrize("name", CALLS)
def test_flags_in_force_travel_with_the_call(seen, name):
    CALLS[name]()
    assert [one["precision"] for one in seen] == [0]
    seen.clear()
    with blas.precision(allow_tf32=True, deterministic=True):
        CALLS[name]()
    assert [one["precision"] for one in seen] == [TF32 | DETERMINISTIC]


@pytest.mark.parametrize("dtype", [gt.float32, gt.float8_e4m3])
def test_the_setting_of_one_call_travels_with_it(seen, dtype):
    one = blas.Precision(deterministic=True)
    gt.matmul(ones(16, 16, dtype=dtype), ones(16, 16, dtype=dtype), precision=one)
    assert [one["precision"] for one in seen] == [DETERMINISTIC]


def test_attributes_hold_what_the_call_says(seen):
    x, w, bias = np.ones((2, 3)), np.ones((3, 3)), np.arange(3.0)
    device = {"device": "host"}
    got = gt.linear(gt.asarray(x, **device), gt.asarray(w, **device), gt.asarray(bias, **device),
                    scale=2, activation="relu")  # fmt: skip
    assert [seen[0][name] for name in ("alpha", "beta", "activation")] == [2, 0, "relu"]
    assert np.array_equal(got.numpy(), 2 * x @ w.T + bias)
