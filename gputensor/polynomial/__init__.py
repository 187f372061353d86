"""NumPy's and CuPy's package ``polynomial``, of which the power series are here.

>>> import gputensor as gt
>>> gt.polynomial.polynomial.polyval(gt.asarray([2.0], device="host"), [1.0, 0.0, 3.0]).tolist()
[13.0]
"""

from gputensor.polynomial import polynomial

__all__ = ["polynomial"]


def __dir__():
    return sorted(__all__)
