from collections.abc import Callable

from gputensor._kernels.program import Program

def plan_phantom_among(device: int, has: Callable[[Program], bool] | None) -> None: ...
