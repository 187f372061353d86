"""Bindings made ahead: the calls of a binding as launch lists, for a target or a device.

`Maker` makes lists on a phantom GPU; `Ahead` has the kernels and lists of a program for all its
targets; `DeviceLists` gives the calls of a binding their lists on a device.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

from gputensor._alloc.allocator import open_allocator, set_caching
from gputensor._driver.registry import close_phantom_gpu, device_facts_of, open_phantom_gpu
from gputensor._kernels.launch import CallOperand, programs_by_function
from gputensor._kernels.programs import condition
from gputensor.blas.backends import plan_phantom_by
from gputensor.blas.convolution import plan_phantom_among
from gputensor.blas.product import plan_tiles
from gputensor.errors import Described, ProgramError, ProgramFileError, argument_error
from gputensor.programs.ahead.call_places import INPUT_ALIGNMENT, PIECE_ALIGNMENT, places_of
from gputensor.programs.ahead.code import DeviceCode, Kernels, source_of
from gputensor.programs.ahead.launches import BytesRow, IndexRow, LaunchRow, record
from gputensor.programs.bind import Binding, BoundControl, bind

__all__ = [
    "TILES", "Ahead", "DeviceLists", "Maker", "bound_without_device", "fill_lists", "listed_calls",
]  # fmt: skip

#: Stands for our tiles among the numbers of backends, which compute products alone.
TILES = -1


@dataclass
class Ahead:
    """The kernels of a program for GPUs, and its launch lists by target and by key of a call."""

    kernels: Kernels = field(default_factory=Kernels)
    lists: dict = field(default_factory=dict)  # Target -> {key: LaunchList}


class Maker:
    """A phantom GPU with the facts of a target; a context manager.

    Parameters
    ----------
    facts : tuple of int
        Capability, multiprocessors, shared memory of each.
    kernels : Kernels
        Receives the kernels that the lists name.
    backend : int, optional
        The number of the backend for all products that it supports; models choose by default.
        `TILES`: tiles of our own, with what follows the product inside.
    at_hand : callable, optional
        Takes a kernel's program, and returns whether that kernel is available. If variants of a
        kernel differ little, the lists use an available one.
    """

    _lock = threading.Lock()  # executors use one phantom GPU at a time

    def __init__(self, facts, kernels, backend=None, at_hand=None):
        self.facts = facts
        self.kernels = kernels
        self.backend = backend
        self.at_hand = at_hand

    def __enter__(self):
        self._lock.acquire()
        try:
            self.device = open_phantom_gpu(*self.facts)
            open_allocator(self.device)
            set_caching(self.device, False)
            is_tiled = self.backend == TILES
            plan_phantom_by(self.device, None if is_tiled else self.backend)
            plan_tiles(self.device, is_tiled)
            plan_phantom_among(self.device, self.at_hand)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, kind, value, trace):
        try:
            plan_phantom_by(self.device, None)
            plan_tiles(self.device, False)
            plan_phantom_among(self.device, None)
            close_phantom_gpu(self.device)
        finally:
            self._lock.release()

    def make(self, call, places):
        """Return the LaunchList of a BoundCall; ProgramError if no list can represent it."""
        known = {}

        def number(function):
            if not known:
                known.update(programs_by_function(self.device))
            return self.kernels.number_of(known[function])

        try:
            return record(self.device, call.row, places.first, places.second, places.spans, number)
        except (ValueError, TypeError) as error:
            where = call.line or call.row.name
            raise ProgramError(f"{where}: {error}") from error


class Site(NamedTuple):
    """One call of a binding, or of a region in it.

    Attributes
    ----------
    inner : Binding
        The binding or region that contains the call.
    number : int
        The index of the call in `inner`.
    alignments : list of int
        The alignments of the pieces of `inner`.
    origin : int
        The offset of the arena of `inner` in the arena of the binding.
    stream : int
        The stream of the binding's call that contains it.
    """

    inner: Binding
    number: int
    alignments: list
    origin: int
    stream: int

    @property
    def call(self):
        """The BoundCall."""
        return self.inner.calls[self.number]


def sites_of(binding):
    """Yield the Sites of a binding, including those in regions, that launch lists can represent.

    These are all calls that write elements, except calls that another library computes.
    """
    alignments = [
        INPUT_ALIGNMENT if piece.kind == "input" else PIECE_ALIGNMENT for piece in binding.pieces
    ]
    for index, call in enumerate(binding.calls):
        yield from _sites(Site(binding, index, alignments, 0, binding.streams[index]), call)


def _sites(site, call):
    if type(call) is not BoundControl:
        if not (call.is_empty or call.row.waits):
            yield site
        return
    for region, arena in zip(call.regions, call.arenas, strict=True):
        alignments, origin = _inside(region, call, site.alignments), site.origin + arena
        for index, inner in enumerate(region.calls):
            yield from _sites(Site(region, index, alignments, origin, site.stream), inner)


def _inside(region, call, alignments):
    """Return the alignments of a region's pieces.

    Its arguments may be elements of an array and, in the first turn, views that the control flow
    reads. `alignments` are those of the pieces around it.
    """
    found = [PIECE_ALIGNMENT] * len(region.pieces)
    inputs, outputs = len(region.inputs), len(region.outputs)
    for at in range(1, 1 + inputs + outputs):
        found[at] = _lowest(INPUT_ALIGNMENT, region.pieces[at].nbytes)
    first = {"cond": 1, "fori_loop": -1}.get(call.name, 0)  # the read of the first input
    places = [(1 + at - first, place) for at, place in enumerate(call.reads) if at >= first]
    if call.name != "cond":  # later turns read what the turn before has written
        places += [(1 + at - first, place) for at, place in enumerate(call.writes)]
    if outputs == len(call.writes):  # else it is the condition, whose output is a flag
        places += [(1 + inputs + at, place) for at, place in enumerate(call.writes)]
    for at, place in places:
        found[at] = _lowest(found[at], alignments[place.piece] + place.offset)
    return found


def _lowest(alignment, offset):
    """Return the alignment of an address at an offset from one with this alignment."""
    return min(alignment, offset & -offset or alignment)


def without_kernels(binding, setter):
    """Make the control flow of a binding copy and count without kernels, which are not compiled.

    `setter` is the handle of the program's kernel that sets conditions, or 0.
    """
    for number, call in enumerate(binding.calls):
        if type(call) is BoundControl:
            binding.calls[number] = call._replace(rows=(BytesRow, IndexRow), setter=setter)
            for region in call.regions:
                without_kernels(region, setter)


def fill_lists(lists, maker, binding):
    """Add the launch lists of all calls of a binding that are missing in `lists`."""
    for site in sites_of(binding):
        places = places_of(site.call, site.alignments)
        if places.key not in lists:
            lists[places.key] = maker.make(site.call, places)


def _whole(nbytes):
    return -(-nbytes // PIECE_ALIGNMENT) * PIECE_ALIGNMENT


def give_lists(binding, bound, functions, setter=0):
    """Give the calls of a binding their launch lists, and enlarge the arena by their scratch.

    Parameters
    ----------
    binding : Binding
    bound : list of (Site, CallPlaces, LaunchList)
    functions : callable
        Takes a LaunchList, and returns {number of a kernel: handle}.
    setter : int
        The handle of the kernel that sets conditions, or 0.
    """
    most = max([_whole(launches.scratch_nbytes) for _site, _places, launches in bound], default=0)
    # Each stream has its own scratch after the arena; one call at a time uses it.
    lanes = {number: at for at, number in enumerate(dict.fromkeys(binding.streams))}
    start = _whole(binding.arena_nbytes)
    for site, places, launches in bound:
        call = site.call
        row = LaunchRow(call.row, launches, functions(launches), (*places.alignments, 0))
        offset = start + lanes[site.stream] * most - site.origin
        site.inner.calls[site.number] = call._replace(
            row=row,
            arguments=(*call.arguments, CallOperand(0, "uint8", (launches.scratch_nbytes,))),
            patches=(*call.patches, (len(call.arguments), 0, offset)),
        )
    without_kernels(binding, setter)
    if most:
        nbytes = start + most * len(lanes)
        binding.pieces[0] = binding.pieces[0]._replace(nbytes=nbytes)


def listed_calls(function, sizes, lists):
    """Return [(call, LaunchList)] of a function at sizes; empty if a call has no list."""
    sites = list(sites_of(bind(function, sizes)))
    found = [(site.call, lists.get(places_of(site.call, site.alignments).key)) for site in sites]
    return [] if any(launches is None for _call, launches in found) else found


def bound_without_device(function, sizes, lists):
    """Return the Binding of a function for sizes, with the launch lists of a target.

    Returns None if one of its calls has no list.
    """
    binding = bind(function, sizes)
    if binding.has_waits:
        return None
    sites = [(site, places_of(site.call, site.alignments)) for site in sites_of(binding)]
    if any(places.key not in lists for _site, places in sites):
        return None
    bound = [(site, places, lists[places.key]) for site, places in sites]
    give_lists(binding, bound, lambda launches: dict.fromkeys(launches.kernels, 0))
    return binding


class DeviceLists:
    """The launch lists of a program on one GPU.

    Parameters
    ----------
    ahead : Ahead
    device : int
    """

    def __init__(self, ahead, device):
        self.facts = device_facts_of(device)
        self.kernels = ahead.kernels
        self.code = DeviceCode(ahead.kernels, device)
        self.lists = {}
        #: The number of lists that were in the program, and of those made on a phantom GPU.
        self.found = self.made = 0
        for target, lists in ahead.lists.items():
            if target.facts == self.facts:
                self.lists |= lists
        self.checked = set()

    def apply(self, binding):
        """Give the calls of a binding their launch lists, and enlarge the arena."""
        sites = [(site, places_of(site.call, site.alignments)) for site in sites_of(binding)]
        missing = {places.key: (site, places) for site, places in sites}
        missing = {key: one for key, one in missing.items() if key not in self.lists}
        if missing:
            with Maker(self.facts, self.kernels, at_hand=self.code.has_program) as maker:
                for key, (site, places) in missing.items():
                    self.lists[key] = maker.make(site.call, places)
                    self.checked.add(key)
                    self.made += 1
        bound = [(site, places, self._checked(site, places)) for site, places in sites]
        give_lists(binding, bound, self._functions, self.setter(binding))

    def setter(self, binding):
        """Return the handle of the kernel that sets conditions; 0 if unneeded or missing."""
        number = self.kernels.by_source.get(source_of(condition()))
        if not binding.has_conditions or number is None or not self.code.has_image(number):
            return 0
        return self.code.function(number, 0)

    def _checked(self, site, places):
        launches = self.lists[places.key]
        if places.key not in self.checked:
            if not launches.check(len(self.kernels), places.reaches):
                where = site.call.line or site.call.row.name
                got = Described("launches outside their memory")
                raise argument_error(ProgramFileError, where, got, "launches inside their memory")
            self.checked.add(places.key)
            self.found += 1
        return launches

    def _functions(self, launches):
        return {n: self.code.function(n, shared) for n, shared in launches.kernels.items()}
