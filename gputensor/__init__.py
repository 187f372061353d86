"""gputensor: tensors on NVIDIA GPUs and on an embedded host device.

The names of the array API standard, NumPy and PyTorch are at the top level. Functions that are not
part of a compiled module, and modules such as ``gputensor.memory`` and ``gputensor.blas``, are
imported at their first use. Importing the package makes no CUDA call: the first tensor on a device
opens it.

>>> import gputensor as gt
>>> x = gt.asarray([[1.0, 2.0], [3.0, 4.0]], device="host")
>>> (x @ x).numpy()
array([[ 7., 10.],
       [15., 22.]], dtype=float32)
"""

import importlib as _importlib
from math import e, inf, nan, pi  # noqa: F401 - names of the standard, as those below

from gputensor._driver.environment import report as _report_environment
from gputensor.callable_module import make_callable as _make_callable
from gputensor.tensor import functions as _functions
from gputensor.tensor import operators as _operators  # noqa: F401 - binds them to Tensor
from gputensor.tensor.core import bind_methods as _bind_methods
from gputensor.tensor.interop.array_api import VERSION as __array_api_version__  # noqa: F401
from gputensor.tensor.interop.array_api import Info as __array_namespace_info__  # noqa: F401
from gputensor.tensor.methods import ALIASES as _ALIASES
from gputensor.tensor.methods import LateMethod as _LateMethod
from gputensor.tensor.parameter_names import find as _find

__version__ = "0.1.0"
newaxis = None
# PyTorch's orders of axes in memory, for ``memory_format=``.
channels_last, channels_last_3d = "channels_last", "channels_last_3d"
contiguous_format, preserve_format = "contiguous_format", "preserve_format"

