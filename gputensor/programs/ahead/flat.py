"""A bound function as one launch list: for callers without Python."""

from __future__ import annotations

from gputensor.errors import Described, argument_error
from gputensor.programs.ahead.launches import FlatLaunches
from gputensor.programs.running.device import Launches

__all__ = ["flat_of"]


def flat_of(binding):
    """Return the FlatLaunches of a binding whose calls were bound ahead, loops unrolled.

    Its pieces are those of the binding, then the weights of regions by the order of their names.

    Raises
    ------
    ValueError
        The function has conditions, which the host would have to read.
    """
    sizes = {}
    _region_weights(binding, sizes)
    names = binding.region_weights
    flat = FlatLaunches([*(p.nbytes for p in binding.pieces), *(sizes[name] for name in names)])
    count = len(binding.pieces)
    weights = dict(zip(names, flat.addresses[count:], strict=True))

    def queue(calls):
        for row, arguments in calls:
            flat.append(row, arguments)

    launches = Launches(queue, _refuse)
    launches.run(binding, flat.addresses[:count], weights)
    launches.flush()
    return flat


def _region_weights(binding, sizes):
    for call in binding.calls:
        for region in getattr(call, "regions", ()):
            sizes |= {piece.name: piece.nbytes for piece in region.pieces if piece.kind == "weight"}
            _region_weights(region, sizes)


def _refuse(address):
    got = Described("cond or while_loop, whose flags the host reads")
    raise argument_error(ValueError, "function", got, "a function without conditions")
