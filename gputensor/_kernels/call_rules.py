"""The rules of calls: the allowed attributes, and the operands that fit each call.

They are for programs that come from files: for any values, a rule returns or raises ValueError, at
once and with a short text.
"""

from typing import NamedTuple

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.formula import formula
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from gputensor.errors import Described, argument_error

__all__ = [
    "ACTIVATIONS",
    "ATTRIBUTE_TYPES",
    "CONVOLUTION_ACTIVATIONS",
    "DISTRIBUTIONS",
    "MAX_NDIM",
    "POOLINGS",
    "RULES",
    "Spec",
    "is_extent",
    "refuse",
    "shown",
    "updates_product",
]

#: In the order of their numbers in ``blas``.
ACTIVATIONS = (None, "relu", "gelu_tanh", "gelu", "silu")
#: Of a convolution, which finishes its own sums: in the order of ``blas/convolution``.
CONVOLUTION_ACTIVATIONS = (*ACTIVATIONS, "relu6", "hardswish")
#: The folds of a window to one element; "padded_mean" counts the padding too.
POOLINGS = ("max", "sum", "mean", "padded_mean")
#: Distributions of random numbers, in the order of draw.h. The meanings of a and b, in this order:
#: both ends; mean and deviation; b: scale; location and scale; a: probability; least and greatest
#: integer; unused.
DISTRIBUTIONS = (
    "uniform", "normal", "exponential", "gumbel", "bernoulli", "integers", "permutation",
)  # fmt: skip
MAX_NDIM = 16
MAX_EXTENT = 1 << 62
PRECISION_BITS = 6
SCALE_BLOCK = 128
_DTYPES = {row.name: row for row in DTYPES}
_OPERATIONS = {row.name: row for row in ELEMENTWISE}
_REDUCTIONS = {row.name: row for row in REDUCTIONS}
_HALVES = ("float16", "bfloat16")


class Spec(NamedTuple):
    """The dtype and shape of an operand, for the rules. A shape of None means a number."""

    dtype: str
    shape: tuple | None


# ---- attributes


def is_extent(value, end=MAX_EXTENT):
    return type(value) is int and 0 <= value < end


def _is_word(words):
    return lambda value: type(value) is str and value in words


def _is_axes(value):
    if not isinstance(value, (tuple, list)) or len(value) > MAX_NDIM:
        return False
    rising = all(is_extent(axis, MAX_NDIM) for axis in value)
    return rising and all(a < b for a, b in zip(value, value[1:], strict=False))


def _is_extents(value):
    return (
        isinstance(value, (tuple, list))
        and 1 <= len(value) <= MAX_NDIM
        and all(map(is_extent, value))
    )


def _is_number(value):
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 64
    return type(value) in (float, complex)


#: The types of attributes: a test of a value, and a description of the values that pass it.
ATTRIBUTE_TYPES = {
    "operation": (_is_word(_OPERATIONS), "the name of an element-wise operation"),
    "reduction": (_is_word(_REDUCTIONS), "the name of a reduction"),
    "dtype": (_is_word(_DTYPES), "the name of a dtype"),
    "distribution": (_is_word(DISTRIBUTIONS), f"one of {', '.join(DISTRIBUTIONS)}"),
    "axis": (lambda value: is_extent(value, MAX_NDIM), "an axis, 0 to 15"),
    "axes": (_is_axes, "different axes, 0 to 15, in rising order"),
    "extents": (_is_extents, "1 to 16 extents"),
    "number": (_is_number, "an integer of 64 bits, a float or a complex number"),
    "extent": (is_extent, "an integer of 0 to 2**62"),
    "flag": (lambda value: type(value) is bool, "True or False"),
    "precision": (lambda value: is_extent(value, 1 << PRECISION_BITS), "flags of 6 bits"),
    "activation": (
        lambda value: value is None or _is_word(ACTIVATIONS)(value),
        f"None or one of {', '.join(ACTIVATIONS[1:])}",
    ),
    "finish": (
        lambda value: value is None or _is_word(CONVOLUTION_ACTIVATIONS)(value),
        f"None or one of {', '.join(CONVOLUTION_ACTIVATIONS[1:])}",
    ),
    "pooling": (_is_word(POOLINGS), f"one of {', '.join(POOLINGS)}"),
}


