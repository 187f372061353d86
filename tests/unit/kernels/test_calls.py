"""The registry of calls, recorders, and the answers of `check` for untrusted programs."""

import importlib
import itertools
import operator
import random
import weakref

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor._driver import registry
from gputensor._kernels import calls
from gputensor._kernels.calls import ATTRIBUTE_TYPES, CALLS
from gputensor._kernels.launch import CallOperand, set_recorder
from tests.support.recorded_calls import Recorder, recording

F32 = "float32"
# Arguments that fit: attributes, writes, reads.
GOOD = {
    "elementwise": (["add", F32], [(F32, (2, 3))], [(F32, (2, 3)), ("int64", None)]),
    "reduce": (["sum", F32, [1]], [(F32, (2,))], [(F32, (2, 3))]),
    "gather": ([1], [(F32, (2, 5, 7, 4))], [(F32, (2, 3, 4)), ("int32", (5, 7))]),
    "scatter": ([0], [("bool", (3, 4))], [("bool", (5,)), ("int8", (5,)), ("int8", (5,))]),
    "check_indices": ([[3, 4]], [], [("int8", (5,)), ("int8", (5,))]),
    "arange": ([0, 2], [("int8", (5,))], []),
    "random": (["uniform", -1, 2.5], [("float16", (3, 5)), ("uint64", (4,))], []),
    "sort": ([True], [("float16", (3, 5))], [("float16", (3, 5))]),
    "partition": ([[0, 4]], [("bool", (3, 5))], [("bool", (3, 5))]),
    "argsort": ([False], [("int64", (3, 5))], [("bool", (3, 5))]),
    "topk": ([True], [(F32, (3, 2)), ("int64", (3, 2))], [(F32, (3, 5))]),
    "search": ([True], [("int64", (7,))], [("int8", (3,)), ("int8", (7,))]),
    "count": ([], [("int64", (4,))], [("uint8", (9,))]),
    "histogram": ([True], [("int64", (4,))], [("int8", (9,)), (F32, (5,))]),
    "add_at": ([], [(F32, (2, 5, 3))], [("int8", (4,)), (F32, (2, 4, 3))]),
    "mark": (["first"], [("uint32", (2,)), ("int64", (2,))], [("complex64", (33,))]),
    "pick": ([], [("bool", (9,))], [("bool", (33,)), ("uint32", (2,)), ("int64", (2,))]),
    "seen": ([], [("uint32", (2,)), ("int64", (2,))], [("int8", (9,)), ("int8", (1,))]),
    "places": ([[3, 11]], [("int64", (2, 9))], [("uint32", (2,)), ("int64", (2,))]),
    "cumulate": (["prod"], [("int64", (2, 3, 4))], [("bool", (2, 3, 4))]),
    "matrix": (["eigvalsh_l"], [(F32, (2, 3))], [("complex64", (2, 3, 3))]),
    "matrix_pair": (["qr"], [(F32, (5, 3)), (F32, (3, 3))], [(F32, (5, 3))]),
    "svd": ([True], [(F32, (5, 5)), (F32, (3,)), (F32, (3, 3))], [(F32, (5, 3))]),
    "solve": ([], [(F32, (2, 3, 4))], [(F32, (2, 3, 3)), (F32, (2, 3, 4))]),
    "lu_solve": (
        ["adjoint"],
        [(F32, (2, 3, 4))],
        [(F32, (2, 3, 3)), ("int32", (2, 3)), (F32, (2, 3, 4))],
    ),
    "transform": (
        ["irfftn", [8, 5], [2, 0], "ortho"],
        [("float64", (5, 3, 8))],
        [("complex128", (4, 3, 9))],
    ),
    "formula": (
        [[["sub", ["load", 0], ["fold", "max", ["load", 1]]], ["fold", "sum", ["load", 0]]], 1],
        [(F32, (2, 3)), ("float16", (2, 1))],
        [(F32, (2, 3)), ("int8", (2, 3))],
    ),
    "attention": (
        [0.5, True, 3, 2.0, 0],
        [(F32, (2, 4, 5, 7))],
        [(F32, (2, 4, 5, 8)), (F32, (2, 2, 9, 8)), (F32, (2, 2, 9, 7)), ("bool", (2, 4, 5, 9))]
        + [("int32", (2,))],
    ),
    "window": (
        ["padded_mean", [2, 2], [1, 2], [0, 1], [1, 0], [1, 1]],
        [(F32, (2, 3, 4, 5))],
        [(F32, (2, 3, 5, 9))],
    ),
    "convolution": (
        [[1, 2], [0, 1], [2, 1], 2, "relu6", 33],
        [(F32, (2, 6, 4, 5))],
        [(F32, (2, 4, 6, 9)), (F32, (6, 2, 2, 2)), (F32, (6,)), (F32, (2, 6, 4, 5))],
    ),
    "product": (
        [2, 0.5, "relu", False, True, 33],
        [(F32, (7, 2, 4))],
        [(F32, (7, 2, 3)), (F32, (3, 4)), (F32, (7, 2, 4)), (F32, (4,)), None, None],
    ),
    "scaled_product": (
        [None, True, 0],
        [("bfloat16", (200, 5))],
        [("float8_e4m3", (200, 300)), ("float8_e5m2", (300, 5)), (F32, (2, 3)), (F32, (3, 5))]
        + [(F32, (200, 5)), ("bfloat16", (5,))],
    ),
    "offset_products": ([], [(F32, (9, 4))], [(F32, (9, 3)), (F32, (2, 3, 4)), ("int32", (2,))]),
    "quantized_product": (
        [0],
        [(F32, (2, 20))],
        [(F32, (2, 70)), ("uint8", (2, 2, 512)), (F32, (1, 20)), (F32, (20,))],
    ),
    "formula_product": (
        [(("add", ("mul", ("load", 0), ("load", 1)), ("load", 2)),), True, 0],
        [(F32, (2, 10))],
        [(F32, (2, 70)), ("uint8", (2, 2, 512)), (F32, (1, 20)), None, (F32, (2, 10)), None, None],
    ),
    "fused_product": (
        [1e-5, True, "silu", True, False, 0],
        [(F32, (2, 10))],
        [(F32, (2, 70)), ("uint8", (2, 2, 512)), (F32, (1, 20)), (F32, (70,)), (F32, (70,))]
        + [(F32, (20,)), None],
    ),
    "normed_product": (
        [1e-5, True, "gelu", True, 0],
        [(F32, (2, 10)), (F32, (2, 70))],
        [(F32, (2, 70)), (F32, (10, 70)), (F32, (70,)), (F32, (70,)), (F32, (10,)), None],
    ),
    "row_product": (
        [(("sub", ("load", 0), ("fold", "max", ("load", 0))),), True, 0],
        [(F32, (2, 10))],
        [("float16", (2, 70)), ("float16", (10, 70)), ("float16", (10,))],
    ),
    "rotary_product": (
        [1e-5, True, 0],
        [(F32, (3, 2, 4)), (F32, (2, 9, 4)), (F32, (2, 9, 4))],
        [(F32, (2, 6)), (F32, (28, 6)), None, (F32, (6,)), (F32, (28,)), (F32, (2, 2))]
        + [(F32, (2, 2)), ("int32", (2,))],
    ),
}
# Values that a file may hold in place of any argument.
JUNK = [None, True, -1, 17, 10**5000, 1e400, float("nan"), "", "add", "x" * 10**6, [], {}, [[]]]
JUNK += [{"a": 1}, [1] * 10**5, [10**400], [2**61] * 16, [0], [-1], ["a"], (F32, (2, 3)), 2j]