# Names from modules that are always loaded. gputensor/__init__.pyi has the same names with types.
_NAMES = {
    "gputensor._arrays.dtypes": (
        "bfloat16 bool_ complex64 complex128 finfo float8_e4m3 float8_e5m2 float16 float32 float64 "
        "iinfo int8 int16 int32 int64 isdtype uint8 uint16 uint32 uint64"
    ),
    "gputensor._arrays.promotion": "can_cast result_type",
    "gputensor.errors": (
        "DeviceError DriverError GpuTensorError ModelError OutOfMemoryError ProgramError "
        "ProgramFileError ProgramRunError TraceError UnorderedAccessError"
    ),
    "gputensor.streams": (
        "Device Event ExternalStream Stream current_stream default_stream ordering set_stream "
        "stream synchronize"
    ),
    "gputensor.streams.queue": "set_device",
    "gputensor.tensor.core": "Tensor",
    "gputensor.tensor.functions": " ".join(name for name in _functions.__all__ if name != "round"),
    "gputensor.tensor.interop": "asarray ascontiguous astype copy from_dlpack",
    "gputensor.tensor.interop.arrays": "array",
    "gputensor.tensor.interop.safetensors": "load_safetensors map_safetensors save_safetensors",
    "gputensor.tensor.manipulation": (
        "arange broadcast_arrays broadcast_to checked_indices empty empty_like expand_dims eye "
        "flip full full_like linspace matrix_transpose moveaxis nonzero ones ones_like "
        "permute_dims reshape squeeze take tril triu zeros zeros_like"
    ),
    "gputensor.tensor.products": (
        "addmm baddbmm bmm grouped_matmul linear matmul mm mv quantized_linear scaled_matmul vecdot"
    ),
}
# Names from modules that are imported at first use: importing costs time, and many programs need
# none of them.
_LATE = {
    "gputensor.backends": "get_float32_matmul_precision set_float32_matmul_precision",
    "gputensor.cuda": "get_default_memory_pool get_default_pinned_memory_pool",
    "gputensor.device": (
        "can_device_access_peer current_device device_count get_device_capability get_device_name "
        "get_device_properties is_available is_bf16_supported"
    ),
    "gputensor.importers.onnx_model": "load_onnx",
    "gputensor.importers.torch_export": "from_exported",
    "gputensor.fft.short_time": "istft stft",
    "gputensor.linalg.fits": "poly polyfit roots",
    "gputensor.linalg.poly1d": "poly1d",
    "gputensor.linalg.decompositions": "cholesky qr",
    "gputensor.linalg.powers": "matrix_exp matrix_power",
    "gputensor.linalg.solutions": "det slogdet",
    "gputensor.linalg.triangles": "cholesky_solve",
    "gputensor.linalg.torch_names": (
        "chain_matmul cholesky_inverse inverse logdet lu_unpack pinverse svd"
    ),
    "gputensor.linalg.norms": "norm",
    "gputensor.nn": (
        "batch_norm group_norm instance_norm layer_norm log_softmax logsumexp rms_norm "
        "scaled_dot_product_attention softmax"
    ),
    "gputensor.nn.activations": (
        "celu elu elu_ glu hardshrink hardsigmoid hardswish hardtanh hardtanh_ leaky_relu "
        "leaky_relu_ logsigmoid mish prelu relu6 selu softmin softplus softshrink softsign "
        "tanhshrink threshold threshold_"
    ),
    "gputensor.nn.alignments": "ctc_loss",
    "gputensor.nn.bags": "bilinear embedding_bag",
    "gputensor.nn.labels": (
        "multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss "
        "triplet_margin_with_distance_loss"
    ),
    "gputensor.nn.convolution": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    "gputensor.nn.distances": (
        "binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity huber_loss "
        "kl_div l1_loss local_response_norm mse_loss normalize smooth_l1_loss"
    ),
    "gputensor.nn.interpolation": "channel_shuffle interpolate pixel_shuffle pixel_unshuffle",
    "gputensor.nn.losses": "cross_entropy nll_loss",
    "gputensor.nn.margins": (
        "cosine_embedding_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss "
        "pairwise_distance poisson_nll_loss soft_margin_loss triplet_margin_loss"
    ),
    "gputensor.nn.pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d global_avg_pool "
        "global_max_pool lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool2d max_pool3d"
    ),
    "gputensor.nn.positions": "embedding rotary",
    "gputensor.nn.unpooling": "fold max_unpool1d max_unpool2d max_unpool3d unfold",
    "gputensor.nn.sampling": "affine_grid grid_sample",
    "gputensor.programs": "Dim compile cond fori_loop fuse jit load_program scan spec while_loop",
    "gputensor.random.dropout": ("dropout dropout1d dropout2d dropout3d gumbel_softmax rrelu"),
    "gputensor.tensor.array_file": "load save savez savez_compressed",
    "gputensor.tensor.printing": (
        "array_repr array_str get_printoptions printoptions set_printoptions"
    ),
    "gputensor.tensor.grids": (
        "diag_indices indices ix_ ravel_multi_index tril_indices triu_indices unravel_index vander"
    ),
    "gputensor.random": (
        "bernoulli Generator initial_seed manual_seed multinomial normal poisson rand randint "
        "randn randperm"
    ),
    "gputensor.random.in_place": "rand_like randint_like randn_like",
    "gputensor.tensor.numerics.attributes": (
        "adjoint conj_physical enable_grad get_default_dtype inference_mode is_conj "
        "is_grad_enabled is_inference is_inference_mode_enabled no_grad resolve_conj resolve_neg "
        "set_grad_enabled"
    ),
    "gputensor.tensor.numerics.index_makers": "c_ index_exp mgrid ndindex ogrid r_ s_",
    "gputensor.tensor.histograms": (
        "bincount digitize histogram histogram2d histogram_bin_edges histogramdd"
    ),
    "gputensor.tensor.numerics.digits": "frexp packbits real_if_close spacing unpackbits",
    "gputensor.tensor.numerics.distances": "addbmm addmv addr cdist dist ger pdist renorm",
    "gputensor.tensor.numerics.element_calls": (
        "broadcast clear_memo einsum_path memoize ndenumerate require vectorize"
    ),
    "gputensor.tensor.numerics.facts": (
        "array2string asnumpy common_type get_array_module is_complex "
        "is_floating_point is_nonzero "
        "is_tensor iscomplexobj isfortran isrealobj isscalar item may_share_memory "
        "min_scalar_type ndim shape size"
    ),
    "gputensor.tensor.numerics.gammas": "mvlgamma polygamma",
    "gputensor.tensor.numerics.group_reductions": "index_reduce scatter_reduce",
    "gputensor.tensor.numerics.host_loops": "nditer",
    "gputensor.tensor.numerics.making": (
        "asarray_chkfinite ascontiguousarray asfortranarray block_diag cartesian_prod "
        "combinations complex diag_embed from_numpy frombuffer fromfunction fromiter polar "
        "scalar_tensor"
    ),
    "gputensor.tensor.numerics.polynomials": "polyadd polyder polydiv polyint polymul polysub",
    "gputensor.tensor.numerics.progressions": "geomspace logspace",
    "gputensor.tensor.numerics.torch_methods": (
        "clamp_max clamp_min detach index_put index_put_ is_same_size is_signed narrow_copy relu_ "
        "rsub split_with_sizes"
    ),
    "gputensor.tensor.numerics.running": (
        "cummax cummin logcumsumexp mode unique_consecutive unwrap"
    ),
    "gputensor.tensor.numerics.tapers": (
        "bartlett bartlett_window blackman blackman_window hamming hamming_window hann_window "
        "hanning kaiser kaiser_window"
    ),
    "gputensor.tensor.numerics.text_files": "fromfile fromstring genfromtxt loadtxt savetxt",
    "gputensor.tensor.numerics.torch_results": "aminmax",
    "gputensor.tensor.numerics.windows": (
        "as_strided resize rollaxis sliding_window_view t trim_zeros view_as_complex view_as_real"
    ),
    "gputensor.tensor.numerics.writing": (
        "apply_over_axes diag_indices_from diagonal_scatter index_copy index_fill mask_indices "
        "masked_scatter piecewise select_scatter slice_scatter sort_complex tril_indices_from "
        "triu_indices_from"
    ),
    "gputensor.tensor.manipulation.arithmetic": (
        "angle deg2rad divmod exp2 fabs float_power fmax fmin fmod heaviside iscomplex isneginf "
        "isposinf isreal ldexp modf nan_to_num nextafter rad2deg round"
    ),
    "gputensor.tensor.manipulation.axes": (
        "atleast_1d atleast_2d atleast_3d broadcast_shapes flatten fliplr flipud ravel rot90 "
        "swapaxes transpose unsqueeze"
    ),
    "gputensor.tensor.manipulation.axis_methods": "permute",
    "gputensor.tensor.manipulation.closeness": "allclose array_equal array_equiv isclose",
    "gputensor.tensor.manipulation.composed": "copysign hypot logaddexp signbit",
    "gputensor.tensor.manipulation.diagonals": "diag diagflat diagonal fill_diagonal tri",
    "gputensor.tensor.manipulation.differences": "diff ediff1d gradient trapezoid",
    "gputensor.tensor.manipulation.joining": (
        "append column_stack concat dstack hstack meshgrid repeat roll stack tile unstack vstack"
    ),
    "gputensor.tensor.numerics.padding": "pad",
    "gputensor.tensor.manipulation.picking": (
        "argwhere compress delete extract flatnonzero gather index_select insert masked_fill "
        "masked_select one_hot put_along_axis scatter take_along_axis"
    ),
    "gputensor.tensor.manipulation.splitting": "array_split chunk dsplit hsplit split vsplit",
    "gputensor.tensor.products.einsum": "einsum tensordot",
    "gputensor.tensor.products.outer": "cross dot inner kron matvec outer vdot vecmat",
    "gputensor.tensor.products.quantization": "pack_int4 quantize_int4 quantize_int8 unpack_int4",
    "gputensor.tensor.user_kernels": "ElementwiseKernel RawKernel RawModule ReductionKernel",
    "gputensor.tensor.series": (
        "convolve correlate cumulative_trapezoid interp nancumprod nancumsum polyval"
    ),
    "gputensor.tensor.sets": (
        "argpartition intersect1d lexsort partition setdiff1d setxor1d union1d"
    ),
    "gputensor.tensor.blends": (
        "addcdiv addcmul div frac lerp logaddexp2 logit narrow numel std_mean unflatten var_mean "
        "xlogy"
    ),
    "gputensor.tensor.order_statistics": "bucketize histc kthvalue msort top_k",
    "gputensor.tensor.quantiles": (
        "median nanmedian nanpercentile nanquantile percentile quantile"
    ),
    "gputensor.tensor.writing": (
        "apply_along_axis block choose copyto index_add place put putmask scatter_add select"
    ),
    "gputensor.tensor.scans": "cumprod cumsum cumulative_prod cumulative_sum",
    "gputensor.tensor.sorting": (
        "argsort isin searchsorted sort topk unique unique_all unique_counts unique_inverse "
        "unique_values"
    ),
    "gputensor.tensor.statistics": (
        "average corrcoef cov nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum "
        "nanvar ptp"
    ),
    "gputensor.traces": "trace",
    # NumPy's own: dtypes are NumPy's, and nothing here sets the flags of floating-point errors.
    "numpy": (
        "base_repr binary_repr complexfloating dtype errstate euler_gamma False_ floating "
        "format_float_positional format_float_scientific geterr inexact integer issubdtype "
        "iterable number seterr signedinteger True_ unsignedinteger"
    ),
}
_MODULES = (
    "backends",
    "blas",
    "cublas",
    "cuda",
    "device",
    "fft",
    "graphs",
    "lib",
    "linalg",
    "memory",
    "polynomial",
    "programs",
    "random",
    "sharing",
    "special",
    "testing",
)
# Further names for the functions above; there are no methods with these names.
_SPELLINGS = _ALIASES | {
    "bool": "bool_", "cat": "concat", "concatenate": "concat", "identity": "eye",
    "as_tensor": "asarray", "asanyarray": "asarray", "fromDlpack": "from_dlpack",
    "broadcast_tensors": "broadcast_arrays", "ndarray": "Tensor", "promote_types": "result_type",
    "row_stack": "vstack", "shares_memory": "may_share_memory", "trapz": "trapezoid",
    # NumPy's and PyTorch's names of dtypes; where they differ, `int` and `float` are PyTorch's.
    "char": "int8", "cdouble": "complex128", "cfloat": "complex64", "csingle": "complex64",
    "double": "float64", "float": "float32", "float8_e4m3fn": "float8_e4m3", "half": "float16",
    "int": "int32", "int_": "int64", "intc": "int32", "intp": "int64", "long": "int64",
    "longlong": "int64", "short": "int16", "single": "float32", "ubyte": "uint8",
    "uint": "uint64", "uintc": "uint32", "uintp": "uint64", "ulong": "uint64",
    "ulonglong": "uint64", "ushort": "uint16",
}  # fmt: skip

