"""Tensors in NumPy's files, progress bars on files, and what pickle stores of views."""

import copy
import io
import os
import pickle
import sys
import types
import zipfile

import numpy as np
import pytest

import gputensor as gt
from gputensor.tensor.interop import safetensors
from tests.support.tensor_arrays import check_same, random_array

DTYPES = "bool int8 uint16 int32 uint64 float16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_npy_files_are_numpys(tmp_path, rng, device, dtype):
    array = random_array(rng, (3, 5), dtype)
    path = tmp_path / "x.npy"
    gt.save(path, gt.asarray(array, device=device))
    np.testing.assert_array_equal(np.load(path), array)
    check_same(gt.load(path, device=device), array)
    np.save(path, np.asfortranarray(array))
    check_same(gt.load(str(path), device=device), array)
    opened = io.BytesIO()
    gt.save(opened, gt.asarray(array, device=device))
    opened.seek(0)
    np.testing.assert_array_equal(np.load(opened), array)
    opened.seek(0)
    check_same(gt.load(opened, device=device), array)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3", "float8_e5m2"])
def test_npy_files_hold_bits_of_other_floats_by_name(tmp_path, rng, device, dtype):
    array = random_array(rng, (3, 5), getattr(gt, dtype))
    x = gt.asarray(array, device=device)
    gt.save(tmp_path / "x.npy", x)
    bits = np.load(tmp_path / "x.npy")[dtype]
    assert bits.dtype.kind == "u" and bits.tobytes() == array.tobytes()
    for name, write in (("x.npy", None), ("x.npz", gt.savez), ("x.npz", gt.savez_compressed)):
        if write is not None:
            write(tmp_path / name, x=x)
        found = gt.load(tmp_path / name, device=device)
        found = found["x"] if write else found
        assert found.dtype == array.dtype and found.numpy().tobytes() == array.tobytes()


def test_npz_files_hold_tensors_by_name(tmp_path, rng, device):
    first, second = random_array(rng, (4,), "float32"), random_array(rng, (2, 2), "int64")
    x, y = gt.asarray(first, device=device), gt.asarray(second, device=device)
    for write in (gt.savez, gt.savez_compressed):
        write(tmp_path / "x", x, second=y.T)
        with np.load(tmp_path / "x.npz") as found:
            np.testing.assert_array_equal(found["second"], second.T)
        loaded = gt.load(tmp_path / "x.npz", device=device)
        assert loaded.keys() == {"arr_0", "second"}
        check_same(loaded["arr_0"], first)
        check_same(loaded["second"], second.T)


