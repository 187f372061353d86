"""Control flow on tensors, with JAX's names, arguments and meaning: eager, and in a trace.

In eager execution the functions are called as Python functions, and conditions are read on the
host. In a trace they become regions of one call (DESIGN.md, Control flow), and tensors that they
use in addition to their arguments are captured. They must not write to their arguments. Results are
new tensors, even those of a loop without iterations.
"""

from __future__ import annotations

import sys

import numpy as np

from gputensor._arrays.element_types import dtype_name
from gputensor.errors import Described, argument_error, function_argument, int_argument
from gputensor.programs import tree
from gputensor.programs.function import Argument, Call, Operand
from gputensor.programs.recorder import Recorder
from gputensor.programs.trace_device import Tracer, active, user_line
from gputensor.programs.tracing import finish, input_tensor, operand_of
from gputensor.streams.queue import device_number
from gputensor.tensor.core import Tensor, device_number_of
from gputensor.tensor.interop import asarray, copy
from gputensor.tensor.manipulation import empty
from gputensor.tensor.manipulation.joining import stack

__all__ = ["cond", "fori_loop", "scan", "while_loop"]

_NUMBERS = (bool, int, float, complex, np.generic)


def _is_leaf(part):
    return isinstance(part, (Tensor, *_NUMBERS))


def _leaves(name, value):
    """Return ([(path, Tensor)], structure) of a tree, with its numbers as tensors."""
    pairs, structure = tree.flatten(value, _is_leaf, name)
    place = next((device_number_of(leaf) for _p, leaf in pairs if isinstance(leaf, Tensor)), None)
    trace = active()
    if trace is not None:
        return [
            (path, trace.inside(_tensor(leaf, trace.number))) for path, leaf in pairs
        ], structure
    return [(path, _tensor(leaf, place)) for path, leaf in pairs], structure


def _tensor(leaf, device, dtype=None):
    if isinstance(leaf, Tensor):
        return leaf
    return asarray(leaf, dtype=dtype, device=device)


def _like(name, structure, before, value):
    """Return the tensors of `value`, which must have the structure and types of `before`."""
    leaves = tree.matched(structure, value, _is_leaf, name)
    found = []
    for leaf, (path, wanted) in zip(leaves, before, strict=True):
        one = _tensor(leaf, device_number_of(wanted), wanted.dtype)
        if (one.dtype, one.shape) != (wanted.dtype, wanted.shape):
            rule = f"{_shown(wanted)} as before"
            raise argument_error(TypeError, path, Described(_shown(one)), rule)
        found.append(one)
    return found


def _shown(tensor):
    return f"{dtype_name(tensor.dtype)}{list(tensor.shape)}"