def test_arguments_that_fit_pass():
    assert GOOD.keys() == CALLS.keys()
    for name, arguments in GOOD.items():
        CALLS[name].check(*arguments)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", CALLS)
def test_check_of_junk_raises_value_error_or_passes(name):
    for path in paths(GOOD[name]):
        for value in JUNK if path else ():
            try:
                CALLS[name].check(*replaced(GOOD[name], path, value))
            except ValueError as error:
                assert len(str(error)) < 1000
    for part in range(3):
        if GOOD[name][part]:
            with pytest.raises(ValueError):
                CALLS[name].check(*replaced(GOOD[name], (part,), GOOD[name][part][:-1]))


def paths(value, path=()):
    """The paths of all values in nested sequences."""
    yield path
    if isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from paths(part, (*path, index))


def replaced(value, path, new):
    if not path:
        return new
    return [
        replaced(part, path[1:], new) if index == path[0] else part
        for index, part in enumerate(value)
    ]


WRONG = {
    "normed rows of another shape": ("normed_product", (1, 1, 1), [2, 60]),
    "normed rows without a gain": ("normed_product", (2, 2), None),
    "elementwise of another shape": ("elementwise", (2, 0, 1), [3, 2]),
    "elementwise without an input": ("elementwise", (2,), [(F32, (2, 3))]),
    "elementwise of no such kind": ("elementwise", (0,), ["add", "float8_e4m3"]),
    "reduction of an axis too many": ("reduce", (0, 2), [2]),
    "reduction with other axes": ("reduce", (1, 0, 1), [3]),
    "maximum of nothing": ("reduce", (), [["max", F32, [1]], [(F32, (2,))], [(F32, (2, 0))]]),
    "gather of another dtype": ("gather", (1, 0, 0), "int32"),
    "gather by floats": ("gather", (2, 1, 0), F32),
    "gather past the last axis": ("gather", (0, 0), 3),
    "gather from nothing": ("gather", (2, 0, 1), [2, 0, 4]),
    "window of other channels": ("window", (1, 0, 1, 1), 4),
    "window in part": ("window", (0, 1), [0, 2]),
    "mean of integers": ("window", (), [["mean", [2], [1], [0], [0], [1]],
                                        [("int8", (1, 1, 3))], [("int8", (1, 1, 4))]]),
    "convolution of other channels": ("convolution", (2, 0, 1, 1), 5),
    "convolution without a stride": ("convolution", (0, 0), [1, 0]),
    "convolution with another bias": ("convolution", (2, 2, 1), [5]),
    "convolution in odd groups": ("convolution", (0, 3), 4),
    "scatter of another shape": ("scatter", (2, 0, 1), [6]),
    "scatter by two shapes": ("scatter", (2, 2, 1), [4]),
    "indices without an extent": ("check_indices", (0, 0), [3]),
    "arange of two axes": ("arange", (1, 0, 1), [5, 1]),
    "arange of integers by floats": ("arange", (0, 1), 0.5),
    "state of another shape": ("random", (1, 1, 1), [3]),
    "uniform integers": ("random", (1, 0, 0), "int32"),
    "ends in falling order": ("random", (0, 2), -2),
    "chance above 1": ("random", (), [["bernoulli", 1.5, 0],
                                      [("bool", (3,)), ("uint64", (4,))], []]),
    "more than 2**64 integers": ("random", (), [["integers", -1, 2**64 - 1],
                                                [("int8", (3,)), ("uint64", (4,))], []]),
    "permutation of two axes": ("random", (), [["permutation", 0, 0],
                                               [("int64", (3, 1)), ("uint64", (4,))], []]),
    "sorted rows of another dtype": ("sort", (1, 0, 0), F32),
    "sorted complex numbers": ("sort", (), [[True], *[[("complex64", (3, 5))]] * 2]),
    "a place beyond the row": ("partition", (0, 0), [5]),
    "order of int32": ("argsort", (1, 0, 0), "int32"),
    "more than a row": ("topk", (), [[True], [(F32, (3, 6)), ("int64", (3, 6))], [(F32, (3, 5))]]),
    "values of another shape": ("topk", (1, 0, 1), [3, 1]),
    "search for another dtype": ("search", (2, 1, 0), "int16"),
    "counts of floats": ("count", (2, 0, 0), F32),
    "even edges of integers": ("histogram", (2, 1, 0), "int64"),
    "a count for each edge": ("histogram", (1, 0, 1), [5]),
    "sums of halves": ("add_at", (), [[], [("float16", (2, 5, 3))],
                                      [("int8", (4,)), ("float16", (2, 4, 3))]]),
    "index of the wrong length": ("add_at", (2, 0, 1), [5]),
    "too few bits": ("mark", (1, 0, 1), [1]),
    "least of another type": ("seen", (2, 1, 0), "int16"),
    "bits of floats": ("seen", (2, 0, 0), F32),
    "unknown rule": ("mark", (0, 0), "last"),
    "more than there is": ("pick", (1, 0, 1), [34]),
    "starts of another length": ("pick", (2, 2, 1), [3]),
    "places of one axis": ("places", (1, 0, 1), [1, 9]),
    "sums of two axes": ("cumulate", (), [["sum"], [(F32, (2, 3))], [(F32, (2, 3))]]),
    "sums of another kind": ("cumulate", (0, 0), "median"),
    "greatest of complex": ("cumulate", (), [["max"], [("complex64", (1, 2, 3))],
                                             [("complex64", (1, 2, 3))]]),
    "exponentials of integers": ("cumulate", (), [["logaddexp"], [("int64", (1, 2, 3))],
                                                  [("int64", (1, 2, 3))]]),
    "inverse of no square": ("matrix", (), [["inv"], [(F32, (2, 3))], [(F32, (2, 3))]]),
    "unknown result of a matrix": ("matrix", (0, 0), "eigvals_l"),
    "eigenvalues in the wrong dtype": ("matrix", (1, 0, 0), "complex64"),
    "solver of halves": ("solve", (2, 0, 0), "float16"),
    "solver of other rows": ("solve", (2, 1, 1), [2, 4, 4]),
    "factors without a pivot": ("lu_solve", (2, 1, 1), [2, 2]),
    "pivots of an order": ("matrix_pair", (), [["lu"], [(F32, (5, 3)), ("int32", (5,))],
                                               [(F32, (5, 3))]]),
    "svd of one vector": ("svd", (2, 0, 1), [5]),
    "reduced triangle": ("matrix_pair", (1, 1, 1), [5, 3]),
    "transform of no axis": ("transform", (0, 2), []),
    "transform of one axis twice": ("transform", (0, 2), [2, 2]),
    "transform to no length": ("transform", (0, 1), [8, 0]),
    "real transform of complex": ("transform", (0, 0), "rfftn"),
    "transform of an axis too many": ("transform", (0, 2), [3, 0]),
    "formula of an unknown step": ("formula", (0, 0, 0), ["no_such_step"]),
    "formula without an operand": ("formula", (2,), [(F32, (2, 3))]),
    "row result with columns": ("formula", (1, 1, 1), [2, 3]),
    "formula of complex": ("formula", (2, 0, 0), "complex64"),
    "heads that do not divide": ("attention", (2, 1, 1), [2, 3, 9, 8]),
    "window without causality": ("attention", (0, 1), False),
    "lengths of a batch of 3": ("attention", (2, 4, 1), [3]),
    "product of other extents": ("product", (2, 1, 1), [4, 4]),
    "product of two types": ("product", (2, 1, 0), "float64"),
    "product of bools": ("product", (), [GOOD["product"][0], [("bool", (1, 1))],
                                         [("bool", (1, 1))] * 2 + [None] * 4]),
    "product with a complex factor": ("product", (0, 0), 1j),
    "product with beta and residual": ("product", (2, 5), (F32, (7, 2, 4))),
    "bias of another extent": ("product", (2, 3, 1), [3]),
    "one scale of two": ("scaled_product", (2, 3), None),
    "blocks of lines only": ("scaled_product", (2, 2, 1), [2, 1]),
    "fp8 with float16": ("scaled_product", (2, 0, 0), "float16"),
    "offsets of int64": ("offset_products", (2, 2, 0), "int64"),
    "int4 weights of another shape": ("quantized_product", (2, 1, 1), [2, 1, 512]),
    "groups of 35 terms": ("quantized_product", (2, 2, 1), [2, 20]),
    "a number as memory": ("product", (2, 0, 1), None),
    "a number to write": ("elementwise", (1, 0, 1), None),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_operands_that_do_not_fit_are_refused(name):
    row, path, value = WRONG[name]
    with pytest.raises(ValueError, match=f"^{row}.*: got .*; expected"):
        CALLS[row].check(*replaced(GOOD[row], path, value))


def test_rows_name_known_types_and_their_room_binds_them():
    for row in CALLS.values():
        importlib.import_module(row.room)
        assert set(row.attributes.values()) <= ATTRIBUTE_TYPES.keys()
        assert callable(row.run) and callable(row.door) and callable(row.rule), row
    assert [one for one in calls.ACTIVATIONS[1:]] == ["relu", "gelu_tanh", "gelu", "silu"]


def test_calls_that_update_what_they_write_say_so():
    updates = {
        name for name, (attributes, _writes, reads) in GOOD.items()
        if not CALLS[name].writes_all(attributes, reads)
    }  # fmt: skip
    assert updates == {"scatter", "random", "count", "histogram", "add_at", "rotary_product"}
    names = CALLS["random"].writes
    assert [CALLS["random"].writes_all([], [], name) for name in names] == [True, False]
    attributes, _writes, reads = GOOD["product"]
    assert not CALLS["product"].writes_all(attributes, [*reads[:2], None, *reads[3:]])
    assert CALLS["product"].writes_all([1, 0, *attributes[2:]], [*reads[:2], *[None] * 4])


# ---- recorders


def test_recorder_gets_descriptions_and_nothing_runs():
    with recording() as (device, recorder):
        x = gt.empty((4, 6), device=device)
        y = gt.add(x.T, 2.5)
    ((row, stream, arguments),) = recorder.calls
    assert (row.name, stream, arguments[:2]) == ("elementwise", 0, ("add", F32))
    out, a, b = arguments[2:]
    assert (out.dtype, out.shape, out.strides, out.value) == (F32, (6, 4), (4, 1), None)
    assert (a.address, a.shape, a.strides) == (out.address - 512, (6, 4), (1, 6))
    assert (b.dtype, b.shape, b.strides, b.value) == (F32, None, None, 2.5)
    assert y.shape == (6, 4)


@pytest.mark.parametrize("copy", ["copy", "setitem", "same", "zeros"])
def test_copies_of_one_run_are_calls_for_a_recorder(copy):
    with recording() as (device, recorder):
        x, y = gt.empty((4, 6), device=device), gt.empty((1, 4, 6), device=device)
        if copy == "copy":
            gt.copy(x)
        elif copy == "zeros":
            gt.zeros((4, 6), device=device)
        else:
            y[...] = y if copy == "same" else x
    assert [(row.name, arguments[0]) for row, _stream, arguments in recorder.calls] == [
        ("elementwise", "copy")
    ]


def test_products_record_their_precision_and_factors():
    with recording() as (device, recorder):
        a = gt.empty((4, 4), device=device)
        with blas.precision(allow_tf32=True, deterministic=True):
            gt.addmm(a, a, a, alpha=0.5, beta=1)
        q = gt.empty((4, 4), dtype="int64", device=device)
        gt.addmm(q, q, q, alpha=(1 << 62) + 1)
    assert recorder.calls[0][2][:6] == (0.5, 1, None, False, False, 33)
    assert recorder.calls[1][2][:2] == ((1 << 62) + 1, 1)


class Keeper(Recorder):
    """Keeps uploads; answers downloads with ones."""

    def __init__(self):
        super().__init__()
        self.uploads = []

    def upload(self, operand, array):
        self.uploads.append((operand, array.copy()))

    def download(self, operand):
        return np.ones(operand.shape, operand.dtype)


def test_transfers_call_the_recorder():
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    with recording(Keeper()) as (device, recorder):
        x = gt.asarray(values, device=device)
        assert np.array_equal(x.T.numpy(), np.ones((3, 2))) and x[0, 0].item() == 1
        assert np.array_equal(x.to_device("host").numpy(), np.ones((2, 3)))
        y = gt.ones((2, 2), device="host").to_device(device)
        ((operand, array), (moved, _)) = recorder.uploads
        assert operand.address == x.data_ptr() and moved.address == y.data_ptr()
        assert (operand.dtype, operand.strides) == ("int16", (3, 1))
        assert np.array_equal(array, values) and not recorder.calls


def test_an_exception_of_a_recorder_reaches_the_caller():
    with recording() as (device, recorder):
        x = gt.empty(3, device=device)
        for use in (x.numpy, x.__bool__, lambda: x[0].item(), lambda: x.to_device("host")):
            with pytest.raises((RuntimeError, ValueError)):
                use()
        with pytest.raises(RuntimeError, match="come from outside"):
            gt.asarray([1.0], device=device)
        recorder.call = None
        with pytest.raises(TypeError):
            x + 1
        assert not recorder.calls


def test_recorder_ends_with_none_or_with_its_device():
    device = registry.open_host(capacity=1 << 24)
    recorder = Recorder()
    seen = weakref.ref(recorder)
    set_recorder(device, recorder)
    x = gt.empty(3, device=device)
    x += 1
    set_recorder(device, None)
    x[...] = 2
    assert x.numpy().tolist() == [2, 2, 2] and len(recorder.calls) == 1
    set_recorder(device, recorder)
    registry.close_host(device)
    del recorder
    assert seen() is None
    with pytest.raises(ValueError, match="^device: got 0; expected"):
        set_recorder(0, None)


# ---- operands


def test_numbers_keep_their_value():
    for dtype, value in [("bool", True), ("uint64", 2**64 - 1), ("int64", -(2**63))]:
        assert CallOperand.number(dtype, value).value is value or value == (
            CallOperand.number(dtype, value).value
        )
    assert CallOperand.number("complex64", 1 - 2j).value == 1 - 2j
    assert CallOperand.number("float16", 0.1).value == 0.1
    with pytest.raises(OverflowError):
        CallOperand.number("int8", 300)
    with pytest.raises(ValueError, match="^dtype: got 'float'"):
        CallOperand.number("float", 1)


def test_shapes_of_operands_are_bounded():
    with pytest.raises(ValueError, match="^shape: got"):
        CallOperand(0, F32, (1,) * 17)
    with pytest.raises(ValueError, match="^shape: got"):
        CallOperand(0, F32, (1, 2), (1,))


def test_an_operand_that_covers_memory_has_each_byte_once():
    rng = random.Random()
    found = {True: 0, False: 0}
    for _ in range(3000):
        dtype, width = rng.choice([("int8", 1), ("float16", 2), (F32, 4), ("complex128", 16)])
        shape = [rng.choice([1, 1, 2, 3, 4]) for _axis in range(rng.randrange(4))]
        order, strides, step = rng.sample(range(len(shape)), len(shape)), [0] * len(shape), 1
        for axis in order:  # dense in some order of the axes, as a rule
            sign = rng.choice([1, 1, 1, -1])
            strides[axis] = sign * (step if rng.random() < 0.9 else rng.randrange(5))
            step *= shape[axis]
        low = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0) * width
        start = 1 << 20
        first = start - low + rng.choice([0, 0, 0, width])
        nbytes = step * width + rng.choice([0, 0, 0, width])
        counts = np.zeros(max(nbytes, 1), int)
        is_inside = True
        for index in itertools.product(*map(range, shape)):
            at = first - start + width * sum(map(operator.mul, index, strides))
            is_inside &= 0 <= at <= nbytes - width
            counts[at : at + width] += is_inside
        wanted = is_inside and bool((counts[:nbytes] == 1).all())
        operand = CallOperand(first, dtype, shape, strides)
        assert operand.covers(start, nbytes) == wanted, (dtype, shape, strides, first, nbytes)
        assert operand.memory() == (first, dtype, tuple(shape), tuple(strides))
        found[wanted] += 1
    assert min(found.values()) > 300
    assert CallOperand.number(F32, 1).memory() is None


def test_make_refuses_arguments_that_do_not_fit():
    x = CallOperand(4096, F32, (2, 3))
    with pytest.raises(ValueError, match="elementwise: shape: got"):
        calls.make("elementwise", -1, 0, ("add", F32, x, x, CallOperand(0, F32, (3, 2))))
    with pytest.raises(ValueError, match="elementwise: op: got 'ad'"):
        calls.make("elementwise", -1, 0, ("ad", F32, x, x, x))
    weights = [CallOperand(4096, dtype, (32, 32), (1, 32)) for dtype in ("int8", F32)]
    scales = CallOperand(4096, F32, (1, 32))
    with pytest.raises(ValueError, match="weight.strides: got"):
        arguments = (0, CallOperand(0, F32, (2, 32)), CallOperand(0, F32, (2, 32)), weights[0])
        calls.make("quantized_product", -1, 0, (*arguments, scales, None))
