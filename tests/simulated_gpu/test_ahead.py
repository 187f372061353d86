"""Programs compiled ahead of time, run from a file where nothing compiles kernels."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from gputensor._driver.registry import device_facts_of
from gputensor._kernels.launch import images
from gputensor.errors import DriverError
from tests.support.programs import ahead_models

SHARED = 228 << 10  # of an H200, as the table of targets has it
pytestmark = pytest.mark.process(FAKE_CUDA_SHARED=str(SHARED))


@pytest.fixture
def no_compiler(monkeypatch):
    """Make every use of NVRTC fail from the call of this on."""

    def refuse(program, target):
        raise AssertionError(f"{program.path} was compiled for {target}")

    return lambda: monkeypatch.setattr(images, "image_of", refuse)


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
            for one, other in zip(found, results, strict=True):
                np.testing.assert_array_equal(one.numpy(), other)
        lists = program.report()[model.name]["launches"]
        assert lists["found"] > 0


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
