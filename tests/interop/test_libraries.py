"""Arrays of NumPy, torch and CuPy become tensors, and tensors become such arrays."""

import importlib
import warnings

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry
from tests.support.tensor_arrays import check_same


def library(name):
    """The module, or a skip that names what the test needs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"needs {name}: install it beside gputensor")


def need_gpu():
    if registry.cuda_device_count() == 0:
        pytest.skip("needs a CUDA device: run this on a machine with an NVIDIA GPU and driver")


def test_numpy_functions_take_tensors_by_copy():
    x = gt.asarray([[3.0, 1.0], [2.0, 4.0]], device="host")
    assert np.sort(np.asarray(x), axis=None).tolist() == [1, 2, 3, 4]
    assert np.asarray(x, dtype="float64").dtype == np.float64
    with pytest.raises(
        ValueError, match="copy: got False; expected True or None, because NumPy's array is a copy"
    ):
        np.asarray(x, copy=False)


def test_numpy_operators_do_not_convert_tensors():
    x = gt.ones(3, device="host")
    with pytest.raises(TypeError):
        np.add(np.ones(3), x)
    with pytest.raises(TypeError):
        np.ones(3) * x


def test_ndarray_is_shared_when_copy_is_false():
    a = np.arange(6.0).reshape(2, 3)
    x = gt.asarray(a.T, device="host", copy=False)
    assert x.data_ptr() == a.ctypes.data
    x[0, 0] = 7
    assert a[0, 0] == 7


def test_torch_takes_the_values_of_a_tensor():
    torch = library("torch")
    x = gt.asarray([[1.0, 2.0], [3.0, 4.0]], dtype="float64", device="host")
    for take in (torch.asarray, torch.as_tensor, torch.tensor, torch.from_dlpack):
        taken = take(x)
        assert taken.dtype is torch.float64 and taken.tolist() == x.tolist()


@pytest.mark.parametrize("name", ["float32", "int64", "bool", "bfloat16", "complex64"])
def test_torch_cpu_tensors_cross_both_ways(name):
    torch = library("torch")
    source = torch.tensor([[1, 0], [1, 1]], dtype=getattr(torch, name))
    x = gt.from_dlpack(source)
    assert x.dtype.name == name and x.data_ptr() == source.data_ptr()
    back = torch.from_dlpack(x)
    assert back.data_ptr() == source.data_ptr() and torch.equal(back, source)
    assert gt.asarray(source, device="host").dtype.name == name


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8", "float16"])
def test_torch_cuda_tensors_cross_both_ways_in_stream_order(name):
    torch = library("torch")
    need_gpu()
    dtype = getattr(torch, name)
    for _ in range(10):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            big = torch.ones(4 << 20, device="cuda")
            for _ in range(20):
                big = big * 1.0
            source = (big * 3).to(dtype)
        x = gt.asarray(source)
        with torch.cuda.stream(side):
            pass
        side.synchronize()
        assert x.data_ptr() == source.data_ptr()
        ours = gt.Stream("cuda")
        with gt.stream(ours):
            y = x + x
        theirs = torch.from_dlpack(y)
        assert theirs.dtype == dtype and bool((theirs == 6).all())


def test_cupy_arrays_cross_both_ways():
    cupy = library("cupy")
    need_gpu()
    source = cupy.arange(12, dtype="float32").reshape(3, 4)
    x = gt.asarray(source)
    assert x.data_ptr() == source.data.ptr
    y = (x * 2).T
    back = cupy.asarray(y)
    assert back.data.ptr == y.data_ptr()
    np.testing.assert_array_equal(cupy.asnumpy(back), cupy.asnumpy(source).T * 2)


def test_array_api_namespace_has_the_standard_names():
    x = gt.ones((2, 2), device="host")
    xp = x.__array_namespace__(api_version="2022.12")
    assert xp is gt
    names = """abs acos acosh add all any arange argmax argmin asarray asin asinh astype atan atan2
        atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift
        bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip concat conj copysign cos cosh
        divide e empty empty_like equal exp expand_dims expm1 eye finfo flip floor floor_divide
        from_dlpack full full_like greater greater_equal hypot iinfo imag inf isdtype isfinite isinf
        isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not
        logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum
        moveaxis multiply nan negative newaxis
        nonzero not_equal ones ones_like permute_dims pi positive pow
        prod real reciprocal remainder repeat reshape result_type roll round sign signbit sin sinh
        sqrt square squeeze stack std subtract sum take tan tanh tile tril triu trunc
        unstack var vecdot where zeros zeros_like""".split()
    missing = [name for name in names if not hasattr(xp, name)]
    assert not missing
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="1999.01")
    info = gt.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == gt.float32
    assert info.dtypes(kind="bool") == {"bool": gt.bool}
    assert str(info.devices()[0]) == "host"


def test_array_consumer_code_runs_on_tensors(rng=None):
    """A function written against the array API gives the results of NumPy."""

    def softmax(x):
        xp = x.__array_namespace__()
        shifted = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return shifted / xp.sum(shifted, axis=-1, keepdims=True)

    a = np.random.default_rng().normal(size=(4, 5)).astype(np.float32)
    check_same(softmax(gt.asarray(a, device="host")), softmax(a), 1e-6)


def test_numpy_tells_whether_an_array_shares_memory_with_a_tensor():
    a = np.zeros(4)
    shared, copied = gt.asarray(a, device="host", copy=False), gt.asarray(a, device="host")
    for tells in (np.may_share_memory, np.shares_memory):
        assert tells(a, shared) and tells(shared, a[1:]) and not tells(a[:2], shared[2:])
        assert not tells(np.asarray(copied), copied) and not tells(a, copied)
