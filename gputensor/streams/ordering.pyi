from types import TracebackType
from typing import Literal

class ordering:
    def __init__(self, mode: Literal["auto", "manual"]) -> None: ...
    def __enter__(self) -> ordering: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

def ordering_mode() -> Literal["auto", "manual"]: ...
