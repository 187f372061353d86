"""Names of parameters and options of NumPy and PyTorch: ``gt.digitize(x, bins=edges)``.

In the array API standard arrays are parameters by position, so each library names them as it
likes, and programs use these names. The tables name the parameters of a function in order, as
`core.named` takes them: ``_`` for a name that needs no help, ``|`` between several names of one.
Element-wise functions are absent: NumPy's ufuncs have no such names either. `OPTIONS` lists options
that functions of ``numerics.options`` provide, and `PLACED` those of them that may be positional.
"""

import importlib
import inspect
import sys

from gputensor.tensor.core import checked_parameters, named

__all__ = [
    "DRAWS", "DRAW_OPTIONS", "LINALG", "LINALG_OPTIONS", "NAMES", "OPTIONS", "PLACED", "SERIES",
    "TRANSFORMS", "TRANSFORM_OPTIONS", "drawing", "find", "given_names",
]  # fmt: skip

#: Names of parameters -> functions of the package.
GROUPS = {
    "a|input": (
        "all amax amin any argmax argmin argsort argwhere count_nonzero cumprod cumsum diagonal "
        "diff expand_dims flatnonzero histogram max mean median min nanmean nanmedian "
        "nanquantile nansum nonzero permute_dims prod quantile ravel repeat reshape roll "
        "round sort squeeze std sum swapaxes trace transpose var copy clip"
    ),
    "a|input|prototype": "empty_like full_like ones_like zeros_like",
    "a": (
        "array2string array_str average histogram_bin_edges nanargmax nanargmin nancumprod "
        "isfortran nancumsum nanmax nanmin nanprod ndim ptp real_if_close shape size "
        "sort_complex"
    ),
    "a|object|data": "array asarray",
    "a|input b|other": "allclose dot isclose kron tensordot inner",
    "a|input b|vec2": "outer",
    "x1|a|input x2|b|other": "cross matmul vecdot vdot",
    "z|input": "angle",
    "arr values": "append",
    "func1d axis arr": "apply_along_axis",
    "func a axes": "apply_over_axes",
    "a kth": "argpartition partition",
    "a1 a2": "array_equal array_equiv polyadd polymul polysub",
    "arr": "array_repr diag_indices_from tril_indices_from triu_indices_from",
    "arr|input": "take_along_axis",
    "ary|input": "array_split",
    "ary": "ediff1d",
    "M": "bartlett blackman hamming hanning",
    "M beta": "kaiser",
    "arrays": "block",
    "arrays|tensors": "stack concat",
    "tup|tensors": "column_stack dstack hstack vstack",
    "array|input": "broadcast_to pad",
    "from_ to": "can_cast",
    "a choices": "choose",
    "condition a": "compress",
    "a v": "convolve correlate",
    "a|sorted_sequence v|input": "searchsorted",
    "dst src": "copyto",
    "m|input": "cov flip fliplr flipud rot90 tril triu",
    "arr obj": "delete",
    "v|input": "diag diagflat",
    "fname": "genfromtxt loadtxt",
    "fname X": "savetxt",
    "string|text": "fromstring",
    "x bins": "digitize",
    "input boundaries": "bucketize",
    "ary|input|tensor indices_or_sections": "dsplit hsplit split vsplit",
    "condition arr": "extract",
    "N|n M|m": "eye tri",
    "a val": "fill_diagonal",
    "x|input": "fix i0 isneginf isposinf isreal nan_to_num sinc bincount",
    "x": ("iscomplex iscomplexobj isrealobj unique_all unique_counts unique_inverse unique_values"),
    "iter": "fromiter",
    "f|input": "gradient",
    "x y": "histogram2d",
    "sample": "histogramdd",
    "val|input": "imag real",
    "arr obj values": "insert",
    "x xp fp": "interp",
    "ar1 ar2": "intersect1d setdiff1d setxor1d union1d",
    "element|elements test_elements": "isin",
    "element": "isscalar",
    "keys": "lexsort",
    "start stop|end": "arange linspace",
    "start stop|end num|steps": "geomspace logspace",
    "file": "load savez savez_compressed",
    "_ mask_func": "mask_indices",
    "a|input source destination": "moveaxis",
    "a q": "nanpercentile percentile",
    "x condlist funclist": "piecewise",
    "a mask values": "putmask",
    "arr mask vals": "place",
    "seq_of_zeros": "poly",
    "u v": "polydiv",
    "x y deg": "polyfit",
    "p x": "polyval",
    "a ind|indices v|values": "put",
    "arr indices values": "put_along_axis",
    "multi_index dims": "ravel_multi_index",
    "a new_shape": "resize",
    "a axis start": "rollaxis",
    "p": "roots unwrap",
    "file arr": "save",
    "condlist choicelist": "select",
    "a|input indices|index": "take",
    "A|input reps|dims": "tile",
    "y": "trapezoid cumulative_trapezoid",
    "filt": "trim_zeros",
    "ar|input": "unique",
    "indices shape": "unravel_index",
    "_ N": "vander",
    "input num_groups": "group_norm",
    "input weight": "embedding",
    "input": (
        "celu elu gelu glu gumbel_softmax hardshrink hardsigmoid hardswish hardtanh leaky_relu "
        "log_softmax logsigmoid logsumexp mish prelu relu relu6 rrelu selu sigmoid silu softmax "
        "softmin softplus softshrink softsign tanh tanhshrink threshold normalize dropout "
        "batch_norm instance_norm layer_norm local_response_norm rms_norm linear "
        "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy gaussian_nll_loss "
        "huber_loss kl_div l1_loss mse_loss multi_margin_loss nll_loss poisson_nll_loss "
        "smooth_l1_loss soft_margin_loss conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
        "conv_transpose3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d "
        "max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
        "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
        "interpolate grid_sample pixel_shuffle pixel_unshuffle "
        "chunk cummax cummin diag_embed gather histc index_add index_copy index_fill "
        "index_reduce index_select kthvalue logcumsumexp mode msort narrow norm numel renorm "
        "scatter scatter_add scatter_reduce std_mean topk unflatten unique_consecutive "
        "unsqueeze unstack var_mean is_complex is_floating_point stft istft"
    ),
    "input|a order": "flatten",
    "a _ _ _ correction": "nanstd nanvar",
    "input mask": "masked_select",
    "input mask value": "masked_fill",
    "input mask source": "masked_scatter",
    "input end weight": "lerp",
    "input mat vec": "addmv",
    "input other": "dist",
    "input size stride": "as_strided",
    "tensor|input num_classes": "one_hot",
}
NAMES = {name: names for names, functions in GROUPS.items() for name in functions.split()}
NAMES["clip"] = "a|input a_min a_max"
CREATION = "array asarray empty eye full ones zeros"
ACTIVATIONS = (
    "celu dropout dropout1d dropout2d dropout3d elu hardsigmoid hardswish hardtanh leaky_relu mish "
    "relu relu6 rrelu selu silu threshold"
)
LIKE = "empty_like full_like ones_like zeros_like"
#: Option, the function of `numerics.options` that provides it, functions of the package.
OPTION_GROUPS = (
    ("order", "in_memory_order", f"{CREATION} {LIKE} astype copy"),
    ("order", "in_product_order", "einsum matmul matvec vecdot vecmat"),
    ("order", "without_fields", "argpartition argsort partition sort"),
    ("order", "in_index_order", "ravel_multi_index unravel_index"),
    ("like", "on_device_of", f"{CREATION} arange frombuffer fromiter tri"),
    ("subok", "unused", f"{LIKE} array astype broadcast_arrays broadcast_to copy"),
    ("casting", "converted_by", "astype"),
    ("casting", "by_casting",
     "concat copyto einsum hstack matmul matvec stack vecdot vecmat vstack"),
    ("casting", "castable", "can_cast"),
    ("kind", "unused", "argpartition isin partition"),
    ("max_work", "unused", "may_share_memory"),
    ("copy", "unused", "meshgrid"),
    ("allow_pickle", "unused", "load save"),
    ("mmap_mode", "unused", "load"),
    ("fix_imports", "unused", "load"),
    ("encoding", "unused", "load"),
    ("max_header_size", "unused", "load"),
    ("axis", "along_new_axis", "geomspace linspace logspace"),
    ("sorted", "unused", "unique"),
    ("mean", "unused", "nanstd nanvar std var"),
    ("assume_unique", "unused", "intersect1d setxor1d"),
    ("assume_unique", "in_given_order", "setdiff1d"),
    ("return_indices", "with_indices", "intersect1d"),
    ("out", "copied_to", "choose compress cumulative_prod cumulative_sum einsum "
     "matvec nancumprod nancumsum take vecdot vecmat"),
    ("dtype", "in_dtype", "corrcoef cov"),
    ("dtype", "of_operands_in", "matmul matvec vecdot vecmat"),
    ("dtype", "of_all_operands_in", "einsum"),
    ("memory_format", "in_memory_format",
     f"ascontiguous copy empty {LIKE} rand_like randint_like randn_like to"),
    ("mode", "within_extent", "choose put ravel_multi_index take"),
    ("sparse", "as_open_grid", "indices"),
    ("inplace", "in_place", ACTIVATIONS),
    ("requires_grad", "without_gradient",
     f"{CREATION} {LIKE} arange linspace logspace normal rand randint randn randperm tensor"),
    ("reduce", "scattered", "scatter"),
    ("out_int32", "in_int32", "bucketize searchsorted"),
    ("sparse_grad", "unused", "gather"),
    ("padding_idx", "unused", "embedding"),
    ("normalized_shape", "over_last_extents", "layer_norm rms_norm"),
    ("spacing", "with_spacing", "gradient"),
    ("enable_gqa", "unused", "scaled_dot_product_attention"),
    ("axisa", "along_axis_of_first", "cross"),
    ("axisb", "along_axis_of_second", "cross"),
    ("axisc", "along_axis_of_result", "cross"),
)  # fmt: skip
#: Options that follow the parameters by position in NumPy or PyTorch; see `core.named`.
PLACED = {
    **dict.fromkeys(CREATION.split(), "order"),
    **dict.fromkeys(LIKE.split(), "order subok shape"),
    **dict.fromkeys(ACTIVATIONS.split(), "inplace"),
    **dict.fromkeys(("relu", "silu"), "1 inplace"),  # a tensor there is `out`
    **dict.fromkeys(("take", "choose"), "out mode"),
    **dict.fromkeys(("geomspace", "logspace"), "dtype axis"),
    **dict.fromkeys(("setdiff1d", "setxor1d"), "assume_unique"),
    **dict.fromkeys(("matrix_rank", "pinv", "svd"), "hermitian"),
    "astype": "order casting subok copy",
    "can_cast": "casting",
    "choice": "shuffle",
    "compress": "out",
    "copy": "order subok",
    "cross": "2 axisa axisb axisc axis",  # two arguments and one are `axis`, as in PyTorch
    "interpolate": "recompute_scale_factor antialias",
    "intersect1d": "assume_unique return_indices",
    "linspace": "axis",
    "put": "mode",
    "ravel_multi_index": "mode order",
    "unravel_index": "order",
}
#: Modules whose functions have their flags checked if no table names them; flags of programs and
#: devices may be numbers, too.
CHECKED = tuple(
    f"gputensor.{name}" for name in "tensor linalg fft nn random special polynomial".split()
)
PROVIDERS = "gputensor.tensor.numerics.options"
OPTIONS: dict[str, dict[str, str]] = {}
for _option, _provider, _functions in OPTION_GROUPS:
    for _name in _functions.split():
        OPTIONS.setdefault(_name, {})[_option] = f"{PROVIDERS}.{_provider}"
