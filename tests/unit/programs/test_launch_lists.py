"""Launch lists: made on a phantom GPU, checked, and launched on a phantom GPU that records them."""

import random

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.calls import bound_row
from gputensor._kernels.launch import CallOperand
from gputensor.errors import ProgramError
from gputensor.programs.ahead.bindings import Maker, fill_lists, sites_of
from gputensor.programs.ahead.call_places import places_of
from gputensor.programs.ahead.code import Kernels
from gputensor.programs.ahead.launches import LaunchList, LaunchRow, record
from gputensor.programs.ahead.sizes import launch_sizes
from gputensor.programs.bind import BoundCall, bind
from gputensor.programs.compile import data_of, sources_of
from tests.support.programs import ahead_models

FACTS = {"sm_80": (80, 108, 164 << 10), "sm_90": (90, 132, 228 << 10), "sm_75": (75, 40, 64 << 10)}
HEADER, RECORD, PATCH = 32, 64, 16


def calls_of(model, n):
    """The bound calls of a model with n rows, and the alignments of their pieces."""
    source = sources_of(model.function, model.specs, model.weights, None, {})
    (function,) = data_of(source, -1).functions.values()
    binding = bind(function, {name: n for name in function.dims})
    return [(site.call, site.alignments) for site in sites_of(binding)]


def relaunched(maker, launches, places, call, moved):
    """Launch a list at other addresses and return the list that the phantom recorded."""
    functions = {n: 1000 + n for n in launches.kernels}
    row = LaunchRow(call.row, launches, functions, (*places.alignments, 0))
    scratch = [CallOperand(place, "uint8", (launches.scratch_nbytes,)) for place in moved]
    spans = [*places.spans]
    if launches.scratch_nbytes:
        spans.append((len(places.first), 0, *moved, launches.scratch_nbytes))
    first, second = (*places.first, scratch[0]), (*places.second, scratch[1])
    return record(maker.device, row, first, second, tuple(spans), lambda handle: handle - 1000)


@pytest.mark.parametrize("target", FACTS)
@pytest.mark.parametrize("name", sorted(ahead_models.MODELS))
def test_a_list_launches_what_the_call_launched(name, target, rng):
    model = ahead_models.MODELS[name](rng)
    with Maker(FACTS[target], Kernels()) as maker:
        for call, alignments in calls_of(model, 17):
            places = places_of(call, alignments)
            made = maker.make(call, places)
            assert made.check(len(maker.kernels), places.reaches)
            again = LaunchList.from_bytes(made.to_bytes())
            assert again.to_bytes() == made.to_bytes()
            found = relaunched(maker, again, places, call, (5 << 52, 7 << 52))
            # The records and patches are the same; now the scratch is an argument of the row.
            assert found.to_bytes()[HEADER:] == made.to_bytes()[HEADER:], call.row.name


def convolutions(rng):
    """Convolutions by a kernel with many variants on sm_90, as a function with a dynamic batch."""
    weights = {f"w{n}": rng.standard_normal((64, 64, 1, 1)) for n in range(2)}

    def convolutions(x, *, weights):
        for one in weights.values():
            x = gt.conv2d(x, one)
        return x

    weights = {name: one.astype(np.float16) for name, one in weights.items()}
    spec = gt.spec((gt.Dim("n", 1, 1024), 64, 14, 14), gt.float16)
    source = sources_of(convolutions, (spec,), weights, None, {})
    (function,) = data_of(source, -1, rounding="once").functions.values()
    return function


def test_other_sizes_use_available_kernels(rng):
    function, kernels, lists = convolutions(rng), Kernels(), {}
    with Maker(FACTS["sm_90"], kernels) as maker:
        for sizes in launch_sizes(function):
            fill_lists(lists, maker, bind(function, sizes))
    known = len(kernels)
    between = [{"n": n} for n in (33, 47, 77, 100, 300, 513, 1000)]
    for at_hand in (lambda program: kernels.find(program) is not None, None):
        others = {}
        with Maker(FACTS["sm_90"], kernels, at_hand=at_hand) as maker:
            for sizes in between:
                fill_lists(others, maker, bind(function, sizes))
        assert (len(kernels) > known) == (at_hand is None)


def test_a_size_uses_the_only_available_form(rng):
    """If no form is available, it takes the cheapest form, as without a restriction."""
    function, kernels, found = convolutions(rng), Kernels(), {}
    for columns in (48, 7, None):
        limit = None if columns is None else (lambda p, c=columns: ("COLUMNS", c) in p.defines)
        lists = {}
        with Maker(FACTS["sm_90"], kernels, at_hand=limit) as maker:
            fill_lists(lists, maker, bind(function, {"n": 77}))
        used = [kernels.all[n].program for one in lists.values() for n in one.kernels]
        used = [one for one in used if "/convolution/" in one.path]
        found[columns] = {v for one in used for name, v in one.defines if name == "COLUMNS"}
    assert found[48] == {48}
    assert found[7] == found[None] != {48}


