"""Wrong arguments of any kind give one sentence of the library's form, and not Python's words."""

import re

import numpy as np
import pytest

import gputensor as gt

FORM = re.compile(r": got .+; expected .+", re.S)
WRONG = (None, "abc", 2.5, 1j, {"a": 1}, object(), slice(1, 2), ..., b"x", int, [None])

#: Functions and the position of an int, a number, a function, or a sequence.
CALLS = {
    "an int": {
        "bincount: minlength": lambda x, y: gt.bincount(gt.asarray([1, 2]), minlength=y),
        "diff: n": lambda x, y: gt.diff(x, y),
        "fftfreq: n": lambda x, y: gt.fft.fftfreq(y),
        "rfftfreq: n": lambda x, y: gt.fft.rfftfreq(y),
        "stft: n_fft": lambda x, y: gt.stft(x[0], y),
        "matrix_power: n": lambda x, y: gt.linalg.matrix_power(x, y),
        "tensorinv: ind": lambda x, y: gt.linalg.tensorinv(x, y),
        "binomial: n": lambda x, y: gt.random.binomial(y, 0.5),
        "multinomial: num_samples": lambda x, y: gt.multinomial(x, y),
        "integers: low": lambda x, y: gt.random.integers(y, 5),
        "round: decimals": lambda x, y: gt.round(x, y),
        "rot90: k": lambda x, y: gt.rot90(x, y),
        "one_hot: num_classes": lambda x, y: gt.one_hot(gt.asarray([1]), y),
        "diag_embed: offset": lambda x, y: gt.diag_embed(x, y),
        "combinations: r": lambda x, y: gt.combinations(x[0], y),
        "polyder: m": lambda x, y: gt.polyder(x[0], y),
        "unfold: size": lambda x, y: x.unfold(0, y, 1),
        "kthvalue: k": lambda x, y: gt.kthvalue(x, y),
        "topk: k": lambda x, y: gt.topk(x, y),
        "narrow: start": lambda x, y: gt.narrow(x, 0, y, 1),
        "hann_window: window_length": lambda x, y: gt.hann_window(y),
        "kaiser_window: window_length": lambda x, y: gt.kaiser_window(y),
        "select_scatter: index": lambda x, y: gt.select_scatter(x, x[0], 0, y),
        "unravel_index: shape": lambda x, y: gt.unravel_index(gt.asarray([0]), (y, 2)),
        "hypergeometric: ngood": lambda x, y: gt.random.hypergeometric(y, 2, 1),
    },
    "a number": {
        "softmax: scale": lambda x, y: gt.softmax(x, scale=y),
        "layer_norm: eps": lambda x, y: gt.layer_norm(x, eps=y),
        "exponential_: lambd": lambda x, y: x.exponential_(y),
        "kaiser: beta": lambda x, y: gt.kaiser(3, y),
        "huber_loss: delta": lambda x, y: gt.huber_loss(x, x, delta=y),
        "smooth_l1_loss: beta": lambda x, y: gt.smooth_l1_loss(x, x, beta=y),
        "isclose: rtol": lambda x, y: gt.isclose(x, x, y),
        "geomspace: start": lambda x, y: gt.geomspace(y, 3),
        "histogram: range": lambda x, y: gt.histogram(x, 3, (y, 2)),
        "noncentral_chisquare: df": lambda x, y: gt.random.noncentral_chisquare(y, 2.0),
        "nanquantile: q": lambda x, y: gt.nanquantile(x, [y]),
    },
    "a function": {
        "vectorize: pyfunc": lambda x, y: gt.vectorize(y),
        "fromfunction: function": lambda x, y: gt.fromfunction(y, (2,)),
        "apply_over_axes: function": lambda x, y: gt.apply_over_axes(y, x, [0]),
        "apply_along_axis: func1d": lambda x, y: gt.apply_along_axis(y, 0, x),
        "mask_indices: mask_func": lambda x, y: gt.mask_indices(2, y),
    },
    "": {
        "fftn: axes": lambda x, y: gt.fft.fftn(x, axes=y),
        "fftn: s": lambda x, y: gt.fft.fftn(x, s=y),
        "select: condlist": lambda x, y: gt.select(y, [x]),
        "choose: choices": lambda x, y: gt.choose(gt.asarray([0]), y),
        "lexsort: keys": lambda x, y: gt.lexsort(y),
        "lu_solve: lu_and_piv": lambda x, y: gt.linalg.lu_solve(y, x),
        "piecewise: funclist": lambda x, y: gt.piecewise(x, [x > 0], y),
        "multi_dot: arrays": lambda x, y: gt.linalg.multi_dot(y),
        "rot90: axes": lambda x, y: gt.rot90(x, 1, y),
        "indices: dimensions": lambda x, y: gt.indices(y),
        "histogramdd: sample": lambda x, y: gt.histogramdd(y),
        "index_put_: indices": lambda x, y: x.index_put_(y, 1.0),
        "as_strided: size": lambda x, y: gt.as_strided(x, y, (1,)),
        "ravel_multi_index: positions": lambda x, y: gt.ravel_multi_index(y, (2, 2)),
    },
}


@pytest.mark.parametrize(
    ("rule", "name"), [(rule, name) for rule, calls in CALLS.items() for name in calls]
)
def test_wrong_arguments_are_named(where, rule, name):
    skipped = {"a number": (2.5,), "a function": (None, int), "": (None, "abc", {"a": 1}, b"x")}
    with gt.Device(where):
        x = gt.ones((3, 3))
        for value in WRONG:
            if value in skipped.get(rule, ()) or (rule == "" and isinstance(value, list)):
                continue
            with pytest.raises((TypeError, ValueError)) as info:
                CALLS[rule][name](x, value)
            text = str(info.value)
            assert FORM.search(text), text
            if rule != "" and not isinstance(value, list):
                assert text.startswith(f"{name}: got") and rule in text, text


def test_texts_of_functions_with_their_own_checks(where):
    with gt.Device(where):
        x = gt.asarray([1.5])
        for call, text in (
            (lambda: f"{x:d}", "format: spec: got 'd' for float32; expected"),
            (lambda: x.stride("a"), "stride: axis"),
            (lambda: gt.fft.fft(x, norm=np.zeros(2)), "fft: norm: got array"),
            (lambda: gt.fft.fft(x, "a"), "fft: n: got str; expected an int"),
            (lambda: gt.frombuffer(3), "frombuffer: buffer: got int; expected bytes"),
            (lambda: gt.frombuffer(b"abc"), "frombuffer: buffer: got count -1 and offset 0"),
            (lambda: gt.fromiter(3, "int32"), "fromiter: iterable: got int; expected an iterable"),
            (lambda: gt.fromiter(["a"], "int32"), "fromiter: iterable: got elements"),
            (lambda: gt.rand_like(3), "rand_like: argument: got int; expected a Tensor"),
            (lambda: gt.putmask(None, x, x), "putmask: argument: got NoneType; expected a Tensor"),
            (lambda: gt.affine_grid(x, ()), "affine_grid: "),
            (lambda: gt.fft.fftn(x, s=(1, 2), axes=(0,)), "fftn: s: got"),
        ):
            with pytest.raises((TypeError, ValueError)) as info:
                call()
            assert str(info.value).startswith(text) and FORM.search(str(info.value)), info.value
