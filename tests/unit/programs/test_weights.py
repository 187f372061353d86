"""Weights: loaded once, shared by content, verified, freed with their last program."""

import gc
import hashlib
import os
import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import OutOfMemoryError, ProgramFileError
from gputensor.programs import file, weights
from gputensor.programs.dims import Dim, mul
from gputensor.programs.function import Function, ProgramData, Value, Weight
from tests.support.tensor_arrays import random_array
from tests.unit.programs.test_file import weights_program


@pytest.fixture(params=["immediate", "deferred"])
def place(request, seed):
    """A new host device, as a Device."""
    number = registry.open_host(16 << 20, seed=seed if request.param == "deferred" else None)
    yield gt.Device(number)
    gc.collect()
    registry.close_host(number)


def mapped(tmp_path, name="p.gtp", **arrays):
    file.write(weights_program(**arrays), tmp_path / name)
    return file.read(tmp_path / name).weights


def test_loaded_weights_have_the_elements(place, tmp_path, rng):
    arrays = {f"w{n}": random_array(rng, (n, 1000), "float32") for n in range(4)}
    arrays["half"] = random_array(rng, (3,), "bfloat16")
    arrays["z"] = random_array(rng, (2, 2), "complex128")
    for source in (mapped(tmp_path, **arrays), weights_program(**arrays).weights):
        found = weights.load(source, place)
        assert found.keys() == arrays.keys()
        for name, tensor in found.items():
            assert tensor.device == place
            assert tensor.numpy().tobytes() == arrays[name].tobytes()


def test_equal_content_is_one_tensor(place, tmp_path, rng):
    array = random_array(rng, (100, 100), "float32")
    first = weights.load(mapped(tmp_path, "a.gtp", w=array, same=array.copy()), place)
    second = weights.load(mapped(tmp_path, "b.gtp", v=array), place)
    assert first["w"] is first["same"] is second["v"]
    third = weights.load(mapped(tmp_path, "c.gtp", v=array.view(np.int32)), place)
    assert third["v"] is not first["w"] and third["v"].dtype == np.int32


def test_last_program_frees_the_weights(place, tmp_path, rng):
    array = random_array(rng, (1000, 1000), "float32")
    before = memory.memory_allocated(place)
    first = weights.load(mapped(tmp_path, "a.gtp", w=array), place)
    second = weights.load(mapped(tmp_path, "b.gtp", w=array), place)
    assert memory.memory_allocated(place) - before == memory_of(array)
    del first
    assert memory.memory_allocated(place) - before == memory_of(array)
    del second
    assert memory.memory_allocated(place) == before


