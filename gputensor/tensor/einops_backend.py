"""Tensors in einops: a backend, which einops finds among the subclasses of its backend class.

``import_hooks`` calls `register` when a program has imported einops.
"""

from gputensor._arrays.dtypes import isdtype
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray
from gputensor.tensor.manipulation import arange, expand_dims, permute_dims
from gputensor.tensor.manipulation.joining import concat, stack, tile
from gputensor.tensor.products.einsum import einsum

__all__ = ["register"]


def make_backend(module):
    """Return the backend class with which einops handles tensors."""

    class TensorBackend(module.AbstractBackend):
        framework_name = "gputensor"

        def is_appropriate_type(self, tensor):
            return isinstance(tensor, Tensor)

        def from_numpy(self, x):
            return asarray(x)

        def to_numpy(self, x):
            return x.numpy()

        def arange(self, start, stop):
            return arange(start, stop)

        def transpose(self, x, axes):
            return permute_dims(x, axes)

        def stack_on_zeroth_dimension(self, tensors):
            return stack(tensors)

        def add_axis(self, x, new_position):
            return expand_dims(x, new_position)

        def tile(self, x, repeats):
            return tile(x, repeats)

        def concat(self, tensors, axis):
            return concat(tensors, axis=axis)

        def is_float_type(self, x):
            return isdtype(x.dtype, ("real floating", "complex floating"))

        def einsum(self, pattern, *x):
            return einsum(pattern, *x)

    return TensorBackend


def register(module):
    """Register tensors with einops.

    Parameters
    ----------
    module : module
        ``einops._backends``.
    """
    module.TensorBackend = make_backend(module)
