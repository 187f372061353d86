"""Programs that prepare their weights, from the user's own file, when they are loaded."""

import shutil

import numpy as np
import pytest

import gputensor as gt
from gputensor.errors import ProgramFileError
from gputensor.programs import file
from tests.unit.programs.test_file import put_together, take_apart

RULES = {"m": "int8"}


def network(x, *, weights):
    """A convolution with a normalization that is folded, and a matrix that is quantized."""
    y = gt.conv2d(x, weights["w"], padding=1) * weights["scale"] + weights["shift"]
    y = gt.mean(gt.relu(y), axis=(2, 3))
    return gt.linear(y, weights["m"]) + gt.exp(weights["b"])


def arrays(rng):
    shapes = {"w": (32, 8, 3, 3), "scale": (32, 1, 1), "shift": (32, 1, 1), "m": (40, 32)}
    found = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    found["b"] = rng.standard_normal(40).astype(np.float32)
    return {name: gt.asarray(array, device="host") for name, array in found.items()}


@pytest.fixture
def mine(tmp_path, rng):
    """The folder of a program and of the file that its weights are mapped from."""
    gt.save_safetensors(arrays(rng), tmp_path / "mine.safetensors")
    return tmp_path


def compiled(folder, target="host", rounding="once", **options):
    spec = gt.spec((gt.Dim("n", 1, 4), 8, 6, 6), gt.float32)
    mapped = gt.map_safetensors(folder / "mine.safetensors")
    return gt.compile(network, spec, weights=mapped, target=target, rounding=rounding, **options)


@pytest.mark.parametrize("rounding", ["once", "each"])
@pytest.mark.parametrize("quantize", [None, RULES])
def test_results_are_those_of_prepared_weights(mine, rng, rounding, quantize):
    program = compiled(mine, rounding=rounding, quantize=quantize)
    before = (mine / "mine.safetensors").read_bytes()
    program.save(mine / "small.gtp", weights="mine.safetensors", prepared=False)
    assert (mine / "mine.safetensors").read_bytes() == before
    names = file.open_file(mine / "small.gtp").entries
    assert not [name for name in names if name.startswith("weight.")]
    x = gt.asarray(rng.standard_normal((3, 8, 6, 6)).astype(np.float32), device="host")
    wanted = program(x).numpy()
    for verify in (False, True):
        with gt.load_program(mine / "small.gtp", device="host", verify=verify) as found:
            np.testing.assert_array_equal(found(x).numpy(), wanted)
            assert found.report() == program.report()
    shutil.move(mine / "mine.safetensors", mine / "moved")
    with gt.load_program(mine / "small.gtp", device="host", weights=mine / "moved") as found:
        found.save(mine / "again.gtp", weights="moved", prepared=False)
        found.save(mine / "whole.gtp")
    for name in ("again.gtp", "whole.gtp"):
        with gt.load_program(mine / name, device="host") as found:
            np.testing.assert_array_equal(found(x).numpy(), wanted)


def test_weights_beside_those_of_the_file_are_in_the_program(mine, rng):
    mapped = gt.map_safetensors(mine / "mine.safetensors")
    weights = {**mapped, "b": gt.asarray(rng.standard_normal(40).astype(np.float32))}
    spec = gt.spec((2, 8, 6, 6), gt.float32)
    program = gt.compile(network, spec, weights=weights, target="host")
    program.save(mine / "p.gtp", weights="mine.safetensors", prepared=False)
    assert "weight.b" in file.open_file(mine / "p.gtp").entries
    x = gt.ones((2, 8, 6, 6), device="host")
    with gt.load_program(mine / "p.gtp", device="host") as found:
        np.testing.assert_array_equal(found(x).numpy(), program(x).numpy())


def test_other_elements_are_refused(mine, rng):
    compiled(mine).save(mine / "p.gtp", weights="mine.safetensors", prepared=False)
    gt.save_safetensors(arrays(rng), mine / "mine.safetensors")
    with pytest.raises(ProgramFileError, match="other elements; expected those that the program"):
        gt.load_program(mine / "p.gtp", device="host")


def test_what_cannot_be_prepared_later_is_refused(mine, rng):
    program = compiled(mine)
    with pytest.raises(ValueError, match="weights: got None; expected the file that weights"):
        program.save(mine / "p.gtp", prepared=False)
    with pytest.raises(ValueError, match="the file that weights of the program are mapped from"):
        program.save(mine / "p.gtp", weights="other.safetensors", prepared=False)
    x = np.ones((2, 8, 6, 6), np.float32)
    calibrated = compiled(mine, quantize=RULES, calibrate={"network": (x,)})
    own = gt.compile(
        lambda x, *, weights: x + weights, gt.spec(3), weights=np.ones(3), target="host"
    )
    for other in (calibrated, own):
        with pytest.raises(
            ValueError, match="prepared=False: got a program without weights of a file"
        ):
            other.save(mine / "p.gtp", weights="mine.safetensors", prepared=False)
    assert not (mine / "p.gtp").exists()


@pytest.mark.parametrize(
    "change",
    [
        None, {}, {"rounding": "twice"}, {"rounding": "each"}, {"is_ahead": 1}, {"functions": {}},
        {"weights": {}}, {"quantize": {"m": 3}}, {"quantize": {"m": "int3"}},
        {"quantize": {"nothing": "int8"}},
    ],
)  # fmt: skip
def test_other_facts_are_one_error(mine, change):
    compiled(mine).save(mine / "p.gtp", weights="mine.safetensors", prepared=False)
    raw = (mine / "p.gtp").read_bytes()
    plain, _metadata = take_apart(raw)
    plain["prepare"] = change and {**plain["prepare"], **change}  # an empty change: no keys
    plain["prepare"] = [] if change is None else plain["prepare"]
    (mine / "p.gtp").write_bytes(put_together(raw, plain))
    with pytest.raises(ProgramFileError):
        gt.load_program(mine / "p.gtp", device="host")
