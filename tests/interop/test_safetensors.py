"""Tensors survive a safetensors file, ours and the reference writer's; broken files are refused."""

import json
import os
import struct

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays import safetensors_file
from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.file_mapping import SafetensorsFileError, mapping_of
from gputensor._arrays.safetensors_file import Part, write_file
from tests.support.tensor_arrays import check_same, random_array

safetensors = pytest.importorskip("safetensors", reason="needs the safetensors package")


def test_every_dtype_survives(tmp_path, rng):
    arrays = {
        row.name: random_array(rng, (3, 5), row.numpy) for row in DTYPES if row.name != "complex128"
    }
    arrays["empty"] = np.zeros((0, 4), np.float32)
    tensors = {name: gt.asarray(a, device="host") for name, a in arrays.items()}
    path = tmp_path / "model.safetensors"
    gt.save_safetensors(tensors, path, metadata={"made": "by a test"})
    loaded = gt.load_safetensors(path, device="host")
    assert loaded.keys() == arrays.keys()
    for name, tensor in loaded.items():
        check_same(tensor, arrays[name], name=name)


def test_file_of_the_reference_writer_is_read(tmp_path, rng):
    from safetensors.numpy import load_file, save_file

    array = random_array(rng, (4, 4), "float32")
    save_file({"w": array}, tmp_path / "a.safetensors")
    loaded = gt.load_safetensors(tmp_path / "a.safetensors", device="host")
    check_same(loaded["w"], array)
    gt.save_safetensors({"w": loaded["w"].T}, tmp_path / "b.safetensors")
    np.testing.assert_array_equal(load_file(tmp_path / "b.safetensors")["w"], array.T)


def test_values_other_than_tensors_are_refused(tmp_path):
    with pytest.raises(TypeError, match="'w': got ndarray; expected a Tensor"):
        gt.save_safetensors({"w": np.zeros(2)}, tmp_path / "c.safetensors")


@pytest.mark.parametrize(
    ("tensors", "metadata", "fault"),
    [
        ({"__metadata__": 1}, None, (ValueError, "name: got '__metadata__'; expected a str other")),
        ({5: 1}, None, (TypeError, "name: got int; expected a str other")),
        ({"w": 1}, {"epoch": 1}, (TypeError, "metadata: 'epoch': got int; expected a str")),
        ({"w": 1}, {1: "a"}, (TypeError, "metadata: 1: got int; expected a str")),
        ({"w": 1}, "text", (TypeError, "metadata: got str; expected a dict of str to str")),
    ],
)
def test_names_and_metadata_that_no_reader_takes_leave_the_file_as_it_was(
    tmp_path, tensors, metadata, fault
):
    path = tmp_path / "d.safetensors"
    gt.save_safetensors({"w": gt.ones(2)}, path)
    tensors = {name: gt.full(2, float(value)) for name, value in tensors.items()}
    with pytest.raises(fault[0], match=fault[1]):
        gt.save_safetensors(tensors, path, metadata=metadata)
    assert gt.load_safetensors(path)["w"].tolist() == [1, 1]