def memory_of(array):
    return -(-array.nbytes // 512) * 512


def test_shared_weights_are_not_read_again(place, tmp_path, rng, monkeypatch):
    array = random_array(rng, (10, 10), "float32")
    source = mapped(tmp_path, "a.gtp", w=array)
    kept = weights.load(source, place)
    monkeypatch.setattr(weights, "content_hash", None)
    monkeypatch.setattr(weights, "asarray", None)
    assert weights.load(source, place)["w"] is kept["w"]


def test_tensor_of_the_device_is_taken_as_it_is(place):
    tensor = gt.ones((3, 4), device=place)
    found = weights.load({"w": Weight("w", "float32", (3, 4), tensor)}, place)
    assert found["w"] is tensor
    other = weights.load({"w": Weight("w", "float32", (3, 4), tensor)}, "host")["w"]
    assert other.device == gt.Device("host") and gt.all(other == 1).item()


def test_content_with_a_wrong_hash_is_refused_and_not_shared(place, tmp_path, rng):
    array = random_array(rng, (50, 50), "float32")
    honest = mapped(tmp_path, "a.gtp", w=array)
    raw = bytearray((tmp_path / "a.gtp").read_bytes())
    raw[raw.index(array.tobytes()) + rng.integers(array.nbytes)] ^= 1
    (tmp_path / "b.gtp").write_bytes(raw)
    before = memory.memory_allocated(place)
    with pytest.raises(ProgramFileError, match="weights.w: got .*SHA-256 .*; expected [0-9a-f]"):
        weights.load(file.read(tmp_path / "b.gtp").weights, place, verify=True)
    assert memory.memory_allocated(place) == before
    wrong = weights.load(file.read(tmp_path / "b.gtp").weights, place)
    right = weights.load(honest, place)
    assert right["w"].numpy().tobytes() == array.tobytes() != wrong["w"].numpy().tobytes()
    again = weights.load(mapped(tmp_path, "c.gtp", w=array), place)
    assert again["w"] is right["w"]
    # The computed hash does not replace the one that the damaged file claims.
    assert weights.load(file.read(tmp_path / "b.gtp").weights, place)["w"] is again["w"]


def test_weights_of_one_file_are_shared_without_hashing(place, tmp_path, rng, monkeypatch):
    arrays = {f"w{n}": random_array(rng, (50, n), "float32") for n in range(1, 4)}
    source = mapped(tmp_path, "a.gtp", **arrays)
    monkeypatch.setattr(weights, "content_hash", None)
    monkeypatch.setattr(weights, "hashlib", None)
    first = weights.load(source, place)
    second = weights.load(file.read(tmp_path / "a.gtp").weights, place)
    assert all(second[name] is first[name] for name in arrays)


def test_a_rewritten_file_has_other_weights(place, tmp_path, rng):
    arrays = [random_array(rng, (100,), "float32") for _ in range(2)]
    found = [weights.load(mapped(tmp_path, "a.gtp", w=array), place)["w"] for array in arrays]
    for tensor, array in zip(found, arrays, strict=True):
        assert tensor.numpy().tobytes() == array.tobytes()


def test_content_from_memory_is_not_a_claim(place, tmp_path, rng):
    """A file's claimed hash is checked on the device before weights from memory share it."""
    array = random_array(rng, (40, 40), "float32")
    file.write(weights_program(w=array), tmp_path / "a.gtp")
    raw = bytearray((tmp_path / "a.gtp").read_bytes())
    raw[raw.index(array.tobytes())] ^= 1
    (tmp_path / "a.gtp").write_bytes(raw)
    wrong = weights.load(file.read(tmp_path / "a.gtp").weights, place)["w"]
    right = weights.load(weights_program(w=array).weights, place)["w"]
    assert right is not wrong and right.numpy().tobytes() == array.tobytes()


def test_first_values_of_states_are_verified_too(tmp_path, rng):
    first = random_array(rng, (16,), "float32")
    program = gt.compile(
        lambda *, state: gt.copy(state["k"]), state={"k": gt.asarray(first, device="host")},
        target="host",
    )  # fmt: skip
    program.save(tmp_path / "a.gtp")
    gt.load_program(tmp_path / "a.gtp", "host", verify=True).close()
    raw = bytearray((tmp_path / "a.gtp").read_bytes())
    raw[raw.index(first.tobytes())] ^= 1
    (tmp_path / "a.gtp").write_bytes(raw)
    with pytest.raises(ProgramFileError, match="weights.state.k: got .*SHA-256"):
        gt.load_program(tmp_path / "a.gtp", "host", verify=True)


def test_truncated_file_gives_one_line(place, tmp_path, rng):
    found = mapped(tmp_path, w=random_array(rng, (5000,), "float32"))
    os.truncate(tmp_path / "p.gtp", 8192)
    with pytest.raises(ProgramFileError, match="got 8192 bytes; expected the "):
        weights.load(found, place)


def test_failed_load_leaves_nothing(place, tmp_path, rng):
    found = mapped(
        tmp_path, **{f"w{n}": random_array(rng, (1 << 20,), "float32") for n in range(6)}
    )
    before = memory.memory_allocated(place)
    with pytest.raises(OutOfMemoryError):
        weights.load(found, place)
    assert memory.memory_allocated(place) == before


def test_closing_a_device_drops_its_weights(tmp_path, rng):
    array = random_array(rng, (10,), "float32")
    kept = []
    for _ in range(3):
        number = registry.open_host(16 << 20)
        kept.append(weights.load(mapped(tmp_path, w=array), number))
        assert kept[-1]["w"].numpy().tobytes() == array.tobytes()
        registry.close_host(number)


def test_threads_share_too(place, tmp_path, rng):
    arrays = {f"w{n}": random_array(rng, (2000,), "float32") for n in range(20)}
    found, barrier = [], threading.Barrier(4)

    def load():
        source = mapped(tmp_path, f"{threading.get_ident()}.gtp", **arrays)
        barrier.wait()
        found.append(weights.load(source, place))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for name in arrays:
        assert len({id(tensors[name]) for tensors in found}) == 1


def test_hashes_are_of_the_bytes_in_row_order(rng):
    array = random_array(rng, (30, 40), "float32")
    for source in (array, array.T.copy().T, gt.asarray(array, device="host")):
        found = weights.with_hashes({"w": Weight("w", "float32", (30, 40), source)})
        assert found["w"].sha256 == hashlib.sha256(array.tobytes()).hexdigest()


def test_program_larger_than_the_device_is_refused_before_anything_is_allocated(place):
    function = Function("f", {"n": Dim("n", 1 << 10, 1 << 40)})
    function.values = [Value("temporary", mul(("dim", "n"), 1 << 15))]
    states = {"s": ("float32", (1 << 20,))}
    fits = ProgramData({"f": Function("f")}, {}, states)
    large = ProgramData({"f": function}, {}, {})
    huge = ProgramData({}, {"w": Weight("w", "int8", (1 << 30, 1 << 29))}, states)
    weights.check_memory(fits, place)
    before = registry.counts(place.number)
    for data in (large, huge):
        with pytest.raises(ProgramFileError, match="memory: got [0-9]+ bytes; expected at most"):
            weights.check_memory(data, place)
    after = registry.counts(place.number)
    assert {name: after[name] for name in after if "alloc" in name or "page" in name} == {
        name: before[name] for name in before if "alloc" in name or "page" in name
    }
