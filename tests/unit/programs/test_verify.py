"""The verifier accepts traced functions, and finds every planted fault and names its place."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputensor.errors import ProgramError
from gputensor.programs import dims as forms
from gputensor.programs.dims import Dim
from gputensor.programs.function import Argument, Call, Number, Operand, Value, Weight
from gputensor.programs.tree import flatten
from gputensor.programs.verify import check_sizes, verify, verify_program
from tests.support.programs.example_function import dense, example_program
from tests.support.programs.random_functions import random_function, random_sizes

N = ("dim", "n")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False))
def test_random_functions_keep_every_rule(rng):
    function, _weights, _states = random_function(rng)
    verify(function)
    check_sizes(function, random_sizes(rng, function))


def test_the_example_keeps_every_rule():
    verify_program(example_program())


def lost_version(rng, function):
    """The call that made a version is removed, and its readers read the version before."""
    versions = [c for c in function.calls if any(into is not None for into in c.into)]
    if versions:
        function.calls.remove(rng.choice(versions))
        return True


def lost_call(rng, function):
    if function.calls:
        function.calls.remove(rng.choice(function.calls))
        return True


def older_version(rng, function):
    """A reader of a later version reads the version before it."""
    for call in rng.sample(function.calls, len(function.calls)):
        for at, read in enumerate(call.reads):
            base = function.values[read.value].base if isinstance(read, Operand) else None
            if base is not None:
                reads = list(call.reads)
                reads[at] = read._replace(value=base)
                call.reads = tuple(reads)
                return True


def swapped_calls(rng, function):
    """A reader stands before the writer."""
    for index in rng.sample(range(len(function.calls)), len(function.calls)):
        made = {operand.value for operand in function.calls[index].writes}
        for later in range(index + 1, len(function.calls)):
            reads = function.calls[later].reads
            if any(isinstance(r, Operand) and r.value in made for r in reads):
                calls = function.calls
                calls[index], calls[later] = calls[later], calls[index]
                return True


def operands(function):
    for call in function.calls:
        for name in ("reads", "writes"):
            for at, operand in enumerate(getattr(call, name)):
                if isinstance(operand, Operand):
                    yield call, name, at, operand


def replace(call, name, at, operand):
    parts = list(getattr(call, name))
    parts[at] = operand
    setattr(call, name, tuple(parts))


def outside(rng, function):
    """An operand begins before or ends behind its value."""
    found = list(operands(function))
    if found:
        call, name, at, operand = rng.choice(found)
        nbytes = function.values[operand.value].nbytes
        by = rng.choice((nbytes, forms.mul(-1, nbytes), 2**40, -(2**40)))
        replace(call, name, at, operand._replace(offset=forms.add(operand.offset, by)))
        return nbytes != 0


def far_stride(rng, function):
    """A stride reaches outside."""
    for call, name, at, operand in rng.sample(found := list(operands(function)), len(found)):
        axes = [i for i, extent in enumerate(operand.shape) if extent != 1]
        if axes and 0 not in operand.shape:
            axis = rng.choice(axes)
            strides = list(operand.strides)
            strides[axis] = forms.add(strides[axis], 10**7)
            replace(call, name, at, operand._replace(strides=tuple(strides)))
            return True


def stale_stride(rng, function):
    """A written operand has the stride of another size, so it overlaps itself."""
    for call in rng.sample(function.calls, len(function.calls)):
        for at, operand in enumerate(call.writes):
            axes = [i for i, extent in enumerate(operand.shape) if extent != 1]
            if len(axes) > 1 and not call.regions:
                one, other = rng.sample(axes, 2)
                strides = list(operand.strides)
                strides[one] = strides[other]
                replace(call, "writes", at, operand._replace(strides=tuple(strides)))
                return True


def small_value(rng, function):
    """A value is smaller than what is written to it."""
    writes = [o for c in function.calls for o, i in zip(c.writes, c.into, strict=True) if i is None]
    if writes:
        operand = rng.choice(writes)
        value = function.values[operand.value]
        value.nbytes = forms.add(value.nbytes, -1)
        return True


def second_writer(rng, function):
    written = [c for c in function.calls if c.into == (None,)]
    if len(written) > 1:
        one, other = rng.sample(written, 2)
        other.writes = (other.writes[0]._replace(value=one.writes[0].value),)
        return True


def shared_output(rng, function):
    item = rng.choice(function.outputs)
    function.outputs.append(Argument("again", item.operand))
    return True


FAULTS = (
    lost_version, lost_call, older_version, swapped_calls, outside, far_stride, stale_stride,
    small_value, second_writer, shared_output,
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    planted = 0
    while planted < 40:
        function, _weights, _states = random_function(rng)
        if fault(rng, function):
            planted += 1
            with pytest.raises(ProgramError, match=r"^f\.[\w.\[\]]+.*: got .*; expected "):
                verify(function)


def decode():
    return example_program().functions["decode"]


def changed(change):
    function = decode()
    change(function)
    return function


def set_call(index, **parts):
    def change(function):
        for name, part in parts.items():
            setattr(function.calls[index], name, part)

    return change


def body_of(function):
    return function.calls[2].regions[0]


WHOLE = dense(3, (N, 4))
CASES = [
    (set_call(0, name="juggle"), "decode.calls[0].name: got 'juggle'; expected the name of a call"),
    (set_call(0, attributes={}), "decode.calls[0].attributes (product, model.py:7): got none"),
    (set_call(1, attributes={"op": "copy", "compute": 3}), "compute: got 3; expected the name of"),
    (set_call(1, stream=-1), "calls[1].stream (elementwise, model.py:8): got -1"),
    (set_call(1, reads=(3,)), "calls[1].reads[0] (elementwise, model.py:8): got 3; expected a"),
    (set_call(1, reads=(Number("3", "int8"),)), "got '3'; expected a bool, a number"),
    (set_call(1, reads=(WHOLE._replace(value=9),)), "reads[0].value (elementwise, model.py:8): go"),
    (set_call(1, reads=(WHOLE._replace(value=5),)), "got value 5, which no earlier call writes"),
    (set_call(1, reads=(WHOLE._replace(dtype="f32"),)), "reads[0].dtype"),
    (set_call(1, reads=(WHOLE._replace(shape=(N,) * 17),)), "got 17 extents and 2 strides"),
    (set_call(1, reads=(WHOLE._replace(shape=(("dim", "m"), 4)),)), "got 'm'; expected a dim of"),
    (set_call(1, reads=(WHOLE._replace(shape=(("floordiv", N, 0), 4)),)), "got 0; expected a posi"),
    (set_call(1, reads=(WHOLE._replace(shape=(2**63, 4)),)), "expected an int within"),
    (set_call(1, reads=(WHOLE._replace(offset=2),)), "got 2 at n=1; expected a multiple of 4"),
    (set_call(1, reads=(WHOLE._replace(offset=16),)), "bytes 16 to 32 at n=1; expected bytes with"),
    (set_call(1, reads=(WHOLE._replace(strides=(-4, 1)),)), "bytes -1008 to 16 at n=64; expected"),
    (set_call(1, reads=(dense(3, (4, N)),)), "elementwise: shape: got (4, 1)"),
    (set_call(1, into=(None,)), "into[0] (elementwise, model.py:8): got None; expected 2, the bas"),
    (set_call(1, into=()), "calls[1].into (elementwise, model.py:8): got 0; expected 1"),
    (set_call(1, writes=(dense(0, (N, 4)),)), "writes[0] (elementwise, model.py:8): got value 0"),
    (set_call(1, writes=(Operand(4, "float32", (N, 4), (0, 1), 256),)), "its own element"),
    (set_call(2, regions=()), "calls[2].regions (fori_loop, model.py:9): got 0; expected 1"),
    (set_call(2, attributes={"lower": 0, "upper": "n"}), "attributes.upper (fori_loop, model.py:9"),
    (set_call(2, reads=()), "calls[2].reads (fori_loop, model.py:9): got 0; expected"),
    (set_call(2, reads=(WHOLE._replace(strides=(1, N)),)), "strides (fori_loop, model.py:9)"),
    (set_call(2, reads=(None,)), "reads[0] (fori_loop, model.py:9): got None; expected a view"),
    (lambda f: f.inputs.append(f.inputs[0]), "decode.inputs: got values [0, 0]; expected each of"),
    (lambda f: f.inputs.clear(), "decode.inputs: got values []; expected each of [0] once"),
    (lambda f: f.values.append(Value("temporary", 4)), "decode.values[6]: got no writer; expected"),
    (lambda f: f.values.append(Value("temporary", 4, base=7)), "values[6].base: got 7; expected"),
    (lambda f: f.values.append(Value("weight", 4, "v", 1)), "values[6].base: got 1; expected None"),
    (lambda f: f.values.append(Value("state", 4, "k")), "values[6]: got another state; expected"),
    (lambda f: f.values.append(Value("weight", 4)), "values[6].name: got ''; expected the name"),
    (lambda f: f.states.update(cache=(2, 2)), "decode.states.cache: got 2; expected 4, its last"),
    (lambda f: f.states.update(cache=(0, 4)), "states.cache: got 0; expected the first version"),
    (lambda f: f.outputs.append(Argument("1", dense(0, (N, 4)))), "outputs[1]: got memory of the"),
    (lambda f: f.outputs.append(Argument("2", dense(4, (256, 4)))), "memory of the kind 'state'"),
    (lambda f: f.dims.update(m=Dim("n", 1, 2)), "decode.dims.m: got Dim("),
    (lambda f: f.dims.update({f"d{i}": Dim(f"d{i}", 1, 2) for i in range(16)}),
     "decode.dims: got 17; expected at most 16"),
    (lambda f: f.values.__setitem__(4, Value("state", 4092, base=2)), "values[4].nbytes: got 4092"),
    (lambda f: body_of(f).outputs.clear(), "regions[0].outputs (fori_loop, model.py:9): got []"),
    (lambda f: body_of(f).dims.update(f.dims), "calls[2].regions[0].dims.n: got Dim("),
    (lambda f: body_of(f).inputs.reverse(), "regions[0].inputs (fori_loop, model.py:9): got [('fl"),
    (lambda f: setattr(f, "tree", flatten({"y": 1j}, lambda t: type(t) is complex)[1]),
     "decode.tree: got a structure with y; expected leaves x"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), CASES)
def test_every_rule_is_named(change, text):
    function = changed(change)
    with pytest.raises(ProgramError) as caught:
        verify(function)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def read_first_value(program):
    """Make a function read the first value of a state as a weight."""
    program.weights["state.w"] = Weight("state.w", "float32", (4, 4))
    program.functions["decode"].values[1].name = "state.w"


PROGRAM_CASES = [
    (read_first_value, "decode.values[1].name: got 'state.w'; expected a weight of the program"),
    (lambda p: p.weights.clear(), "decode.values[1].name: got 'w'; expected a weight of the progr"),
    (lambda p: p.weights.update(w=Weight("w", "float32", (4, 3))), "values[1].nbytes: got 64; exp"),
    (lambda p: p.weights.update(w=Weight("w", "float32", (4, -4))), "weights.w.shape: got (4, -4)"),
    (lambda p: p.weights.update(w=Weight("w", "f32", (4, 4))), "weights.w.dtype: got 'f32'"),
    (lambda p: p.weights.update(w=Weight("w", "int8", (64,), None, "z")), "weights.w.sha256: got "),
    (lambda p: p.weights.update(v=Weight("w", "int8", (64,))), "weights.v: got another name"),
    (lambda p: p.weights.update({"state.cache": Weight("state.cache", "float32", (4, 4))}),
     "weights.state.cache: got float32 (4, 4); expected float32 (256, 4)"),
    (lambda p: p.states.update(cache=("float32", (255, 4))), "values[2].nbytes: got 4096"),
    (lambda p: p.states.clear(), "decode.values[2].name: got 'cache'; expected a state of the pro"),
    (lambda p: p.functions.update(other=decode()), "functions.other.name: got 'decode'; expected"),
    (lambda p: setattr(p, "state_tree", flatten({"k": 1j}, lambda t: type(t) is complex)[1]),
     "state_tree: got a structure with k; expected leaves cache"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), PROGRAM_CASES)
def test_every_rule_of_programs_is_named(change, text):
    program = example_program()
    change(program)
    with pytest.raises(ProgramError) as caught:
        verify_program(program)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_sizes_are_checked_at_every_corner():
    """A fault at some sizes is found before a session binds one of them."""
    function = decode()
    function.dims = {"n": Dim("n", 1, 250)}  # 250 rows do not fit in rows 16 to 256 of the cache
    with pytest.raises(
        ProgramError, match="bytes 256 to 4256 at n=250; expected bytes within 0 to"
    ):
        verify(function)
    check_sizes(function, {"n": 240})
    with pytest.raises(ProgramError, match="at n=241"):
        check_sizes(function, {"n": 241})


def test_shapes_are_checked_by_the_call():
    function = decode()
    call = function.calls[0]
    function.calls[0] = Call(
        call.name, call.attributes, call.writes, (call.reads[0], dense(1, (2, 8)), *call.reads[2:]),
        (None,), 0, "model.py:7",
    )  # fmt: skip
    with pytest.raises(ProgramError, match=r"decode.calls\[0\] \(model.py:7\): product"):
        verify(function)
