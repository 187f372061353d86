from typing import Any

# (address, dtype code, shape, strides in elements)
View = tuple[int, int, tuple[int, ...], tuple[int, ...]]

def describe(a: View, b: View, out: View, addend: View | None = None) -> dict[str, Any]: ...
