from collections.abc import Iterable

FIELDS: tuple[str, ...]

def check_signature(signature: Iterable[int]) -> tuple[int, ...]: ...