def shown(value):
    """The value if its text is short, otherwise its type, since files may contain any value."""
    is_short = (
        value is None
        or type(value) in (bool, float, complex)
        or (type(value) is int and value.bit_length() <= 64)
        or (type(value) is str and len(value) <= 40)
    )
    return Described(repr(value) if is_short else f"a value of type {type(value).__name__}")


def refuse(name, value, rule):
    raise argument_error(ValueError, name, value, rule)


# ---- rules; each gets the call's name, and attributes, writes and reads of the right types


def _need(holds, name, what, value, rule):
    if not holds:
        refuse(f"{name}: {what}", value, rule)


def _is_integer(spec):
    return _DTYPES[spec.dtype].kind in ("int", "uint")


def _check_kind(name, row, compute):
    kind = _DTYPES[compute].kind
    _need(kind in row.kinds, name, "compute", compute, f"a dtype that {row.name} takes")


def _elementwise(name, attributes, writes, reads):
    (op, compute), (out,) = attributes, writes
    row = _OPERATIONS[op]
    if op != "copy":
        _check_kind(name, row, compute)
    _need(len(reads) == row.arity, name, "operands", len(reads), f"{row.arity} for {op}")
    for one in reads:
        _need(one.shape in (None, out.shape), name, "shape", one.shape, f"{out.shape}, that of out")


def _reduce(name, attributes, writes, reads):
    (op, compute, axes), (out,), (x,) = attributes, writes, reads
    _check_kind(name, _REDUCTIONS[op], compute)
    _need(not axes or axes[-1] < len(x.shape), name, "axes", axes, f"axes of {x.shape}")
    kept = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
    _need(out.shape == kept, name, "out.shape", out.shape, kept)
    reduced = [x.shape[axis] for axis in axes]
    if op in ("max", "min", "argmax", "argmin"):
        _need(0 not in reduced or 0 in kept, name, "x.shape", x.shape, f"elements for {op}")


def _indexed_shape(name, first, whole, indices):
    """The shape of the elements that the indices select."""
    end = first + len(indices)
    _need(end <= len(whole.shape), name, "indices", len(indices), f"axes of {whole.shape}")
    for one in indices:
        _need(_is_integer(one), name, "index.dtype", one.dtype, "an integer dtype")
        shape = indices[0].shape
        _need(one.shape == shape, name, "index.shape", one.shape, f"{shape}, as the first index")
    _need(0 not in whole.shape[first:end], name, "shape", whole.shape, "elements to index")
    return whole.shape[:first] + indices[0].shape + whole.shape[end:]


def _gather(name, attributes, writes, reads):
    (first,), (out,), (source, *indices) = attributes, writes, reads
    shape = _indexed_shape(name, first, source, indices)
    _need(out == (source.dtype, shape), name, "out", tuple(out), (source.dtype, shape))


def _scatter(name, attributes, writes, reads):
    (first,), (target,), (values, *indices) = attributes, writes, reads
    shape = _indexed_shape(name, first, target, indices)
    _need(values == (target.dtype, shape), name, "values", tuple(values), (target.dtype, shape))


def _check_indices(name, attributes, _writes, indices):
    (extents,) = attributes
    _need(len(extents) == len(indices), name, "extents", len(extents), "one for each index")
    whole = Spec("bool", tuple(extents))
    _indexed_shape(name, 0, whole, indices)


