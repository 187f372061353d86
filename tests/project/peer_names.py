"""The function names of NumPy 2.4, CuPy 13 and PyTorch 2.13.

reference_pages.py makes the pages docs/from-*.md from them and from peer_differences.py.
"""

__all__ = ["CUPY", "CUPY_SPECIAL", "FUNCTIONAL", "NUMPY", "TORCH", "TORCH_CUDA"]

NUMPY = """
abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis apply_over_axes
arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort
argwhere around array array2string array_equal array_equiv array_repr array_split array_str
asanyarray asarray ascontiguousarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d
atleast_3d average bartlett bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift
bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman block broadcast_arrays
broadcast_shapes broadcast_to c_ can_cast cbrt ceil choose clip column_stack common_type compress
concat concatenate conj conjugate convolve copy copysign copyto corrcoef correlate cos cosh
count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag
diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot dsplit dstack
ediff1d einsum empty empty_like equal exp exp2 expand_dims expm1 extract eye fabs fill_diagonal fix
flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin fmod frexp from_dlpack
frombuffer fromfunction fromiter full full_like gcd geomspace gradient greater greater_equal hamming
hanning heaviside histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0
identity imag index_exp indices inner insert interp intersect1d invert isclose iscomplex
iscomplexobj isdtype isfinite isin isinf isnan isneginf isposinf isreal isrealobj isscalar ix_
kaiser kron lcm ldexp left_shift less less_equal lexsort linspace load log log10 log1p log2
logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace mask_indices matmul
matrix_transpose matvec max maximum may_share_memory mean median meshgrid mgrid min min_scalar_type
minimum mod modf moveaxis multiply nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax
nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndim ndindex
negative nextafter nonzero not_equal ogrid ones ones_like outer packbits pad partition percentile
permute_dims piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval
positive pow power prod promote_types ptp put put_along_axis putmask quantile r_ rad2deg radians
ravel ravel_multi_index real real_if_close reciprocal remainder repeat reshape resize result_type
right_shift rint roll rollaxis roots rot90 round row_stack s_ save savez savez_compressed
searchsorted select setdiff1d setxor1d shape shares_memory sign signbit sin sinc sinh size sort
sort_complex spacing split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis
tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros
triu triu_indices triu_indices_from true_divide trunc union1d unique unique_all unique_counts
unique_inverse unique_values unpackbits unravel_index unstack unwrap vander var vdot vecdot vecmat
vsplit vstack where zeros zeros_like linalg.cholesky linalg.cond linalg.cross linalg.det
linalg.diagonal linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.lstsq
linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose
linalg.multi_dot linalg.norm linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve
linalg.svd linalg.svdvals linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace
linalg.vecdot linalg.vector_norm fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft
fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft
fft.rfft2 fft.rfftfreq fft.rfftn False_ True_ asfortranarray base_repr binary_repr cdouble
complexfloating csingle double dtype errstate euler_gamma floating format_float_positional
format_float_scientific fromfile fromstring genfromtxt geterr half inexact int_ intc integer intp
issubdtype iterable loadtxt long longlong number savetxt seterr short signedinteger single ubyte
uint uintc uintp ulong ulonglong unsignedinteger ushort isfortran asarray_chkfinite bmat broadcast
einsum_path frompyfunc ndenumerate nditer poly1d require typename vectorize ma matrix memmap
random.multivariate_hypergeometric random.hypergeometric random.logseries random.noncentral_f
random.vonmises random.zipf testing.assert_equal testing.assert_raises testing.assert_warns
polynomial.polynomial.polyadd polynomial.polynomial.polycompanion polynomial.polynomial.polyder
polynomial.polynomial.polydiv polynomial.polynomial.polyfit polynomial.polynomial.polyfromroots
polynomial.polynomial.polyint polynomial.polynomial.polymul polynomial.polynomial.polyroots
polynomial.polynomial.polysub polynomial.polynomial.polyval polynomial.polynomial.polyvander
""".split()

#: Names of CuPy that NumPy does not have.
CUPY = """
asnumpy get_array_module ElementwiseKernel RawKernel ReductionKernel RawModule fuse scatter_add
cuda.Device cuda.Stream cuda.Event cuda.MemoryPool cuda.set_allocator cuda.Graph linalg.lu
linalg.lu_factor linalg.lu_solve clear_memo memoize cuda.runtime.deviceSynchronize
cuda.runtime.getDevice cuda.runtime.getDeviceCount
cuda.runtime.getDeviceProperties cuda.runtime.memGetInfo cuda.runtime.setDevice
testing.assert_allclose testing.assert_array_almost_equal testing.assert_array_equal
testing.assert_array_less testing.assert_array_list_equal fromDlpack
cublas.gemm random.default_rng random.seed cuda.get_device_id cuda.get_elapsed_time cuda.alloc
cuda.using_allocator random.bytes random.random_integers get_default_memory_pool
get_default_pinned_memory_pool random.Generator.tomaxint
""".split()

