"""Programs on the simulated GPU: captures, replays at new addresses, failures."""

import contextlib
import ctypes
import os
import warnings

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import DriverError, GpuTensorError, OutOfMemoryError, ProgramRunError
from gputensor.programs.program import Program
from tests.support import graph_inputs, refused_calls
from tests.support.programs import control_checks, loops, models, nested_control
from tests.support.programs.builder import Builder, program_data

NODE_CALLS = ("graph_nodes", "graph_node_get", "graph_node_set")


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def given(array):
    return gt.asarray(array, device="cuda")


def graph_of(program, name):
    """The report's text on the graph of the size that was bound last."""
    return program.report()[name]["sizes"][-1]["graph"]


def test_addresses_of_inputs_and_results_move_without_copies(rng):
    program = Program(models.chain(7, 3, (8, 40)), "cuda")
    held = []
    for _ in range(6):
        arrays = [floats(rng, 8, 40) for _ in range(3)]
        tensors = [given(array) for array in arrays]
        result = program(*tensors)
        want = arrays[0].copy()
        for number in range(6):
            want = want + arrays[(number + 1) % 3]
        np.testing.assert_array_equal(result.numpy(), want)
        held.append((tensors, result))
    assert program.report()["chain"]["copied_inputs"] == 0
    assert graph_of(program, "chain") == "7 nodes, 7 with addresses"


def test_kernels_start_early_in_streams_and_graphs(rng):
    fake = ctypes.CDLL(os.environ["GPUTENSOR_LIBCUDA"])
    program = Program(models.chain(7, 3, (8, 40)), "cuda")
    x = given(floats(rng, 8, 40))
    before = fake.fake_cuda_early_launches()
    program(x, x, x)
    captured = fake.fake_cuda_early_launches()
    assert captured >= before + 2 * 7  # two captures, whose comparison finds the address nodes
    want = program(x, x, x)
    assert fake.fake_cuda_early_launches() == captured
    np.testing.assert_array_equal((want + x).numpy(), want.numpy() + x.numpy())
    assert fake.fake_cuda_early_launches() == captured + 1