def _arange(name, attributes, writes, _reads):
    (out,) = writes
    _need(len(out.shape) == 1, name, "out.shape", out.shape, "one extent")
    is_whole = _DTYPES[out.dtype].kind in ("bool", "int", "uint")
    for value in attributes:
        fits = type(value) is int if is_whole else type(value) in (int, float)
        _need(fits, name, "start and step", shown(value), f"numbers for {out.dtype}")


def _matmul_shape(name, a, b):
    """The shape of ``a @ b``."""
    rule = f"shapes that multiply: got {a.shape} @ {b.shape}"
    _need(a.shape and b.shape, name, "a, b", Described("no extent"), rule)
    inner = b.shape[-2] if len(b.shape) > 1 else b.shape[0]
    _need(a.shape[-1] == inner, name, "inner extent", a.shape[-1], f"{inner}; {rule}")
    batch = []
    left, right = a.shape[:-2], b.shape[:-2]
    for axis in range(max(len(left), len(right)), 0, -1):
        one = left[-axis] if axis <= len(left) else 1
        other = right[-axis] if axis <= len(right) else 1
        _need(one == other or 1 in (one, other), name, "batch extent", one, f"{other}; {rule}")
        batch.append(other if one == 1 else one)
    return (*batch, *a.shape[-2:-1], *(b.shape[-1:] if len(b.shape) > 1 else ()))


def _check_activation(name, activation, dtype):
    is_float = _DTYPES[dtype].kind in ("float", "small")
    _need(activation is None or is_float, name, "activation", activation, f"None for {dtype}")


def _product(name, attributes, writes, reads):
    alpha, beta, activation, *_flags = attributes
    (out,), (a, b, addend, bias, scale, residual) = writes, reads
    types = (a.dtype, b.dtype, out.dtype)
    kind = _DTYPES[a.dtype].kind
    is_known = kind not in ("bool", "small") and out.dtype == a.dtype
    is_wider = out.dtype == "float32" and a.dtype in _HALVES
    is_exact = out.dtype == "int32" and a.dtype == "int8"
    fits = a.dtype == b.dtype and (is_known or is_wider or is_exact)
    _need(fits, name, "dtypes", types, "types of a, b and out that a product takes")
    shape = _matmul_shape(name, a, b)
    _need(out.shape == shape, name, "out.shape", out.shape, shape)
    for factor in (alpha, beta):
        if _is_integer(out):
            _need(type(factor) is int, name, "factor", shown(factor), f"an int for {out.dtype}")
        elif kind != "complex":
            _need(type(factor) is not complex, name, "factor", shown(factor), "a real number")
    _check_activation(name, activation, out.dtype)
    for one, dtype in ((addend, out.dtype), (scale, "float32"), (residual, out.dtype)):
        if one is not None:
            _need(one == (dtype, out.shape), name, "operand", tuple(one), (dtype, out.shape))
    if bias is not None:
        wanted = (out.dtype, out.shape[-1:])
        _need(bias == wanted, name, "bias", tuple(bias), f"{wanted}, one value for each column")
        _need(out.shape, name, "out.shape", out.shape, "at least one axis beside a bias")
    if scale is not None or residual is not None:
        _need(beta == 0, name, "beta", shown(beta), "0 beside a scale or a residual")
    if scale is not None:
        is_float = _DTYPES[out.dtype].kind == "float"
        _need(is_float, name, "out.dtype", out.dtype, "a float beside a scale")


def updates_product(attributes, reads):
    return attributes[1] != 0 and reads[2] is None


