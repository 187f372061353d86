"""Selects the matrices of weights to quantize, and replaces their products.

A matrix is quantized if only products read it, whole and as their right operand, and a pattern
matches its name. `calls.py` makes the calls, `schemes.py` the integers.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from gputensor.errors import Described, argument_error
from gputensor.programs.function import Operand
from gputensor.programs.quantization.calls import Rewrite, same_strides
from gputensor.programs.quantization.schemes import quantize_weight, scheme_of

__all__ = ["quantize"]

_FLOATS = ("float16", "bfloat16", "float32")


def quantize(data, schemes, products_of=None):
    """Quantize matrices of a ProgramData in place, and report each in the metadata.

    Parameters
    ----------
    data : ProgramData
    schemes : dict
        Pattern of names (``layers.*``) -> a text such as ``int4:128``. The first pattern that
        matches a name applies. The matrix of the last product of a function with results is not
        quantized unless a pattern is its full name.
    products_of : callable, optional
        Takes names of weights, and returns for some of them the sums of products of their inputs,
        for rounding.

    Raises
    ------
    ValueError
        If a pattern matches no matrix that can be quantized, or a matrix does not fit its scheme.
    """
    if not isinstance(schemes, dict):
        raise argument_error(TypeError, "quantize", schemes, "a dict {pattern: scheme}")
    parsed = {pattern: scheme_of(text) for pattern, text in schemes.items()}
    found = _Matrices(data)
    chosen = _chosen(found, parsed)
    report, wanted = {}, [name for name, scheme in chosen.items() if scheme is not None]
    products = {} if products_of is None else products_of(wanted)
    for name in wanted:
        is_terms, seen = found.fitting[name], products.get(name)
        report[name] = quantize_weight(data.weights, name, is_terms, chosen[name], seen)
    for key, function in data.functions.items():
        data.functions[key] = Rewrite(function, data.weights, report).run()
    data.metadata["quantization"] = report


def _chosen(found, schemes):
    """Return {name: Scheme} for the matrices that patterns match; each pattern must match one."""
    chosen, unused = {}, dict.fromkeys(schemes)
    for name in found.fitting:
        for pattern, scheme in schemes.items():
            if fnmatchcase(name, pattern) and (name not in found.last or name == pattern):
                unused.pop(pattern, None)
                chosen[name] = scheme
                break
    for pattern in unused:
        names = [name for name in found.reasons if fnmatchcase(name, pattern)]
        got = Described(f"{pattern!r}, which matches no matrix that a product reads")
        if any(fnmatchcase(name, pattern) for name in chosen):
            got = Described(f"{pattern!r}, whose matrices an earlier pattern matches")
        elif names:
            got = Described(f"{pattern!r}; {names[0]} {found.reasons[names[0]]}")
        rule = "patterns of matrices that only products read, as their right operand"
        raise argument_error(ValueError, "quantize", got, rule)
    return chosen


class _Matrices:
    """The weights that can be quantized.

    Attributes
    ----------
    fitting : dict
        Name -> whether the weight is (k, n), with terms as rows; otherwise it is (n, k).
    last : set
        Names of weights of the last product of each function with results.
    reasons : dict
        Name -> why a weight cannot be quantized, or is matched only by its full name.
    """

    def __init__(self, data):
        self.weights, self.fitting, self.last, self.reasons = data.weights, {}, set(), {}
        for function in data.functions.values():
            last = self.scan(function)
            if last is not None and function.outputs:
                self.last.add(last)
        for name in self.reasons:
            self.fitting.pop(name, None)
        for name in self.last:
            self.reasons.setdefault(name, "is read by the last product (use its full name)")

    def scan(self, function):
        """Scan all calls; return the name of the weight that the last fitting product reads."""
        last = None
        for call in function.calls:
            for index, read in enumerate(call.reads):
                if not isinstance(read, Operand) or function.values[read.value].kind != "weight":
                    continue
                name = function.values[read.value].name
                is_terms = _terms_first(call, index, self.weights[name])
                if is_terms is None or self.fitting.setdefault(name, is_terms) != is_terms:
                    self.reasons[name] = f"is read by {call.name} at {call.line}"
                else:
                    last = name
            for region in call.regions:
                last = self.scan(region) or last
        return last


def _terms_first(call, index, weight):
    """Whether a weight is (k, n) in a product; None if the product cannot be quantized."""
    if call.name != "product" or index != 1 or len(weight.shape) != 2:
        return None
    a, b, out = call.reads[0], call.reads[1], call.writes[0]
    fits = weight.dtype in _FLOATS and a.dtype == b.dtype == weight.dtype and 0 not in weight.shape
    fits = fits and out.dtype in _FLOATS and b.offset == 0 and not any(b.strides[:-2])
    fits = fits and len(a.shape) == len(out.shape) and a.shape[:-1] == out.shape[:-1]
    if not fits or 0 in a.shape:
        return None
    for is_terms, shape in ((False, weight.shape[::-1]), (True, weight.shape)):
        strides = (shape[1], 1) if is_terms else (1, shape[0])
        if b.shape[-2:] == shape and same_strides(shape, b.strides[-2:], strides):
            return is_terms
    return None
