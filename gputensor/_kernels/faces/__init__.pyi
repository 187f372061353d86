IS: int
IS_NOT: int
OFF: int

def set_conditions(
    device: int,
    stream: int,
    flag: int,
    rules: tuple[tuple[int, int], ...],
    function: int = 0,
) -> None: ...