OPTIONS["interpolate"] = {"recompute_scale_factor": "gputensor.nn.interpolation.with_computed_size"}
#: The functions of `linalg`.
LINALG = {
    name: names
    for names, functions in {
        "a|A": (
            "cholesky cholesky_ex det eig eigh eigvals eigvalsh inv inv_ex qr slogdet svd tensorinv"
        ),
        "A|a": "matrix_norm matrix_rank svdvals pinv matrix_exp lu lu_factor lu_factor_ex",
        "a|A b|B": "lstsq solve solve_ex tensorsolve",
        "x|A": "cond norm",
        "_ N": "vander",
        "x|input": "vector_norm",
        "a|A n": "matrix_power",
        "arrays|tensors": "multi_dot",
    }.items()
    for name in functions.split()
}
LINALG_OPTIONS = {
    "multi_dot": {"out": f"{PROVIDERS}.copied_to"},
    **dict.fromkeys(("matrix_rank", "pinv", "svd"), {"hermitian": f"{PROVIDERS}.unused"}),
    **dict.fromkeys(("lu", "lu_factor"), {"pivot": f"{PROVIDERS}.only_pivoted"}),
    "lstsq": {"driver": f"{PROVIDERS}.unused"},
    "matrix_norm": {"dim": f"{PROVIDERS}.of_matrices_along"},
    "solve": {"left": f"{PROVIDERS}.on_either_side"},
}
#: The functions of `random`, whose generators have them as methods.
DRAWS = {"multinomial": "n|input pvals", "permuted": "x"}
DRAW_OPTIONS = {
    **dict.fromkeys(
        ("random", "standard_gamma", "standard_normal"), {"out": f"{PROVIDERS}.drawn_to"}
    ),
    "standard_exponential": {"out": f"{PROVIDERS}.drawn_to", "method": f"{PROVIDERS}.unused"},
    "permuted": {"out": f"{PROVIDERS}.copied_to"},
    "choice": {"shuffle": f"{PROVIDERS}.unused"},
    "multivariate_hypergeometric": {"method": f"{PROVIDERS}.unused"},
    "multivariate_normal": {
        name: f"{PROVIDERS}.unused" for name in ("check_valid", "method", "tol")
    },
}
#: The functions of `polynomial.polynomial`.
SERIES = {
    **dict.fromkeys(("polyadd", "polydiv", "polymul", "polysub"), "c1 c2"),
    **dict.fromkeys(
        ("polycompanion", "polyder", "polyint", "polymulx", "polyroots", "polytrim"), "c"
    ),
    "polyfit": "x y deg", "polyfromroots": "roots", "polyline": "off scl", "polypow": "c pow",
    "polyval": "x c", "polyvalfromroots": "x r", "polyvander": "x deg",
}  # fmt: skip
#: The functions of `fft`.
TRANSFORMS = {
    **dict.fromkeys(
        "fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn "
        "rfft rfft2 rfftn".split(),
        "a|input",
    ),
    **dict.fromkeys(("fftshift", "ifftshift"), "x|input"),
    **dict.fromkeys(("fftfreq", "rfftfreq"), "n"),
}
TRANSFORM_OPTIONS = {
    name: {"out": f"{PROVIDERS}.copied_to"}
    for name, names in TRANSFORMS.items()
    if names == "a|input"
}


