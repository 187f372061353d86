"""Invalid arguments that could crash, pass silently, or give a misleading error."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import gputensor as gt


class Interface:
    """An object with an arbitrary `__cuda_array_interface__`."""

    def __init__(self, content):
        self.__cuda_array_interface__ = content


FACTS = {"shape": (2, 2), "typestr": "<f4", "data": (4096, False), "version": 3}
MISTAKES = {
    # memory safety
    "gt.ones(2).__dlpack__(max_version=())": "max_version: got ()",
    "gt.ones(2).__dlpack__(max_version=(1,))": "max_version: got (1,)",
    "gt.asarray(Interface(None))": "__cuda_array_interface__",
    "gt.asarray(Interface({}))": "__cuda_array_interface__",
    "gt.asarray(Interface(FACTS | {'shape': (-2, 2)}))": "shape: got",
    "gt.asarray(Interface(FACTS | {'shape': (2**40, 2**40)}))": "shape: got",
    "gt.asarray(Interface(FACTS | {'strides': (4,) * 20}))": "strides: got",
    "gt.asarray(Interface(FACTS | {'strides': (4,)}))": "strides: got",
    # silence
    "gt.zeros(3).sum(keepdims='yes')": "sum: keepdims: got 'yes'; expected True or False",
    "gt.asarray([1], copy='no')": "asarray: copy: got 'no'; expected True, False or None",
    "gt.asarray([2]) ** -1": "pow: exponent: got -1; expected 0 or more",
    "gt.zeros((3, 4))[gt.asarray([5]), :0]": "index 5 is out of bounds",
    "gt.zeros((0, 2**62, 2**62))": "shape: got",
    # messages
    "bool(gt.zeros((2, 3)))": "bool: got a tensor of shape (2, 3); expected one element; any()",
    "float(gt.zeros((2, 3)))": "float: got a tensor of shape (2, 3); expected one element",
    "gt.asarray([[1, 2], [3]])": "asarray: obj: got sequences of unequal lengths",
    "gt.asarray('abc')": "asarray: obj: got text",
    "gt.asarray([1, 'a'])": "asarray: obj: got text",
    "gt.stack([])": "stack: arrays: got []",
    "gt.concat(None)": "concat: arrays: got NoneType; expected a sequence of tensors",
    "gt.count_nonzero(gt.zeros(3), axis=4)": "count_nonzero: axis: got 4",
    "gt.zeros_like('a')": "zeros_like: argument: got str",
    "gt.tile(gt.zeros(2), -1)": "tile: repetitions: got [-1]",
    "gt.logaddexp(gt.zeros(2), 'a')": "logaddexp: argument 2: got str; expected a Tensor",
    "gt.logaddexp(gt.zeros(2), gt.zeros(3))": "logaddexp: got shapes (2,) and (3,)",
    "gt.load_safetensors(5)": "path: got int; expected a str",
    "gt.arange(0, 1e30)": "arange: stop: got 1e+30",
    "gt.zeros(3)[gt.asarray([2**63], dtype='uint64')]": "index 9223372036854775808 is out of",
    "gt.blas.precision(foo=1)": "precision: got the flag foo; expected one of allow_tf32",
    "gt.zeros(3).to('float99')": "to: targets: got 'float99'; expected a dtype",
    "gt.asarray([1])['x']": "index: got 'x'; expected ints",
    "gt.repeat(gt.asarray(5), 2, axis=1)": "repeat: axis: got 1",
    "gt.take(gt.asarray(5), 0, axis=1)": "take: axis: got 1",
    "gt.compress([True], gt.asarray(5), axis=-2)": "take: axis: got -2",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistake_is_named(text):
    with gt.Device("host"), pytest.raises(Exception, match=re.escape(MISTAKES[text])):
        eval(text, {"gt": gt, "np": np, "Interface": Interface, "FACTS": FACTS})


VALUES = {
    "gt.asarray([np.array([1e300])]).dtype": np.float64,
    "gt.asarray([np.float64(1e300)]).dtype": np.float64,
    "gt.asarray([gt.asarray([1], dtype='bfloat16')]).dtype": gt.bfloat16,
    "gt.zeros(1, dtype=float).dtype": np.float64,
    "gt.zeros(1, dtype=complex).dtype": np.complex128,
    "gt.asarray([1.5]).dtype": np.float32,
    "gt.signbit(gt.asarray([-np.nan])).tolist()": [True],
    "gt.copysign(gt.asarray([1.0]), gt.asarray([-np.nan])).tolist()": [-1.0],
    "gt.clip(gt.asarray([1, 2], dtype='int8'), -1000, 1000).tolist()": [1, 2],
    "gt.zeros(3).to('float64').dtype": np.float64,
    "gt.full(2, gt.asarray(3, dtype='int8')).tolist()": [3, 3],
    "gt.full(2, gt.asarray(3, dtype='int8')).dtype": np.int8,
    "gt.full_like(gt.zeros(2), gt.asarray(3)).tolist()": [3.0, 3.0],
    "gt.finfo(np.complex64).dtype": np.float32,
    "gt.result_type(np.int8, np.int16)": np.int16,
    "type(gt.meshgrid(gt.zeros(2)))": tuple,
    "type(gt.broadcast_arrays(gt.zeros(2)))": tuple,
    "gt.searchsorted(gt.asarray([1, 2]), 2).item()": 1,
    "gt.isin(gt.asarray([1, 2], dtype='uint64'), 2).tolist()": [False, True],
    "gt.tensor([1]).tolist()": [1],
    "gt.device('host')": gt.Device("host"),
    "f'{gt.asarray(2.5):.3f}'": "2.500",
    "divmod(gt.asarray([7]), 2)[0].tolist()": [3],
    "gt.zeros((2, 3)).sum(0).shape": (3,),
    # tensors without axes
    "gt.repeat(gt.asarray(5), 2, axis=0).tolist()": [5, 5],
    "gt.repeat(gt.asarray(5), [3], axis=-1).tolist()": [5, 5, 5],
    "gt.take(gt.asarray(5), 0, axis=0).tolist()": 5,
    "gt.take(gt.asarray(5), [[0, 0]], axis=-1).tolist()": [[5, 5]],
    "gt.take(gt.asarray(5), [-1, 3], axis=0, mode='clip').tolist()": [5, 5],
    "gt.compress([True], gt.asarray(5), axis=0).tolist()": [5],
    "gt.compress([False], gt.asarray(5), axis=-1).tolist()": [],
    "gt.round(gt.asarray([1.25, 12.5]), gt.asarray(1)).tolist()": [np.float32(1.2).item(), 12.5],
    "gt.asarray([149]).round(gt.asarray(-1, dtype='int8')).tolist()": [150],
    "np.around(gt.asarray([149]), gt.asarray(-2)).tolist()": [100],
    "gt.round(gt.asarray([1.5]), gt.zeros(1)).tolist()": [2],
    "gt.round(gt.asarray(1.5), gt.zeros(())).tolist()": 2,
}


@pytest.mark.parametrize("text", VALUES)
def test_value_is_the_expected_one(text):
    with gt.Device("host"), np.errstate(all="ignore"):
        assert eval(text, {"gt": gt, "np": np}) == VALUES[text]


class Old:
    """An array with DLPack older than version 1, which has no flag for read-only memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_an_unversioned_capsule_is_read_only():
    array = np.zeros(3)
    with gt.Device("host"):
        x = gt.from_dlpack(Old(array))
        with pytest.raises(ValueError, match="read-only"):
            x += 1
    assert array.tolist() == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("GPUTENSOR_NO_SUCH_THING", "1", "unknown variable"),
        ("GPUTENSOR_NO_MEMORY_CACHING", "maybe", "got 'maybe'; expected 0 or 1"),
    ],
)
def test_a_wrong_variable_is_a_warning(name, value, message):
    done = subprocess.run(
        [sys.executable, "-c", "import gputensor"],
        env=os.environ | {name: value},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and name in done.stderr and message in done.stderr
