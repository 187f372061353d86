"""The methods of Tensor: the functions that are also methods, and further names for them.

A method is the function of that name with the tensor as its first argument. Functions of compiled
rooms are bound at import. For the others a `LateMethod` is bound, which imports their module at its
first use and then replaces itself by the function.
"""

import importlib

from gputensor.tensor import functions, interop, manipulation, products, transfer
from gputensor.tensor.core import bind_methods
from gputensor.tensor.parameter_names import find

__all__ = ["ALIASES", "BOUND", "IN_PLACE", "LATE", "LateMethod", "table"]

# Functions that are bound at import, by room.
BOUND = {
    functions: [name for name in functions.__all__ if name not in ("round", "real", "imag")],
    interop: ["astype", "copy"],
    manipulation: "broadcast_to moveaxis nonzero squeeze take tril triu".split(),
    products: ["addmm", "baddbmm", "bmm", "matmul", "mm", "mv"],
    transfer: ["numpy"],
}
# Functions of modules that are imported at their first use, by module.
LATE = {
    "gputensor.tensor.manipulation.arithmetic": (
        "angle deg2rad divmod exp2 float_power fmax fmin fmod heaviside isneginf isposinf isreal "
        "ldexp nan_to_num nextafter rad2deg round"
    ),
    "gputensor.tensor.manipulation.axes": "expand flatten fliplr flipud ravel rot90 swapaxes "
    "unsqueeze",
    "gputensor.tensor.manipulation.axis_methods": "flip permute tile transpose",
    "gputensor.tensor.manipulation.closeness": "allclose array_equal isclose",
    "gputensor.tensor.manipulation.composed": "copysign hypot logaddexp signbit",
    "gputensor.tensor.manipulation.diagonals": "diag diagflat diagonal fill_diagonal trace",
    "gputensor.tensor.manipulation.differences": "diff",
    "gputensor.tensor.manipulation.joining": "repeat roll unstack",
    "gputensor.tensor.manipulation.picking": (
        "argwhere flatnonzero gather index_select masked_fill masked_select scatter take_along_axis"
    ),
    "gputensor.tensor.manipulation.splitting": "array_split chunk dsplit hsplit split vsplit",
    "gputensor.tensor.blends": (
        "addcdiv addcmul div frac lerp logaddexp2 logit narrow unflatten xlogy"
    ),
    "gputensor.tensor.numerics.attributes": (
        "H adjoint conj_physical data flags grad is_conj is_inference is_leaf is_meta is_pinned "
        "is_quantized is_shared is_sparse mH ptr requires_grad resolve_conj resolve_neg"
    ),
    "gputensor.tensor.numerics.digits": "frexp",
    "gputensor.tensor.numerics.distances": "addbmm addmv addr dist ger renorm",
    "gputensor.tensor.numerics.facts": "is_complex is_floating_point is_nonzero",
    "gputensor.tensor.numerics.group_reductions": "index_reduce scatter_reduce",
    "gputensor.tensor.numerics.index_makers": "flat",
    "gputensor.tensor.numerics.making": "diag_embed",
    "gputensor.tensor.numerics.running": "cummax cummin logcumsumexp mode unique_consecutive",
    "gputensor.tensor.numerics.text_files": "tofile",
    "gputensor.tensor.numerics.torch_results": "aminmax",
    "gputensor.tensor.numerics.torch_methods": (
        "clamp_max clamp_min detach detach_ dim_order expand_as fill_ fill_diagonal_ "
        "index_put index_put_ is_same_size is_signed narrow_copy nelement ndimension new_empty "
        "new_full new_ones new_tensor new_zeros put_ requires_grad_ reshape_as select "
        "split_with_sizes sum_to_size "
        "type type_as view_as zero_"
    ),
    "gputensor.tensor.numerics.windows": "as_strided t unfold",
    "gputensor.tensor.numerics.gammas": "mvlgamma",
    "gputensor.tensor.numerics.writing": (
        "diagonal_scatter index_copy index_fill masked_scatter select_scatter slice_scatter"
    ),
    "gputensor.tensor.order_statistics": "histc kthvalue msort",
    "gputensor.tensor.placement": (
        "bfloat16 bool byte char copy_ cpu cuda dim double element_size float get get_device half "
        "imag int is_cuda long memoryview numel real set short stride to toDlpack "
        "tobytes view"
    ),
    "gputensor.tensor.products.outer": "cross dot inner kron outer vdot",
    "gputensor.tensor.histograms": "bincount histogram",
    "gputensor.tensor.sets": "argpartition partition_in_place",
    "gputensor.tensor.writing": "choose index_add put scatter_add",
    "gputensor.tensor.scans": "cumprod cumsum",
    "gputensor.tensor.quantiles": "median nanmedian nanquantile quantile",
    "gputensor.tensor.sorting": "argsort searchsorted sort_in_place topk unique",
    "gputensor.tensor.statistics": (
        "average corrcoef cov nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum "
        "nanvar ptp"
    ),
}
# Methods of functions whose first argument is a condition: functions in `manipulation.picking`.
CONDITION_FIRST = {"compress": "compressed", "where": "kept_where"}
# Other names for functions, from NumPy and PyTorch, in this package and as methods.
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "around": "round", "bitwise_not": "bitwise_invert", "clamp": "clip",
    "clone": "copy",
    "conjugate": "conj", "degrees": "rad2deg", "eq": "equal", "fix": "trunc",
    "ge": "greater_equal", "gt": "greater", "invert": "bitwise_invert", "le": "less_equal",
    "left_shift": "bitwise_left_shift", "lt": "less", "mod": "remainder", "movedim": "moveaxis",
    "mul": "multiply", "ne": "not_equal", "neg": "negative", "power": "pow", "radians": "deg2rad",
    "repeat_interleave": "repeat", "right_shift": "bitwise_right_shift", "rint": "round",
    "sgn": "sign", "sub": "subtract", "swapdims": "swapaxes", "take_along_dim": "take_along_axis",
    "tensor_split": "array_split", "true_divide": "divide", "unbind": "unstack",
}  # fmt: skip
# Functions with `out` that also exist as PyTorch's in-place methods, whose names add an underscore.
IN_PLACE = (
    "abs acos add asin atan bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clip cos "
    "cosh div divide erf erfc exp exp2 expm1 floor floor_divide log log10 log1p log2 logical_and "
    "logical_not logical_or masked_fill maximum minimum mul multiply neg negative pow reciprocal "
    "relu remainder round rsqrt sigmoid sign sin sinh sqrt square sub subtract tan tanh trunc "
    "acosh asinh atan2 atanh deg2rad digamma erfinv fmod igamma "
    "igammac lgamma logical_xor nan_to_num rad2deg absolute arccos arccosh arcsin arcsinh arctan "
    "arctan2 arctanh bitwise_left_shift bitwise_right_shift fix gcd i0 lcm sgn sinc true_divide"
)
# The same of functions without `out`: their result is copied to the tensor.
COPIED_BACK = (
    "addbmm addcdiv addcmul addmm addmv addr baddbmm clamp_max clamp_min conj_physical copysign "
    "cumprod cumsum eq float_power frac ge greater greater_equal gt heaviside ldexp less "
    "less_equal logaddexp logaddexp2 mvlgamma not_equal "
    "hypot index_add index_copy index_fill index_reduce le lerp logit lt masked_scatter ne "
    "nextafter renorm scatter scatter_add scatter_reduce tril triu xlogy"
)


