"""The library tables, checked as far as possible without a GPU, and the pure parts of blas."""

import importlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from gputensor import blas
from gputensor._arrays import overlap
from gputensor._driver import registry
from gputensor.blas import libraries as library
from gputensor.blas import libraries as workspace
from gputensor.blas.libraries import status
from gputensor.blas.plan import FIELDS, signature_of_shape
from gputensor.blas.tuning.tunable_settings import FromEnvironment
from gputensor.errors import BlasError, DeviceError
from tests.support import internals

BFLOAT16 = 10


def test_our_numbers_are_those_of_nvmath():
    pytest.importorskip("nvmath", reason="needs nvmath-python to compare with")
    modules = {
        name: importlib.import_module(f"nvmath.bindings.{name}") for name in ("cublas", "cublasLt")
    }
    for name, number in internals.constants().items():
        module, enum, member = name.split(".")
        assert int(getattr(getattr(modules[module], enum), member)) == number, name


def test_every_symbol_of_the_tables_exists():
    try:
        internals.check_symbols()
    except DeviceError as error:
        if "was not found" in str(error):
            pytest.skip("needs cuBLAS and cuBLASLt (the wheels are enough, a GPU is not needed)")
        raise
    assert library.library_versions()["cublasLt"] >= 120000


def test_a_library_status_becomes_one_exception():
    with pytest.raises(BlasError, match="cublasLtMatmul failed: CUBLAS_STATUS_INV") as info:
        status.raise_for_blas(7, "cublasLtMatmul", "for m=1")
    assert (info.value.call, info.value.status) == ("cublasLtMatmul", 7)
    status.raise_for_blas(0, "cublasLtMatmul")


def test_factors_round_to_half_as_numpy_does():
    rng = np.random.default_rng()
    values = np.concatenate(
        [
            rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 6, 2000),
            [0.0, -0.0, 65504.0, 65519.9, 65520.0, 6e-8, 2.9e-8, np.inf, -np.inf],
        ]
    )
    with np.errstate(over="ignore"):
        # The library's float is rounded first, as in a call.
        expected = values.astype(np.float32).astype(np.float16).view(np.uint16)
    got = np.array([internals.half_bits(v) for v in values], dtype=np.uint16)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("text", ["", "4096:8", ":4096", ":4096:8:", ":a:8", "4096"])
def test_a_malformed_workspace_configuration_means_the_default(text):
    assert workspace.parse_workspace_config(text) is None


def test_the_workspace_configurations_of_the_documentation():
    assert workspace.parse_workspace_config(":16:8") == 16 * 8 * 1024
    assert workspace.parse_workspace_config(":128:8:64:16:32:32") == 3 << 20


@pytest.mark.parametrize(("text", "name"), [("", "auto"), ("0", "cublas"), ("1", "cublaslt")])
def test_the_environment_chooses_the_library(text, name):
    from gputensor.blas.libraries import from_environment

    assert from_environment(text) == name


def test_pytorchs_name_of_the_default_and_names_of_devices():
    former = blas.preferred_blas_library()
    try:
        assert blas.preferred_blas_library("default") == blas.preferred_blas_library() == "auto"
    finally:
        blas.preferred_blas_library(former)
    assert blas.workspace_size("host") == blas.workspace_size(-1) > 0
    blas.clear_workspaces("host")


def test_a_wrong_library_name_is_refused():
    from gputensor.blas.libraries import from_environment

    with pytest.raises(ValueError, match="GPUTENSOR_BLAS_PREFER_CUBLASLT: got 'yes'"):
        from_environment("yes")
    with pytest.raises(
        ValueError, match=r"library: got 'mkl'; expected one of \['auto', 'cublas', 'cublaslt'\]"
    ):
        blas.preferred_blas_library("mkl")
    with pytest.raises(
        ValueError, match=r"library: got \['cublas'\]; expected one of \['auto', 'cublas'"
    ):
        blas.preferred_blas_library(["cublas"])


