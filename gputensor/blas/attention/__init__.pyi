def weight_trees(
    scale: float,
    is_causal: bool,
    window: int,
    cap: float,
    mask: str | None,
    has_length: bool,
) -> list[tuple[object, ...]]: ...
