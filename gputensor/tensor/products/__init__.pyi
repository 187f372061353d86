from collections.abc import Sequence
from numbers import Number
from typing import Any, overload

import numpy as np

from gputensor.blas.plan import Precision
from gputensor.tensor.core import ArrayLike, Tensor

def scaled_matmul(
    a: Tensor,
    b: Tensor,
    scale_a: Tensor | None,
    scale_b: Tensor | None,
    *,
    bias: Tensor | None = None,
    activation: str | None = None,
    scale_result: Tensor | None = None,
    out: Tensor | None = None,
    out_dtype: Any = None,
    fast_accumulation: bool = False,
) -> Tensor: ...
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    scale: Number | complex | Tensor | None = None,
    bias: Tensor | None = None,
    activation: str | None = None,
    residual: Tensor | None = None,
    out: Tensor | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def mm(
    input: Tensor,
    mat2: Tensor,
    /,
    *,
    out: Tensor | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def bmm(
    input: Tensor,
    mat2: Tensor,
    /,
    *,
    out: Tensor | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def mv(
    input: Tensor,
    vec: Tensor,
    /,
    *,
    out: Tensor | None = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def dot(
    input: Tensor,
    other: Tensor,
    /,
    *,
    out: Tensor | None = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: str | Precision | None = None,
    dim: int = -1,
) -> Tensor: ...
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    scale: Number | complex | Tensor | None = None,
    activation: str | None = None,
    residual: Tensor | None = None,
    out: Tensor | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Number | complex = 1,
    alpha: Number | complex = 1,
    activation: str | None = None,
    out: Tensor | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: Number | complex = 1,
    alpha: Number | complex = 1,
    activation: str | None = None,
    out: Tensor | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
@overload
def grouped_matmul(
    a: Sequence[Tensor],
    b: Sequence[Tensor],
    /,
    offsets: None = None,
    *,
    out: Sequence[Tensor] | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> list[Tensor]: ...
@overload
def grouped_matmul(
    a: Tensor,
    b: Tensor,
    /,
    offsets: Sequence[int] | np.ndarray[Any, Any] | Tensor,
    *,
    out: Tensor | None = None,
    out_dtype: Any = None,
    precision: str | Precision | None = None,
) -> Tensor: ...
def quantized_linear(
    x: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None = None
) -> Tensor: ...
