"""Weights that are prepared when a program is loaded, from those of the user's own file.

The passes make new weights of those that the functions were traced with: relaid, folded, quantized.
A file usually has the new ones. With ``save(prepared=False)`` it has the functions as they were
traced, and the passes run again when it is loaded; they need no compiler. They must make the
weights that the functions of the file read, of the same dtypes and shapes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from gputensor._arrays.file_mapping import mapping_of
from gputensor.errors import Described, ProgramError, ProgramFileError, argument_error
from gputensor.programs import function_json
from gputensor.programs.function import ProgramData
from gputensor.programs.passes.compute import compute_of, compute_weights
from gputensor.programs.passes.order import finish, passes
from gputensor.programs.quantization.matrices import quantize
from gputensor.programs.verify import verify_program
from gputensor.programs.weights import content_hash

__all__ = ["Traced", "from_json", "prepare", "to_json", "traced_of"]

HOST = -1  # the device that computes
_FAULTS = (ArithmeticError, AttributeError, LookupError, ProgramError, TypeError, ValueError)


@dataclass
class Traced:
    """Functions before the passes, their weights, and the options of the passes."""

    functions: dict
    weights: dict
    rounding: str = "each"
    quantize: dict | None = None
    is_ahead: bool = False  # whether they were traced for GPUs that need not be present


def traced_of(data):
    """Return the Traced of a ProgramData before the passes, or None if no weight is mapped."""
    if all(mapping_of(weight.source) is None for weight in data.weights.values()):
        return None
    return Traced(dict(data.functions), dict(data.weights))


def to_json(traced):
    """Return a Traced as plain JSON, without the elements of weights."""
    found = function_json.to_json(ProgramData(traced.functions, traced.weights))
    options = {name: getattr(traced, name) for name in ("rounding", "quantize", "is_ahead")}
    return {"functions": found["functions"], "weights": found["weights"], **options}


def from_json(plain, states):
    """Return the Traced of untrusted JSON; ProgramFileError if it is not valid.

    Parameters
    ----------
    plain : object
    states : object
        The JSON of the program's states.
    """
    if not isinstance(plain, dict):
        raise argument_error(ProgramFileError, "prepare", Described("no object"), "an object")
    rounding, quantize = plain.get("rounding"), plain.get("quantize")
    is_ahead = plain.get("is_ahead")
    is_scheme = quantize is None or isinstance(quantize, dict) and all(
        isinstance(one, str) for one in quantize.values()
    )  # fmt: skip
    if rounding not in ("once", "each") or not is_scheme or not isinstance(is_ahead, bool):
        rule = "those of save()"
        raise argument_error(ProgramFileError, "prepare", Described("other options"), rule)
    parts = {name: plain.get(name) for name in ("functions", "weights")}
    data = function_json.from_json({**parts, "states": states})
    verify_program(data)
    return Traced(data.functions, data.weights, rounding, quantize, is_ahead)


def prepare(data):
    """Fill in the sources of a program's weights, made from those of its Traced.

    Raises
    ------
    ProgramFileError
        If the passes do not make them, or weights that they read are not those of the tracing.
    """
    traced = data.traced
    made = ProgramData(dict(traced.functions), dict(traced.weights), data.states, data.state_tree)
    try:
        made = passes(made, compute_of(HOST, traced.is_ahead), traced.rounding)
        if traced.quantize is not None:
            quantize(made, traced.quantize, None)
            verify_program(made)
        compute = functools.partial(compute_weights, HOST, traced.is_ahead, traced.rounding)
        finish(made, compute, traced.rounding)
    except ProgramFileError:
        raise
    except _FAULTS as error:
        raise ProgramFileError(f"prepare: {error}") from None
    for name, weight in data.weights.items():
        found = made.weights.get(name)
        if found is None or (found.dtype, found.shape) != (weight.dtype, weight.shape):
            got = "none" if found is None else f"{found.dtype} {tuple(found.shape)}"
            rule = f"{weight.dtype} {tuple(weight.shape)} from the passes of this version"
            raise argument_error(ProgramFileError, f"weights.{name}", Described(got), rule)
        weight.source = found.source
        if found is not traced.weights.get(name):
            weight.sha256 = ""  # sums may have other bits on another processor
    check_sources(traced.weights, data.weights)


def check_sources(sources, weights):
    """Compare the weights that became others with their declared hashes."""
    kept = {id(weight.source) for weight in weights.values()}
    for name, weight in sources.items():
        if id(weight.source) not in kept and content_hash(weight) != weight.sha256:
            got, rule = Described("other elements"), "those that the program was compiled with"
            raise argument_error(ProgramFileError, f"weights.{name}", got, rule)
