"""Every function of the table of operations, on every device: values, dtypes, `out`, refusals.

The expectations restate a row's columns independently: the dtype that a rule gives, and NumPy's
values in float64 (kernel_reference.py). A new row is tested without a change to this file.
"""

import inspect

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import CODE_OF, DTYPES
from gputensor._kernels.operations import BY_HAND, ELEMENTWISE
from gputensor.tensor import functions
from tests.support.kernel_checks import scale_of
from tests.support.kernel_reference import assert_close, reference, sample, widen

ROWS = [row for row in ELEMENTWISE if row.example != BY_HAND]
SMALL = {"bool": 2, "int": 9, "uint": 9}
by_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.public_name)


def computed_dtype(rule, dtype):
    """The NumPy dtype that a rule computes in; None if it does not take the dtype."""
    if rule in ("float", "classify") and dtype.kind in "biu":
        return np.dtype(np.float32)
    if rule == "bits" and dtype.kind not in "biu":
        return None
    return np.dtype(bool) if rule == "logical" else dtype


def result_dtype(rule, dtype):
    if rule in ("compare", "classify", "logical"):
        return np.dtype(bool)
    if rule == "count":
        return np.dtype(np.uint8)
    dtype = computed_dtype(rule, dtype)
    return np.empty(0, dtype).real.dtype if rule == "magnitude" else dtype


def is_taken(row, element):
    computed = computed_dtype(row.rule, element.numpy)
    if element.kind == "small" or computed is None:
        return False
    return DTYPES[CODE_OF[computed]].kind in row.kinds


def is_refused(row, element):
    is_order = row.rule == "compare" or row.public_name in ("maximum", "minimum")
    return not is_taken(row, element) and not (is_order and element.kind == "complex")


def fresh_inputs(rng, row, element, shape=(5, 23)):
    """Inputs of one dtype; small where integers become floats."""
    if element.kind in ("int", "uint") and row.rule == "float":
        return [rng.integers(1, 9, shape).astype(element.numpy) for _ in range(row.arity)]
    return [sample(rng, row.name, number, element.code, shape) for number in range(row.arity)]


def check_values(row, element, inputs, got):
    computed = computed_dtype(row.rule, element.numpy)
    wide = [widen(one.astype(computed)) for one in inputs]
    code = CODE_OF[computed]
    expected = reference(row.name, wide)
    what = f"{row.public_name} {element.name}"
    assert got.dtype == result_dtype(row.rule, element.numpy), what
    assert_close(got, expected, code, what, scale_of(row.name, code, wide, expected))


@by_row
def test_function_has_values_and_dtype_of_its_row(place, rng, row):
    function = getattr(functions, row.public_name)
    for element in DTYPES:
        if is_taken(row, element):
            inputs = fresh_inputs(rng, row, element)
            tensors = [gt.asarray(one, device=place) for one in inputs]
            check_values(row, element, inputs, function(*tensors).numpy())
            empty = function(*(one[:, :0] for one in tensors))
            assert empty.shape == (5, 0)
            assert empty.dtype == result_dtype(row.rule, element.numpy)


@by_row
def test_function_writes_to_out_in_any_layout_and_over_its_argument(place, rng, row):
    function = getattr(functions, row.public_name)
    for element in (one for one in DTYPES if is_taken(row, one)):
        inputs = fresh_inputs(rng, row, element)
        tensors = [gt.asarray(one, device=place) for one in inputs]
        dtype = result_dtype(row.rule, element.numpy)
        poison = gt.asarray(np.full((23, 5), 77, dtype), device=place)
        assert function(*tensors, out=poison.T) is not poison
        check_values(row, element, inputs, poison.T.numpy())
        if dtype == element.numpy:  # out overlaps the first argument, one row apart
            store = gt.asarray(np.concatenate([inputs[0], inputs[0]]), device=place)
            store[1:6] = tensors[0]
            function(store[1:6], *tensors[1:], out=store[0:5])
            check_values(row, element, inputs, store[0:5].numpy())


@by_row
def test_function_refuses_other_dtypes_and_an_unfit_out(place, row):
    function = getattr(functions, row.public_name)
    for element in DTYPES:
        x = gt.ones(3, dtype="float32", device=place).astype(element.numpy)
        if is_refused(row, element):
            with pytest.raises(TypeError, match=f"^{row.public_name}: "):
                function(*[x] * row.arity)
        elif result_dtype(row.rule, element.numpy).kind in "fc":
            out = gt.full(3, 7, dtype="int32", device=place)
            with pytest.raises(TypeError, match=f"^{row.public_name}: out: got dtype int32"):
                function(*[x] * row.arity, out=out)
            assert out.tolist() == [7, 7, 7]


@by_row
def test_dtype_is_refused_before_memory_is_requested(place, row):
    function = getattr(functions, row.public_name)
    for dtype in ("complex64", "bool"):
        if is_refused(row, DTYPES[CODE_OF[np.dtype(dtype)]]):
            x = gt.broadcast_to(gt.ones(1, dtype=dtype, device=place), (1 << 55,))
            with pytest.raises(TypeError, match=f"^{row.public_name}: "):
                function(*[x] * row.arity)


@by_row
def test_second_argument_may_be_a_number(place, rng, row):
    if row.arity == 1:
        return
    function = getattr(functions, row.public_name)
    element = next(one for one in reversed(DTYPES) if is_taken(row, one))
    inputs = fresh_inputs(rng, row, element)
    inputs[1] = np.full_like(inputs[0], inputs[1].flat[0])
    rest = [gt.asarray(one, device=place) for one in inputs[2:]]
    got = function(gt.asarray(inputs[0], device=place), inputs[1].flat[0].item(), *rest)
    check_values(row, element, inputs, got.numpy())


@by_row
def test_function_has_a_signature_and_documentation(row):
    function = getattr(functions, row.public_name)
    parameters = dict(inspect.signature(function).parameters)
    has_factor = parameters.pop("alpha", None) is not None
    assert has_factor == (row.public_name in ("add", "subtract"))
    assert [one.kind.name for one in parameters.values()] == (
        ["POSITIONAL_ONLY"] * row.arity + ["POSITIONAL_OR_KEYWORD"] + ["KEYWORD_ONLY"] * 4
    )
    assert list(parameters)[-5:] == ["out", "where", "dtype", "order", "casting"]
    assert function.__name__ == function.__qualname__ == row.public_name
    assert function.__module__ == "gputensor.tensor.functions"
    for section in ("Parameters", "Returns", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in inspect.cleandoc(function.__doc__)
    with pytest.raises(TypeError, match=rf"^{row.public_name}\(\) takes at least {row.arity} pos"):
        function()
    assert row.public_name in (gt.special if row.is_special else gt).__all__


def test_cube_root_keeps_the_sign(place, rng):
    roots = rng.integers(-20, 20, 100) + 0.5
    x = gt.asarray(roots**3, dtype="float64", device=place)
    assert np.allclose(gt.cbrt(x).numpy(), roots, rtol=1e-14, atol=0)
    assert np.signbit(gt.cbrt(gt.asarray([-0.0, 0.0], device=place)).numpy()).tolist() == [1, 0]


def test_sinc_is_one_at_zero_and_small_at_integers(place, rng):
    assert gt.sinc(gt.asarray([0.0, -0.0, 1e-300], device=place)).tolist() == [1, 1, 1]
    for dtype in ("float32", "float64"):
        whole = gt.asarray(rng.integers(1, 100, 50), dtype=dtype, device=place)
        assert gt.max(gt.abs(gt.sinc(whole))).item() < np.finfo(dtype).eps
