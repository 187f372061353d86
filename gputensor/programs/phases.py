"""Phases of compiling, for inspecting the result of each.

A watcher is called with the name of a phase and the resulting ProgramData. If it raises, the later
phases are not run.
"""

from __future__ import annotations

from gputensor.programs import text
from gputensor.programs.ahead.bindings import listed_calls
from gputensor.programs.ahead.sizes import launch_sizes
from gputensor.programs.ahead.watcher import Watcher
from gputensor.programs.dims import ends
from gputensor.programs.passes.plan import plan

__all__ = ["PHASES", "phase_text", "reached", "watching"]

#: In order: the trace, the result of each pass, the plans, the launches. rounding="each" skips the
#: passes that change bits; "quantized" and "bound" need what they are named for.
PHASES = (
    "trace", "clean", "attention", "epilogues", "layouts", "quantized", "split", "formulas",
    "fused", "planned", "bound",
)  # fmt: skip
#: Called after each phase, with its name and the resulting ProgramData.
reached = Watcher("phases")
watching = reached.watching


def phase_text(phase, data):
    """Return the text of a ProgramData after a phase."""
    if phase == "planned":
        return "\n\n".join(_plan_text(function) for function in data.functions.values())
    if phase == "bound":
        return "\n\n".join(_bound_texts(data))
    return "\n\n".join(text.function_text(f, data.states) for f in data.functions.values())


def _named(function, sizes):
    shown = ", ".join(f"{name}={size}" for name, size in {**function.at, **sizes}.items())
    return f"@{function.name}{f'({shown})' if shown else ''}"


def _plan_text(function):
    """Return the places of temporaries, at both ends of each dim."""
    found = []
    for sizes in ends(function.dims.values()):
        made = plan(function, sizes)
        found.append(
            f"{_named(function, sizes)}: arena {made.nbytes}, lower bound {made.lower_bound}, "
            f"sum {made.total}"
        )
        places = sorted(made.offsets.items(), key=lambda one: (one[1], one[0]))
        found += [f"  {offset:>12}  %{number}" for number, offset in places]
    return "\n".join(found)


def _bound_texts(data):
    """Yield the launches of each call, for each target and size."""
    ahead = data.ahead
    for target, lists in ahead.lists.items():
        for function in data.functions.values():
            for sizes in launch_sizes(function):
                lines = [f"{_named(function, sizes)} for {target}"]
                for call, launches in listed_calls(function, sizes, lists):
                    names = iter([ahead.kernels.all[number].entry for number in launches.kernels])
                    kinds = [k if k != "kernel" else next(names, "kernel") for k in launches.kinds]
                    lines.append(f"  {call.row.name}: {', '.join(kinds) or 'nothing'}  {call.line}")
                yield "\n".join(lines)
