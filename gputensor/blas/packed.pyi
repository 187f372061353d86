__all__ = ["is_packed", "packing"]

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
