from typing import Any

import numpy as np

from gputensor._alloc.replay.trace_file import Trace

def replay_trace(
    op: np.ndarray[Any, Any],
    id: np.ndarray[Any, Any],
    size: np.ndarray[Any, Any],
    stream: np.ndarray[Any, Any],
    device: int,
    thread: np.ndarray[Any, Any] | None = None,
) -> dict[str, Any]: ...
def replay_settings(
    trace: Trace,
    device: int,
    settings: Any,
    limit_nbytes: int | None,
    seconds: float,
) -> tuple[int, int]: ...
