"""Arenas of programs beside their lower bounds: ``python benchmarks/models/arenas.py``.

Models are traced at their real sizes, without allocating memory. The lower bound is the largest sum
of live temporaries during one call, `sum` the sum of all temporaries, in bytes. "each" rounds every
result as eager calls do; "once" joins calls, as `compile` does by default. A model with a dim is
planned at the size of the row and at both ends of the range; `ratio` is the largest of these.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import Report  # noqa: E402
from gputensor.programs import dims  # noqa: E402
from gputensor.programs.attention.recognize import recognize_attention  # noqa: E402
from gputensor.programs.epilogues.join import join_epilogues  # noqa: E402
from gputensor.programs.epilogues.known import PreparedWeights  # noqa: E402
from gputensor.programs.formulas.join import join_formulas  # noqa: E402
from gputensor.programs.passes.clean import clean  # noqa: E402
from gputensor.programs.passes.plan import plan  # noqa: E402
from gputensor.programs.passes.plan_check import check_plan  # noqa: E402
from tests.support.programs.traced_models import traced_models  # noqa: E402


def joined(function):
    """Return the function with calls joined, as with `rounding="once"`."""
    found = recognize_attention(function, {})
    return join_formulas(join_epilogues(found, PreparedWeights({})), {})


def row_of(name, rounding, function, sizes):
    """Plan one function at all its sizes and return its row."""
    ratios = []
    for at in [*dims.ends(function.dims.values()), sizes]:
        start = time.perf_counter()
        found = plan(function, at)
        seconds = time.perf_counter() - start
        check_plan(function, at, found)
        ratios.append(found.nbytes / max(found.lower_bound, 1))
    return {
        "model": name,
        "rounding": rounding,
        "calls": len(function.calls),
        "arena": found.nbytes,
        "lower bound": found.lower_bound,
        "sum": found.total,
        "ms": round(seconds * 1e3, 1),
        "ratio": round(max(ratios), 4),
    }


def main():
    report = Report("models/arenas", "Arenas of programs beside their lower bounds")
    for name, function, sizes in traced_models():
        cleaned = clean(function, {})
        report.add(**row_of(name, "each", cleaned, sizes))
        report.add(**row_of(name, "once", joined(cleaned), sizes))
    for rounding in ("each", "once"):
        ratios = [row["ratio"] for row in report.rows if row["rounding"] == rounding]
        mean = round(sum(ratios) / len(ratios), 4)
        report.add(model="mean of all", rounding=rounding, ratio=mean)
    report.finish()


if __name__ == "__main__":
    main()
