"""NumPy's loops over elements: ``nditer`` on host copies of tensors."""

import numpy as np

from gputensor._arrays.dtypes import isdtype
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray

__all__ = ["nditer"]

WRITING = {"readwrite", "writeonly"}


class nditer:
    """Iterate over elements of tensors on the host, as NumPy does.

    The operands are copied to the host, which waits for the device. Elements are arrays of NumPy
    without axes. What is written to them goes back to the tensors at the end of the loop, or of
    the ``with`` block.

    Parameters
    ----------
    op : Tensor, None or sequence of them
        None is an output that NumPy allocates; `operands` has it as a tensor.
    flags, op_flags, op_dtypes, order, casting, op_axes, itershape, buffersize
        As in ``numpy.nditer``.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 2.0], device="host")
    >>> with nditer(x, op_flags=["readwrite"]) as elements:
    ...     for one in elements:
    ...         one[...] = 2 * one
    >>> x.tolist()
    [2.0, 4.0]
    """

    def __init__(self, op, flags=(), op_flags=None, *more, **options):
        given = list(op) if isinstance(op, (list, tuple)) else [op]
        for one in given:
            if isinstance(one, Tensor) and not isdtype(one.dtype, ("bool", "numeric")):
                got = Described(one.dtype.name)
                raise argument_error(TypeError, "nditer: op", got, "a dtype of NumPy")
        self._given = given
        copies = [one.numpy() if isinstance(one, Tensor) else one for one in given]
        try:
            self._loop = np.nditer(copies, flags or None, op_flags or None, *more, **options)
        except (TypeError, ValueError) as error:
            got = Described(f"what NumPy refuses ({error})")
            raise argument_error(type(error), "nditer: arguments", got, "those of NumPy") from None
        rows = op_flags or [()] * len(given)
        rows = [rows] * len(given) if rows and isinstance(rows[0], str) else rows
        self._writes = [bool(WRITING & set(row)) for row in rows]
        self._copies = self._loop.operands
        self._device = next((one.device for one in given if isinstance(one, Tensor)), None)
        self._is_closed = False

    @property
    def operands(self):
        """The tensors, allocated outputs among them."""
        return tuple(
            one if isinstance(one, Tensor) else asarray(copy, device=self._device)
            for one, copy in zip(self._given, self._copies, strict=True)
        )

    @property
    def finished(self):
        """Whether the loop is at its end, or closed."""
        return self._is_closed or self._loop.finished

    def close(self):
        """Write the results to the tensors; the loop cannot go on."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.close()
        for one, copy, is_written in zip(self._given, self._copies, self._writes, strict=True):
            if is_written and isinstance(one, Tensor):
                one[...] = asarray(copy, device=one.device)

    def iternext(self):
        """Go to the next element; False at the end."""
        goes_on = self._loop.iternext()
        if not goes_on:
            self.close()
        return goes_on

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self._loop)
        except StopIteration:
            self.close()
            raise

    def __len__(self):
        return len(self._loop)

    def __getitem__(self, index):
        return self._loop[index]

    def __setitem__(self, index, value):
        self._loop[index] = value.numpy() if isinstance(value, Tensor) else value

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"nditer has no attribute {name!r}")
        return getattr(self._loop, name)
