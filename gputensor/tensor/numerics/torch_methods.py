"""Methods of PyTorch's tensors that are no functions: of another's shape, made anew, bounded."""

import operator

from gputensor.errors import argument_error, has_elements, list_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.blends import narrow
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.interop import asarray, astype, copy
from gputensor.tensor.manipulation import broadcast_to, empty, full, reshape
from gputensor.tensor.manipulation.axes import memory_axes
from gputensor.tensor.manipulation.diagonals import fill_diagonal
from gputensor.tensor.numerics.torch_results import split_by_size

__all__ = [
    "clamp_max", "clamp_min", "detach", "detach_", "dim_order", "expand_as", "fill_",
    "fill_diagonal_", "index_put", "index_put_", "is_same_size", "is_signed", "narrow_copy",
    "ndimension", "nelement", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros",
    "put_", "relu_", "requires_grad_", "reshape_as", "rsub", "select", "split_with_sizes",
    "sum_to_size", "type", "type_as", "view_as", "zero_",
]  # fmt: skip


def detach(x, /):
    """Return the tensor itself: there is no graph of derivatives to leave.

    >>> import gputensor as gt
    >>> x = gt.ones(2, device="host")
    >>> x.detach() is x
    True
    """
    return x


def detach_(x, /):
    """Return the tensor itself, as :func:`detach`.

    >>> import gputensor as gt
    >>> x = gt.ones(2, device="host")
    >>> x.detach_() is x
    True
    """
    return x


def requires_grad_(x, requires_grad=True, /):
    """Return the tensor for False; ValueError for True: there is no automatic differentiation.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").requires_grad_(False).tolist()
    [1.0, 1.0]
    """
    if requires_grad:
        rule = "False: there is no automatic differentiation"
        raise argument_error(ValueError, "requires_grad_: requires_grad", requires_grad, rule)
    return x


def expand_as(x, other, /):
    """Return a view of `x` broadcast to the shape of another tensor.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").expand_as(gt.ones((3, 2), device="host")).shape
    (3, 2)
    """
    return broadcast_to(x, tensor_argument(other, "expand_as").shape)


def reshape_as(x, other, /):
    """Return the elements of `x` in the shape of another tensor.

    >>> import gputensor as gt
    >>> gt.ones(6, device="host").reshape_as(gt.ones((3, 2), device="host")).shape
    (3, 2)
    """
    return reshape(x, tensor_argument(other, "reshape_as").shape)


def type_as(x, other, /):
    """Return `x` in the dtype of another tensor: itself, if it has that.

    >>> import gputensor as gt
    >>> gt.ones(1, device="host").type_as(gt.ones(1, "int8", device="host")).dtype
    dtype('int8')
    """
    return astype(x, tensor_argument(other, "type_as").dtype, copy=False)


def _shape(sizes):
    return sizes[0] if len(sizes) == 1 else sizes


