from collections.abc import Sequence
from typing import Any

import numpy as np

class DeviceArray:
    device: int
    dtype: int
    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    @staticmethod
    def empty(nbytes: int, device: int, stream: int = 0, poison: int = 0xCB) -> DeviceArray: ...
    @staticmethod
    def from_numpy(
        values: np.ndarray, device: int, stream: int = 0, offset: int = 0
    ) -> DeviceArray: ...
    def view(
        self, dtype: int, shape: Sequence[int], strides: Sequence[int], offset: int = 0
    ) -> DeviceArray: ...
    def numpy(self, stream: int = 0) -> np.ndarray: ...

def elementwise(
    op: int, compute: int, out: DeviceArray, inputs: Sequence[Any], stream: int = 0
) -> None: ...
def reduce(
    op: int,
    compute: int,
    out: DeviceArray,
    array: DeviceArray,
    axes: Sequence[int],
    stream: int = 0,
) -> None: ...
def fill(out: DeviceArray, value: complex, stream: int = 0) -> None: ...
def arange(
    out: DeviceArray,
    start: float,
    step: float,
    integer_start: int,
    integer_step: int,
    stream: int = 0,
) -> None: ...
def gather(
    out: DeviceArray,
    source: DeviceArray,
    first_axis: int,
    indices: Sequence[DeviceArray],
    stream: int = 0,
) -> None: ...
def scatter(
    target: DeviceArray,
    first_axis: int,
    indices: Sequence[DeviceArray],
    values: DeviceArray,
    stream: int = 0,
) -> None: ...
def synchronize(device: int, stream: int = 0) -> None: ...
def dtype_facts(dtype: int) -> tuple[int, int]: ...
def replace_facts(device: int, multiprocessors: int, shared_nbytes: int) -> tuple[int, int]: ...