def test_equal_calls_have_one_key_wherever_they_lie(rng):
    def twice(x, *, weights):
        return gt.exp(gt.linear(gt.exp(gt.linear(x, weights["a"])), weights["b"]))

    source = sources_of(
        twice,
        (gt.spec((8, 64)),),
        {name: ahead_models.floats(rng, 64, 64) for name in "ab"},
        None,
        {},
    )
    (function,) = data_of(source, -1).functions.values()
    sites = list(sites_of(bind(function, {})))
    keys = [places_of(site.call, site.alignments).key for site in sites]
    assert keys[2] != keys[0]  # its input is only aligned to 16 bytes
    places = [places_of(site.call, [256] * len(site.alignments)).key for site in sites]
    assert places[0] == places[2] and places[1] == places[3] and places[0] != places[1]


@pytest.mark.parametrize("kind", ["cond", "while_loop", "fori_loop", "scan"])
def test_control_flow_reads_a_view_by_no_more_than_its_alignment(kind):
    """The first turn of a loop has its first value where it is: here, 20 bytes into a value."""

    def model(x):
        view = gt.sqrt(x).reshape(-1)[5:13]
        if kind == "cond":
            return gt.cond(gt.sum(x) > 0, lambda y: y * 2, lambda y: y * 3, view)
        if kind == "fori_loop":
            return gt.fori_loop(0, 3, lambda i, y: y * 2, view)
        if kind == "scan":
            return gt.scan(lambda y, z: (y * 2, z), view, view[:4])[0]
        return gt.while_loop(lambda y: gt.sum(y) < 9, lambda y: y * 2, view)

    source = sources_of(model, [gt.spec((5, 5))], {}, None, {})
    (function,) = data_of(source, -1).functions.values()
    products = [
        places_of(site.call, site.alignments).alignments
        for site in sites_of(bind(function, {}))
        if "mul" in str(site.call.arguments)
    ]
    assert products
    for alignments in products:
        assert 4 in alignments, alignments


def bound(*operands, offsets=None, pieces=None):
    """An elementwise call of operands; by default each in a piece of its own."""
    row = bound_row("elementwise")
    count = len(operands)
    patches = [
        (2 + at, (pieces or range(count))[at], (offsets or [0] * count)[at]) for at in range(count)
    ]
    return BoundCall(row, ("add", "float32", *operands), tuple(patches), False, "model.py:7")


def operand(*shape, strides=None):
    return CallOperand(0, "float32", shape, strides)


@pytest.mark.parametrize("what", ["overlap", "offset", "shape", "strides", "alignment"])
def test_places_that_affect_the_launch_change_the_key(what):
    base = bound(operand(8), operand(8), operand(8), pieces=[0, 0, 1], offsets=[0, 64, 0])
    other = {
        "overlap": bound(operand(8), operand(8), operand(8), pieces=[0, 0, 1], offsets=[0, 0, 0]),
        "offset": bound(operand(8), operand(8), operand(8), pieces=[0, 0, 1], offsets=[0, 4, 0]),
        "shape": bound(operand(9), operand(9), operand(9), pieces=[0, 0, 1], offsets=[0, 64, 0]),
        "strides": bound(
            operand(8), operand(8, strides=(2,)), operand(8), pieces=[0, 0, 1], offsets=[0, 64, 0]
        ),
        "alignment": bound(
            operand(8), operand(8), operand(8), pieces=[0, 0, 1], offsets=[0, 68, 0]
        ),
    }[what]
    assert places_of(base, [256, 256]).key != places_of(other, [256, 256]).key


class Faulty:
    """A row whose door does work that no list can represent."""

    name = "faulty"

    def __init__(self, door):
        self.door = door


def make_faulty(door):
    call = bound(operand(8), operand(8), operand(8))._replace(row=Faulty(door))
    with Maker(FACTS["sm_80"], Kernels()) as maker:
        return maker.make(call, places_of(call, [256] * 3))


def test_an_unpatched_address_is_found():
    row = bound_row("elementwise")
    kept = []

    def same_place(device, stream, arguments):
        kept.append(arguments[3])
        row.door(device, stream, (*arguments[:3], kept[0], arguments[4]))

    made = make_faulty(same_place)  # a fixed address that is not the phantom's
    assert made.kinds == ["kernel"] and made.to_bytes()[:8] == b"\1" + bytes(7)

    def elsewhere(device, stream, arguments):
        row.door(device, stream, (*arguments[:3], arguments[3].at(len(kept) << 40), arguments[4]))
        kept.append(0)

    with pytest.raises(ProgramError, match=r"model.py:7: faulty: got a changed parameter that is"):
        make_faulty(elsewhere)


def test_work_that_differs_each_time_is_found():
    row, turns = bound_row("elementwise"), []

    def more_each_time(device, stream, arguments):
        turns.append(0)
        for _ in turns:
            row.door(device, stream, arguments)

    with pytest.raises(ProgramError, match="model.py:7: faulty: got other work each time"):
        make_faulty(more_each_time)


