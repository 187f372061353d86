"""The places of a bound call's memory as far as they affect its work, and addresses to record it.

Overlapping operands of one piece keep their relative places; all others may be anywhere. Only the
alignment of an address matters. So equal calls of many layers have the same key, for any layout of
the arena, and one launch list serves all of them.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.launch import CallOperand

__all__ = ["INPUT_ALIGNMENT", "PIECE_ALIGNMENT", "CallPlaces", "places_of"]

ITEMSIZES = {row.name: row.itemsize for row in DTYPES}
PIECE_ALIGNMENT = 256  # of the arena, weights, states and results
INPUT_ALIGNMENT = 16
_FIRST, _SECOND = 1 << 52, 3 << 52  # addresses that no process uses
_GAP = 1 << 20


class Group(NamedTuple):
    """Overlapping operands of one piece: a range of bytes, and the indices of arguments."""

    piece: int
    low: int
    high: int
    arguments: tuple


class CallPlaces(NamedTuple):
    """The arguments of a call for a phantom GPU, and the places of their memory.

    Attributes
    ----------
    key : str
        Equal for calls that are the same work at other places.
    first, second : tuple
        The arguments at two sets of addresses.
    spans : tuple
        In the form of `launches.record`.
    reaches : tuple
        In the form of `LaunchList.check`.
    alignments : tuple of int
        The required alignment of each argument's address; 0 for arguments that are not memory.
    """

    key: str
    first: tuple
    second: tuple
    spans: tuple
    reaches: tuple
    alignments: tuple


def places_of(call, alignments):
    """Return the CallPlaces of a BoundCall.

    Parameters
    ----------
    call : BoundCall
    alignments : sequence of int
        The alignment of each piece's address, at most 256.
    """
    groups = _groups(call)
    arguments = {"first": list(call.arguments), "second": list(call.arguments)}
    reaches = [None] * len(call.arguments)
    multiples = [0] * len(call.arguments)
    spans, shown = [], []
    offsets = {at: offset for at, _piece, offset in call.patches}
    place = 0
    for number, group in enumerate(groups):
        # The address has exactly the alignment of the piece plus its offset.
        rest = (alignments[group.piece] + group.low) % PIECE_ALIGNMENT
        first = _FIRST + place + rest
        second = _SECOND + place + rest + (number + 1) * 2 * _GAP
        place += -(-(group.high - group.low) // _GAP) * _GAP + 64 * _GAP
        for at in group.arguments:
            ahead = offsets[at] - group.low
            arguments["first"][at] = call.arguments[at].at(first + ahead)
            arguments["second"][at] = call.arguments[at].at(second + ahead)
            reaches[at] = (-ahead, group.high - group.low - ahead)
            multiples[at] = _multiple(first + ahead)
            shown.append((at, number, ahead))
        named = group.arguments[0]
        nbytes = group.high - group.low
        spans.append((named, group.low - offsets[named], first, second, nbytes))
        shown.append(("rest", rest))
    text = repr((call.row.name, [_shown(one) for one in call.arguments], shown))
    return CallPlaces(
        hashlib.sha256(text.encode()).hexdigest()[:32],
        tuple(arguments["first"]),
        tuple(arguments["second"]),
        tuple(spans),
        tuple(reaches),
        tuple(multiples),
    )


def _groups(call):
    """Return the groups of a call's operands, in the order of their first arguments."""
    ranges = []
    for at, piece, offset in call.patches:
        low, high = _bytes_of(call.arguments[at])
        ranges.append([piece, offset + low, offset + high, [at]])
    ranges.sort(key=lambda one: (one[0], one[1], one[2]))
    joined = []
    for one in ranges:
        last = joined[-1] if joined else None
        if last is not None and last[0] == one[0] and one[1] < last[2]:
            last[2] = max(last[2], one[2])
            last[3] += one[3]
        else:
            joined.append(one)
    joined.sort(key=lambda one: min(one[3]))
    return [Group(piece, low, high, tuple(sorted(at))) for piece, low, high, at in joined]


def _bytes_of(operand):
    """Return the range of an operand's bytes relative to its address."""
    if 0 in operand.shape:
        return 0, 0
    itemsize = ITEMSIZES[operand.dtype]
    low = high = 0
    for extent, stride in zip(operand.shape, operand.strides, strict=True):
        reach = (extent - 1) * stride * itemsize
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + itemsize


def _multiple(address):
    return min(address & -address, PIECE_ALIGNMENT)


def _shown(argument):
    """Return an argument without its address."""
    if type(argument) is not CallOperand:
        return argument
    if argument.shape is None:
        return argument.dtype, argument.value
    return argument.dtype, argument.shape, argument.strides
