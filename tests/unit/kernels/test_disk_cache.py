"""The files of compiled kernels: damaged ones are ignored, and a cache that fails never raises."""

import importlib
import sys

import pytest

from gputensor._arrays import element_types as dtypes
from gputensor._kernels.launch import disk_cache, nvrtc
from gputensor.errors import DeviceError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTENSOR_KERNEL_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_stored_image_is_loaded_again(folder):
    name = disk_cache.name_of("source", "sm_90", (12, 9))
    assert disk_cache.load(name) is None
    disk_cache.store(name, b"image")
    assert disk_cache.load(name) == b"image"
    assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_damaged_file_is_ignored_and_can_be_written_again(folder, damage):
    name = disk_cache.name_of("source")
    disk_cache.store(name, b"image")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + b"?" if damage is None else damage)
    assert disk_cache.load(name) is None
    disk_cache.store(name, b"image")
    assert disk_cache.load(name) == b"image"


def test_cache_that_is_off_or_cannot_be_written_stores_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTENSOR_KERNEL_CACHE", "0")
    assert disk_cache.folder() is None
    disk_cache.store("name", b"image")
    assert disk_cache.load("name") is None
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    monkeypatch.setenv("GPUTENSOR_KERNEL_CACHE", str(blocked / "below"))
    disk_cache.store("name", b"image")
    assert disk_cache.load("name") is None


def test_default_folder_follows_xdg(tmp_path, monkeypatch):
    monkeypatch.delenv("GPUTENSOR_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert disk_cache.folder() == str(tmp_path / "gputensor")


def test_every_fact_changes_the_name():
    facts = ("source", ("option",), "sm_90", (12, 9))
    names = {disk_cache.name_of(*facts)}
    for position, other in enumerate(["other", (), "sm_80", (13, 0)]):
        names.add(disk_cache.name_of(*facts[:position], other, *facts[position + 1 :]))
    assert len(names) == 5


def test_missing_nvrtc_is_one_clear_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    fresh = importlib.util.module_from_spec(nvrtc.__spec__)
    nvrtc.__spec__.loader.exec_module(fresh)
    with pytest.raises(DeviceError, match=r"^NVRTC is not available.*gputensor\[cuda12\]") as seen:
        fresh.version()
    assert str(seen.value).count("NVRTC is not available") == 1


def test_c_and_python_tables_of_dtypes_agree():
    from tests.support.device_array import dtype_facts

    for row in dtypes.DTYPES:
        assert dtype_facts(row.code) == (row.itemsize, dtypes.KINDS.index(row.kind))
