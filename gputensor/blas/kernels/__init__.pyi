PADDING_MODES: dict[str, int]

def padding(setting: str | None = None) -> str: ...
def choose(
    dtype: int,
    compute: int,
    m: int,
    n: int,
    k: int,
    *,
    lda: int,
    ldb: int,
    ldd: int,
    batch: int = 1,
    stride_a: int = 0,
    stride_b: int = 0,
    stride_d: int = 0,
    a: int = 0,
    b: int = 0,
    d: int = 0,
    op_a: int = 0,
    op_b: int = 0,
    beta: float = 0.0,
) -> str: ...