def test_overlap_agrees_with_a_count_of_bytes():
    rng = np.random.default_rng()
    for _ in range(300):
        views = []
        for _ in range(2):
            shape = tuple(int(n) for n in rng.integers(1, 5, 2))
            strides = tuple(int(s) for s in rng.integers(-6, 7, 2))
            views.append((4000 + int(rng.integers(0, 60)), 2, shape, strides))
        touched = []
        for ptr, itemsize, shape, strides in views:
            touched.append(
                {
                    ptr + i * strides[0] + j * strides[1] + byte
                    for i in range(shape[0])
                    for j in range(shape[1])
                    for byte in range(itemsize)
                }
            )
        assert overlap.may_overlap(*views) == bool(touched[0] & touched[1])


def test_padding_can_be_fixed_for_measurements():
    odd = {"m": 4097, "n": 4095, "k": 4099, "lda": 4097, "ldb": 4099, "ldd": 4097}
    try:
        for setting, expected in (("never", ""), ("inputs", "ab"), ("all", "abd")):
            blas.padding(setting)
            assert internals.padded(BFLOAT16, 68, **odd) == expected
    finally:
        blas.padding("auto")
    for wrong in ("always", ["all"]):
        with pytest.raises(
            ValueError,
            match=r"padding: got .*; expected one of \['all', 'auto', 'inputs', 'never'\]",
        ):
            blas.padding(wrong)


def test_the_tune_command_refuses_a_missing_file(tmp_path, capsys):
    from gputensor.cli.main import main

    assert main(["blas", "tune", "--shapes", str(tmp_path / "missing.json")]) == 2
    assert capsys.readouterr().err.strip().endswith("missing.json'; expected an existing file")


@pytest.mark.parametrize(
    ("name", "least", "most", "setter"),
    [
        ("MAX_TUNING_DURATION_MS", 1, 10**9, "set_max_tuning_duration"),
        ("MAX_TUNING_ITERATIONS", 1, 10**9, "set_max_tuning_iterations"),
        ("ROTATING_BUFFER_SIZE", 0, 1 << 20, "set_rotating_buffer_size"),
    ],
)
def test_numbers_of_tuning_have_limits_that_environment_and_setters_share(
    name, least, most, setter
):
    from gputensor.blas.tuning import tunable

    variable = f"GPUTENSOR_TUNABLEOP_{name}"
    texts = (str(least - 1), str(most + 1), "99999999999999", "-1", "1.5", "", "five", "\u0665")
    for text in texts:
        with pytest.raises(ValueError, match=variable):
            FromEnvironment({variable: text})
    for number in (least - 1, -1, most + 1, 99999999999999):
        with pytest.raises(ValueError, match=f"got .*; expected {least} to {most}"):
            getattr(tunable, setter)(number)
    for number in (least, most):
        assert number in vars(FromEnvironment({variable: str(number)})).values()
    getter = getattr(tunable, setter.replace("set_", "get_"))
    before = getter()
    getattr(tunable, setter)(most)
    assert getter() == most
    getattr(tunable, setter)(before)


