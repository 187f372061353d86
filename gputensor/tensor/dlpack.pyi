from typing import Any

from gputensor.tensor.tensor import Tensor

def dlpack(
    t: Tensor,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any: ...
def device_pair(t: Tensor) -> tuple[int, int]: ...
def producer_device(x: Any) -> tuple[int, int]: ...
def from_dlpack(
    x: Any, /, *, device: Any = None, copy: bool | None = None, assume_writable: bool = False
) -> Tensor: ...
