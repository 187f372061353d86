from collections.abc import Callable
from contextlib import AbstractContextManager

def watched(function: Callable[..., object]) -> AbstractContextManager[None]: ...
