"""Recurrent layers of ONNX with any number of steps, against NumPy in float64."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import gputensor as gt
from gputensor.importers.onnx_model import model_of

SIZE, WIDTH = 4, 3


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_step(x, states, w, r, b):
    return [np.tanh(x @ w.T + states[0] @ r.T + b[:SIZE] + b[SIZE:])]


def gru_step(x, states, w, r, b):
    h = states[0]
    gates, more = x @ w.T + b[: 3 * SIZE], h @ r.T + b[3 * SIZE :]
    z, reset, new = np.split(gates, 3, -1)
    z_more, reset_more, new_more = np.split(more, 3, -1)
    z = sigmoid(z + z_more)
    new = np.tanh(new + sigmoid(reset + reset_more) * new_more)
    return [(1 - z) * new + z * h]


def lstm_step(x, states, w, r, b):
    h, c = states
    into, out, forget, new = np.split(x @ w.T + h @ r.T + b[: 4 * SIZE] + b[4 * SIZE :], 4, -1)
    c = sigmoid(forget) * c + sigmoid(into) * np.tanh(new)
    return [sigmoid(out) * np.tanh(c), c]


KINDS = {"RNN": (1, rnn_step, 1), "GRU": (3, gru_step, 1), "LSTM": (4, lstm_step, 2)}


def expected(kind, x, weights, lengths):
    """(outputs (time, directions, batch, size), last states), one sequence after the other."""
    _gates, step, n_states = KINDS[kind]
    n_times, batch = x.shape[:2]
    outputs = np.zeros((n_times, 2, batch, SIZE))
    lasts = np.zeros((n_states, 2, batch, SIZE))
    for row in range(batch):
        for direction in range(2):
            states = [np.zeros(SIZE) for _i in range(n_states)]
            parts = [one[direction].astype(np.float64) for one in weights]
            order = range(lengths[row])
            for time in order[::-1] if direction else order:
                states = step(x[time, row].astype(np.float64), states, *parts)
                outputs[time, direction, row] = states[0]
            lasts[:, direction, row] = states
    return outputs, lasts


def layer(kind, weights, has_lengths, time="t"):
    """The model of one layer in both directions."""
    names = ["x", "w", "r", "b", *(["lengths"] if has_lengths else [])]
    how = {"linear_before_reset": 1} if kind == "GRU" else {}
    results = ["y", "h", "c"][: 1 + KINDS[kind][2]]
    node = helper.make_node(
        kind, names, results, hidden_size=SIZE, direction="bidirectional", **how
    )
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [time, "n", WIDTH])]
    inputs += [value("lengths", TensorProto.INT32, ["n"])] if has_lengths else []
    outputs = [value(name, TensorProto.FLOAT, None) for name in results]
    stored = [numpy_helper.from_array(w, n) for w, n in zip(weights, names[1:4], strict=True)]
    graph = helper.make_graph([node], "layer", inputs, outputs, stored)
    opsets = [helper.make_opsetid("", 21)]
    dims = {"n": gt.Dim("n", 1, 8), **({"t": gt.Dim("t", 1, 200)} if time == "t" else {})}
    return model_of(helper.make_model(graph, opset_imports=opsets, ir_version=10), dims=dims)


def drawn(kind, rng):
    gates = KINDS[kind][0]
    shapes = (2, gates * SIZE, WIDTH), (2, gates * SIZE, SIZE), (2, 2 * gates * SIZE)
    return [rng.uniform(-0.5, 0.5, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_one_program_runs_any_number_of_steps(kind, has_lengths, rng):
    weights = drawn(kind, rng)
    model = layer(kind, weights, has_lengths)
    with model.compile(target="host") as program:
        assert sum(call.name == "scan" for call in program.data.functions["layer"].calls) == 2
        for n_times in (1, 7, 70):
            batch = int(rng.integers(1, 5))
            x = rng.standard_normal((n_times, batch, WIDTH)).astype(np.float32)
            lengths = np.full(batch, n_times, np.int32)
            if has_lengths:
                lengths = rng.integers(1, n_times + 1, batch).astype(np.int32)
            wanted, lasts = expected(kind, x, weights, lengths)
            given = [gt.asarray(x, device="host")]
            given += [gt.asarray(lengths, device="host")] if has_lengths else []
            for run in (model.run, program):
                y, *states = run(*given)
                # States stay within -1 to 1 and forget errors; sums have at most 8 terms below 4.
                np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-3, atol=1e-4)
                found = np.stack([one.numpy() for one in states])
                np.testing.assert_allclose(found, lasts, rtol=1e-3, atol=1e-4)


def test_few_fixed_steps_are_unrolled(rng):
    model = layer("RNN", drawn("RNN", rng), False, time=5)
    with model.compile(target="host") as program:
        assert "scan" not in [call.name for call in program.data.functions["layer"].calls]
