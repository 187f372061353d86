"""The `.gtp` file: programs come back equal, other tools read it, and faults give one line."""

import copy
import hashlib
import json
import os
import random
import re
import struct

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import DTYPES, dtype_name
from gputensor._arrays.file_mapping import mapping_of
from gputensor.errors import ProgramFileError
from gputensor.programs import file
from gputensor.programs.function import Function, ProgramData, Value, Weight
from tests.support.programs.random_functions import random_function
from tests.support.tensor_arrays import random_array

NUMPY = {row.name: row.numpy for row in DTYPES}


def random_program(seed):
    """A ProgramData of one random function, with elements."""
    function, arrays, states = random_function(random.Random(seed))
    weights = {
        name: Weight(name, dtype_name(array.dtype), array.shape, array)
        for name, array in arrays.items()
    }
    states = {name: (dtype_name(array.dtype), array.shape) for name, array in states.items()}
    return ProgramData({"f": function}, weights, states)


def weights_program(**arrays):
    """A program that reads weights of these names, as `a__b` for a.b."""
    arrays = {name.replace("__", "."): array for name, array in arrays.items()}
    function = Function("f")
    function.values = [
        Value("constant" if name.startswith("constant.") else "weight", array.nbytes, name)
        for name, array in arrays.items()
    ]
    weights = {
        name: Weight(name, dtype_name(array.dtype), tuple(array.shape), array)
        for name, array in arrays.items()
    }
    return ProgramData({"f": function}, weights, {})


def assert_weights(found, expected):
    assert found.keys() == expected.keys()
    for name, weight in found.items():
        assert (weight.dtype, weight.shape) == (expected[name].dtype, expected[name].shape)
        assert weight.source.tobytes() == np.asarray(expected[name].source).tobytes()
        assert weight.source.shape == weight.shape
        assert weight.sha256 == hashlib.sha256(weight.source.tobytes()).hexdigest()


@pytest.mark.parametrize("apart", [None, "w.safetensors"])
def test_random_programs_come_back_equal(tmp_path, seed, apart):
    for number in range(40):
        data = random_program(seed + number)
        file.write(data, tmp_path / "p.gtp", weights=apart)
        found = file.read(tmp_path / "p.gtp")
        assert_weights(found.weights, data.weights)
        for name, weight in found.weights.items():
            weight.source = data.weights[name].source
        assert found == data


def test_every_dtype_comes_back(tmp_path, rng):
    arrays = {name: random_array(rng, (3, 2), dtype) for name, dtype in NUMPY.items()}
    data = weights_program(**arrays, scalar=np.float32(3), empty=np.zeros((0, 3), np.int8))
    for apart in (None, "w.safetensors"):
        file.write(data, tmp_path / "p.gtp", weights=apart)
        assert_weights(file.read(tmp_path / "p.gtp").weights, data.weights)


def test_tensors_are_written_too(tmp_path, rng):
    array = random_array(rng, (3, 4), "bfloat16")
    data = weights_program(w=array)
    data.weights["w"].source = gt.asarray(array, device="host").T.T
    file.write(data, tmp_path / "p.gtp")
    assert file.read(tmp_path / "p.gtp").weights["w"].source.tobytes() == array.tobytes()


def test_the_reference_package_reads_it(tmp_path, rng):
    safetensors = pytest.importorskip("safetensors", reason="needs the safetensors package")
    data = weights_program(
        layers__0__q=random_array(rng, (5, 7), "float32"),
        constant__0=random_array(rng, (3,), "int64"),
    )
    file.write(data, tmp_path / "p.gtp")
    with safetensors.safe_open(tmp_path / "p.gtp", "numpy") as reference:
        metadata = reference.metadata()
        program = reference.get_tensor("program").tobytes()
        for entry, name in (("weight.layers.0.q", "layers.0.q"), ("constant.0", "constant.0")):
            np.testing.assert_array_equal(reference.get_tensor(entry), data.weights[name].source)
    assert (metadata["format"], metadata["version"]) == ("gtp", "1.0")
    assert metadata["program_sha256"] == hashlib.sha256(program).hexdigest()
    assert list(json.loads(program)["functions"]) == ["f"]


def test_data_is_aligned(tmp_path, rng):
    arrays = {f"w{n}": random_array(rng, (n,), "int8") for n in rng.integers(1, 3000, 9)}
    file.write(weights_program(**arrays), tmp_path / "p.gtp")
    for weight in file.read(tmp_path / "p.gtp").weights.values():
        assert weight.source.__array_interface__["data"][0] % 256 == 0


