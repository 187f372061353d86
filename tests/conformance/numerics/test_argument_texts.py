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
        "array: ndmin": lambda x, y: gt.array(x, ndmin=y),
        "diag_indices: ndim": lambda x, y: gt.diag_indices(2, y),
        "polyint: m": lambda x, y: gt.polyint(x[0], y),
        "hypergeometric: ngood": lambda x, y: gt.random.hypergeometric(y, 2, 1),
    },
    "a number": {
        "softmax: scale": lambda x, y: gt.softmax(x, scale=y),
        "layer_norm: eps": lambda x, y: gt.layer_norm(x, eps=y),
        "exponential_: lambd": lambda x, y: x.exponential_(y),
        "kaiser: beta": lambda x, y: gt.kaiser(3, y),
        "cross_entropy: label_smoothing": lambda x, y: gt.cross_entropy(x, x, label_smoothing=y),
        "rotary: base": lambda x, y: gt.rotary(gt.ones((3, 4)), gt.arange(3), base=y),
        "unwrap: period": lambda x, y: gt.unwrap(x, period=y),
        "fftfreq: d": lambda x, y: gt.fft.fftfreq(3, y),
        "rfftfreq: d": lambda x, y: gt.fft.rfftfreq(3, y),
        "scaled_dot_product_attention: scale": lambda x, y: gt.scaled_dot_product_attention(
            x[None], x[None], x[None], scale=1j if y is None else y
        ),
        "huber_loss: delta": lambda x, y: gt.huber_loss(x, x, delta=y),
        "smooth_l1_loss: beta": lambda x, y: gt.smooth_l1_loss(x, x, beta=y),
        "isclose: rtol": lambda x, y: gt.isclose(x, x, y),
        "histogram: range": lambda x, y: gt.histogram(x, 3, (y, 2)),
        "noncentral_chisquare: df": lambda x, y: gt.random.noncentral_chisquare(y, 2.0),
        "nanquantile: q": lambda x, y: gt.nanquantile(x, [y]),
    },
    "a function": {
        "vectorize: pyfunc": lambda x, y: gt.vectorize(y),
        "fromfunction: function": lambda x, y: gt.fromfunction(y, (2,)),
        "apply_over_axes: function": lambda x, y: gt.apply_over_axes(y, x, [0]),
        "apply_along_axis: func1d": lambda x, y: gt.apply_along_axis(y, 0, x),
        "while_loop: cond_fun": lambda x, y: gt.while_loop(y, lambda one: one, x),
        "while_loop: body_fun": lambda x, y: gt.while_loop(lambda one: False, y, x),
        "cond: true_fun": lambda x, y: gt.cond(True, y, lambda one: one, x),
        "fori_loop: body_fun": lambda x, y: gt.fori_loop(0, 2, y, x),
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


#: Lists of lists of unequal lengths.
UNEVEN = {
    name: lambda name=name: getattr(gt, name)([[1], [2, 3]])
    for name in "shape asnumpy iscomplexobj min_scalar_type ndenumerate broadcast".split()
} | {
    "compress: condition": lambda: gt.compress([[1], [2, 3]], gt.ones(3)),
    "repeat: repeats": lambda: gt.repeat(gt.ones(3), [[1], [2, 3]]),
    "pad: pad_width": lambda: gt.pad(gt.ones(3), [[1], [2, 3]]),
}


def test_huge_counts_end_at_once(where):
    with gt.Device(where):
        x = gt.asarray([1.5, -2.25], dtype="float64")
        assert gt.diff(x, 10**30).shape == (0,) and gt.polyder(x, 10**30).shape == (0,)
        assert gt.round(x, 10**30).tolist() == [1.5, -2.25]
        assert gt.round(x, -(10**30)).tolist() == [0, 0]
        with pytest.raises(IndexError, match="^index: got .*; expected"):
            x[[[1], [2, 3]]]
        with pytest.raises(IndexError, match="^index: got .*; expected"):
            x[int]


def test_texts_of_functions_with_their_own_checks(where):
    with gt.Device(where):
        x = gt.asarray([1.5])
        for call, text in (
            (lambda: f"{x:d}", "format: spec: got 'd' for float32; expected"),
            (lambda: x.stride("a"), "stride: axis"),
            (lambda: gt.fft.fft(x, norm=np.zeros(2)), "fft: norm: got an array"),
            (lambda: gt.fft.fft(x, "a"), "fft: n: got str; expected an int"),
            (
                lambda: gt.array_str(x, "wide"),
                "array_str: max_line_width: got str; expected an int",
            ),
            (lambda: gt.array_repr(x, precision=-1), "array_str: precision: got -1; expected 0"),
            (lambda: gt.linspace("a", 1), "linspace: start: got str; expected a number"),
            (lambda: gt.unflatten(x, 0, "ab"), "unflatten: sizes: got str; expected an int"),
            (lambda: gt.real_if_close(x + 1j, "a"), "real_if_close: tol: got str; expected a numb"),
            (lambda: gt.polynomial.polynomial.polytrim(x, []), "polytrim: tol: got list; expected"),
            (lambda: gt.polynomial.polynomial.polyder(x, scl="2"), "polyder: scl: got str; expect"),
            (lambda: gt.unique_values("a"), "unique_values: argument: got str; expected a Tensor"),
            (lambda: gt.geomspace(3, "a"), "geomspace: stop: got str; expected a number or a Tens"),
            (lambda: gt.put([1], 0, 2), "put: a: got list; expected a Tensor, to which"),
            (lambda: gt.sum(x, out=[1.5]), "sum: out: got list; expected a Tensor, to which"),
            (lambda: gt.frombuffer(3), "frombuffer: buffer: got int; expected bytes"),
            (lambda: gt.frombuffer(b"abc"), "frombuffer: buffer: got count -1 and offset 0"),
            (lambda: gt.fromiter(3, "int32"), "fromiter: iterable: got int; expected an iterable"),
            (lambda: gt.fromiter(["a"], "int32"), "fromiter: iterable: got elements"),
            (lambda: gt.rand_like("3"), "rand_like: argument: got str; expected a Tensor"),
            (lambda: gt.putmask(None, x, x), "putmask: a: got NoneType; expected a Tensor"),
            (lambda: gt.affine_grid(x, ()), "affine_grid: "),
            (lambda: gt.fft.fftn(x, s=(1, 2), axes=(0,)), "fftn: s: got"),
            *((call, text) for text, call in UNEVEN.items()),
            (lambda: gt.insert(x, [[1], [2, 3]], 0), "insert: obj: got [[1], [2, 3]]"),
            (lambda: gt.fromiter(iter([1]), "int32", 10**30), "fromiter: count"),
            (lambda: gt.fmod(x, 1j), "fmod: dtype: got complex"),
            (lambda: gt.combinations(x, -1), "combinations: r: got -1"),
            (lambda: gt.ElementwiseKernel(None, "T y", "y = 1", "k"), "ElementwiseKernel: "),
            (lambda: gt.RawModule(path=3), "RawModule: path: got int"),
            (lambda: gt.fromstring("1 2"), "fromstring: sep: got ''"),
            (lambda: gt.fromstring(b"1 2", sep=" "), "fromstring: text: got bytes"),
            (lambda: gt.delete(x, [True, False]), "delete: obj"),
            (lambda: gt.gradient(x, "a"), "gradient: spacing: got str"),
            (lambda: gt.histogram(x, int), "histogram: bins"),
            (lambda: gt.histogramdd(()), "histogramdd: sample: got ()"),
            (lambda: gt.einsum(x, ["a"]), "einsum: indices: got str"),
            (lambda: gt.einsum_path(b"i", x), "einsum_path: subscripts: got bytes"),
            (lambda: gt.fori_loop(0, np.zeros(2), lambda n, one: one, x), "upper: got ndarray"),
            (lambda: gt.scan(lambda n, one: (n, one), x, None, int), "length: got type"),
            (lambda: gt.embedding_bag(gt.asarray([0]), gt.ones((2, 2)), "a"), "embedding_bag: "),
            (lambda: gt.fuse(int), "fuse: fn: got type"),
            (lambda: gt.set_printoptions(precision="a"), "set_printoptions"),
            (lambda: gt.searchsorted(x, x, sorter=[1, 2]), "searchsorted: sorter: got int64"),
            (lambda: gt.broadcast_to(x, 3.0), "shape: got"),
            (lambda: gt.ldexp(x, 1j), "ldexp: x2: got complex"),
            (lambda: gt.as_strided(x, (1,), (1,), "a"), "as_strided: offset: got str"),
            (lambda: gt.mvlgamma(x, 10**30), "mvlgamma: p"),
            (lambda: gt.avg_pool2d(gt.ones((1, 1, 2, 2)), 2, data_format=np.ones(2)), "avg_pool2d"),
        ):
            with pytest.raises((TypeError, ValueError)) as info:
                call()
            assert str(info.value).startswith(text) and FORM.search(str(info.value)), info.value


@pytest.mark.parametrize("wrong", [3, None, object(), 2.5, np.ones(2)], ids=type)
def test_files_of_text_that_are_no_files(wrong):
    x = gt.ones(2, device="host")
    for call in (
        gt.loadtxt, gt.genfromtxt, gt.fromfile, lambda file: gt.savetxt(file, x), x.tofile,
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"^\w+: file: got .+; expected a path"):
            call(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gt.loadtxt(["a b"]),
        lambda: gt.genfromtxt(["1 2", "3"]),
        lambda: gt.loadtxt(["1,2"], delimiter=5),
        lambda: gt.loadtxt(["1 2"], dtype="zzz"),
        lambda: gt.loadtxt(["1 2"], skiprows="a"),
        lambda: gt.loadtxt([1, 2]),
    ],
)
def test_texts_that_cannot_be_read_are_named_in_one_line(call):
    with pytest.raises((TypeError, ValueError), match=r"^(loadtxt|genfromtxt): [^\n]+$"):
        call()


