"""Programs on a real GPU: graphs whose nodes, those of BLAS included, get new addresses."""

import gc
import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import DriverError, OutOfMemoryError
from gputensor.programs.program import Program
from tests.support import graph_inputs
from tests.support.programs import control_checks, models, nested_control

DTYPES = ("float16", "bfloat16", "float32")
SIZES = ((1, 64, 64), (16, 512, 512), (128, 1024, 768), (512, 2048, 2048), (4096, 4096, 4096))


@pytest.fixture
def rng():
    return np.random.default_rng()


def given(rng, dtype, *shape, offset=0):
    """A random tensor whose address is `offset` elements past an aligned one."""
    size = int(np.prod(shape))
    flat = gt.asarray(rng.standard_normal(size + offset).astype(np.float32), device="cuda")
    return gt.reshape(flat.astype(dtype)[offset:], shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_at_new_addresses_equal_eager(cuda, rng, dtype, size):
    m, k, n = size

    def layer(x, y, *, weights):
        return gt.linear(gt.linear(x, weights["up"], activation="relu"), weights["down"]) @ y

    # Small enough that no float16 sum overflows.
    weights = {"up": given(rng, dtype, n, k) / 64, "down": given(rng, dtype, k, n) / 64}
    program = gt.compile(layer, gt.spec((m, k), dtype), gt.spec((k, 64), dtype), weights=weights)
    held = []
    aligned = 16 // np.dtype(weights["up"].dtype).itemsize
    for turn in range(5):
        x, y = given(rng, dtype, m, k, offset=aligned * turn), given(rng, dtype, k, 64)
        held.append((x, y, program(x, y)))
    print(program.report()["layer"]["sizes"][0]["graph"])
    for x, y, found in held:
        want = layer(x, y, weights=weights).astype("float32").numpy()
        bound = 0.02 * np.abs(want).max() if dtype != "float32" else 0.005 * np.abs(want).max()
        np.testing.assert_allclose(found.astype("float32").numpy(), want, atol=bound, rtol=0.02)
    assert program.report()["layer"]["copied_inputs"] == 0


def test_kernels_that_start_early_see_all_earlier_writes(cuda, rng):
    """Each step reads the results of the step before; the reference waits after each step."""
    rows, columns = 64, 2048
    packed = gt.asarray(rng.integers(0, 256, (columns // 16, columns // 64, 512), dtype=np.uint8))
    scales = given(rng, "bfloat16", columns // 128, columns) / 256
    order = gt.asarray(rng.permutation(rows))
    steps = (
        lambda x: x * 1.25 + 0.5,
        lambda x: gt.take(x, order, axis=0),
        lambda x: gt.softmax(x) + gt.quantized_linear(x[:4], packed, scales)[0],
        lambda x: gt.copy(gt.copy(x.T)[::-1].T),
        lambda x: x - gt.max(x, axis=0),
        lambda x: gt.rms_norm(gt.quantized_linear(x[3:4], packed, scales) + x),
    )

    def chain(x):
        for _ in range(3):
            for step in steps:
                x = step(x)
        return x

    def waiting(x):
        for _ in range(3):
            for step in steps:
                x = step(x)
                gt.synchronize()
        return x

    program = gt.compile(chain, gt.spec((rows, columns), "bfloat16"), rounding="each")
    for _ in range(10):
        x = given(rng, "bfloat16", rows, columns)
        want, same = waiting(x), []
        for call in (program, chain) * 20:
            gt.full((8, rows, columns), np.nan, dtype="bfloat16")  # poisons memory for results
            same.append(gt.all(call(x) == want))
        assert gt.all(gt.stack(same)).item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES[1:], ids=str)
def test_graphs_of_products_are_replayed_on_other_tensors(cuda, rng, dtype, size):
    m, k, n = size
    x, w = given(rng, dtype, m, k), given(rng, dtype, k, n)
    x @ w
    captured = gt.graphs.CUDAGraph()
    gt.synchronize()
    with gt.graphs.graph(captured):
        y = x @ w
    for other, second in [(given(rng, dtype, m, k), w), (x, given(rng, dtype, k, n)), (x, w)]:
        captured.replay(inputs={x: other, w: second})
        found, want = y.astype("float32").numpy(), (other @ second).astype("float32").numpy()
        np.testing.assert_allclose(found, want, atol=0.02 * np.abs(want).max(), rtol=0.02)


def test_chains_are_moved_node_by_node(cuda, rng):
    program = Program(models.chain(100, 4, (64, 64)), "cuda")
    for _ in range(10):
        arrays = [rng.standard_normal((64, 64)).astype(np.float32) for _ in range(4)]
        result = program(*(gt.asarray(array) for array in arrays))
        np.testing.assert_allclose(result.numpy(), 25 * sum(arrays), rtol=1e-4, atol=1e-3)
    (facts,) = program.report()["chain"]["sizes"]
    assert facts["graph"] == "100 nodes, 100 with addresses", facts


def test_copies_and_fills_are_moved(cuda, rng):
    def moved(x):
        y = gt.zeros((300, 200), dtype="float32")
        y[100:] = x
        return y, gt.copy(x)

    program = gt.compile(moved, gt.spec((200, 200), gt.float32))
    held = []
    for _ in range(6):
        array = rng.standard_normal((200, 200)).astype(np.float32)
        x = gt.asarray(array)
        held.append((array, x, program(x)))
    for array, _x, (y, z) in held:
        np.testing.assert_array_equal(z.numpy(), array)
        np.testing.assert_array_equal(y.numpy()[100:], array)
        assert not y.numpy()[:100].any()
    print(program.report()["moved"]["sizes"])


def test_sessions_on_two_streams_and_threads(cuda, rng):
    program = Program(models.counter(), "cuda")
    wrong = []

    def work(seed):
        mine = np.random.default_rng(seed)
        session, total = program.session(), np.zeros(8, np.float32)
        streams = [gt.Stream("cuda"), gt.Stream("cuda")]
        for turn in range(50):
            step = mine.standard_normal(8).astype(np.float32)
            total += step
            with gt.stream(streams[turn % 2]):
                result, twice = session(gt.asarray(step, device="cuda"))
        if not np.allclose(result.numpy(), total, atol=1e-3):
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_refused_driver_call_changes_nothing(cuda):
    session = Program(models.counter(), "cuda").session()
    x, total, held = gt.ones(8), 0, []
    registry.observe(0)
    for name in ("graph_node_set", "graph_launch", "event_record"):
        for k in range(1, 20):
            registry.reset_counts(0)
            registry.fail_call(0, k, 999, name)
            try:
                held.append(session(x))
                total += 1
            except (DriverError, OutOfMemoryError):
                pass
            registry.fail_call(0, 0)
            assert (session.state["total"].numpy() == total).all(), (name, k)
            if registry.counts(0)[name] < k:
                break


def test_control_flow(cuda, rng):
    control_checks.check_while_loop("cuda", rng)
    control_checks.check_cond("cuda", rng)
    for bounds in control_checks.BOUNDS:
        control_checks.check_fori_loop("cuda", rng, bounds)
    for length in control_checks.LENGTHS:
        control_checks.check_scan("cuda", rng, length, length % 2 == 1)


def test_conditions_are_bodies_of_the_graph(cuda, rng):
    program, w = nested_control.check("cuda", rng)
    nested_control.check_in_capture("cuda", rng, program, w)


def test_replays_of_graphs_on_other_tensors(cuda, rng):
    graph_inputs.check_inputs("cuda", rng)
    graph_inputs.check_order("cuda", rng)
    graph_inputs.check_refusals("cuda")


def test_closing_gives_all_memory_back(cuda, rng):
    gc.collect()  # frees garbage of earlier tests now, not between the measurements
    gt.synchronize()
    before = memory.memory_allocated("cuda")
    program = Program(models.mlp(rng, (512, 2048, 512))[0], "cuda")
    for n in (3, 64, 3):
        program(gt.zeros((n, 512)))
    program.close()
    gt.synchronize()
    assert memory.memory_allocated("cuda") == before


def test_products_on_streams_are_branches(cuda, rng):
    """Each branch has its own BLAS workspace, and new addresses at each call."""

    def model(x, *, weights):
        total, parts = gt.zeros((64, 256)), []
        for number, w in enumerate(weights):
            with gt.stream(gt.Stream()):
                parts.append(gt.softmax(gt.matmul(x, w) * (number + 1)))
        for part in parts:
            total = total + part
        return total, parts[0]

    weights = [given(rng, "float32", 256, 256) for _ in range(6)]
    program = gt.compile(model, gt.spec((64, 256)), weights=weights)
    held = []
    for _ in range(20):
        x = given(rng, "float32", 64, 256)
        held.append((x, program(x)))
    print(program.report()["model"]["sizes"][0]["graph"])
    for x, found in held:
        for one, other in zip(found, model(x, weights=weights), strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
