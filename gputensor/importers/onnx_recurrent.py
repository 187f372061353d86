"""ONNX's recurrent layers: RNN, GRU, LSTM."""

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_math import softplus
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import Missing, ints
from gputensor.importers.public_functions import gt

__all__ = ["mark_loops"]

#: Layers over more time steps become one loop, which runs as often as there are steps.
MOST_UNROLLED = 64


def mark_loops(graph, protos):
    """Mark the layers whose number of steps may be free; `protos` describe values of the graph."""
    known = {}
    for one in protos:
        for axis, dim in enumerate(one.type.tensor_type.shape.dim):
            known[one.name, axis] = dim.WhichOneof("value") == "dim_value"
    for step in graph.steps:
        if step.key[0] == "" and step.key[1] in ("GRU", "LSTM", "RNN"):
            axis = step.attributes.get("layout") or 0
            step.attributes["is_loop"] = not known.get((step.inputs[0], axis), False)


def _function(name, alpha, beta):
    """Return an activation by its ONNX name."""
    functions = {
        "affine": lambda x: x * (1.0 if alpha is None else alpha) + (beta or 0.0),
        "elu": lambda x: gt.where(x < 0, gt.expm1(x) * (1.0 if alpha is None else alpha), x),
        "hardsigmoid": lambda x: gt.clip(
            x * (0.2 if alpha is None else alpha) + (0.5 if beta is None else beta), 0, 1
        ),
        "leakyrelu": lambda x: gt.where(x < 0, x * (0.01 if alpha is None else alpha), x),
        "relu": gt.relu,
        "scaledtanh": lambda x: gt.tanh(x * beta) * alpha,
        "sigmoid": gt.sigmoid,
        "softplus": softplus,
        "softsign": lambda x: x / (1 + gt.abs(x)),
        "tanh": gt.tanh,
        "thresholdedrelu": lambda x: gt.where(x > (1.0 if alpha is None else alpha), x, 0),
    }
    if name.lower() not in functions:
        raise argument_error(Missing, "activations", name, f"one of {', '.join(functions)}")
    return functions[name.lower()]


def _functions(names, alphas, betas, defaults, direction):
    """Return the activations of one direction."""
    count = len(defaults)
    names = list(names or defaults * (direction + 1))
    part = slice(direction * count, (direction + 1) * count)
    alphas = [*(alphas or ()), *[None] * 8][part]
    betas = [*(betas or ()), *[None] * 8][part]
    return [_function(*one) for one in zip(names[part], alphas, betas, strict=True)]


def _layer(x, states, lengths, step, how):
    """Return outputs (time, batch, size) and the last states; `how` is (is_backward, is_loop).

    After its end, a sequence keeps its states and its outputs are zeros. Backwards, each sequence
    begins with its own last element.
    """
    is_backward, is_loop = how
    n_times = x.shape[0]

    def turn(states, row, time):
        new = step(row, states)
        if lengths is None:
            return new, new[0]
        runs = gt.reshape(gt.greater(lengths, time), (-1, 1))
        states = [gt.where(runs, a, b) for a, b in zip(new, states, strict=True)]
        return states, gt.where(runs, new[0], 0)

    if is_loop or n_times > MOST_UNROLLED:
        times = gt.arange(n_times, dtype="int32", device=x.device)
        states, outputs = gt.scan(
            lambda states, one: turn(states, *one), states, (x, times), reverse=is_backward
        )
        return outputs, states
    outputs = [None] * n_times
    for time in range(n_times)[::-1] if is_backward else range(n_times):
        states, outputs[time] = turn(states, x[time], time)
    return gt.stack(outputs, 0), states


def _run(x, weights, firsts, lengths, make_step, options):
    """Run all directions; return outputs (time, directions, batch, size) and the last states."""
    layout, direction, size, is_loop = options
    x = gt.moveaxis(x, 0, 1) if layout else x
    batch, dtype = x.shape[1], x.dtype
    if lengths is not None and all(length == x.shape[0] for length in _lengths(lengths)):
        lengths = None
    rows, lasts = [], []
    count = 2 if direction == "bidirectional" else 1
    for i in range(count):
        states = []
        for first in firsts:
            if first is None:
                states.append(gt.zeros((batch, size), dtype=dtype, device=x.device))
            else:
                states.append(first[:, i] if layout else first[i])
        step = make_step(i, [None if w is None else w[i] for w in weights])
        is_backward = direction == "reverse" or i == 1
        y, states = _layer(x, states, lengths, step, (is_backward, is_loop))
        rows.append(y)
        lasts.append(states)
    y = gt.stack(rows, 1)
    finals = [gt.stack([states[j] for states in lasts], 0) for j in range(len(firsts))]
    if layout:
        y = gt.permute_dims(y, (2, 0, 1, 3))
        finals = [gt.moveaxis(one, 0, 1) for one in finals]
    return (y, *finals)


