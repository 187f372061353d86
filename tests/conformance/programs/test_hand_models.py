"""Hand-written models as programs: the bits of eager calls, in arenas close to the lower bound."""

import subprocess
import sys

import pytest

import gputensor as gt
from gputensor.programs.passes.plan import plan
from gputensor.programs.passes.plan_check import check_plan
from tests.support.programs.hand_models import MODELS
from tests.support.programs.traced import bits, first_state


@pytest.fixture(params=["host", "cuda"], scope="module")
def place(request):
    if request.param == "cuda" and not gt.is_available():
        pytest.skip("no CUDA device: run on a machine with one")
    return request.param


@pytest.mark.parametrize("name", MODELS)
def test_a_program_equals_the_function(name, place):
    with gt.Device(place):
        model = MODELS[name]()
        how = {"weights": model.weights, "state": model.state}
        program = gt.compile(model.functions, rounding="each", **how)
        trees = {} if model.weights is None else {"weights": model.weights}
        if model.state is not None:
            trees["state"] = first_state(model.state, place)
        with program.session() as session:
            for function, arguments in model.calls:
                wanted = model.functions[function][0](*arguments, **trees)
                made = getattr(session, function)(*arguments)
                assert bits(made) == bits(wanted), function
            if model.state is not None:
                assert bits(session.state) == bits(trees["state"])


CHILD = """
import sys
import gputensor as gt

def leaves(made):
    return [made] if isinstance(made, gt.Tensor) else [x for one in made for x in leaves(one)]

folder, place, *names = sys.argv[1:]
with gt.Device(place), gt.load_program(f"{folder}/model.gtp").session() as session:
    for turn, name in enumerate(names):
        given = gt.load_safetensors(f"{folder}/{turn}.in")
        made = getattr(session, name)(*(given[str(i)] for i in range(len(given))))
        results = {str(i): one for i, one in enumerate(leaves(made))}
        gt.save_safetensors(results, f"{folder}/{turn}.out")
assert not any(name.startswith("tests") for name in sys.modules)
"""


def leaves(made):
    return [made] if isinstance(made, gt.Tensor) else [x for one in made for x in leaves(one)]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_file_run_in_a_new_process_equals_the_function(name, place, tmp_path):
    with gt.Device(place):
        model = MODELS[name]()
        how = {"weights": model.weights, "state": model.state}
        program = gt.compile(model.functions, rounding="each", **how)
        program.save(tmp_path / "model.gtp")
        trees = {} if model.weights is None else {"weights": model.weights}
        if model.state is not None:
            trees["state"] = first_state(model.state, place)
        wanted = []
        for turn, (function, arguments) in enumerate(model.calls):
            given = {str(i): one for i, one in enumerate(arguments)}
            gt.save_safetensors(given, tmp_path / f"{turn}.in")
            wanted.append(leaves(model.functions[function][0](*arguments, **trees)))
        names = [function for function, _ in model.calls]
        command = [sys.executable, "-c", CHILD, str(tmp_path), place, *names]
        subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
        for turn, values in enumerate(wanted):
            found = gt.load_safetensors(tmp_path / f"{turn}.out")
            assert bits([found[str(i)] for i in range(len(found))]) == bits(values), turn


@pytest.mark.parametrize("name", MODELS)
def test_the_arena_is_close_to_its_lower_bound(name):
    with gt.Device("host"):
        model = MODELS[name]()
        how = {"weights": model.weights, "state": model.state}
        program = gt.compile(model.functions, rounding="each", **how)
    for function, arguments in model.calls:
        made = program.functions[function]
        shapes = [tensor.shape for tensor in arguments]
        sizes = {
            extent[1]: found
            for one, shape in zip(made.inputs, shapes, strict=True)
            for extent, found in zip(one.operand.shape, shape, strict=True)
            if type(extent) is tuple
        }
        found = plan(made, sizes)
        check_plan(made, sizes, found)
        ratio = found.nbytes / max(found.lower_bound, 1)
        print(f"{name}.{function} {sizes}: {len(made.calls)} calls, arena {found.nbytes}, "
              f"bound {found.lower_bound}, sum {found.total}, ratio {ratio:.3f}")  # fmt: skip
        assert ratio <= 1.05
