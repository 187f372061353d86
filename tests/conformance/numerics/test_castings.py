"""NumPy's ``order=`` and ``casting=``: layouts of results, and the conversions that raise."""

import numpy as np
import pytest

import gputensor as gt

NAMES = {1: ("negative", "exp", "isnan", "exp2"), 2: ("add", "less", "hypot", "maximum", "divide")}
OPERANDS = {name: count for count, names in NAMES.items() for name in names}


def strides(x):
    return [step // x.dtype.itemsize for step in x.strides]


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("name", OPERANDS)
def test_results_have_the_order_that_is_asked_for(device, rng, name, order):
    a = rng.normal(size=(3, 4, 2)).astype("float32")
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        one = a.transpose(axes)
        x = gt.permute_dims(gt.asarray(a, device=device), axes)
        given, tensors = [one] * OPERANDS[name], [x] * OPERANDS[name]
        want = getattr(np, name)(*given, order=order)
        got = getattr(gt, name)(*tensors, order=order)
        assert strides(got) == strides(want)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
        out = gt.empty(want.shape, got.dtype, device=device)
        assert getattr(gt, name)(*tensors, out=out, order=order) is out
        np.testing.assert_array_equal(out.numpy(), got.numpy())


def test_operands_that_broadcast_and_masks_are_turned_too(device, rng):
    a, b = rng.normal(size=(3, 4)), rng.normal(size=4)
    mask = rng.random((3, 1)) < 0.5
    x, y, where = (gt.asarray(one, device=device) for one in (a, b, mask))
    got = gt.add(x, y, order="F")
    assert strides(got) == [1, 3]
    np.testing.assert_array_equal(got.numpy(), a + b)
    got = gt.multiply(y, 2, where=where, order="F", dtype="float64")
    assert strides(got) == [1, 3]
    np.testing.assert_array_equal(got.numpy(), np.where(mask, b * 2, 0))
    whole, rest = gt.divmod(x, [1.0, 2.0, 3.0, 4.0], order="F")
    assert strides(whole) == strides(rest) == [1, 3]
    np.testing.assert_array_equal(whole.numpy(), np.floor_divide(a, [1.0, 2.0, 3.0, 4.0]))
    assert strides(gt.clip(x, -1, 1, order="F")) == [1, 3]
    assert strides(gt.matmul(x, x.T, order="F")) == [1, 3]
    got = gt.einsum("ij,kj->ik", x, x[:2], order="F", dtype="float32", casting="unsafe")
    assert strides(got) == [1, 3] and got.dtype == gt.float32
    assert gt.add(2, 3, order="F") == 5


def raises_or_equals(ours, theirs):
    """Both raise TypeError, or both give equal values; returns whether they raise."""
    try:
        want = theirs()
    except TypeError:
        with pytest.raises(TypeError):
            ours()
        return True
    got = ours()
    np.testing.assert_array_equal(got.numpy(), want)
    return False


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_conversions_are_those_of_numpy(device, rng, casting):
    kinds = ("int8", "int32", "int64", "float32", "float64")
    count = 0
    for source in kinds:
        a = rng.integers(0, 50, (2, 3)).astype(source)
        x = gt.asarray(a, device=device)
        for target in kinds:
            if np.can_cast(source, target) != gt.can_cast(source, target):
                continue  # int64 becomes float32 here
            count += raises_or_equals(
                lambda x=x, t=target: gt.add(x, x, dtype=t, casting=casting),
                lambda a=a, t=target: np.add(a, a, dtype=t, casting=casting),
            )
            b = np.ones((2, 3), target)
            count += raises_or_equals(
                lambda x=x, b=b: gt.negative(x, out=gt.asarray(b, device=device), casting=casting),
                lambda a=a, b=b: np.negative(a, out=b.copy(), casting=casting),
            )
            count += raises_or_equals(
                lambda x=x, t=target: x.astype(t, casting=casting),
                lambda a=a, t=target: a.astype(t, casting=casting),
            )
    assert (count == 0) is (casting == "unsafe")


def test_no_conversion_to_a_common_dtype_or_to_floats(device):
    x, y = gt.ones(3, device=device), gt.ones(3, "int32", device=device)
    assert gt.add(x, y, casting="safe").dtype == gt.float32
    assert gt.add(x, 2, casting="no").tolist() == [3, 3, 3]
    for call in (
        lambda: gt.add(x, y, casting="no"),
        lambda: gt.hypot(x, y, casting="equiv"),
        lambda: gt.sqrt(y, casting="no"),
        lambda: gt.divide(y, y, casting="no"),
        lambda: gt.concat([x, y], casting="no"),
        lambda: gt.copyto(y, x, casting="same_kind"),
        lambda: gt.matmul(x, x.astype("float64"), casting="no"),
        lambda: gt.add(x, x, out=y, casting="same_kind"),
    ):
        with pytest.raises(TypeError, match="(dtype|out).*: got "):
            call()
    gt.copyto(y, x * 2.5, casting="unsafe")
    assert y.tolist() == [2, 2, 2]
    assert gt.concat([x, y], casting="safe").dtype == gt.float32
    assert gt.add(x, x, out=y, where=y > 3, casting="unsafe") is y and y.tolist() == [2, 2, 2]
    assert gt.less(y, 3, casting="no").tolist() == [True] * 3


def test_unknown_words_are_named(device):
    x = gt.ones((2, 2), device=device)
    for call, message in (
        (lambda: gt.add(x, x, casting="some"), "add: casting: got 'some'; expected no, equiv"),
        (lambda: x.astype("int32", casting="some"), "casting: got 'some'"),
        (lambda: gt.exp(x, order="Z"), "exp: order: got 'Z'; expected C, F, A or K"),
        (lambda: gt.matmul(x, x, order="Z"), "matmul: order: got 'Z'"),
        (
            lambda: gt.add(x, x, out=gt.ones(3, device=device), casting="unsafe"),
            r"add: out: got \(3,\); expected shape \(2, 2\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("is_named", [True, False])
def test_nothing_is_written_where_a_conversion_is_refused(where, is_named):
    x, y = gt.ones(2, "float32", device=where), gt.ones(2, "float64", device=where)
    out = gt.full(4, 7.0, "float32", device=where)
    with pytest.raises(TypeError, match="casting='no'"):
        if is_named:
            gt.concat([x, y], out=out, casting="no")
        else:
            gt.concat([x, y], 0, out, casting="no")
    np.testing.assert_array_equal(out.numpy(), 7)


def test_an_unsafe_conversion_to_real_numbers_drops_imaginary_parts(where):
    a = np.array([1 + 2j, 3 - 1j], "complex64")
    x, y = gt.asarray(a, device=where), gt.zeros(2, "float32", device=where)
    for source in (x, a, a[0], 1 + 2j):
        with pytest.warns(np.exceptions.ComplexWarning, match="drops their imaginary parts"):
            gt.copyto(y, source, casting="unsafe")
        assert y.tolist() == ([1, 3] if np.ndim(source) else [1, 1])
    out = gt.zeros((2, 2), "float32", device=where)
    for call in (
        lambda: gt.concat([x, y], dtype="float32", casting="unsafe"),
        lambda: gt.stack([x, y], dtype="float32", casting="unsafe"),
        lambda: gt.stack([x, y], out=out, casting="unsafe"),
        lambda: np.concatenate([x, y], dtype="float32", casting="unsafe"),
    ):
        with pytest.warns(np.exceptions.ComplexWarning):
            assert gt.ravel(call()).tolist() == [1, 3, 1, 1]
    with pytest.warns(np.exceptions.ComplexWarning):
        np.copyto(y, x + 4, casting="unsafe")
    assert y.tolist() == [5, 7]
    gt.copyto(x, y, casting="unsafe")
    assert gt.concat([x, x], dtype="complex128", casting="unsafe").tolist() == [5, 7] * 2
    with pytest.raises(TypeError, match="concat"):
        np.concatenate([y, y], dtype="int32", casting="same_kind")
    with pytest.raises(TypeError, match="copyto: dtype: got complex64; expected float32"):
        gt.copyto(y, x, casting="same_kind")


def test_no_output_of_several_is_written_where_one_is_refused(where):
    x = gt.asarray([8.0, 0.3], dtype="float32", device=where)
    fraction = gt.full(2, 7.0, "float32", device=where)
    exponent = gt.full(2, 7, "int8", device=where)
    with pytest.raises(TypeError, match="dtype of out: got int8"):
        gt.frexp(x, out=(fraction, exponent), casting="no")
    longer = gt.full(3, 7.0, "float32", device=where)
    with pytest.raises(ValueError, match=r"out: got \(3,\)"):
        gt.divmod(x, 2.0, out=(fraction, longer), casting="safe")
    for one in (fraction, exponent, longer):
        np.testing.assert_array_equal(one.numpy(), 7)
