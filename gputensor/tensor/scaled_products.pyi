from typing import Any

from gputensor.tensor.tensor import Tensor

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
