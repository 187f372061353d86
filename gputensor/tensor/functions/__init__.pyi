from collections.abc import Callable
from typing import Any, overload

from gputensor.tensor.core import ArrayLike, Axis, Number, Tensor
from gputensor.tensor.functions import elementwise_functions  # made by setup.py
from gputensor.tensor.functions.elementwise_functions import *  # noqa: F403
from gputensor.tensor.numerics.torch_results import Found

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "clip",
    "count_nonzero",
    "gelu",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
    "where",
]
__all__ += elementwise_functions.__all__

NUMPY_NAMES: dict[str, str]
UFUNC_OPTIONS: tuple[str, ...]

def add_ufunc_methods(function: Callable[..., Any], name: str) -> None: ...
def find_ufunc_methods_with(find: Callable[[], Callable[..., Any]]) -> None: ...
def find_layouts_with(find: Callable[[], Callable[..., Any]]) -> None: ...
def merged(result: Any, out: Tensor | None, mask: Tensor) -> Tensor: ...
def numbers_too(function: Callable[..., Any]) -> Callable[..., Any]: ...
@overload
def where(condition: ArrayLike, /) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /, *, out: Tensor | None = None
) -> Tensor: ...
def clip(
    x: ArrayLike,
    /,
    min: Tensor | Number | None = None,
    max: Tensor | Number | None = None,
    out: Tensor | None = None,
    *,
    a_min: Tensor | Number | None = None,
    a_max: Tensor | Number | None = None,
    where: Tensor | bool = True,
    dtype: Any = None,
    order: str | None = None,
    casting: str | None = None,
) -> Tensor: ...
def gelu(x: ArrayLike, /, *, approximate: str = "none", out: Tensor | None = None) -> Tensor: ...
def sum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    initial: Any = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def prod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    initial: Any = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def mean(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    where: Tensor | bool | None = None,
) -> Tensor: ...
@overload
def max(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
@overload
def max(x: ArrayLike, /, *, keepdims: bool = False, dim: int, keepdim: bool = False) -> Found: ...
@overload
def max(x: ArrayLike, /, axis: int, *, keepdim: bool) -> Found: ...
@overload
def min(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    initial: Any = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
@overload
def min(x: ArrayLike, /, *, keepdims: bool = False, dim: int, keepdim: bool = False) -> Found: ...
@overload
def min(x: ArrayLike, /, axis: int, *, keepdim: bool) -> Found: ...
def amax(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    initial: Any = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def amin(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    initial: Any = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def any(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def all(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    dim: Axis = None,
    keepdim: bool = False,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def argmax(
    x: ArrayLike,
    /,
    axis: int | None = None,
    out: Tensor | None = None,
    *,
    keepdims: bool = False,
    dim: int | None = None,
    keepdim: bool = False,
) -> Tensor: ...
def argmin(
    x: ArrayLike,
    /,
    axis: int | None = None,
    out: Tensor | None = None,
    *,
    keepdims: bool = False,
    dim: int | None = None,
    keepdim: bool = False,
) -> Tensor: ...
def var(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    out: Tensor | None = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    dim: Axis = None,
    keepdim: bool = False,
    unbiased: bool | None = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def std(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: Any = None,
    out: Tensor | None = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    dim: Axis = None,
    keepdim: bool = False,
    unbiased: bool | None = None,
    where: Tensor | bool | None = None,
) -> Tensor: ...
def count_nonzero(
    x: ArrayLike,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    dim: Axis = None,
    keepdim: bool = False,
) -> Tensor: ...
def find_masked_with(finder: Callable[[], Any]) -> None: ...
