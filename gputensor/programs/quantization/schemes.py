"""Schemes of quantized weights, and their result for a weight: integers, scales, errors.

This module does not depend on calls. `blas/host/group_scales.py` computes the integers.
"""

from __future__ import annotations

import re
from math import log10
from typing import NamedTuple

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.host import int4_layout
from gputensor.blas.host.group_scales import CLIPPING, SIGNED_CLIPPING, in_groups
from gputensor.errors import Described, argument_error
from gputensor.programs.function import Weight
from gputensor.programs.quantization.rounding import lost_on_inputs, rounded_on_inputs
from gputensor.programs.weights import host_bytes

__all__ = ["Scheme", "part_name", "quantize_weight", "scheme_of"]

RULE = "int8, int8:128, int4:32, int4:64, int4:128, one of int4 followed by :offset, or none"
_NUMPY = {row.name: row.numpy for row in DTYPES}


class Scheme(NamedTuple):
    """The format of a stored matrix. `group` is 0 if all terms of a feature share a scale."""

    text: str
    bits: int
    group: int
    has_offsets: bool


def scheme_of(text):
    """Return the Scheme of a text, or None for matrices that are not quantized."""
    if text is None or text == "none":
        return None
    if isinstance(text, str) and (text in ("int8", "int8:128")):
        return Scheme(text, 8, int(text[5:] or 0), False)
    if isinstance(text, str) and (found := re.fullmatch(r"int4:(32|64|128)(:offset)?", text)):
        return Scheme(text, 4, int(found[1]), bool(found[2]))
    raise argument_error(ValueError, "quantize", text, RULE)


def quantize_weight(weights, name, is_terms, scheme, products=None):
    """Replace a weight by a quantized one; return the facts about it for the report.

    `products` are the sums of products of its inputs, (k, k), if they are known.
    """
    weight = weights[name]
    plain = host_bytes(weight).view(_NUMPY[weight.dtype]).reshape(weight.shape)
    values = np.ascontiguousarray((plain.T if is_terms else plain).astype(np.float32))
    n, k = values.shape
    size = scheme.group or k
    if k % size or not np.isfinite(values).all():
        got = Described(f"{name} of {k} terms" if k % size else f"{name}, which is not finite")
        rule = f"a multiple of {size} terms for {scheme.text}, and only finite elements"
        raise argument_error(ValueError, "quantize", got, rule)
    largest = 2 ** (scheme.bits - 1) - 1
    is_signed = scheme.bits == 4 and not scheme.has_offsets
    clipping = SIGNED_CLIPPING if is_signed else CLIPPING
    has_offsets = scheme.has_offsets
    how = {"dtype": plain.dtype, "clipping": clipping, "has_offsets": has_offsets}
    found = in_groups(values, size, largest, **how)
    seen = {}
    if products is not None:
        other = rounded_on_inputs(values, products, size, (largest, *how.values()))
        lost = [lost_on_inputs(values, one.values(), products) for one in (found, other)]
        found = other if lost[1] < lost[0] else found
        seen = {"error_on_inputs": min(lost), "error_on_inputs_before": lost[0]}
    stored = found.integers if scheme.bits == 8 else int4_layout.pack(found.integers)
    weights[name] = Weight(name, str(stored.dtype), stored.shape, stored)
    for part, array in (("scales", found.scales), ("offsets", found.offsets)):
        if array is not None:
            array = np.ascontiguousarray(array)
            key = part_name(name, part)
            if key in weights:
                rule = "no weight with a name that quantization adds"
                raise argument_error(ValueError, "weights", key, rule)
            weights[key] = Weight(key, weight.dtype, array.shape, array)
    parts = [stored, found.scales, *([] if found.offsets is None else [found.offsets])]
    nbytes = sum(array.nbytes for array in parts)
    return {
        "scheme": scheme.text,
        "shape": weight.shape,
        "terms_first": is_terms,
        "bytes": nbytes,
        "plain_bytes": plain.nbytes,
        **_errors(values, found.values()),
        **seen,
    }


def part_name(name, part):
    return f"{name}.{part}"


def _errors(plain, found):
    """Return the relative error, the worst row and its error, and the signal-to-noise ratio."""
    lost = np.square(found.astype(np.float64) - plain).sum(1)
    whole = np.square(plain.astype(np.float64)).sum(1)
    rows = np.sqrt(np.divide(lost, whole, out=np.zeros_like(lost), where=whole > 0))
    error = float(np.sqrt(lost.sum() / whole.sum())) if whole.any() else 0.0
    worst = int(rows.argmax())
    return {
        "relative_error": error,
        "worst_row": worst,
        "worst_row_error": float(rows[worst]),
        "snr_db": -20 * log10(error) if error else float("inf"),
    }
