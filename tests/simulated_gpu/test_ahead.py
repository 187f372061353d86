"""Programs compiled ahead of time, run from a file without a kernel compiler."""

import gc
import os

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor._driver.registry import device_facts_of
from gputensor._kernels.launch import images, nvrtc
from gputensor._kernels.launch.nvrtc import CompileError
from gputensor._kernels.programs import condition
from gputensor.cli.main import main
from gputensor.errors import DriverError, GpuTensorError
from gputensor.programs.ahead import tune
from gputensor.programs.ahead.code import source_of
from tests.support import internals
from tests.support.products import skinny_on_cpu
from tests.support.programs import ahead_models, nested_control
from tests.support.programs.c_caller import CProgram, poisoned
from tests.unit.passes import test_prepare

SHARED = 228 << 10  # bytes of shared memory of an H200 in the table of targets
#: Calls that release an object: there is no recovery when the driver refuses one.
RELEASES = {
    "capture_end", "graph_destroy", "graph_executable_destroy", "stream_destroy", "event_destroy",
    "mem_free", "module_unload", "va_release", "page_destroy", "page_unmap", "context_leave",
}  # fmt: skip
pytestmark = pytest.mark.process(FAKE_CUDA_SHARED=str(SHARED))


@pytest.fixture
def no_compiler(monkeypatch):
    """Return a function after whose call every use of NVRTC fails."""

    def refuse(program, target):
        raise AssertionError(f"{program.path} was compiled for {target}")

    return lambda: monkeypatch.setattr(images, "image_of", refuse)


@pytest.fixture
def one_library(monkeypatch):
    """Leave tuning one library's algorithms: which way is the fastest depends on what else runs."""
    rows = [row for row in tune.backend_table() if row["name"] == "cublaslt"]
    monkeypatch.setattr(tune, "backend_table", lambda: rows)
    internals.narrow_configure(rows=-1)
    yield
    internals.narrow_configure()


def given(array):
    return gt.asarray(array, device="cuda")


@pytest.mark.parametrize("name", sorted(ahead_models.MODELS))
def test_a_program_from_a_file_needs_no_compiler(name, rng, tmp_path, no_compiler):
    assert device_facts_of(0) == (90, 132, SHARED)
    model = ahead_models.MODELS[name](rng)
    path = tmp_path / "model.gtp"
    model.compile(target=["sm_80", "h200"]).save(path)
    by_calls = model.compile(target="cuda")
    wanted = {}
    for n in model.sizes:
        arrays = model.arrays(rng, n)
        wanted[n] = arrays, [one.numpy() for one in model.results(by_calls(*map(given, arrays)))]
    no_compiler()
    with gt.load_program(path, device="cuda") as program:
        held = []
        for n in (*model.sizes, *model.sizes):
            arrays, results = wanted[n]
            tensors = list(map(given, arrays))
            found = model.results(program(*tensors))
            held.append((tensors, found))
            with program.session(check=True) as session:
                found += model.results(session(*tensors))
            for one, other in zip(found, results * 2, strict=True):
                np.testing.assert_array_equal(one.numpy(), other)
        lists = program.report()[model.name]["launches"]
        assert lists["found"] > 0


def test_a_file_prepares_its_weights_without_a_compiler(rng, tmp_path, no_compiler):
    gt.save_safetensors(test_prepare.arrays(rng), tmp_path / "mine.safetensors")
    program = test_prepare.compiled(tmp_path, ["sm_80", "h200"], quantize={"m": "int8"})
    program.save(tmp_path / "p.gtp", weights="mine.safetensors", prepared=False)
    x = given(rng.standard_normal((2, 8, 6, 6)).astype(np.float32))
    wanted = program(x).numpy()
    no_compiler()
    with gt.load_program(tmp_path / "p.gtp", device="cuda") as found:
        np.testing.assert_array_equal(found(x).numpy(), wanted)


def test_conditions_are_set_by_a_kernel_of_the_file(rng, tmp_path, no_compiler):
    def opened(model, *specs, weights):
        gt.compile(model, *specs, weights=weights, target=["sm_80", "h200"]).save(
            tmp_path / "m.gtp"
        )
        no_compiler()
        return gt.load_program(tmp_path / "m.gtp", device="cuda")

    program, w = nested_control.check("cuda", rng, opened)
    nested_control.check_in_capture("cuda", rng, program, w)


