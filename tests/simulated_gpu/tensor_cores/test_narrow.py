"""Products of some rows on a simulated GPU: any layout, alignment and shape of blocks."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import nvrtc
from gputensor.blas import backends
from tests.support.products import narrow_checks, tensor_cores_on_cpu
from tests.support.used_kernels import UsedKernels

pytestmark = [
    pytest.mark.orders("deferred"),
    pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="8"),
]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "tf32", "float32"])
def test_narrow(rng, monkeypatch, name):
    monkeypatch.setattr(nvrtc, "compile_source", tensor_cores_on_cpu.compile_source)
    used = UsedKernels(monkeypatch, backends, ["narrow_program"])
    for least in (257, 1, 1):  # a kernel of tiny products takes fewer terms
        shape = narrow_checks.SHAPES[rng.integers(len(narrow_checks.SHAPES))]
        form = (*shape, int(rng.choice((1, 2))), int(rng.choice((1, 2, 4, 8))))
        given = narrow_checks.case(rng, most=500, least=least, fewest=17)
        narrow_checks.check(rng, name, given, form)
    assert used(), "another kernel took the products"


@pytest.mark.process("own", FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="132")
def test_rule(rng, monkeypatch):
    """Few results of many terms gain; a library has enough tiles for wide aligned weights."""
    monkeypatch.setattr(nvrtc, "compile_source", tensor_cores_on_cpu.compile_source)
    used = UsedKernels(monkeypatch, backends, ["narrow_program"])

    def forms(m, n, k):
        before = len(used())
        x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
        got = gt.matmul(gt.asarray(x, device="cuda"), gt.asarray(w, device="cuda")).numpy()
        exact = x.astype(float) @ w.astype(float)
        np.testing.assert_allclose(got, exact, rtol=2e-3, atol=2e-2)
        return used()[before:]

    assert forms(17, 30, 900) and forms(50, 41, 525)
    assert not forms(48, 4096, 512)
