"""The states of generators, and the default states of the devices.

A state is four uint64 on a device: the seed, a counter of 128 bits (low half, high half), and a
reserved word. A draw reads and advances it on the device, so a graph draws new numbers at each
replay.
"""

import operator
import os
import threading

import numpy as np

from gputensor._arrays.dtypes import uint64
from gputensor.errors import Described, DeviceError, argument_error
from gputensor.streams.queue import Device, Stream, current_stream
from gputensor.tensor.core import Tensor
from gputensor.tensor.engine import device_generation, refuse_in_trace
from gputensor.tensor.interop import asarray
from gputensor.tensor.manipulation import empty

__all__ = ["WORDS", "checked_words", "default_state", "new_state", "seed", "spec", "state_of"]

WORDS = 4
_WAY_OUT = "pass the state of a generator: generator=state['random']"
_defaults: dict[tuple[int, int], Tensor] = {}  # (number, generation) of a device -> state
_seed = None  # the seed of default states made later; None: from the system


def seed_argument(value):
    """Return a seed as an int; for None, one from the system.

    Several ints are mixed to one as NumPy's ``SeedSequence`` does it, which may be given itself.

    >>> seed_argument([1, 2]) == seed_argument(np.random.SeedSequence([1, 2]))
    True
    """
    if value is None:
        return int.from_bytes(os.urandom(8), "little")
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, (list, tuple)):
        if not value or not all(isinstance(one, (int, np.integer)) for one in value):
            raise argument_error(TypeError, "seed", Described("a list"), "one of ints of 0 or more")
        if min(value) < 0:
            raise argument_error(ValueError, "seed", min(value), "ints of 0 or more")
        value = np.random.SeedSequence(value)
    if hasattr(value, "generate_state"):
        value = value.generate_state(1, np.uint64)[0]
    try:
        number = operator.index(value)
    except TypeError:
        got = Described(type(value).__name__)
        rule = "an int, ints, a SeedSequence or None"
        raise argument_error(TypeError, "seed", got, rule) from None
    if not 0 <= number < 1 << 64:
        raise argument_error(ValueError, "seed", number, "0 to 2**64 - 1")
    return number


def new_state(seed=None, device=None):
    """Return the state of a new generator.

    >>> new_state(5, "host").tolist()
    [5, 0, 0, 0]
    """
    words = np.array([seed_argument(seed), 0, 0, 0], np.uint64)
    return asarray(words, device=device, copy=True)


def spec(seed=0):
    """Return the initial state of a generator in a program, as a NumPy array.

    >>> spec(seed=5)
    array([5, 0, 0, 0], dtype=uint64)
    """
    return np.array([seed_argument(seed), 0, 0, 0], np.uint64)


def default_state(device=None):
    """Return the state of a device's default generator, which draws without a generator use.

    >>> default_state("host").shape
    (4,)
    """
    probe = empty(0, dtype=uint64, device=device)
    refuse_in_trace(probe, "a draw without a generator in a program", _WAY_OUT)
    key = device_generation(probe)
    state = _defaults.get(key)
    if state is None:
        for old in [other for other in list(_defaults) if other[0] == key[0]]:
            _defaults.pop(old, None)
        # Another thread may have made one meanwhile; its seed may be drawn from already.
        state = _defaults.setdefault(key, _new_default(device))
    return state


def _new_default(device):
    """Return a new default state, which outlives pools and captures that are in use now.

    Another thread makes it, whose requests go to no `MemPool` of this one. A capture in progress
    finds it ready and does not own it: the memory is not that of the graph, which may be dropped,
    and replays do not fill it again.
    """
    place, found = Device(device), []
    current = current_stream(place)
    is_capturing = current.is_capturing()

    def make():
        stream = Stream(place) if is_capturing else current
        try:
            with stream:
                found.append(new_state(_seed, place))
            if is_capturing:
                stream.synchronize()  # from then on the capture may use the memory
        except BaseException as error:
            found[:] = [error]

    other = threading.Thread(target=make)
    try:
        other.start()
    except RuntimeError:  # the interpreter ends, or the system has no more threads
        make()
    else:
        other.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def seed(seed=None):
    """Seed the default generators of all devices; None draws a seed from the system.

    >>> import gputensor as gt
    >>> gt.random.seed(3)
    >>> first = gt.random.integers(100, size=4, device="host").tolist()
    >>> gt.random.seed(3)
    >>> gt.random.integers(100, size=4, device="host").tolist() == first
    True
    """
    global _seed
    number = seed_argument(seed)
    _seed = number
    if current_stream().is_capturing():
        default_state()  # so that seeding is work of the graph, whether or not a draw came before
    for key, state in list(_defaults.items()):
        if not _is_open(key, state.device):
            del _defaults[key]
        else:  # in place, because captured graphs read this memory
            state[...] = asarray(spec(number), device=state.device)


def _is_open(key, device):
    """Whether a device is open and the one of a key; a host device may be closed for good."""
    try:
        return device_generation(empty(0, device=device)) == key
    except DeviceError:
        return False


def checked_words(values):
    """Return the four words of a state, from a result of `get_state` or a tensor."""
    if type(values) is Tensor:
        return state_of(values, None, "state")
    words = np.asarray(values)
    if words.shape != (WORDS,) or words.dtype != np.uint64 or int(words[3]):
        got = Described(f"{words.dtype} of shape {words.shape}")
        raise argument_error(
            ValueError, "state", got, "a result of get_state(): 4 uint64, the last 0"
        )
    return words


def state_of(generator, device, name):
    """Return the state tensor of a generator or a state, or for None the device's default."""
    if generator is None:
        return default_state(device)
    state = getattr(generator, "state", generator)
    if type(state) is not Tensor:
        got = Described(type(generator).__name__)
        raise argument_error(TypeError, f"{name}: generator", got, "a Generator, a state or None")
    if (
        state.dtype is not uint64
        and state.dtype != uint64
        or state.shape != (WORDS,)
        or not state.is_contiguous
    ):
        got = Described(f"{state.dtype.name} of shape {state.shape}")
        raise argument_error(ValueError, f"{name}: generator", got, "a state: uint64 of shape (4,)")
    if device is not None and empty(0, device=device).device != state.device:
        got = Described(str(device))
        raise argument_error(ValueError, f"{name}: device", got, f"{state.device}, the generator's")
    return state
