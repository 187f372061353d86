"""ATen's recurrent layers: LSTM, GRU and RNN."""

from gputensor.importers.aten.table import aten
from gputensor.importers.public_functions import gt

__all__ = []

#: Layers over more time steps become one loop, which runs as often as there are steps.
MOST_UNROLLED = 64


def _lstm_step(gates, states, weight, bias, project):
    hidden, cell = states
    parts = gt.split(gates + gt.linear(hidden, weight, bias), 4, -1)
    into, forget, new, out = parts
    cell = gt.sigmoid(forget) * cell + gt.sigmoid(into) * gt.tanh(new)
    hidden = gt.sigmoid(out) * gt.tanh(cell)
    return [hidden if project is None else gt.linear(hidden, project), cell]


def _gru_step(gates, states, weight, bias, _project):
    (hidden,) = states
    reset, update, new = gt.split(gates, 3, -1)
    more = gt.split(gt.linear(hidden, weight, bias), 3, -1)
    reset, update = gt.sigmoid(reset + more[0]), gt.sigmoid(update + more[1])
    new = gt.tanh(new + reset * more[2])
    return [new + update * (hidden - new)]


def _plain_step(function):
    def step(gates, states, weight, bias, _project):
        return [function(gates + gt.linear(states[0], weight, bias))]

    return step


def _directed(x, states, parts, step, backwards):
    """Run one direction of one layer over x (time, batch, size); return (outputs, last states)."""
    w_in, w_state, b_in, b_state, project = parts
    gates = gt.linear(x, w_in, b_in)

    def turn(states, row):
        states = step(row, states, w_state, b_state, project)
        return states, states[0]

    if x.shape[0] > MOST_UNROLLED:
        states, outputs = gt.scan(turn, states, gates, reverse=backwards)
        return outputs, states
    outputs = [None] * x.shape[0]
    for time in range(x.shape[0])[:: -1 if backwards else 1]:
        states, outputs[time] = turn(states, gates[time])
    return gt.stack(outputs, 0), states


def _layers(x, firsts, weights, how, step):
    """Run all layers; `firsts` are the first states (layers * directions, batch, size)."""
    has_biases, n_layers, bidirectional, batch_first = how
    x = gt.moveaxis(x, 0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    size = len(weights) // (n_layers * directions)
    lasts = []
    for layer in range(n_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            held = list(weights[at * size : (at + 1) * size])
            biases = held[2:4] if has_biases else [None, None]
            rest = held[4:] if has_biases else held[2:]
            parts = (*held[:2], *biases, rest[0] if rest else None)
            states = [one[at] for one in firsts]
            y, states = _directed(x, states, parts, step, direction == 1)
            outputs.append(y)
            lasts.append(states)
        x = outputs[0] if directions == 1 else gt.concat(outputs, axis=-1)
    finals = [gt.stack([states[i] for states in lasts], 0) for i in range(len(firsts))]
    return (gt.moveaxis(x, 0, 1) if batch_first else x, *finals)


@aten("lstm")
def lstm(x, firsts, weights, has_biases, n_layers, *others):
    _dropout, _train, *how = others
    return _layers(x, firsts, weights, (has_biases, n_layers, *how), _lstm_step)


@aten("gru")
def gru(x, first, weights, has_biases, n_layers, *others):
    _dropout, _train, *how = others
    return _layers(x, [first], weights, (has_biases, n_layers, *how), _gru_step)


def _rnn(function):
    def run(x, first, weights, has_biases, n_layers, *others):
        _dropout, _train, *how = others
        step = _plain_step(function)
        return _layers(x, [first], weights, (has_biases, n_layers, *how), step)

    return run


aten("rnn_tanh")(_rnn(gt.tanh))
aten("rnn_relu")(_rnn(gt.relu))


@aten("lstm_cell")
def lstm_cell(x, states, w_in, w_state, b_in=None, b_state=None):
    return tuple(_lstm_step(gt.linear(x, w_in, b_in), states, w_state, b_state, None))


@aten("gru_cell")
def gru_cell(x, state, w_in, w_state, b_in=None, b_state=None):
    return _gru_step(gt.linear(x, w_in, b_in), [state], w_state, b_state, None)[0]


def _cell(function):
    def run(x, state, w_in, w_state, b_in=None, b_state=None):
        step = _plain_step(function)
        return step(gt.linear(x, w_in, b_in), [state], w_state, b_state, None)[0]

    return run


aten("rnn_tanh_cell")(_cell(gt.tanh))
aten("rnn_relu_cell")(_cell(gt.relu))
