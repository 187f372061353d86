"""Programs called from C through the functions of gputensor_program.h."""

import ctypes
import gc
import json
import threading
from collections import Counter

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor._kernels.launch import images
from tests.support.programs import ahead_models
from tests.support.programs.c_caller import CProgram, described, poisoned
from tests.support.programs.models import counter

pytestmark = pytest.mark.process(FAKE_CUDA_SHARED=str(228 << 10))


NOT_SUPPORTED = 801
#: Calls that release an object: there is no recovery when the driver refuses one.
RELEASES = {"graph_destroy", "graph_executable_destroy", "capture_end", "mem_free", "event_destroy"}


def given(array):
    return gt.asarray(array, device="cuda")


def saved(name, rng, tmp_path, is_bound=False):
    """Return a model, its file, and the results of its program in Python by size; `is_bound`: only
    at sizes that the file contains."""
    model = ahead_models.MODELS[name](rng)
    path = tmp_path / "model.gtp"
    program = model.compile(target="h200")
    program.save(path)
    wanted = {}
    for n in (1, 8, 16) if is_bound else model.sizes:
        arrays = model.arrays(rng, n)
        found = model.results(program(*map(given, arrays)))
        wanted[n] = arrays, [one.numpy() for one in found]
    return model, path, wanted


@pytest.mark.parametrize("library", ["module", "alone"])
@pytest.mark.parametrize("name", sorted(ahead_models.MODELS))
def test_runs_are_those_of_python(name, library, rng, tmp_path, monkeypatch):
    model, path, wanted = saved(name, rng, tmp_path, library == "alone")
    monkeypatch.setattr(images, "image_of", None)  # no kernel is compiled
    program = CProgram(path, name=library)
    described_text = json.loads(program.describe())["functions"][model.name]
    assert len(described_text["inputs"]) == len(model.arguments)
    assert described_text["inputs"][0]["shape"][0] == "n"
    session = program.session()
    program.close()  # a session keeps its program alive
    for n in (*wanted, *wanted, max(wanted)):
        arrays, results = wanted[n]
        inputs, outputs = list(map(given, arrays)), list(map(poisoned, results))
        gt.synchronize("cuda")
        session.run(model.name, inputs, outputs)
        gt.synchronize("cuda")
        for one, other in zip(outputs, results, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)
    session.close()


def test_state_stays_in_its_session(rng, tmp_path):
    gt.programs.program.Program(counter(), "cuda").save(tmp_path / "counter.gtp")
    program = CProgram(tmp_path / "counter.gtp")
    one, two = program.session(), program.session()
    x = given(np.ones(8, np.float32))
    total, twice = (poisoned(np.ones(8, np.float32)) for _ in range(2))
    gt.synchronize("cuda")
    (name,) = json.loads(program.describe())["functions"]
    for _ in range(3):
        one.run(name, [x], [total, twice])
    gt.synchronize("cuda")
    np.testing.assert_array_equal(total.numpy(), 3)
    two.run(name, [x], [total, twice])
    gt.synchronize("cuda")
    np.testing.assert_array_equal(total.numpy(), 1)
    for session in (one, two):
        session.close()
    program.close()


