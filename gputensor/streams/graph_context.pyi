from types import TracebackType
from typing import Literal

from gputensor.streams.graph import CUDAGraph
from gputensor.streams.stream import StreamLike

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
