"""Tensors in SciPy, scikit-learn, einops, xarray and Dask, and NumPy's own protocols.

library_cases.py has the programs.
The test extra installs these libraries; tests of missing ones are skipped.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_programs_of_other_libraries_keep_tensors():
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]
        + ["tests/interop/library_cases.py"],
        cwd=ROOT,
        env=os.environ
        | {"SCIPY_ARRAY_API": "1", "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


#: Calls of NumPy that this library carries out; each has to equal NumPy's result on arrays.
CALLS = """
    np.add(x,x) np.sqrt(np.abs(x)) np.add(x,1) np.add.reduce(x)
    np.add.reduce(x,axis=1,keepdims=True) np.maximum.reduce(x,axis=None) np.add.accumulate(x,0)
    np.multiply.outer(x[0],x[0]) np.dot(x,x.T) np.dot(x[0],x[0]) np.dot(x,2)
    np.concatenate([x,x],axis=1) np.where(x>0,x,0) np.stack([x,x])
    np.mean(x,axis=0,keepdims=True) np.std(x,ddof=1) np.linalg.norm(x) np.linalg.det(x[:,:3])
    np.fft.fft(x) np.fft.fft(x,2,0) np.fft.fftn(x,(2,2),(0,1)) np.sort(x,axis=0)
    np.zeros_like(x,shape=(2,)) np.full_like(x,3,order='C') np.ones_like(x,dtype='float32')
    np.einsum('ij,kj->ik',x,x) np.clip(x,-1,1) np.around(x,2) np.expand_dims(x,0)
    np.broadcast_to(x,(2,3,4)) np.cumsum(x,1) np.tensordot(x,x,axes=([1],[1]))
    np.percentile(x,50) np.unique(x) np.argmax(x,axis=0) np.transpose(x) np.ravel(x) np.copy(x)
    np.logical_and(x,x) np.matmul(x,x.T) np.vstack([x,x]) np.pad(x,1) np.trace(x) np.tile(x,2)
    np.repeat(x,2,axis=0) np.median(x) np.nanmean(x) np.kron(x,x) np.divmod(x,2)[1]
    np.asarray([1,2],like=x) np.zeros(3,like=x) np.float64(2)*x np.true_divide(x,2)
    np.arctan2(x,x) np.power(x,2) np.invert(x>0) np.interp(x[0],s,s)
    np.add(x,x,dtype='float32') np.array([1,2],ndmin=2,like=x)
""".split()


@pytest.mark.parametrize("text", CALLS)
def test_function_of_numpy_keeps_tensors(text, device, rng):
    array = rng.normal(size=(3, 4))
    x = gt.asarray(array, device=device)
    given = {"np": np, "s": np.arange(4.0)}
    theirs = eval(text, given | {"x": array})
    ours = eval(text, given | {"x": x, "s": gt.asarray(given["s"], device=device)})
    assert isinstance(ours, gt.Tensor) and ours.device == x.device
    assert ours.shape == np.shape(theirs) and ours.dtype.kind == np.asarray(theirs).dtype.kind
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6, atol=1e-12)


def test_properties_that_numpy_reads_are_not_tensors(device):
    x = gt.zeros((3, 4), device=device)
    assert np.shape(x) == (3, 4) and np.ndim(x) == 2 and np.size(x) == 12 and np.size(x, 1) == 4
    assert not np.iscomplexobj(x) and np.isrealobj(x)
    assert np.allclose(x, x) is True and np.array_equal(x, x) is True
    assert np.shares_memory(x, x[1:]) and not np.shares_memory(x[:1], x[1:])
    assert np.result_type(x, 1.0) == x.dtype
    y = np.add(x, 1, out=x)
    assert y is x and x.tolist() == [[1] * 4] * 3


@pytest.mark.parametrize(
    "text",
    ["np.add(x, a)", "a + x", "a * x", "np.add(a, x)", "np.concatenate([x, a])", "np.dot(a, x)"]
    + ["np.where(a > 0, x, 0)", "np.add(a, a, out=x)", "np.add(x, x, out=a)", "np.isnat(x)"]
    + ["np.busday_offset(x, 1)"],
)
def test_calls_that_would_copy_silently_raise(text, device):
    x, a = gt.ones(3, device=device), np.ones(3)
    with pytest.raises(TypeError, match="got .*; expected .*"):
        eval(text, {"np": np, "x": x, "a": a})
    assert x.tolist() == [1, 1, 1] and a.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["save", "savez", "savetxt"])
def test_numpys_functions_for_files_name_those_of_tensors(name, device, tmp_path):
    path = tmp_path / "none"
    with pytest.raises(TypeError, match=f"np.{name}: got a Tensor; .* gputensor.{name} takes ten"):
        getattr(np, name)(path, gt.ones(3, device=device))
    assert not list(tmp_path.iterdir())


def test_conditions_of_ufuncs_keep_other_elements_of_out(device):
    x = gt.asarray([1.0, -1.0, 2.0], device=device)
    out = gt.full(3, 7.0, device=device)
    assert np.add(x, x, out=out, where=x > 0).tolist() == [2.0, 7.0, 4.0]


def test_ufuncs_take_dtype_and_casting_as_numpy_does(device):
    x = gt.asarray([1.0, -1.0, 2.0], device=device)
    assert np.add(x, x, casting="no").tolist() == [2.0, -2.0, 4.0]
    assert np.add(x, x, dtype="float64", casting="safe").dtype == np.float64
    assert np.multiply(x, 2, dtype="int32", casting="unsafe").tolist() == [2, -2, 4]
    with pytest.raises(TypeError, match="add: dtype: got float32; expected int32, or one"):
        np.add(x, x, dtype="int32")
    with pytest.raises(TypeError, match="exp: dtype: got bool; expected"):
        np.exp(x, dtype=bool)
    with pytest.raises(ValueError, match="casting: got 'none'; expected"):
        np.add(x, x, casting="none")
    assert x.tolist() == [1.0, -1.0, 2.0]


@pytest.mark.parametrize("order", ["gputensor, einops._backends", "einops._backends, gputensor"])
def test_a_library_with_other_tables_is_imported_with_a_warning(tmp_path, order):
    (tmp_path / "einops").mkdir()
    (tmp_path / "einops" / "__init__.py").write_text("__version__ = '0.0'")
    (tmp_path / "einops" / "_backends.py").write_text("")
    run = subprocess.run(
        [sys.executable, "-c", f"import {order}; print('imported')"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.stdout == "imported\n", run.stderr
    assert "RuntimeWarning: einops 0.0 will not recognise tensors: AttributeError" in run.stderr