def test_reading_copies_no_weights(tmp_path):
    """A program with 1 TiB of weights, mostly a hole in its file, is read immediately."""
    data = weights_program(w=np.zeros(256, np.uint8))
    file.write(data, tmp_path / "p.gtp", weights="w.safetensors")
    raw = (tmp_path / "p.gtp").read_bytes()
    nbytes = 1 << 40
    header = json.dumps({"w": {"dtype": "U8", "shape": [nbytes], "data_offsets": [0, nbytes]}})
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header.encode())
    os.truncate(tmp_path / "w.safetensors", 8 + len(header) + nbytes)
    plain, _ = take_apart(raw)
    plain["weights"]["w"]["shape"] = [nbytes]
    plain["functions"]["f"]["values"][0]["nbytes"] = nbytes
    (tmp_path / "p.gtp").write_bytes(put_together(raw, plain))
    assert file.read(tmp_path / "p.gtp").weights["w"].source[-1] == 0


# ---- weights apart


def test_separate_weights_keep_their_names_in_a_file_of_their_own(tmp_path, rng):
    data = weights_program(
        a__q=random_array(rng, (4, 4), "float32"), constant__0=np.zeros(3, np.int8)
    )
    (tmp_path / "deep").mkdir()
    file.write(data, tmp_path / "p.gtp", weights="deep/w.safetensors")
    assert list(gt.load_safetensors(tmp_path / "deep/w.safetensors", device="host")) == ["a.q"]
    found = file.read(tmp_path / "p.gtp")
    assert_weights(found.weights, data.weights)
    assert mapping_of(found.weights["a.q"].source).path.endswith("deep/w.safetensors")
    assert mapping_of(found.weights["constant.0"].source).path.endswith("p.gtp")


def test_weights_of_a_file_of_the_user_stay_there(tmp_path, rng):
    path = tmp_path / "model.safetensors"
    arrays = {
        name: random_array(rng, (3, 5), "float32") for name in ("model.q", "model.k", "other")
    }
    gt.save_safetensors({n: gt.asarray(a, device="host") for n, a in arrays.items()}, path)
    before = path.read_bytes()
    tree = gt.map_safetensors(path)
    own = random_array(rng, (2,), "float64")
    data = weights_program(q=tree["model"]["q"], k=tree["model"]["k"], own=own)
    file.write(data, tmp_path / "p.gtp", weights="model.safetensors")
    assert path.read_bytes() == before
    assert b"own" in (tmp_path / "p.gtp").read_bytes()[:4096]
    found = file.read(tmp_path / "p.gtp")
    assert_weights(found.weights, data.weights)
    assert mapping_of(found.weights["k"].source).path == str(path)
    # A part of an entry is written again.
    data.weights["k"].source = tree["model"]["k"][:1]
    data.weights["k"].shape, data.weights["k"].sha256 = (1, 5), ""
    data.functions["f"].values[1].nbytes = 20
    file.write(data, tmp_path / "p.gtp", weights="model.safetensors")
    assert path.read_bytes() == before
    assert_weights(file.read(tmp_path / "p.gtp").weights, data.weights)


@pytest.mark.parametrize("apart", [None, "w.safetensors"])
def test_program_may_be_saved_over_itself(tmp_path, rng, apart):
    data = weights_program(w=random_array(rng, (400, 40), "float32"))
    file.write(data, tmp_path / "p.gtp", weights=apart)
    mapped = file.read(tmp_path / "p.gtp")
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    file.write(mapped, tmp_path / "p.gtp", weights=apart)
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
    assert_weights(mapped.weights, data.weights)
    assert_weights(file.read(tmp_path / "p.gtp").weights, data.weights)


def test_weights_can_be_read_from_another_place(tmp_path, rng):
    data = weights_program(w=random_array(rng, (4, 4), "float32"))
    file.write(data, tmp_path / "p.gtp", weights="w.safetensors")
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "w.safetensors").rename(tmp_path / "elsewhere" / "v.safetensors")
    with pytest.raises(ProgramFileError, match="w.safetensors: cannot be opened: No such file"):
        file.read(tmp_path / "p.gtp")
    assert_weights(file.read(tmp_path / "p.gtp", weights=moved).weights, data.weights)
    file.write(data, tmp_path / "p.gtp")
    with pytest.raises(ValueError, match="weights: got '.*'; expected None"):
        file.read(tmp_path / "p.gtp", weights=str(moved))


