"""The report on a program's quantized weights, from its metadata, which may be untrusted."""

from gputensor.programs.file import names_of

__all__ = ["matrices_of", "results_of"]


def matrices_of(data, function):
    """Return the facts about each matrix that a function of a program reads, by name."""
    report = data.metadata.get("quantization")
    if not isinstance(report, dict):
        return {}
    names = names_of([function], ("weight",))
    return {name: facts for name, facts in report.items() if name in names}


def results_of(data, name):
    """Return the facts about the results of a function, in order."""
    report = data.metadata.get("quantized_results")
    found = report.get(name) if isinstance(report, dict) else None
    return list(found) if isinstance(found, (list, tuple)) else []
