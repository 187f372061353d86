"""Numbers and lists where functions take tensors: the result is that of tensors."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same

#: Functions of one vector.
OF_VECTORS = """
aminmax all angle any argmax argmin argsort argwhere atleast_1d atleast_2d atleast_3d average
bincount copy corrcoef count_nonzero cov cumprod cumsum cumulative_prod cumulative_sum
cumulative_trapezoid diag diagflat diff ediff1d fix flatnonzero flatten flip frexp gradient
histogram histogram_bin_edges i0 imag iscomplex isneginf isposinf isreal logsumexp max mean median
min modf msort nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
nanprod nanstd nansum nanvar nonzero numel ones_like poly polyder polyint prod ptp ravel real
real_if_close roots sinc sort sort_complex spacing square squeeze std std_mean sum trapezoid
trim_zeros unique unique_all unique_consecutive unique_counts unique_inverse unique_values unstack
unwrap var var_mean zeros_like
""".split()
#: Calls with ``A(...)`` around each argument that is a tensor elsewhere.
CALLS = """
adjoint(A([[1.0, 2.0], [3.0, 4.0]]))
addcdiv(A([1.0]), A([2.0]), A([4.0]))
addmm(A([1.0, 2.0]), A([[1.0, 2.0]]), A([[1.0, 2.0], [3.0, 4.0]]))
allclose(A([1.0, 2.0]), A([1.0, 2.5]))
append(A([1, 2]), A([3]))
apply_along_axis(gt.sum, 0, A([[1, 2], [3, 4]]))
apply_over_axes(gt.sum, A([[1, 2], [3, 4]]), [0])
argmax(A([[1, 5], [7, 2]]), axis=1)
argpartition(A([3, 1, 2]), 1)
argsort(a=A([3, 1, 2]))
array_equal(A([1, 2]), A([1, 2]))
array_equiv(A([1, 2]), A([[1, 2], [1, 2]]))
array_split(A([1, 2, 3]), 2)
astype(A([1, 2]), "float64")
as_strided(A([1, 2, 3]), (2, 2), (1, 1))
average(A([1, 2]), weights=A([3, 1]))
bmm(A([[[1.0, 2.0]]]), A([[[1.0], [2.0]]]))
broadcast_arrays(A([1, 2]), A([[1], [2]]))
broadcast_to(A([1, 2]), (2, 2))
bucketize(A([1, 4]), A([2, 3]))
cdist(A([[0.0, 0.0]]), A([[3.0, 4.0]]))
choose(A([0, 1]), A([[1, 2], [3, 4]]))
chunk(A([1, 2]), 2)
clip(A([1, 5]), A([2, 2]), A([3, 4]))
column_stack((A([1, 2]), A([3, 4])))
compress(A([True, False]), A([1, 2]))
concatenate((A([1, 2]), A([3])))
convolve(A([1, 2]), A([1, 1]))
correlate(A([1, 2, 3]), A([1, 1]))
cross(A([1, 2, 3]), A([3, 2, 1]))
delete(A([1, 2, 3]), A([1]))
diag_embed(A([1, 2]))
diagonal(A([[1, 2], [3, 4]]))
diff(A([1, 4, 9]), prepend=A([0]))
digitize(A([1, 4]), A([2, 3]))
dot(A([1, 2]), A([3, 4]))
dsplit(A([[[1, 2]]]), 2)
dstack((A([1, 2]), A([3, 4])))
einsum("i,i", A([1, 2]), A([3, 4]))
expand_dims(A([1, 2]), 0)
extract(A([True, False]), A([1, 2]))
fft.fft(A([1.0, 2.0]))
fft.fftshift(A([1, 2, 3]))
fft.irfft(A([1.0, 2.0]))
flatten(A([[1, 2], [3, 4]]))
fliplr(A([[1, 2]]))
full_like(A([1, 2]), 7)
gather(A([[1, 2]]), 1, A([[1]]))
histogram(A([1, 2, 3]), A([0, 2, 4]))
histogram2d(A([1, 2]), A([1, 2]), 2)
histogramdd((A([1, 2]), A([3, 4])), 2)
hsplit(A([1, 2]), 2)
hstack((A([1, 2]), A([3])))
index_add(A([1, 2]), 0, A([0]), A([5]))
index_copy(A([1, 2]), 0, A([0]), A([5]))
index_fill(A([1, 2]), 0, A([0]), 5)
index_select(A([1, 2]), 0, A([1]))
inner(A([1, 2]), A([3, 4]))
insert(A([1, 2]), 1, A([5]))
interp(A([1.5, 2.5]), A([1, 2, 3]), A([3, 4, 6]))
intersect1d(A([1, 2]), A([2, 3]))
isclose(A([1.0, 2.0]), A([1.0, 2.5]))
isin(A([1, 2]), A([2]))
kron(A([1, 2]), A([1, 1]))
kthvalue(A([3, 1, 2]), 2)
lerp(A([1.0]), A([2.0]), 0.5)
lexsort((A([1, 2]), A([2, 1])))
linalg.cholesky(A([[2.0, 0.0], [0.0, 2.0]]))
linalg.cond(A([[1.0, 2.0], [3.0, 4.0]]))
linalg.cross(A([1, 2, 3]), A([3, 2, 1]))
linalg.det(A([[1, 2], [3, 4]]))
linalg.diagonal(A([[1, 2], [3, 4]]))
linalg.eigh(A([[2.0, 1.0], [1.0, 2.0]]))
linalg.inv(A([[1, 2], [3, 4]]))
linalg.lstsq(A([[1.0, 2.0], [3.0, 4.0]]), A([1.0, 2.0]))
linalg.matrix_norm(A([[1, 2], [3, 4]]))
linalg.matrix_power(A([[1, 2], [3, 4]]), 3)
linalg.matrix_rank(A([[1, 2], [3, 4]]))
linalg.matrix_transpose(A([[1, 2], [3, 4]]))
linalg.multi_dot([A([[1, 2]]), A([[3], [4]])])
linalg.norm(A([3, 4]))
linalg.pinv(A([[1.0, 2.0], [3.0, 4.0]]))
linalg.qr(A([[1.0, 2.0], [3.0, 4.0]]))
linalg.slogdet(A([[1, 2], [3, 4]]))
linalg.solve(A([[1, 2], [3, 4]]), A([1, 2]))
linalg.svdvals(A([[1.0, 2.0], [3.0, 4.0]]))
linalg.trace(A([[1, 2], [3, 4]]))
linalg.vector_norm(A([3, 4]))
masked_fill(A([1, 2]), A([True, False]), 0)
masked_select(A([1, 2]), A([True, False]))
matmul(A([[1, 2]]), A([[1], [2]]))
matrix_transpose(A([[1, 2]]))
matvec(A([[1, 2]]), A([1, 2]))
max(A([[1, 5], [7, 2]]), axis=0, keepdims=True)
mean(A([[1, 2], [3, 4]]), axis=0)
meshgrid(A([1, 2]), A([3, 4]))
moveaxis(A([[1, 2]]), 0, 1)
mm(A([[1, 2]]), A([[1], [2]]))
mv(A([[1, 2]]), A([1, 2]))
narrow(A([1, 2, 3]), 0, 1, 2)
nanpercentile(A([1.0, 2.0]), 50)
nanquantile(A([1.0, 2.0]), 0.5)
one_hot(A([1, 0]), 2)
outer(A([1, 2]), A([3, 4]))
packbits(A([1, 0, 1]))
pad(A([1, 2]), 1)
partition(A([3, 1, 2]), 1)
percentile(A([1, 2]), 50)
permute_dims(A([[1, 2]]), (1, 0))
piecewise(A([1, 2]), A([[True, False]]), [1, 2])
polyadd(A([1, 2]), A([3]))
polyfit(A([1.0, 2.0, 3.0]), A([1.0, 2.0, 4.0]), 1)
polymul(A([1, 2]), A([3]))
polyval(A([1, 2]), A([3, 4]))
logcumsumexp(A([1.0, 2.0]), 0)
cummax(A([1, 3, 2]), 0)
quantile(A([1, 2]), A([0.5]))
ravel_multi_index((A([0]), A([1])), (2, 2))
renorm(A([[1.0, 2.0]]), 2, 0, 1)
repeat(A([1, 2]), 2)
reshape(A([[1, 2]]), (2, 1))
resize(A([1, 2]), (2, 2))
roll(A([1, 2]), 1)
rollaxis(A([[1, 2]]), 1)
rot90(A([[1, 2]]))
round(A([1.26, 2.0]), 1)
scatter(A([1, 2]), 0, A([0]), A([5]))
scatter_add(A([1, 2]), 0, A([0]), A([5]))
searchsorted(A([1, 2, 3]), A([2, 3]))
select([A([True, False])], [A([1, 2])])
setdiff1d(A([1, 2]), A([2]))
setxor1d(A([1, 2]), A([2]))
shape(A([1, 2]))
softmax(A([1.0, 2.0]))
sort(A([[3, 1], [4, 2]]), axis=0)
split(A([1, 2]), 2)
stack((A([1, 2]), A([3, 4])))
std(A([1, 2]), correction=1)
sum(A([[1, 2], [3, 4]]), axis=1)
sum(a=A([1, 2]))
swapaxes(A([[1, 2]]), 0, 1)
take(A([1, 2, 3]), A([0, 2]))
take_along_axis(A([[1, 2], [3, 4]]), A([[0], [1]]), axis=1)
tensordot(A([1, 2]), A([3, 4]), 1)
tile(A([1, 2]), 2)
topk(A([1, 3, 2]), 2)
trace(A([[1, 2], [3, 4]]))
transpose(A([[1, 2]]))
trapezoid(A([1, 2]), A([0, 1]))
tril(A([[1, 2], [3, 4]]))
unflatten(A([1, 2]), 0, (1, 2))
union1d(A([1, 2]), A([2, 3]))
unravel_index(A([1, 2]), (2, 2))
vander(A([1, 2]))
vdot(A([1, 2]), A([3, 4]))
vecdot(A([1, 2]), A([3, 4]))
vecmat(A([1, 2]), A([[1], [2]]))
vsplit(A([[1], [2]]), 2)
vstack((A([1, 2]), A([3, 4])))
where(A([True, False]), A([1, 2]), A([3, 4]))
where(A([True, False]))
""".strip().split("\n")
CALLS += [f"{name}(A([3, 1, 2]))" for name in OF_VECTORS]
#: Functions of one number.
OF_NUMBERS = """
all any argmax argmin atleast_1d atleast_2d average copy count_nonzero cumprod cumsum diagflat
flatten isreal max mean median min nan_to_num nanmax nanmean nanmin nansum ndim ones_like prod
ptp ravel shape size squeeze std sum unique unique_values var zeros_like
""".split()


def result(call, where, convert):
    with gt.Device(where):
        return eval(f"gt.{call}", {"gt": gt, "A": convert})


def check_equal(got, want):
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want)
        for one, other in zip(got, want, strict=True):
            check_equal(one, other)
    elif isinstance(want, gt.Tensor):
        assert got.device == want.device
        check_same(got, want.numpy())
    else:
        assert got == want


def check_list(call, where):
    check_equal(result(call, where, list), result(call, where, gt.asarray))


@pytest.mark.parametrize("call", CALLS)
def test_list_gives_the_result_of_its_tensor(where, call):
    check_list(call, where)


def test_ranges_are_lists(where):
    with gt.Device(where):
        x = gt.ones(3)
        check_same(x + gt.sum(range(3)) + gt.add(range(3), x), np.array([5, 6, 7], np.float32))
        check_same(gt.concat([x, range(2)]), np.array([1, 1, 1, 0, 1], np.float32))
        check_same(gt.sin(range(3)), np.sin(np.arange(3, dtype=np.float32)), 1e-6)


def test_number_beside_a_tensor_keeps_its_dtype(where):
    x = gt.asarray([1, 2], dtype="int8", device=where)
    small = gt.ones((16, 16), dtype="float8_e4m3", device=where)
    check_same(gt.broadcast_arrays(x, 3)[1], np.array([3, 3], np.int8))
    check_same(gt.broadcast_arrays(np.float64(2.5), x)[0], np.array([2.5, 2.5], np.float32))
    assert gt.scaled_matmul(small, small, 0.5, 2.0)[0, 0].item() == 16


def test_tensor_that_is_written_is_never_made(where):
    x = gt.ones(2, device=where)
    values = [1.0, 2.0]
    for call in (
        lambda: gt.put(values, 0, 1), lambda: gt.place(values, [True, False], 1),
        lambda: gt.putmask(values, [True, False], 1), lambda: gt.copyto(values, x),
        lambda: gt.fill_diagonal([values, values], 1), lambda: gt.sum(x, out=values),
        lambda: gt.put_along_axis(values, [0], 1, 0), lambda: gt.matmul(x, x, out=values),
        lambda: gt.add(x, x, out=values), lambda: gt.take(x, [0, 1], out=values),
        lambda: gt.clip(x, 0, 1, out=values), lambda: gt.cumsum(x, out=values),
        lambda: gt.random.shuffle(values),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="got list; expected a Tensor"):
            call()
    assert values == [1.0, 2.0]


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_number_gives_the_result_of_its_tensor(where, name):
    for number in (3, 2.5, True, 1j) if name in ("sum", "ravel", "copy") else (3, 2.5):
        call = f"{name}(A({number}))"
        check_equal(result(call, where, lambda one: one), result(call, where, gt.asarray))


INT_CALLS = {
    "zeros(n)": lambda n, x: gt.zeros(n), "full(n)": lambda n, x: gt.full(n, 7),
    "eye(n)": lambda n, x: gt.eye(n, n), "arange(n)": lambda n, x: gt.arange(n),
    "resize": lambda n, x: gt.resize(x, n), "reshape": lambda n, x: x.reshape(n, -1),
    "split": lambda n, x: gt.split(x, n)[1], "array_split": lambda n, x: gt.array_split(x, n)[0],
    "split(dim)": lambda n, x: gt.split(x, n, dim=0)[1], "roll": lambda n, x: gt.roll(x, n),
    "partition": lambda n, x: gt.partition(x, n), "argpartition": lambda n, x: x.argpartition(n),
    "histogram": lambda n, x: gt.histogram(x, n)[0], "view": lambda n, x: x.view(n, 2),
    "histogram2d": lambda n, x: gt.histogram2d(x, x, (n, n))[0], "tile": lambda n, x: gt.tile(x, n),
    "polyfit": lambda n, x: gt.polyfit(x, x, n).shape, "topk": lambda n, x: gt.topk(x, n)[0],
    "windows": lambda n, x: gt.lib.stride_tricks.sliding_window_view(x, n),
    "tensordot": lambda n, x: gt.tensordot(x.view(1, 6), x.view(1, 6), (n - n, n - n)),
    "polygamma": lambda n, x: gt.special.polygamma(np.int64(n), x + 1.0),
    "mvlgamma": lambda n, x: gt.mvlgamma(x + 4.0, n),
    "quantile": lambda n, x: gt.quantile(
        x.view(2, 3), 0.5, axis=n - n + 1, method="inverted_cdf", weights=x[:3] + 1
    ),
    "select": lambda n, x: gt.select(x, n - n, n),
    "interpolate": lambda n, x: gt.interpolate(x.view(1, 1, 6).float(), size=n),
    "pixel_shuffle": lambda n, x: gt.pixel_unshuffle(x.view(1, 1, 6, 1).repeat(3, 3), n),
    "pool": lambda n, x: gt.avg_pool1d(x.view(1, 1, 6).float(), n, stride=(n,)),
    "adaptive": lambda n, x: gt.adaptive_max_pool1d(x.view(1, 1, 6).float(), n),
    "conv": lambda n, x: gt.conv1d(
        x.view(1, 3, 2).float(), gt.ones((3, 1, 1)), groups=n, padding=n, stride=n
    ),
    "group_norm": lambda n, x: gt.group_norm(x.view(1, 6).float(), n),
    "local_response_norm": lambda n, x: gt.local_response_norm(x.view(1, 6).float(), n),
    "channel_shuffle": lambda n, x: gt.channel_shuffle(x.view(1, 6, 1), n),
    "random": lambda n, x: (gt.random.normal(size=n).shape, gt.random.choice(n).shape),
    "permutation": lambda n, x: sorted(gt.random.permutation(n).tolist()),
    "choice": lambda n, x: gt.random.choice(n, n, replace=False).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", INT_CALLS)
def test_ints_may_be_of_numpy_or_tensors_without_axes(where, name):
    with gt.Device(where):
        x = gt.arange(6)
        want = INT_CALLS[name](3, x)
        for number in (np.int64(3), np.int32(3), gt.asarray(3), gt.max(x[:4])):
            got = INT_CALLS[name](number, x)
            if isinstance(want, gt.Tensor):
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                assert got.tolist() == want.tolist()
                continue
            assert got == want


def test_shapes_are_ints(where):
    for wrong in (gt.asarray(2.0, device=where), np.array(2.0), 2.5):
        with pytest.raises(TypeError, match=r"shape: got .*2\.\d?.* as an extent; expected an int"):
            gt.zeros(wrong, device=where)
    assert gt.zeros(np.array(3), device=where).shape == (3,)
    assert gt.zeros(gt.asarray([2, 3], device=where), device=where).shape == (2, 3)
    with pytest.raises(ValueError, match="kth: got 2.5; expected an int below 3"):
        gt.partition(gt.ones(3, device=where), 2.5)


def test_numbers_may_be_of_numpy(where):
    with gt.Device(where):
        x = gt.asarray([[-1.0, 0.5, 2.0]])
        for call in (
            lambda n: gt.leaky_relu(x, n), lambda n: gt.elu(x, n), lambda n: gt.hardtanh(x, -n, n),
            lambda n: gt.softshrink(x, n), lambda n: gt.gaussian_nll_loss(x, x, n),
            lambda n: gt.lp_pool1d(x[None], n, 2), lambda n: gt.linalg.cond(gt.eye(2), n),
            lambda n: gt.avg_pool2d(x[None], 1, divisor_override=n),
            lambda n: gt.interpolate(x[None], scale_factor=n),
            lambda n: gt.dropout(x, n, training=False), lambda n: gt.gumbel_softmax(x, n) * 0,
        ):  # fmt: skip
            for number in (np.float32(1), np.float16(1), np.int64(1)):
                assert call(number).tolist() == call(1.0).tolist()
        for function in (gt.linalg.matrix_norm, gt.linalg.norm):
            with pytest.raises(TypeError, match="norm: ord: got Tensor; expected a number, a str"):
                function(x, ord=gt.asarray(2))


def test_a_distance_may_be_a_tensor_without_axes(where, rng):
    a = rng.normal(size=(4, 5))
    with gt.Device(where):
        x, places = gt.asarray(a), gt.asarray([0.0, 0.5, 1.0], dtype="float64")
        for order in (1, 2):
            got = gt.gradient(x, places[1] - places[0], edge_order=order)
            for one, want in zip(got, np.gradient(a, 0.5, edge_order=order), strict=True):
                np.testing.assert_allclose(one.numpy(), want, 1e-12, 1e-12)
        assert gt.gradient(x[0].astype("float32"), places[1]).dtype == "float32"


def test_counts_may_be_arrays(where):
    with gt.Device(where):
        x = gt.reshape(gt.arange(6), (2, 3))
        for make in (np.array, gt.asarray, tuple):
            assert gt.tile(x, make([2, 1])).tolist() == gt.tile(x, (2, 1)).tolist()
            got = gt.roll(x, make([1, 2]), (0, 1))
            assert got.tolist() == np.roll(x.numpy(), (1, 2), (0, 1)).tolist()
            rng, size = gt.random.default_rng(3), make([2, 3])
            for draw in (
                rng.normal(size=size), rng.choice(9, size), rng.choice(9, size, replace=False),
                rng.multinomial(5, [0.5, 0.5], size), rng.dirichlet([1, 1], size),
                rng.multivariate_normal([0, 0], [[1, 0], [0, 1]], size), rng.vonmises(0, 1, size),
            ):  # fmt: skip
                assert draw.shape[:2] == (2, 3)


def test_lists_are_permuted_and_transformed(where):
    with gt.Device(where):
        got = gt.random.permuted([[1, 2], [3, 4]])
        assert got.shape == (2, 2) and sorted(gt.ravel(got).tolist()) == [1, 2, 3, 4]
        x = [[1.0, 2.0], [3.0, 5.0]]
        for name in ("hfft2", "hfftn", "ihfft2"):
            function = getattr(gt.fft, name)
            assert function(x).tolist() == function(gt.asarray(x)).tolist()
