"""An image blurred with a Gaussian through the Fourier transform.

python examples/numpy_programs/image_convolution.py
"""

import numpy as np

import gputensor as gt


def compute(xp, size=64):
    """Return the blurred image and the total of its pixels."""
    image = xp.asarray(np.random.default_rng(5).random((size, size)))
    line = xp.fft.fftfreq(size, d=1 / size)
    line = xp.exp(-0.5 * xp.astype(line, "float64") ** 2 / 4)
    kernel = xp.outer(line, line)
    kernel = kernel / xp.sum(kernel)
    shape = (size, size)
    spectrum = xp.fft.rfftn(image) * xp.fft.rfftn(kernel)
    blurred = xp.fft.irfftn(spectrum, s=shape, axes=(0, 1))
    return blurred, xp.sum(blurred)


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
