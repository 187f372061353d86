from typing import Any

def configure(*, tiles: int = 0, warps: int = 0, stages: int = 0, splits: int = 0) -> None: ...
def block_shape(
    sizes: tuple[int, int, int],
    *,
    multiprocessors: int = 132,
    can_cluster: bool = True,
    shared_nbytes: int = 233472,
) -> dict[str, Any]: ...
def run(
    device: int,
    stream: int,
    form: int,
    type_x: int,
    type_y: int,
    sizes: tuple[int, int, int],
    addresses: tuple[int, int, int, int, int, int],
    pitches: tuple[int, int, int, int],
    *,
    group: int = 0,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> bool: ...
