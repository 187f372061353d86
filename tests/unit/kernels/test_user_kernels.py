"""Kernels written by users: their source compiles, and errors name wrong arguments."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import nvrtc
from tests.conformance.tensor.user_kernel_cases import ADD, SUM
from tests.support.nvrtc_library import needs_nvrtc

TARGET = "sm_90"


def compiled(program):
    return nvrtc.compile_source(program.text(), TARGET, program.options)


@needs_nvrtc
@pytest.mark.parametrize(("text", "name", "types"), [(ADD, "scaled_add", 6), (SUM, "block_sum", 3)])
def test_raw_kernels_compile(text, name, types):
    kernel = gt.RawKernel(text, name)
    kinds = ["GputensorPointer"] * 3 + ["long long", "double", "bool"][: types - 3]
    kinds = kinds[:2] + ["int"] if types == 3 else kinds
    assert compiled(kernel._program(tuple(kinds)))
    assert kernel._program(tuple(kinds)) is kernel._program(tuple(kinds))


@needs_nvrtc
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (ADD, "scaled_add"),
        ('extern "C" __global__ void f() {}', "f"),
        ("template <class T, int N> __global__ void f(T* __restrict__ x, T y) { *x = y; }",
         "f<double, 3>"),
        ("namespace a { __global__ void g(const int n, double const* const x, float4 y) {} }",
         "a::g"),
    ],
)  # fmt: skip
def test_raw_kernels_compile_with_declared_parameters(text, name):
    assert compiled(gt.RawKernel(text, name)._known_program())


@needs_nvrtc
def test_a_faulty_text_is_reported_at_its_own_line():
    kernel = gt.RawKernel('extern "C" __global__ void f(float* x) {\n  x[0] = nothing;\n}', "f")
    with pytest.raises(nvrtc.CompileError, match=r"f.cu\(2\)"):
        compiled(kernel._program(("GputensorPointer",)))


@needs_nvrtc
@pytest.mark.parametrize(
    ("text", "name", "threads"),
    [
        (
            '#define N 64\nextern "C" __global__ void __launch_bounds__(2 * (N), 2) f(int* x) {}',
            "f",
            128,
        ),
        ("__launch_bounds__(96) __global__ void\nf(int* x) {}", "f", 96),
        ("template <int N> __global__ void __launch_bounds__(32) f(int* x) {}", "f<3>", 32),
        ("template <int N> __global__ void __launch_bounds__(N) f(int* x) {}", "f<64>", None),
    ],
)
def test_bounds_of_launches_are_taken_over(text, name, threads):
    program = gt.RawKernel(text, name)._program(("GputensorPointer",))
    ptx = nvrtc.compile_source(program.text(), "compute_90").decode()
    assert (f".maxntid {threads}" in ptx) is (threads is not None)
    assert (".maxntid" in ptx) is (threads is not None)


@needs_nvrtc
@pytest.mark.parametrize("codes", [(11, 11, 11), (10, 9, 10), (4, 4, 4), (13, 13, 13), (0, 1, 12)])
@pytest.mark.parametrize("is_flat", [True, False])
def test_elementwise_kernels_compile(codes, is_flat):
    kernel = gt.ElementwiseKernel("A x, B y", "C z", "z = x + y" if codes[0] else "z = x || y")
    parameters = [*kernel._inputs, *kernel._outputs]
    assert compiled(kernel._program(parameters, codes, is_flat))


@needs_nvrtc
@pytest.mark.parametrize("step", ["whole", "part", "parts"])
@pytest.mark.parametrize("codes", [(11, 11), (9, 10), (13, 12), (0, 4)])
def test_reduction_kernels_compile(codes, step):
    mapped = "x.re" if codes[0] == 13 else "x"
    kernel = gt.ReductionKernel("A x", "B y", mapped, "a + b", "y = a", "0", preamble="// own")
    parameters = [*kernel._inputs, *kernel._outputs]
    kind, nbytes = kernel._reduce_kind(parameters, codes)
    assert nbytes in (4, 8)
    assert compiled(kernel._program(parameters, codes, step == "part", kind, step))


@needs_nvrtc
def test_kernels_of_modules_compile(tmp_path):
    text = "template <class T, int N> __global__ void f(T* x) { x[N] = N; }"
    (tmp_path / "f.cu").write_text(text)
    module = gt.RawModule(path=tmp_path / "f.cu", options=("--use_fast_math",))
    assert compiled(module.get_function("f<double, 3>")._program(("GputensorPointer",)))


def test_errors_of_host_devices_give_the_reason(device):
    x = gt.ones(3, device=device)
    raw = gt.RawKernel(ADD, "scaled_add")
    both = gt.ElementwiseKernel("T x", "T z", "z = x")
    total = gt.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")
    for call in (lambda: raw((1,), (1,), (x, x, x, 1, 1, True)), lambda: both(x), lambda: total(x)):
        with pytest.raises(ValueError, match="got tensors on host.*; expected tensors on a CUDA"):
            call()


def test_wrong_arguments_are_named(device):
    x = gt.ones(3, device=device)
    raw = gt.RawKernel(ADD, "scaled_add")
    both = gt.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[i]", "both")

    def total(out, **others):
        return gt.ReductionKernel("T x", out, "x", "a + b", "y = a", None, "total", **others)

    for call, error, message in (
        (lambda: gt.RawKernel(3, "f"), TypeError, "RawKernel: code: got int"),
        (lambda: gt.RawKernel("", "2f"), ValueError, "RawKernel: name: got '2f'"),
        (lambda: gt.RawKernel("", "f", "-x"), TypeError, "RawKernel: options: got str"),
        (lambda: gt.RawKernel("", "f", jitify=True), ValueError, "RawKernel: backend"),
        (lambda: raw((0,), (1,), (x,)), ValueError, r"RawKernel: grid: got \(0,\)"),
        (lambda: raw((1,), (2048,), (x,)), ValueError, r"RawKernel: block: got \(2048,\)"),
        (lambda: raw((1.5,), (1,), (x,)), TypeError, "RawKernel: grid: got tuple"),
        (lambda: raw((1, 65536), (1,), (x,)), ValueError, r"grid: got \(1, 65536\); .*at most"),
        (lambda: raw((1,), (1, 1, 65), (x,)), ValueError, r"block: got \(1, 1, 65\); .*at most"),
        (lambda: raw((1,), (1,), (3,)), ValueError, "args: got no tensor"),
        (lambda: raw((1,), (1,), (x, "a")), TypeError, "argument: got str"),
        (lambda: raw((1,), (1,), (x,), shared_mem=-1), ValueError, "shared_mem: got -1"),
        (lambda: gt.RawModule(), TypeError, "RawModule: code, path: got neither"),
        (lambda: gt.RawModule(code="", path="x"), TypeError, "RawModule: code, path: got both"),
        (lambda: gt.RawModule(code="", jitify=True), ValueError, "RawKernel: backend"),
        (
            lambda: gt.RawModule(code="", name_expressions=["f<int>"]).get_function("f<char>"),
            ValueError,
            "RawModule: name: got 'f<char>'; expected one of the name expressions",
        ),
        (lambda: gt.RawModule(code="").get_function("2"), ValueError, "name: got '2'"),
        (lambda: total("raw T y"), ValueError, "ReductionKernel: out_params: got 'raw T y'"),
        (lambda: total("T y", size=3), TypeError, "ReductionKernel: keywords: got size"),
        (lambda: total("T y")(x, axis=1), IndexError, "axis: got 1"),
        (lambda: total("T y")(x, axis=(0, 0)), ValueError, "axis: got .*; expected different"),
        (lambda: total("T y")(x, x, x), TypeError, "got 3 arguments; expected 1 inputs, or 2"),
        (lambda: total("T y")(3.0), TypeError, "got no tensor that is not raw"),
        (lambda: total("T y")(x[:0]), ValueError, "got no elements to reduce, and no identity"),
        (lambda: total("T y")(x, out=x), TypeError, "total: y: got Tensor"),
        (lambda: total("T y", reduce_type="Q")(x), ValueError, "reduce_type: got 'Q'"),
        (lambda: gt.ElementwiseKernel("T", "T z", ""), ValueError, "in_params: got 'T'"),
        (lambda: gt.ElementwiseKernel("T x", "T x", ""), ValueError, "out_params: got 'T x'"),
        (lambda: gt.ElementwiseKernel("T x", "U z", "")(x), TypeError, "z: got no argument of"),
        (lambda: both(x), TypeError, "ElementwiseKernel both: got 1 arguments; expected 2 inputs"),
        (lambda: both(1, 2), TypeError, "arguments: got numbers only"),
        (lambda: both(x, np.ones(3)), TypeError, "y: got ndarray; expected a Tensor or a number"),
        (lambda: both(x.astype("float64"), x), TypeError, "y: got float32; expected float64, wh"),
        (lambda: both(2, x, x.astype("int8")), TypeError, "z: got int8; expected float32, which T"),
        (lambda: total("T y")(np.ones(3)), TypeError, "x: got ndarray; expected a Tensor"),
        (lambda: both(x, x, gt.ones(4, device=device)), ValueError, "broadcast"),
        (lambda: both(x, x, size=3), ValueError, "size: got a size together with tensors"),
        (lambda: gt.ElementwiseKernel("raw T x", "raw T z", "")(x, x), ValueError, "size: got raw"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_attributes_need_a_cuda_device_and_ints():
    kernel = gt.RawKernel(ADD, "scaled_add")
    with gt.Device("host"):
        with pytest.raises(ValueError, match="RawKernel: current device: got .*host"):
            _ = kernel.num_regs
        with pytest.raises(ValueError, match="expected a CUDA device, which has attributes"):
            kernel.max_dynamic_shared_size_bytes = 1024
    with pytest.raises(TypeError, match="max_dynamic_shared_size_bytes: got float"):
        kernel.max_dynamic_shared_size_bytes = 0.5
    with pytest.raises(AttributeError):
        kernel.num_regs = 3


def test_kernels_have_the_method_that_compiles():
    assert gt.RawKernel(ADD, "scaled_add").compile() is None
