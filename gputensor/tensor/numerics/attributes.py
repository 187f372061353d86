"""Attributes of arrays in NumPy, CuPy and PyTorch: layout flags, adjoints, marks of gradients."""

from collections.abc import Callable

from gputensor._arrays.dtypes import float32
from gputensor.errors import argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import copy
from gputensor.tensor.manipulation import matrix_transpose

__all__ = [
    "H", "adjoint", "conj_physical", "data", "enable_grad", "flags", "get_default_dtype", "grad",
    "inference_mode", "is_conj", "is_grad_enabled", "is_inference", "is_inference_mode_enabled",
    "is_leaf", "is_meta", "is_pinned", "is_quantized", "is_shared", "is_sparse", "mH", "no_grad",
    "ptr", "requires_grad", "resolve_conj", "resolve_neg", "set_grad_enabled",
]  # fmt: skip


class Flags:
    """What NumPy's ``x.flags`` says of the memory: ``x.flags.c_contiguous``, ``x.flags["F"]``.

    >>> import gputensor as gt
    >>> x = gt.zeros((2, 3), device="host")
    >>> x.flags.c_contiguous, x.T.flags["F_CONTIGUOUS"], x.T.flags.c_contiguous
    (True, True, False)
    """

    def __init__(self, x):
        self.c_contiguous = x.is_contiguous
        self.f_contiguous = x.T.is_contiguous
        self.contiguous = self.c_contiguous
        self.forc = self.c_contiguous or self.f_contiguous
        self.fnc = self.f_contiguous and not self.c_contiguous
        self.aligned = True

    def __getitem__(self, name):
        name = {"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS", "A": "ALIGNED"}.get(name, name)
        value = self.__dict__.get(name.lower() if isinstance(name, str) else None)
        if value is None:
            raise argument_error(KeyError, "flags: name", name, "one of NumPy's flags")
        return value

    def __repr__(self):
        rows = ("c_contiguous", "f_contiguous", "aligned")
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in rows)


class no_grad:  # noqa: N801 - PyTorch's name
    """A block or function without derivatives: all are, as there is no automatic differentiation.

    >>> with no_grad():
    ...     pass
    >>> @no_grad()
    ... def twice(x):
    ...     return 2 * x
    >>> twice(3)
    6
    """

    def __new__(cls, function=None):
        return super().__new__(cls) if function is None else function

    def __call__(self, function):
        return function

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class inference_mode(no_grad):  # noqa: N801 - PyTorch's name
    """A block or function without derivatives, as :class:`no_grad`.

    >>> with inference_mode():
    ...     pass
    """

    def __new__(cls, mode=True):
        return super().__new__(cls) if isinstance(mode, bool) else mode


class enable_grad(no_grad):  # noqa: N801 - PyTorch's name
    """A block or function for PyTorch's programs; there are no derivatives in it either.

    >>> with enable_grad():
    ...     pass
    """


class set_grad_enabled(no_grad):  # noqa: N801 - PyTorch's name
    """A block or call for PyTorch's programs, without effect.

    >>> with set_grad_enabled(False):
    ...     pass
    """

    def __new__(cls, mode):
        return super().__new__(cls)


def get_default_dtype():
    """Return float32, the dtype of Python floats; it cannot be changed.

    >>> get_default_dtype()
    dtype('float32')
    """
    return float32


def is_grad_enabled():
    """Return False: there is no automatic differentiation.

    >>> is_grad_enabled()
    False
    """
    return False


def is_inference_mode_enabled():
    """Return True: all work is without derivatives.

    >>> is_inference_mode_enabled()
    True
    """
    return True


def _never(name, reason):
    def function(x, /):
        tensor_argument(x, name)
        return False

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return False: {reason}.

    >>> import gputensor as gt
    >>> gt.ones(2, device="host").{name}()
    False
    """
    return function


is_conj: Callable[..., bool] = _never("is_conj", "no tensor waits for its conjugation")
is_inference: Callable[..., bool] = _never(
    "is_inference", "tensors made without derivatives are like all others"
)
is_pinned: Callable[..., bool] = _never(
    "is_pinned", "tensors are on devices; host memory is pinned for copies alone"
)
is_shared: Callable[..., bool] = _never("is_shared", "`gt.sharing` gives memory to other processes")


def _itself(name):
    def function(x, /):
        return tensor_argument(x, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return the tensor itself, whose elements are never changed late.

    >>> import gputensor as gt
    >>> x = gt.ones(2, device="host")
    >>> x.{name}() is x
    True
    """
    return function


resolve_conj: Callable[..., Tensor] = _itself("resolve_conj")
resolve_neg: Callable[..., Tensor] = _itself("resolve_neg")


def conj_physical(x, /):
    """Return the complex conjugates, as :func:`conj`; real numbers are copied.

    >>> import gputensor as gt
    >>> conj_physical(gt.asarray([1 + 2j], device="host")).tolist()
    [(1-2j)]
    """
    return fn.conj(x) if tensor_argument(x, "conj_physical").dtype.kind == "c" else copy(x)


def adjoint(x, /):
    """Return the conjugate transposes of the matrices on the last two axes: PyTorch's ``x.mH``.

    >>> import gputensor as gt
    >>> adjoint(gt.asarray([[1j, 2]], device="host")).tolist()
    [[-1j], [(2-0j)]]
    """
    turned = matrix_transpose(tensor_argument(x, "adjoint"))
    return fn.conj(turned) if x.dtype.kind == "c" else turned


def _flags(x):
    """The layout of the memory, with NumPy's names."""
    return Flags(x)


def _mh(x):
    """The conjugate transposes of the matrices on the last two axes."""
    return adjoint(x)


def _h(x):
    """The conjugate transpose of a matrix."""
    if x.ndim not in (0, 2):
        raise argument_error(ValueError, "H: x", x.ndim, "0 or 2 dimensions")
    return adjoint(x) if x.ndim else fn.conj(x) if x.dtype.kind == "c" else x


def _requires_grad(_):
    """False: there is no automatic differentiation."""
    return False


def _is_leaf(_):
    """True: no tensor has a history of derivatives."""
    return True


def _data(x):
    """The tensor itself: PyTorch's view without derivatives, and CuPy's ``x.data.ptr``."""
    return x


def _set_data(x, value):
    if value is not x:
        x[...] = value


def _ptr(x):
    """The address of the first element, as ``x.data_ptr()``."""
    return x.data_ptr()


def _grad(_):
    """None: there is no automatic differentiation."""


def _set_grad(_, value):
    if value is not None:
        rule = "None: there is no automatic differentiation"
        raise argument_error(ValueError, "grad", value, rule)


def _false(_):
    """False: all tensors are dense, in memory, and hold plain numbers."""
    return False


data = property(_data, _set_data)
grad = property(_grad, _set_grad)
is_meta, is_quantized, is_sparse = property(_false), property(_false), property(_false)
flags = property(_flags)
mH = property(_mh)  # noqa: N816 - PyTorch's name
ptr = property(_ptr)
H = property(_h)
requires_grad = property(_requires_grad)
is_leaf = property(_is_leaf)
