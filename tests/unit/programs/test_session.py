"""Programs and sessions on a host device: calls, state, memory, threads and failures."""

import copy
import threading
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import DriverError, OutOfMemoryError, ProgramRunError
from gputensor.programs.dims import Dim
from gputensor.programs.program import Program
from tests.support.programs import models
from tests.support.programs.builder import Builder, program_data
from tests.support.tensor_devices import device_of
from tests.unit.programs import session_stress


@pytest.fixture(params=["host", "deferred-a", "deferred-b"])
def device(request):
    return gt.Device(device_of(request.param))


@pytest.fixture
def rng():
    return np.random.default_rng()


@pytest.fixture
def small():
    """The number of a host device of 8 MiB."""
    number = registry.open_host(capacity=8 << 20)
    yield number
    registry.close_host(number)


def given(array, device):
    return gt.asarray(array, device=device)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_a_program_equals_its_reference_at_each_size(device, rng):
    data, reference = models.mlp(rng)
    with Program(data, device) as program:
        for n in (1, 7, 64, 7):
            x = floats(rng, n, 12)
            y = program(given(x, device))
            assert y.shape == (n, 8) and y.device == device
            np.testing.assert_allclose(y.numpy(), reference(x), rtol=1e-4, atol=1e-4)
        assert program.mlp(x=given(x, device)).shape == (7, 8)


def test_results_are_new_tensors_that_later_calls_leave_alone(device, rng):
    program = Program(models.chain(5, 2), device)
    inputs = [(floats(rng, 64, 64), floats(rng, 64, 64)) for _ in range(6)]
    results = [program(*(given(x, device) for x in pair)) for pair in inputs]
    for (a, b), result in zip(inputs, results, strict=True):
        np.testing.assert_allclose(result.numpy(), a + b + a + b + a, rtol=1e-5)
    assert len({result.data_ptr() for result in results}) == 6


def test_state_lives_in_sessions(device, rng):
    program = Program(models.counter(), device)
    one, two = program.session(), program.session()
    steps = floats(rng, 5, 8)
    for step in steps:
        total, twice = one.step(given(step, device))
    np.testing.assert_allclose(total.numpy(), steps.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(twice.numpy(), 2 * total.numpy())
    np.testing.assert_array_equal(one.state["total"].numpy(), total.numpy())
    assert not two.state["total"].numpy().any()
    fork = one.fork()
    one.reset()
    assert not one.state["total"].numpy().any()
    fork.state["total"][...] = 1
    np.testing.assert_array_equal(fork(given(steps[0], device))[0].numpy(), 1 + steps[0])
    with pytest.raises(TypeError, match="step: got a call without a session; expected"):
        program(given(steps[0], device))


def test_tensors_of_the_state_are_written_to_and_not_replaced(device):
    def add(x, *, state):
        state["sum"] += x
        state["parts"][1][...] = x
        return state["sum"] + state["parts"][0]["first"]

    state = {"sum": gt.spec((3,)), "parts": [{"first": gt.spec((3,))}, gt.spec((3,))]}
    x = gt.ones(3, device=device)
    with gt.compile(add, gt.spec((3,)), state=state, target=device).session() as session:
        for place, key, name in (
            (session.state, "sum", "'sum'"),
            (session.state["parts"], 1, "1"),
            (session.state["parts"][0], "first", "'first'"),
        ):
            with pytest.raises(
                TypeError, match=rf"state\[{name}\]: got another value in its place"
            ):
                place[key] = x
        for change in (
            lambda: session.state.update(sum=x),
            lambda: session.state.pop("sum"),
            lambda: session.state["parts"].append(x),
        ):
            with pytest.raises(TypeError, match="^state: got a change of its keys"):
                change()
        copied = copy.deepcopy(session.state)
        assert type(copied) is dict and type(copied["parts"]) is list
        copied["sum"] = x
        session.state["sum"] += 5
        session.state["parts"][0]["first"][...] = 2
        assert session(x).tolist() == [8, 8, 8]
        assert session.state["parts"][1].tolist() == [1, 1, 1]


def test_inputs_that_are_not_dense_are_copied_and_counted(device, rng):
    program = Program(models.chain(3), device)
    x = floats(rng, 64, 65)
    whole = given(x, device)
    for view, array in [(whole[:, 1:], x[:, 1:]), (whole[:, :64].T, x[:, :64].T)]:
        np.testing.assert_allclose(program(view).numpy(), 3 * array, rtol=1e-5)
    np.testing.assert_allclose(program(given(x[:, 1:], device)).numpy(), 3 * x[:, 1:], rtol=1e-5)
    assert program.report()["chain"]["copied_inputs"] == 2


def test_wrong_arguments_name_the_input_and_the_dim(rng):
    program = Program(models.mlp(rng)[0], "host")

    def zeros(*shape, dtype="float32", device="host"):
        return gt.zeros(shape, dtype=dtype, device=device)

    cases = [
        ((zeros(65, 12),), ValueError, r"x.shape\[0\]: got 65; expected n, 1 to 64"),
        ((zeros(3, 11),), ValueError, r"x.shape\[1\]: got 11; expected 12"),
        ((zeros(12),), ValueError, r"x.shape: got \(12,\); expected 2 dimensions"),
        ((zeros(3, 12, dtype="float64"),), ValueError, "x.dtype: got float64; expected float32"),
        ((np.zeros((3, 12)),), TypeError, "x: got ndarray; expected a tensor on host"),
        ((3.5,), TypeError, "x: got float; expected a tensor on host"),
        ((), TypeError, "mlp: got 0 arguments; expected x"),
        ((zeros(3, 12), zeros(1)), TypeError, "mlp: got 2 arguments; expected x"),
    ]
    other = gt.Device(device_of("deferred-a"))
    cases.append(((zeros(3, 12, device=other),), ValueError, "x: got a tensor on .*; expected a"))
    for arguments, kind, message in cases:
        with pytest.raises(kind, match=message):
            program(*arguments)
    with pytest.raises(TypeError, match="mlp: got 1 argument and w=; expected x"):
        program(zeros(3, 12), w=2)
    with pytest.raises(AttributeError, match="decode: got no function of the program; expected"):
        program.decode  # noqa: B018


def test_a_dim_that_no_input_has_is_named():
    build = Builder("f", [Dim("n", 1, 8)])
    x = build.input("x", "float32", (3,))
    build.elementwise("mul", 1.0, 2.0, shape=(("dim", "n"),))
    build.output(build.elementwise("mul", x, 2.0))
    with Program(program_data(build), "host") as program:
        with pytest.raises(
            ValueError,
            match="^n: got no input with this dim; expected an input with the dim as an extent$",
        ):
            program(gt.ones(3, device="host"))


def test_objects_with_dlpack_are_taken(rng):
    class Foreign:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **facts):
            return self.tensor.__dlpack__(**facts)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    program = Program(models.chain(2), "host")
    x = floats(rng, 64, 64)
    np.testing.assert_array_equal(program(Foreign(given(x, "host"))).numpy(), 2 * x)