def test_the_host_reads_flags_if_the_file_lacks_that_kernel(rng, tmp_path):
    specs = gt.spec((4,)), gt.spec(())

    def model(x, limit):
        return gt.while_loop(lambda c: gt.max(c) < limit, lambda c: c * 2, x)

    program = gt.compile(model, *specs, target="h200")
    for kernel in program.data.ahead.kernels.all:
        if kernel.source == source_of(condition()):
            kernel.images.clear()
    program.save(tmp_path / "m.gtp")
    x = np.abs(rng.standard_normal(4)).astype(np.float32) + np.float32(0.1)
    with gt.load_program(tmp_path / "m.gtp", device="cuda") as program:
        found = program(given(x), given(np.float32(4))).numpy()
        np.testing.assert_array_equal(found, x * 2 ** max(0, np.ceil(np.log2(4 / x.max()))))
        (facts,) = program.report()["model"]["sizes"]
        assert "no kernel that sets conditions" in facts["graph"]


@pytest.mark.parametrize("name", ["module_load", "module_function"])
def test_a_kernel_that_the_driver_refuses_is_loaded_the_next_time(name, rng, tmp_path):
    model = ahead_models.Model(
        lambda x: gt.exp(x) * (3 if name == "module_load" else 5) + 1, (gt.spec((7, 3)),), {}, ()
    )
    gt.compile(model.function, *model.specs, target="h200").save(tmp_path / "model.gtp")
    x = given(np.ones((7, 3), np.float32))
    registry.observe(0)
    with gt.load_program(tmp_path / "model.gtp", device="cuda") as program:
        registry.fail_call(0, 1, 999, name)
        with pytest.raises(DriverError, match=name):
            program(x)
        registry.fail_call(0, 0)
        wanted = np.exp(np.float32(1)) * (3 if name == "module_load" else 5) + 1
        np.testing.assert_allclose(program(x).numpy(), wanted, rtol=1e-6)


@pytest.mark.process("own", FAKE_CUDA_SHARED=str(SHARED))  # counts its driver calls
@pytest.mark.orders("at-once")
def test_a_driver_call_refused_once_leaves_no_memory_and_the_next_time_works(rng, tmp_path):
    """Refuses each call of loading, binding and running in turn, releases excepted."""

    def step(x, *, weights, state):
        state["total"] += x @ weights["w"]
        return gt.softmax(state["total"]), gt.sum(x, axis=0)

    weights, state = {"w": rng.standard_normal((24, 8), np.float32)}, {"total": gt.spec((3, 8))}
    path = tmp_path / "step.gtp"
    gt.compile(step, gt.spec((3, 24)), weights=weights, state=state, target="h200").save(path)
    x = given(rng.standard_normal((3, 24), np.float32))

    def request():
        with gt.load_program(path, device="cuda") as program, program.session() as session:
            return [one.numpy() for one in (*session.step(x), *session.step(x))]

    registry.observe(0)
    wanted, refused = request(), set()
    for status in (2, 999):
        gt.memory.empty_cache("cuda")
        registry.start_trace(0)
        request()
        for k, call in enumerate(registry.take_trace(0), 1):
            if call[0] in RELEASES:
                continue
            gc.collect()
            gt.memory.empty_cache("cuda")
            before = gt.memory.memory_allocated("cuda")
            registry.fail_call(0, k, status)
            try:
                request()
            except GpuTensorError:
                refused.add(call[0])
            registry.fail_call(0, 0)
            gc.collect()
            assert gt.memory.memory_allocated("cuda") == before, (k, call)
            for one, other in zip(request(), wanted, strict=True):
                np.testing.assert_array_equal(one, other)
    assert {"copy_async", "capture_begin", "graph_instantiate", "graph_launch"} <= refused, refused


