"""The order of the passes, with the verifier before each."""

from __future__ import annotations

from gputensor.programs.attention.recognize import recognize_attention
from gputensor.programs.attention.results import place_results
from gputensor.programs.epilogues.join import join_epilogues
from gputensor.programs.epilogues.known import PreparedWeights
from gputensor.programs.epilogues.layout import channels_last
from gputensor.programs.epilogues.products import join_products
from gputensor.programs.few_rows.join import join_few_rows
from gputensor.programs.formulas.join import join_formulas
from gputensor.programs.passes.clean import clean
from gputensor.programs.passes.split import split
from gputensor.programs.phases import reached
from gputensor.programs.verify import verify, verify_program

__all__ = ["finish", "passes"]


def passes(data, compute, rounding="each"):
    """Run the passes over all functions, and drop the weights that no function reads."""
    reached("trace", data)
    _run(clean, data, data.weights, compute)
    reached("clean", data)
    if rounding == "once":
        prepared = PreparedWeights(data.weights)
        _run(recognize_attention, data, data.weights)
        _run(place_results, data, data.weights)
        reached("attention", data)
        _run(join_epilogues, data, prepared)
        reached("epilogues", data)
        _run(channels_last, data, prepared)
        reached("layouts", data)
    _drop_unread(data)
    verify_program(data)
    return data


def split_weights(data, compute):
    """Compute calls that read only weights now, with `compute`."""
    made = {}
    for name, function in data.functions.items():
        data.functions[name] = split(function, data.weights, compute, made)
    _drop_unread(data)


def _drop_unread(data):
    """Drop the weights that no function reads."""
    used = {f"state.{name}" for name in data.states}
    for function in data.functions.values():
        _names(function, used)
    data.weights = {name: weight for name, weight in data.weights.items() if name in used}


def _run(one, data, *arguments):
    """Verify all functions and run one pass over them."""
    for name, function in data.functions.items():
        verify(function)
        data.functions[name] = one(function, *arguments)


def finish(data, compute, rounding):
    """Run the passes that follow the quantization of weights; `compute` is for `split`."""
    split_weights(data, compute)
    reached("split", data)
    if rounding == "once":
        _run(join_formulas, data, data.weights)
        reached("formulas", data)
        _run(join_few_rows, data, data.weights)
        _run(join_products, data, data.weights)
        reached("fused", data)
    verify_program(data)


def _names(function, found):
    found.update(v.name for v in function.values if v.kind in ("weight", "constant"))
    for call in function.calls:
        for region in call.regions:
            _names(region, found)