@pytest.mark.parametrize("name", ["BLAS_PREFER_CUBLASLT", "TUNABLEOP_ENABLED", "TUNABLEOP_TUNING"])
def test_a_bad_variable_is_named_when_it_is_read_and_not_by_the_import(name):
    code = """if True:
    import gputensor as gt
    assert (gt.ones((2, 2)) @ gt.ones((2, 2))).sum().item() == 8
    for ask in (gt.blas.preferred_blas_library, gt.blas.tunable.is_enabled):
        try:
            ask()
        except ValueError as error:
            print(error)
    """
    environment = {**os.environ, "GPUTENSOR_DEVICE": "host", f"GPUTENSOR_{name}": "maybe"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stderr == ""
    assert done.stdout == f"GPUTENSOR_{name}: got 'maybe'; expected 0 or 1\n"


def test_results_that_cannot_be_read_do_not_enable_them(tmp_path):
    from gputensor.blas.tuning import tunable

    before = tunable.get_filename()
    tunable.set_filename(tmp_path / "results.json")
    (tmp_path / "results.json").write_text("[]")
    try:
        with pytest.raises(
            ValueError, match=r"results\.json: got .*; expected a file of tuned results"
        ):
            tunable.enable()
        assert not tunable.is_enabled()
        tunable.set_filename("/dev/null")  # no file, so there is nothing to read
        tunable.enable()
        assert tunable.is_enabled()
    finally:
        tunable.enable(False)
        tunable.set_filename(before)


def test_the_index_of_the_device_goes_into_a_name_on_request(tmp_path):
    from gputensor.blas.tuning import tunable
    from gputensor.streams import Device

    before = tunable.get_filename()
    number = registry.open_host(capacity=16 << 20)
    try:
        with Device(number):
            tunable.set_filename("a.b/results.x.json", insert_device_ordinal=True)
            index = Device().index
        assert index > 0 and tunable.get_filename() == f"a.b/results.x{index}.json"
        tunable.set_filename("results", True)
        assert tunable.get_filename() == f"results{Device().index}"
        tunable.set_filename("./results.json", False)
        assert tunable.get_filename() == "./results.json"
        with pytest.raises(TypeError, match="insert_device_ordinal: got 1"):
            tunable.set_filename("results", 1)
    finally:
        registry.close_host(number)
        tunable.set_filename(before)


def test_results_go_to_the_file_that_a_link_names(tmp_path):
    from gputensor.blas.tuning import tunable

    (tmp_path / "link.json").symlink_to(tmp_path / "results.json")
    tunable.write_file(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "results.json").is_file()


def test_files_of_tuned_products_are_checked(tmp_path):
    from gputensor.blas.tuning import tunable

    path = tmp_path / "results.json"
    for text in ("", "[]", "[" * 100_000, '{"results": [{"problem": {}}]}', '{"results": 3}'):
        path.write_text(text)
        with pytest.raises(
            ValueError, match=r"results\.json: got .*; expected a file of tuned results"
        ):
            tunable.read_file(path)
    good = {
        "device": "GPU X",
        "driver": "13.0",
        "library": "cublasLt 130101",
        "problem": dict(zip(FIELDS, signature_of_shape(16, 64, 512, "bf16"), strict=True)),
        "pad": 0,
        "backend": 0,
        "config": [7, 20, 1, 0, 0, 0, 11, 0, 2],
        "us": 1.0,
        "default_us": 2.0,
        "measured": 3,
    }
    for change in (
        {"config": good["config"][:-1]},
        {"config": [*good["config"][:-1], 1 << 31]},
        {"config": 7},
        {"config": [[]] * 9},
        {"pad": 8},
        {"pad": -2},
        {"pad": 1, "problem": {**good["problem"], "is_repeated": 1}},
        {"backend": 1 << 31},
        {"measured": float("inf")},
    ):
        path.write_text(json.dumps({"results": [good, {**good, **change}]}))
        with pytest.raises(
            ValueError, match=r"results\.json: got .*; expected a file of tuned results"
        ):
            tunable.read_file(path)
    assert tunable.get_results() == []
    path.write_text('{"results": []}')
    assert tunable.read_file(path) == 0
    path.write_text(json.dumps({"results": [good]}))
    assert tunable.read_file(path) == 1
    tunable.clear()


def test_tuned_results_that_cannot_be_read_are_not_enabled(tmp_path, monkeypatch):
    from gputensor.blas.tuning import tunable

    path = tmp_path / "results.json"
    path.write_text('{"results": [')
    monkeypatch.setattr(tunable._settings, "filename", str(path))
    with pytest.raises(
        ValueError, match=r"results\.json: got .*; expected a file of tuned results"
    ):
        tunable.enable(True)
    assert not tunable.is_enabled()


def test_a_process_that_recorded_nothing_leaves_the_file_of_shapes_alone(tmp_path):
    from gputensor.blas.tuning import tunable

    shapes = tmp_path / "shapes.json"
    shapes.write_text("16x48x72 bf16 NT\n")
    before = tunable._settings.untuned_filename
    tunable.set_untuned_filename(shapes)
    tunable.record_untuned(True)
    try:
        tunable.write_file(tmp_path / "results.json")
    finally:
        tunable.record_untuned(False)
        tunable.set_untuned_filename(before)
    assert shapes.read_text() == "16x48x72 bf16 NT\n"
