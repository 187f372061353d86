from collections.abc import Sequence
from typing import Any

from gputensor._kernels.program import Program

class Kernel:
    program: Program
    def __init__(self, program: Program) -> None: ...

def loaded_programs(device: int) -> list[Program]: ...
def programs_by_function(device: int) -> dict[int, Program]: ...
def forget_kernels(device: int) -> None: ...

class CallOperand:
    address: int
    dtype: str
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    value: bool | int | float | complex | None
    def __init__(
        self, address: int, dtype: str, shape: Sequence[int], strides: Sequence[int] | None = None
    ) -> None: ...
    @staticmethod
    def number(dtype: str, value: Any) -> CallOperand: ...
    def at(self, address: int) -> CallOperand: ...

def set_recorder(device: int, recorder: Any) -> None: ...
