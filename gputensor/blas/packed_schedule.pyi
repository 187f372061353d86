from typing import Any

__all__ = ["schedule_of"]

def schedule_of(m: int, n: int, k: int, itemsize: int, clusters: int = 66) -> dict[str, Any]: ...
