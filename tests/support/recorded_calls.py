"""Records a function on a phantom device, and repeats its calls through the door.

The phantom's addresses become one arena of the real device with the same offsets, poisoned before
it gets the inputs. So a call that reads unwritten memory, or writes elsewhere, changes the result.
"""

import contextlib

import numpy as np

import gputensor as gt
from gputensor._arrays.element_types import CODE_OF, DTYPES
from gputensor._driver import registry
from gputensor._kernels import calls
from gputensor._kernels.launch import CallOperand, set_recorder
from gputensor.streams.queue import stream_handle

POISON = 0xCB
ALIGNMENT = 512


class Recorder:
    """Keeps calls; refuses to move values."""

    def __init__(self):
        self.calls = []

    def call(self, row, stream, arguments):
        self.calls.append((row, stream, arguments))

    def upload(self, operand, array):
        raise RuntimeError(f"values of shape {array.shape} come from outside")

    def download(self, operand):
        raise RuntimeError("a value is needed")


@contextlib.contextmanager
def recording(recorder=None):
    """Yield (device number, recorder) of a phantom host device whose calls go to the recorder."""
    recorder = recorder or Recorder()
    device = registry.open_host(capacity=1 << 30, phantom=True)
    try:
        set_recorder(device, recorder)
        yield device, recorder
    finally:
        registry.close_host(device)


def described(tensor):
    """Return a tensor as an operand of a call."""
    name = DTYPES[CODE_OF[tensor.dtype]].name
    strides = [stride // tensor.itemsize for stride in tensor.strides]
    return CallOperand(tensor.data_ptr(), name, tensor.shape, strides)


def bits(tensor):
    """Return the bytes of a tensor's elements."""
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8)


def span(operand):
    """Return the addresses from the first to the last byte of an operand."""
    low = high = operand.address
    for extent, stride in zip(operand.shape, operand.strides, strict=True):
        step = (extent - 1) * stride * itemsize(operand)
        low, high = low + min(step, 0), high + max(step, 0)
    return low, high + itemsize(operand)


def itemsize(operand):
    return next(row.itemsize for row in DTYPES if row.name == operand.dtype)


def has_memory(argument):
    """Whether an argument is an operand with elements."""
    return isinstance(argument, CallOperand) and argument.shape is not None and (
        0 not in argument.shape
    )  # fmt: skip


def copy(device, target, source):
    """Copy between operands of one device, through the door."""
    arguments = ("copy", target.dtype, target, source)
    calls.make("elementwise", device, stream_handle(device), arguments)


def joined(spans):
    """Return whole aligned runs that contain the spans; pools lie far from each other."""
    runs = []
    for first, last in sorted(spans):
        first, last = first // ALIGNMENT * ALIGNMENT, -(-last // ALIGNMENT) * ALIGNMENT
        if runs and first <= runs[-1][1]:
            runs[-1][1] = max(last, runs[-1][1])
        else:
            runs.append([first, last])
    return runs


def check_again(function, *inputs):
    """Compare a function of dense tensors with its calls, recorded and repeated elsewhere.

    Return the names of the calls.
    """
    device = inputs[0].device.number
    wanted = function(*inputs)
    with recording() as (phantom, recorder):
        given = [gt.empty(one.shape, dtype=one.dtype, device=phantom) for one in inputs]
        result = described(function(*given))
        given = [described(one) for one in given]
    kept = recorder.calls
    used = [*given, result, *(one for *_row, arguments in kept for one in arguments)]
    runs = joined([span(one) for one in used if has_memory(one)])
    nbytes = sum(last - first for first, last in runs)
    arena = gt.full(nbytes + ALIGNMENT, POISON, dtype=gt.uint8, device=device)
    places, place = [], -(-arena.data_ptr() // ALIGNMENT) * ALIGNMENT
    for first, last in runs:
        places.append(place - first)
        place += last - first

    def moved(one):
        run = max(i for i, (first, _last) in enumerate(runs) if first <= span(one)[0])
        return one.at(one.address + places[run])

    for target, source in zip(given, inputs, strict=True):
        if source.size:
            copy(device, moved(target), described(source))
    for row, _stream, arguments in kept:
        again = [moved(one) if has_memory(one) else one for one in arguments]
        calls.make(row.name, device, stream_handle(device), tuple(again))
    got = gt.empty(wanted.shape, dtype=wanted.dtype, device=device)
    if got.size:
        copy(device, described(got), moved(result))
    names = [row.name for row, *_rest in kept]
    assert np.array_equal(bits(got), bits(wanted)), f"{names}: the results differ"
    return names