def test_a_function_without_work_does_not_warn():
    program = gt.compile(lambda x: (x + 1, gt.sum(x, axis=1)), gt.spec((0, 3)), target="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = program(gt.zeros((0, 3), device="cuda"))
    assert (first.shape, second.shape) == ((0, 3), (0,))
    assert graph_of(program, program.only_name) == "0 nodes, 0 with addresses"


def test_a_graph_whose_nodes_are_not_understood_is_captured_again(rng):
    """Products of the simulated library are host functions, which differ in every capture."""
    data, reference = models.mlp(rng, (200, 300, 260))
    gt.blas.preferred_blas_library("cublaslt")
    with Program(data, "cuda") as program:
        kept = []
        for n in (33, 33, 64, 33):
            x = floats(rng, n, 200)
            kept.append(given(x))
            np.testing.assert_allclose(
                program(kept[-1]).numpy(), reference(x), rtol=1e-3, atol=1e-3
            )
        assert "new addresses need another capture" in graph_of(program, "mlp")


def test_operands_of_a_product_are_apart_in_every_capture(rng):
    build = Builder("both")
    a, b = build.input("a", "float32", (5, 40)), build.input("b", "float32", (40, 6))
    build.output(build.product(a, b))
    program = Program(program_data(build), "cuda")
    for _ in range(3):
        x, y = floats(rng, 5, 40), floats(rng, 40, 6)
        np.testing.assert_allclose(program(given(x), given(y)).numpy(), x @ y, rtol=1e-3, atol=1e-4)


def test_state_is_written_in_place(rng):
    program = Program(models.counter(), "cuda")
    one, two = program.session(), program.session()
    steps = floats(rng, 6, 8)
    streams = [gt.Stream("cuda"), gt.Stream("cuda")]
    for step in steps:
        for session, stream in zip((one, two), streams, strict=True):
            with gt.stream(stream):
                x = given(step)
                total, twice = session(x)
    np.testing.assert_allclose(total.numpy(), steps.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(twice.numpy(), 2 * total.numpy())
    np.testing.assert_array_equal(one.state["total"].numpy(), total.numpy())
    np.testing.assert_array_equal(two.fork().state["total"].numpy(), total.numpy())


def test_calls_on_two_streams_are_ordered_with_eager_work(rng):
    session = Program(models.counter(), "cuda").session()
    streams = [gt.Stream("cuda"), gt.Stream("cuda")]
    steps = floats(rng, 20, 8)
    for number, step in enumerate(steps):
        with gt.stream(streams[number % 2]):
            x = given(step) * 2
        with gt.stream(streams[(number + 1) % 2]):
            total, _ = session(x)
            x[...] = 7
    np.testing.assert_allclose(total.numpy(), 2 * steps.sum(0), rtol=1e-4, atol=1e-4)


def test_a_refused_driver_call_changes_nothing():
    session = Program(models.counter(), "cuda").session()
    x = given(np.ones(8, np.float32))
    state = {"total": 0.0}
    held = []  # so that results have other addresses

    def request():
        try:
            result = session(x)
        except (DriverError, OutOfMemoryError):
            np.testing.assert_array_equal(session.state["total"].numpy(), state["total"])
            raise
        state["total"] += 1
        held.append(result)
        np.testing.assert_array_equal(result[0].numpy(), state["total"])

    seen = refused_calls.sweep(request)
    assert {"graph_launch", "graph_node_set"} <= seen, seen


def refuse_each_call(name, request):
    """Refuse the first, second, ... call `name` of a request; return how many runs that took."""
    for k in range(1, 100):
        registry.reset_counts(0)
        registry.fail_call(0, k, 999, name)
        with contextlib.suppress(GpuTensorError):
            request()
        registry.fail_call(0, 0)
        count = registry.counts(0)[name]
        request()
        if count < k:
            break
    return k


def test_refused_driver_calls_while_a_graph_is_made(rng):
    program = Program(models.counter(), "cuda")
    x = given(np.ones(8, np.float32))

    def request():
        with program.session() as session:
            np.testing.assert_array_equal(session(x)[0].numpy(), 1.0)

    request()
    # Without capture_end: refusing it leaves the stream capturing.
    registry.observe(0)
    for name in (
        "capture_begin",
        "capture_info",
        "event_record",
        "graph_instantiate",
        "graph_launch",
        *NODE_CALLS,
    ):
        k = refuse_each_call(name, request)
        assert k > 1, name


def test_refused_driver_calls_while_branches_are_captured():
    def model(x):
        with gt.stream(gt.Stream()):
            side = x * 3
        return x * 2 + side

    program = gt.compile(model, gt.spec((8,)), target="cuda")
    x = given(np.ones(8, np.float32))

    def request():
        with program.session() as session:
            np.testing.assert_array_equal(session(x).numpy(), 5.0)

    request()
    registry.observe(0)
    for name in ("event_create", "event_record", "stream_create", "stream_wait_event"):
        k = refuse_each_call(name, request)
        assert k < 99, name


def test_a_checked_session_names_the_call_that_fails_or_makes_a_nan():
    program = Program(models.counter(), "cuda")
    x = given(np.ones(8, np.float32))
    found = []

    def request():
        with program.session(check=True) as session:
            try:
                np.testing.assert_array_equal(session(x)[1].numpy(), 2.0)
            except ProgramRunError as error:
                found.append(str(error).partition(" failed: ")[0])
                raise

    request()
    registry.observe(0)
    refuse_each_call("kernel_launch", request)
    # The second call is a copy, for which there is no kernel.
    calls = {1: "add", 3: "mul", 4: "mul"}
    assert found == [f"model.py:{line}: {name}: kernel_launch" for line, name in calls.items()]
    with program.session(check=True) as session:
        with pytest.raises(ProgramRunError, match=r"^model.py:1: add: got NaN in 1 of 8 .*from x;"):
            session(given(np.float32([1, 1, 1, 1, 1, 1, np.nan, 1])))
        np.testing.assert_array_equal(session(x)[1].numpy(), 2.0)


def test_a_program_can_be_part_of_a_capture(rng):
    program = Program(models.chain(5, 2, (8, 40)), "cuda")
    a, b = given(floats(rng, 8, 40)), given(floats(rng, 8, 40))
    gt.synchronize("cuda")
    captured = gt.graphs.CUDAGraph()
    with gt.graphs.graph(captured):
        result = program(a, b)
    program(a, b)
    program.close()
    for _ in range(3):
        x, y = floats(rng, 8, 40), floats(rng, 8, 40)
        a[...], b[...] = given(x), given(y)
        captured.replay()
        np.testing.assert_array_equal(result.numpy(), x + y + x + y + x)


def test_control_flow(rng):
    control_checks.check_while_loop("cuda", rng)
    control_checks.check_cond("cuda", rng)
    for bounds in control_checks.BOUNDS:
        control_checks.check_fori_loop("cuda", rng, bounds)
    for length in control_checks.LENGTHS:
        control_checks.check_scan("cuda", rng, length, length % 2 == 1)


def test_loops_of_known_length_are_one_graph(rng):
    program = Program(loops.fori_program(2, 7), "cuda")
    for _ in range(3):
        x, y = floats(rng, 6), floats(rng, 6)
        found = program(given(x), given(y))
        for index in range(2, 7):
            x, y = y, x + np.float32(index) * y
        np.testing.assert_allclose([one.numpy() for one in found], (x, y), rtol=1e-5, atol=1e-4)
    assert graph_of(program, "run") == "20 nodes, 13 with addresses"


def test_closing_gives_all_memory_back(rng):
    gt.synchronize("cuda")
    memory.empty_cache("cuda")
    before = memory.memory_allocated("cuda")
    program = Program(models.mlp(rng, (12, 400, 8))[0], "cuda")
    for n in (3, 3, 9):
        program(gt.zeros((n, 12), dtype="float32", device="cuda"))
    assert memory.memory_allocated("cuda") > before
    program.close()
    gt.synchronize("cuda")
    assert memory.memory_allocated("cuda") == before


@pytest.mark.orders("at-once")
@pytest.mark.process
def test_many_sizes_are_bound_and_the_oldest_dropped(rng):
    data, reference = models.mlp(rng)
    program = Program(data, "cuda")
    for n in [*range(1, 40), 1, 2]:
        x = floats(rng, n, 12)
        np.testing.assert_allclose(program(given(x)).numpy(), reference(x), rtol=1e-4, atol=1e-4)


def test_replays_of_graphs_on_other_tensors(rng):
    graph_inputs.check_inputs("cuda", rng)
    graph_inputs.check_order("cuda", rng)
    graph_inputs.check_refusals("cuda")


def test_streams_are_branches_of_the_graph(rng):
    def model(x, y, *, weights):
        side, far = gt.Stream(), gt.Stream()
        total = x + y
        with gt.stream(side):
            left = total * weights["w"]
            left = left + x
        with gt.stream(far):
            right = gt.maximum(total, y) * 2
        middle = total - y
        with gt.stream(side):
            left = left + right
        return left + middle, right

    w = given(floats(rng, 8, 40))
    spec = gt.spec((8, 40))
    program = gt.compile(model, spec, spec, weights={"w": w}, target="cuda")
    held = []
    for _ in range(5):
        x, y = floats(rng, 8, 40), floats(rng, 8, 40)
        tensors = given(x), given(y)
        found = program(*tensors)
        held.append((tensors, found))
        wanted = model(*tensors, weights={"w": w})
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert graph_of(program, "model").endswith(" with addresses, 3 branches")


def test_conditions_are_bodies_of_the_graph(rng):
    program, w = nested_control.check("cuda", rng)
    nested_control.check_in_capture("cuda", rng, program, w)


def test_a_driver_without_conditions_runs_them_call_by_call(rng):
    registry.observe(0)
    for name in ("condition_create", "condition_add", "capture_begin_body"):
        data, w = loops.cond_program(rng)
        program = Program(data, "cuda")
        x = floats(rng, 6)
        registry.fail_call(0, 1, 801, name)
        found = program(given(x)).numpy()
        np.testing.assert_array_equal(found, x + 1 if x[0] < 0 else x * w)
        assert "call by call" in graph_of(program, "run")
        registry.fail_call(0, 0)


def test_refused_driver_calls_while_bodies_are_captured(rng):
    data, w = loops.cond_program(rng)
    program = Program(data, "cuda")
    x = floats(rng, 6)
    tensor, want = given(x), x + 1 if x[0] < 0 else x * w

    def request():
        with program.session() as session:
            np.testing.assert_array_equal(session(tensor).numpy(), want)

    request()
    registry.observe(0)
    for name in ("condition_create", "condition_add", "capture_begin_body", *NODE_CALLS[:2]):
        k = refuse_each_call(name, request)
        assert k > 3, name
    assert "bodies" in graph_of(program, "run")
