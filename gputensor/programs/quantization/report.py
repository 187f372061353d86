"""What a program says of its quantized weights: from the metadata, which may be a stranger's."""

from gputensor.programs.file import names_of

__all__ = ["matrices_of", "results_of"]


def matrices_of(data, function):
    """What the report says of each matrix that a function of a program reads, by name."""
    report = data.metadata.get("quantization")
    if not isinstance(report, dict):
        return {}
    names = names_of([function], ("weight",))
    return {name: facts for name, facts in report.items() if name in names}


def results_of(data, name):
    """What the report says of the results of a function, in order."""
    report = data.metadata.get("quantized_results")
    found = report.get(name) if isinstance(report, dict) else None
    return list(found) if isinstance(found, (list, tuple)) else []