def test_text_files_take_options_by_position(tmp_path):
    path = tmp_path / "x.txt"
    gt.savetxt(path, gt.asarray([[1, 2], [3, 4]], device="host"), "%d", ";")
    assert path.read_text() == "1;2\n3;4\n"
    assert gt.loadtxt(path, "int64", "#", ";", device="host").tolist() == [[1, 2], [3, 4]]
    assert gt.genfromtxt(path, "int64", "#", ";", device="host").tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: gt.is_signed("a"), "is_signed: argument: got str; expected a Tensor"),
        (lambda x: gt.is_same_size(None, x), "is_same_size: argument: got NoneType; expected a"),
        (lambda x: gt.fft.hfft2(None), "hfft2: argument: got NoneType; expected a Tensor"),
        (lambda x: x.scatter_add_(0, "a", x), "scatter_add: argument: got str; expected a Tensor"),
        (lambda x: gt.ravel_multi_index(3, (2, 3), "clip"), "positions: got int; expected a seq"),
        (lambda x: gt.scan("f", x), "scan: f: got .*; expected"),
        (lambda x: gt.concat(3, casting="safe"), "concat: arrays: got int; expected"),
        (lambda x: gt.linalg.vector_norm(x, ord=[1]), "vector_norm: ord: got .*; expected a num"),
        (lambda x: gt.random.choice(np.array([5, 6])), "a: got ndarray; expected an int, a Tensor"),
        (lambda x: gt.random.permutation(np.array([5])), "n: got ndarray; expected an int, a Ten"),
    ],
)
def test_wrong_kinds_are_named(where, call, text):
    with pytest.raises(TypeError, match=text):
        call(gt.ones(3, device=where))


def test_positions_of_ints_and_lengths_have_a_mode(where):
    with gt.Device(where):
        for mode in ("wrap", "clip", ("wrap", "clip")):
            for positions in ((1, 7), (gt.asarray([1, -4]), 1)):
                got = gt.ravel_multi_index(positions, (2, 3), mode)
                given = [np.asarray(one) for one in positions]
                assert got.tolist() == np.ravel_multi_index(given, (2, 3), mode).tolist()
        with pytest.raises(ValueError, match="positions: got 2 positions; expected 3, one"):
            gt.ravel_multi_index((1, 2), (2, 3, 4), "clip")
