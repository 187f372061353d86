from collections.abc import Sequence
from typing import Any, overload

from gputensor.tensor.core import Tensor

_Axes = int | Sequence[int]

def softmax(
    x: Tensor,
    axis: _Axes = -1,
    *,
    scale: float = 1.0,
    mask: Tensor | None = None,
    dtype: object = None,
    dim: _Axes = -1,
) -> Tensor: ...
def log_softmax(
    x: Tensor, axis: _Axes = -1, *, dtype: object = None, dim: _Axes = -1
) -> Tensor: ...
def logsumexp(
    x: Tensor, axis: _Axes = -1, keepdims: bool = False, *, dim: _Axes = -1, keepdim: bool = False
) -> Tensor: ...
@overload
def layer_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    axis: _Axes = -1,
    eps: float = 1e-5,
    residual: Tensor | None = None,
) -> Tensor: ...
@overload
def layer_norm(
    x: Tensor,
    normalized_shape: _Axes,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
) -> Tensor: ...
@overload
def rms_norm(
    x: Tensor,
    weight: Tensor | None = None,
    *,
    axis: _Axes = -1,
    eps: float = 1e-5,
    residual: Tensor | None = None,
) -> Tensor: ...
@overload
def rms_norm(
    x: Tensor,
    normalized_shape: _Axes,
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    residual: Tensor | None = None,
) -> Tensor: ...
def group_norm(
    x: Tensor,
    groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor: ...
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    window: int | None = None,
    soft_cap: float | None = None,
    kv_length: Tensor | None = None,
) -> Tensor: ...
def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *further: Any,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor: ...
def instance_norm(
    x: Tensor,
    *parameters: Any,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor: ...
def queue_views(
    name: str,
    attributes: tuple[object, ...],
    writes: list[tuple[object, ...]],
    reads: list[tuple[object, ...]],
) -> None: ...
def on_device_of(name: str, tensors: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]: ...
def current_precision() -> int: ...
def activated(name: str, trees: tuple[object, ...], tensors: tuple[Tensor, ...]) -> Tensor: ...