def test_memory_that_a_call_keeps_is_found():
    row, kept = bound_row("elementwise"), []

    def with_own_memory(device, stream, arguments):
        if not kept:
            kept.append(gt.empty((8,), dtype="float32", device=f"cuda:{device}"))
        row.door(
            device, stream, (*arguments[:3], arguments[3].at(kept[0].data_ptr()), arguments[4])
        )

    with pytest.raises(ProgramError, match="memory kept from an earlier call"):
        make_faulty(with_own_memory)
    kept.clear()


def mutated(rng, raw):
    """A list with a few changed numbers; most counts are unchanged."""
    changed = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(HEADER if rng.random() < 0.9 else 0, len(changed) - 8) & ~3
        width = rng.choice((1, 4, 8))
        kind = rng.randrange(3)
        value = int.from_bytes(changed[at : at + width], "little")
        if kind == 0:
            value ^= 1 << rng.randrange(8 * width)
        elif kind == 1:
            value = rng.choice((0, 1, 2, 3, 1 << 31, (1 << 8 * width) - 1))
        else:
            value += rng.choice((-8, -1, 1, 8, 1 << 16))
        changed[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(changed)


def check_mutations(count, seed, rng):
    """Check that accepted lists stay inside the memory of their operands and scratch."""
    model = ahead_models.MODELS["wide"](rng)
    shuffled = random.Random(seed)
    accepted = 0
    with Maker(FACTS["sm_90"], Kernels()) as maker:
        whole = []
        for call, alignments in calls_of(model, 17):
            places = places_of(call, alignments)
            whole.append((call, places, maker.make(call, places).to_bytes()))
        kernels = len(maker.kernels)
        for _ in range(count):
            call, places, raw = shuffled.choice(whole)
            found = LaunchList.from_bytes(mutated(shuffled, raw))
            if found is None or not found.check(kernels, places.reaches):
                continue
            accepted += 1
            if found.scratch_nbytes < 1 << 40:
                again = relaunched(maker, found, places, call, (5 << 52, 7 << 52))
                assert len(again.kinds) == len(found.kinds)
                reaches = (*places.reaches, (0, found.scratch_nbytes))
                assert again.check(kernels, reaches)
    return accepted


def test_changed_lists_are_refused_or_stay_inside(rng):
    seed = int(rng.integers(1 << 30))
    assert 0 < check_mutations(2000, seed, rng) < 1900, seed


@pytest.mark.parametrize(
    "place, value",
    [
        ((0, 4), 9),  # an unknown kind
        ((4, 4), 1 << 20),  # an unknown kernel
        ((8, 4), 0),  # a grid of no blocks
        ((16, 4), 70000),  # too many blocks along z
        ((20, 4), 2048),  # too many threads
        ((32, 4), 1 << 20),  # more shared memory than the device has
        ((44, 4), 1 << 16),  # more parameters than a kernel has
        ((48, 4), 1),  # patches of another record
        ((56, 4), 1),  # a field that must be 0
    ],
)
def test_planted_faults_of_records_are_found(place, value):
    call = bound(operand(8), operand(8), operand(8))
    with Maker(FACTS["sm_80"], Kernels()) as maker:
        places = places_of(call, [256] * 3)
        raw = bytearray(maker.make(call, places).to_bytes())
    assert LaunchList.from_bytes(bytes(raw)).check(1, places.reaches)
    at, width = HEADER + place[0], place[1]
    raw[at : at + width] = value.to_bytes(width, "little")
    assert not LaunchList.from_bytes(bytes(raw)).check(1, places.reaches)


@pytest.mark.parametrize("offset", [-4, 33, 1 << 40, -(1 << 62)])
def test_a_patch_outside_of_its_operand_is_found(offset):
    call = bound(operand(8), operand(8), operand(8))
    with Maker(FACTS["sm_80"], Kernels()) as maker:
        places = places_of(call, [256] * 3)
        raw = bytearray(maker.make(call, places).to_bytes())
    raw[-8:] = offset.to_bytes(8, "little", signed=True)
    assert not LaunchList.from_bytes(bytes(raw)).check(1, places.reaches)
    assert LaunchList.from_bytes(bytes(raw)).check(1) == (abs(offset) <= 1 << 60)


def test_a_less_aligned_address_runs_the_call_itself():
    seen = []

    class Row:
        name = "elementwise"

        @staticmethod
        def door(device, stream, arguments):
            seen.append(arguments)

    call = bound(operand(8), operand(8), operand(8))
    with Maker(FACTS["sm_80"], Kernels()) as maker:
        places = places_of(call, [256] * 3)
        made = maker.make(call, places)
        row = LaunchRow(Row, made, {0: 7}, (*places.alignments, 0))
        arguments = (*places.first, CallOperand(0, "uint8", (0,)))
        worse = (*arguments[:3], arguments[3].at(arguments[3].address + 4), *arguments[4:])
        row.door(maker.device, 0, worse)
    assert [one[3].address for one in seen] == [worse[3].address]
    assert len(seen[0]) == 5 and np.prod(seen[0][2].shape) == 8
