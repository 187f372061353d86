# Made by tests/support/public_stubs.py.
from types import ModuleType
from typing import Any

from gputensor.tensor import blends as _blends
from gputensor.tensor import functions as _functions
from gputensor.tensor import histograms as _histograms
from gputensor.tensor import interop as _interop
from gputensor.tensor import manipulation as _manipulation
from gputensor.tensor import order_statistics as _order_statistics
from gputensor.tensor import placement as _placement
from gputensor.tensor import products as _products
from gputensor.tensor import sets as _sets
from gputensor.tensor import sorting as _sorting
from gputensor.tensor import statistics as _statistics
from gputensor.tensor import transfer as _transfer
from gputensor.tensor import writing as _tensor_writing
from gputensor.tensor.core import Tensor
from gputensor.tensor.manipulation import arithmetic as _arithmetic
from gputensor.tensor.manipulation import axes as _axes
from gputensor.tensor.manipulation import closeness as _closeness
from gputensor.tensor.manipulation import composed as _composed
from gputensor.tensor.manipulation import diagonals as _diagonals
from gputensor.tensor.manipulation import picking as _picking
from gputensor.tensor.manipulation import splitting as _splitting
from gputensor.tensor.numerics import attributes as _attributes
from gputensor.tensor.numerics import digits as _digits
from gputensor.tensor.numerics import distances as _distances
from gputensor.tensor.numerics import facts as _facts
from gputensor.tensor.numerics import gammas as _gammas
from gputensor.tensor.numerics import text_files as _text_files
from gputensor.tensor.numerics import torch_methods as _torch_methods
from gputensor.tensor.numerics import torch_results as _torch_results
from gputensor.tensor.numerics import windows as _windows
from gputensor.tensor.numerics import writing as _writing
from gputensor.tensor.products import outer as _outer

ALIASES: dict[str, str]
BOUND: dict[ModuleType, list[str]]
COPIED_BACK: str
IN_PLACE: str
LATE: dict[str, str]

def table() -> dict[str, Any]: ...

