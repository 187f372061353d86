"""Transforms over one axis, two or several, of complex, real and Hermitian signals.

The signal is cut, or padded with zeros, to the length `n` (`s` for several axes). `norm` names the
transform that divides by the length: the inverse ("backward"), the other one ("forward"), or both,
by its square root ("ortho").
"""

from gputensor._arrays.dtypes import complex64, complex128, float32, float64
from gputensor._engines.transforms import transform
from gputensor.errors import Described, argument_error, int_argument, list_argument
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.engine import queue_engine
from gputensor.tensor.functions import conj
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import empty

__all__ = [
    "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft", "ihfft2",
    "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

NORMS = ("backward", "ortho", "forward")
# Functions with real input, and with real output.
FROM_REAL = ("rfft", "rfftn", "ihfft", "ihfftn")
TO_REAL = ("irfft", "irfftn", "hfft", "hfftn")


def _input(x, name, norm):
    if norm is not None and (not isinstance(norm, str) or norm not in NORMS):
        raise argument_error(ValueError, f"{name}: norm", norm, f"one of {', '.join(NORMS)}")
    dtype = tensor_argument(x, name).dtype
    if dtype.kind == "c":
        if name in FROM_REAL:
            raise argument_error(TypeError, f"{name}: x", Described(dtype.name), "a real dtype")
        return x, dtype == complex128
    is_double = dtype == float64
    return astype(x, float64 if is_double else float32, copy=False), is_double


def _lengths(x, s, axes, name):
    """Return the length of the signal along each axis, and the axes."""
    s = s if s is None else list_argument(f"{name}: s", s, "a sequence of ints")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [
        axis_argument(axis, x.ndim, name)
        for axis in list_argument(f"{name}: axes", axes, "a sequence of ints")
    ]
    if len(set(axes)) != len(axes):
        raise argument_error(ValueError, f"{name}: axes", axes, "different axes")
    if s is None:
        s = [x.shape[axis] for axis in axes]
        if name in TO_REAL and axes:
            s[-1] = 2 * (s[-1] - 1)
    if len(s) != len(axes):
        raise argument_error(ValueError, f"{name}: s", s, f"{len(axes)} ints, one for each axis")
    s = [int_argument(f"{name}: s", n) for n in s]
    s = [x.shape[axis] if n == -1 else n for n, axis in zip(s, axes, strict=True)]
    if any(n < 1 for n in s):
        raise argument_error(ValueError, f"{name}: n", s if len(s) > 1 else s[0], "1 or more")
    return s, axes


def _transformed(x, name, s, axes, norm):
    x, is_double = _input(x, name, norm)
    s, axes = _lengths(x, s, axes, name)
    shape = list(x.shape)
    for n, axis in zip(s, axes, strict=True):
        shape[axis] = n
    if name in FROM_REAL and axes:
        shape[axes[-1]] = s[-1] // 2 + 1
    if name in TO_REAL:
        dtype = float64 if is_double else float32
    else:
        dtype = complex128 if is_double else complex64
    out = empty(shape, dtype, device=x.device)
    if out.size == 0:
        return out
    if not axes:
        out[...] = x
        return out
    attributes = (name, tuple(s), tuple(axes), norm or "backward")
    return queue_engine(transform, attributes, [out], x)


def _one_axis(name, doc):
    def function(x, /, n=None, axis=-1, norm="backward"):
        if n is not None and int_argument(f"{name}: n", n) < 1:
            raise argument_error(ValueError, f"{name}: n", n, "1 or more")
        return _transformed(x, name, None if n is None else (n,), (axis,), norm)

    return _named(function, name, doc, "n", "axis")


def _several_axes(name, doc):
    def function(x, /, s=None, axes=None, norm="backward"):
        return _transformed(x, name, s, axes, norm)

    return _named(function, name, doc, "s", "axes")


def _two_axes(name, of):
    def function(x, /, s=None, axes=(-2, -1), norm="backward"):
        return _transformed(x, of, s, axes, norm)

    return _named(function, name, f"the transform :func:`{of}` over two axes.", "s", "axes")


def _named(function, name, doc, length, axis):
    is_one = axis == "axis"
    source = "Real" if name.replace("2", "n") in FROM_REAL else "Real or complex"
    is_to_real = name.replace("2", "n") in TO_REAL
    made = "Real" if is_to_real else "Complex"
    default = "2 * (extent - 1) along the last axis" if is_to_real else "the extent"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return {doc}

    Parameters
    ----------
    x : Tensor
        {source}; bool, integers and 16-bit floats become float32.
    {length} : {"int" if is_one else "sequence of int"}, optional
        The length of the signal along `{axis}`, 1 or more; the signal is cut or padded with zeros.
        Default: {default}.
    {axis} : {"int" if is_one else "sequence of int, optional"}
    norm : {{"backward", "ortho", "forward"}}
        The transform that is divided by the length: the inverse, both (by its square root), or the
        other one.

    Returns
    -------
    Tensor
        {made}, in double precision for float64 and complex128.

    >>> import gputensor as gt
    >>> x = gt.ones((4, 4), device="host")
    >>> {name}(x).shape
    {_SHAPES.get(name, (4, 4))}
    """
    return spellings(dim=axis)(function)


_SHAPES = {
    "rfft": (4, 3), "rfft2": (4, 3), "rfftn": (4, 3), "ihfft": (4, 3), "irfft": (4, 6),
    "irfft2": (4, 6), "irfftn": (4, 6), "hfft": (4, 6),
}  # fmt: skip

fft = _one_axis("fft", "the discrete Fourier transform along `axis`.")
ifft = _one_axis("ifft", "the inverse of :func:`fft`.")
rfft = _one_axis("rfft", "the first ``n // 2 + 1`` values of :func:`fft` of a real signal.")
irfft = _one_axis("irfft", "the real signal of `n` values whose :func:`rfft` is x.")
hfft = _one_axis("hfft", "the real transform of the Hermitian signal whose first half is x.")
ihfft = _one_axis("ihfft", "the inverse of :func:`hfft`.")
fftn = _several_axes("fftn", "the transform over `axes` (default: all).")
ifftn = _several_axes("ifftn", "the inverse of :func:`fftn`.")
rfftn = _several_axes("rfftn", ":func:`fftn` of a real signal, half of it along the last axis.")
irfftn = _several_axes("irfftn", "the real signal whose :func:`rfftn` is x.")
fft2 = _two_axes("fft2", "fftn")
ifft2 = _two_axes("ifft2", "ifftn")
rfft2 = _two_axes("rfft2", "rfftn")
irfft2 = _two_axes("irfft2", "irfftn")


def _hermitian(name, of, shape):
    """A transform of Hermitian signals in several axes: that of the conjugates, divided for it."""
    axes_default = (-2, -1) if name.endswith("2") else None

    def function(x, /, s=None, axes=axes_default, norm="backward"):
        turned = {"backward": "forward", None: "forward", "forward": "backward"}.get(norm, norm)
        if of == "irfftn":
            is_complex = tensor_argument(x, name).dtype.kind == "c"
            return _transformed(conj(x) if is_complex else x, of, s, axes, turned)
        return conj(_transformed(x, of, s, axes, turned))

    doc = "the inverse of" if name[0] == "i" else "the real transform, as"
    inverse = f"hfft{name[-1]}" if name[0] == "i" else "hfft"
    _SHAPES[name] = shape
    return _named(function, name, f"{doc} :func:`{inverse}`, over several axes.", "s", "axes")


hfft2, hfftn = (_hermitian(name, "irfftn", (4, 6)) for name in ("hfft2", "hfftn"))
ihfft2, ihfftn = (_hermitian(name, "rfftn", (4, 3)) for name in ("ihfft2", "ihfftn"))
