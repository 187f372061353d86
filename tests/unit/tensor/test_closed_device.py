"""Uses of tensors of a closed host device are errors, even if its number was reused."""

import copy
import pickle

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._driver import registry
from gputensor.errors import DeviceError

CAPACITY = 64 << 20

# Uses that read or write a tensor `t`, its transpose `s`, an index `i` and a number `x`.
USES = {
    "numpy": lambda t, s, i, x: t.numpy(),
    "printing": lambda t, s, i, x: repr(t),
    "item": lambda t, s, i, x: x.item(),
    "bool": lambda t, s, i, x: bool(x),
    "pickle": lambda t, s, i, x: pickle.dumps(t),
    "copy": lambda t, s, i, x: copy.copy(t),
    "address": lambda t, s, i, x: t.data_ptr(),
    "dlpack": lambda t, s, i, x: np.from_dlpack(t),
    "dlpack copy": lambda t, s, i, x: t.__dlpack__(copy=True),
    "another device": lambda t, s, i, x: t.to_device("host"),
    "another device, strided": lambda t, s, i, x: s.to_device("host"),
    "add": lambda t, s, i, x: t + t,
    "add a number": lambda t, s, i, x: t + 1,
    "add in place": lambda t, s, i, x: gt.add(t, t, out=t),
    "fill": lambda t, s, i, x: t.__setitem__(Ellipsis, 1.0),
    "upload": lambda t, s, i, x: t.__setitem__(0, np.ones(4, np.float32)),
    "write by index": lambda t, s, i, x: t.__setitem__(i, 1.0),
    "read by index": lambda t, s, i, x: t[i],
    "read by mask": lambda t, s, i, x: t[t > 1],
    "convert": lambda t, s, i, x: t.astype("float64"),
    "reduce": lambda t, s, i, x: gt.sum(t),
    "reshape": lambda t, s, i, x: gt.reshape(s, (12,)),
    "join": lambda t, s, i, x: gt.concat([t, t]),
    "choose": lambda t, s, i, x: gt.where(t > 1, t, t),
    "matmul": lambda t, s, i, x: t @ s,
    "linear": lambda t, s, i, x: gt.linear(t, t),
    "grouped": lambda t, s, i, x: gt.grouped_matmul([t], [s]),
}


def tensors(device):
    t = gt.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4), device=device)
    index = gt.asarray(np.array([0, 2]), device=device)
    return t, t.mT, index, gt.ones((), device=device)


@pytest.fixture(params=[None, 7], ids=["at-once", "deferred"])
def closed(request):
    """Tensors of a device that was closed, and its number."""
    number = registry.open_host(capacity=CAPACITY, seed=request.param)
    made = list(tensors(number))
    registry.close_host(number)
    return made, number


@pytest.fixture
def successor(closed):
    """A device with the number of the closed one."""
    number = registry.open_host(capacity=CAPACITY)
    assert number == closed[1]
    yield number
    registry.close_host(number)


@pytest.mark.parametrize("use", USES)
def test_a_use_after_the_device_was_closed_says_so(closed, use):
    made, number = closed
    with pytest.raises(DeviceError, match=f"host:{-1 - number} .* is (not open|closed)"):
        USES[use](*made)


@pytest.mark.parametrize("use", USES)
def test_another_device_with_the_number_is_not_taken_for_it(closed, successor, use):
    made, number = closed
    with pytest.raises(DeviceError, match=f"host:{-1 - number} of this tensor is closed"):
        USES[use](*made)


def test_a_mixture_with_tensors_of_the_successor_is_refused_and_changes_nothing(closed, successor):
    (t, s, _, _), _ = closed
    new = gt.ones((3, 4), device=successor)
    for mix in (
        lambda: new + t,
        lambda: gt.add(new, 1, out=t),
        lambda: gt.matmul(t, new.mT),
        lambda: gt.linear(new, new, s[0]),
        lambda: new.__setitem__(Ellipsis, t),
        lambda: t.__setitem__(Ellipsis, new),
    ):
        with pytest.raises(DeviceError, match="of this tensor is closed"):
            mix()
    np.testing.assert_array_equal(new.numpy(), np.ones((3, 4)))


def test_what_needs_no_memory_still_works(closed):
    (t, s, _, _), number = closed
    assert (t.shape, s.shape, t.dtype, t.device) == ((3, 4), (4, 3), gt.float32, gt.Device(number))
    assert t[1:, ::2].shape == (2, 2)


def test_dropped_tensors_leave_the_successor_alone(closed, successor):
    made, _ = closed
    new = gt.asarray(np.arange(1000.0), device=successor)
    before = memory.memory_allocated(successor)
    assert before >= new.nbytes
    del made[:]
    assert memory.memory_allocated(successor) == before
    np.testing.assert_array_equal(new.numpy(), np.arange(1000.0))
