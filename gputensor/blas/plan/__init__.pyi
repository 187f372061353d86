from collections.abc import Iterable
from types import TracebackType
from typing import overload

from typing_extensions import Self

FLOAT32: dict[str, int]
FLOAT32_NAME: dict[int, str]
BITS: dict[str, int]

class Precision:
    mask: int
    value: int
    def __init__(
        self,
        *,
        allow_tf32: bool | None = None,
        float32: str | None = None,
        allow_fp16_reduced_precision_reduction: bool | None = None,
        allow_bf16_reduced_precision_reduction: bool | None = None,
        allow_fp16_accumulation: bool | None = None,
        deterministic: bool | None = None,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...

def precision_flags() -> int: ...

class ProcessSetting(Precision): ...

def precision(
    *,
    allow_tf32: bool | None = None,
    float32: str | None = None,
    allow_fp16_reduced_precision_reduction: bool | None = None,
    allow_bf16_reduced_precision_reduction: bool | None = None,
    allow_fp16_accumulation: bool | None = None,
    deterministic: bool | None = None,
) -> Precision: ...
@overload
def allow_tf32(value: None = None) -> bool: ...
@overload
def allow_tf32(value: bool) -> ProcessSetting: ...
@overload
def float32_matmul_precision(value: None = None) -> str: ...
@overload
def float32_matmul_precision(value: str) -> ProcessSetting: ...
@overload
def allow_fp16_reduced_precision_reduction(value: None = None) -> bool: ...
@overload
def allow_fp16_reduced_precision_reduction(value: bool) -> ProcessSetting: ...
@overload
def allow_bf16_reduced_precision_reduction(value: None = None) -> bool: ...
@overload
def allow_bf16_reduced_precision_reduction(value: bool) -> ProcessSetting: ...
@overload
def allow_fp16_accumulation(value: None = None) -> bool: ...
@overload
def allow_fp16_accumulation(value: bool) -> ProcessSetting: ...
@overload
def deterministic(value: None = None) -> bool: ...
@overload
def deterministic(value: bool) -> ProcessSetting: ...

# (address, dtype code, shape, strides in elements)
View = tuple[int, int, tuple[int, ...], tuple[int, ...]]

def plan_count(backend: int = -1) -> int: ...
def forget_plans() -> None: ...

FIELDS: tuple[str, ...]
KINDS: dict[str, tuple[int, int]]

def check_signature(signature: Iterable[int]) -> tuple[int, ...]: ...
def signature_of_shape(
    m: int, n: int, k: int, kind: str, layout: str = "NN"
) -> tuple[int, ...]: ...
