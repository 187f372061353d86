from typing import Any

from gputensor._kernels.program import Program

def backend_table() -> list[dict[str, Any]]: ...
def tiny_program(input_name: str, output_name: str, tile: int) -> Program: ...
def tile_of(dtype: int, m: int, n: int, k: int, batch: int = 1) -> int: ...
def unaligned_run(
    device: int,
    stream: int,
    types: tuple[int, int],
    operations: tuple[int, int],
    sizes: tuple[int, int, int, int],
    addresses: tuple[int, int, int, int, int],
    steps: tuple[tuple[int, int, int, int], tuple[int, int, int, int]],
    *,
    split: int = 1,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: int = 0,
) -> None: ...
def split_of(dtype: int, m: int, n: int, k: int, batch: int = 1) -> int: ...
def skinny_mma_configure(
    *,
    tiles: int = 0,
    row_warps: int = 0,
    k_warps: int = 0,
    stages: int = 0,
    splits: int = 0,
) -> None: ...
def skinny_mma_block_shape(
    form: int,
    type_x: int,
    sizes: tuple[int, int, int],
    *,
    group: int = 0,
    multiprocessors: int = 132,
    can_cluster: bool = True,
    shared_nbytes: int = 233472,
) -> dict[str, Any]: ...
def skinny_configure(*, tiles: int = 0, warps: int = 0, stages: int = 0, splits: int = 0) -> None: ...
def skinny_block_shape(
    sizes: tuple[int, int, int],
    *,
    multiprocessors: int = 132,
    can_cluster: bool = True,
    shared_nbytes: int = 233472,
) -> dict[str, Any]: ...
def skinny_run(
    device: int,
    stream: int,
    form: int,
    types: tuple[int, int],
    sizes: tuple[int, int, int],
    addresses: tuple[int, int, int, int, int, int],
    pitches: tuple[int, int, int, int],
    *,
    group: int = 0,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> bool: ...
def schedule_of(m: int, n: int, k: int, itemsize: int, clusters: int = 66) -> dict[str, Any]: ...
def packing(setting: str | None = None) -> str: ...
def is_packed(
    dtype: int,
    compute: int,
    m: int,
    n: int,
    k: int,
    *,
    lda: int,
    ldb: int,
    ldd: int,
    out: int | None = None,
    a: int = 0,
    b: int = 0,
    d: int = 0,
    op_a: int = 0,
    op_b: int = 0,
) -> bool: ...
def wins(
    dtype: int,
    compute: int,
    m: int,
    n: int,
    k: int,
    *,
    batch: int = 1,
    outer: list[tuple[int, int, int, int]] | tuple[()] = (),
    a: int = 0,
    b: int = 0,
    d: int = 0,
    stride_a: int = 0,
    stride_b: int = 0,
    stride_d: int = 0,
) -> bool: ...