@pytest.mark.orders("deferred")
def test_tuned_products_are_in_the_file(rng, tmp_path, monkeypatch, no_compiler):
    def model(x, *, weights):
        h = gt.linear(x, weights["w1"], weights["b1"], activation="relu")
        return gt.linear(h, weights["w2"], residual=x)

    shapes = {"w1": (300, 64), "b1": 300, "w2": (64, 300)}  # the last is too long for "tiny"
    weights = {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    gt.compile(model, gt.spec((20, 64)), weights=weights, target="h200").save(tmp_path / "m.gtp")
    rows = [one for one in tune.backend_table() if one["name"] in ("tiny", "cublaslt", "cublas")]
    monkeypatch.setattr(tune, "backend_table", lambda: rows)  # the others have PTX

    def tuned(name):
        words = ["compile", tmp_path / "m.gtp", "-o", tmp_path / f"{name}.gtp", "--tune"]
        assert main([str(word) for word in words]) == 0

    tuned("timed")
    x = rng.standard_normal((20, 64)).astype(np.float32)
    h = np.maximum(x.astype(np.float64) @ weights["w1"].T + weights["b1"], 0)
    wanted, chosen = h @ weights["w2"].T + x, set()
    for name in ("cublas", "tiny", "models"):

        def times(bench, product, candidates, name=name):
            chosen.update(candidates)
            return {one: 0.5 if one == name else 1.0 for one in candidates}

        monkeypatch.setattr(tune.Bench, "times", times)
        tuned(name)
    # The patched times still prefer "models".
    program = gt.compile(
        model, gt.spec((20, 64)), weights=weights, target=["native", "h200"], tune=0.5
    )
    assert set(program.data.metadata["tuned"]["products"].values()) == {"models"}
    with program:
        np.testing.assert_allclose(program(given(x)).numpy(), wanted, rtol=1e-4, atol=1e-4)
    no_compiler()
    for name in ("timed", "cublas", "tiny", "models"):
        with gt.load_program(tmp_path / f"{name}.gtp", device="cuda") as program:
            found = program(given(x)).numpy()
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(program(given(x)).numpy(), found)
            backends = set(program.data.metadata["tuned"]["products"].values())
            assert name == "timed" or backends <= {name, "models"}, backends
    assert {"models", "cublas"} < chosen, chosen


@pytest.mark.orders("deferred")
def test_a_product_and_its_formula_in_one_kernel_is_pinned(rng, tmp_path, monkeypatch, no_compiler):
    """Models choose two kernels; a measurement may choose one, and then the file has it."""
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    monkeypatch.setattr(tune, "backend_table", list)
    # Small integers, whose sums and products are exact in any order.
    q, w = (rng.integers(-1, 2, (n, 32)).astype(dtype) for n, dtype in ((64, "i1"), (32, "f2")))
    x, other = (rng.integers(-1, 2, (40, 32)).astype("f2") for _ in range(2))

    def gated(x, other, *, weights):
        y = gt.quantized_linear(x, weights["w"], gt.ones((1, 64), gt.float16))
        first, second = gt.split(y, 2, axis=-1)
        return gt.maximum(first, 0) * second - other

    def plain(x, other, *, weights):
        return gt.linear(x, weights["w"], activation="relu", residual=other)

    is_gated = bool(rng.integers(2))
    model, weights = (gated, {"w": q}) if is_gated else (plain, {"w": w})
    wanted = x.astype("f8") @ weights["w"].T
    if is_gated:
        wanted = np.maximum(wanted[:, :32], 0) * wanted[:, 32:] - other
    else:
        wanted = np.maximum(wanted, 0) + other
    specs = [gt.spec(one.shape, "float16") for one in (x, other)]
    gt.compile(model, *specs, weights=weights, target="h200").save(tmp_path / "models.gtp")

    def times(bench, product, candidates):
        found = bench.runnable(candidates)  # which compiles their kernels
        assert found.keys() == {"models", "tile"} | {one for one in found if one[:7] == "library"}
        return {one: 0.5 if one == "tile" else 1.0 for one in found}

    monkeypatch.setattr(tune.Bench, "times", times)
    for name in ("tile", "again"):
        words = ["compile", tmp_path / "models.gtp", "-o", tmp_path / f"{name}.gtp", "--tune"]
        assert main([str(word) for word in words]) == 0
    assert (tmp_path / "tile.gtp").read_bytes() == (tmp_path / "again.gtp").read_bytes()
    no_compiler()
    lists_of = []
    for name in ("models", "tile"):
        with gt.load_program(tmp_path / f"{name}.gtp", device="cuda") as program:
            tuned = program.data.metadata.get("tuned", {"products": {"": "models"}})
            assert list(tuned["products"].values()) == [name]
            (lists,) = program.data.ahead.lists.values()
            lists_of.append({(key, one.to_bytes()) for key, one in lists.items()})
            np.testing.assert_array_equal(program(given(x), given(other)).numpy(), wanted)
    assert len(lists_of[0] ^ lists_of[1]) == 2  # one list of either


@pytest.mark.orders("deferred")
def test_candidates_that_cannot_run_are_left_out(rng, monkeypatch):
    """A kernel is a candidate only for products that it takes, and only if it compiles."""

    def candidates(*shape):
        m, n, k = shape
        weights = {"w": rng.standard_normal((n, k)).astype("f2")}
        spec = gt.spec((m, k), gt.float16)
        program = gt.compile(
            lambda x, *, weights: gt.linear(x, weights["w"]), spec, weights=weights, target="h200"
        )
        ((target, lists),) = program.data.ahead.lists.items()
        products = list(tune.products_of(program.data.functions.values(), lists))
        found = tune.candidates_of(products, lists, target.facts, program.data.ahead.kernels)
        return program, next(iter(found.values()))

    assert "unaligned" in candidates(401, 384, 391)[1]  # its models prefer a library
    program, found = candidates(5, 64, 300)
    assert "packed" in found and "unaligned" not in found

    def refuse(program, target):
        refused.add(program.path)
        raise CompileError("NVRTC: NVRTC_ERROR_COMPILATION")

    refused = set()
    monkeypatch.setattr(images, "image_of", refuse)
    for name in ("ROUNDS", "REPEATS", "REPLAYS"):
        monkeypatch.setattr(tune, name, 1)
    (result,) = tune.tune(program.data, 0, 20.0)
    assert any("packed" in path for path in refused), refused
    assert result.backend.split()[0] in ("models", "cublas", "library")


@pytest.mark.orders("deferred")
def test_a_library_that_wins_against_a_kernel_has_its_algorithm(monkeypatch, one_library):
    internals.narrow_configure(rows=16)
    program = gt.compile(gt.matmul, gt.spec((40, 300)), gt.spec((300, 64)), target=["h200"])

    def times(self, product, candidates):
        assert not candidates["models"].products and len(candidates) > 2
        return {name: 1.0 if name == "cublaslt" else 2.0 for name in candidates}

    monkeypatch.setattr(tune.Bench, "times", times)
    (result,) = tune.tune(program.data, 0, 60.0)
    (lists,) = program.data.ahead.lists.values()
    assert result.backend == "cublaslt"
    ((algorithm,),) = [one.algorithms for one in lists.values() if one.products]
    assert algorithm is not None


@pytest.mark.orders("deferred")
@pytest.mark.parametrize("kind", ["used", "another version", "refused", "whole"])
def test_the_algorithm_of_a_library_is_in_the_file(kind, rng, tmp_path, no_compiler, one_library):
    """Python and both libraries for C use it, but not with another version of the library.

    Without it, all take the better one of two proposals.
    """

    def model(x, *, weights):
        return gt.linear(x, weights["w"], weights["b"])

    weights = {"w": rng.standard_normal((64, 300)).astype("f4"), "b": np.ones(64, "f4")}
    path = tmp_path / "m.gtp"
    program = gt.compile(model, gt.spec((40, 300)), weights=weights, target=["h200"])
    found = tune.tune(program.data, 0, 20.0)
    (lists,) = program.data.ahead.lists.values()
    ((key, chosen),) = [one for one in lists.items() if one[1].products]
    ((version, config),) = chosen.algorithms
    assert found and config[:3] in {(7, 20, split) for split in (1, 2, 4)}
    if kind in ("another version", "whole"):
        version += 1
    pinned = (8 if kind == "refused" else 9, 24, 1, 0, 0, 0, 5, 0, 3)
    lists[key] = chosen.with_algorithm(version, pinned)
    program.save(path)
    program.close()
    x = rng.standard_normal((40, 300)).astype(np.float32)
    wanted = x.astype(np.float64) @ weights["w"].T + 1
    no_compiler()
    log = tmp_path / "log"
    os.environ["FAKE_CUBLAS_LOG"] = str(log)

    def algorithms():
        gt.synchronize("cuda")
        lines = log.read_text().splitlines()
        log.unlink()
        return {tuple(map(int, one.split("algo")[1].split()[:9])) for one in lines}

    expected = {pinned} if kind == "used" else {(7, 20, 4, 2, 0, 0, 11, 0, 2)}
    if kind == "whole":
        os.environ["FAKE_CUBLAS_WHOLE"] = "1"
        gt.blas.forget_plans()
        expected = {(7, 20, 1, 0, 0, 0, 11, 0, 2)}
    with gt.load_program(path, device="cuda") as opened:
        assert opened.data.ahead.lists[next(iter(opened.data.ahead.lists))][key].algorithms == [
            (version, pinned)
        ]
        made = opened(given(x)).numpy()
    assert algorithms() == expected
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4)
    for name in ("module", "alone"):
        caller = CProgram(path, name=name)
        session, outputs = caller.session(), [poisoned(made)]
        session.run("model", [given(x)], outputs)
        assert algorithms() == expected, name
        np.testing.assert_array_equal(outputs[0].numpy(), made)
        session.close()
        caller.close()