for _module, _names in _NAMES.items():
    globals().update({_name: _find(_module, _name) for _name in _names.split()})
_PLACES = {name: module for module, names in _LATE.items() for name in names.split()}
_BUILTINS = ("float", "int")  # not for ``from gputensor import *``
__all__ = [
    *(name for names in (_NAMES | _LATE).values() for name in names.split()),
    *(
        name
        for name, full in _SPELLINGS.items()
        if (full in globals() or full in _PLACES) and name not in _BUILTINS
    ),
    *_MODULES,
    *("e", "inf", "nan", "newaxis", "pi", "tensor"),
    *("channels_last", "channels_last_3d", "contiguous_format", "preserve_format"),
    *("__array_api_version__", "__array_namespace_info__", "__version__"),
]
globals().update({name: globals()[full] for name, full in _SPELLINGS.items() if full in globals()})
_make_callable("gputensor.tensor", _find("gputensor.tensor.interop.arrays", "tensor"))
_METHODS = (
    {"norm": _LateMethod("gputensor.linalg.norms", "norm", "norm")}
    | {name: _LateMethod("gputensor.nn", name, name)
       for name in ("log_softmax", "logsumexp", "softmax")}
    | {name: _LateMethod("gputensor.nn.activations", name, name)
       for name in ("hardshrink", "prelu")}
    | {name: _LateMethod(f"gputensor.{module}", name, name)
       for module, names in (("fft.short_time", "istft stft"), ("random", "bernoulli multinomial"))
       for name in names.split()}
    | {name: _LateMethod(f"gputensor.linalg.{module}", name, name)
       for module, names in (("decompositions", "cholesky qr"),
                             ("powers", "matrix_exp matrix_power"), ("solutions", "det slogdet"),
                             ("triangles", "cholesky_solve"),
                             ("torch_names", "cholesky_inverse inverse logdet pinverse svd"))
       for name in names.split()}
    | {name: _LateMethod("gputensor.random.in_place", name, name)
       for name in ("bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_",
                    "random_", "uniform_")}
)  # fmt: skip
_bind_methods(_METHODS)
_report_environment()


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _PLACES:
        value = _find(_PLACES[name], name)
    elif _SPELLINGS.get(name) in _PLACES:
        value = __getattr__(_SPELLINGS[name])
    else:
        raise AttributeError(f"module 'gputensor' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted([*__all__, *_BUILTINS])
