"""Arguments of convolution and pooling (kernel, stride, padding, layout) for one to three axes."""

from types import NoneType
from typing import NamedTuple

from gputensor.errors import argument_error, plain_int
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.manipulation import empty, expand_dims, moveaxis, permute_dims

__all__ = ["Image", "Plan", "Plans", "Window", "each_axis", "result_like"]

#: Layouts by the number of axes: channels first, channels last.
FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
LIMIT = 1 << 24


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def each_axis(name, value, spatial, least):
    """Return an integer, or one for each axis, as a tuple.

    >>> each_axis("stride", 2, 2, 1)
    (2, 2)
    """
    value = plain_int(value)
    values = (value,) * spatial if _is_int(value) else value
    fits = isinstance(values, (tuple, list)) and len(values) == spatial
    values = [plain_int(one) for one in values] if fits else values
    if not fits or not all(_is_int(one) and least <= one < LIMIT for one in values):
        rule = f"an int of {least} or more, or a sequence of {spatial}"
        raise argument_error(ValueError, name, value, rule)
    return tuple(values)


def _pairs(name, value, spatial):
    """Return padding as one pair (before, after) for each axis."""
    if isinstance(value, (tuple, list)) and any(isinstance(one, (tuple, list)) for one in value):
        if len(value) == spatial and all(isinstance(one, (tuple, list)) for one in value):
            return tuple(each_axis(name, one, 2, 0) for one in value)
        raise argument_error(ValueError, name, value, f"{spatial} pairs of ints")
    return tuple((one, one) for one in each_axis(name, value, spatial, 0))


class Window:
    """The checked kernel, strides, padding and dilation of a function.

    Parameters
    ----------
    name : str
        The name of the function, for messages.
    kernel : tuple of int
    stride, padding, dilation
        As the caller gave them; padding may also be "same", "valid" or pairs.

    Attributes
    ----------
    kernel, stride, dilation : tuple of int
    before, after : tuple of int
        The padding; `resolve` computes that of "same".
    """

    def __init__(self, name, kernel, stride, padding, dilation):
        spatial = len(kernel)
        self.name, self.kernel = name, kernel
        self.stride = each_axis(f"{name}: stride", stride, spatial, 1)
        self.dilation = each_axis(f"{name}: dilation", dilation, spatial, 1)
        self.is_same = padding == "same"
        if isinstance(padding, str) and padding not in ("same", "valid"):
            rule = "'same', 'valid', ints or pairs of ints"
            raise argument_error(ValueError, f"{name}: padding", padding, rule)
        pairs = _pairs(f"{name}: padding", 0 if isinstance(padding, str) else padding, spatial)
        self.before, self.after = zip(*pairs, strict=True)

    @property
    def reach(self):
        """The extent of a window in x: from its first to its last element, inclusive."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def resolve(self, extents):
        """Compute the padding of "same" for these extents: extent / stride windows, rounded up."""
        if self.is_same:
            totals = [
                max(0, (-(-n // s) - 1) * s + reach - n)
                for n, s, reach in zip(extents, self.stride, self.reach, strict=True)
            ]
            self.before = tuple(total // 2 for total in totals)
            self.after = tuple(total - total // 2 for total in totals)

    def results(self, extents, is_up=False):
        """Return the number of windows along each axis; `is_up` counts an incomplete last one."""
        self.resolve(extents)
        found = []
        for axis, n in enumerate(extents):
            stride, whole = self.stride[axis], n + self.before[axis] + self.after[axis]
            room = whole - self.reach[axis]
            # The first window may be incomplete, too, if it is also the last.
            if room < 0 and not (is_up and room > -stride and n + self.before[axis] > 0):
                raise argument_error(
                    ValueError, f"{self.name}: extent of x", n,
                    f"{self.reach[axis]} or more including padding, the extent of a window",
                )  # fmt: skip
            count = (room + (stride - 1 if is_up else 0)) // stride + 1
            # The last window must begin in x or in the padding before it.
            count -= is_up and (count - 1) * stride >= n + self.before[axis]
            found.append(count)
        return tuple(found)


class Image:
    """A function's x as (batch, channels, axes), and the layout of its result."""

    def __init__(self, name, x, spatial, data_format):
        x = tensor_argument(x, name)
        first, last = FORMATS[spatial]
        if not isinstance(data_format, (str, NoneType)) or (data_format not in (None, first, last)):
            raise argument_error(
                ValueError, f"{name}: data_format", data_format, f"{first!r} or {last!r}"
            )
        if x.ndim not in (spatial + 1, spatial + 2):
            rule = f"{spatial + 2} axes, or {spatial + 1} without a batch"
            raise argument_error(ValueError, f"{name}: shape of x", x.shape, rule)
        self.is_single = x.ndim == spatial + 1
        self.is_last = data_format == last
        if self.is_single:
            x = expand_dims(x, axis=0)
        self.x = moveaxis(x, -1, 1) if self.is_last else x

    def result(self, channels, extents):
        """Return a new tensor (batch, channels, extents), in the memory order of x."""
        x = self.x
        shape = (x.shape[0], channels, *extents)
        return result_like(x, shape, is_last=self.is_last)

    def given_back(self, result):
        """Return the result in the layout of the caller's x."""
        if self.is_last:
            result = moveaxis(result, 1, -1)
        return result[0] if self.is_single else result


class Plan(NamedTuple):
    """The prepared call for arguments that were checked before."""

    attributes: tuple
    order: tuple | None  # permutes the axes of x to (batch, channels, axes); None: no permutation
    shape: tuple  # of the result in memory
    order_out: tuple | None  # the same for the result

    def prepare(self, x):
        """Return x and a new result as (batch, channels, axes), and the result for the caller."""
        out = empty(self.shape, dtype=x.dtype, device=x.device)
        view = out if self.order_out is None else permute_dims(out, self.order_out)
        if self.order is None:
            return x, view, view
        return permute_dims(x, self.order), view, out


class Plans:
    """The plans of a function by its arguments. They exist because checks outlast small kernels."""

    MOST = 4096

    def __init__(self):
        self.known = {}

    def find(self, key):
        """Return the plan of a key, or None if there is none or the key contains lists."""
        try:
            return self.known.get(key)
        except TypeError:
            return None

    def keep(self, key, attributes, image, out):
        """Keep the plan of a call that has been made, unless x has no batch axis."""
        if image.is_single or not out.size:
            return
        last = (0, out.ndim - 1, *range(1, out.ndim - 1))
        is_last = image.is_last or has_channels_last(image.x)
        shape = (out.shape[0], *out.shape[2:], out.shape[1]) if is_last else out.shape
        if len(self.known) >= self.MOST:
            self.known.clear()
        order_out = last if is_last else None
        plan = Plan(attributes, last if image.is_last else None, shape, order_out)
        try:
            self.known[key] = plan
        except TypeError:
            return


def has_channels_last(x):
    """Whether channels are adjacent in memory, where that differs from channels first."""
    is_apart = any(n > 1 for n in x.shape[2:]) and x.shape[1] > 1
    return is_apart and x.strides[1] == x.dtype.itemsize


def result_like(x, shape, is_last=False):
    """Return a new tensor; its channels are adjacent in memory if `is_last` or those of x are."""
    if is_last or has_channels_last(x):
        made = empty((shape[0], *shape[2:], shape[1]), dtype=x.dtype, device=x.device)
        return moveaxis(made, -1, 1)
    return empty(shape, dtype=x.dtype, device=x.device)
