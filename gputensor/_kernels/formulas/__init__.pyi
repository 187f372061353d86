class RowFormula:
    formula: object
    loads: int
    results: int
    def __init__(self, trees: object) -> None: ...