def test_reference_reader_reads_what_is_written(tmp_path, rng):
    from safetensors.numpy import load_file

    arrays = {f"w.{n}": random_array(rng, (n, 3), "float32") for n in range(4)}
    arrays["flags"] = rng.integers(0, 2, 5).astype(bool)
    tensors = {name: gt.asarray(a, device="host") for name, a in arrays.items()}
    gt.save_safetensors(tensors, tmp_path / "a.safetensors", metadata={"by": "a test"})
    found = load_file(tmp_path / "a.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    with safetensors.safe_open(tmp_path / "a.safetensors", "numpy") as file:
        assert file.metadata() == {"by": "a test"}


def test_reference_reader_reads_aligned_entries(tmp_path, rng):
    from safetensors.numpy import load_file

    path = tmp_path / "aligned.safetensors"
    arrays = [rng.integers(0, 256, n, dtype=np.uint8) for n in rng.integers(0, 2000, 20)]
    parts = [Part(f"e{i}", "U8", a.shape, a.nbytes, lambda a=a: [a]) for i, a in enumerate(arrays)]
    write_file(path, parts, {}, alignment=256)
    found, file = load_file(path), safetensors_file.open_file(path)
    assert list(file.entries) == [part.name for part in parts]  # no padding
    assert min(entry.start for entry in file.entries.values()) % 4096 == 0
    for index, array in enumerate(arrays):
        assert file.entries[f"e{index}"].start % 256 == 0
        np.testing.assert_array_equal(found[f"e{index}"], array)


def test_mapped_tree_has_lists_and_dicts_by_the_names(tmp_path):
    names = ["layers.0.q", "layers.0.k", "layers.1.q", "head", "sparse.5.w", "sparse.6.w"]
    tensors = {name: gt.full((2, 2), float(i), device="host") for i, name in enumerate(names)}
    gt.save_safetensors(tensors, tmp_path / "a.safetensors")
    tree = gt.map_safetensors(tmp_path / "a.safetensors")
    assert [sorted(layer) for layer in tree["layers"]] == [["k", "q"], ["q"]]
    assert sorted(tree["sparse"]) == ["5", "6"]
    leaf = tree["layers"][1]["q"]
    assert leaf.dtype == np.float32 and leaf.shape == (2, 2) and not leaf.flags.writeable
    assert mapping_of(leaf[1:]).path == str(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(leaf, 2.0)


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b.c", "a.b"), (".".join("a" * 70),)])
def test_names_that_make_no_tree_are_refused(tmp_path, names):
    gt.save_safetensors({name: gt.ones(1, device="host") for name in names}, tmp_path / "a")
    with pytest.raises(SafetensorsFileError, match="got the name '"):
        gt.map_safetensors(tmp_path / "a")
    assert gt.load_safetensors(tmp_path / "a", device="host").keys() == set(names)


def test_mapping_reads_no_data(tmp_path):
    """A sparse file of 1 TiB is mapped without reading its data."""
    nbytes = 1 << 40
    header = json.dumps({"w": {"dtype": "U8", "shape": [nbytes], "data_offsets": [0, nbytes]}})
    path = tmp_path / "large.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode())
    os.truncate(path, 8 + len(header) + nbytes)
    leaf = gt.map_safetensors(path)["w"]
    assert leaf.shape == (nbytes,) and leaf[-1] == 0


def test_file_that_became_shorter_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    gt.save_safetensors({"w": gt.ones(5000, device="host")}, path)
    file = safetensors_file.open_file(path)
    os.truncate(path, 4096)
    with pytest.raises(SafetensorsFileError, match="got 4096 bytes; expected the "):
        file.data("w")


def test_arrays_of_a_file_that_became_shorter_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    gt.save_safetensors({"w": gt.ones(5000, device="host")}, path)
    leaf = gt.map_safetensors(path)["w"]
    os.truncate(path, 4096)
    for array in (leaf, leaf.reshape(50, 100)[:, ::2]):
        with pytest.raises(SafetensorsFileError, match="got 4096 bytes; expected the "):
            gt.asarray(array, device="host")


def whole(data_nbytes, **entries):
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + bytes(data_nbytes)


def entry(dtype="U8", shape=(4,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def raw(header):
    return struct.pack("<Q", len(header)) + header


BROKEN = {
    "empty": (b"", "got 0 bytes; expected at least 10"),
    "huge header": (struct.pack("<Q", 2**63) + b"{}", "got a header of 9223372036854775808 bytes"),
    "cut header": (struct.pack("<Q", 100) + b"{}", "got a header of 100 bytes; expected 2 to 2"),
    "no object": (raw(b"[]"), "not a JSON object"),
    "no JSON": (raw(b"{]"), "header: "),
    "not UTF-8": (raw(b'{"\xff": 1}'), "byte 2 is not UTF-8"),
    "name twice": (raw(b'{"a": 1, "a": 2}'), "'a' comes twice"),
    "NaN": (raw(b'{"a": NaN}'), "got NaN"),
    "infinite": (raw(b'{"a": 1e999}'), "got the number '1e999'"),
    "large number": (raw(b'{"a": ' + b"1" * 5000 + b"}"), "an integer of 5000 digits"),
    "surrogate": (raw(b'{"\\ud800": 1}'), "half of a surrogate pair"),
    "nested": (raw(b'{"a":' * 65 + b"1" + b"}" * 65), "nested deeper than 64"),
    "nested, unbalanced": (raw(b'{"a":' * 10**5), "nested deeper than 64"),
    "metadata": (whole(0, __metadata__={"a": 1}), "__metadata__ is not an object of strings"),
    "no entry": (whole(0, a=[]), "entry 'a': got "),
    "dtype": (whole(4, a=entry(8)), "dtype: got 8"),
    "shape": (whole(4, a=entry(shape=[-4])), "shape: got [-4]"),
    "rank": (whole(1, a=entry(shape=[1] * 17, offsets=[0, 1])), "16 extents, each 0 or more"),
    "bool extent": (whole(1, a=entry(shape=[True], offsets=[0, 1])), "shape: got [True]"),
    "offsets": (whole(4, a=entry(offsets=[4, 0])), "data_offsets: got [4, 0]"),
    "offset too few": (whole(4, a=entry(offsets=[4])), "two data_offsets"),
    "size": (whole(4, a=entry("F32")), "got 4 bytes; expected 16 for F32"),
    "overlap": (whole(6, a=entry(), b=entry(offsets=[2, 6])), "entry 'b' overlaps"),
    "hole": (whole(9, a=entry(), b=entry(offsets=[5, 9])), "entry 'b' leaves a hole"),
    "outside": (whole(3, a=entry()), "expected the "),
    "bytes left over": (whole(5, a=entry()), "expected the "),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_file_raises_one_line_with_the_reason(tmp_path, fault):
    content, reason = BROKEN[fault]
    path = tmp_path / "broken.safetensors"
    path.write_bytes(content)
    for read in (gt.load_safetensors, gt.map_safetensors):
        with pytest.raises(SafetensorsFileError) as caught:
            read(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: ") and "\n" not in message and len(message) < 500
        assert reason in message


def test_unknown_element_type_is_named(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(whole(4, a=entry("F4", [8])))
    with pytest.raises(ValueError, match="'F4'; expected one of BOOL"):
        gt.load_safetensors(path)


def test_bool_that_is_neither_0_nor_1_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(whole(0, a=entry("BOOL")) + b"\0\1\2\1")
    with pytest.raises(SafetensorsFileError, match="neither 0 nor 1"):
        gt.load_safetensors(path)


def test_special_files_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, reason in [("pipe", "regular file"), ("none", "No such file"), ("", "regular file")]:
        with pytest.raises(SafetensorsFileError, match=reason):
            gt.load_safetensors(tmp_path / path)


def test_file_is_unchanged_when_writing_fails(tmp_path):
    path = tmp_path / "a.safetensors"
    gt.save_safetensors({"w": gt.ones(3, device="host")}, path)
    before = path.read_bytes()

    def broken():
        raise RuntimeError("no bytes")

    with pytest.raises(RuntimeError, match="no bytes"):
        write_file(path, [Part("w", "U8", (3,), 3, broken)], {})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.safetensors"]
    with pytest.raises(ValueError, match="got dtype complex128"):
        gt.save_safetensors({"w": gt.ones(3, dtype="complex128", device="host")}, path)
