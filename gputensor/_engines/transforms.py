"""Discrete Fourier transforms: pocketfft by NumPy, cuFFT by CuPy."""

from gputensor._engines.engine import Engine

__all__ = ["transform"]


@Engine.of_call
def transform(module, name, lengths, axes, norm, out, x):
    """`name` is a function of the module's ``fft``, `lengths` and `axes` one for each axis."""
    transforms = module.fft
    if not name.endswith("n"):
        out[...] = getattr(transforms, name)(x, lengths[0], axes[0], norm)
        return
    # One axis of a real transform is halved; CuPy takes lengths in the order of the axes' numbers,
    # NumPy in that of `axes`. So that axis has a call of its own, and the others are in order.
    is_real = name in ("rfftn", "irfftn")
    pairs = sorted(zip(axes[:-1] if is_real else axes, lengths, strict=False))
    rest, sizes = [axis for axis, _ in pairs], [n for _, n in pairs]
    if name == "rfftn":
        x = transforms.rfft(x, lengths[-1], axes[-1], norm)
    if rest:
        x = (transforms.ifftn if name[0] == "i" else transforms.fftn)(x, sizes, rest, norm)
    out[...] = transforms.irfft(x, lengths[-1], axes[-1], norm) if name == "irfftn" else x