def test_threads_run_their_own_sessions(rng, tmp_path):
    model, path, wanted = saved("network", rng, tmp_path)
    program = CProgram(path)
    faults = []

    def work(n):
        session = program.session()
        stream = gt.Stream("cuda")
        arrays, results = wanted[n]
        with gt.stream(stream):
            inputs, outputs = list(map(given, arrays)), list(map(poisoned, results))
            stream.synchronize()
            for _ in range(4):
                session.run(model.name, inputs, outputs, stream.cuda_stream)
            stream.synchronize()
            for one, other in zip(outputs, results, strict=True):
                if not np.array_equal(one.numpy(), other):
                    faults.append(n)
        session.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in (*model.sizes, *model.sizes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    program.close()


def test_mistakes_have_a_status_and_one_line(rng, tmp_path):
    with pytest.raises(RuntimeError, match=r"3: ProgramFileError: .*missing\.gtp"):
        CProgram(tmp_path / "missing.gtp")
    with pytest.raises(RuntimeError, match="1: ValueError: device: got -1"):
        CProgram(tmp_path / "missing.gtp", device=-1)
    model, path, wanted = saved("wide", rng, tmp_path)
    program = CProgram(path)
    session = program.session()
    arrays, results = wanted[2]
    (x,), outputs = list(map(given, arrays)), list(map(poisoned, results))
    name = model.name
    rows = given(np.ones((2, 3001), np.float32))
    whole = given(np.ones(6008, np.float32))
    for text, call in {
        "1: ValueError: function: got 'no'": ("no", [x], outputs),
        "1: ValueError: inputs of wide: got 2": (name, [x, x], outputs),
        "1: ValueError: x.dtype: got float64": (name, [gt.astype(x, "float64")], outputs),
        r"1: ValueError: x.shape\[1\]: got 3001": (name, [rows], outputs),
        "1: inputs: got an unaligned": (
            name,
            [gt.reshape(whole[1:6001], (2, 3000))],
            outputs,
        ),
        "1: outputs: got other tensors": (name, [x], outputs[1:]),
    }.items():
        with pytest.raises(RuntimeError, match=text):
            session.run(*call)
    with pytest.raises(RuntimeError, match="1: session or program: got NULL"):
        program.check(program.library.gputensor_session_open(None, None))
    session.run(name, [x], outputs)  # the failed calls changed nothing
    gt.synchronize("cuda")
    for one, other in zip(outputs, results, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)
    assert described(x).ndim == 2
    session.close()
    program.close()


@pytest.mark.parametrize("library", ["module", "alone"])
def test_tensors_without_memory_are_refused(library, tmp_path):
    gt.compile(lambda x: x + 1, gt.spec((2, 3)), target="h200").save(tmp_path / "m.gtp")
    program = CProgram(tmp_path / "m.gtp", name=library)
    session = program.session()
    x, y = given(np.ones((2, 3), np.float32)), poisoned(np.empty((2, 3), np.float32))
    call = program.library.gputensor_session_run
    for which, field, value, text in (
        (0, "data", None, "got NULL; expected the address of memory of the GPU"),
        (1, "data", None, "got NULL; expected the address of memory of the GPU"),
        (0, "shape", None, "got"),
        (1, "shape", None, "got"),
        (0, "lanes", 2, "float32 of 2 lanes"),
    ):
        tensors = described(x), described(y)
        if field == "shape":
            tensors[which].shape = ctypes.POINTER(ctypes.c_int64)()
        else:
            setattr(tensors[which], field, value)
        first, second = map(ctypes.byref, tensors)
        assert call(session.handle, b"main", 1, first, 1, second, None) == 1
        assert text in program.library.gputensor_program_last_error().decode()
    session.run("main", [x], [y])
    gt.synchronize("cuda")
    np.testing.assert_array_equal(y.numpy(), 2)
    session.close()
    program.close()


@pytest.mark.parametrize("library", ["module", "alone"])
def test_conditions_are_those_of_python(library, rng, tmp_path):
    def model(x, *, weights):
        grown = gt.while_loop(lambda c: gt.max(c) < 9, lambda c: c * 2, x)
        return gt.cond(gt.sum(x) > 5, lambda c: c + weights["w"], lambda c: c, grown)

    weights = {"w": np.float32([1, 2, 3, 4])}
    program = gt.compile(model, gt.spec((4,)), weights=weights, target="h200")
    program.save(tmp_path / "w.gtp")
    opened = CProgram(tmp_path / "w.gtp", name=library)
    session = opened.session()
    for array in (np.ones(4, np.float32), np.float32([0, 3, 4, 1]), np.zeros(4, np.float32) + 20):
        found = poisoned(array)
        session.run("model", [given(array)], [found])
        gt.synchronize("cuda")
        np.testing.assert_array_equal(found.numpy(), program(given(array)).numpy())
    session.close()
    opened.close()


def saved_step(rng, tmp_path):
    """Return the file of a function with a product and a state, and its weights."""

    def step(x, *, weights, state):
        state["total"] += x @ weights["w"]
        return gt.softmax(state["total"]), gt.sum(x, axis=0)

    weights, state = {"w": rng.standard_normal((24, 8), np.float32)}, {"total": gt.spec((3, 8))}
    program = gt.compile(step, gt.spec((3, 24)), weights=weights, state=state, target="h200")
    program.save(tmp_path / "step.gtp")
    return tmp_path / "step.gtp", weights["w"].astype(np.float64)


class Step:
    """A session of `saved_step`, whose results are checked after each run."""

    def __init__(self, program, w, rng):
        self.session, self.w, self.rng, self.total = program.session(), w, rng, 0
        self.refused = 0  # the number of a driver call of a run

    def prepare(self):
        self.array = self.rng.standard_normal((3, 24), np.float32)
        self.x, self.out = given(self.array), [poisoned(np.ones(n, "f4")) for n in ((3, 8), 24)]
        gt.synchronize("cuda")

    def launch(self, stream=0):
        registry.fail_call(0, self.refused, 999)
        try:
            self.session.run("step", [self.x], self.out, stream)
        finally:
            registry.fail_call(0, 0)
        self.total = self.total + self.array @ self.w

    def run(self):
        self.prepare()
        self.launch()
        self.check()

    def check(self):
        gt.synchronize("cuda")
        powers = np.exp(self.total - self.total.max(-1, keepdims=True))
        wanted = powers / powers.sum(-1, keepdims=True), self.array.astype(np.float64).sum(0)
        for one, other in zip(self.out, wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-5)


def calls_of(work):
    """Return how often each driver call is made in `work`."""
    registry.start_trace(0)
    work()
    return Counter(call[0] for call in registry.take_trace(0))


@pytest.mark.process("own", FAKE_CUDA_SHARED=str(228 << 10))  # counts its driver calls
def test_runs_launch_a_graph(rng, tmp_path):
    path, w = saved_step(rng, tmp_path)
    program = CProgram(path)
    registry.observe(0)
    step = Step(program, w, rng)
    assert calls_of(step.run)["capture_begin"] == 3  # grows the pool, then compares two captures
    held = []
    for _ in range(3):  # at new addresses
        held.append((step.x, step.out))
        found = calls_of(step.run)
        assert found["graph_launch"] == 1 and not found["capture_begin"], found
        assert found["graph_node_set"] >= 2, found

    # A stream that the caller captures gets the steps.
    stream, graph = gt.Stream("cuda"), gt.graphs.CUDAGraph()
    held.append((step.x, step.out))
    step.prepare()
    with gt.graphs.graph(graph, stream=stream):
        found = calls_of(lambda: step.launch(stream.cuda_stream))
    assert not found["graph_launch"], found
    graph.replay()
    step.check()

    # If the driver refuses new addresses, this run and later ones launch the steps.
    held.append((step.x, step.out))
    step.prepare()
    registry.fail_call(0, 1, NOT_SUPPORTED, "graph_node_set")
    step.session.run("step", [step.x], step.out)
    registry.fail_call(0, 0)
    step.total = step.total + step.array @ w
    step.check()
    assert not calls_of(step.run)["graph_launch"]
    step.session.close()
    program.close()


def test_a_function_without_an_arena(rng, tmp_path):
    def more(x):
        return x + 1

    gt.compile(more, gt.spec((5, 7)), target="h200").save(tmp_path / "more.gtp")
    program = CProgram(tmp_path / "more.gtp")
    session = program.session()
    for _ in range(3):
        array, out = rng.standard_normal((5, 7), np.float32), poisoned(np.ones((5, 7), "f4"))
        session.run("more", [given(array)], [out])
        np.testing.assert_array_equal(out.numpy(), array + 1)
    session.close()
    program.close()


@pytest.mark.process("own", FAKE_CUDA_SHARED=str(228 << 10))
@pytest.mark.orders("at-once")
def test_a_driver_call_refused_in_the_first_run_leaves_no_memory(rng, tmp_path):
    """Refuses each call in turn, releases excepted; then a run has a result or a status."""
    path, w = saved_step(rng, tmp_path)
    program = CProgram(path)
    registry.observe(0)
    step = Step(program, w, rng)
    step.run()
    step.session.close()
    step, answers = Step(program, w, rng), Counter()
    step.prepare()
    registry.start_trace(0)
    step.launch()
    calls = [call[0] for call in registry.take_trace(0)]
    step.session.close()
    for k, name in enumerate(calls, 1):
        if name in RELEASES:
            continue
        del step
        gc.collect()
        gt.memory.empty_cache("cuda")
        before = gt.memory.memory_allocated("cuda")
        step = Step(program, w, rng)
        step.refused = k
        try:
            step.run()
            answers["ran"] += 1
        except RuntimeError as error:
            assert str(error).count("\n") == 0
            answers["refused"] += 1
        step.session.close()
        step.x = step.out = None
        gc.collect()
        assert gt.memory.memory_allocated("cuda") == before, (k, name)
    assert answers["ran"] > 30 and answers["refused"], answers
