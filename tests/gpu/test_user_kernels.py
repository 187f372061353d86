"""Kernels that users write, compiled by NVRTC and launched on a real GPU."""

import pytest

import gputensor as gt
from gputensor._driver.registry import cuda_device_count
from gputensor._kernels.launch.nvrtc import CompileError
from tests.conformance.tensor import user_kernel_cases as cases

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("check", cases.CHECKS, ids=lambda one: one.__name__)
def test_kernels_of_programs(check, rng):
    check("cuda", rng)


def test_dynamic_shared_memory_and_options(rng):
    text = r"""extern "C" __global__ void reverse(float* x, int n) {
        extern __shared__ float kept[];
        kept[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = kept[n - 1 - threadIdx.x];
    }"""
    x = gt.arange(256, dtype="float32", device="cuda")
    kernel = gt.RawKernel(text, "reverse", ("--use_fast_math",))
    for turn, nbytes in enumerate((1024, 2048, 100_000, 1024)):
        kernel((1,), (256,), (x, 256), shared_mem=nbytes)
        assert x.tolist() == list(range(256))[:: 1 if turn % 2 else -1]
        assert kernel.max_dynamic_shared_size_bytes >= nbytes
    assert 0 < kernel.num_regs < 256 and kernel.binary_version >= 70


def test_the_compilers_log_names_the_line():
    kernel = gt.RawKernel('extern "C" __global__ void f(float* x) {\n  x[0] = nothing;\n}', "f")
    with pytest.raises(CompileError, match=r"f.cu\(2\)"):
        kernel((1,), (1,), (gt.zeros(1, device="cuda"),))


def test_a_graph_keeps_the_launch(rng):
    kernel = gt.RawKernel(cases.ADD, "scaled_add")
    x, y = gt.ones(300, device="cuda"), gt.zeros(300, "float64", device="cuda")
    out = gt.empty_like(x)
    kernel((3,), (128,), (x, y, out, 300, 0, False))
    graph = gt.graphs.CUDAGraph()
    with gt.graphs.graph(graph):
        kernel((3,), (128,), (x, y, out, 300, 0, False))
    x += 4
    graph.replay()
    assert out.tolist() == [10.0] * 300