def test_a_session_serves_one_thread_at_a_time():
    program = Program(models.counter(), "host")
    session = program.session()
    x = gt.zeros(8, dtype="float32", device="host")
    found = []

    class Nested:
        """Calls the session while it reads its arguments."""

        def __dlpack__(self, **facts):
            with pytest.raises(RuntimeError, match="got a second call during a call") as caught:
                session(x)
            found.append(caught)
            return x.__dlpack__(**facts)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    session(Nested())
    assert found


def test_a_program_without_state_is_called_from_threads(rng):
    data, reference = models.mlp(rng)
    program = Program(data, "host")
    wrong = []

    def work(seed):
        mine = np.random.default_rng(seed)
        stream = gt.Stream("host")
        with gt.stream(stream):
            for _ in range(30):
                x = floats(mine, int(mine.integers(1, 64)), 12)
                y = program(given(x, "host")).numpy()
                if not np.allclose(y, reference(x), rtol=1e-4, atol=1e-4):
                    wrong.append(x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_on_two_streams_are_ordered_with_eager_work(rng):
    device = gt.Device(device_of("deferred-b"))
    program = Program(models.counter(), device)
    session = program.session()
    streams = [gt.Stream(device), gt.Stream(device)]
    steps = floats(rng, 20, 8)
    for number, step in enumerate(steps):
        with gt.stream(streams[number % 2]):
            x = given(step, device) * 2
        with gt.stream(streams[(number + 1) % 2]):
            total, _ = session(x)
            x[...] = 7
    np.testing.assert_allclose(total.numpy(), 2 * steps.sum(0), rtol=1e-4, atol=1e-4)


def test_closing_gives_all_memory_back(rng):
    device = gt.Device(device_of("deferred-a"))
    gt.synchronize(device)
    before = memory.memory_allocated(device)
    program = Program(models.mlp(rng, (12, 4000, 8))[0], device)
    weights = memory.memory_allocated(device) - before
    assert weights >= 4 * 20 * 4000
    program(gt.zeros((64, 12), dtype="float32", device=device))
    assert memory.memory_allocated(device) - before > weights
    session = program.session()
    program.close()
    session(gt.zeros((3, 12), dtype="float32", device=device))
    session.close()
    del session
    with pytest.raises(RuntimeError, match="program: got a call after close"):
        program.session()
    assert memory.memory_allocated(device) == before


def test_a_failed_call_changes_nothing(small):
    """The k-th call of the driver fails, for every k: the state is as before the call."""
    device = gt.Device(small)
    session = Program(models.counter(), device).session()
    x = given(np.ones(8, np.float32), device)
    session(x)
    total = 1.0
    for k in range(1, 200):
        gt.synchronize(device)
        memory.empty_cache(device)
        registry.fail_call(small, k, status=999)
        try:
            result = session(x)
        except (DriverError, OutOfMemoryError):
            registry.fail_call(small, 0)
            np.testing.assert_array_equal(session.state["total"].numpy(), total)
            continue
        registry.fail_call(small, 0)
        np.testing.assert_array_equal(result[0].numpy(), total + 1)
        break
    assert 1 < k < 199


def test_out_of_memory_in_the_arena_leaves_the_session_usable(small):
    device = gt.Device(small)
    build = Builder("big")
    x = build.input("x", "float32", (1024,))
    big = build.elementwise("add", x, 1.0, shape=(1024,))
    wide = build.value("temporary", "float32", (1024, 1024))
    build.call(
        "elementwise", {"op": "copy", "compute": "float32"}, [wide],
        [big._replace(shape=(1024, 1024), strides=(0, 1))],
    )  # fmt: skip
    build.output(build.reduce("sum", wide, (0,)))
    session = Program(program_data(build), device).session()
    x = gt.zeros(1024, dtype="float32", device=device)
    hold = gt.empty(5 << 20, dtype="int8", device=device)
    with pytest.raises(OutOfMemoryError):
        session(x)
    del hold
    np.testing.assert_array_equal(session(x).numpy(), 1024.0)


# ---- checked sessions


def logs(x, *, state):
    """One line each: a call that may give NaN, a partial update, and a loop of calls."""
    y = gt.log(x)
    state["kept"][1:3] += y[:2]
    return gt.fori_loop(0, 3, lambda i, y: gt.sqrt(y - 1), y + state["kept"][:4])


def line_of(text):
    """The position of a line of this file, as errors name it."""
    lines = Path(__file__).read_text().splitlines()
    return f"test_session.py:{lines.index(text) + 1}: "


@pytest.mark.parametrize("rounding", ["each", "once"])
def test_a_checked_session_stops_at_the_first_nan(device, rounding):
    kept = gt.spec((5,))
    program = gt.compile(
        logs, gt.spec((4,)), state={"kept": kept}, rounding=rounding, target=device
    )
    with program.session(check=True) as session, program.session() as plain:
        x = given(np.float32([1e9, 1e8, 1e7, 1e9]), device)
        np.testing.assert_array_equal(session(x).numpy(), plain(x).numpy())
        loop = line_of("    return gt.fori_loop(0, 3, lambda i, y: gt.sqrt(y - 1), y + state"
                       '["kept"][:4])')  # fmt: skip
        with pytest.raises(ProgramRunError, match=rf"^{loop}\w+: got NaN in 1 of 4 .* at \[3\];"):
            session.fork()(given(np.float32([1e9, 1e8, 1e7, 3]), device))
        first = line_of("    y = gt.log(x)")
        with pytest.raises(ProgramRunError, match=rf"^{first}log: got NaN in 2 of 4 .* at \[1\];"):
            session(given(np.float32([1, -1, -1, 1]), device))
        with pytest.raises(
            ProgramRunError, match=rf"^{first}log: .* at \[3\], read from x; expected"
        ):
            session(given(np.float32([1, 1, 1, np.nan]), device))
        np.testing.assert_array_equal(session.state["kept"].numpy(), plain.state["kept"].numpy())
        session.state["kept"][0] = np.nan
        with pytest.raises(ProgramRunError, match=r"the first at \[0\], read from kept; expected"):
            session(x)


def test_a_checked_call_checks_only_the_elements_that_it_changes(device):
    """Elements that a scatter leaves as they are may be NaN."""
    state = {"kept": gt.full((6,), np.nan, device=device)}

    def put(x, at, *, state):
        state["kept"][at] = x
        return x + 1

    specs = (gt.spec((2,)), gt.spec((2,), gt.int64))
    session = gt.compile(put, *specs, state=state, target=device).session(check=True)
    at = given(np.array([4, 1]), device)
    session(given(np.float32([2, 3]), device), at)
    np.testing.assert_array_equal(session.state["kept"].numpy()[[4, 1]], [2, 3])
    with pytest.raises(
        ProgramRunError, match=r"scatter: got NaN in 1 of 6 elements, the first at \[4"
    ):
        session(given(np.float32([np.nan, 3]), device), given(np.array([4, 3]), device))


def test_threads_make_call_and_close_sessions():
    for seed in np.random.SeedSequence().generate_state(3):
        session_stress.run_round(int(seed))


def test_a_session_is_busy_during_the_first_call_of_a_function():
    """While a session prepares it, other threads run and find the session busy."""
    x = gt.zeros(8, dtype="float32", device="host")
    found = []

    class Asking(Program):
        def result_form(self, name):
            if not found:
                with pytest.raises(RuntimeError, match="got a second call during a call") as caught:
                    session(x)
                found.append(caught)
            return super().result_form(name)

    session = Asking(models.counter(), "host").session()
    session(x)
    assert found


def test_a_closed_session_refuses_every_use():
    session = Program(models.counter(), "host").session()
    session.close()
    for use in (lambda: session.state, session.reset, session.fork, session.step):
        with pytest.raises(RuntimeError, match="after close"):
            use()
