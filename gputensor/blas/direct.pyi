__all__ = ["run", "split_of"]

def run(
    device: int,
    stream: int,
    types: tuple[int, int],
    operations: tuple[int, int],
    sizes: tuple[int, int, int, int],
    addresses: tuple[int, int, int, int, int],
    pitches: tuple[int, int, int, int],
    strides: tuple[int, int, int, int],
    *,
    split: int = 1,
    alpha: float = 1.0,
    beta: float = 0.0,
    activation: int = 0,
) -> None: ...
def split_of(dtype: int, m: int, n: int, k: int, batch: int = 1) -> int: ...
