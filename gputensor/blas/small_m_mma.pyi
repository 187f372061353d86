from typing import Any

def configure(
    *,
    tiles: int = 0,
    row_warps: int = 0,
    k_warps: int = 0,
    stages: int = 0,
    splits: int = 0,
) -> None: ...
def block_shape(
    form: int,
    type_x: int,
    sizes: tuple[int, int, int],
    *,
    group: int = 0,
    multiprocessors: int = 132,
    can_cluster: bool = True,
    shared_nbytes: int = 233472,
) -> dict[str, Any]: ...
