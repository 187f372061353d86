"""Functions of NumPy's and CuPy's older interface that are based on the newer ones."""

from gputensor._arrays.dtypes import uint8
from gputensor.errors import argument_error, int_argument
from gputensor.random.distributions import integers

__all__ = ["bytes", "random_integers"]


def bytes(length, *, device=None):
    """Return random bytes; waits for the device.

    >>> len(bytes(3, device="host"))
    3
    """
    count = int_argument("bytes: length", length)
    if count < 0:
        raise argument_error(ValueError, "bytes: length", count, "0 or more")
    return integers(256, size=count, dtype=uint8, device=device).numpy().tobytes()


def random_integers(low, high=None, size=None, *, device=None):
    """Return integers from `low` to `high`, both included; from 1 to `low` without `high`.

    >>> random_integers(1, 1, 3, device="host").tolist()
    [1, 1, 1]
    """
    low, high = (1, low) if high is None else (low, high)
    return integers(low, int_argument("random_integers: high", high) + 1, size, device=device)
