from types import TracebackType
from typing import Any, Literal

from gputensor.streams.queue import StreamLike

CAPTURE_ERROR_MODES: tuple[str, ...]
_Mode = Literal["global", "thread_local", "relaxed"]

class CUDAGraph:
    keep_graph: bool
    def __init__(self, keep_graph: bool = False) -> None: ...
    def capture_begin(
        self,
        pool: tuple[int, int] | int | CUDAGraph | None = None,
        capture_error_mode: _Mode = "global",
    ) -> None: ...
    def capture_end(self) -> None: ...
    def instantiate(self) -> None: ...
    def replay(self, inputs: dict[Any, Any] | None = None) -> None: ...
    def reset(self) -> None: ...
    def pool(self) -> tuple[int, int]: ...

class graph:
    cuda_graph: CUDAGraph
    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | int | CUDAGraph | None = None,
        stream: StreamLike | None = None,
        capture_error_mode: Literal["global", "thread_local", "relaxed"] = "global",
    ) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

def is_current_stream_capturing() -> bool: ...
def graph_pool_handle() -> tuple[int, int]: ...
