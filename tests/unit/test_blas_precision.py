"""The precision flags: the narrower setting wins, and the defaults are the exact ones."""

import threading

import pytest

from gputensor import blas
from gputensor.blas.precision import compute_type_name

FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, INT8 = 9, 10, 11, 12, 13, 1
BITS = (
    blas.allow_fp16_reduced_precision_reduction,
    blas.allow_bf16_reduced_precision_reduction,
    blas.allow_fp16_accumulation,
    blas.deterministic,
)


@pytest.fixture(autouse=True)
def defaults():
    yield
    blas.float32_matmul_precision("highest")
    for flag in BITS:
        flag(False)


def test_the_defaults_are_exact():
    assert blas.float32_matmul_precision() == "highest"
    assert not blas.allow_tf32()
    assert not any(flag() for flag in BITS)


def test_a_setter_sets_the_process_default_for_every_thread():
    blas.allow_tf32(True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(blas.allow_tf32()))
    thread.start()
    thread.join()
    assert seen == [True]
    assert blas.float32_matmul_precision() == "high"


def test_a_setter_entered_as_a_context_is_a_scope_of_its_thread():
    seen = []
    with blas.allow_tf32(True):
        thread = threading.Thread(target=lambda: seen.append(blas.allow_tf32()))
        thread.start()
        thread.join()
        assert blas.allow_tf32()
    assert seen == [False]
    assert not blas.allow_tf32()


def test_a_scope_wins_over_the_default_and_the_inner_over_the_outer():
    blas.deterministic(True)
    with blas.precision(allow_tf32=True, deterministic=False):
        assert blas.allow_tf32() and not blas.deterministic()
        with blas.precision(float32="bf16x9"):
            assert blas.float32_matmul_precision() == "bf16x9"
            assert not blas.deterministic()
        assert blas.float32_matmul_precision() == "high"
    assert blas.deterministic() and not blas.allow_tf32()


def test_a_scope_ends_with_an_exception_too():
    with pytest.raises(KeyError), blas.precision(allow_tf32=True):
        raise KeyError
    assert not blas.allow_tf32()


def test_one_setting_may_be_entered_twice_and_by_two_threads():
    setting = blas.precision(allow_tf32=True)
    started, finish = threading.Event(), threading.Event()

    def hold():
        with setting:
            started.set()
            finish.wait()

    thread = threading.Thread(target=hold)
    with setting, setting:
        thread.start()
        started.wait()
    assert not blas.allow_tf32()
    finish.set()
    thread.join()


@pytest.mark.parametrize(
    ("dtype", "setting", "name"),
    [
        (FLOAT64, "tf32", "64F"),
        (FLOAT32, None, "32F"),
        (FLOAT32, "ieee", "32F"),
        (FLOAT32, "tf32", "32F_FAST_TF32"),
        (FLOAT32, "medium", "32F_FAST_16BF"),
        (FLOAT32, "bf16x9", "32F_EMULATED_16BFX9"),
        (COMPLEX64, "tf32", "32F_FAST_TF32"),
        (FLOAT16, "tf32", "32F"),
        (BFLOAT16, None, "32F"),
        (INT8, None, "32I"),
    ],
)
def test_compute_types_follow_the_flags(dtype, setting, name):
    assert compute_type_name(dtype, setting) == name


def test_fp16_accumulation_touches_fp16_alone():
    setting = blas.Precision(allow_fp16_accumulation=True)
    assert compute_type_name(FLOAT16, setting) == "16F"
    assert compute_type_name(BFLOAT16, setting) == "32F"


def test_a_call_setting_wins_over_the_scope():
    with blas.precision(allow_tf32=True):
        assert compute_type_name(FLOAT32, "highest") == "32F"
        assert compute_type_name(FLOAT32, blas.Precision(deterministic=True)) == "32F_FAST_TF32"


def test_wrong_values_are_named():
    with pytest.raises(ValueError, match="float32 precision is 'exact'"):
        blas.float32_matmul_precision("exact")
    with pytest.raises(TypeError, match="deterministic must be True or False"):
        blas.deterministic(1)
    with pytest.raises(ValueError, match="not both"):
        blas.Precision(allow_tf32=True, float32="high")
    with pytest.raises(TypeError, match="precision must be"):
        compute_type_name(FLOAT32, 3)
