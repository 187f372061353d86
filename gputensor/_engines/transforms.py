"""Discrete Fourier transforms: pocketfft through NumPy, cuFFT through CuPy."""

from gputensor._engines.engine import Engine

__all__ = ["transform"]


@Engine.of_call
def transform(module, name, lengths, axes, norm, out, x):
    """Call ``module.fft.<name>``; `lengths` and `axes` have one entry for each transformed axis."""
    transforms = module.fft
    if not name.endswith("n"):
        out[...] = getattr(transforms, name)(x, lengths[0], axes[0], norm)
        return
    # A real transform halves its last axis. CuPy takes lengths in ascending order of the axes,
    # NumPy in the order of `axes`. So the halved axis gets its own call, and the others are sorted.
    is_real = name in ("rfftn", "irfftn")
    pairs = sorted(zip(axes[:-1] if is_real else axes, lengths, strict=False))
    rest, sizes = [axis for axis, _ in pairs], [n for _, n in pairs]
    if name == "rfftn":
        x = transforms.rfft(x, lengths[-1], axes[-1], norm)
    if rest:
        x = (transforms.ifftn if name[0] == "i" else transforms.fftn)(x, sizes, rest, norm)
    out[...] = transforms.irfft(x, lengths[-1], axes[-1], norm) if name == "irfftn" else x
