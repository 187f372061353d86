# Made by tests/support/public_stubs.py.
from gputensor import (blas as blas, device as device, fft as fft, graphs as graphs, linalg as linalg, memory as memory, programs as programs, random as random, sharing as sharing)
from gputensor._arrays.dtypes import (bfloat16 as bfloat16, bool_ as bool_, complex128 as complex128, complex64 as complex64, finfo as finfo, float16 as float16, float32 as float32, float64 as float64, float8_e4m3 as float8_e4m3, float8_e5m2 as float8_e5m2, iinfo as iinfo, int16 as int16, int32 as int32, int64 as int64, int8 as int8, isdtype as isdtype, uint16 as uint16, uint32 as uint32, uint64 as uint64, uint8 as uint8)
from gputensor._arrays.promotion import (can_cast as can_cast, result_type as result_type)
from gputensor.device import (can_device_access_peer as can_device_access_peer, current_device as current_device, device_count as device_count, get_device_capability as get_device_capability, get_device_name as get_device_name, get_device_properties as get_device_properties, is_available as is_available, is_bf16_supported as is_bf16_supported)
from gputensor.errors import (DeviceError as DeviceError, DriverError as DriverError, GpuTensorError as GpuTensorError, ModelError as ModelError, OutOfMemoryError as OutOfMemoryError, ProgramError as ProgramError, ProgramFileError as ProgramFileError, TraceError as TraceError, UnorderedAccessError as UnorderedAccessError)
from gputensor.importers.onnx_model import (load_onnx as load_onnx)
from gputensor.importers.torch_export import (from_exported as from_exported)
from gputensor.linalg.fits import (polyfit as polyfit)
from gputensor.linalg.norms import (norm as norm)
from gputensor.nn import (batch_norm as batch_norm, group_norm as group_norm, instance_norm as instance_norm, layer_norm as layer_norm, log_softmax as log_softmax, logsumexp as logsumexp, rms_norm as rms_norm, scaled_dot_product_attention as scaled_dot_product_attention, softmax as softmax)
from gputensor.nn.activations import (celu as celu, elu as elu, glu as glu, hardshrink as hardshrink, hardsigmoid as hardsigmoid, hardswish as hardswish, hardtanh as hardtanh, leaky_relu as leaky_relu, logsigmoid as logsigmoid, mish as mish, prelu as prelu, relu6 as relu6, selu as selu, softmin as softmin, softplus as softplus, softshrink as softshrink, softsign as softsign, tanhshrink as tanhshrink, threshold as threshold)
from gputensor.nn.convolution import (conv1d as conv1d, conv2d as conv2d, conv3d as conv3d, conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d)
from gputensor.nn.interpolation import (interpolate as interpolate)
from gputensor.nn.losses import (cross_entropy as cross_entropy, nll_loss as nll_loss)
from gputensor.nn.pooling import (adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d, adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d, adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool3d as adaptive_max_pool3d, avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, global_avg_pool as global_avg_pool, global_max_pool as global_max_pool, max_pool1d as max_pool1d, max_pool2d as max_pool2d, max_pool3d as max_pool3d)
from gputensor.nn.positions import (embedding as embedding, rotary as rotary)
from gputensor.programs import (Dim as Dim, compile as compile, cond as cond, fori_loop as fori_loop, fuse as fuse, jit as jit, load_program as load_program, scan as scan, spec as spec, while_loop as while_loop)
from gputensor.random.dropout import (dropout as dropout)
from gputensor.streams import (Device as Device, Event as Event, ExternalStream as ExternalStream, Stream as Stream, current_stream as current_stream, default_stream as default_stream, ordering as ordering, set_stream as set_stream, stream as stream, synchronize as synchronize)
from gputensor.streams.queue import (set_device as set_device)
from gputensor.tensor.array_file import (load as load, save as save, savez as savez, savez_compressed as savez_compressed)
from gputensor.tensor.core import (Tensor as Tensor)
from gputensor.tensor.functions import (abs as abs, acos as acos, acosh as acosh, add as add, all as all, any as any, argmax as argmax, argmin as argmin, asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, bitwise_and as bitwise_and, bitwise_invert as bitwise_invert, bitwise_left_shift as bitwise_left_shift, bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, cbrt as cbrt, ceil as ceil, clip as clip, conj as conj, cos as cos, cosh as cosh, count_nonzero as count_nonzero, divide as divide, equal as equal, erf as erf, exp as exp, expm1 as expm1, floor as floor, floor_divide as floor_divide, gelu as gelu, greater as greater, greater_equal as greater_equal, imag as imag, isfinite as isfinite, isinf as isinf, isnan as isnan, less as less, less_equal as less_equal, log as log, log10 as log10, log1p as log1p, log2 as log2, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, max as max, maximum as maximum, mean as mean, min as min, minimum as minimum, multiply as multiply, negative as negative, not_equal as not_equal, positive as positive, pow as pow, prod as prod, real as real, reciprocal as reciprocal, relu as relu, remainder as remainder, rsqrt as rsqrt, sigmoid as sigmoid, sign as sign, silu as silu, sin as sin, sinc as sinc, sinh as sinh, sqrt as sqrt, square as square, std as std, subtract as subtract, sum as sum, tan as tan, tanh as tanh, trunc as trunc, var as var, where as where)
from gputensor.tensor.grids import (diag_indices as diag_indices, geomspace as geomspace, indices as indices, ix_ as ix_, logspace as logspace, ravel_multi_index as ravel_multi_index, tril_indices as tril_indices, triu_indices as triu_indices, unravel_index as unravel_index, vander as vander)
from gputensor.tensor.histograms import (bincount as bincount, digitize as digitize, histogram as histogram)
from gputensor.tensor.interop import (asarray as asarray, ascontiguous as ascontiguous, astype as astype, copy as copy, from_dlpack as from_dlpack)
from gputensor.tensor.interop.arrays import (array as array, tensor as tensor)
from gputensor.tensor.interop.safetensors import (load_safetensors as load_safetensors, map_safetensors as map_safetensors, save_safetensors as save_safetensors)
from gputensor.tensor.manipulation import (arange as arange, broadcast_arrays as broadcast_arrays, broadcast_to as broadcast_to, checked_indices as checked_indices, empty as empty, empty_like as empty_like, expand_dims as expand_dims, eye as eye, flip as flip, full as full, full_like as full_like, linspace as linspace, matrix_transpose as matrix_transpose, moveaxis as moveaxis, nonzero as nonzero, ones as ones, ones_like as ones_like, permute_dims as permute_dims, reshape as reshape, squeeze as squeeze, take as take, tril as tril, triu as triu, zeros as zeros, zeros_like as zeros_like)
from gputensor.tensor.manipulation.arithmetic import (angle as angle, deg2rad as deg2rad, divmod as divmod, exp2 as exp2, fabs as fabs, float_power as float_power, fmax as fmax, fmin as fmin, fmod as fmod, heaviside as heaviside, iscomplex as iscomplex, isneginf as isneginf, isposinf as isposinf, isreal as isreal, ldexp as ldexp, modf as modf, nan_to_num as nan_to_num, nextafter as nextafter, rad2deg as rad2deg, round as round)
from gputensor.tensor.manipulation.axes import (atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, broadcast_shapes as broadcast_shapes, flatten as flatten, fliplr as fliplr, flipud as flipud, ravel as ravel, rot90 as rot90, swapaxes as swapaxes, transpose as transpose, unsqueeze as unsqueeze)
from gputensor.tensor.manipulation.axis_methods import (permute as permute)
from gputensor.tensor.manipulation.closeness import (allclose as allclose, array_equal as array_equal, array_equiv as array_equiv, isclose as isclose)
from gputensor.tensor.manipulation.composed import (copysign as copysign, hypot as hypot, logaddexp as logaddexp, signbit as signbit)
from gputensor.tensor.manipulation.diagonals import (diag as diag, diagflat as diagflat, diagonal as diagonal, fill_diagonal as fill_diagonal, tri as tri)
from gputensor.tensor.manipulation.differences import (diff as diff, ediff1d as ediff1d, gradient as gradient, trapezoid as trapezoid)
from gputensor.tensor.manipulation.joining import (append as append, column_stack as column_stack, concat as concat, dstack as dstack, hstack as hstack, meshgrid as meshgrid, repeat as repeat, roll as roll, stack as stack, tile as tile, unstack as unstack, vstack as vstack)
from gputensor.tensor.manipulation.padding import (pad as pad)
from gputensor.tensor.manipulation.picking import (argwhere as argwhere, compress as compress, delete as delete, extract as extract, flatnonzero as flatnonzero, gather as gather, index_select as index_select, insert as insert, masked_fill as masked_fill, masked_select as masked_select, one_hot as one_hot, put_along_axis as put_along_axis, scatter as scatter, take_along_axis as take_along_axis)
from gputensor.tensor.manipulation.splitting import (array_split as array_split, chunk as chunk, dsplit as dsplit, hsplit as hsplit, split as split, vsplit as vsplit)
from gputensor.tensor.products import (addmm as addmm, baddbmm as baddbmm, bmm as bmm, dot as dot, grouped_matmul as grouped_matmul, linear as linear, matmul as matmul, mm as mm, mv as mv, quantized_linear as quantized_linear, scaled_matmul as scaled_matmul, vecdot as vecdot)
from gputensor.tensor.products.einsum import (einsum as einsum, tensordot as tensordot)
from gputensor.tensor.products.outer import (cross as cross, inner as inner, kron as kron, matvec as matvec, outer as outer, vdot as vdot, vecmat as vecmat)
from gputensor.tensor.products.quantization import (pack_int4 as pack_int4, quantize_int4 as quantize_int4, quantize_int8 as quantize_int8, unpack_int4 as unpack_int4)
from gputensor.tensor.scans import (cumprod as cumprod, cumsum as cumsum, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum)
from gputensor.tensor.series import (convolve as convolve, correlate as correlate, interp as interp, nancumprod as nancumprod, nancumsum as nancumsum, polyval as polyval)
from gputensor.tensor.sets import (argpartition as argpartition, intersect1d as intersect1d, lexsort as lexsort, partition as partition, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d)
from gputensor.tensor.sorting import (argsort as argsort, isin as isin, median as median, nanmedian as nanmedian, percentile as percentile, quantile as quantile, searchsorted as searchsorted, sort as sort, topk as topk, unique as unique, unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse, unique_values as unique_values)
from gputensor.tensor.statistics import (average as average, corrcoef as corrcoef, cov as cov, nanargmax as nanargmax, nanargmin as nanargmin, nanmax as nanmax, nanmean as nanmean, nanmin as nanmin, nanprod as nanprod, nanstd as nanstd, nansum as nansum, nanvar as nanvar, ptp as ptp)
from gputensor.tensor.user_kernels import (ElementwiseKernel as ElementwiseKernel, RawKernel as RawKernel)
from gputensor.tensor.writing import (apply_along_axis as apply_along_axis, block as block, choose as choose, copyto as copyto, index_add as index_add, place as place, put as put, putmask as putmask, scatter_add as scatter_add, select as select)
from gputensor.traces import (trace as trace)


e: float
inf: float
nan: float
pi: float
newaxis: None
__array_api_version__: str
__version__: str

def __array_namespace_info__() -> object: ...

absolute = abs
amax = max
amin = min
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
around = round
bitwise_not = bitwise_invert
bool = bool_
cat = concat
clamp = clip
clone = copy
concatenate = concat
conjugate = conj
degrees = rad2deg
div = divide
eq = equal
fix = trunc
ge = greater_equal
gt = greater
identity = eye
invert = bitwise_invert
le = less_equal
left_shift = bitwise_left_shift
lt = less
mod = remainder
movedim = moveaxis
mul = multiply
ndarray = Tensor
ne = not_equal
neg = negative
power = pow
radians = deg2rad
right_shift = bitwise_right_shift
rint = round
row_stack = vstack
sub = subtract
swapdims = swapaxes
true_divide = divide
unbind = unstack