@pytest.mark.parametrize(
    "path", ["/tmp/w", "../w", "a/../../w", "a/../w", "", ".", "p.gtp", "link/w"]
)
def test_weights_outside_of_the_folder_are_refused_when_writing(tmp_path, path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    with pytest.raises(ValueError, match="^weights: got '.*'; expected a relative path inside"):
        file.write(weights_program(w=np.zeros(3)), tmp_path / "in" / "p.gtp", weights=path)
    assert os.listdir(tmp_path / "in") == ["link"] and not os.listdir(tmp_path / "out")


@pytest.mark.parametrize(
    "path", ["{out}/w", "../out/w", "link/w", "w-link", "a\0b", "./../out/w", "", 999 * "w"]
)
def test_weights_outside_of_the_folder_are_refused_when_reading(tmp_path, path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    file.write(weights_program(w=np.zeros(3)), outside / "p.gtp", weights="w")
    (inside / "link").symlink_to(outside)
    (inside / "w-link").symlink_to(outside / "w")
    raw = (outside / "p.gtp").read_bytes()
    plain, _ = take_apart(raw)
    plain["apart"] = {path.format(out=outside): plain["apart"]["w"]}
    (inside / "p.gtp").write_bytes(put_together(raw, plain))
    expected = r"apart: got .{,99}; expected a relative path inside the folder"
    with pytest.raises(ProgramFileError, match=expected):
        file.read(inside / "p.gtp")


# ---- faults


def take_apart(raw):
    """(JSON of the program, metadata) of a file's bytes."""
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + length])
    first, last = header["program"]["data_offsets"]
    return json.loads(raw[8 + length + first : 8 + length + last]), header["__metadata__"]


def put_together(raw, plain=None, metadata=None):
    """The file with another program or other metadata, and the right hash."""
    length = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    if plain is not None:
        text = plain if isinstance(plain, bytes) else json.dumps(plain).encode()
        first, last = header["program"]["data_offsets"]
        grown = len(text) - (last - first)
        for name, entry in header.items():
            if name != "__metadata__" and entry["data_offsets"][0] >= last:
                entry["data_offsets"] = [place + grown for place in entry["data_offsets"]]
        header["program"].update(shape=[len(text)], data_offsets=[first, first + len(text)])
        header["__metadata__"]["program_sha256"] = hashlib.sha256(text).hexdigest()
        data = data[:first] + text + data[last:]
    header["__metadata__"].update(metadata or {})
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.fixture
def whole(tmp_path, rng):
    data = weights_program(w=random_array(rng, (4, 4), "float32"), constant__0=np.zeros(3, np.int8))
    file.write(data, tmp_path / "p.gtp")
    return (tmp_path / "p.gtp").read_bytes()


def assert_refused(tmp_path, raw, wanted):
    path = tmp_path / "strange.gtp"
    path.write_bytes(raw)
    with pytest.raises(ProgramFileError) as caught:
        file.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message and len(message) < 600
    assert re.search(wanted, message), message


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({"format": "pt"}, "format: got 'pt'; expected 'gtp'"),
        ({"version": "2.0"}, r"version: got '2.0'; expected 1\.N"),
        ({"version": "1"}, "version: got '1'"),
        ({"version": "1.99999"}, "version: got"),
        ({"program_sha256": "0" * 64}, "program: got .*SHA-256"),
        ({"program_nbytes": "0"}, "program_nbytes: got '0'; expected 1 to"),
        ({"program_nbytes": "9" * 9}, "program_nbytes: got '999999999'; expected 1 to"),
        ({"program_nbytes": "100"}, "program: got other bytes; expected a zlib stream of 100"),
    ],
)
def test_metadata_that_is_not_ours_is_refused(tmp_path, whole, metadata, wanted):
    assert_refused(tmp_path, put_together(whole, metadata=metadata), wanted)


