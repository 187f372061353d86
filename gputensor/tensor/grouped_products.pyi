from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from gputensor.blas.precision import Precision
from gputensor.tensor.tensor import Tensor

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