def places():
    """Return the module for masks, which is imported at the first large mask on a GPU."""
    return importlib.import_module("gputensor.tensor.places")


manipulation.find_places_with(
    lambda x: places().places(x), lambda x, mask: places().picked(x, mask)
)
manipulation.find_lines_with(
    lambda *arguments: importlib.import_module("gputensor.tensor.grids").lines(*arguments)
)


functions.find_masked_with(
    lambda: importlib.import_module("gputensor.tensor.numerics.masked_reductions")
)


class LateMethod:
    """The placeholder of a method until its module has been imported."""

    def __init__(self, module, name, method):
        self.module, self.name, self.method = module, name, method

    def __get__(self, tensor, owner=None):
        found = find(self.module, self.name)
        bind_methods({self.method: found})
        return found.__get__(tensor, owner)

    def __set__(self, tensor, value):
        found = find(self.module, self.name)
        if not hasattr(found, "__set__"):
            raise AttributeError(f"{self.method}: got a value for a method; expected a property")
        found.__set__(tensor, value)


class InPlaceMethod:
    """A method that writes the result of a function to its first argument."""

    def __init__(self, name, has_out=True):
        self.name, self.has_out = name, has_out

    def __get__(self, tensor, owner=None):
        function, has_out = getattr(owner, self.name), self.has_out

        def method(x, /, *arguments, **keywords):
            if not has_out:
                x[...] = function(x, *arguments, **keywords)
                return x
            return function(x, *arguments, **keywords, out=x)

        method.__name__ = method.__qualname__ = f"{self.name}_"
        method.__doc__ = f"Write the result of :func:`{self.name}` to the tensor and return it."
        bind_methods({method.__name__: method})
        return method.__get__(tensor, owner)


def table():
    """Return every method that is a function, by its name.

    >>> sorted(name for name in table() if name.startswith("nans"))
    ['nanstd', 'nansum']
    """
    found = {name: find(room.__name__, name) for room, names in BOUND.items() for name in names}
    for module, names in LATE.items():
        found |= {name: LateMethod(module, name, name) for name in names.split()}
    for alias, name in ALIASES.items():
        method = found.get(name)
        if isinstance(method, LateMethod):
            method = LateMethod(method.module, name, alias)
        if method is not None:
            found[alias] = method
    for method, name in CONDITION_FIRST.items():
        found[method] = LateMethod("gputensor.tensor.manipulation.picking", name, method)
    found["sort"] = LateMethod("gputensor.tensor.sorting", "sort_in_place", "sort")
    found["partition"] = LateMethod("gputensor.tensor.sets", "partition_in_place", "partition")
    del found["sort_in_place"], found["partition_in_place"]
    found |= {f"{name}_": InPlaceMethod(name) for name in IN_PLACE.split()}
    return found | {f"{name}_": InPlaceMethod(name, False) for name in COPIED_BACK.split()}
