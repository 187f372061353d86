from collections.abc import Sequence
from typing import Any, Literal

class StackFormatter:
    def frames(self, stack: int) -> list[dict[str, Any]]: ...

def capture(native: bool = False) -> int: ...

ACTIONS: tuple[str, ...]
LARGEST_RING: int

def record_memory_history(
    enabled: Literal["all", "state"] | None = "all",
    context: Literal["all", "alloc", "state"] | None = "all",
    stacks: Literal["python", "all"] = "python",
    max_entries: int | None = None,
    *,
    clear_history: bool = False,
    skip_actions: Sequence[str] = (),
) -> None: ...
def raw_records(device: int, most: int) -> bytearray: ...
def history_settings() -> dict[str, Any]: ...
def add_entry(
    device: int, action: str, ptr: int, nbytes: int, stream: int = 0, pool_id: int = 0
) -> None: ...
def entries(device: int) -> list[dict[str, Any]]: ...
