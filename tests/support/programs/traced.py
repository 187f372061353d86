"""Traces functions and compares the programs with the functions run eagerly."""

from __future__ import annotations

import numpy as np

import gputensor as gt
from gputensor.programs import tree
from gputensor.programs.compile import data_of as program_data
from gputensor.programs.compile import sources_of
from gputensor.programs.program import Program
from gputensor.programs.tracing import Spec, trace_function
from gputensor.tensor.core import Tensor
from tests.support.programs.call_by_call import Interpreter

HOST = -1


def traced(function, *specs, weights=None, state=None, target=HOST):
    """Return the traced and verified function."""
    source = sources_of(function, specs, weights, state, {})[0]
    made, _weights = trace_function(source, target)
    return made


def data_of(function, *specs, weights=None, state=None, target=HOST):
    """Return the ProgramData of a function, or of a dict of functions."""
    return program_data(sources_of(function, specs, weights, state, {}), target)


def spec_of(tensor, dims):
    """Return a spec of a tensor, whose first extents are the dims in `dims`."""
    shape = list(tensor.shape)
    for place, (name, (least, most)) in enumerate(dims.items()):
        shape[place] = gt.Dim(name, least, most)
    return gt.spec(shape, tensor.dtype)


def is_tensor(part):
    return isinstance(part, Tensor)


def bits(tree_of_tensors):
    """Return [(dtype, shape, bytes)] of the tensors of a tree."""
    leaves, _structure = tree.flatten(tree_of_tensors, is_tensor)
    values = [leaf.numpy() for _path, leaf in leaves]
    return [(value.dtype, value.shape, np.ascontiguousarray(value).tobytes()) for value in values]


def both(
    function, *arguments, weights=None, state=None, dims=None, times=1, device=HOST, plan=None
):
    """Check that a function, its trace in the interpreter, and a session have the same bits."""
    specs = [
        tree.unflatten(structure, [spec_of(leaf, dims or {}) for _path, leaf in leaves])
        for leaves, structure in (tree.flatten(one, is_tensor) for one in arguments)
    ]
    data = data_of(function, *specs, weights=weights, state=state, target=device)
    interpreter = Interpreter(data, device, plan)
    session = Program(data, device).session()
    trees = {} if weights is None else {"weights": weights}
    if state is not None:
        trees["state"] = first_state(state, device)
    leaves = [leaf for _path, leaf in tree.flatten(arguments, is_tensor)[0]]
    name = next(iter(data.functions))
    for _time in range(times):
        with gt.Device(device):
            wanted = function(*arguments, **trees)
        outputs = interpreter.run(name, leaves)
        made = tree.unflatten(data.functions[name].result, outputs)
        assert bits(made) == bits(wanted), (made, wanted)
        made = getattr(session, name)(*arguments)
        assert bits(made) == bits(wanted), (made, wanted)
        if state is not None:
            found = [interpreter.states[key] for key in data.states]
            assert bits(found) == bits(trees["state"]) == bits(session.state)
    session.close()
    return data


def first_state(state, device):
    """Return a state as tensors: zeros for specs, copies of tensors."""
    leaves, structure = tree.flatten(state, lambda part: isinstance(part, (Spec, Tensor)))
    made = [
        gt.copy(leaf)
        if isinstance(leaf, Tensor)
        else gt.zeros(leaf.shape, dtype=leaf.dtype, device=device)
        for _path, leaf in leaves
    ]
    return tree.unflatten(structure, made)