def find(module, name, names=NAMES, options=OPTIONS):
    """Return a function of a module; it accepts the names of the table afterwards.

    Flags and words of it are checked, too, as `core.spellings` says.

    >>> import gputensor as gt
    >>> find("gputensor.tensor.writing", "put")(a=gt.zeros(2, device="host"), ind=[0], v=1)
    """
    home = importlib.import_module(module)
    found = getattr(home, name)
    code = getattr(found, "__code__", None)
    is_named = name in names or name in options
    takes_tensors = (
        code is not None
        and module.startswith(CHECKED)
        and (code.co_argcount or code.co_flags & inspect.CO_VARARGS)
    )
    if code is not None and is_named or takes_tensors:
        placed = PLACED.get(name, "") if name in options else ""
        found = named(found, names.get(name, ""), options.get(name), placed)
        # So that a copy that pickle makes is the same function.
        for place in (home, sys.modules[found.__module__]):
            if hasattr(place, name):
                setattr(place, name, found)
    return found


def drawing(function):
    """Return a function of `random` with the names and options of the tables."""
    name = function.__name__
    if name in DRAWS or name in DRAW_OPTIONS or checked_parameters(function):
        placed = PLACED.get(name, "") if name in DRAW_OPTIONS else ""
        return named(function, DRAWS.get(name, ""), DRAW_OPTIONS.get(name), placed)
    return function


def given_names(package, names=None, options=None):
    """Give the functions of a package, which its modules define, the names of the tables."""
    for name in package.__all__:
        function = getattr(package, name)
        home = getattr(function, "__module__", None)
        if home is not None and hasattr(function, "__code__"):
            place = name if name in (names or ()) else function.__name__  # it may be an alias
            setattr(package, name, find(home, place, names or {}, options or {}))
