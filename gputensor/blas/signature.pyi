from collections.abc import Iterable

FIELDS: tuple[str, ...]
KINDS: dict[str, tuple[int, int]]

def check_signature(signature: Iterable[int]) -> tuple[int, ...]: ...
def signature_of_shape(
    m: int, n: int, k: int, kind: str, layout: str = "NN"
) -> tuple[int, ...]: ...
