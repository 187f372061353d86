"""ONNX operators with subgraphs (If, Loop, Scan), sequences and optional values."""

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_registry import EXPANDED, operator
from gputensor.importers.onnx_values import (
    Missing,
    ints,
    is_known,
    known,
    namespace,
    number,
    tensor,
)
from gputensor.importers.public_functions import gt
from gputensor.programs.trace_device import active

__all__ = []

#: A trace unrolls loops of at most this many iterations; longer loops must keep their shapes.
MOST_TURNS = 64
#: Sequences grow in a loop, so a trace unrolls it, up to this many iterations.
MOST_PARTS = 1024


@operator("If", folds=True)
def if_(condition, *, then_branch, else_branch, context):
    if is_known(condition) or active() is None:
        branch = then_branch if number(condition) else else_branch
        return tuple(context.run(branch, []))
    results = gt.cond(
        gt.reshape(condition, ()),
        lambda: _tensors(context.run(then_branch, []), context),
        lambda: _tensors(context.run(else_branch, []), context),
    )
    return tuple(results)


def _tensors(values, context):
    return [
        _tensors(value, context) if isinstance(value, list) else tensor(value, context.device)
        for value in values
    ]


@operator("Loop", folds=True)
def loop(count=None, condition=None, *carried, body, context):
    if count is not None and not is_known(count) and active() is None:
        count = known(count)
    most = None if count is None else count if not is_known(count) else int(number(count))
    limit = MOST_PARTS if any(isinstance(one, list) for one in carried) else MOST_TURNS
    if active() is not None and not _is_short(most, condition, limit):
        return _traced_loop(most, condition, list(carried), body, context)
    carried, n_carried, columns, turn = list(carried), len(carried), None, 0
    keeps = condition is None or bool(number(condition))
    while keeps and (most is None or turn < most):
        ends = np.array(True) if condition is None else np.asarray(keeps)
        results = context.run(body, [np.array(turn, np.int64), ends, *carried])
        if not is_known(results[0]) and active() is not None:
            got = Described("a condition computed on the device, with outputs for each iteration")
            raise argument_error(Missing, "Loop", got, "a fixed number of iterations")
        keeps = bool(number(results[0]))
        carried, rows = results[1 : 1 + n_carried], results[1 + n_carried :]
        columns = columns or [[] for _row in rows]
        for column, row in zip(columns, rows, strict=True):
            column.append(row)
        turn += 1
    if columns is None:
        columns = [[] for _name in body.outputs[1 + n_carried :]]
    return (*carried, *(_stacked(column, context) for column in columns))


def _is_short(most, condition, limit):
    """Whether a trace unrolls a loop."""
    is_fixed = condition is None or is_known(condition)
    return isinstance(most, int) and most <= limit and is_fixed


def _traced_loop(most, condition, carried, body, context):
    """Return the results of a loop in a program: carried values keep their shapes.

    An iteration has no outputs apart from them.
    """
    if len(body.outputs) != 1 + len(carried):
        is_fixed = condition is None or (is_known(condition) and bool(number(condition)))
        if isinstance(most, int) and is_fixed:
            return _scanned_loop(most, carried, body, context)
        raise _unfixed(f"at most {MOST_TURNS} iterations")
    device = context.device
    start = gt.full((), 0, "int64", device=device)
    goes = gt.reshape(tensor(np.array(True) if condition is None else condition, device), ())
    limit = np.iinfo(np.int64).max if most is None else most

    def turn(value):
        index, keeps, values = value
        results = context.run(body, [index, keeps, *values])
        return index + 1, gt.reshape(tensor(results[0], device), ()), _tensors(results[1:], context)

    def goes_on(value):
        return gt.logical_and(value[1], gt.less(value[0], limit))

    init = start, goes, _tensors(carried, context)
    return tuple(gt.while_loop(goes_on, turn, init)[2])


def _scanned_loop(most, carried, body, context):
    """Return the results of a loop in a program whose number of iterations is fixed."""

    def turn(values, index):
        results = context.run(body, [index, np.array(True), *values])
        if not is_known(results[0]) or not number(results[0]):
            raise _unfixed("a loop without a condition")
        found = _tensors(results[1:], context)
        return found[: len(values)], found[len(values) :]

    places = gt.arange(most, dtype="int64", device=context.device)
    carried, rows = gt.scan(turn, _tensors(carried, context), places)
    return (*carried, *rows)