def test_unusable_files_and_arguments_are_named(tmp_path):
    x = gt.ones(2, device="host")
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "text2.npy", np.array(["a"]))
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    np.save(tmp_path / "cut.npy", np.arange(9.0))
    os.truncate(tmp_path / "cut.npy", 100)
    np.savez(tmp_path / "changed.npz", a=np.arange(999.0))
    bits = bytearray((tmp_path / "changed.npz").read_bytes())
    bits[300] ^= 1
    (tmp_path / "changed.npz").write_bytes(bits)
    for call, error, message in (
        (lambda: gt.load(tmp_path / "text.npy"), ValueError, "objects or other content; expected"),
        (lambda: gt.load(tmp_path / "text2.npy"), TypeError, "load: file: got dtype <U1"),
        (lambda: gt.load(tmp_path / "objects.npy"), ValueError, "load: file: got"),
        (lambda: gt.load(tmp_path / "cut.npy"), ValueError, "load: file: got .*cut.npy: .*; exp"),
        (lambda: gt.load(tmp_path / "changed.npz"), ValueError, "load: file: got .*: Bad CRC-32"),
        (lambda: gt.load(5), TypeError, "load: file: got int; expected a str"),
        (lambda: gt.save(tmp_path / "b", "1"), TypeError, "save: argument: got str"),
        (lambda: gt.savez(tmp_path / "b", x, arr_0=x), ValueError, "names: got"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert not (tmp_path / "b.npy").exists() and not (tmp_path / "b.npz").exists()


def test_big_endian_files_are_read(tmp_path, rng, device):
    array = random_array(rng, (3, 5), "float32")
    np.save(tmp_path / "x.npy", array.astype(">f4"))
    check_same(gt.load(tmp_path / "x.npy", device=device), array)


def npy(header, data=b""):
    """The bytes of a .npy file with any header."""
    head = header.encode("latin1")
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


HEADER = "{{'descr': {}, 'fortran_order': False, 'shape': {}, }}"


@pytest.mark.parametrize(
    "header",
    [
        HEADER.format("'<f4'", "(9223372036854775808,)"),
        HEADER.format("'<f4'", f"({2**62}, {2**62})"),
        HEADER.format("'<f4'", "(-1,)"),
        HEADER.format("'<f4'", "(4611686018427387904, 4)"),
        HEADER.format("'<f4'", "(((("),
        HEADER.format("'|V0'", "(3,)"),
        HEADER.format("[('a', '<f4')]", "(3,)"),
        "\n \n(",
        "[" * 5000,
        "{'descr': '<f4'}",
    ],
)
def test_headers_that_lie_are_refused_in_one_line(tmp_path, header):
    (tmp_path / "x.npy").write_bytes(npy(header, bytes(64)))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("x.npy", npy(header, bytes(64)))
    for name in ("x.npy", "x.npz"):
        with pytest.raises((ValueError, TypeError), match="load: file: got ") as caught:
            gt.load(tmp_path / name, device="host")
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 800


def test_other_files_are_refused_in_one_line(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("x.npy", b"no array")
    with pytest.raises(ValueError, match="x.npz: a member that is not an array; expected"):
        gt.load(tmp_path / "x.npz", device="host")
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(ValueError, match="pipe.npy: not a regular file; expected"):
        gt.load(tmp_path / "pipe.npy", device="host")


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_changed_files_are_refused_or_read(tmp_path, rng, name):
    write = {"x.npy": gt.save, "x.npz": gt.savez_compressed}[name]
    write(tmp_path / name, gt.ones((30, 4), device="host"))
    whole = np.frombuffer((tmp_path / name).read_bytes(), np.uint8)
    for _turn in range(100):
        bits = whole[: rng.integers(1, len(whole) + 1) if rng.random() < 0.3 else None].copy()
        places = rng.integers(0, min(len(bits), 250), rng.integers(1, 5))
        bits[places] = rng.integers(0, 256, len(places))
        (tmp_path / name).write_bytes(bits.tobytes())
        try:
            gt.load(tmp_path / name, device="host")
        except (ValueError, TypeError) as error:
            assert "\n" not in str(error) and len(str(error)) < 800


class Bar:
    """A stand-in for tqdm's bar."""

    made: list = []

    def __init__(self, total, **options):
        self.total, self.seen = total, 0
        Bar.made.append(self)

    def update(self, nbytes):
        self.seen += nbytes

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.is_closed = True


def test_large_files_show_a_bar_where_tqdm_is_installed(tmp_path, rng, monkeypatch):
    module = types.ModuleType("tqdm")
    module.tqdm = Bar
    module.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "tqdm", module)
    monkeypatch.setattr(Bar, "made", [])
    tensors = {"a": gt.ones((4, 4), device="host"), "b": gt.ones(3, "int8", device="host")}
    path = tmp_path / "w.safetensors"
    gt.save_safetensors(tensors, path)
    gt.load_safetensors(path, device="host")
    assert not Bar.made  # a small file
    gt.save_safetensors(tensors, path, progress=True)
    gt.load_safetensors(path, device="host", progress=True)
    assert [bar.seen for bar in Bar.made] == [67, 67] and all(bar.is_closed for bar in Bar.made)
    monkeypatch.setattr(safetensors, "LARGE_NBYTES", 10)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    gt.load_safetensors(path, device="host")
    gt.load_safetensors(path, device="host", progress=False)
    assert len(Bar.made) == 3


def test_bfloat16_and_float8_survive_unchanged(tmp_path, rng, device):
    names = ("bfloat16", "float8_e4m3", "float8_e5m2")
    arrays = {name: random_array(rng, (8, 3), getattr(gt, name)) for name in names}
    gt.save_safetensors(
        {name: gt.asarray(one, device=device) for name, one in arrays.items()}, tmp_path / "x"
    )
    tree = gt.map_safetensors(tmp_path / "x")
    for name, tensor in gt.load_safetensors(tmp_path / "x", device=device).items():
        assert tensor.dtype == getattr(gt, name) and tree[name].dtype == tensor.dtype
        assert tensor.numpy().tobytes() == arrays[name].tobytes() == tree[name].tobytes()


def test_pickle_of_a_broadcast_view_stores_each_element_once(device, rng):
    array = random_array(rng, (3, 1), "float32")
    view = gt.broadcast_to(gt.asarray(array, device=device), (2, 3, 10_000))
    stored = pickle.dumps(view)
    assert len(stored) < 1000
    back = pickle.loads(stored)
    assert back.shape == view.shape and back.strides[2] == 0
    check_same(back, np.broadcast_to(array, view.shape))
    back = back + 1
    assert back.shape == view.shape
    sliced = gt.arange(1000, device=device)[::100]
    assert (
        len(pickle.dumps(sliced)) < 1000 and pickle.loads(pickle.dumps(sliced)).tolist()[1] == 100
    )
    for made in (copy.copy(view), copy.deepcopy(view)):
        made[0, 0, 0] = 5
        assert view[0, 0, 0] == array[0, 0]
