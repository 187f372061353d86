from typing import Any

class Bench:
    def __init__(self, signature: tuple[int, ...], device: int, rotating_nbytes: int) -> None: ...
    def forms(self) -> list[int]: ...
    def choices(self, is_exhaustive: bool) -> list[tuple[int, int, tuple[int, ...] | None]]: ...

class Contender:
    choice: Any
    plan: int
    graph: int
    times: list[float]
    def __init__(self, choice: Any, plan: int) -> None: ...

def tune(
    signature: tuple[int, ...],
    device: int,
    *,
    seconds: float = 0.6,
    rounds: int = 5,
    rotating_nbytes: int = ...,
    is_exhaustive: bool = False,
    is_checked: bool = True,
) -> dict[str, Any]: ...
