from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from gputensor._alloc.stacks import StackFormatter

SEGMENT_DTYPE: np.dtype[Any]
BLOCK_DTYPE: np.dtype[Any]
STATES: tuple[str, ...]

_Records = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]

def device_names(devices: Sequence[int]) -> list[str]: ...
def allocator_settings() -> dict[str, Any]: ...
def format_segments(
    segments: np.ndarray[Any, Any],
    blocks: np.ndarray[Any, Any],
    number: int = 0,
    stacks: StackFormatter | None = None,
) -> list[dict[str, Any]]: ...
def format_snapshot(
    devices: Sequence[int],
    collect: Callable[[int], _Records],
    include_traces: bool = True,
    collect_pinned: Callable[[int], _Records] | None = None,
) -> dict[str, Any]: ...
def write_pickle(value: object, path: str | PathLike[str]) -> None: ...