def _lengths(lengths):
    try:
        return ints(lengths)
    except Exception:  # a trace, which has no values
        return [-1]


def _limited(clip):
    return (lambda x: x) if clip is None else (lambda x: gt.clip(x, -clip, clip))


def _bias(b, size, count):
    """Return the biases (of the input, of the state), each for `count` gates."""
    return (0, 0) if b is None else (b[: count * size], b[count * size :])


@operator("RNN")
def rnn(
    x, w, r, b=None, lengths=None, first=None, *, activation_alpha, activation_beta, activations,
    clip, direction, hidden_size, layout=0, is_loop=False,
):  # fmt: skip
    limit = _limited(clip)

    def make_step(i, parts):
        w, r, b = parts
        (f,) = _functions(activations, activation_alpha, activation_beta, ["Tanh"], i)
        mine, others = _bias(b, hidden_size, 1)
        return lambda x, states: [f(limit(x @ w.T + states[0] @ r.T + mine + others))]

    return _run(
        x, (w, r, b), [first], lengths, make_step, (layout, direction, hidden_size, is_loop)
    )


@operator("GRU")
def gru(
    x, w, r, b=None, lengths=None, first=None, *, activation_alpha, activation_beta, activations,
    clip, direction, hidden_size, linear_before_reset, layout=0, is_loop=False,
):  # fmt: skip
    limit, n = _limited(clip), hidden_size

    def make_step(i, parts):
        w, r, b = parts
        f, g = _functions(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh"], i)
        mine, others = _bias(b, n, 3)

        def part(value, k):
            return value if b is None else value[k * n : (k + 1) * n]

        def step(x, states):
            h = states[0]
            gates = x @ w.T + mine
            z = f(limit(gates[:, :n] + h @ r[:n].T + part(others, 0)))
            reset = f(limit(gates[:, n : 2 * n] + h @ r[n : 2 * n].T + part(others, 1)))
            if linear_before_reset:
                inner = reset * (h @ r[2 * n :].T + part(others, 2))
            else:
                inner = (reset * h) @ r[2 * n :].T + part(others, 2)
            return [(1 - z) * g(limit(gates[:, 2 * n :] + inner)) + z * h]

        return step

    return _run(x, (w, r, b), [first], lengths, make_step, (layout, direction, n, is_loop))


@operator("LSTM")
def lstm(
    x, w, r, b=None, lengths=None, *others, activation_alpha, activation_beta, activations,
    clip, direction, hidden_size, input_forget, layout=0, is_loop=False,
):  # fmt: skip
    limit, n = _limited(clip), hidden_size
    first, cell, peepholes = (*others, None, None, None)[:3]
    if input_forget:
        raise argument_error(Missing, "LSTM", Described("input_forget"), "separate gates")

    def make_step(i, parts):
        w, r, b, p = parts
        names = ["Sigmoid", "Tanh", "Tanh"]
        f, g, last = _functions(activations, activation_alpha, activation_beta, names, i)
        mine, others = _bias(b, n, 4)

        def seen(c, k):
            return 0 if p is None else c * p[k * n : (k + 1) * n]

        def step(x, states):
            h, c = states
            gates = x @ w.T + h @ r.T + mine + others
            enters = f(limit(gates[:, :n] + seen(c, 0)))
            stays = f(limit(gates[:, 2 * n : 3 * n] + seen(c, 2)))
            c = stays * c + enters * g(limit(gates[:, 3 * n :]))
            leaves = f(limit(gates[:, n : 2 * n] + seen(c, 1)))
            return [leaves * last(c), c]

        return step

    weights, options = (w, r, b, peepholes), (layout, direction, n, is_loop)
    return _run(x, weights, [first, cell], lengths, make_step, options)
