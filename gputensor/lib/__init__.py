"""The functions that NumPy and CuPy keep below their ``lib``.

Libraries that are written for any array, such as xarray, look for them there.
"""

from gputensor.lib import stride_tricks

__all__ = ["stride_tricks"]


def __dir__():
    return sorted(__all__)
