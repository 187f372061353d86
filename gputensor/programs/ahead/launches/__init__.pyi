from collections.abc import Callable
from typing import Any

FAULTS: tuple[str, ...]

class LaunchList:
    scratch_nbytes: int
    kernels: dict[int, int]
    kinds: list[str]
    products: list[tuple[int, ...]]
    algorithms: list[tuple[int, tuple[int, ...]] | None]
    def with_algorithm(self, version: int, config: tuple[int, ...]) -> LaunchList: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(given: Any) -> LaunchList | None: ...
    def check(
        self, kernel_count: int, reaches: tuple[tuple[int, int] | None, ...] | None = None
    ) -> bool: ...

def record(
    device: int,
    row: Any,
    first: tuple[Any, ...],
    second: tuple[Any, ...],
    places: tuple[tuple[int, int, int, int, int], ...],
    numbers: Callable[[int], int],
) -> LaunchList: ...
def load_function(device: int, digest: str, image: bytes, entry: str) -> int: ...
def allow_shared(device: int, function: int, nbytes: int) -> None: ...

class BytesRow:
    name: str
    @staticmethod
    def door(device: int, stream: int, arguments: tuple[Any, ...]) -> None: ...

class IndexRow:
    name: str
    @staticmethod
    def door(device: int, stream: int, arguments: tuple[Any, ...]) -> None: ...

class StepLaunches:
    def __init__(self, words: bytes, nbytes: Any, rows: Any) -> None: ...

class LaunchRow:
    name: str
    waits: bool
    launches: LaunchList
    def __init__(
        self, row: Any, launches: LaunchList, functions: dict[int, int], alignments: tuple[int, ...]
    ) -> None: ...
    def door(self, device: int, stream: int, arguments: tuple[Any, ...]) -> None: ...
