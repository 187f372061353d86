"""Python functions of single elements, and what NumPy computes from shapes alone.

Such a function runs on the host, once for each element, so a call copies its tensors to the host
and waits. Functions of whole tensors and ``ElementwiseKernel`` are faster by orders of magnitude.
"""

import functools

import numpy as np

from gputensor.errors import Described, argument_error, list_argument
from gputensor.streams import current_stream
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import asarray
from gputensor.tensor.interop.arrays import host_array
from gputensor.tensor.manipulation.axes import broadcast_shapes
from gputensor.tensor.numerics.making import asfortranarray

__all__ = [
    "broadcast", "clear_memo", "einsum_path", "memoize", "ndenumerate", "require", "vectorize",
]  # fmt: skip


def _on_host(value):
    return value.numpy() if isinstance(value, Tensor) else value


class vectorize:  # noqa: N801 - NumPy's name
    """A function of numbers as one of tensors that broadcast; it runs on the host and waits.

    Parameters
    ----------
    pyfunc : callable, optional
        A function of Python's and NumPy's numbers. Without it the object is a decorator.
    otypes, excluded, signature, cache, doc : optional
        As in ``numpy.vectorize``.

    Examples
    --------
    >>> import gputensor as gt
    >>> larger = vectorize(lambda a, b: a if a > b else b)
    >>> larger(gt.asarray([1, 5], device="host"), 3).tolist()
    [3, 5]
    """

    def __init__(self, pyfunc=None, otypes=None, doc=None, excluded=None, **options):
        if pyfunc is not None and not callable(pyfunc):
            raise argument_error(TypeError, "vectorize: pyfunc", pyfunc, "a function")
        self._options = {"otypes": otypes, "doc": doc, "excluded": excluded, **options}
        self._function = None
        if pyfunc is not None:
            self._function = np.vectorize(pyfunc, **self._options)
            functools.update_wrapper(self, pyfunc)

    def __call__(self, *arguments, **keywords):
        if self._function is None:
            return vectorize(*arguments, **self._options)
        given = [*arguments, *keywords.values()]
        device = next((one.device for one in given if isinstance(one, Tensor)), None)
        found = self._function(
            *(_on_host(one) for one in arguments),
            **{name: _on_host(one) for name, one in keywords.items()},
        )
        if isinstance(found, tuple):
            return tuple(asarray(one, device=device) for one in found)
        return asarray(found, device=device)


class ndenumerate:  # noqa: N801 - NumPy's name
    """Iterate over pairs of index and element; it copies the tensor to the host once.

    Examples
    --------
    >>> import gputensor as gt
    >>> [(at, int(one)) for at, one in ndenumerate(gt.asarray([[5, 6]], device="host"))]
    [((0, 0), 5), ((0, 1), 6)]
    """

    def __init__(self, x):
        self._pairs = np.ndenumerate(host_array("ndenumerate: x", _on_host(x)))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._pairs)


class broadcast:  # noqa: N801 - NumPy's name
    """The shape to which tensors, numbers and lists broadcast.

    Attributes
    ----------
    shape : tuple of int
    ndim, nd, size, numiter : int
        The axes, twice; the elements; the number of arguments.

    Examples
    --------
    >>> import gputensor as gt
    >>> broadcast(gt.ones((2, 1), device="host"), gt.ones(3, device="host")).shape
    (2, 3)
    """

    def __init__(self, *arrays):
        shapes = [
            one.shape if isinstance(one, Tensor) else host_array("broadcast", one).shape
            for one in arrays
        ]
        self.shape = broadcast_shapes(*shapes)
        self.ndim = self.nd = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=object))
        self.numiter = len(arrays)


def einsum_path(subscripts, /, *operands, optimize="greedy"):
    """Return an order of products for :func:`einsum` and a text about it, as NumPy does.

    It depends on shapes only. `einsum` chooses its own order, whichever path it is given.

    >>> import gputensor as gt
    >>> x = gt.ones((3, 3), device="host")
    >>> einsum_path("ij,jk,kl", x, x, x)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    shaped = (
        np.broadcast_to(np.float32(0), one.shape) if isinstance(one, Tensor) else one
        for one in operands
    )
    if not isinstance(subscripts, (str, np.ndarray, list, tuple)):
        raise argument_error(TypeError, "einsum_path: subscripts", subscripts, "a str")
    try:
        return np.einsum_path(subscripts, *shaped, optimize=optimize)
    except (TypeError, ValueError, RecursionError) as error:
        got = Described(f"what NumPy refuses ({error})")
        rule = "those of einsum, and a strategy of NumPy"
        raise argument_error(ValueError, "einsum_path: arguments", got, rule) from None


def require(a, dtype=None, requirements=None):
    """Return a tensor with the given dtype and order in memory, copied only where needed.

    Parameters
    ----------
    a : Tensor, array, list or number
    dtype : dtype, optional
    requirements : str or sequence of str, optional
        "C" or "F" for an order; NumPy's "A", "W", "O" and "E" hold anyway.

    >>> import gputensor as gt
    >>> require(gt.ones((2, 3), device="host").T, requirements="C").is_contiguous
    True
    """
    given = list_argument("require: requirements", requirements or ())
    wanted = {str(one)[:1].upper() for one in given}
    unknown = wanted - set("CFAWOE")
    if unknown or wanted >= {"C", "F"}:
        rule = "some of C or F, A, W, O, E"
        raise argument_error(ValueError, "require: requirements", requirements, rule)
    made = tensor_argument(asarray(a, dtype), "require")
    if "F" in wanted:
        return asfortranarray(made)
    return made.contiguous() if "C" in wanted else made


_memos: list[dict[object, object]] = []


def memoize(for_each_device=False):
    """Return a decorator that keeps the results of a function by its arguments, as CuPy's does.

    Parameters
    ----------
    for_each_device : bool
        Keep results for each current device.

    >>> @memoize()
    ... def square(n):
    ...     return n * n
    >>> square(3), square(3)
    (9, 9)
    """

    def decorated(function):
        results = {}
        _memos.append(results)

        @functools.wraps(function)
        def remembered(*arguments, **keywords):
            key = (current_stream().device_number if for_each_device else None, arguments,
                   frozenset(keywords.items()))  # fmt: skip
            if key not in results:
                results[key] = function(*arguments, **keywords)
            return results[key]

        return remembered

    return decorated


def clear_memo():
    """Forget the results of all functions decorated with :func:`memoize`.

    >>> clear_memo()
    """
    for results in _memos:
        results.clear()
