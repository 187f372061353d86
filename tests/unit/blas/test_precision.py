"""The precision flags: the narrower setting wins, and the defaults are the exact ones."""

import random
import sys
import threading

import pytest

from gputensor import blas
from tests.support.internals import compute_type_name

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


def test_a_setter_entered_as_a_context_takes_back_its_own_change_alone():
    first, second = blas.allow_tf32(True), blas.allow_tf32(True)
    with first:
        assert blas.allow_tf32()
    assert blas.allow_tf32()
    with second:
        assert blas.allow_tf32()
    assert not blas.allow_tf32()


def test_a_setter_entered_again_changes_no_default():
    setting = blas.allow_tf32(True)
    with setting:
        pass
    assert not blas.allow_tf32()
    blas.allow_tf32(True)
    with setting, setting:
        assert blas.allow_tf32()
    assert blas.allow_tf32()


def test_setters_in_any_order_leave_the_values_of_those_not_entered():
    rng = random.Random()
    setters = {
        "float32": (blas.float32_matmul_precision, ("highest", "high", "medium", "bf16x9")),
        **{flag.__name__: (flag, (False, True)) for flag in BITS},
    }
    stands = {name: values[0] for name, (_, values) in setters.items()}
    calls = []  # [name, value, setting, whether it was entered], in the order of the calls
    for step in range(3000):
        choice = rng.choice(("set", "set", "enter", "enter", "drop"))
        if choice == "set":
            name = rng.choice(list(setters))
            value = rng.choice(setters[name][1])
            setting = setters[name][0](value)
            calls.append([name, value, setting if rng.random() < 0.5 else None, False])
            del setting
        elif calls:
            call = rng.choice(calls[-20:])
            if choice == "enter" and call[2] is not None:
                with call[2]:
                    assert setters[call[0]][0]() == call[1]
                call[3] = True
            elif choice == "drop":
                call[2] = None
        expected = dict(stands)
        for name, value, _, is_entered in calls:
            if not is_entered:
                expected[name] = value
        assert {name: flag() for name, (flag, _) in setters.items()} == expected, step


def test_threads_that_enter_setters_leave_the_default():
    over = threading.Event()

    def enter():
        for _ in range(20_000):
            with blas.allow_tf32(True):
                assert blas.allow_tf32()

    def read():
        while not over.is_set():
            blas.allow_tf32()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    reader = threading.Thread(target=read)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in (reader, *threads):
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        over.set()
        reader.join()
        sys.setswitchinterval(interval)
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
    with pytest.raises(
        ValueError, match=r"float32: got 'exact'; expected one of \['bf16', 'bf16x9', 'high'"
    ):
        blas.float32_matmul_precision("exact")
    with pytest.raises(TypeError, match="float32: got int; expected a string"):
        blas.Precision(float32=32)
    with pytest.raises(TypeError, match="deterministic: got 1; expected True or False"):
        blas.deterministic(1)
    with pytest.raises(ValueError, match="precision: got allow_tf32 and float32"):
        blas.Precision(allow_tf32=True, float32="high")
    with pytest.raises(
        TypeError,
        match=r"precision: got int; expected None, a string or a gputensor\.blas\.Precision",
    ):
        compute_type_name(FLOAT32, 3)


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_a_pair_says_whether_sums_are_split(kind):
    flag = getattr(blas, f"allow_{kind}_reduced_precision_reduction")
    split = getattr(blas, f"allow_{kind}_reduced_precision_reduction_split_k")
    assert split()
    with flag((False, False)):
        assert not flag() and not split()
        with flag(True):
            assert flag() and split()
        with flag((False, True)):
            assert not flag() and split()
    assert split()
    for bad in ((True, False, True), (True,), (1, True), "no"):
        with pytest.raises(TypeError):
            flag(bad)
    with pytest.raises(ValueError, match=r"got \(True, False\)"):
        flag((True, False))
    assert split() and not flag()
    name = f"allow_{kind}_reduced_precision_reduction"
    assert repr(blas.Precision(**{name: (False, False)})) == f"Precision({name}=(False, False))"
