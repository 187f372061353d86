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

BFLOAT16, FLOAT32 = 10, 11


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


SQUARE = {"m": 4096, "n": 4096, "k": 4096, "lda": 4096, "ldb": 4096, "ldd": 4096}


def test_an_aligned_product_is_not_padded():
    assert internals.padded(BFLOAT16, 68, **SQUARE) == ""
    assert internals.padded(FLOAT32, 77, **SQUARE) == ""


def test_an_odd_product_of_half_floats_is_padded_and_one_of_float32_is_not():
    odd = {"m": 4097, "n": 4095, "k": 4099, "lda": 4097, "ldb": 4099, "ldd": 4097}
    assert set("ab") <= set(internals.padded(BFLOAT16, 68, **odd))
    assert internals.padded(FLOAT32, 68, **odd) == ""
    assert set("ab") <= set(internals.padded(FLOAT32, 77, **odd))


def test_matrices_that_share_an_odd_size_are_copied_together_and_others_are_not():
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, k=4097, ldb=4097)) == "ab"
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, m=4097, lda=4097, ldd=4097)) == "ad"
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, n=4097)) == ""  # contiguous on no axis
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, a=2)) == "a"


def test_a_product_too_small_to_gain_is_left_alone():
    small = {"m": 17, "n": 17, "k": 17, "lda": 17, "ldb": 17, "ldd": 17}
    assert internals.padded(BFLOAT16, 68, **small) == ""
    thin = {"m": 4097, "n": 1, "k": 4097, "lda": 4097, "ldb": 4097, "ldd": 4097}
    assert internals.padded(BFLOAT16, 68, **thin) == ""


@pytest.mark.parametrize(
    ("sizes", "dtype", "layout", "expected"),
    [
        ((11456, 9, 5056), BFLOAT16, "NN", "ad"),
        ((8616, 9, 8704), BFLOAT16, "TN", "ad"),
        ((6610, 12, 1016), BFLOAT16, "NN", "ad"),
        ((28, 7040, 1439), BFLOAT16, "TN", "bd"),
        ((2718, 10, 3328), FLOAT32, "NT", "ad"),
        ((20, 5399, 11392), FLOAT32, "NT", ""),
        ((1024, 42, 2825), FLOAT32, "TN", ""),
        ((24, 6298, 4736), BFLOAT16, "NT", ""),
        ((56, 1930, 6784), BFLOAT16, "TN", ""),
        ((23, 9968, 7726), BFLOAT16, "NT", ""),
        ((9, 11448, 3782), BFLOAT16, "NT", ""),
        ((12, 6634, 2944), BFLOAT16, "TN", ""),
        ((20, 867, 2788), BFLOAT16, "TN", ""),
    ],
)
def test_narrow_products_are_padded_where_that_was_faster(sizes, dtype, layout, expected):
    """Both ways were measured on an H200; float32 may use TF32."""
    rows, columns, k = sizes
    found = internals.padded(
        dtype, 77 if dtype == FLOAT32 else 68, columns, rows, k, ldd=columns,
        lda=columns if layout[1] == "N" else k, ldb=k if layout[0] == "N" else rows,
        op_a=int(layout[1] == "T"), op_b=int(layout[0] == "T"),
    )  # fmt: skip
    assert found == expected


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


@pytest.mark.parametrize(
    ("sizes", "first", "second", "is_second"),
    [
        ((270, 576, 25), (5900019, 0.152, 55, 15, 8, 31), (0, 0.035, 55, 11, 1, 31), True),
        ((4, 3200, 1675), (204800, 0.379, 24, 5, 4, 13), (0, 0.189, 11, 0, 1, 0), False),
        ((13516, 122, 1282), (13894427, 0.268, 55, 23, 2, 31), (0, 0.134, 55, 18, 1, 31), True),
        ((2, 16, 3074), (0, 0.002, 24, 15, 1, 0), (1024, 0.009, 23, 11, 8, 19), True),
        ((5888, 5, 6), (0, 0.348, 24, 11, 1, 13), (0, 0.348, 24, 11, 1, 19), False),
        ((223, 489, 192), (0, 0.212, 24, 11, 1, 19), (0, 0.212, 24, 11, 1, 13), True),
        ((9344, 64, 88), (0, 0.134, 55, 11, 1, 31), (0, 0.065, 55, 15, 1, 31), False),
        ((252, 9216, 104), (0, 0.545, 23, 20, 1, 10), (0, 0.545, 23, 24, 1, 9), True),
        ((2496, 3219, 26), (0, 1.97, 23, 23, 1, 9), (0, 1.97, 23, 24, 1, 3), True),
        ((116, 1, 108), (0, 0.073, 13, 0, 1, 0), (8208, 1.172, 13, 0, 16, 0), False),
        ((6866, 1, 184), (0, 2.168, 13, 0, 1, 0), (0, 4.336, 13, 0, 1, 0), False),
        ((1, 2028, 80), (0, 1.28, 13, 0, 1, 0), (0, 0.641, 13, 0, 1, 0), True),
        ((1, 1088, 7137), (34832, 1.177, 13, 0, 8, 0), (0, 0.687, 13, 0, 1, 0), True),
        ((1, 14, 5768), (1739, 0.205, 14, 0, 31, 0), (8464, 1.0, 13, 0, 132, 0), False),
        ((128, 1, 8534), (4112, 0.139, 13, 0, 8, 0), (8208, 0.97, 13, 0, 16, 0), True),
        ((24, 13888, 5605), (1786880, 0.12, 55, 14, 2, 31), (0, 0.07, 55, 12, 1, 31), False),
        ((13632, 10, 4555), (1745920, 0.14, 55, 13, 2, 31), (0, 2.58, 11, 0, 1, 0), False),
        ((6144, 65, 576), (3146752, 0.16, 55, 15, 2, 31), (0, 0.06, 55, 17, 1, 31), False),
        ((20, 7931, 9893), (1268736, 0.94, 24, 11, 2, 19), (0, 0.31, 24, 18, 1, 0), False),
        ((24, 15584, 11008), (2992128, 0.92, 21, 19, 2, 10), (0, 1.0, 43, 15, 1, 34), False),
        ((7552, 24, 960), (0, 0.05, 55, 11, 1, 31), (0, 0.15, 20, 16, 1, 28), True),
        ((64, 10007, 10000), (0, 0.74, 43, 18, -1, 34), (0, 0.61, 43, 17, -1, 34), True),
        ((24, 15397, 15072), (0, 0.92, 43, 20, -1, 34), (0, 0.8, 43, 17, 1, 34), True),
        ((33, 20000, 6000), (0, 2.99, 23, 23, 5, 9), (0, 2.99, 23, 19, 5, 10), True),
    ],
)
def test_the_proposal_is_the_one_that_was_faster(sizes, first, second, is_second):
    """Both proposals for these products were measured on an H200."""
    assert internals.takes_second(*sizes, first, second) == is_second