def new_empty(x, /, *size, dtype=None, device=None):
    """Return a tensor of undefined values with the dtype and device of `x` unless given.

    >>> import gputensor as gt
    >>> gt.ones(1, "int8", device="host").new_empty(2, 3).shape
    (2, 3)
    """
    return empty(
        _shape(size),
        x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


def new_full(x, size, fill_value, /, *, dtype=None, device=None):
    """Return a tensor of one value with the dtype and device of `x` unless given.

    >>> import gputensor as gt
    >>> gt.ones(1, "int8", device="host").new_full((2,), 7).tolist()
    [7, 7]
    """
    device = x.device if device is None else device
    return full(size, fill_value, x.dtype if dtype is None else dtype, device=device)


def new_ones(x, /, *size, dtype=None, device=None):
    """Return a tensor of ones with the dtype and device of `x` unless given.

    >>> import gputensor as gt
    >>> gt.ones(1, "int8", device="host").new_ones(2).tolist()
    [1, 1]
    """
    return new_full(x, _shape(size), 1, dtype=dtype, device=device)


def new_zeros(x, /, *size, dtype=None, device=None):
    """Return a tensor of zeros with the dtype and device of `x` unless given.

    >>> import gputensor as gt
    >>> gt.ones(1, "int8", device="host").new_zeros(2).tolist()
    [0, 0]
    """
    return new_full(x, _shape(size), 0, dtype=dtype, device=device)


def clamp_min(x, min, /):
    """Return x, raised to `min`.

    >>> import gputensor as gt
    >>> gt.arange(3, device="host").clamp_min(1).tolist()
    [1, 1, 2]
    """
    return fn.clip(x, min)


def clamp_max(x, max, /):
    """Return x, lowered to `max`.

    >>> import gputensor as gt
    >>> gt.arange(3, device="host").clamp_max(1).tolist()
    [0, 1, 1]
    """
    return fn.clip(x, None, max)


def zero_(x, /):
    """Set every element to 0 and return the tensor.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").zero_().tolist()
    [0.0, 0.0]
    """
    x[...] = 0
    return x


def fill_(x, value, /):
    """Set every element to a number and return the tensor.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").fill_(7).tolist()
    [7.0, 7.0]
    """
    x[...] = value
    return x


def fill_diagonal_(x, value, /, wrap=False):
    """Write a number to the main diagonal and return the tensor; see :func:`fill_diagonal`.

    >>> import gputensor as gt
    >>> gt.zeros((2, 2), device="host").fill_diagonal_(3).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    fill_diagonal(x, value, wrap)
    return x


def index_put_(x, indices, values, /, accumulate=False):
    """Write `values` at a tuple of index tensors and return the tensor: ``x[indices] = values``.

    With `accumulate` the values are added, once for each repetition of an index.

    >>> import gputensor as gt
    >>> x, index = gt.zeros(2, device="host"), gt.asarray([1, 1], device="host")
    >>> x.index_put_((index,), gt.ones(2, device="host"), accumulate=True).tolist()
    [0.0, 2.0]
    """
    indices = list_argument("index_put_: indices", indices, "a tuple of Tensors")
    key = tuple(slice(None) if one is None else one for one in indices)
    if accumulate:
        fn.add.at(x, key, values)
    else:
        x[key] = values
    return x


def index_put(x, indices, values, /, accumulate=False):
    """Return a copy of `x` changed by :func:`index_put_`.

    >>> import gputensor as gt
    >>> x = gt.zeros(2, device="host")
    >>> x.index_put((gt.asarray([1], device="host"),), 5).tolist(), x.tolist()
    ([0.0, 5.0], [0.0, 0.0])
    """
    return index_put_(copy(x), indices, values, accumulate)


def put_(x, index, source, /, accumulate=False):
    """Write `source` at flat row-major indices and return the tensor; see :func:`index_put_`.

    >>> import gputensor as gt
    >>> gt.zeros((2, 2), device="host").put_(gt.asarray([3], device="host"), 5).tolist()
    [[0.0, 0.0], [0.0, 5.0]]
    """
    flat = reshape(x, -1)
    index_put_(flat, (index,), source, accumulate)
    if not x.is_contiguous:
        x[...] = reshape(flat, x.shape)
    return x


def relu_(x, /):
    """Set elements below 0 to 0 and return the tensor.

    >>> import gputensor as gt
    >>> gt.relu_(gt.asarray([-1.0, 2.0], device="host")).tolist()
    [0.0, 2.0]
    """
    return fn.relu(x, out=x)


@spellings(dim="axis")
def split_with_sizes(x, split_sizes, /, axis=0):
    """Return parts of `x` along `axis`, which have the given numbers of elements.

    >>> import gputensor as gt
    >>> [part.tolist() for part in gt.split_with_sizes(gt.arange(3, device="host"), [2, 1])]
    [[0, 1], [2]]
    """
    sizes = list_argument("split_with_sizes: split_sizes", split_sizes)
    return split_by_size(x, sizes, axis)


def sum_to_size(x, /, *size):
    """Return the sums of `x` in a shape that broadcasts to its own.

    >>> import gputensor as gt
    >>> gt.ones((2, 3), device="host").sum_to_size(1, 3).tolist()
    [[2.0, 2.0, 2.0]]
    """
    size = tuple(size[0]) if size and has_elements(size[0]) else size
    before = x.ndim - len(size)
    pairs = list(zip(x.shape[max(before, 0) :], size, strict=False))
    if before < 0 or any(one not in (1, extent) for extent, one in pairs):
        rule = f"a shape that broadcasts to {x.shape}"
        raise argument_error(ValueError, "sum_to_size: size", size, rule)
    axes = [before + i for i, (extent, one) in enumerate(pairs) if one != extent]
    return reshape(fn.sum(x, (*range(before), *axes), dtype=x.dtype), size)


def is_signed(x, /):
    """Return whether the dtype has negative numbers.

    >>> import gputensor as gt
    >>> gt.ones(1, "uint8", device="host").is_signed()
    False
    """
    return tensor_argument(x, "is_signed").dtype.kind not in "bu"


def type(x, dtype, /):
    """Return `x` in another dtype: itself, if it has that.

    >>> import gputensor as gt
    >>> gt.ones(1, device="host").type(gt.int64).tolist()
    [1]
    """
    return astype(x, dtype, copy=False)


def is_same_size(x, other, /):
    """Return whether two tensors have the same shape.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").is_same_size(gt.zeros(3, device="host"))
    False
    """
    shape = tensor_argument(x, "is_same_size").shape
    return shape == tensor_argument(other, "is_same_size").shape


def ndimension(x, /):
    """Return the number of axes.

    >>> import gputensor as gt
    >>> gt.ones((2, 3), device="host").ndimension()
    2
    """
    return x.ndim


def nelement(x, /):
    """Return the number of elements.

    >>> import gputensor as gt
    >>> gt.ones((2, 3), device="host").nelement()
    6
    """
    return x.size


def new_tensor(x, data, /, *, dtype=None, device=None):
    """Return a tensor of `data` with the dtype and device of `x` unless given.

    >>> import gputensor as gt
    >>> gt.ones(1, "int8", device="host").new_tensor([1, 2]).dtype
    dtype('int8')
    """
    made = asarray(
        data, x.dtype if dtype is None else dtype, device=x.device if device is None else device
    )
    return copy(made) if made is data else made


@spellings(dim="axis")
def select(x, axis, index):
    """Return a view of the slice at `index` along `axis`; ``gt.select`` is NumPy's function.

    >>> import gputensor as gt
    >>> gt.asarray([[1, 2], [3, 4]], device="host").select(1, 0).tolist()
    [1, 3]
    """
    return x[(slice(None),) * axis_argument(axis, x.ndim, "select") + (operator.index(index),)]


def view_as(x, other, /):
    """Return a view of `x` in the shape of another tensor; ValueError if that needs a copy.

    >>> import gputensor as gt
    >>> gt.ones(6, device="host").view_as(gt.ones((3, 2), device="host")).shape
    (3, 2)
    """
    return reshape(x, tensor_argument(other, "view_as").shape, copy=False)


def dim_order(x, /):
    """Return the axes by falling distance between elements in memory.

    >>> import gputensor as gt
    >>> gt.ones((2, 3), device="host").T.dim_order()
    (1, 0)
    """
    return tuple(memory_axes(tensor_argument(x, "dim_order")))


@spellings(dim="axis")
def narrow_copy(x, axis, start, length):
    """Return a copy of `length` slices along `axis` from `start` on: a copy of :func:`narrow`.

    >>> import gputensor as gt
    >>> narrow_copy(gt.asarray([1, 2, 3], device="host"), 0, 1, 2).tolist()
    [2, 3]
    """
    return copy(narrow(x, axis, start, length))


def rsub(x, other, /, *, alpha=1):
    """Return ``other - alpha * x``.

    >>> import gputensor as gt
    >>> rsub(gt.asarray([1, 2], device="host"), 10, alpha=2).tolist()
    [8, 6]
    """
    return fn.subtract(other, x if alpha == 1 else fn.multiply(x, alpha))
