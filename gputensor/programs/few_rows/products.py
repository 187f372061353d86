"""Recognizes products of few rows by weights, and makes the calls that include further steps."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from gputensor.blas.backends import panel_wins, skinny_half_wins
from gputensor.blas.kernels.brief_programs import brief_wins
from gputensor.programs import dims as forms
from gputensor.programs.attention.views import is_whole
from gputensor.programs.function import Call, Operand

__all__ = [
    "BRIEF", "MOST_ROWS", "Given", "fused", "given_of", "has_panels", "is_brief", "is_new",
    "lies", "operands_of", "with_end",
]  # fmt: skip

MOST_ROWS = 16
_HALVES = ("float16", "bfloat16")
BRIEF = (*_HALVES, "float32")
_LATE = ("gelu", "silu")  # activations that libraries leave to a kernel after the product
_PLAIN = {"alpha": 1, "beta": 0, "activation": None, "conj_a": False, "conj_b": False}


class Given(NamedTuple):
    """activation(x @ (weight * scales).T + bias)."""

    x: Operand
    weight: Operand
    scales: Operand | None
    bias: Operand | None
    precision: int
    activation: str | None = None

    @property
    def sizes(self):
        """The sizes m, n and k."""
        n = self.weight.shape[0] if self.scales is None else self.scales.shape[1]
        return *self.x.shape[:1], n, self.x.shape[1]


def operands_of(call, *, any_layout=False, dtypes=_HALVES):
    """Return the operands of a product of 16-bit floats by weights; None for others.

    Weights are along k or, with `any_layout`, along k or n. `dtypes`: others than 16-bit floats.
    """
    if call is None or not is_new(call):
        return None
    if call.name == "quantized_product":
        x, weight, scales, bias = call.reads
        found = Given(x, weight, scales, bias, call.attributes["precision"])
    elif call.name == "product":
        found = _plain(call, any_layout)
    else:
        return None
    return found if found is not None and found.x.dtype in dtypes else None


def given_of(call):
    """Return the operands of a product of few rows that our kernel computes; None for others."""
    found = operands_of(call)
    if found is None:
        return None
    if not _is_fixed(found):
        return None
    m, n, k = found.sizes
    fits = 0 < m <= MOST_ROWS and (found.scales is not None or skinny_half_wins(m, n, k))
    return found if fits else None


def _panel_of(call, is_normed, activation):
    """Return the operands of a product that our kernel of panels computes; None for others.

    `is_normed`: a norm of x is before the product, and part of that kernel.
    """
    found = operands_of(call, any_layout=True)
    if found is None or found.scales is not None or not _is_fixed(found):
        return None
    is_late = activation in _LATE
    return found if panel_wins(*found.sizes, is_normed=is_normed, is_late=is_late) else None


def _brief_of(call):
    """Return the operands of a product that our kernel of brief products computes, or None."""
    found = operands_of(call, dtypes=BRIEF)
    if found is None or found.scales is not None or not _is_fixed(found):
        return None
    return found if is_brief(found) else None


def is_brief(given):
    """Whether a product of `with_end` without a norm goes to the kernel of brief products."""
    return given.scales is None and brief_wins(*given.sizes, given.x.dtype)


def _is_fixed(given):
    return all(type(extent) is int for extent in (*given.x.shape, *given.weight.shape))


def with_end(call, *, is_normed=False):
    """Return the operands of a product with its end, and its addend; each or None.

    Our kernels compute it: it has few rows or small weights, or panels that they hold at once.
    `is_normed`: a norm of x before the product is to be part of it.
    """
    if call.name != "product":
        return given_of(call), None
    a, b, addend, bias, scale, residual = call.reads
    activation = call.attributes["activation"]
    if residual is not None and (addend is not None or activation is not None):
        return None, None
    if addend is not None and call.attributes["beta"] != 1:
        return None, None
    other = addend if residual is None else residual
    attributes = {**call.attributes, "beta": 0, "activation": None}
    reads = (a, b, None, bias, scale, None)
    plain = replace(call, attributes=attributes, reads=reads)
    given = given_of(plain) or _panel_of(plain, is_normed, activation)
    if given is None and not is_normed:
        given = _brief_of(plain)
    if given is None:
        return None, None
    given = given._replace(activation=activation)
    if other is None:
        return given, None
    if other.dtype != call.writes[0].dtype:
        return None, None
    m, n, _k = given.sizes
    is_dense = lies(other, other.shape, forms.row_major(other.shape))
    if other.shape != call.writes[0].shape or not is_dense:
        return None, None
    return given, other._replace(shape=(m, n), strides=(n, 1))


def _plain(call, any_layout):
    a, b, *others, bias, scale, residual = call.reads
    if any(one is not None for one in (*others, scale, residual)):
        return None
    attributes = dict(call.attributes)
    precision = attributes.pop("precision")
    out = call.writes[0]
    if attributes != _PLAIN or out.dtype != a.dtype or len(a.shape) < 2 or len(b.shape) < 2:
        return None
    k, n = b.shape[-2:]
    strides = (k, 1)
    if any_layout and lies(b, (k, n), (n, 1)):
        strides = (1, n)
    elif not lies(b, (k, n), (1, k)):
        return None
    rows = forms.mul(*a.shape[:-1])
    if not lies(a, a.shape, forms.row_major(a.shape)):
        return None
    x = a._replace(shape=(rows, k), strides=(k, 1))
    weight = b._replace(shape=(n, k), strides=strides)
    if bias is not None:
        if not lies(bias, (n,), (1,)) or bias.dtype != a.dtype:
            return None
        bias = bias._replace(shape=(n,), strides=(1,))
    return Given(x, weight, None, bias, precision)


def is_new(call):
    """Return whether a call writes exactly one value, which is new, as a whole."""
    fresh = len(call.writes) == 1 and all(into is None for into in call.into)
    return fresh and is_whole(call.writes[0])


def lies(operand, shape, strides):
    """Return whether an operand has this shape and these strides, except for axes of extent 1."""

    def shown(extents, steps):
        pairs = zip(extents, steps, strict=True)
        return [(extent, step) for extent, step in pairs if extent != 1]

    return shown(operand.shape, operand.strides) == shown(shape, strides)


def has_panels(given):
    """Whether a product of `with_end` goes to the kernel of panels."""
    m, n, k = given.sizes
    return given.scales is None and not skinny_half_wins(m, n, k)


def fused(given, call, out, *, is_gated=False, addend=None):
    """Return the fused product in place of `call`, with the stream and line of that call."""
    m, n, _k = given.sizes
    columns = n // 2 if is_gated else n
    attributes = {
        "epsilon": 0.0, "is_centered": False, "activation": given.activation,
        "is_gated": is_gated, "is_steady": False, "precision": given.precision,
    }  # fmt: skip
    out = out._replace(shape=(m, columns), strides=(columns, 1))
    reads = (*given[:3], None, None, given.bias, addend)
    return Call("fused_product", attributes, (out,), reads, (None,), call.stream, call.line)