def _truth(name, value):
    """Return a condition as a bool or a tensor of one bool."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if not isinstance(value, Tensor) or value.shape or value.dtype.kind != "b":
        got = Described(_shown(value) if isinstance(value, Tensor) else type(value).__name__)
        raise argument_error(TypeError, name, got, "a bool, or a bool tensor without axes")
    return value


def _is_known(value):
    """Whether the value of a condition or bound is available while tracing."""
    trace = active()
    return not isinstance(value, Tensor) or trace is None or device_number_of(value) != trace.number


# ---- regions


def _region(name, arguments, function, check=lambda result: result):
    """Trace a function into a region with the given inputs; return (Recorder, result)."""
    trace = active()
    parent = trace.recorder
    recorder = Recorder(parent.trace, name, parent)
    recorder.function.facts = parent.function.facts
    trace.record(recorder)
    try:
        inputs = [input_tensor(recorder, path, dtype, shape) for path, dtype, shape in arguments]
        result = check(function(*inputs))
        finish(recorder, result)
    finally:
        trace.record(parent)
    return recorder, result


def _inputs(leaves):
    return [(path, dtype_name(leaf.dtype), leaf.shape) for path, leaf in leaves]


def _call(name, attributes, operands, recorders, results):
    """Record a call with regions; return the tensors that it writes, as in `results`."""
    trace = active()
    recorder = trace.recorder
    places = list({place: None for one in recorders for place in one.captures})
    for one in recorders:
        for index, place in enumerate(places):
            value = one.captures.get(place)
            if value is None:
                value = one.value("input", place.nbytes)
            path = one.values[value].name = f"captured.{index}"
            run = Operand(value, "uint8", (place.nbytes,), (1,))
            one.function.inputs.append(Argument(path, run))
    line = user_line()
    reads = [operand_of(recorder, operand.contiguous()) for operand in operands]
    for place in places:
        reads.append(Operand(recorder.current(place), "uint8", (place.nbytes,), (1,)))
    writes, made = [], []
    for dtype, shape in results:
        tensor = empty(shape, dtype=dtype, device=trace.number)
        operand = recorder.make(tensor)
        made.append(tensor)
        writes.append(operand)
    regions = tuple(one.function for one in recorders)
    stream = recorder.stream_now()
    recorder.calls.append(
        Call(name, attributes, tuple(writes), tuple(reads), (None,) * len(writes), stream, line,
             regions)
    )  # fmt: skip
    return made


def _results(leaves):
    return [(dtype_name(leaf.dtype), leaf.shape) for _path, leaf in leaves]


# ---- cond


def cond(pred, true_fun, false_fun, *operands):
    """Return ``true_fun(*operands)`` if `pred` is true, otherwise ``false_fun(*operands)``.

    Parameters
    ----------
    pred : bool or Tensor
        One bool without axes. In eager execution a tensor is read on the host.
    true_fun, false_fun : callable
        In a trace, both are traced; their results must have the same structure, dtypes and shapes.
    operands
        Trees of tensors and numbers.

    Returns
    -------
    tree of Tensor
        New tensors.

    Raises
    ------
    TypeError
        If `pred` is not one bool, or the results of the functions differ in type in a trace.

    Examples
    --------
    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, -2.0], device="host")
    >>> gt.cond(gt.sum(x) > 0, lambda x: x, lambda x: -x, x).numpy()
    array([-1.,  2.], dtype=float32)
    """
    pred = _truth("pred", pred)
    for title, one in (("cond: true_fun", true_fun), ("cond: false_fun", false_fun)):
        function_argument(title, one)
    leaves, structure = _leaves("operands", operands)
    found = {}

    def traced(name, function):
        def check(result):
            pairs, made = _leaves(name, result)
            if not found:
                found["first"] = pairs, made
                return [leaf for _path, leaf in pairs]
            before, first = found["first"]
            return _like(name, first, _named(name, before), result)

        def run(*tensors):
            return function(*tree.unflatten(structure, tensors))

        return _region(name, _inputs(leaves), run, check)[0]

    if _is_known(pred):
        name, function = ("true_fun", true_fun) if pred else ("false_fun", false_fun)
        result = function(*tree.unflatten(structure, [leaf for _path, leaf in leaves]))
        pairs, made = _leaves(name, result)
        return tree.unflatten(made, [copy(leaf) for _path, leaf in pairs])

    recorders = [traced("true_fun", true_fun), traced("false_fun", false_fun)]
    pairs, made = found["first"]
    tensors = [pred, *(leaf for _path, leaf in leaves)]
    results = _call("cond", {}, tensors, recorders, _results(pairs))
    return tree.unflatten(made, results)


# ---- loops


def while_loop(cond_fun, body_fun, init_val):
    """Repeat ``val = body_fun(val)`` while ``cond_fun(val)`` is true; return the last `val`.

    Parameters
    ----------
    cond_fun : callable
        Returns one bool without axes. In eager execution it is read on the host before each
        iteration.
    body_fun : callable
        Returns a tree with the structure, dtypes and shapes of `init_val`.
    init_val
        A tree of tensors and numbers.

    Returns
    -------
    tree of Tensor
        New tensors, even without an iteration.

    Raises
    ------
    TypeError
        If the result of `cond_fun` or `body_fun` has another type.

    Examples
    --------
    >>> import gputensor as gt
    >>> x = gt.asarray(1.0, device="host")
    >>> gt.while_loop(lambda x: x < 100, lambda x: x * 3, x).item()
    243.0
    """
    function_argument("while_loop: cond_fun", cond_fun)
    function_argument("while_loop: body_fun", body_fun)
    leaves, structure = _leaves("init_val", init_val)
    named = _named("body_fun", leaves)

    def rebuilt(tensors):
        return tree.unflatten(structure, tensors)

    if active() is None:
        tensors = [leaf for _path, leaf in leaves]
        while _truth("cond_fun", cond_fun(rebuilt(tensors))):
            tensors = _like("body_fun", structure, named, body_fun(rebuilt(tensors)))
        return rebuilt(map(copy, tensors))
    inputs = _inputs(leaves)
    condition, _result = _region(
        "condition", inputs, lambda *tensors: cond_fun(rebuilt(tensors)), _one_bool
    )
    body, _result = _region(
        "body",
        inputs,
        lambda *tensors: body_fun(rebuilt(tensors)),
        lambda result: _like("body_fun", structure, named, result),
    )
    tensors = [leaf for _path, leaf in leaves]
    return rebuilt(_call("while_loop", {}, tensors, [condition, body], _results(leaves)))


def _one_bool(result):
    return _tensor(_truth("cond_fun", result), active().number)


def _named(name, leaves):
    """Return the leaves with `name` in place of the first name of their paths."""
    return [(name + path[path.find(".") :] if "." in path else name, leaf) for path, leaf in leaves]


def fori_loop(lower, upper, body_fun, init_val):
    """Return `val` after ``val = body_fun(i, val)`` for each i in ``range(lower, upper)``.

    Parameters
    ----------
    lower, upper : int or Tensor
        With a Tensor, a trace makes a `while_loop`.
    body_fun : callable
        Takes `i`, an int64 tensor without axes, and `val`; returns a tree with the structure,
        dtypes and shapes of `init_val`.
    init_val
        A tree of tensors and numbers.

    Returns
    -------
    tree of Tensor
        New tensors, even without an iteration.

    Raises
    ------
    TypeError
        For bounds that are not integers, and a result of `body_fun` of another type.

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.fori_loop(0, 5, lambda i, x: x + i, gt.asarray(0, device="host")).item()
    10
    """
    if not (_is_known(lower) and _is_known(upper)):
        return _counted(lower, upper, body_fun, init_val)
    lower, upper = _bound("lower", lower), _bound("upper", upper)
    function_argument("fori_loop: body_fun", body_fun)
    leaves, structure = _leaves("init_val", init_val)
    named = _named("body_fun", leaves)
    if active() is None:
        tensors = [leaf for _path, leaf in leaves]
        place = device_number_of(tensors[0]) if tensors else device_number(None)
        for index in range(lower, upper):
            number = asarray(index, dtype="int64", device=place)
            result = body_fun(number, tree.unflatten(structure, tensors))
            tensors = _like("body_fun", structure, named, result)
        return tree.unflatten(structure, map(copy, tensors))
    body, _result = _region(
        "body",
        [("i", "int64", ()), *_inputs(leaves)],
        lambda index, *tensors: body_fun(index, tree.unflatten(structure, tensors)),
        lambda result: _like("body_fun", structure, named, result),
    )
    tensors = [leaf for _path, leaf in leaves]
    attributes = {"lower": lower, "upper": upper}
    results = _call("fori_loop", attributes, tensors, [body], _results(leaves))
    return tree.unflatten(structure, results)


def _bound(name, value):
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, (bool, float)):
        raise argument_error(TypeError, name, value, "an int")
    return int_argument(name, value)


def _counted(lower, upper, body_fun, init_val):
    place = active().number

    def count(value):
        return _tensor(value, place, "int64").astype("int64")

    def body(value):
        index, last, carry = value
        return index + 1, last, body_fun(index, carry)

    start = count(lower), count(upper), init_val
    return while_loop(lambda value: value[0] < value[1], body, start)[2]


# ---- scan


def scan(f, init, xs=None, length=None, reverse=False):
    """Return the last carry and the stacked results of ``carry, y = f(carry, x)`` over `xs`.

    Parameters
    ----------
    f : callable
        Takes the carry and the slices of `xs` along axis 0; returns a pair: a carry with the same
        structure, dtypes and shapes, and a tree of results or None.
    init
        The first carry: a tree of tensors and numbers.
    xs : optional
        A tree of tensors with the same extent of axis 0. Without it, `f` receives None.
    length : int, optional
        The number of iterations; needed without `xs`.
    reverse : bool
        Whether to begin at the end of `xs`; the results are in the order of `xs` in either case.

    Returns
    -------
    (carry, results)
        Trees of new tensors; axis 0 of the results has `length` elements.

    Raises
    ------
    TypeError
        If `f` returns no pair, or a carry of another type.
    ValueError
        If `length` is missing, negative, or not the extent of `xs`.

    Examples
    --------
    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 3], device="host")
    >>> total, sums = gt.scan(lambda s, x: (s + x, s + x), 0, x)
    >>> total.item(), sums.numpy()
    (6, array([1, 3, 6]))
    """
    function_argument("scan: f", f)
    carry, structure = _leaves("init", init)
    arrays, slices = _leaves("xs", xs)
    length = _length(length, arrays)
    named = _named("f.0", carry)
    made = []

    def turn(*tensors):
        """Return the leaves of the carry of one iteration, then those of its results."""
        x = tree.unflatten(slices, tensors[len(carry) :])
        pair = f(tree.unflatten(structure, tensors[: len(carry)]), x)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise argument_error(TypeError, "f", pair, "a pair (carry, y)")
        results, shape = _leaves("f.1", pair[1])
        made[:] = [shape]
        return [*_like("f.0", structure, named, pair[0]), *(leaf for _path, leaf in results)]

    if active() is None and length:
        last, rows = [leaf for _path, leaf in carry], [None] * length
        for index in reversed(range(length)) if reverse else range(length):
            both = turn(*last, *(leaf[index] for _path, leaf in arrays))
            last, rows[index] = both[: len(carry)], both[len(carry) :]
        last = list(map(copy, last))
        stacked = [stack(column) for column in zip(*rows, strict=True)]
    else:
        last, stacked = _scanned(turn, carry, arrays, length, bool(reverse))
    return tree.unflatten(structure, last), tree.unflatten(made[0], stacked)


def _scanned(turn, carry, arrays, length, reverse):
    elements = [(path, dtype_name(leaf.dtype), leaf.shape[1:]) for path, leaf in arrays]
    inputs = [*_inputs(carry), *elements]
    if active() is None:  # no iteration: only the dtypes and shapes of the results are needed
        place = device_number_of(carry[0][1]) if carry else device_number(None)
        with Tracer(place, {}) as trace:
            Recorder.of(trace, "scan")
            _body, result = _region("body", inputs, turn)
            shapes = [(leaf.dtype, leaf.shape) for leaf in result[len(carry) :]]
        made = [empty((0, *shape), dtype=dtype, device=place) for dtype, shape in shapes]
        return [copy(leaf) for _path, leaf in carry], made
    body, result = _region("body", inputs, turn)
    stacked = [(dtype_name(leaf.dtype), (length, *leaf.shape)) for leaf in result[len(carry) :]]
    tensors = [leaf for _path, leaf in (*carry, *arrays)]
    counts = {"carry": len(carry), "arrays": len(arrays)}
    attributes = {"length": length, "reverse": reverse, **counts}
    made = _call("scan", attributes, tensors, [body], _results(carry) + stacked)
    return made[: len(carry)], made[len(carry) :]


def _length(length, arrays):
    if length is not None:
        length = _bound("length", length)
        if not 0 <= length <= sys.maxsize:
            raise argument_error(ValueError, "length", length, f"0 to {sys.maxsize}")
    for path, leaf in arrays:
        if not leaf.shape:
            got = Described("a tensor without axes")
            raise argument_error(ValueError, path, got, "at least one axis")
        if length is None:
            length = leaf.shape[0]
        if leaf.shape[0] != length:
            raise argument_error(ValueError, path, Described(f"{leaf.shape[0]} slices"), length)
    if length is None:
        raise argument_error(ValueError, "length", None, "an int, because xs is not given")
    return length
