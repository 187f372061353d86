"""Short-time Fourier transforms of signals along the last axis, as in PyTorch."""

import operator

from gputensor._arrays.dtypes import float32
from gputensor.errors import Described, argument_error, int_argument
from gputensor.fft.transforms import fft, ifft, irfft, rfft
from gputensor.tensor import functions as fn
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import arange, matrix_transpose, ones, reshape, zeros
from gputensor.tensor.numerics.padding import pad
from gputensor.tensor.numerics.windows import unfold
from gputensor.tensor.writing import index_add

__all__ = ["istft", "stft"]


def _settings(name, n_fft, hop_length, win_length):
    n_fft = int_argument(f"{name}: n_fft", n_fft)
    hop = n_fft // 4 if hop_length is None else int_argument(f"{name}: hop_length", hop_length)
    length = n_fft if win_length is None else int_argument(f"{name}: win_length", win_length)
    for title, value, most in (("n_fft", n_fft, None), ("hop_length", hop, None),
                               ("win_length", length, n_fft)):  # fmt: skip
        if value < 1 or (most is not None and value > most):
            rule = "1 or more" if most is None else f"1 to {most}, which is n_fft"
            raise argument_error(ValueError, f"{name}: {title}", value, rule)
    return n_fft, hop, length


def _options(name, given, **defaults):
    for one in given:
        if one not in defaults:
            raise argument_error(TypeError, name, Described(one), f"one of {', '.join(defaults)}")
    return (defaults | given).values()


def _window(name, window, length, n_fft, x):
    """Return the window in the middle of `n_fft` places, or None for one of ones."""
    if window is None and length == n_fft:
        return None
    if window is None:
        window = ones(length, device=x.device)
    elif tensor_argument(window, name).shape != (length,):
        got = Described(f"shape {window.shape}")
        raise argument_error(ValueError, f"{name}: window", got, f"({length},)")
    before = (n_fft - length) // 2
    return pad(window, ((before, n_fft - length - before),))


def stft(x, /, n_fft, hop_length=None, win_length=None, window=None, center=True, **options):
    """Return the Fourier transforms of overlapping frames of signals.

    Parameters
    ----------
    x : Tensor
        The signals along the last axis, with up to one axis before it.
    n_fft : int
        The length of a frame.
    hop_length : int, optional
        The distance between frames; default: ``n_fft // 4``.
    win_length : int, optional
        The length of the window, in the middle of a frame; default: `n_fft`.
    window : Tensor, optional
        A factor for each element; default: ones.
    center : bool
        Pad both ends by ``n_fft // 2``, so that frames are centred at multiples of the hop.
    pad_mode : str, optional
        As in :func:`pad`; default: ``"reflect"``.
    normalized : bool, optional
        Divide by the root of `n_fft`; default: False.
    onesided : bool, optional
        Only the frequencies from 0 up, of real signals; default: if the signal and window are real.
    return_complex : True, optional

    Returns
    -------
    Tensor
        Complex, of shape ``(..., frequencies, frames)``.

    >>> import gputensor as gt
    >>> stft(gt.ones(16, device="host"), 8, 4).shape
    (5, 5)
    """
    n_fft, hop, length = _settings("stft", n_fft, hop_length, win_length)
    pad_mode, normalized, onesided, return_complex = _options(
        "stft", options, pad_mode="reflect", normalized=False, onesided=None, return_complex=True
    )
    if return_complex is not True:
        raise argument_error(ValueError, "stft: return_complex", return_complex, "True")
    if tensor_argument(x, "stft").ndim not in (1, 2):
        raise argument_error(ValueError, "stft: x", Described(f"{x.ndim} dimensions"), "1 or 2")
    window = _window("stft", window, length, n_fft, x)
    x = astype(x, float32) if x.dtype.kind in "iub" else x
    is_complex = x.dtype.kind == "c" or (window is not None and window.dtype.kind == "c")
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise argument_error(ValueError, "stft: onesided", True, "False for complex signals")
    if center:
        x = pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], pad_mode)
    if x.shape[-1] < n_fft:
        got = Described(f"{x.shape[-1]} elements")
        raise argument_error(ValueError, "stft: x", got, f"{n_fft} or more, which is n_fft")
    frames = unfold(x, -1, n_fft, hop)
    frames = frames if window is None else frames * window
    made = (rfft if onesided else fft)(frames, norm="ortho" if normalized else None)
    return matrix_transpose(made)


def istft(x, /, n_fft, hop_length=None, win_length=None, window=None, center=True, **options):
    """Return the signals whose :func:`stft` is `x`: its inverse by least squares.

    Parameters
    ----------
    x : Tensor
        Complex, of shape ``(..., frequencies, frames)``.
    length : int, optional
        The length of the signals; default: what the frames cover.
    normalized, onesided : bool, optional
        As in the transform.
    return_complex : bool, optional
        Whether the signals are complex; `onesided` then has to be False. Default: False.

    The other arguments are those of the transform. Where no window covers an element of the
    result, it is NaN or infinite.

    >>> import gputensor as gt
    >>> x = gt.arange(16, dtype="float64", device="host")
    >>> bool(gt.allclose(istft(stft(x, 8), 8), x))
    True
    """
    n_fft, hop, win_length = _settings("istft", n_fft, hop_length, win_length)
    normalized, onesided, length, return_complex = _options(
        "istft", options, normalized=False, onesided=None, length=None, return_complex=False
    )
    onesided = not return_complex if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if tensor_argument(x, "istft").ndim not in (2, 3) or x.shape[-2] != expected:
        got = Described(f"shape {x.shape}")
        raise argument_error(ValueError, "istft: x", got, f"(..., {expected}, frames)")
    if onesided and return_complex:
        raise argument_error(ValueError, "istft: onesided", True, "False for complex signals")
    norm = "ortho" if normalized else None
    frames = matrix_transpose(x)
    frames = irfft(frames, n_fft, norm=norm) if onesided else ifft(frames, norm=norm)
    frames = frames if return_complex else fn.real(frames)
    window = _window("istft", window, win_length, n_fft, x)
    window = ones(n_fft, fn.real(frames[:0]).dtype, device=x.device) if window is None else window
    whole = n_fft + hop * (frames.shape[-2] - 1)
    starts = reshape(arange(frames.shape[-2], device=x.device) * hop, (-1, 1))
    places = reshape(starts + arange(n_fft, device=x.device), -1)
    batch = frames.shape[:-2]
    added = reshape(frames * window, (*batch, -1))
    total = index_add(zeros((*batch, whole), added.dtype, device=x.device), -1, places, added)
    squares = fn.square(fn.abs(window))
    squares = reshape(ones((frames.shape[-2], 1), squares.dtype, device=x.device) * squares, -1)
    weight = index_add(zeros(whole, squares.dtype, device=x.device), 0, places, squares)
    first = n_fft // 2 if center else 0
    last = whole - first if length is None else min(first + operator.index(length), whole)
    made = total[..., first:last] / weight[first:last]
    missing = 0 if length is None else operator.index(length) - made.shape[-1]
    return pad(made, [(0, 0)] * len(batch) + [(0, missing)]) if missing > 0 else made