class Methods:
    @property
    def H(self) -> Any: ...
    abs = _functions.abs
    absolute = _functions.abs
    acos = _functions.acos
    acosh = _functions.acosh
    add = _functions.add
    addbmm = _distances.addbmm
    addcdiv = _blends.addcdiv
    addcmul = _blends.addcmul
    addmm = _products.addmm
    addmv = _distances.addmv
    addr = _distances.addr
    adjoint = _attributes.adjoint
    all = _functions.all
    allclose = _closeness.allclose
    amax = _functions.amax
    amin = _functions.amin
    aminmax = _torch_results.aminmax
    angle = _arithmetic.angle
    any = _functions.any
    arccos = _functions.acos
    arccosh = _functions.acosh
    arcsin = _functions.asin
    arcsinh = _functions.asinh
    arctan = _functions.atan
    arctan2 = _functions.atan2
    arctanh = _functions.atanh
    argmax = _functions.argmax
    argmin = _functions.argmin
    argpartition = _sets.argpartition
    def argsort(
        x,
        /,
        axis: Any = ...,
        kind: Any = ...,
        *,
        descending: Any = ...,
        stable: Any = ...,
        dim: Any = ...,
    ) -> Tensor: ...
    argwhere = _picking.argwhere
    around = _arithmetic.round
    array_equal = _closeness.array_equal
    def array_split(
        x, /, indices_or_sections: Any, axis: Any = ..., *, dim: Any = ...
    ) -> list[Tensor]: ...
    as_strided = _windows.as_strided
    asin = _functions.asin
    asinh = _functions.asinh
    astype = _interop.astype
    atan = _functions.atan
    atan2 = _functions.atan2
    atanh = _functions.atanh
    average = _statistics.average
    baddbmm = _products.baddbmm
    def bfloat16(self) -> Tensor: ...
    binary_exponent = _functions.binary_exponent
    binary_fraction = _functions.binary_fraction
    bincount = _histograms.bincount
    bitwise_and = _functions.bitwise_and
    bitwise_count = _functions.bitwise_count
    bitwise_invert = _functions.bitwise_invert
    bitwise_left_shift = _functions.bitwise_left_shift
    bitwise_not = _functions.bitwise_invert
    bitwise_or = _functions.bitwise_or
    bitwise_right_shift = _functions.bitwise_right_shift
    bitwise_xor = _functions.bitwise_xor
    bmm = _products.bmm
    def bool(self) -> Tensor: ...
    broadcast_to = _manipulation.broadcast_to
    def byte(self) -> Tensor: ...
    cbrt = _functions.cbrt
    ceil = _functions.ceil
    def char(self) -> Tensor: ...
    choose = _tensor_writing.choose
    def chunk(x, /, chunks: Any, axis: Any = ..., *, dim: Any = ...) -> list[Tensor]: ...
    clamp = _functions.clip
    clamp_max = _torch_methods.clamp_max
    clamp_min = _torch_methods.clamp_min
    clip = _functions.clip
    clone = _interop.copy
    compress = _picking.compressed
    conj = _functions.conj
    conj_physical = _attributes.conj_physical
    conjugate = _functions.conj
    copy = _interop.copy
    copy_ = _placement.copy_
    copysign = _composed.copysign
    corrcoef = _statistics.corrcoef
    cos = _functions.cos
    cosh = _functions.cosh
    count_nonzero = _functions.count_nonzero
    def cov(
        x,
        y: Any = ...,
        rowvar: Any = ...,
        bias: Any = ...,
        ddof: Any = ...,
        fweights: Any = ...,
        aweights: Any = ...,
        *,
        correction: Any = ...,
    ) -> Tensor: ...
    cpu = _placement.cpu
    def cross(x1: Any, x2: Any, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    cuda = _placement.cuda
    def cummax(x, /, axis: Any = ..., *, dim: Any = ...) -> Any: ...
    def cummin(x, /, axis: Any = ..., *, dim: Any = ...) -> Any: ...
    def cumprod(
        x, /, axis: Any = ..., dtype: Any = ..., out: Any = ..., *, dim: Any = ...
    ) -> Tensor: ...
    def cumsum(
        x, /, axis: Any = ..., dtype: Any = ..., out: Any = ..., *, dim: Any = ...
    ) -> Tensor: ...
    @property
    def data(self) -> Any: ...
    deg2rad = _arithmetic.deg2rad
    degrees = _arithmetic.rad2deg
    detach = _torch_methods.detach
    detach_ = _torch_methods.detach_
    def diag(x, /, k: Any = ..., *, diagonal: Any = ...) -> Tensor: ...
    def diag_embed(
        x,
        /,
        offset: Any = ...,
        axis1: Any = ...,
        axis2: Any = ...,
        *,
        dim1: Any = ...,
        dim2: Any = ...,
    ) -> Tensor: ...
    diagflat = _diagonals.diagflat
    def diagonal(
        x,
        /,
        offset: Any = ...,
        axis1: Any = ...,
        axis2: Any = ...,
        *,
        dim1: Any = ...,
        dim2: Any = ...,
    ) -> Tensor: ...
    def diagonal_scatter(
        x,
        /,
        source: Any = ...,
        offset: Any = ...,
        axis1: Any = ...,
        axis2: Any = ...,
        *,
        dim1: Any = ...,
        dim2: Any = ...,
        src: Any = ...,
    ) -> Tensor: ...
    def diff(
        x,
        /,
        n: Any = ...,
        axis: Any = ...,
        prepend: Any = ...,
        append: Any = ...,
        *,
        dim: Any = ...,
    ) -> Tensor: ...
    digamma = _functions.digamma
    dim = _placement.dim
    dim_order = _torch_methods.dim_order
    dist = _distances.dist
    div = _blends.div
    divide = _functions.divide
    divmod = _arithmetic.divmod
    dot = _outer.dot
    def double(self) -> Tensor: ...
    dsplit = _splitting.dsplit
    element_size = _placement.element_size
    eq = _functions.equal
    equal = _functions.equal
    erf = _functions.erf
    erfc = _functions.erfc
    erfinv = _functions.erfinv
    exp = _functions.exp
    exp2 = _arithmetic.exp2
    expand = _axes.expand
    expand_as = _torch_methods.expand_as
    expm1 = _functions.expm1
    fill_ = _torch_methods.fill_
    fill_diagonal = _diagonals.fill_diagonal
    fill_diagonal_ = _torch_methods.fill_diagonal_
    fix = _functions.trunc
    @property
    def flags(self) -> Any: ...
    @property
    def flat(self) -> Any: ...
    flatnonzero = _picking.flatnonzero
    def flatten(
        x,
        /,
        start_axis: Any = ...,
        end_axis: Any = ...,
        *,
        start_dim: Any = ...,
        end_dim: Any = ...,
    ) -> Tensor: ...
    def flip(x, /, *axes: Any, axis: Any = ..., dims: Any = ...) -> Tensor: ...
    fliplr = _axes.fliplr
    flipud = _axes.flipud
    def float(self) -> Tensor: ...
    float_power = _arithmetic.float_power
    floor = _functions.floor
    floor_divide = _functions.floor_divide
    fmax = _arithmetic.fmax
    fmin = _arithmetic.fmin
    fmod = _arithmetic.fmod
    frac = _blends.frac
    frexp = _digits.frexp
    def gather(x, /, axis: Any = ..., index: Any = ..., *, dim: Any = ...) -> Tensor: ...
    gcd = _functions.gcd
    ge = _functions.greater_equal
    gelu = _functions.gelu
    ger = _distances.ger
    get = _placement.get
    get_device = _placement.get_device
    @property
    def grad(self) -> Any: ...
    greater = _functions.greater
    greater_equal = _functions.greater_equal
    gt = _functions.greater
    def half(self) -> Tensor: ...
    heaviside = _arithmetic.heaviside
    histc = _order_statistics.histc
    histogram = _histograms.histogram
    hsplit = _splitting.hsplit
    hypot = _composed.hypot
    i0 = _functions.i0
    igamma = _functions.igamma
    igammac = _functions.igammac
    @property
    def imag(self) -> Any: ...
    def index_add(
        x,
        /,
        axis: Any = ...,
        index: Any = ...,
        source: Any = ...,
        *,
        alpha: Any = ...,
        dim: Any = ...,
    ) -> Tensor: ...
    def index_copy(
        x, /, axis: Any = ..., index: Any = ..., source: Any = ..., *, dim: Any = ...
    ) -> Tensor: ...
    def index_fill(
        x, /, axis: Any = ..., index: Any = ..., value: Any = ..., *, dim: Any = ...
    ) -> Tensor: ...
    index_put = _torch_methods.index_put
    index_put_ = _torch_methods.index_put_
    def index_reduce(
        x,
        /,
        axis: Any = ...,
        index: Any = ...,
        source: Any = ...,
        reduce: Any = ...,
        *,
        include_self: Any = ...,
        dim: Any = ...,
    ) -> Tensor: ...
    def index_select(x, /, axis: Any = ..., index: Any = ..., *, dim: Any = ...) -> Tensor: ...
    inner = _outer.inner
    def int(self) -> Tensor: ...
    invert = _functions.bitwise_invert
    is_complex = _facts.is_complex
    is_conj = _attributes.is_conj
    @property
    def is_cuda(self) -> Any: ...
    is_floating_point = _facts.is_floating_point
    is_inference = _attributes.is_inference
    @property
    def is_leaf(self) -> Any: ...
    @property
    def is_meta(self) -> Any: ...
    is_nonzero = _facts.is_nonzero
    is_pinned = _attributes.is_pinned
    @property
    def is_quantized(self) -> Any: ...
    is_same_size = _torch_methods.is_same_size
    is_shared = _attributes.is_shared
    is_signed = _torch_methods.is_signed
    @property
    def is_sparse(self) -> Any: ...
    isclose = _closeness.isclose
    isfinite = _functions.isfinite
    isinf = _functions.isinf
    isnan = _functions.isnan
    isneginf = _arithmetic.isneginf
    isposinf = _arithmetic.isposinf
    isreal = _arithmetic.isreal
    kron = _outer.kron
    def kthvalue(
        x, /, k: Any, axis: Any = ..., keepdims: Any = ..., *, dim: Any = ..., keepdim: Any = ...
    ) -> Any: ...
    lcm = _functions.lcm
    ldexp = _arithmetic.ldexp
    le = _functions.less_equal
    left_shift = _functions.bitwise_left_shift
    lerp = _blends.lerp
    less = _functions.less
    less_equal = _functions.less_equal
    lgamma = _functions.lgamma
    log = _functions.log
    log10 = _functions.log10
    log1p = _functions.log1p
    log2 = _functions.log2
    logaddexp = _composed.logaddexp
    logaddexp2 = _blends.logaddexp2
    def logcumsumexp(x, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    logical_and = _functions.logical_and
    logical_not = _functions.logical_not
    logical_or = _functions.logical_or
    logical_xor = _functions.logical_xor
    logit = _blends.logit
    def long(self) -> Tensor: ...
    lt = _functions.less
    @property
    def mH(self) -> Any: ...
    masked_fill = _picking.masked_fill
    masked_scatter = _writing.masked_scatter
    masked_select = _picking.masked_select
    matmul = _products.matmul
    max = _functions.max
    maximum = _functions.maximum
    mean = _functions.mean
    def median(
        x,
        /,
        axis: Any = ...,
        out: Any = ...,
        overwrite_input: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Any: ...
    memoryview = _placement.memoryview
    min = _functions.min
    minimum = _functions.minimum
    mm = _products.mm
    mod = _functions.remainder
    def mode(
        x, /, axis: Any = ..., keepdims: Any = ..., *, dim: Any = ..., keepdim: Any = ...
    ) -> Any: ...
    moveaxis = _manipulation.moveaxis
    movedim = _manipulation.moveaxis
    msort = _order_statistics.msort
    mul = _functions.multiply
    multiply = _functions.multiply
    mv = _products.mv
    mvlgamma = _gammas.mvlgamma
    nan_to_num = _arithmetic.nan_to_num
    nanargmax = _statistics.nanargmax
    nanargmin = _statistics.nanargmin
    nanmax = _statistics.nanmax
    def nanmean(
        x,
        /,
        axis: Any = ...,
        dtype: Any = ...,
        out: Any = ...,
        keepdims: Any = ...,
        *,
        where: Any = ...,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Tensor: ...
    def nanmedian(
        x,
        /,
        axis: Any = ...,
        out: Any = ...,
        overwrite_input: Any = ...,
        keepdims: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Any: ...
    nanmin = _statistics.nanmin
    nanprod = _statistics.nanprod
    def nanquantile(
        x,
        /,
        q: Any,
        axis: Any = ...,
        out: Any = ...,
        overwrite_input: Any = ...,
        method: Any = ...,
        keepdims: Any = ...,
        *,
        weights: Any = ...,
        dim: Any = ...,
        keepdim: Any = ...,
        interpolation: Any = ...,
    ) -> Tensor: ...
    nanstd = _statistics.nanstd
    def nansum(
        x,
        /,
        axis: Any = ...,
        dtype: Any = ...,
        out: Any = ...,
        keepdims: Any = ...,
        initial: Any = ...,
        where: Any = ...,
        *,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Tensor: ...
    nanvar = _statistics.nanvar
    def narrow(
        x, /, axis: Any = ..., start: Any = ..., length: Any = ..., *, dim: Any = ...
    ) -> Tensor: ...
    def narrow_copy(
        x, axis: Any = ..., start: Any = ..., length: Any = ..., *, dim: Any = ...
    ) -> Tensor: ...
    ndimension = _torch_methods.ndimension
    ne = _functions.not_equal
    neg = _functions.negative
    negative = _functions.negative
    nelement = _torch_methods.nelement
    new_empty = _torch_methods.new_empty
    new_full = _torch_methods.new_full
    new_ones = _torch_methods.new_ones
    new_tensor = _torch_methods.new_tensor
    new_zeros = _torch_methods.new_zeros
    nextafter = _arithmetic.nextafter
    nonzero = _manipulation.nonzero
    not_equal = _functions.not_equal
    numel = _placement.numel
    numpy = _transfer.numpy
    outer = _outer.outer
    partition = _sets.partition_in_place
    def permute(x, /, *axes: Any, dims: Any = ...) -> Tensor: ...
    poisson_quantile = _functions.poisson_quantile
    positive = _functions.positive
    pow = _functions.pow
    power = _functions.pow
    prod = _functions.prod
    ptp = _statistics.ptp
    @property
    def ptr(self) -> Any: ...
    put = _tensor_writing.put
    put_ = _torch_methods.put_
    def quantile(
        x,
        /,
        q: Any,
        axis: Any = ...,
        out: Any = ...,
        overwrite_input: Any = ...,
        method: Any = ...,
        keepdims: Any = ...,
        *,
        weights: Any = ...,
        dim: Any = ...,
        keepdim: Any = ...,
        interpolation: Any = ...,
    ) -> Tensor: ...
    rad2deg = _arithmetic.rad2deg
    radians = _arithmetic.deg2rad
    ravel = _axes.ravel
    @property
    def real(self) -> Any: ...
    reciprocal = _functions.reciprocal
    relu = _functions.relu
    remainder = _functions.remainder
    def renorm(x, /, p: Any, axis: Any = ..., maxnorm: Any = ..., *, dim: Any = ...) -> Tensor: ...
    def repeat(x, /, repeats: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    def repeat_interleave(x, /, repeats: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    @property
    def requires_grad(self) -> Any: ...
    requires_grad_ = _torch_methods.requires_grad_
    reshape_as = _torch_methods.reshape_as
    resolve_conj = _attributes.resolve_conj
    resolve_neg = _attributes.resolve_neg
    right_shift = _functions.bitwise_right_shift
    rint = _arithmetic.round
    def roll(
        x, /, shift: Any = ..., axis: Any = ..., *, shifts: Any = ..., dims: Any = ...
    ) -> Tensor: ...
    def rot90(x, /, k: Any = ..., axes: Any = ..., *, dims: Any = ...) -> Tensor: ...
    round = _arithmetic.round
    rsqrt = _functions.rsqrt
    def scatter(
        x,
        /,
        axis: Any = ...,
        index: Any = ...,
        source: Any = ...,
        *,
        dim: Any = ...,
        src: Any = ...,
        value: Any = ...,
    ) -> Tensor: ...
    def scatter_add(
        x,
        /,
        axis: Any = ...,
        index: Any = ...,
        source: Any = ...,
        *,
        dim: Any = ...,
        src: Any = ...,
    ) -> Tensor: ...
    def scatter_reduce(
        x,
        /,
        axis: Any = ...,
        index: Any = ...,
        source: Any = ...,
        reduce: Any = ...,
        *,
        include_self: Any = ...,
        dim: Any = ...,
        src: Any = ...,
    ) -> Tensor: ...
    searchsorted = _sorting.searchsorted
    def select(x, axis: Any = ..., index: Any = ..., *, dim: Any = ...) -> Tensor: ...
    def select_scatter(
        x,
        /,
        source: Any = ...,
        axis: Any = ...,
        index: Any = ...,
        *,
        dim: Any = ...,
        src: Any = ...,
    ) -> Tensor: ...
    set = _placement.set
    sgn = _functions.sign
    def short(self) -> Tensor: ...
    sigmoid = _functions.sigmoid
    sign = _functions.sign
    signbit = _composed.signbit
    silu = _functions.silu
    sin = _functions.sin
    sinc = _functions.sinc
    sinh = _functions.sinh
    def slice_scatter(
        x,
        /,
        source: Any = ...,
        axis: Any = ...,
        start: Any = ...,
        end: Any = ...,
        step: Any = ...,
        *,
        dim: Any = ...,
        src: Any = ...,
    ) -> Tensor: ...
    def sort(
        x,
        /,
        axis: Any = ...,
        kind: Any = ...,
        *,
        dim: Any = ...,
        descending: Any = ...,
        stable: Any = ...,
    ) -> Any: ...
    def split(
        x,
        indices_or_sections: Any,
        /,
        axis: Any = ...,
        *,
        dim: Any = ...,
        split_size_or_sections: Any = ...,
        split_size: Any = ...,
    ) -> list[Tensor]: ...
    def split_with_sizes(x, split_sizes: Any, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    sqrt = _functions.sqrt
    square = _functions.square
    squeeze = _manipulation.squeeze
    std = _functions.std
    def stride(x, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    sub = _functions.subtract
    subtract = _functions.subtract
    sum = _functions.sum
    sum_to_size = _torch_methods.sum_to_size
    def swapaxes(
        x,
        /,
        axis1: Any = ...,
        axis2: Any = ...,
        *,
        dim0: Any = ...,
        dim1: Any = ...,
        axis0: Any = ...,
    ) -> Tensor: ...
    def swapdims(
        x,
        /,
        axis1: Any = ...,
        axis2: Any = ...,
        *,
        dim0: Any = ...,
        dim1: Any = ...,
        axis0: Any = ...,
    ) -> Tensor: ...
    t = _windows.t
    take = _manipulation.take
    def take_along_axis(x, /, indices: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    def take_along_dim(x, /, indices: Any, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    tan = _functions.tan
    tanh = _functions.tanh
    def tensor_split(
        x, /, indices_or_sections: Any, axis: Any = ..., *, dim: Any = ...
    ) -> Tensor: ...
    def tile(
        x, /, *counts: Any, repetitions: Any = ..., reps: Any = ..., dims: Any = ...
    ) -> Tensor: ...
    to = _placement.to
    toDlpack = _placement.toDlpack
    tobytes = _placement.tobytes
    tofile = _text_files.tofile
    def topk(
        x, /, k: Any, axis: Any = ..., largest: Any = ..., sorted: Any = ..., *, dim: Any = ...
    ) -> Any: ...
    trace = _diagonals.trace
    def transpose(x, /, *axes: Any, dim0: Any = ..., dim1: Any = ...) -> Tensor: ...
    tril = _manipulation.tril
    triu = _manipulation.triu
    true_divide = _functions.divide
    trunc = _functions.trunc
    type = _torch_methods.type
    type_as = _torch_methods.type_as
    def unbind(x, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    def unflatten(x, /, axis: Any = ..., sizes: Any = ..., *, dim: Any = ...) -> Tensor: ...
    def unfold(
        x, /, axis: Any = ..., size: Any = ..., step: Any = ..., *, dimension: Any = ...
    ) -> Tensor: ...
    def unique(
        x,
        /,
        return_index: Any = ...,
        return_inverse: Any = ...,
        return_counts: Any = ...,
        axis: Any = ...,
        *,
        equal_nan: Any = ...,
        dim: Any = ...,
    ) -> Any: ...
    def unique_consecutive(
        x,
        /,
        return_inverse: Any = ...,
        return_counts: Any = ...,
        axis: Any = ...,
        *,
        dim: Any = ...,
    ) -> Tensor: ...
    def unsqueeze(x, /, axis: Any = ..., *, dim: Any = ...) -> Tensor: ...
    def unstack(x, /, axis: Any = ..., *, dim: Any = ...) -> tuple[Tensor, ...]: ...
    var = _functions.var
    vdot = _outer.vdot
    view = _placement.view
    view_as = _torch_methods.view_as
    vsplit = _splitting.vsplit
    where = _picking.kept_where
    xlogy = _blends.xlogy
    zero_ = _torch_methods.zero_
    def bernoulli(
        p=..., size: Any = ..., *, dtype: Any = ..., device: Any = ..., generator: Any = ...
    ) -> Tensor: ...
    def bernoulli_(x, p: Any = ..., *, generator: Any = ...) -> Tensor: ...
    def cauchy_(x, median: Any = ..., sigma: Any = ..., *, generator: Any = ...) -> Tensor: ...
    def cholesky(x, /, *, upper: Any = ...) -> Tensor: ...
    def cholesky_inverse(L, upper: Any = ...) -> Tensor: ...
    def cholesky_solve(b, factor: Any, /, upper: Any = ...) -> Tensor: ...
    def det(x, /) -> Tensor: ...
    def exponential_(x, lambd: Any = ..., *, generator: Any = ...) -> Tensor: ...
    def geometric_(x, p: Any, *, generator: Any = ...) -> Tensor: ...
    def hardshrink(x, lambd: Any = ...) -> Tensor: ...
    def inverse(input) -> Tensor: ...
    def istft(
        x,
        /,
        n_fft: Any,
        hop_length: Any = ...,
        win_length: Any = ...,
        window: Any = ...,
        center: Any = ...,
        **options: Any,
    ) -> Tensor: ...
    def log_normal_(x, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Tensor: ...
    def log_softmax(x, axis: Any = ..., *, dtype: Any = ..., dim: Any = ...) -> Tensor: ...
    def logdet(input) -> Tensor: ...
    def logsumexp(
        x, axis: Any = ..., keepdims: Any = ..., *, dim: Any = ..., keepdim: Any = ...
    ) -> Tensor: ...
    def matrix_exp(x, /) -> Tensor: ...
    def matrix_power(x, n: Any, /) -> Tensor: ...
    def multinomial(
        p, num_samples: Any, replacement: Any = ..., *, size: Any = ..., generator: Any = ...
    ) -> Tensor: ...
    def norm(
        x,
        /,
        ord: Any = ...,
        axis: Any = ...,
        keepdims: Any = ...,
        *,
        p: Any = ...,
        dim: Any = ...,
        keepdim: Any = ...,
    ) -> Tensor: ...
    def normal_(x, mean: Any = ..., std: Any = ..., *, generator: Any = ...) -> Tensor: ...
    def pinverse(x, /, rcond: Any = ...) -> Tensor: ...
    def prelu(x, weight: Any) -> Tensor: ...
    def qr(x, /, mode: Any = ...) -> Any: ...
    def random_(x, from_: Any = ..., to: Any = ..., *, generator: Any = ...) -> Tensor: ...
    def slogdet(x, /) -> Any: ...
    def softmax(
        x, axis: Any = ..., *, scale: Any = ..., mask: Any = ..., dtype: Any = ..., dim: Any = ...
    ) -> Tensor: ...
    def stft(
        x,
        /,
        n_fft: Any,
        hop_length: Any = ...,
        win_length: Any = ...,
        window: Any = ...,
        center: Any = ...,
        **options: Any,
    ) -> Tensor: ...
    def svd(input, some: Any = ..., compute_uv: Any = ...) -> Any: ...
    def uniform_(x, from_: Any = ..., to: Any = ..., *, generator: Any = ...) -> Tensor: ...
    def abs_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def absolute_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def acos_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def acosh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def add_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def addbmm_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def addcdiv_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def addcmul_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def addmm_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def addmv_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def addr_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def arccos_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def arccosh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def arcsin_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def arcsinh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def arctan_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def arctan2_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def arctanh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def asin_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def asinh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def atan_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def atan2_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def atanh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def baddbmm_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def bitwise_and_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def bitwise_left_shift_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def bitwise_not_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def bitwise_or_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def bitwise_right_shift_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def bitwise_xor_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def ceil_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def clamp_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def clamp_max_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def clamp_min_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def clip_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def conj_physical_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def copysign_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def cos_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def cosh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def cumprod_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def cumsum_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def deg2rad_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def digamma_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def div_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def divide_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def eq_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def erf_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def erfc_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def erfinv_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def exp_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def exp2_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def expm1_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def fix_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def float_power_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def floor_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def floor_divide_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def fmod_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def frac_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def gcd_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def ge_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def greater_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def greater_equal_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def gt_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def heaviside_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def hypot_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def i0_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def igamma_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def igammac_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def index_add_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def index_copy_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def index_fill_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def index_reduce_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def lcm_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def ldexp_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def le_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def lerp_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def less_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def less_equal_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def lgamma_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def log_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def log10_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def log1p_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def log2_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def logaddexp_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def logaddexp2_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def logical_and_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def logical_not_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def logical_or_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def logical_xor_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def logit_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def lt_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def masked_fill_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def masked_scatter_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def maximum_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def minimum_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def mul_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def multiply_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def mvlgamma_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def nan_to_num_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def ne_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def neg_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def negative_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def nextafter_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def not_equal_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def pow_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def rad2deg_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def reciprocal_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def relu_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def remainder_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def renorm_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def round_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def rsqrt_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def scatter_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def scatter_add_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def scatter_reduce_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sgn_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sigmoid_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sign_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sin_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sinc_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sinh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sqrt_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def square_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def sub_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def subtract_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def tan_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def tanh_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def tril_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def triu_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def true_divide_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def trunc_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
    def xlogy_(self, *arguments: Any, **keywords: Any) -> Tensor: ...