def test_file_without_a_program_is_refused(tmp_path):
    gt.save_safetensors({"w": gt.ones(3, device="host")}, tmp_path / "w")
    assert_refused(tmp_path, (tmp_path / "w").read_bytes(), "format: got None; expected 'gtp'")
    gt.save_safetensors(
        {"w": gt.ones(3, device="host")},
        tmp_path / "w",
        metadata={"format": "gtp", "version": "1.0"},
    )
    assert_refused(tmp_path, (tmp_path / "w").read_bytes(), "program: got None; expected U8")
    with pytest.raises(ProgramFileError, match="cannot be opened: No such file"):
        file.read(tmp_path / "none.gtp")


def changed(plain, *path, value):
    at = plain = copy.deepcopy(plain)
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return plain


def nested(levels):
    return b'{"functions": ' + b"[" * levels + b"]" * levels + b"}"


@pytest.mark.slow
def test_program_with_a_fault_is_refused(tmp_path, whole):
    plain, _ = take_apart(whole)
    for path, value, wanted in [
        (("functions", "f", "values", 0, "nbytes"), 2**63, r"functions.f.values\[0\].nbytes: got"),
        (("functions", "f", "values", 0, "nbytes"), 63, "64, as its array"),
        (("functions", "f", "values", 0, "name"), "v", "a weight of the program"),
        (("weights", "w", "shape"), [2, 8], "weights.w: got .*expected F32"),
        (("weights", "w", "dtype"), "int32", "weights.w: got .*expected I32"),
        (("weights", "w", "sha256"), "", "weights.w.sha256: got ''"),
        (("weights", "w", "sha256"), "x" * 64, "weights.w.sha256: got 'x"),
        (("apart",), {"w.safetensors": {"v": "w"}}, "apart: got 'v'; expected the name of"),
        (("apart",), {"a": {}, "b": {}}, "apart: got .*expected one file"),
        (("apart",), {"a": {"w": 3}}, "apart: got .*expected one file"),
        (("apart",), [], "apart: got .*expected one file"),
        (("functions",), [], "functions: got"),
    ]:  # fmt: skip
        assert_refused(tmp_path, put_together(whole, changed(plain, *path, value=value)), wanted)
    for text, wanted in [
        (b"", "program: Expecting value"),
        (b"[]", "program"),
        (b"{", "program: "),
        (b'{"a":1,"a":2}', "'a' comes twice"),
        (b"\xff", "not UTF-8"),
        (b'{"a":NaN}', "got NaN"),
        (nested(128), "nested deeper than 128"),
        (nested(10**6), "nested deeper than 128"),
        (b"[" * 10**6, "nested deeper than 128"),
        (b"[" + b"0," * 2**23 + b"0]", "more than 8388608 values"),
    ]:
        assert_refused(tmp_path, put_together(whole, text), wanted)


def test_missing_weight_is_named(tmp_path, whole):
    raw = whole.replace(b'"weight.w"', b'"weight.v"')
    assert_refused(tmp_path, raw, "weights.w: got .*no entry 'weight.w'")


def test_newer_minor_version_is_read(tmp_path, whole):
    """Fields, entries and metadata of a later minor version are ignored."""
    plain, _ = take_apart(whole)
    plain["novelty"] = {"a": [1, 2]}
    plain["functions"]["f"]["novelty"] = 1
    plain["weights"]["w"]["novelty"] = None
    raw = put_together(whole, plain, {"version": "1.7", "novelty": "x"})
    length = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    header["kernel.0.sm_90"] = {
        "dtype": "F4", "shape": [8], "data_offsets": [len(data), len(data) + 4]
    }  # fmt: skip
    text = json.dumps(header).encode()
    (tmp_path / "new.gtp").write_bytes(struct.pack("<Q", len(text)) + text + data + bytes(4))
    old, new = file.read(tmp_path / "p.gtp"), file.read(tmp_path / "new.gtp")
    assert old.functions == new.functions
    assert_weights(new.weights, old.weights)


def test_file_stays_as_it_was_when_writing_fails(tmp_path, whole):
    data = weights_program(w=np.zeros(3))
    data.metadata["x"] = "\ud800"
    for broken in (data, changed_depth(weights_program(w=np.zeros(3)))):
        with pytest.raises(ValueError):
            file.write(broken, tmp_path / "p.gtp")
        assert (tmp_path / "p.gtp").read_bytes() == whole
        assert os.listdir(tmp_path) == ["p.gtp"]


def changed_depth(data):
    """The program with metadata that every reader refuses."""
    deep = ()
    for _ in range(140):
        deep = (deep,)
    data.metadata["deep"] = deep
    return data
