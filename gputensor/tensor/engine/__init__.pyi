from typing import Any

from gputensor._engines.engine import Engine
from gputensor._kernels.launch import Kernel
from gputensor.tensor.core import Tensor

def queue_engine(
    engine: Engine, attributes: tuple[Any, ...], outputs: list[Tensor], *inputs: Tensor | None
) -> Any: ...
def queue_call(
    name: str,
    attributes: tuple[Any, ...],
    writes: tuple[Tensor, ...],
    reads: tuple[Tensor | None, ...] = (),
    title: str | None = None,
) -> None: ...
def queue_kernel(
    program: Any,
    extents: tuple[int, ...],
    parameters: bytes,
    writes: tuple[Tensor, ...],
    reads: tuple[Tensor, ...],
    title: str,
) -> None: ...
def user_kernel(program: Any) -> Kernel: ...
def refuse_in_trace(tensor: Tensor, problem: str, way_out: str) -> None: ...
def device_generation(tensor: Tensor) -> tuple[int, int]: ...
