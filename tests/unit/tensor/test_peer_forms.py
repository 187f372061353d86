"""Forms of calls in programs for NumPy, CuPy and PyTorch: keywords and names, and their results."""

import numpy as np
import pytest

import gputensor as gt

M = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def test_products_take_a_dtype_for_their_operands(device):
    x = gt.asarray([[200, 100]], "uint8", device=device)
    assert gt.matmul(x, x.T, dtype="int32").tolist() == [[50000]]
    assert gt.matmul(x, x.T, dtype="float64", order="K", casting="same_kind").dtype == gt.float64
    assert gt.vecdot(x[0], x[0], dtype="int32").item() == 50000
    assert gt.matmul(x.T, x, order="F").T.is_contiguous
    with pytest.raises(TypeError, match="matmul: dtype: got uint8; expected float64, or one"):
        gt.matmul(x, x.T.astype("float64"), casting="no")


def test_products_of_vectors_take_out(device):
    m = gt.asarray(M, device=device)
    out, row = gt.empty(2, device=device), gt.empty(3, device=device)
    assert gt.matvec(m, m[0], out=out) is out
    assert out.tolist() == np.matvec(M, M[0]).tolist()
    assert gt.vecmat(m[:, 0], m, out=row) is row
    assert row.tolist() == np.vecmat(M[:, 0], M).tolist()
    assert gt.vecdot(m, m, out=out) is out and out.tolist() == np.vecdot(M, M).tolist()


@pytest.mark.parametrize("name", ["empty_like", "ones_like", "zeros_like"])
def test_like_functions_take_a_prototype(device, name):
    made = getattr(gt, name)(prototype=gt.asarray(M, device=device))
    assert made.shape == M.shape and made.dtype == M.dtype
    assert gt.full_like(prototype=made, fill_value=3).tolist() == [[3] * 3] * 2


@pytest.mark.parametrize("name", ["rand", "randn"])
def test_draws_take_extents_as_size(device, name):
    draw = getattr(gt, name)
    gt.manual_seed(5)
    first = draw(2, 3, device=device).tolist()
    gt.manual_seed(5)
    assert draw(size=(2, 3), device=device).tolist() == first
    assert getattr(gt.random.default_rng(0, device), name)(size=(2,)).shape == (2,)
    with pytest.raises(TypeError, match="size: got extents as well"):
        draw(2, size=(2, 3), device=device)


def test_the_seed_of_default_generators_is_known(device):
    gt.manual_seed(7)
    assert gt.initial_seed() == gt.random.initial_seed(device) == gt.cuda.initial_seed(device) == 7


def test_functions_of_torch_that_were_methods(device):
    x = gt.asarray([-1.0, 2.0, 3.0], device=device)
    index, m = (gt.asarray([1], device=device),), gt.asarray(M, device=device)
    assert gt.detach(x) is x and x.is_leaf
    assert gt.index_put(x, index, gt.asarray(5.0, device=device)).tolist() == [-1, 5, 3]
    assert [one.tolist() for one in gt.split_with_sizes(x, [1, 2])] == [[-1], [2, 3]]
    assert [one.shape for one in m.split_with_sizes((1, 2), dim=1)] == [(2, 1), (2, 2)]
    assert gt.relu_(x) is x and x.tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="sizes"):
        gt.split_with_sizes(x, [1, 1])


def test_channels_last_is_an_order_of_memory(device):
    x = gt.reshape(gt.arange(24.0, device=device), (1, 2, 3, 4))
    last = x.contiguous(memory_format=gt.channels_last)
    assert last.shape == x.shape and last.strides == tuple(4 * one for one in (24, 1, 8, 2))
    assert gt.array_equal(last, x)
    assert x.to(memory_format="torch.channels_last").strides == last.strides
    assert x.to(gt.float16, memory_format=gt.channels_last).strides == (48, 2, 16, 4)
    assert last.contiguous(memory_format=gt.channels_last).data_ptr() == last.data_ptr()
    assert last.contiguous(memory_format=gt.contiguous_format).is_contiguous
    assert last.clone(memory_format=gt.channels_last).strides == last.strides
    assert gt.empty((1, 2, 3, 4), memory_format=gt.channels_last).strides == last.strides
    assert x.to("float32", memory_format=gt.preserve_format) is x
    with pytest.raises(ValueError, match="dimensions; expected 4"):
        x[0].contiguous(memory_format=gt.channels_last)
    with pytest.raises(ValueError, match="memory_format: got 'rows'"):
        x.contiguous(memory_format="rows")