def _scale_fits(scale, rows, k):
    """Whether scales of shape (lines, columns) fit `rows` lines of k terms."""
    lines, columns = scale
    row_blocks, blocks = -(-rows // SCALE_BLOCK), -(-k // SCALE_BLOCK)
    if lines not in (1, rows, row_blocks) or columns not in (1, blocks):
        return False
    return lines in (1, rows) or columns == blocks


def _scaled_product(name, attributes, writes, reads):
    (out,), (a, b, scale_a, scale_b, scale_result, bias) = writes, reads
    for one in (a, b):
        fits = _DTYPES[one.dtype].kind == "small" and len(one.shape) == 2
        _need(fits, name, "operand", tuple(one), "an fp8 matrix")
    shape = _matmul_shape(name, a, b)
    _need(out.shape == shape, name, "out.shape", out.shape, shape)
    is_small = _DTYPES[out.dtype].kind == "small"
    is_known = is_small or out.dtype in (*_HALVES, "float32")
    _need(is_known, name, "out.dtype", out.dtype, "float32, a 16-bit float or fp8")
    is_pair = (scale_a is None) == (scale_b is None)
    _need(is_pair, name, "scales", Described("one of the two"), "both or none")
    for scale in (scale_a, scale_b):
        if scale is not None:
            fits = scale.dtype == "float32" and len(scale.shape) == 2
            _need(fits, name, "scale", tuple(scale), "a float32 matrix")
    if scale_a is not None:
        fits = _scale_fits(scale_a.shape, *a.shape)
        _need(fits, name, "scale_a.shape", scale_a.shape, f"scales of {a.shape}")
        fits = _scale_fits(scale_b.shape[::-1], *b.shape[::-1])
        _need(fits, name, "scale_b.shape", scale_b.shape, f"scales of {b.shape}")
    if scale_result is not None:
        wanted = ("float32", out.shape)
        _need(scale_result == wanted, name, "scale_result", tuple(scale_result), wanted)
    if bias is not None:
        wanted = ("float32" if is_small else out.dtype, out.shape[1:])
        _need(bias == wanted, name, "bias", tuple(bias), wanted)


def _offset_products(name, _attributes, writes, reads):
    (out,), (a, b, offsets) = writes, reads
    fits = a.dtype == b.dtype and a.dtype in (*_HALVES, "float32")
    _need(fits, name, "dtypes", (a.dtype, b.dtype), "float32 or a 16-bit float, equal for both")
    _need(out.dtype in (a.dtype, "float32"), name, "out.dtype", out.dtype, a.dtype)
    fits = len(a.shape) == 2 and len(b.shape) == 3 and a.shape[1] == b.shape[1]
    _need(fits, name, "shapes", (a.shape, b.shape), "(tokens, k) and (groups, k, n)")
    shape = (a.shape[0], b.shape[2])
    _need(out.shape == shape, name, "out.shape", out.shape, shape)
    wanted = ("int32", b.shape[:1])
    _need(offsets == wanted, name, "offsets", tuple(offsets), wanted)
    _need(max(*a.shape, *b.shape) < 1 << 31, name, "shapes", (a.shape, b.shape), "below 2**31")


def _quantized_product(name, _attributes, writes, reads):
    (out,), (x, weight, scales, bias) = writes, reads
    fits = len(x.shape) == 2 and x.shape[1] > 0 and x.dtype in (*_HALVES, "float32")
    _need(fits, name, "x", tuple(x), "a matrix of float32 or a 16-bit float")
    _need(len(scales.shape) == 2, name, "scales.shape", scales.shape, "(groups, n)")
    _need(scales.dtype == x.dtype, name, "scales.dtype", scales.dtype, x.dtype)
    (m, k), (groups, n) = x.shape, scales.shape
    fits = groups == 1 or (groups and k % groups == 0 and k // groups in (32, 64, 128))
    _need(fits, name, "scales.shape", scales.shape, "groups of 32, 64, 128 or all terms")
    packed = (-(-n // 16), -(-k // 64), 512)
    fits = weight in (("int8", (n, k)), ("uint8", packed))
    _need(fits, name, "weight", tuple(weight), f"int8 of {(n, k)} or uint8 of {packed}")
    _need(out == (x.dtype, (m, n)), name, "out", tuple(out), (x.dtype, (m, n)))
    if bias is not None:
        _need(bias == (x.dtype, (n,)), name, "bias", tuple(bias), (x.dtype, (n,)))


def _is_trees(value):
    try:
        formula(value)
    except ValueError:
        return False
    return True


ATTRIBUTE_TYPES["trees"] = (_is_trees, "the trees of a formula")


def _formula(name, attributes, results, reads):
    trees, row_ndim = attributes
    made = formula(trees)
    _need(len(reads) == made.loads, name, "operands", len(reads), f"{made.loads} for its loads")
    shape = reads[0].shape
    _need(row_ndim <= len(shape), name, "row_ndim", row_ndim, f"axes of {shape}")
    _need(0 not in shape, name, "shape", shape, "elements")
    for one in (*reads, *results):
        fits = _DTYPES[one.dtype].kind != "complex"
        _need(fits, name, "dtype", one.dtype, "a real dtype")
    for one in reads:
        _need(one.shape == shape, name, "x.shape", one.shape, shape)
    for one, is_row in zip(results, made.row_results(), strict=True):
        wanted = shape[: len(shape) - row_ndim] + (1,) * row_ndim if is_row else shape
        _need(one.shape == wanted, name, "out.shape", one.shape, wanted)


def _attention(name, attributes, writes, reads):
    scale, _is_causal, window, cap, _precision = attributes
    (out,), (query, key, value, mask, length) = writes, reads
    for one in (scale, cap):
        _need(type(one) in (int, float), name, "number", shown(one), "a real number")
    _need(not window or attributes[1], name, "window", window, "is_causal beside a window")
    for one in (query, key, value, out):
        _need(len(one.shape) == 4, name, "shape", one.shape, "four extents")
        fits = one.dtype == out.dtype and _DTYPES[one.dtype].kind == "float"
        _need(fits, name, "dtype", one.dtype, "one floating-point dtype")
        _need(0 not in one.shape, name, "shape", one.shape, "elements")
    batch, heads, queries, size = query.shape
    kept, keys, width = key.shape[1], key.shape[2], value.shape[3]
    _need(heads % kept == 0, name, "heads of key", kept, f"a divisor of {heads}")
    _need(key.shape == (batch, kept, keys, size), name, "key.shape", key.shape, query.shape)
    _need(value.shape[:3] == key.shape[:3], name, "value.shape", value.shape, key.shape)
    wanted = (batch, heads, queries, width)
    _need(out.shape == wanted, name, "out.shape", out.shape, wanted)
    if mask is not None:
        wanted = (batch, heads, queries, keys)
        _need(mask.shape == wanted, name, "mask.shape", mask.shape, wanted)
        fits = _DTYPES[mask.dtype].kind not in ("complex", "small")
        _need(fits, name, "mask.dtype", mask.dtype, "bool or a real dtype")
    if length is not None:
        fits = _is_integer(length) and length.shape == (batch,)
        _need(fits, name, "length", tuple(length), f"integers of shape {(batch,)}")


def _window_extents(name, spatial, **given):
    """Check attributes of a window: one value for each spatial axis, small enough for a kernel."""
    for what, values in given.items():
        fits = len(values) == spatial and max(values) < 1 << 24
        least = 0 if what in ("padding", "ends", "kernel") else 1
        fits = fits and min(values) >= least
        _need(fits, name, what, values, f"{spatial} integers of {least} to 2**24")


def _spatial(name, out, x):
    for one in (out, x):
        fits = 3 <= len(one.shape) <= 5 and max(one.shape) < 1 << 30 and 0 not in one.shape
        _need(fits, name, "shape", one.shape, "3 to 5 extents of 1 to 2**30")
    _need(len(out.shape) == len(x.shape), name, "out.shape", out.shape, f"the axes of {x.shape}")
    _need(out.dtype == x.dtype, name, "out.dtype", out.dtype, x.dtype)
    return len(x.shape) - 2


def _convolution(name, attributes, writes, reads):
    stride, padding, dilation, groups, _activation, _precision = attributes
    (out,), (x, weight, bias, addend) = writes, reads
    spatial = _spatial(name, out, x)
    _window_extents(name, spatial, stride=stride, padding=padding, dilation=dilation)
    _need(_DTYPES[x.dtype].kind == "float", name, "dtype", x.dtype, "a floating-point dtype")
    fits = weight.dtype == x.dtype and len(weight.shape) == spatial + 2 and 0 not in weight.shape
    fits = fits and max(weight.shape) < 1 << 24
    _need(fits, name, "weight", tuple(weight), f"{x.dtype} of {spatial + 2} extents below 2**24")
    fits = groups >= 1 and weight.shape[0] % groups == 0
    _need(fits, name, "groups", groups, f"a divisor of {weight.shape[0]}")
    channels = weight.shape[1] * groups
    _need(x.shape[1] == channels, name, "x.shape", x.shape, f"{channels} channels")
    wanted = (x.shape[0], weight.shape[0])
    _need(out.shape[:2] == wanted, name, "out.shape", out.shape, f"{wanted} and {spatial} more")
    if bias is not None:
        wanted = (x.dtype, weight.shape[:1])
        _need(bias == wanted, name, "bias", tuple(bias), wanted)
    if addend is not None:
        _need(addend == out, name, "addend", tuple(addend), tuple(out))


def _window(name, attributes, writes, reads):
    pooling, kernel, stride, padding, ends, dilation = attributes
    (out,), (x,) = writes, reads
    spatial = _spatial(name, out, x)
    _window_extents(name, spatial, kernel=kernel, stride=stride, padding=padding, ends=ends,
                    dilation=dilation)  # fmt: skip
    _need(out.shape[:2] == x.shape[:2], name, "out.shape", out.shape, f"{x.shape[:2]} and more")
    fits = all(kernel) or not any(kernel)
    _need(fits, name, "kernel", kernel, "only zeros, or no zero")
    kinds = ("int", "uint", "float") if pooling == "max" else ("float",)
    _need(_DTYPES[x.dtype].kind in kinds, name, "dtype", x.dtype, f"a dtype that {pooling} takes")


def _random(name, attributes, writes, _reads):
    (distribution, a, b), (out, state) = attributes, writes
    _need(state == ("uint64", (4,)), name, "state", tuple(state), "uint64 of shape (4,)")
    kind = _DTYPES[out.dtype].kind
    if distribution == "permutation":
        fits = out.dtype == "int64" and len(out.shape) == 1
        _need(fits, name, "out", tuple(out), "int64 of one axis")
    elif distribution == "integers":
        _need(kind in ("bool", "int", "uint"), name, "dtype", out.dtype, "bool or an integer dtype")
        fits = type(a) is int and type(b) is int and 0 <= b - a < 1 << 64
        _need(fits, name, "ends", Described(f"{shown(a)} and {shown(b)}"), "integers, a <= b")
    elif distribution == "bernoulli":
        _need(out.dtype == "bool", name, "dtype", out.dtype, "bool")
        fits = type(a) in (int, float) and 0 <= a <= 1
        _need(fits, name, "a", shown(a), "a chance of 0 to 1")
    else:
        _need(kind == "float", name, "dtype", out.dtype, "a floating-point dtype")
        for one in (a, b):
            fits = type(one) in (int, float) and abs(one) < float("inf")
            _need(fits, name, "number", shown(one), "a finite real number")
        least = a if distribution == "uniform" else 0
        _need(least <= b, name, "b", shown(b), f"{shown(least)} or more")


#: The rules by the names of calls.
RULES = {
    "attention": _attention,
    "convolution": _convolution,
    "window": _window,
    "elementwise": _elementwise,
    "reduce": _reduce,
    "gather": _gather,
    "scatter": _scatter,
    "check_indices": _check_indices,
    "arange": _arange,
    "random": _random,
    "formula": _formula,
    "product": _product,
    "scaled_product": _scaled_product,
    "offset_products": _offset_products,
    "quantized_product": _quantized_product,
}