def _unfixed(rule):
    got = Described("outputs for each iteration, and no fixed number of iterations")
    return argument_error(Missing, "Loop", got, rule)


def _stacked(column, context):
    if not column:
        return np.zeros(0, np.float32)
    if namespace(*column) is np:
        return np.stack(column)
    return gt.stack([tensor(row, context.device) for row in column], 0)


@operator("Scan", 9)
def scan(
    *values,
    body,
    num_scan_inputs,
    scan_input_axes,
    scan_input_directions,
    scan_output_axes,
    scan_output_directions,
    context,
):
    n_carried = len(values) - num_scan_inputs
    carried, arrays = list(values[:n_carried]), values[n_carried:]
    axes = scan_input_axes or [0] * num_scan_inputs
    backwards = scan_input_directions or [0] * num_scan_inputs
    arrays = [gt.moveaxis(one, axis, 0) for one, axis in zip(arrays, axes, strict=True)]
    arrays = [gt.flip(one, axis=0) if b else one for one, b in zip(arrays, backwards, strict=True)]

    def turn(carry, rows):
        found = _tensors(context.run(body, [*carry, *rows]), context)
        return found[:n_carried], found[n_carried:]

    carried, rows = gt.scan(turn, carried, list(arrays))
    axes = scan_output_axes or [0] * len(rows)
    backwards = scan_output_directions or [0] * len(rows)
    rows = [gt.flip(one, axis=0) if b else one for one, b in zip(rows, backwards, strict=True)]
    rows = [gt.moveaxis(one, 0, axis) for one, axis in zip(rows, axes, strict=True)]
    return (*carried, *rows)


@operator("Scan", 8)
def scan_of_batch(lengths=None, *values, body, num_scan_inputs, directions, context):
    """In this version all values have a batch axis before the others, also the initial ones."""
    if lengths is not None:
        got = Described("sequences of different lengths")
        raise argument_error(Missing, "Scan", got, "no sequence_lens, or operator set 9")
    found = [
        scan(
            *(value[i] for value in values), body=body, num_scan_inputs=num_scan_inputs,
            scan_input_axes=None, scan_input_directions=directions, scan_output_axes=None,
            scan_output_directions=None, context=context,
        )
        for i in range(values[0].shape[0])
    ]  # fmt: skip
    return tuple(gt.stack(parts, 0) for parts in zip(*found, strict=True))


# ---- sequences are lists; an optional value is the value or None


@operator("SequenceEmpty")
def sequence_empty(*, dtype):
    return []


@operator("SequenceConstruct", folds=True)
def sequence_construct(*values):
    return list(values)


@operator("SequenceInsert", folds=True, known=(2,))
def sequence_insert(sequence, value, place=None):
    found = list(sequence)
    found.insert(len(found) if place is None else number(place), value)
    return found


@operator("SequenceErase", folds=True, known=(1,))
def sequence_erase(sequence, place=None):
    found = list(sequence)
    del found[-1 if place is None else number(place)]
    return found


@operator("SequenceAt", folds=True, known=(1,))
def sequence_at(sequence, place):
    return sequence[number(place)]


@operator("SequenceLength", folds=True)
def sequence_length(sequence):
    return np.array(len(sequence), np.int64)


@operator("ConcatFromSequence", folds=True)
def concat_from_sequence(sequence, *, axis, new_axis):
    xp = namespace(*sequence)
    values = sequence if xp is np else [tensor(one) for one in sequence]
    return xp.stack(values, axis) if new_axis else xp.concatenate(values, axis)


@operator("SplitToSequence", known=(1,))
def split_to_sequence(x, split=None, *, axis, keepdims):
    axis = axis % x.ndim
    extent = x.shape[axis]
    if split is None:
        sizes = [1] * extent
    elif split.ndim:
        sizes = ints(split)
    else:
        step = number(split)
        sizes = [min(step, extent - at) for at in range(0, extent, step)]
    parts, at = [], 0
    for part in sizes:
        piece = x[(slice(None),) * axis + (slice(at, at + part),)]
        parts.append(gt.squeeze(piece, axis) if split is None and not keepdims else piece)
        at += part
    return parts


@operator("Optional", folds=True)
def optional(value=None, *, type):
    return value


@operator("OptionalHasElement", folds=True)
def optional_has_element(value=None):
    return np.array(value is not None)


@operator("OptionalGetElement", folds=True)
def optional_get_element(value):
    return value


EXPANDED.add(("", "SequenceMap"))