def test_exp2_of_complex_infinities_follows_exp(device):
    values = [complex(np.inf, 0), complex(-np.inf, 0), complex(-np.inf, 2), 1 + 2j, 3 + 0j]
    found = gt.exp2(gt.asarray(values, "complex128", device=device)).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, np.exp2(np.asarray(values)), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ldexp_keeps_floats_of_16_bits(device, dtype):
    x = gt.asarray([1.5, -3.25, 0.75, 1023 / 1024], device=device).astype(dtype)
    found = gt.ldexp(x, gt.asarray([4, -20, -24, 15], device=device))
    assert found.dtype == x.dtype
    if dtype == "float16":
        assert found.tolist() == np.ldexp(x.numpy(), [4, -20, -24, 15]).tolist()


def test_errors_name_the_index_and_the_axis():
    x = gt.zeros((2, 3), device="host")
    for wrong in (-1, 7):
        with pytest.raises(IndexError, match=f"one_hot: index in x: got {wrong}; expected 0 to 2"):
            gt.one_hot(gt.asarray([0, wrong], device="host"), 3)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 1 with size 3"):
        gt.scatter_add(x, 1, gt.asarray([[5]], device="host"), x)
    assert gt.scatter_add(x, 1, gt.asarray([[-1]], device="host"), x + 1).tolist() == [
        [0, 0, 1],
        [0, 0, 0],
    ]


def test_dtypes_of_an_unknown_device_raise():
    info = gt.__array_namespace_info__()
    for call in (info.dtypes, info.default_dtypes):
        assert call(device="host") == call()
        with pytest.raises(ValueError, match="device: got 'nope'"):
            call(device="nope")


@pytest.mark.parametrize("name", ["add", "exp", "less", "subtract", "hypot", "exp2", "clip"])
def test_elementwise_functions_take_order_and_casting(device, name):
    x = gt.asarray(M, device=device)
    operands = {"exp": 1, "exp2": 1, "clip": 3}.get(name, 2)
    function = getattr(gt, name)
    plain = function(*[x] * operands)
    for order in "CKA":
        found = function(*[x] * operands, order=order, casting="same_kind")
        assert gt.array_equal(found, plain) and found.is_contiguous
    assert gt.array_equal(function(*[x] * operands, casting="unsafe"), plain)
    assert gt.array_equal(function(*[x] * operands, order="F", casting="no"), plain)
    with pytest.raises(ValueError, match=f"{name}: casting: got 'none'; expected no, equiv"):
        function(*[x] * operands, casting="none")


def test_clip_takes_a_dtype_and_a_mask(device):
    x = gt.asarray(M, device=device)
    for limits in ((1, 4), (None, 4), (1, None), (1, gt.asarray(4.0, device=device))):
        found = gt.clip(x, *limits, dtype="float64")
        host = [one.item() if isinstance(one, gt.Tensor) else one for one in limits]
        assert found.dtype == gt.float64
        assert found.tolist() == np.clip(M, *host, dtype="float64").tolist()
    out = gt.zeros((2, 3), device=device)
    assert gt.clip(x, 1, 4, out, where=x > 2) is out
    assert out.tolist() == np.clip(M, 1, 4, out=np.zeros_like(M), where=M > 2).tolist()
    assert x.clip(1, 4, dtype="float64", where=x > 2).tolist() == [[0, 0, 0], [3, 4, 4]]
    with pytest.raises(TypeError, match="clip: dtype"):
        gt.clip(gt.asarray([1j], device=device), 0, 1, dtype="float32")


def test_capsules_are_imported_once(device):
    x = gt.asarray(M, device=device)
    capsule = x.toDlpack()
    found = gt.fromDlpack(capsule)
    assert found.data_ptr() == x.data_ptr() and found.tolist() == M.tolist()
    with pytest.raises(BufferError, match="no unused DLPack capsule"):
        gt.from_dlpack(capsule)
    new = gt.from_dlpack(x.__dlpack__(max_version=(1, 0)), assume_writable=True)
    new += 1
    assert x.tolist() == (M + 1).tolist()
    assert gt.from_dlpack(np.arange(3).__dlpack__(), copy=True).tolist() == [0, 1, 2]


def test_storage_offset_counts_elements(device):
    x = gt.asarray(M, device=device)
    assert x.storage_offset() == 0 and x[1, 1:].storage_offset() == 4
    assert x[:, ::-1].storage_offset() == 2 and x[2:].storage_offset() == 0
