"""NumPy's objects for indexing: ``mgrid``, ``ogrid``, ``r_``, ``c_`` and ``x.flat``.

Tensors made only from slices and numbers are on the current device. NumPy's own ``s_``,
``index_exp`` and ``ndindex`` make Python objects without arrays, and are here for its programs.
"""

from numpy import index_exp, ndindex, s_

from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import beside
from gputensor.tensor.manipulation import arange, broadcast_arrays, linspace, reshape
from gputensor.tensor.manipulation.joining import concat, stack

__all__ = ["Flat", "c_", "index_exp", "mgrid", "ndindex", "ogrid", "r_", "s_"]


def _progression(piece, name, device=None):
    """Return the numbers of a slice; an imaginary step is their count and includes the end."""
    start = 0 if piece.start is None else piece.start
    step = 1 if piece.step is None else piece.step
    if piece.stop is None:
        raise argument_error(ValueError, f"{name}: slice", piece, "a slice with an end")
    if isinstance(step, complex):
        return linspace(start, piece.stop, int(abs(step)), device=device)
    return arange(start, piece.stop, step, device=device)


class _Grid:
    """Coordinates of a grid: ``mgrid[0:2, 0:3]`` in full, ``ogrid[0:2, 0:3]`` to be broadcast."""

    def __init__(self, name, is_full):
        self.name, self.is_full = name, is_full

    def __repr__(self):
        return f"gputensor.{self.name}"

    def __getitem__(self, key):
        pieces = key if isinstance(key, tuple) else (key,)
        for piece in pieces:
            if not isinstance(piece, slice):
                raise argument_error(TypeError, f"{self.name}: key", piece, "slices")
        axes = [_progression(piece, self.name) for piece in pieces]
        if not isinstance(key, tuple):
            return axes[0]
        dtype = result_type(*axes)
        axes = [astype(axis, dtype, copy=False) for axis in axes]
        lines = [
            reshape(axis, [-1 if i == k else 1 for k in range(len(axes))])
            for i, axis in enumerate(axes)
        ]
        return stack(broadcast_arrays(*lines)) if self.is_full else tuple(lines)


class _Joiner:
    """Joins numbers, slices and tensors: ``r_`` along the first axis, ``c_`` as columns."""

    def __init__(self, name, are_columns):
        self.name, self.are_columns = name, are_columns

    def __repr__(self):
        return f"gputensor.{self.name}"

    def __getitem__(self, key):
        pieces = key if isinstance(key, tuple) else (key,)
        first = next((one for one in pieces if isinstance(one, Tensor)), None)
        return concat([self._part(one, first) for one in pieces], -1 if self.are_columns else 0)

    def _part(self, piece, first):
        if isinstance(piece, str):
            raise argument_error(ValueError, f"{self.name}: key", piece, "slices, numbers, tensors")
        if isinstance(piece, slice):
            piece = _progression(piece, self.name, None if first is None else first.device)
        part = asarray(piece) if first is None else beside(piece, first)
        part = reshape(part, 1) if part.ndim == 0 else part
        return reshape(part, (-1, 1)) if self.are_columns and part.ndim == 1 else part


mgrid = _Grid("mgrid", True)
ogrid = _Grid("ogrid", False)
r_ = _Joiner("r_", False)
c_ = _Joiner("c_", True)


class Flat:
    """The elements of a tensor in row-major order, for reading, writing and iteration.

    >>> import gputensor as gt
    >>> x = gt.zeros((2, 3), device="host")
    >>> x.flat[1:3] = 7
    >>> x.tolist(), len(x.flat)
    ([[0.0, 7.0, 7.0], [0.0, 0.0, 0.0]], 6)
    """

    def __init__(self, x):
        self.base = tensor_argument(x, "flat")

    def __len__(self):
        return self.base.size

    def __iter__(self):
        return iter(reshape(self.base, -1))

    def __getitem__(self, key):
        return reshape(self.base, -1)[key].copy()

    def __setitem__(self, key, value):
        flat = reshape(self.base, -1)
        flat[key] = value
        if not self.base.is_contiguous:  # `flat` is a copy
            self.base[...] = reshape(flat, self.base.shape)

    def copy(self):
        """Return the elements as a new one-dimensional tensor."""
        return reshape(self.base, -1, copy=True)


def _set_flat(x, value):
    if isinstance(value, Tensor) and value.ndim > 1:
        value = reshape(value, -1)
    if isinstance(value, Tensor) and value.size not in (1, x.size):
        got = Described(f"{value.size} elements")
        raise argument_error(ValueError, "flat: value", got, f"1 or {x.size}")
    Flat(x)[:] = value


flat = property(Flat, _set_flat, doc=Flat.__doc__)
