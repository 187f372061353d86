"""`gt.trace`: the sum of a matrix's diagonal, or the calls that a function makes.

The array library and the programs both have a `trace`; the first argument selects between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from gputensor.tensor.core import Tensor
from gputensor.tensor.manipulation.diagonals import trace as _of_matrix

__all__ = ["trace"]


@overload
def trace(
    x: Tensor,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def trace(
    fn: Callable[..., Any],
    /,
    *specs: Any,
    weights: Any = None,
    state: Any = None,
    target: Any = None,
    **named: Any,
) -> Any: ...
def trace(x: Any, /, *arguments: Any, **named: Any) -> Any:
    """Return the sum over the diagonal of two axes, or the trace of a function.

    For a tensor: ``trace(x, offset=0, axis1=0, axis2=1, dtype=None, out=None)``, as in NumPy; see
    :func:`diagonal` and :func:`sum`. For a callable: ``trace(fn, *specs, weights=None, state=None,
    target=None, **named)``, with the arguments of :func:`compile`; printing the result shows the
    calls of the function before any pass.

    Parameters
    ----------
    x : Tensor or callable

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.trace(gt.asarray([[1, 2], [3, 4]], device="host")).item()
    5
    >>> print(gt.trace(lambda x: x + 1, gt.spec((3,)), target="host"))  # doctest: +ELLIPSIS
    func @main(x: f32[3])  -> f32[3]
      ...
    """
    if type(x) is not Tensor and callable(x):
        from gputensor.programs import trace as of_function  # a module that few programs need

        return of_function(x, *arguments, **named)
    return _of_matrix(x, *arguments, **named)
