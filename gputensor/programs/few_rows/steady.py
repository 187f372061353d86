"""Products of few rows whose weights may be read before earlier work has ended."""

from __future__ import annotations

from dataclasses import replace

from gputensor.programs.few_rows.products import fused, has_panels, is_brief, with_end

__all__ = ["steady"]

#: Calls of our kernels, and how many reads are x and what may be read before earlier work ends.
_JOINED = {"fused_product": 5, "normed_product": 4, "rotary_product": 4}


def steady(site, place, call):
    """Return a product that reads its weights before the call before it has ended, if it may.

    Another product with an activation, with panels or with small weights becomes one of our
    kernels, since none for `product` computes these.

    Nothing writes the weights of a program while it runs. A kernel before the program may, so x
    must be a result of an earlier call whose kernel has waited for it.
    """
    if call.name not in (*_JOINED, "product", "quantized_product"):
        return None
    ended = None
    if call.name in _JOINED:
        made = call
    else:
        given, addend = with_end(call)
        if given is None:
            return None
        made = fused(given, call, call.writes[0], addend=addend)
        is_ours = given.activation or has_panels(given) or is_brief(given)
        ended = {place: (made,)} if is_ours else None
    x, *constant = made.reads[: _JOINED[made.name]]
    constant = (one for one in constant if one is not None)
    if any(site.graph.values[one.value].kind != "weight" for one in constant):
        return ended
    before = site.graph.writer.get(x.value)
    while before is not None and site.calls[before].name == "attention":
        # Kernels of attention let the next one come before they wait themselves.
        before = site.graph.writer.get(site.calls[before].reads[0].value)
    if before is None or site.calls[before].stream != call.stream:
        return ended
    return {place: (replace(made, attributes={**made.attributes, "is_steady": True}),)}