#: Names of cupyx.scipy.special.
CUPY_SPECIAL = """
bdtr bdtrc bdtri beta betainc betaincinv betaln binom boxcox boxcox1p btdtr btdtri cbrt chdtr
chdtrc chdtri cosdg cosm1 cotdg digamma ellipj ellipk ellipkm1 entr erf erfc erfcinv erfcx erfinv
exp1 exp10 exp2 expi expit expm1 expn exprel fdtr fdtrc fdtri gamma gammainc gammaincc gammainccinv
gammaincinv gammaln gdtr gdtrc huber i0 i0e i1 i1e inv_boxcox inv_boxcox1p j0 j1 k0 k0e k1 k1e
kl_div log1p log_expit log_ndtr log_softmax loggamma logit logsumexp lpmv multigammaln nbdtr nbdtrc
nbdtri ndtr ndtri pdtr pdtrc pdtri poch polygamma pseudo_huber psi radian rel_entr rgamma round
sinc sindg softmax sph_harm spherical_yn tandg xlog1py xlogy y0 y1 yn zeta zetac
""".split()

TORCH = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv allclose all amax amin angle any arange argmax
argmin argsort argwhere as_strided as_tensor asin asinh atan atan2 atanh atleast_1d atleast_2d
atleast_3d baddbmm bartlett_window bernoulli bincount bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm broadcast_shapes
broadcast_tensors broadcast_to bucketize cartesian_prod cat cdist ceil chunk clamp clone
column_stack combinations complex concat concatenate conj copysign corrcoef cos cosh count_nonzero
cov cross cummax cummin cumprod cumsum cumulative_trapezoid deg2rad diag diag_embed diagflat
diagonal diff digamma dist div divide dot dropout dsplit dstack einsum empty empty_like eq equal erf
erfc erfinv exp exp2 expm1 eye fix flatten flip fliplr flipud float_power floor floor_divide fmax
fmin fmod frac frexp from_dlpack from_numpy full full_like gather ge gelu gradient gt hamming_window
hann_window heaviside histc histogram hsplit hstack hypot i0 imag index_add index_copy index_fill
index_reduce index_select inner is_complex is_floating_point is_tensor isclose isfinite isin isinf
isnan isneginf isposinf isreal istft item kaiser_window kron kthvalue lcm ldexp le lerp less lgamma
linspace load log log10 log1p log2 log_softmax logaddexp logcumsumexp logical_and logical_not
logical_or logical_xor logit logspace logsumexp lt manual_seed masked_fill masked_scatter
masked_select matmul max maximum mean median meshgrid min minimum mm mode moveaxis movedim msort mul
multinomial multiply mv nan_to_num nanmean nanmedian nanquantile nansum narrow ne neg negative
nextafter nonzero norm normal numel ones ones_like outer permute pinverse poisson polar positive pow
prod quantile rad2deg rand randint randn randperm ravel real reciprocal relu remainder renorm
repeat_interleave reshape roll rot90 round rsqrt save scatter scatter_add scatter_reduce
searchsorted select sgn sigmoid sign signbit sin sinc sinh softmax sort split sqrt square squeeze
stack std std_mean stft sub subtract sum svd swapaxes swapdims t take take_along_dim tan tanh tensor
tensor_split tensordot tile topk trace transpose trapezoid trapz tril tril_indices triu triu_indices
true_divide trunc unbind unflatten unfold unique unique_consecutive unsqueeze vander var var_mean
vdot view_as_complex view_as_real vsplit vstack where xlogy zeros zeros_like linalg.cholesky
linalg.cond linalg.cross linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv
linalg.lstsq linalg.lu linalg.lu_factor linalg.lu_solve linalg.matmul linalg.matrix_exp
linalg.cholesky_ex linalg.inv_ex linalg.solve_ex linalg.lu_factor_ex linalg.vander
linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.multi_dot linalg.norm linalg.pinv
linalg.qr linalg.slogdet linalg.solve linalg.solve_triangular linalg.svd linalg.svdvals
linalg.tensorinv linalg.tensorsolve linalg.vecdot linalg.vector_norm fft.fft fft.fft2 fft.fftfreq
fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.irfft
fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn adjoint aminmax cdouble cfloat char
cholesky clamp_max clamp_min det double dtype float half inference_mode int inverse is_nonzero
logdet long matrix_exp matrix_power no_grad qr rand_like randint_like randn_like scalar_tensor short
slogdet ger addr pdist cholesky_solve Generator diagonal_scatter enable_grad get_default_dtype
mvlgamma polygamma select_scatter set_grad_enabled slice_scatter testing.assert_close bilinear
chain_matmul cholesky_inverse igamma igammac lobpcg lu_unpack nonzero_static orgqr pca_lowrank
set_default_dtype sparse_coo_tensor svd_lowrank vmap special.digamma special.entr special.erf
special.erfc special.erfcx special.erfinv special.exp2 special.expit special.expm1 special.gammainc
special.gammaincc special.gammaln special.i0 special.log1p special.log_softmax special.logit
special.log_ndtr special.logsumexp special.multigammaln special.ndtr special.ndtri special.polygamma
special.psi special.sinc special.softmax special.xlog1py special.xlogy special.zeta special.airy_ai
detach index_put is_same_size is_signed relu_ split_with_sizes special.bessel_j0
special.bessel_j1 special.bessel_y0 special.bessel_y1
special.i0e special.i1 special.i1e special.modified_bessel_i0 special.modified_bessel_i1
special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0
special.scaled_modified_bessel_k1 special.spherical_bessel_j0
special.round special.chebyshev_polynomial_t special.chebyshev_polynomial_u
special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l
special.legendre_polynomial_p fft.hfft2 fft.hfftn fft.ihfft2 fft.ihfftn rsub narrow_copy is_conj
conj_physical resolve_conj resolve_neg is_grad_enabled is_inference is_inference_mode_enabled
threshold_ hardtanh_ elu_ leaky_relu_ linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve
linalg.householder_product triangular_solve geqrf ormqr get_num_threads set_num_threads
use_deterministic_algorithms empty_strided segment_reduce upsample quantize_per_tensor
""".split()

#: Names of torch.cuda; FloatTensor and FloatStorage stand for those of all element types.
TORCH_CUDA = """
AcceleratorError CUDAGraph CUDAPluggableAllocator CudaError DeferredCudaCallError Event
ExternalStream FloatStorage FloatTensor GreenContext MemPool OutOfMemoryError Stream StreamContext
amp caching_allocator_alloc caching_allocator_delete caching_allocator_disabled
caching_allocator_enable can_device_access_peer change_current_allocator check_error clock_rate comm
cudaStatus cudart current_blas_handle current_device current_solver_handle current_stream
default_generators default_stream device device_count device_memory_used device_of empty_cache
get_allocator_backend get_arch_list get_device_capability get_device_name get_device_properties
get_gencode_flags get_per_process_memory_fraction get_rng_state get_rng_state_all
get_stream_from_external get_sync_debug_mode graph graph_pool_handle graphs has_half has_magma
host_memory_stats host_memory_stats_as_nested_dict init initial_seed ipc_collect is_available
is_bf16_supported is_current_stream_capturing is_initialized is_tf32_supported jiterator
list_gpu_processes make_graphed_callables manual_seed manual_seed_all max_memory_allocated
max_memory_cached max_memory_reserved mem_get_info memory memory_allocated memory_cached
memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary memory_usage
nccl nvtx power_draw profiler random reset_accumulated_host_memory_stats
reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached
reset_peak_host_memory_stats reset_peak_memory_stats seed seed_all set_device
set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream set_sync_debug_mode
sparse stream streams synchronize temperature tunable use_mem_pool utilization
""".split()

#: Names of torch.nn.functional that PyTorch's main namespace does not have.
FUNCTIONAL = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d affine_grid avg_pool1d avg_pool2d avg_pool3d batch_norm celu conv1d
binary_cross_entropy binary_cross_entropy_with_logits conv2d conv3d conv_transpose1d
conv_transpose2d conv_transpose3d channel_shuffle cosine_embedding_loss cosine_similarity
cross_entropy dropout1d dropout2d dropout3d elu embedding fold gaussian_nll_loss glu grid_sample
group_norm gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss
instance_norm interpolate kl_div l1_loss layer_norm leaky_relu linear local_response_norm logsigmoid
lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d max_pool2d max_pool3d max_unpool1d
max_unpool2d max_unpool3d mish mse_loss nll_loss normalize one_hot pad pairwise_distance
pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu6 rms_norm rrelu
scaled_dot_product_attention selu silu smooth_l1_loss soft_margin_loss softmin softplus softshrink
softsign tanhshrink threshold triplet_margin_loss unfold alpha_dropout bilinear ctc_loss
embedding_bag fractional_max_pool2d multi_head_attention_forward multi_margin_loss
multilabel_margin_loss multilabel_soft_margin_loss triplet_margin_with_distance_loss
""".split()
